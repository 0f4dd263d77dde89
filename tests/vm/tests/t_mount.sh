#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The life of a mount: it is usable when the command returns, it ends in each
# of the ways users end it, and the server is left without our state.
# vm-timeout: 240

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
# What others left behind: a courteous server keeps it.
[ -z "$(ls /proc/fs/nfsd/clients)" ] || nfsd_restart
own_net
daemon_path
ulimit -l unlimited
mnt=/mnt
mkdir -p $mnt
echo there >$export_dir/there

running() { pgrep -x rpcrdmafs >/dev/null; }
gone() { ! running && ! mountpoint -q $mnt; }
# Our client is unknown to the server: DESTROY_SESSION and DESTROY_CLIENTID came.
forgotten() { [ -z "$(ls /proc/fs/nfsd/clients)" ]; }
background() { $net $daemon -o "${1:-rw},$net_option" $from:/ $mnt </dev/null; }
log_has() { grep -q "$1" "$(fmount_log $mnt)"; }

check "goes to the background" background
check "and is usable at once" cat $mnt/there
check "as a process of its own session" test "$(ps -o ppid= -p "$(pgrep -x rpcrdmafs)" | tr -d ' ')" = 1
check "shown as a mount of the source" grep -qF "$from:/ $mnt fuse" /proc/self/mounts
check "the server knows one client" test "$(ls /proc/fs/nfsd/clients | wc -l)" = 1
check "minor version 2 by default" grep -q 'minor version: 2' /proc/fs/nfsd/clients/*/info
check "fusermount3 -u unmounts" fusermount3 -u $mnt
check "and the daemon ends" wait_for 15 gone
check "and the server forgets it" wait_for 5 forgotten

for sig in TERM INT HUP; do
	check "background again" background
	dd if=/dev/urandom of=$mnt/data bs=64k count=16 status=none
	sum=$(sha256sum <$mnt/data)
	kill -$sig "$(pgrep -x rpcrdmafs)"
	check "SIG$sig unmounts" wait_for 15 gone
	check "and the server forgets it" wait_for 5 forgotten
	check_equal "and has the data" "$(sha256sum <$export_dir/data)" "$sum"
done

check "with vers=4.1" background vers=4.1
check "minor version 1 is spoken" grep -q 'minor version: 1' /proc/fs/nfsd/clients/*/info
check "umount unmounts" umount $mnt
check "and the daemon ends" wait_for 15 gone
check "and the server forgets it" wait_for 5 forgotten

check "in the foreground" fmount $mnt rw
check "SIGTERM: status 0" bash -c "kill -TERM $(daemon_pid $mnt)"
wait "$(daemon_pid $mnt)" && rc=0 || rc=$?
check_equal "status" $rc 0
unset "fmount_pid[$mnt]"
check "nothing is left" wait_for 5 forgotten

# An open file holds the mount: SIGTERM still ends it, the file's user sees errors.
check "with a sub-directory of the export" bash -c "mkdir -p $export_dir/deep/er && echo x >$export_dir/deep/er/file"
check "mounted" fmount $mnt ro /deep/er
check "the path is found" cat $mnt/file
check_fails "ro is read-only" touch $mnt/new
check "unmounted" funmount $mnt

check "counters on SIGUSR1" fmount $mnt stats
head -c 3000000 /dev/urandom >$mnt/rnd
cat $mnt/rnd >/dev/null
stats=$(client_stats $mnt)
for name in rpcs op_WRITE op_READ op_OPEN op_CLOSE op_SEQUENCE bytes_written credits slots; do
	check "$name is counted" test "$(stat_of $name <<<"$stats")" -gt 0
done
check "bytes_written is exact" test "$(stat_of bytes_written <<<"$stats")" = 3000000
check "unmounted" funmount $mnt
check "printed at the end with -o stats" log_has bytes_written=3000000

# One lane at default sizes.
check "memory" fmount $mnt rw
dd if=/dev/zero of=$mnt/big bs=1M count=192 conv=fsync status=none
dd if=$mnt/big of=/dev/null bs=1M iflag=direct status=none
dd if=$mnt/big of=/dev/null bs=128k status=none
hwm=$(awk '/VmHWM/ { print $2 }' "/proc/$(daemon_pid $mnt)/status")
diag "VmHWM $hwm KiB"
check "at most 96 MiB resident" test "$hwm" -le $((96 * 1024))
rm $mnt/big
check "unmounted" funmount $mnt
check "nothing is left" wait_for 5 forgotten
check "nfs:// is a source" $net $daemon -o $net_option "nfs://$from/deep" $mnt
check "the path is found" cat $mnt/er/file
umount $mnt
check "the end" wait_for 15 gone

# A /dev/fuse that root opened and mounted, for a daemon without any privilege: the
# commands of docs/containers.md.
handed_over() {
	ulimit -l unlimited
	exec 3<>/dev/fuse
	mount -i -t fuse.rpcrdmafs \
		-o fd=3,rootmode=40000,user_id=1000,group_id=1000,allow_other,nosuid,nodev \
		"$from:/" $mnt
	exec $net setpriv --reuid 1000 --regid 1000 --clear-groups --no-new-privs \
		--bounding-set -all --inh-caps -all \
		"$daemon" -f -o "allow_other,$net_option" "$from:/" /dev/fd/3
}
(handed_over) >"$RESULTS/handed_over.log" 2>&1 &
check "an opened device is served" wait_for 20 grep -q "mounted on /dev/fd/3" "$RESULTS/handed_over.log"
check "without a privilege" grep -q '^CapPrm:.0*$' "/proc/$(pgrep -x rpcrdmafs)/status"
check "files are read" cat $mnt/deep/er/file
check "and written" bash -c "echo new >$mnt/new && [ \$(cat $export_dir/new) = new ]"
check "unmounted by root" umount $mnt
check "the end" wait_for 15 gone

version() { $daemon -V | grep -q '^rpcrdmafs [0-9]'; }
check "-V" version
check "-h" bash -c "$daemon -h | grep -q usage:"
tap_end
