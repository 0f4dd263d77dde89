#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The control socket of a running daemon, and the commands that use it.

# Each mount removes what dead daemons left, so other tests must not see the sockets of this one.
# shellcheck disable=SC2034  # fuse_sim_lib.sh's
own_mounts=yes
. "$(dirname "$0")/fuse_sim_lib.sh"

run=/run/rpcrdmafs
must "a /run of its own" mount -t tmpfs -o mode=755 tmpfs /run
rpcrdmafs() { timeout 500 "$bin/fuse_sim" "$@"; }
sock() { echo "$run/${pid[$1]}.sock"; }

# says TEXT command...: it succeeds and prints TEXT.
says() {
	local text=$1 out
	shift
	out=$("$@" 2>&1) || { echo "status $?: $out"; return 1; }
	[[ $out == *"$text"* ]] || { echo "$out"; return 1; }
}

# complains STATUS TEXT command...: it fails so.
complains() {
	local status=$1 text=$2 rc=0 out
	shift 2
	out=$("$@" 2>&1) || rc=$?
	echo "status $rc: $out"
	[ $rc = "$status" ] && [[ $out == *"$text"* ]]
}

private() { [ "$(stat -c %a:%u "$run")" = 700:0 ] && [ "$(stat -c %a:%u "$(sock m)")" = 600:0 ]; }

# Even where the folder does not keep them out: over another name in one that is open (other
# daemons close theirs again).
refuses_others() {
	local rc=0 open
	open=$(mktemp -d /run/fuse-sim.XXXXXX) && chmod 755 "$open" && ln "$(sock m)" "$open/sock" &&
		chmod 666 "$open/sock" || return
	says "only root and the mount's owner" python3 - "$open/sock" <<-'END' || rc=$?
			import os, socket, sys
			os.setgroups([])
			os.setuid(65534)
			s = socket.socket(socket.AF_UNIX)
			s.connect(sys.argv[1])
			print(s.recv(1000).decode())
		END
	chmod 600 "$open/sock" && rm -r "$open" && return $rc
}

# The mount works on beside them, and so does the socket.
hostile_clients() {
	python3 - "$(sock m)" "$work/m/file" <<-'END'
		import os, socket, sys
		def dial():
		    s = socket.socket(socket.AF_UNIX)
		    s.connect(sys.argv[1])
		    s.settimeout(20)
		    return s
		def ask(line):
		    s = dial()
		    s.sendall(line)
		    answer = b""
		    while part := s.recv(65536):
		        answer += part
		    return answer
		silent = [dial() for _ in range(100)]
		assert ask(b"log\n").startswith(b"ok\nlevel "), "beside silent ones"
		for _ in range(200):
		    s = dial()
		    try:
		        s.sendall(os.urandom(3000))
		    except OSError:
		        pass
		    s.close()
		s = dial()
		try:
		    s.sendall(b"x" * (1 << 20))
		except OSError:
		    pass
		open(sys.argv[2], "w").write("works")
		assert open(sys.argv[2]).read() == "works"
		assert ask(b"log\n").startswith(b"ok\nlevel ")
	END
}

fds_of() { ls "/proc/${pid[$1]}/fd" | wc -l; }
fds_back() { [ "$(fds_of m)" = "$fds" ]; }

log_follows() {
	says "level debug" rpcrdmafs log "$work/m" debug || return
	ctl m cut && ls "$work/m" && wait_for 60 grep -q "debug: " "$work/m.log" || return
	says "level debug" rpcrdmafs log "$work/m" &&
		says "level info" rpcrdmafs log "$work/m" info
}

# A thread of its own writes the log.
has_ops() {
	grep -q "op LOOKUP file=[0-9]* name=missing uid=0: ENOENT in [0-9]* us (queue [0-9]*, rpc [0-9]*)" \
		"$work/m.log" && grep -q "op WRITE file=[0-9]* at=0 size=5 uid=0: 5 in " "$work/m.log"
}
ops_are_logged() {
	says "ops on" rpcrdmafs log "$work/m" ops=on || return
	echo text >"$work/m/logged" && ! cat "$work/m/missing" 2>/dev/null || return
	says "ops off" rpcrdmafs log "$work/m" ops=off || return
	wait_for 60 has_ops || { grep -n " op " "$work/m.log"; return 1; }
	mkdir "$work/m/unlogged" && ! grep -q unlogged "$work/m.log"
}

# json EXPRESSION [arguments of stat]: true of what it prints.
json() {
	local expr=$1
	shift
	rpcrdmafs stat --json "$@" "$work/m" | tee "$work/json" |
		python3 -c "import json, sys; d = [json.loads(line) for line in sys.stdin]; m = d[-1]['mounts'][0]
assert $expr, m"
}

# 20 files are made, written and read: what the server counted is what stat says.
counts_agree() {
	local i
	json True && mv "$work/json" "$work/before" || return
	before=$(ctl m ops 18 25 38 53) # OPEN READ WRITE SEQUENCE
	for i in {1..20}; do head -c 40000 /dev/zero >"$work/m/f$i" || return; done
	sync -f "$work/m"
	for i in {1..20}; do dd if="$work/m/f$i" of=/dev/null bs=64k iflag=direct status=none || return; done
	rpcrdmafs stat --json "$work/m" >"$work/after" || return
	echo "$before / $(ctl m ops 18 25 38 53)"
	python3 - "$work/before" "$work/after" "$before" "$(ctl m ops 18 25 38 53)" <<-'END'
		import json, sys
		a, b = (json.load(open(f))["mounts"][0] for f in sys.argv[1:3])
		before, after = ({int(k): int(v) for k, v in (w.split("=") for w in t.split())} for t in sys.argv[3:5])
		for name, op in (("OPEN", 18), ("READ", 25), ("WRITE", 38)):
		    ours = b["nfs_operations"].get(name, 0) - a["nfs_operations"].get(name, 0)
		    assert ours == after[op] - before[op] > 0, (name, ours, before, after)
		    timed = b["calls"][name]["count"] - a["calls"].get(name, {"count": 0})["count"]
		    assert timed <= ours, (name, timed)
		rd = b["requests"]["READ"]
		assert rd["count"] - a["requests"].get("READ", {"count": 0})["count"] == 20, rd
		assert 0 < rd["rpc_seconds"]["average"] < 60 and 0 < rd["rpc_seconds"]["median"] <= rd["rpc_seconds"]["p99"]
		assert b["counters"]["bytes_read"] - a["counters"]["bytes_read"] == 800000
		assert b["gauges"]["lanes"] == 1 and b["gauges"]["inodes"] >= 20
	END
}

intervals() {
	rpcrdmafs stat -i 0.2 -c 3 "$work/m" >"$work/plain" || return
	[ "$(grep -c "^127.0.0.1:/ on $work/m (pid ${pid[m]})" "$work/plain")" = 3 ] || return
	! grep -P '\033' "$work/plain" && json "len(d) == 2 and 0.1 < m['interval_seconds'] < 60" -i 0.2 -c 2
}

fits_terminal() {
	rpcrdmafs stat "$work/m" | tail -n +2 | awk 'length > 80 { print; bad = 1 } END { exit bad }' &&
		rpcrdmafs stat -h | awk 'length > 80 || NR > 24 { print; bad = 1 } END { exit bad }' &&
		rpcrdmafs log -h | awk 'length > 80 || NR > 24 { print; bad = 1 } END { exit bad }'
}

prometheus() {
	rpcrdmafs stat --prometheus >"$work/prom" && grep -q "mountpoint=\"$work/m\"" "$work/prom" &&
		grep -q "mountpoint=\"$work/two\"" "$work/prom" || return
	! type -P promtool >/dev/null || promtool check metrics <"$work/prom"
}

scraped() {
	python3 - "$(sock m)" >"$work/scraped" <<-'END' || return
		import http.client, socket, sys
		c = http.client.HTTPConnection("localhost")
		c.sock = socket.socket(socket.AF_UNIX)
		c.sock.connect(sys.argv[1])
		c.request("GET", "/metrics")
		r = c.getresponse()
		assert r.status == 200, r.status
		print(r.read().decode(), end="")
	END
	grep -q '^rpcrdmafs_fuse_request_seconds_count{.*operation="READ",phase="rpc"} [1-9]' "$work/scraped" || return
	! type -P promtool >/dev/null || promtool check metrics <"$work/scraped"
}

# NAME VALUE FROM of an option, as told by --json.
option_is() {
	python3 - "$work/info.json" "$@" <<-'END'
		import json, sys
		got = json.load(open(sys.argv[1]))["options"][sys.argv[2]]
		print(got)
		assert got == {"value": sys.argv[3], "from": sys.argv[4]}
	END
}

info_tells() {
	rpcrdmafs info "$work/two" >"$work/info" && rpcrdmafs info --json "$work/two" >"$work/info.json" || return
	cat "$work/info"
	grep -Eq "^server +127.0.0.1$" "$work/info" && grep -Eq "^address +127.0.0.1:20049$" "$work/info" &&
		grep -Eq "^lane 2 \(metadata\)$" "$work/info" && grep -Eq "^ +ca_maxrequests +[1-9]" "$work/info" &&
		grep -Eq "^  timeo +600 \(default\)$" "$work/info" || return
	option_is metalane yes "command line" && option_is nconnect 2 "command line" &&
		option_is rsize 65536 "command line" && option_is wsize 1048576 default &&
		option_is vers 4.2 default && option_is memreg mw device && option_is acregmin 7 "command line" &&
		option_is credits 20 "server's limit" && option_is write lazy "command line" || return
	rpcrdmafs info -h | awk 'length > 80 || NR > 24 { print; bad = 1 } END { exit bad }' &&
		rpcrdmafs -h | awk 'length > 80 || NR > 24 { print; bad = 1 } END { exit bad }'
}

# With a dead server a stat() of the mountpoint would wait.
answers_without_server() {
	ctl m gone 1
	says "level info" rpcrdmafs log "$work/m" && says "level info" rpcrdmafs log "pid:${pid[m]}" &&
		says "$work/m" rpcrdmafs stat "$work/m" && says "down" rpcrdmafs info "$work/m"
	local rc=$?
	ctl m gone 0
	return $rc
}

by_other_names() {
	mkdir "$work/links" && ln -s .. "$work/links/up" && ln -s ../m "$work/links/m" || return
	says level rpcrdmafs log "$work/links/m" && says level rpcrdmafs log "$work/links/up/m" &&
		(cd "$work/m" && says level rpcrdmafs log .) && (cd "$work" && says level rpcrdmafs log m/)
}

removes_stale() {
	local dead
	sim_start dead leave || return
	dead=$(sock dead)
	kill -KILL "${pid[dead]}"
	wait_for 60 ended "${pid[dead]}"
	[ -S "$dead" ] && complains 1 "has it died" rpcrdmafs log "$work/dead" || return
	[ ! -e "$dead" ] && umount -l "$work/dead"
}

# A user puts into the place of his folder what he likes.
strangers_are_strangers() {
	local dir=/run/user/65534 dead=2147483647.sock rc=0
	mkdir -p "$dir" && chown 65534 "$dir" && ln -s "$run" "$dir/rpcrdmafs" || return
	[ "$(rpcrdmafs stat | grep -c " on $work/m (pid ${pid[m]})")" = 1 ] || rc=1
	rm "$dir/rpcrdmafs" && mkdir "$dir/rpcrdmafs" && chown 65534 "$dir/rpcrdmafs" || return
	python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$dir/rpcrdmafs/$dead" &&
		touch "$run/$dead" || return
	rpcrdmafs stat >/dev/null && [ -S "$dir/rpcrdmafs/$dead" ] && [ -f "$run/$dead" ] && [ -S "$(sock m)" ] || rc=1
	rm -r /run/user "${run:?}/$dead" && return $rc
}

is_pcapng() { [ "$(od -An -tx4 -N4 "$1")" = " 0a0d0d0a" ]; }
capture_runs() { [ -s "$work/$1.pcapng" ]; }
# capture NAME [OPTIONS] in the background: $capturing
begin_capture() {
	local name=$1
	shift
	rm -f "$work/$name.pcapng"
	rpcrdmafs capture "$@" "$work/m" "$work/$name.pcapng" 2>"$work/$name.said" &
	capturing=$!
	wait_for 60 test -s "$work/$name.pcapng"
}
# It is over, well, with more than nothing in the file.
captured() {
	wait_for 60 ended "$capturing" && wait "$capturing" && is_pcapng "$work/$1.pcapng" &&
		grep -q "capture $2: [1-9][0-9]* frames" "$work/$1.said" && return
	cat "$work/$1.said"
	return 1
}
captures_for_a_time() {
	begin_capture timed -t 5 || return
	# As long as it goes on, however late this begins.
	while runs "$capturing"; do mkdir "$work/m/seen" && rmdir "$work/m/seen" || return; done
	captured timed stopped && grep -q seen "$work/timed.pcapng"
}
captures_until_stopped() {
	begin_capture one && ls -l "$work/m" >/dev/null &&
		complains 1 "running already" rpcrdmafs capture "$work/m" "$work/two.pcapng" &&
		[ ! -e "$work/two.pcapng" ] && rpcrdmafs capture "$work/m" stop 2>"$work/stop.said" &&
		grep -q "capture stopped: [1-9]" "$work/stop.said" && captured one stopped
}
captures_until_full() {
	begin_capture full -d -s 1 && head -c 5000000 /dev/zero >"$work/m/zeros" &&
		captured full full && [ "$(stat -c %s "$work/full.pcapng")" -le 1048576 ] &&
		rm "$work/m/zeros"
}

# A device number is used again as soon as it is free: a daemon that still ends names none.
hello() {
	python3 - "$1" <<-'END'
		import socket, sys
		s = socket.socket(socket.AF_UNIX)
		s.connect(sys.argv[1])
		s.sendall(b"hello\n")
		while data := s.recv(1000):
		    print(data.decode(), end="")
	END
}
claims_no_device() {
	local ending
	sim_start ending leave "hard,timeo=10,retrans=1,probe=30" || return
	ending=$(sock ending)
	hello "$ending" | grep -q '^dev=[0-9]*:[0-9]*$' && ctl ending silent 1 >/dev/null &&
		umount -l "$work/ending" && wait_for 20 without_device "$ending" && sim_ends ending 60
}
without_device() { local said; said=$(hello "$1") && [[ $said == *mountpoint=* ]] && [[ $said != *dev=* ]]; }

# fstat(2) of a descriptor on a mount without a server would wait on the thread that runs timers.
descriptor_is_not_asked_for() {
	local dir rc=0
	sim_start asked leave "hard,timeo=10,retrans=1,probe=1,actimeo=0" || return
	exec {dir}<"$work/asked" && ctl asked gone 1 || return
	python3 - "$(sock asked)" "$dir" <<-'END' || rc=$?
		import socket, sys
		s = socket.socket(socket.AF_UNIX)
		s.settimeout(60)
		s.connect(sys.argv[1])
		socket.send_fds(s, [b"capture start 1 messages\n"], [int(sys.argv[2])])
		said = s.recv(1000)
		print(said)
		assert b"a regular file has to come with it" in said
	END
	exec {dir}<&- && ctl asked gone 0 && sim_stop asked && return $rc
}

# Its standard error is a pipe that is never read, and full before it starts: neither the mount nor
# an operation may wait for that.
runs_without_reader() {
	local dir=$work/unread pipe p
	mkdir "$dir" && mkfifo "$work/unread.pipe" && exec {pipe}<>"$work/unread.pipe" || return
	dd if=/dev/zero of="$work/unread.pipe" bs=4096 oflag=nonblock status=none && return 1
	FUSE_SIM=leave "$bin/fuse_sim" -f 127.0.0.1:/ "$dir" </dev/null >/dev/null 2>&"$pipe" &
	p=$!
	echo $p >>"$work/pids"
	# The socket comes a little later than the mount.
	wait_for 60 says "ops on" rpcrdmafs log "$dir" ops=on || return
	timeout 300 python3 - "$dir" <<-'END' || return
		import os, sys
		for i in range(8000):
		    assert not os.path.lexists(f"{sys.argv[1]}/{i}")
	END
	rpcrdmafs stat --json "$dir" | tee "$work/unread.json" &&
		grep -Eq '"log_dropped":[1-9]' "$work/unread.json" || return
	tr -d '\0' <"$work/unread.pipe" >"$work/unread.log" {pipe}>&- &
	exec {pipe}>&- && umount "$dir" && wait_for 60 ended $p && wait $p &&
		wait_for 60 grep -q '^rpcrdmafs: [0-9]* lines of the log were dropped' "$work/unread.log"
}

must "mounted" sim_start m "" "hard,timeo=10,retrans=1,probe=1"
check "the socket is its owner's alone" private
check "another user is refused" refuses_others
fds=$(fds_of m)
check "hostile clients do no harm" hostile_clients
check "and leave nothing open" wait_for 60 fds_back
check "log changes the level" log_follows
check "operations are logged on request" ops_are_logged
check "stat says what the server counted" counts_agree
check "stat shows intervals" intervals
check "the wire is captured for a time" captures_for_a_time
check "or until somebody ends it, once at a time" captures_until_stopped
check "or until the file is full" captures_until_full
check "a file that is there is left alone" complains 1 "remove it, or name another" \
	rpcrdmafs capture "$work/m" "$work/one.pcapng"
check "so is what is no file" complains 1 "remove it, or name another" \
	rpcrdmafs capture "$work/m" /dev/null
check "stat fits a terminal" fits_terminal
must "a second mount" sim_start two "credits 20" "metalane,nconnect=2,rsize=65536,actimeo=7"
check "info tells what is in force, and why" info_tells
check "stat of all mounts is good for Prometheus" prometheus
check "metrics can be scraped" scraped
check "the second is unmounted" sim_stop two
check "it answers while the server is dead" answers_without_server
check "a mount may be named over links, and from inside" by_other_names
check "no mount" complains 1 "no rpcrdmafs is mounted there" rpcrdmafs log "$work"
check "no such level" complains 1 "the levels are" rpcrdmafs log "$work/m" loud
check "no arguments" complains 2 usage rpcrdmafs log
check "help" says usage rpcrdmafs log -h
check "what a dead daemon left is removed" removes_stale
check "root trusts no folder of another user" strangers_are_strangers
check "one that ends claims no device" claims_no_device
check "a descriptor's file system is not asked for it" descriptor_is_not_asked_for
check "a log that nobody reads holds up nobody" runs_without_reader
left=$(sock m)
check "unmounted" sim_stop m
check "the socket is gone" test ! -e "$left"
tap_end
