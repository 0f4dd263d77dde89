#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A mount that outlives the container of its daemon: a holder (rpcrdmafs hold) has what is needed
# meanwhile. A container here is a cgroup, a mount and a pid namespace; what is mounted in it is
# seen outside. Rolled updates (rpcrdmafs leave), the OOM killer's end of a whole group
# (memory.oom.group), another holder; an unmount ends all of it, and so does nobody's coming.
# vm-boot: own
# vm-timeout: 600

. "$(dirname "$0")/../guest/guest.sh"
. "$(dirname "$0")/../guest/open_lib.sh"

rxe_up
nfsd_up
own_net
daemon_path
cp "$BUILD_DIR/tests/vm/keepopen" $bin_dir
mnt=/srv/pod/data knt=/knt folder=/run/hold
log=$RESULTS/containers.log
mkdir -p /srv/pod $mnt
mount --bind /srv/pod /srv/pod
mount --make-shared /srv/pod
mkdir -p /sys/fs/cgroup
mountpoint -q /sys/fs/cgroup || mount -t cgroup2 cgroup2 /sys/fs/cgroup

holder_up() { # [ARG]...
	"$daemon" hold "$@" $folder >>"$RESULTS/holder.log" 2>&1 &
	holder=$!
	wait_for 20 test -S $folder/hold.sock
}
holder_killed() { kill -KILL $holder && { wait $holder || true; }; }
holder_ends() { kill -TERM $holder && wait $holder; }

# Containers are run by a process of its own, which does as it is told, one thing after the other: a
# program of ours has what we have open on the mount, and waits for a daemon when it ends.
container_run() { # NUMBER
	local group=/sys/fs/cgroup/c$1 rc=0
	mkdir -p "$group"
	# shellcheck disable=SC2016  # the shell in it
	$net bash -c 'echo $$ >"$1"/cgroup.procs && exec unshare --pid --fork --mount --propagation unchanged \
		--mount-proc sh -c "mount -t tmpfs run /run/rpcrdmafs && ulimit -l unlimited && exec $2"' \
		- "$group" "$daemon hold $folder data $daemon -f -o keep=auto,allow_other,write=lazy,nconnect=2,$net_option $from:/ $mnt" \
		>>"$log" 2>&1 &
	echo $! >/run/c"$1".unshare
	wait $! || rc=$?
	echo $rc >/run/c"$1".rc
}
container_has_ended() { [ -s /run/c"$1".rc ]; }
container_orders() {
	local what nr
	while read -r what nr; do
		case $what in
		start) container_run "$nr" & ;;
		# All its processes at once, as the OOM killer does with memory.oom.group.
		kill) echo 1 >/sys/fs/cgroup/c"$nr"/cgroup.kill && wait_for 60 container_has_ended "$nr" ;;
		leave) in_container "$nr" "$daemon" leave pid:1 && wait_for 60 container_has_ended "$nr" ;;
		esac || echo "$what $nr failed" >>"$log"
	done
}
in_container() { # NUMBER COMMAND...
	local nr=$1 pid
	shift
	pid=$(pgrep -P "$(cat /run/c"$nr".unshare)") || return
	timeout 60 nsenter --target "$pid" --mount --pid -- "$@"
}
order() { printf '%s\n' "$@" >&9; }
info_of() { in_container "$1" "$daemon" info --json pid:1 | grep -o "\"$2\":\"\?[^,\"]*" | head -n 1 | sed 's/^"[^"]*":"\?//'; }
serves() { [ -n "$(info_of "$1" pid 2>/dev/null)" ]; }
status_of() { wait_for 60 container_has_ended "$1" && cat /run/c"$1".rc; }
mkdir -p /run/rpcrdmafs
mkfifo /run/orders
container_orders </run/orders &
exec 9>/run/orders

check "a holder" holder_up
order "start 1"
check "it mounts" wait_for 60 serves 1
check_equal "a holder keeps it" "$(info_of 1 kept_by)" "a holder"
device=$(stat -c %d $mnt)
hold_open
order "kill 1" "start 2"
check "another one takes over from one that was killed" wait_for 60 serves 2
check_equal "the same mount" "$(stat -c %d $mnt)" "$device"
order "start 3"
waits() { grep -q 'another program has that name' "$log"; }
check "a third one waits" wait_for 60 waits
check "and does not serve" not serves 3
order "leave 2"
check "it takes over when that one leaves" wait_for 60 serves 3
check_equal "which said so" "$(status_of 2)" 75
check_equal "a crash, and an upgrade" "$(info_of 3 crashes) $(info_of 3 upgrades)" "1 1"
gone_cnt() { grep -c 'its program has gone' "$RESULTS/holder.log" || true; }
gone=$(gone_cnt)
check "an upgrade" in_container 3 "$daemon" upgrade pid:1
check_equal "is the same process to the holder" "$(info_of 3 upgrades) $(gone_cnt)" "2 $gone"
held_open
check "the kernel's client is gone" kumount $knt

# ---- under load ----

now=3
# Of three one by one, and the holder in between.
replaced() {
	local before=$now known
	now=$((now + 1))
	known=$(holders_known)
	case $(($1 % 3)) in
	0) order "start $now" "leave $before" ;;
	1) order "kill $before" "start $now" ;;
	# One that serves is known to the next holder before one that is new.
	2) holder_killed && holder_up && order "start $now" && wait_for 60 another_holder "$known" &&
		order "kill $before" ;;
	esac && wait_for 60 serves $now && sleep 2.2
}
holders_known() { grep -c 'there is a holder again' "$log" || true; }
another_holder() { [ "$(holders_known)" -gt "$1" ]; }
check "ten containers, under load" keep_open replaced

# ---- while the kernel waits ----

# A process in the container that cannot be killed would keep it from ending, and so the next one
# from being started.
mkdir $mnt/held
touch $mnt/held/{a,b,c}
check "the kernel's client mounts" kmount $knt
freeze new
order "kill $now" "start $((now + 1))"
check "the container ends" wait_for 60 container_has_ended $now
now=$((now + 1))
check "the notifier still waits" waits_in_kernel
fsfreeze -u $export_dir
check "the next one serves" wait_for 60 serves $now
check "the directory is made" wait $maker
check "the other one is listed" wait $reader
check "the kernel's client unmounts" kumount $knt

# ---- the end ----

check "unmounted" umount $mnt
check_equal "that ends the container" "$(status_of $now)" 0
check_equal "nothing is held" "$(ls $folder)" hold.sock
order "start 50"
check "the next one mounts" wait_for 60 serves 50
check_equal "anew" "$(info_of 50 crashes) $(info_of 50 upgrades)" "0 0"
check "it is used" cp /tmp/data $mnt/data
check "SIGTERM" in_container 50 kill -TERM 1
check_equal "ends it" "$(status_of 50)" 0
check "unmounted" not mountpoint -q $mnt
check_equal "nothing is held" "$(ls $folder)" hold.sock
check "the holder ends" holder_ends
check_equal "with its socket" "$(ls $folder)" ""

check "a holder that does not wait long" holder_up --wait 2
order "start 51"
check "a container mounts" wait_for 60 serves 51
says() { local want=$1; shift; [[ $(timeout 20 "$@" 2>&1 || true) == *"$want"* ]]; }
check "nobody else may ask it" says "hold: $folder: Permission denied" \
	setpriv --reuid 1000 --clear-groups "$daemon" hold $folder other true
chmod 755 $folder
chmod 666 $folder/hold.sock
check "whatever the modes are" says "hold: $folder: Connection reset" \
	setpriv --reuid 1000 --clear-groups "$daemon" hold $folder other true
order "kill 51"
is_dead() { [[ $(timeout 30 ls $mnt 2>&1 || true) == *"not connected"* ]]; }
check "killed, and nobody comes: all use of it fails" wait_for 60 is_dead
check "unmounted" umount $mnt
check "the holder ends" holder_ends
exec 9>&-
check "there is no holder: it says so" says "hold: $folder: No such file" "$daemon" hold $folder data true
tap_end
