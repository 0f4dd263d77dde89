#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What `rpcrdmafs stat`, `info` and `log` say, beside what nfsd counts: for a
# known load the same numbers. Prometheus' own checker takes the metrics. They
# answer while the server is gone, and only to root and the mount's owner.
# vm-boot: own
# vm-timeout: 300

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
daemon_path
in_ram promtool python3
m=/mnt-stat
rpcrdmafs() { timeout 60 "$daemon" "$@"; }
# Files without delegations, so that each open and each stat is asked for.
opts=actimeo=0,nodelegation

json_of() { rpcrdmafs stat --json "$m" >"$1"; }

# 50 files of 4 KiB each are written with O_DIRECT, read so, looked at.
load() {
	local i
	for i in {1..50}; do
		dd if=/dev/zero of="$m/load/f$i" bs=4096 count=1 oflag=direct status=none || return
		dd if="$m/load/f$i" of=/dev/null bs=4096 count=1 iflag=direct status=none || return
		stat -c %s "$m/load/f$i" || return
	done
}

# The files are there already: what follows a LOOKUP that fails the server never sees.
same_as_server() {
	mkdir "$m/load" && load >/dev/null || return
	sync -f "$m"
	json_of /run/a.json && server_stats >/run/a.server || return
	load >/dev/null || return
	sync -f "$m"
	json_of /run/b.json && server_stats >/run/b.server || return
	python3 - <<-'END'
		import json
		a, b = (json.load(open(f"/run/{x}.json"))["mounts"][0] for x in "ab")
		def server(x):
		    return {k: int(v) for k, v in (l.strip().split("=") for l in open(f"/run/{x}.server"))}
		sa, sb = server("a"), server("b")
		def ours(name):
		    return b["nfs_operations"].get(name, 0) - a["nfs_operations"].get(name, 0)
		for name in ("READ", "WRITE", "OPEN", "CLOSE", "GETATTR", "COMMIT"):
		    theirs = sb["op_" + name.lower()] - sa["op_" + name.lower()]
		    print(name, ours(name), theirs)
		    assert ours(name) == theirs, name
		assert ours("READ") == 50 and ours("WRITE") == 50 and ours("GETATTR") >= 150
		def more(*path):
		    x, y = a, b
		    for p in path:
		        x, y = x.get(p, {}) if isinstance(x, dict) else {}, y[p]
		    return y - (x or 0)
		assert more("requests", "READ", "count") == 50
		assert more("requests", "WRITE", "count") == 50
		assert more("calls", "READ", "count") == 50
		assert more("counters", "bytes_read") == more("counters", "bytes_written") == 50 * 4096
		r = b["requests"]["READ"]["rpc_seconds"]
		assert 1e-6 < r["median"] <= r["p99"] < 10, r
	END
}

good_metrics() {
	rpcrdmafs stat --prometheus "$m" >/run/metrics || return
	promtool check metrics </run/metrics || return
	# Without a device the server has another address (FABRIC=soft).
	grep -q "^rpcrdmafs_bytes_read_total{mountpoint=\"$m\",source=\"[][0-9a-f.:]*:/\"} 409600$" /run/metrics
}

metrics_by_http() {
	python3 - "/run/rpcrdmafs/$(daemon_pid "$m").sock" >/run/scraped <<-'END' || return
		import http.client, socket, sys
		c = http.client.HTTPConnection("localhost")
		c.sock = socket.socket(socket.AF_UNIX)
		c.sock.connect(sys.argv[1])
		c.request("GET", "/metrics")
		r = c.getresponse()
		assert r.status == 200
		print(r.read().decode(), end="")
	END
	promtool check metrics </run/scraped
}

refused() {
	! setpriv --reuid=65534 --clear-groups "$daemon" stat "$m" 2>/run/refused &&
		grep -q "no control socket here" /run/refused
}

# As long as nobody answers: the commands touch neither the mount nor the server.
while_gone() {
	nfsd_stop
	stat -f "$m" >/dev/null 2>&1 & local job=$!
	sleep 3
	local rc=0
	rpcrdmafs stat "$m" >/run/gone && grep -q " on $m (pid" /run/gone || rc=1
	rpcrdmafs info "$m" >/run/gone.info && grep -q "^server" /run/gone.info || rc=1
	rpcrdmafs log "$m" | grep -q "level info" || rc=1
	nfsd_start
	wait_for 60 stat -f "$m" || rc=1
	wait $job || true
	json_of /run/c.json && python3 - <<-'END' || rc=1
		import json
		m = json.load(open("/run/c.json"))["mounts"][0]
		assert m["counters"]["reconnects"] >= 1, m["counters"]
	END
	return $rc
}

info_is_right() {
	rpcrdmafs info "$m" | tee /run/info || return
	grep -Eq "^device +(rxe0|soft)$" /run/info && grep -Eq "^NFS version +4\.2$" /run/info &&
		grep -Eq "^lease +$LEASE s" /run/info && grep -Eq "^ +actimeo|acregmin +0 " /run/info || return
	rpcrdmafs info --json "$m" | python3 -c '
import json, sys
i = json.load(sys.stdin)
assert i["options"]["delegation"] == {"value": "no", "from": "command line"}, i["options"]["delegation"]
assert i["options"]["nconnect"]["from"] == "default"'
}

# A file that is kept open.
synced() {
	local rc
	exec 8>"$m/synced" && echo text >&8 || return
	rpcrdmafs sync "$m" && test "$(cat "$export_dir/synced")" = text
	rc=$?
	exec 8>&-
	return $rc
}

check "mounted" fmount "$m" "$opts"
check "counters agree with the server's" same_as_server
check "what was written is made durable" synced
check "promtool takes the metrics" good_metrics
check "and those of a scrape" metrics_by_http
check "another user learns nothing" refused
check "info says what was negotiated" info_is_right
check "they answer while the server is gone" while_gone
check "unmounted" funmount "$m"
check "no socket is left" test -z "$(ls /run/rpcrdmafs)"
tap_end
