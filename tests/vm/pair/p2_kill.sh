# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: BSD-3-Clause
#
# The server is killed with -9 in the middle of writes and locks, and booted
# again from its disk: programs go on, what was acknowledged is on the disk,
# what was locked stays locked.
#
# What was acknowledged before the kill is compared with the disk twice: after
# the boot, before any client could write again, and at the end. A third load is
# the victim: it has ended well before the kill; what it was told is taken away
# between kill and boot, which must be noticed.
# tier: quick

mount_both
need_kernel
check "a third load" on client "load_start victim /mnt/ours && has_all_kinds victim && load_end victim"
start_loads 1
sleep 2

check "the server is killed" kill_server
boot server
# While it boots: nothing is acknowledged any more.
for name in victim $loads; do hand_log "$name"; done
check "it boots" on server "disk_up && get_ready"
for name in victim $loads; do
	check "$name: all that was acknowledged is on its disk" on server "on_disk $name"
done
for how in spoilt cut lost revived; do
	check "data of the victim is taken away: $how" on server "take_away $how victim"
	check_fails "which is noticed" on server "on_disk victim-$how victim"
done
for name in $loads; do
	check_equal "$name: all programs wait" "$(on client "load_ask $name 0")" "stuck 6 of 6"
done
check "nfsd is up" on server server_up
up=$(since_kill)
recover 0 "server killed with -9 and booted: it is up after $up s"
check "it had kept records of its clients" on server "tracks_clients && knew_clients"

check "our lock is on the server" on server "states lock ours/lock ours"
if kernel_hangs; then
	skip "locks of two clients" "the kernel's client hangs"
else
	check "the kernel's client does not get what we hold" on client "refused kernel ours"
	on client "refused ours kernel" >"$tmp/refused" || diag "the kernel's client lost what it held"
fi
check_fails "a lock that nobody holds is noticed" on client "refused ours victim"
client_counters
diag "ours: $(on client "rewritten /mnt/ours")"
end_loads
check "ours: all was given back in the grace period" on client "gave_all_back ours"
umount_both
tap_end
