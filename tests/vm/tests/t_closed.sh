#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Ends that are not an unmount: the daemon is killed, the mount is detached
# under open files, the connection is aborted; nothing hangs, nothing is left.
# vm-timeout: 200

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
# What others left behind: a courteous server keeps it.
[ -z "$(ls /proc/fs/nfsd/clients)" ] || nfsd_restart
mnt=/mnt
forgotten() { [ -z "$(ls /proc/fs/nfsd/clients)" ]; }
echo text >$export_dir/file

check "mounted" fmount $mnt rw
check "busy: fusermount3 -u refuses" bash -c "cd $mnt && ! fusermount3 -u $mnt 2>/dev/null"
check "and the mount lives on" cat $mnt/file

# Detached: open files keep it alive until the last is closed.
pid=$(daemon_pid $mnt)
exec 8>>$mnt/open-on
echo one >&8
check "detached under an open file" umount -l $mnt
check "the daemon goes on" runs "$pid"
check "the file can be written" bash -c "echo two >&8"
exec 8>&-
check "closed, the daemon ends" wait_for 20 ended "$pid"
check_equal "what was written is there" "$(cat $export_dir/open-on)" "one
two"
check "and the server forgets it" wait_for 10 forgotten
unset "fmount_pid[$mnt]"

# SIGTERM while a file is open: the mount ends, the program sees an error.
check "mounted again" fmount $mnt rw
pid=$(daemon_pid $mnt)
exec 8>>$mnt/open-term
echo one >&8
kill -TERM "$pid"
check "SIGTERM under an open file: the mount is gone" wait_for 20 bash -c "! mountpoint -q $mnt"
exec 8>&- || true
check "the daemon ends" wait_for 20 ended "$pid"
check_equal "what was written is there" "$(cat $export_dir/open-term)" one
unset "fmount_pid[$mnt]"
check "and the server forgets it" wait_for 10 forgotten

# Aborted by the administrator: the kernel answers everything with an error.
check "mounted again" fmount $mnt rw
pid=$(daemon_pid $mnt)
exec 8>>$mnt/open-abort
conn=/sys/fs/fuse/connections/$(stat -c %d $mnt)
mount -t fusectl none /sys/fs/fuse/connections 2>/dev/null || true
check "aborted" bash -c "echo 1 >$conn/abort"
check_fails "programs get errors" cat $mnt/file
exec 8>&- || true
check "the daemon ends" wait_for 20 ended "$pid"
umount -l $mnt 2>/dev/null || true
unset "fmount_pid[$mnt]"
check "and the server forgets it" wait_for 10 forgotten

# Killed: the kernel knows at once, the server when the lease ends.
check "mounted again" fmount $mnt rw
kill -KILL "$(daemon_pid $mnt)"
check "killed: programs get errors, none hangs" not timeout 10 cat $mnt/file
wait "$(daemon_pid $mnt)" 2>/dev/null || true
unset "fmount_pid[$mnt]"
check "fusermount3 -u cleans up" fusermount3 -u $mnt
check "mounted again at once" fmount $mnt rw
check "and it works" cat $mnt/file
check "unmounted" funmount $mnt
# A courteous server keeps the dead one until somebody wants what it holds.
check "the state of the dead one goes with the server" nfsd_restart
check "all of it" forgotten
tap_end
