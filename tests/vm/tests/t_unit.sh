#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# keep=auto in a unit of systemd, which keeps the mount: a daemon that is killed is started again,
# and what programs have open goes on, under a load that knows what was acknowledged (pairload). A
# reload and restarts in between, many kills (KILLS, 9), other options meanwhile; a stop ends all of
# it.
# vm-boot: own
# vm-timeout: 900

. "$(dirname "$0")/../guest/guest.sh"
. "$(dirname "$0")/../guest/systemd.sh"

rxe_up
nfsd_up
own_net
daemon_path
cp "$daemon" /usr/bin/rpcrdmafs
sed "/^Exec/s|[^ =]*/rpcrdmafs |/usr/bin/rpcrdmafs |g" \
	"$BUILD_DIR/rpcrdmafs@.service" >/etc/systemd/system/rpcrdmafs@.service
# There is no journal.
mkdir /etc/systemd/system/rpcrdmafs@.service.d
printf '[Service]\nStandardError=append:%s\n' "$RESULTS/unit.log" >/etc/systemd/system/rpcrdmafs@.service.d/log.conf
kept=/srv/kept unit=rpcrdmafs@srv-kept conf=/etc/rpcrdmafs/srv-kept.conf
mkdir -p $kept /etc/rpcrdmafs
options() { printf 'SOURCE=%s:/\nOPTIONS=%s\n' "$from" "$1,$net_option" >$conf; }
main_pid() { sd systemctl show -P MainPID $unit; }
info() { sd rpcrdmafs info --json $kept; }
info_of() { info | grep -o "\"$1\":\"\?[^,\"]*" | head -n 1 | sed 's/^"[^"]*":"\?//'; }
stored() { sd systemctl show -P NFileDescriptorStore $unit; }
is_another() { local now; now=$(main_pid); [ "$now" != 0 ] && [ "$now" != "$1" ] && sd systemctl is-active $unit; }
crash() { local before; before=$(main_pid); sd kill -9 "$before" && wait_for 60 is_another "$before"; }
is_locked() { not sd flock -n $kept/open true; }
# The program writes it to the file that it has open all the time.
said() { sd grep -qx "$1" $kept/open; }
say() { echo "$1" >/tmp/say; wait_for 20 said "$1"; }
kills=${KILLS:-9}
crashes() {
	local i
	# Those that come sooner count as one that dies of whatever the one before died of.
	for ((i = 1; i <= kills; i++)); do sleep 2.2 && crash && say "after $i" || return; done
}

options allow_other,keep=auto,write=lazy
check "boot" systemd_up
check "started" sd systemctl start $unit
check_equal "systemd keeps it" "$(info_of kept_by)" systemd
mkfifo /tmp/say
# Not by sd, which ends it after a while.
nsenter --target "$systemd_pid" --mount --pid --cgroup -- bash -c "exec 8>>$kept/open 7<>/tmp/say; flock -x 8
	while read -r line <&7 && [ \"\$line\" != end ]; do echo \"\$line\" >&8; done" &
holder=$!
check "a file is open, and locked" wait_for 20 is_locked
check "written" say one
device=$(sd stat -c %t:%T $kept)
check "kill -9" crash
check "it is written on" say two
check "still locked" is_locked
check_equal "the same mount" "$(sd stat -c %t:%T $kept)" "$device"
check_equal "info counts it" "$(info_of crashes)" 1
first=$(main_pid)
check "a load is at work" sd_load $kept/load
check "reload" sd systemctl reload $unit
check_equal "is an upgrade of the same process" "$(main_pid) $(info_of upgrades)" "$first 1"
check "it is written on" say three
restarts() {
	local before i
	for i in 1 2 3; do
		before=$(main_pid)
		sd systemctl restart $unit && is_another "$before" && say "restarted $i" || return
		sleep 2.2
	done
}
check "restarts" restarts
check_equal "are upgrades to another process" "$(info_of upgrades) $(info_of crashes)" "4 1"
check "still locked" is_locked
check "$kills kills are not too many" crashes
check_equal "info counts them" "$(info_of crashes)" $((1 + kills))
check "no call of the load failed, and all that was acknowledged is there" sd_load_ends $export_dir/load
check "still locked" is_locked
check_equal "of the records only the last ones are stored" \
	"$(stored)" 3

# ---- a program that dies three times in its first minute ----

exe() { sd readlink "/proc/$(main_pid)/exe"; }
is_old() { [ "$(exe)" = "/usr/bin/rpcrdmafs (deleted)" ]; }
is_new() { [ "$(exe)" = /usr/bin/rpcrdmafs ]; }
cp /usr/bin/rpcrdmafs /usr/bin/rpcrdmafs.new
mv /usr/bin/rpcrdmafs.new /usr/bin/rpcrdmafs
check "another program is installed" is_old
check "reload" sd systemctl reload $unit
check "it has taken over" is_new
check_equal "the one before is stored" "$(stored)" 4
dies() {
	local i
	for i in 1 2; do sleep 2.2 && crash && say "it died $i times" && is_new || return; done
	sleep 2.2
	crash
}
check "it dies three times" dies
check "the one before goes on" wait_for 20 is_old
check "the log says why" grep -q 'died 3 times in its first minute' "$RESULTS/unit.log"
check "it is written on" say again
check "still locked" is_locked
sleep 2.2
check "and if that dies" crash
check "it goes on itself" wait_for 20 is_old
check "it is written on" say "and again"
check "still locked" is_locked
check "until the next reload" sd systemctl reload $unit
check "which is an upgrade" is_new
check "it dies three times" dies
check "the one before goes on" wait_for 20 is_old
check "restart" sd systemctl restart $unit
check "is to what the unit says" wait_for 20 is_new
check "still locked" is_locked
sleep 2.2

# ---- the unit says something else meanwhile ----

options allow_other,keep=auto,nconnect=2
check "kill -9, with other options in the unit" crash
check "they hold from then on" bash -c "grep -q '\"nconnect\":{\"value\":\"2\"' <<<'$(info)'"
check "it is written on" say four
check "still locked" is_locked
options allow_other,keep=no
check "kill -9, after which nobody keeps it" crash
check_equal "nothing is stored" "$(stored)" 0
check "it is written on" say five
options allow_other,keep=auto
check "kill -9, which ends the mount" crash
check "the lock is free" wait_for 20 sd flock -n $kept/open true
echo end >/tmp/say
wait $holder
check_equal "the server has all of it" "$(sed -n '1p;$p' $export_dir/open | tr '\n' ' ')" "one five "


mkdir $export_dir/other
sed -i "s|^SOURCE=.*|SOURCE=$from:/other|" $conf
check "a file is written" sd cp $kept/open $kept/other/open
check "kill -9, with another source in the unit" crash
check "it is that mount now" wait_for 60 sd rpcrdmafs info $kept
check_equal "and another one" "$(info_of source) $(info_of crashes)" "$from:/other 0"
check "its file is there" said five

# ---- its end ----

check "stopped" sd systemctl stop $unit
check "unmounted" not sd grep -q "$kept fuse.rpcrdmafs" /proc/self/mounts
check_equal "nothing is stored" "$(stored)" 0
check "started" sd systemctl start $unit
check_equal "anew" "$(info_of crashes)" 0
check "it is unmounted" sd umount $kept
is_dead() { [ "$(sd systemctl show -P ActiveState $unit)" = inactive ]; }
check "that ends the unit, too" wait_for 20 is_dead
options allow_other,keep=systemd
check "shutdown" systemd_down
check "keep=systemd without a unit is refused" not "$daemon" -f -o keep=systemd "$from:/" $kept
tap_end
