#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# `rpcrdmafs probe`: a server that answers, one that refuses, one that does not answer, and a name
# of which nobody tells anything. Neither FUSE nor root is needed, so the library of mounts is not.

set -uo pipefail
bin=$(cd "${1:?usage: $0 BUILD_DIR/tests/sim/fuse}" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/fuse-sim.XXXXXX")
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}
# A resolver that hangs is left to its fate.
export TSAN_OPTIONS=${TSAN_OPTIONS:+$TSAN_OPTIONS:}report_thread_leaks=0

# shellcheck source-path=SCRIPTDIR source=../../tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../tap.sh"
tap_output=$work/output
trap 'rm -rf "$work"' EXIT

# probe WANTED SETTINGS arguments...: exits with that status; what it said is in $work/out and
# $work/err.
probe() {
	local want=$1 settings=$2 rc=0
	shift 2
	FUSE_SIM=$settings timeout -k 1 300 "$bin/fuse_sim" probe "$@" \
		>"$work/out" 2>"$work/all" </dev/null || rc=$?
	grep -v '^fuse_sim: at the end' "$work/all" >"$work/err"
	cat "$work/out" "$work/all"
	same "$rc" "$want"
}
says() { grep -Eqx -- "$1" "$work/out" || { cat "$work/out"; return 1; }; }
fault() { grep -Eq -- "^rpcrdmafs: probe: $1" "$work/err" || { cat "$work/err"; return 1; }; }
silent() { [ ! -s "$work/$1" ] || { cat "$work/$1"; return 1; }; }
lines() { same "$(wc -l <"$work/$1")" "$2"; }

check "a server that answers" probe 0 "credits 7" 127.0.0.1
check "without a fault" silent err
check "its address" says 'address +127\.0\.0\.1:20049'
check "the device" says 'device +sim0'
check "the path MTU" says 'path MTU +1024 bytes'
check "the credits" says 'credits granted +7 of 64 that were asked for'
check "the version" says 'RPC-over-RDMA version +1'
check "the windows are invalidated by it" says 'remote invalidation +yes'
check "five calls were answered" says 'NULL calls answered +5'
check "in some time" says ' +the quickest +[0-9]+ us'
check "as JSON" probe 0 "" --json -o credits=16 127.0.0.1:20049
check "which is one" python3 -c 'import json, sys
found = json.load(open(sys.argv[1]))
assert found["fabric"] == "verbs" and found["credits"] == 16, found' "$work/out"
check "a source has a server" probe 0 "" 127.0.0.1:/export
check "of a device without windows there are none" probe 0 static 127.0.0.1
check "which is said" says 'remote invalidation +no: without memory windows'
check "fabric=soft is what was asked for" probe 0 "" -o fabric=soft 127.0.0.1
check "it is said" says 'fabric +soft'
check "and no device is named" bash -c "! grep -q ^device '$work/out'"

check "a name with two addresses, of which the second is the server's" probe 0 "" two
check "the first is told" fault 'two at 127\.0\.0\.9:20049: connect: .*: trying another address'
check "and no other fault" lines err 1

check "a closed port" probe 1 "" 127.0.0.1:20050
check "the step and what to check" \
	fault '127\.0\.0\.1 at 127\.0\.0\.1:20050: connect: Connection refused: nothing listens'
check "in one line" lines err 1
check "and nothing else" silent out
check "a port by its option" probe 1 "" -o port=20050 127.0.0.1
check "an IPv6 address that nobody listens at" probe 1 "" '[::1]:20050'
check "is written as one" fault '::1 at \[::1\]:20050: connect: Connection refused'

check "a server that is gone: within the transport's own limit" probe 1 "gone 1" 127.0.0.1
check "the step" fault '127.*: connect: Connection timed out: the server does not answer'
check "and within its own limit" probe 1 "gone 1" -t 4 127.0.0.1
check "the same step" fault '127.*: connect: Connection timed out: the server does not answer'
check "one that takes connections and answers no call" probe 1 "silent 1" -t 5 127.0.0.1
check "it is what does not answer" fault '127.*: NULL call: no answer for 5 s, on a connection'
check "the connection is shown" says 'inline sent +4096 bytes'
check "without what an answer tells" bash -c "! grep -q credits '$work/out'"

check "a name of which nobody tells anything" probe 1 "" -t 1 never
check "the name and the DNS are to be checked" fault 'resolve: never: no answer for 1 s: check the name'
check "a name that does not exist" probe 1 "" nosuchhost.invalid
check "likewise" fault 'resolve: nosuchhost\.invalid: .*: check the name and the DNS'

# It has blocked them. So has this shell's child for a moment, before it executes the program.
waits_for_signals() {
	[ "/proc/$1/exe" -ef "$bin/fuse_sim" ] && grep -Eq '^SigBlk:.*[4-7c-f][0-9a-f]{3}$' "/proc/$1/status"
}

# Those that would wait for a long time end at once.
interrupted() {
	local rc=0 p
	FUSE_SIM=$2 "$bin/fuse_sim" probe -t 3600 "$3" >"$work/out" 2>"$work/err" </dev/null &
	p=$!
	if ! { wait_for 60 waits_for_signals $p && kill "-$1" $p && wait_for 60 ended $p; }; then
		kill -KILL $p
		return 1
	fi
	wait $p || rc=$?
	cat "$work/err"
	same $rc 1 && fault "$3: interrupted"
}
for sig in INT TERM; do
	check "SIG$sig while a call is not answered" interrupted $sig "silent 1" 127.0.0.1
	check "SIG$sig while a name is not resolved" interrupted $sig "" never
done

# With the answer of the resolver, before it or after it.
early() {
	local i
	for ((i = 0; i < 40; i++)); do
		probe 1 "" term && fault 'term: interrupted' || return
	done
}
check "a signal that comes together with the address" early

check "without a server it is used wrongly" probe 2 ""
check "the help says how" grep -q '^usage: rpcrdmafs probe' "$work/err"
check "an option that nobody knows" probe 2 "" -o frob 127.0.0.1
check "is named" fault 'unknown option frob'
check "help" probe 0 "" -h
tap_end
