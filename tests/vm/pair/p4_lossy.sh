# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: BSD-3-Clause
#
# The wire loses 1 % of all packets, both ways: no program sees an error, what
# was acknowledged is on the server. Without a device no connection is lost, and
# no call takes as long as the longest one of the kernel's client.
#
# tier: all
#
# Registered memory, not windows: see p3_cut.sh.

mount_both
start_loads
before=$(reconnects)
cut_wire 1%
sleep 20
for name in $loads; do diag "$name: $(on client "load_ask $name 0")"; done
mend_wire
recover 0 "1 % of packets lost for 20 s"
if is_soft; then
	check_equal "ours: no connection was lost" "$(reconnects)" "$before"
	check "ours: no call took longer than the kernel client's longest" soon 2 0
fi
client_counters
end_loads
check "ours: nothing is lost" on client "gave_all_back ours"
umount_both
tap_end
