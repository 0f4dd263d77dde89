#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# One boot (BOOT: first, second) of a machine whose root is on /dev/vda: run-reboot.
# The root is an overlay over that of the test VM; systemd is the first process in it.
# The server is the test VM itself, with an export on the same disk.

. "$(dirname "$0")/../guest/guest.sh"
. "$(dirname "$0")/../guest/systemd.sh"

# Not below /run, which is bound into the root.
disk=/disk root=/machine

disk_up() {
	modprobe -a virtio_blk ext4
	mkdir -p $disk $root
	wait_for 10 test -b /dev/vda || return
	[ "$BOOT" = second ] || mkfs.ext4 -q /dev/vda || return
	mount /dev/vda $disk && mkdir -p $disk/up $disk/work $disk/export &&
		mount -t overlay -o lowerdir=/,upperdir=$disk/up,workdir=$disk/work root $root
}
# What the kernel makes, and what lies in memory.
root_up() {
	local dir
	for dir in dev sys run results usr/lib/modules; do mount --rbind "/$dir" "$root/$dir" || return; done
	mount -t proc proc $root/proc
}
export_root() { mkdir -p $export_dir && mount --bind $disk/export $export_dir; }
exports_file() { echo "$export_dir *(rw,fsid=0,no_root_squash,insecure,no_subtree_check)" >/etc/exports; }
in_root() { chroot $root "$@"; }
# By fstab it runs under the name of mount(8)'s helper.
daemon_is() { sd sh -c 'readlink "/proc/$(pgrep -x "(mount.)?rpcrdmafs")/exe"' | grep -x "$1"; }
gone() { ! pgrep -x '(mount.)?rpcrdmafs' >/dev/null; }

check "$BOOT boot: the disk" disk_up
check "the root on it" root_up
rxe_up
nfsd_up
systemd_root=$root

if [ "$BOOT" = first ]; then
	rm -f $root/var/lib/man-db/auto-update # it would read every page there is, over 9p
	check "the package is installed" in_root dpkg -i "$DEB"
	in_root mkdir -p /srv/data
	# README.md's line, for this server and another folder.
	line=$(sed -n 's/^    server:\/export  \/mnt  \(rpcrdmafs .*\)/\1/p' "$(dirname "$0")/../../../README.md")
	check "README.md has a line for fstab" test -n "$line"
	echo "$server:/ /srv/data $line" >>$root/etc/fstab
	check "systemd is up" systemd_up
	check "the line is mounted" sd mountpoint -q /srv/data
	check "a file is written" sd sh -c 'echo kept >/srv/data/file'
else
	check "the line is there" grep -q "^$server:/ /srv/data rpcrdmafs" $root/etc/fstab
	check "systemd is up" systemd_up
	check "it is mounted again" sd mountpoint -q /srv/data
	check "by the package's daemon" daemon_is /usr/bin/rpcrdmafs
	check_equal "the file is there" "$(sd cat /srv/data/file)" kept
fi
check "systemd goes down" systemd_down
check "the daemon has ended" wait_for 15 gone
nfsd_stop
sync -f $disk
tap_end
