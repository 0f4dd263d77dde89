#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# How a mount begins: as mount(8) calls it, again after its daemon was killed,
# over one that is there already, and with a server that comes later.

. "$(dirname "$0")/fuse_sim_lib.sh"

mkdir -p "$work"/{h,d,b,s}
line=("127.0.0.1:/" "$work/h")

# helper SETTINGS arguments...: as mount.rpcrdmafs; its output is in $work/said.
helper() {
	local settings=$1 rc=0
	shift
	(FUSE_SIM=$settings exec -a mount.rpcrdmafs "$bin/fuse_sim" "$@") >"$work/said" 2>&1 </dev/null || rc=$?
	cat "$work/said"
	return $rc
}
says() { grep -Eq "$1" "$work/said" || { cat "$work/said"; return 1; }; }
one_line() { same "$(grep -c ^rpcrdmafs: "$work/said")" 1; }
status() { local want=$1 rc=0; shift; "$@" || rc=$?; same "$rc" "$want"; }

# The daemon of a mount, by its command line; noted for clean_up.
daemon_of() {
	local dir
	for dir in /proc/[0-9]*; do
		! tr '\0' ' ' <"$dir/cmdline" | grep -q "127.0.0.1:/ $1 " || echo "${dir#/proc/}"
	done 2>/dev/null | tee -a "$work/pids"
}
unmounted() {
	local daemon
	daemon=$(daemon_of "$1")
	umount "$1" && wait_for 60 ended "$daemon"
}

mounts_quietly() { helper "" "${line[@]}" -n -o rw,_netdev,user && [ ! -s "$work/said" ]; }
fake() { helper "" "${line[@]}" -f -v -o rw && ! is_mounted "$work/h"; }
refuses() {
	local text=$1
	shift
	status 1 helper "" "$@" && one_line && says "$text" && ! is_mounted "$work/h"
}

check "what mount(8) calls mounts, without a word" mounts_quietly
must "is there" is_mounted "$work/h"
daemon_of "$work/h" >"$work/daemon"
check "for all users, since root mounted it" grep -q " $work/h .*allow_other" /proc/self/mounts
check "the same once more: already mounted, 32" status 32 helper "" "${line[@]}"
check "in one line" one_line
check "that says it" says "127.0.0.1:/ is already mounted on $work/h"
check "another source: busy, 32" status 32 helper "" 127.0.0.1:/other "$work/h"
check "and what is there" says "busy: rpcrdmafs has 127.0.0.1:/ mounted there"

writes() { local i; for ((i = 0; i < 100000; i++)); do echo x >>"$work/h/load" || break; done 2>/dev/null; }
writes & load=$!
wait_for 60 test -s "$work/h/load"
kill -KILL "$(cat "$work/daemon")"
wait $load
check "killed under load: the mount is dead" bash -c "stat '$work/h' 2>&1 | grep -q 'not connected'"
check "the same line mounts again" helper "" "${line[@]}"
check "and says in one line what it did" one_line
check "that a dead one was taken away" says "$work/h: the mount of an rpcrdmafs that had died was taken away"
once() { same "$(grep -c " $work/h fuse.rpcrdmafs " /proc/self/mounts)" 1; }
check "it is mounted once" once
check "and works" bash -c "echo alive >'$work/h/file' && [ \"\$(cat '$work/h/file')\" = alive ]"
check "unmounted" unmounted "$work/h"

# A daemon that is stopped answers nothing: it is not taken for dead, and nobody hangs.
check "mounted" helper "" "${line[@]}"
daemon_of "$work/h" >"$work/daemon"
kill -STOP "$(cat "$work/daemon")"
check "one that does not answer is not dead" status 32 timeout -k 1 300 \
	bash -c 'exec -a mount.rpcrdmafs "$@"' - "$bin/fuse_sim" "${line[@]}"
kill -CONT "$(cat "$work/daemon")"
check "unmounted" unmounted "$work/h"

check "fake: nothing is mounted" fake
check "no such option" refuses "unknown option frob" "${line[@]}" -o rw,frob
check "no path" refuses "server" 127.0.0.1 "$work/h"
check "no mountpoint: 32" status 32 helper "" 127.0.0.1:/ "$work/none"
check "says to make it" says "mountpoint: does not exist: make the directory first"
check "no such export: 32, at once" status 32 timeout 60 \
	bash -c 'exec -a mount.rpcrdmafs "$@"' - "$bin/fuse_sim" 127.0.0.1:/no/such "$work/h"

# ---- a name with two addresses, of which the second is the server's ----
two() {
	(FUSE_SIM="" exec "$bin/fuse_sim" -f -o retry=0 two:/ "$work/d") >"$work/two.log" 2>&1 </dev/null &
	local p=$!
	echo $p >>"$work/pids"
	wait_for 60 grep -q " mounted on " "$work/two.log" || return
	umount "$work/d" && status 0 wait $p
}
check "the second address of a name is tried at once" two
check "the first is told" grep -q "connect: .*: trying another address" "$work/two.log"

# ---- a server that is not there ----
# Without retry= it would be asked for two minutes, in the background for one.
retry0() {
	local start=$SECONDS
	status 32 helper "gone 1" "${line[@]}" -o retry=0 && [ $((SECONDS - start)) -lt 110 ]
}
check "retry=0: one attempt" retry0
check "without a word of trying again" bash -c "! grep -q again '$work/said'"

# As a program in the foreground the server can be told to come back.
late() {
	local name=$1 rc=0
	FUSE_SIM="gone 1" FUSE_SIM_CTL=$work/$name.ctl FUSE_SIM_SAID=$work/$name.said \
		"$bin/fuse_sim" -f -o "$2" 127.0.0.1:/ "$work/$name" >"$work/$name.log" 2>&1 </dev/null &
	pid[$name]=$!
	echo $! >>"$work/pids"
	exec {fd}<>"$work/$name.ctl"
	ctl_fd[$name]=$fd
	exec {fd}<>"$work/$name.said"
	said_fd[$name]=$fd
	wait_for 60 grep -q "trying again for 1 min" "$work/$name.log" || return
	sleep 3
	ctl "$name" gone 0 || return
	wait_for 60 grep -q " mounted on " "$work/$name.log"
}
mkfifo "$work"/{s,d}.{ctl,said}
check "retry=1: mounted when the server comes" late s retry=1
check "it said once that it waits" same "$(grep -c "trying again" "$work/s.log")" 1
check "and nothing of what failed in between" same "$(wc -l <"$work/s.log")" 2
check "unmounted" sim_stop s

interrupted() {
	(FUSE_SIM="gone 1" exec "$bin/fuse_sim" -f -o retry=5 127.0.0.1:/ "$work/b") >"$work/b.log" 2>&1 &
	local p=$!
	echo $p >>"$work/pids"
	wait_for 60 grep -q "trying again" "$work/b.log" || return
	sleep 1
	kill -TERM $p
	wait_for 60 ended $p && status 1 wait $p && grep -q interrupted "$work/b.log"
}
check "SIGTERM ends the waiting" interrupted

background() {
	local start=$SECONDS
	helper "gone 1" 127.0.0.1:/ "$work/b" -o bg,retry=1 && [ $((SECONDS - start)) -lt 55 ]
}
check "bg: status 0 though the server is not there" background
check "says so once" one_line
check "with the reason" says "trying again for 1 min, in the background"
kill_waiting() {
	local p
	p=$(daemon_of "$work/b")
	[ -n "$p" ] && kill -TERM "$p" && wait_for 60 ended "$p"
}
check "and waits in the background, until SIGTERM" kill_waiting
check "bg: what will not pass fails in the foreground" status 32 helper "" 127.0.0.1:/no/such "$work/b" -o bg
tap_end
