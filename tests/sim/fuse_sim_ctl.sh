#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The control socket of a running daemon, and the commands that use it.

. "$(dirname "$0")/fuse_sim_lib.sh"

run=/run/rpcrdmafs
rpcrdmafs() { timeout 60 "$bin/fuse_sim" "$@"; }
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

# Even where the folder does not keep them out.
refuses_others() {
	chmod 711 "$run" && chmod 666 "$(sock m)" || return
	says "only root and the mount's owner" python3 - "$(sock m)" <<-'END'
			import os, socket, sys
			os.setgroups([])
			os.setuid(65534)
			s = socket.socket(socket.AF_UNIX)
			s.connect(sys.argv[1])
			print(s.recv(1000).decode())
		END
	local rc=$?
	chmod 700 "$run" && chmod 600 "$(sock m)" && return $rc
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
	ctl m cut && ls "$work/m" && wait_for 10 grep -q "debug: " "$work/m.log" || return
	says "level debug" rpcrdmafs log "$work/m" &&
		says "level info" rpcrdmafs log "$work/m" info
}

# With a dead server a stat() of the mountpoint would wait.
answers_without_server() {
	ctl m gone 1
	says "level info" rpcrdmafs log "$work/m" && says "level info" rpcrdmafs log "pid:${pid[m]}"
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
	wait_for 10 ended "${pid[dead]}"
	[ -S "$dead" ] && complains 1 "has it died" rpcrdmafs log "$work/dead" || return
	[ ! -e "$dead" ] && umount -l "$work/dead"
}

must "mounted" sim_start m "" "hard,timeo=10,retrans=1,probe=1"
check "the socket is its owner's alone" private
check "another user is refused" refuses_others
fds=$(fds_of m)
check "hostile clients do no harm" hostile_clients
check "and leave nothing open" wait_for 20 fds_back
check "log changes the level" log_follows
check "it answers while the server is dead" answers_without_server
check "a mount may be named over links, and from inside" by_other_names
check "no mount" complains 1 "no rpcrdmafs is mounted there" rpcrdmafs log "$work"
check "no such level" complains 1 "the levels are" rpcrdmafs log "$work/m" loud
check "no arguments" complains 2 usage rpcrdmafs log
check "help" says usage rpcrdmafs log -h
check "what a dead daemon left is removed" removes_stale
left=$(sock m)
check "unmounted" sim_stop m
check "the socket is gone" test ! -e "$left"
tap_end
