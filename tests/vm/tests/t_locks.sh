#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Locks on the server, between two mounts of ours, the kernel's client, and
# programs on the server itself: what must hold is said in locker.c.
# vm-boot: own
# tier: quick
# vm-timeout: 900

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
mkdir -p "$bin_dir"
cp "$BUILD_DIR/tests/vm/locker" "$bin_dir/"
n=0
# try WHAT KIND MOUNT1 MOUNT2: on a new file
try() {
	n=$((n + 1))
	echo "$*" >>"$RESULTS/figures"
	timeout 400 "$bin_dir/locker" "$1" "$2" "$3/lock$n" "$4/lock$n" | tee -a "$RESULTS/figures"
}
no_locks() { ! grep -h "type: lock" /proc/fs/nfsd/clients/*/states; }

check "mounted" fmount /mnt rw,nconnect=2
check "mounted again" fmount /mnt2 rw
check "mounted by the kernel" kmount /kmnt

for kind in posix ofd flock; do
	check "$kind: two programs of one mount" try conflict $kind /mnt /mnt
	check "$kind: two mounts" try conflict $kind /mnt /mnt2
	check "$kind: the kernel's client" try conflict $kind /mnt /kmnt
	check "$kind: who waits, on one mount" try block $kind /mnt /mnt
	check "$kind: on two" try block $kind /mnt /mnt2
	check "$kind: and the kernel's client" try block $kind /mnt /kmnt
	check "$kind: a signal ends the wait" try interrupt $kind /mnt /mnt2
	check "$kind: and death" try killwait $kind /mnt2 /mnt
	check "$kind: a close gives it back" try closed $kind /mnt /mnt2
	check "$kind: so does a death" try killhold $kind /mnt /mnt2
	check "$kind: to the kernel's client too" try killhold $kind /mnt /kmnt
	check "$kind: counting together" try crowd $kind /mnt /mnt2
	check "$kind: many wait" try many $kind /mnt /mnt
done
for kind in posix ofd; do
	check "$kind: many ranges" try ranges $kind /mnt /mnt2
	check "$kind: the server itself" try conflict $kind /mnt $export_dir
	check "$kind: who waits for it" try block $kind /mnt $export_dir
	check "$kind: counting with the kernel's client" try crowd $kind /mnt /kmnt
done
check "nothing is left on the server" wait_for 60 no_locks

# A lock outlives a restart of the server: nobody gets it in between.
holder_out=/tmp/holder
begin() {
	rm -f /tmp/holder.in
	mkfifo /tmp/holder.in
	"$bin_dir/locker" hold posix "$1" /tmp/holder.in >$holder_out 2>&1 &
	holder=$!
	exec 7>/tmp/holder.in
}
says() { echo "$1" >&7; }
said() { wait_for 90 grep -qx "$1" $holder_out; }
one_try() {
	local rc=0
	printf 'try w 0 100\n' >/tmp/one.in
	timeout 100 "$bin_dir/locker" hold posix "$1" /tmp/one.in >/tmp/one 2>&1 || rc=$?
	cat /tmp/one
	[ $rc = 0 ]
}
restart() { GRACE=$1 nfsd_restart; }
has_it() { one_try "$1" && grep -q ': ok$' /tmp/one; }
refused() { one_try "$1" && grep -q 'temporarily unavailable' /tmp/one; }

check "a holder begins" begin /mnt/kept
says "try w 0 100"
check "and holds" said "try w 0 100: ok"
check "others do not" refused /mnt2/kept
# In a grace period it is reclaimed: others come too late whenever they come.
check "the server restarts" restart keep
check "nobody else gets it" refused /kmnt/kept
check "nor on another mount" refused /mnt2/kept
check "nor on the server" refused $export_dir/kept
says "try w 100 10"
check "the holder goes on" said "try w 100 10: ok"
# Without one it is had anew: by who comes first, so the holder does.
check "the server restarts, and takes no reclaims" restart ""
says "try w 100 20"
check "the holder goes on" said "try w 100 20: ok"
check "nobody else gets it" refused /kmnt/kept
check "nor on another mount" refused /mnt2/kept
says "try u 0 0"
check "it gives it back" said "try u 0 0: ok"
check "others have it" wait_for 60 has_it /mnt2/kept
exec 7>&-
check "the holder ends well" wait $holder

check "unmounted by the kernel" kumount /kmnt
check "unmounted" funmount /mnt2
check "unmounted" funmount /mnt
check "nothing is left on the server" wait_for 60 no_locks
check "and nobody complained" not grep -E "does not give back|may not be released|which is closed" \
	"$(fmount_log /mnt)" "$(fmount_log /mnt2)"
tap_end
