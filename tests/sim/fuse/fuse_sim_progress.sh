#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What takes long says so: data that is left to write when a mount ends, and a
# server in its grace period.

. "$(dirname "$0")/fuse_sim_lib.sh"

says() { grep -Eq "$1" "$work/$2.log" || { cat "$work/$2.log"; return 1; }; }
some_held() { [ "$(value "$1" held)" -ge 1 ]; }
# The program waits in its close().
write_held() {
	ctl "$1" hold 38 || return
	head -c 3000000 /dev/zero >"$work/$1/file" 2>/dev/null &
	wait_for 60 some_held "$1"
}
# Its files are closed at once after the second signal.
told_to_end() { kill -TERM "${pid[$1]}" && sleep 0.5 && kill -TERM "${pid[$1]}"; }

must "mounted" sim_start m "" probe=0
check "data is written that the server does not answer" write_held m
start=$SECONDS
check "told to end" told_to_end m
check "says how much is left" wait_for 60 says ': [0-9]+ KiB are left to write' m
# There are two looks a second, and a line every five.
sleep 2
seldom() { between 1 "$(grep -c 'left to write' "$work/m.log")" $((1 + (SECONDS - start + 1) / 5)); }
check "not with every look at it" seldom
check "the server answers" ctl m release
check "and it ends" sim_ends m 60

must "mounted" sim_start m "" probe=0
check "told to end with nothing to write" sim_stop m
check "says nothing" not grep -E 'left to write|waiting for the server' "$work/m.log"

# On a terminal: python's pty is one.
mkdir "$work/t"
mkfifo "$work"/t.{ctl,said}
FUSE_SIM="" FUSE_SIM_CTL=$work/t.ctl FUSE_SIM_SAID=$work/t.said python3 -c '
import pty, sys
pty.spawn(sys.argv[1:])' "$bin/fuse_sim" -f -o probe=0 127.0.0.1:/ "$work/t" >"$work/t.log" 2>&1 </dev/null &
exec {fd}<>"$work/t.ctl"
ctl_fd[t]=$fd
exec {fd}<>"$work/t.said"
said_fd[t]=$fd
check "on a terminal" wait_for 60 says "mounted on" t
for dir in /proc/[0-9]*; do
	[ "$(tr '\0' ' ' <"$dir/cmdline")" != "$bin/fuse_sim -f -o probe=0 127.0.0.1:/ $work/t " ] || pid[t]=${dir#/proc/}
done 2>/dev/null
echo "${pid[t]}" >>"$work/pids"
check "data is written" write_held t
check "told to end" told_to_end t
in_place() { [ "$(grep -ao $'\r\033\\[Krpcrdmafs: [^:]*: [0-9]* KiB are left to write' "$work/t.log" | wc -l)" -ge 2 ]; }
check "the line is written over" wait_for 60 in_place
check "the server answers" ctl t release
check "and it ends" wait_for 60 ended "${pid[t]}"
unset 'pid[t]'

must "mounted" sim_start m ""
echo x >"$work/m/f"
exec {fd}>>"$work/m/f"
check "the server restarts, and has a grace period" ctl m grace 3600000
echo y >"$work/m/f2" &
new=$!
check "grace is told" wait_for 60 says 'is in its grace period' m
check "a new file waits for its end" runs $new
check "the grace period ends" ctl m grace 0
check "and there is the new file" wait $new
exec {fd}>&-
check "grace was told once" same "$(grep -c 'is in its grace period' "$work/m.log")" 1
check "unmounted" sim_stop m
tap_end
