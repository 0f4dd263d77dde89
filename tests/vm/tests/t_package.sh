#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The Debian package, as a new administrator meets it: installed, used, in fstab over a
# boot, as units of systemd, purged. It is what contrib/package made beside the build
# folder.
# vm-boot: own
# tier: quick
# vm-timeout: 480

. "$(dirname "$0")/../guest/guest.sh"
. "$(dirname "$0")/../guest/systemd.sh"

deb=$(echo "$BUILD_DIR"/../package/rpcrdmafs_*.deb)
if [ ! -e "$deb" ]; then
	skip "no package: contrib/package $(realpath "$BUILD_DIR/..")/package"
	tap_end
	exit
fi

# Its trigger would read every manual page of the machine, over 9p.
rm -f /var/lib/man-db/auto-update

rxe_up
nfsd_up
head -c 5000000 /dev/urandom >/tmp/data
mnt=/mnt

# Of the package's files those that are there.
files() {
	local file
	dpkg-deb -c "$deb" | awk '$1 !~ /^d/ { print substr($6, 2) }' | while read -r file; do
		[ ! -e "$file" ] && [ ! -L "$file" ] || echo "$file"
	done
	ls -d /etc/rpcrdmafs 2>/dev/null || true
}
check "it has files" bash -c "dpkg-deb -c '$deb' | grep -q '/usr/bin/rpcrdmafs'"
check_equal "nothing of it is there" "$(files)" ""

check "installed" dpkg -i "$deb"
check "the program says the package's version" \
	bash -c "[[ '$(dpkg-deb -f "$deb" Version)' = \"\$(rpcrdmafs -V | cut -d' ' -f2)\"-* ]]"
check "it finds its libraries" bash -c '! ldd /usr/bin/rpcrdmafs | grep "not found"'
for page in rpcrdmafs mount.rpcrdmafs; do
	check "manual page $page(8)" bash -c "zcat /usr/share/man/man8/$page.8.gz | grep -q '^.Nm $page'"
done
check "bash completion" bash -c \
	'. /usr/share/bash-completion/completions/rpcrdmafs && complete -p rpcrdmafs'

check "mounted" rpcrdmafs "$server:/" $mnt
check "written" cp /tmp/data $mnt/data
check "the server has it" cmp /tmp/data $export_dir/data
check "unmounted" umount $mnt
# By fstab it runs under the name of mount(8)'s helper.
gone() { ! pgrep -x '(mount.)?rpcrdmafs' >/dev/null; }
check "the daemon ends" wait_for 15 gone

# ---- a line in fstab, and a boot ----

# The line of rpcrdmafs(8), for this server.
line=$(zcat /usr/share/man/man8/rpcrdmafs.8.gz | sed -n 's/^server:\(.*rpcrdmafs.*\)$/\1/p')
check "the manual has a line for fstab" test -n "$line"
echo "$server:${line/\/export/\/}" >>/etc/fstab
diag "$(tail -n 1 /etc/fstab)"
check "mount MOUNTPOINT" mount $mnt
check "the files are there" cmp /tmp/data $mnt/data
check "umount MOUNTPOINT" umount $mnt
check "the daemon ends" wait_for 15 gone

check "boot" systemd_up
check "mounted at boot" sd mountpoint -q $mnt
check "the files are there" sd cmp /tmp/data $mnt/data
check "a file is written" sd cp /tmp/data $mnt/kept
check "by a mount unit" sd systemctl is-active mnt.mount
check "shutdown" systemd_down
check "the daemon has ended" wait_for 15 gone
check "the server has the file" cmp /tmp/data $export_dir/kept
forgotten() { [ -z "$(ls /proc/fs/nfsd/clients)" ]; }
check "and has forgotten the client" wait_for 5 forgotten
check "boot again" systemd_up
check "mounted again" sd mountpoint -q $mnt
check "the file is there" sd cmp /tmp/data $mnt/kept
check "shutdown" systemd_down
check "the daemon has ended" wait_for 15 gone
sed -i '$d' /etc/fstab

# ---- units ----

auto=/srv/auto serve=/srv/data
mkdir -p $auto $serve /etc/rpcrdmafs
echo "$server:/ $auto rpcrdmafs noauto,x-systemd.automount,_netdev 0 0" >>/etc/fstab
printf 'SOURCE=%s:/\nOPTIONS=allow_other\n' "$server" >/etc/rpcrdmafs/srv-data.conf
printf 'SOURCE=%s:/not-there\n' "$server" >/etc/rpcrdmafs/srv-wrong.conf
# What enable would make links for.
mkdir -p /run/systemd/system/guest.target.wants
ln -sf /lib/systemd/system/rpcrdmafs@.service \
	/run/systemd/system/guest.target.wants/rpcrdmafs@srv-data.service
unit=rpcrdmafs@srv-data
upgrades_of() { sd rpcrdmafs info --json "pid:$1" | sed -n 's/.*"upgrades":\([0-9]*\).*/\1/p'; }
main_pid() { sd systemctl show -P MainPID "$1"; }
restarted() { local now; now=$(main_pid $unit); [ "$now" != 0 ] && [ "$now" != "$1" ] && sd systemctl is-active $unit; }

check "unit files are in order" systemd-analyze verify /lib/systemd/system/rpcrdmafs@.service
check "boot" systemd_up
check "an automount is not mounted before it is used" not sd grep -q "$auto fuse.rpcrdmafs" /proc/self/mounts
check "the first who looks mounts it" sd cmp /tmp/data $auto/data
check "and it is there" sd grep -q "$auto fuse.rpcrdmafs" /proc/self/mounts
check "the service is up" sd systemctl is-active $unit
check "its status tells" bash -c "nsenter -a -t $systemd_pid systemctl show -P StatusText $unit | grep -q 'mounted on $serve'"
check "its files are there" sd cmp /tmp/data $serve/data
first=$(main_pid $unit)
check "reload" sd systemctl reload $unit
check_equal "is an upgrade of the same process" "$(main_pid $unit) $(upgrades_of "$first")" "$first 1"
check "the service is up" sd systemctl is-active $unit
check "its files are there" sd cmp /tmp/data $serve/data
check "a load is at work" sd_load $serve/load
check "the package is upgraded meanwhile" sd dpkg -i "$deb"
check_equal "which is an upgrade of the same process" "$(main_pid $unit) $(upgrades_of "$first")" "$first 2"
check_equal "and no restart" "$(sd systemctl show -P NRestarts $unit)" 0
check "no call of the load failed, and all that was acknowledged is there" sd_load_ends $export_dir/load
check "kill -9" sd kill -9 "$first"
check "it is started again, over the dead mount" wait_for 30 restarted "$first"
check "its files are there again" wait_for 10 sd cmp /tmp/data $serve/data
check "stopped" sd systemctl stop $unit
check "and unmounted" not sd grep -q "$serve fuse.rpcrdmafs" /proc/self/mounts
check "started" sd systemctl start $unit
check "a service that cannot mount fails" not sd timeout 60 systemctl start rpcrdmafs@srv-wrong
check "shutdown" systemd_down
check "all daemons have ended" wait_for 15 gone
sed -i '$d' /etc/fstab
rm -r /etc/rpcrdmafs

# ---- the end of it ----

check "mounted" rpcrdmafs "$server:/" $mnt
exec 7>>$mnt/open
daemon=$(pgrep -x rpcrdmafs)
check "the package is upgraded while a file is open" dpkg -i "$deb"
check_equal "and so is the mount, in the same process" \
	"$(pgrep -x rpcrdmafs) $(rpcrdmafs info --json $mnt | grep -o '"upgrades":[0-9]*')" "$daemon \"upgrades\":1"
check "the file is written" bash -c "echo text >&7"
exec 7>&-
check_equal "the server has it" "$(cat $export_dir/open)" text
echo UPGRADE=no >/etc/default/rpcrdmafs
check "upgraded without the mounts" dpkg -i "$deb"
check_equal "which are as they were" "$(rpcrdmafs info --json $mnt | grep -o '"upgrades":[0-9]*')" '"upgrades":1'
rm /etc/default/rpcrdmafs
check "purged while mounted" dpkg -P rpcrdmafs
check "the mount goes on" cmp /tmp/data $mnt/data
check "unmounted" umount $mnt
check_equal "nothing of it is left" "$(files)" ""
tap_end
