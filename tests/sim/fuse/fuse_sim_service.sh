#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A service manager (here: a datagram socket) hears when the mount is usable, that it
# lives, also when the server does not, and that it ends; a daemon that stands still
# gives no sign of life.

. "$(dirname "$0")/fuse_sim_lib.sh"

if ! command -v python3 >/dev/null; then
	echo "# there is no python3"
	exit 77
fi

# What is heard, a line each with its time in seconds.
python3 - "$work/notify" >"$work/heard" <<'END' &
import os, socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(200)
while True:
    for line in s.recv(4096).decode().split('\n'):
        print(f"{time.monotonic():.3f} {line}", flush=True)
END
echo $! >>"$work/pids"
wait_for 60 test -S "$work/notify"
export NOTIFY_SOCKET=$work/notify WATCHDOG_USEC=3000000

heard() { grep -q -- "^[0-9.]* $1" "$work/heard"; }
signs() { grep -c WATCHDOG=1 "$work/heard"; }
# Signs of life go on: two more. How fast is unit_service's to see; this machine may be busy.
lives() {
	local before
	before=$(signs)
	wait_for 60 more_than $((before + 1))
}
more_than() { [ "$(signs)" -gt "$1" ]; }
# All that was said before this is heard.
mark() {
	python3 -c 'import socket, sys
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(sys.argv[2].encode(), sys.argv[1])' \
		"$work/notify" "MARK=$1" && wait_for 60 heard "MARK=$1\$"
}
stopped() { grep -q '^State:.T' "/proc/${pid[m]}/status"; }
silent() {
	local before
	wait_for 60 stopped && mark 1 || return
	before=$(signs)
	sleep 3
	mark 2 && [ "$(signs)" = "$before" ]
}

# A call that the silent server did not answer is sent again after five times that.
check "mounted" sim_start m "" timeo=10
check "READY=1" wait_for 60 heard READY=1
check "of this process" heard "MAINPID=${pid[m]}\$"
check "what it does is told" heard "STATUS=127.0.0.1:/ mounted on $work/m"
check "before that, that it connects" heard "STATUS=connecting to 127.0.0.1"
check "signs of life" lives
check "the server answers nobody" ctl m silent 1
ls "$work/m/nothing" >/dev/null 2>&1 &
check "the daemon lives on" lives
kill -STOP "${pid[m]}"
check "a daemon that stands still gives no sign" silent
kill -CONT "${pid[m]}"
check "and again when it goes on" lives
check "the server answers" ctl m silent 0
wait $!
check "it is told to end" kill -TERM "${pid[m]}"
check "which it says" wait_for 60 heard STOPPING=1
check "and does" sim_ends m 60
tap_end
