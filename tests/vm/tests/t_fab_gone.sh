#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The RDMA device is removed under connections with bound windows and under
# endpoints without a connection, and another comes: src/verbs lets go of the
# old one (rxe's removal waits for that) and goes on with the new one.
#   tests/vm/vm --env BUILD_DIR=... -- tests/vm/tests/t_fab_gone.sh
# vm-fabric: verbs

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
mkdir -p /run/bin
cp "$BUILD_DIR/tests/vm/fab_probe" /run/bin/
# librdmacm's protection domain of the removed device: see verbs_dev.c.
echo "leak:librxe" >/run/lsan
export LSAN_OPTIONS=suppressions=/run/lsan:print_suppressions=0

lanes_ready() { [ -e /run/ready.0 ] && [ -e /run/ready.1 ]; }

# one_round SCENARIO: two lanes, as two threads of one process.
one_round() {
	local pid
	rm -f /run/ready.*
	timeout -k 5 100 /run/bin/fab_probe "$1" $server 20049 /run/ready 2 >/run/probe.log 2>&1 &
	pid=$!
	check "$1: connected" wait_for 20 lanes_ready
	check "$1: the device is removed under a living process" timeout 30 rdma link delete rxe0
	nfsd_stop
	rdma link add rxe0 type rxe netdev dummy0
	nfsd_start
	touch /run/ready.0.back /run/ready.1.back
	check "$1: the endpoints go on with the new device" wait $pid
	sed 's/^/# /' /run/probe.log
}

one_round gone
one_round idle-gone
tap_end
