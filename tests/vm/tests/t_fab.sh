#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# src/verbs on rxe, against nfsd's listener: one scenario of fab_probe a check.
#   tests/vm/vm --env BUILD_DIR=... -- tests/vm/tests/t_fab.sh
# vm-boot: own
# vm-fabric: verbs

. "$(dirname "$0")/../guest/guest.sh"

mkdir -p /run/bin
cp "$BUILD_DIR/tests/vm/fab_probe" /run/bin/
probe() { timeout -k 5 "${LIMIT:-60}" /run/bin/fab_probe "$@"; }

# A bound window makes rxe wait 50 s when the queue pair goes first.
quick() {
	local start=$SECONDS
	"$@" && [ $((SECONDS - start)) -lt 25 ]
}

check "no device: said at once" probe nodevice $server 20049
check "rxe comes up" rxe_up
nfsd_up
check "a NULL call" probe null $server 20049
check "nobody listens" probe refused $server 20050
check "an address without a route" probe unroutable 198.51.100.1 20049
check "a host that does not answer" probe silent 10.77.0.99 20049
check "attempts are given up" probe cancel $server 20049
LIMIT=120 check "50 reconnects leave nothing behind" probe cycle $server 20049 50
check "windows invalidated by the server" probe remote-inval $server 20049
check "windows invalidated by us" quick probe local-inval $server 20049
check "static registrations" probe static $server 20049
check "a Send and a bind that break the connection" quick probe break $server 20049
check "a full send queue" probe full $server 20049
check "too much locked memory" probe memlock $server 20049

server_goes() {
	local rc=0
	rm -f /run/ready
	quick probe peer $server 20049 /run/ready &
	wait_for 20 test -e /run/ready || rc=1
	nfsd_stop
	wait $! || rc=1
	return $rc
}
check "the server goes" server_goes
check "the server comes back" nfsd_start
check "a NULL call again" probe null $server 20049
check_equal "nobody left a queue pair" "$(rdma resource show qp | grep -c ' pid [1-9]')" 0
tap_end
