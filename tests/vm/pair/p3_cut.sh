# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: BSD-3-Clause
#
# The wire is cut for 5 s, and for longer than the lease: programs wait and go
# on, what was acknowledged is on the server, locks stay.
#
# Registered memory, not windows: with those rxe of Linux 6.1 often does not
# move any more when packets were lost (docs/quirks.md), and what would be
# measured is `timeo`. The kernel's client has its own registrations, with which
# rxe does likewise: it may hang.

mount_both
start_loads
turn=0
for seconds in 5 $((LEASE + 5)); do
	cut_wire 100%
	sleep $seconds
	for name in $loads; do diag "$name: $(on client "load_ask $name $turn")"; done
	diag "the server says of its clients: $(on server "cat /proc/fs/nfsd/clients/*/info" | grep ^status | tr '\n' ' ')"
	mend_wire
	recover $turn "wire cut for $seconds s"
	! is_soft || [ $seconds -gt 5 ] || check "ours: within 3 s, or as soon as the kernel's client" soon 1 3
	turn=$((turn + 1))
done
if kernel_hangs; then
	skip "locks of two clients" "the kernel's client hangs"
else
	check "the kernel's client does not get what we hold" on client "refused kernel ours"
fi
client_counters
end_loads
check "ours: nothing is lost" on client "gave_all_back ours"
umount_both
tap_end
