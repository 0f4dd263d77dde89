#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Another process has taken the mount over, or tries to, and is told to end: at the mountpoint is
# something else by then, which stays. A daemon is killed as soon as it can say that it has
# mounted: somebody keeps the mount by then. The whole program, on a fabric and a server that take
# nothing (tests/bench/null_fab.h), as those outlive it.

# Nobody else is to see its mounts, sockets and names of servers.
# shellcheck disable=SC2034  # fuse_sim_lib.sh's
own_mounts=yes
. "$(dirname "$0")/fuse_sim_lib.sh"

daemon=$bin/../../bench/null_daemon
m=$work/m log=$work/m.log hosts=$work/hosts
mkdir "$m"
echo "hosts: files" >"$work/nsswitch"
touch "$hosts"
must "a /run of its own" mount -t tmpfs -o mode=755 tmpfs /run
must "its own names of servers" mount --bind "$hosts" /etc/hosts
must "of nobody else" mount --bind "$work/nsswitch" /etc/nsswitch.conf

# The daemons of the mount, but those in the list.
others() {
	local dir p
	for dir in /proc/[0-9]*; do
		p=${dir#/proc/}
		tr '\0' ' ' <"$dir/cmdline" | grep -q "nullserver:/ $m " && runs "$p" &&
			! grep -qx "$p" "$work/pids" && echo "$p"
	done 2>/dev/null
	true
}
says() { wait_for 60 grep -q "$1" "$log" || { grep . "$log"; false; }; }
# starts OPTIONS [ARGUMENT]
starts() {
	echo "127.0.0.1 nullserver" >"$hosts" && : >"$log" || return
	"$daemon" -f ${2:+"$2"} -o "$1" nullserver:/ "$m" >"$log" 2>&1 </dev/null &
	d=$!
	echo "$d" >>"$work/pids"
	says " mounted on "
}
# Not by us: a close(2) waits for the daemon, also that of our children.
opened() {
	# shellcheck disable=SC2217  # it need not be read
	sleep 1000 <"$m/data1" &
	user=$!
	wait_for 60 has_it_open
}
has_it_open() { [ "$(readlink "/proc/$user/fd/0")" = "$m/data1" ]; }
covered() { umount -l "$m" && mount -t tmpfs over "$m" && echo precious >"$m/file"; }
upgraded() { timeout -k 1 120 "$daemon" upgrade "pid:$d" && says "has taken over"; }
is_other() { other=$(others) && [ -n "$other" ]; }
killed() {
	kill -KILL "$d" && wait_for 60 is_other && echo "$other" >>"$work/pids" && d=$other
}
crashed() { killed && says "goes on for a daemon that died"; }
# Its server's name is not known, for the next one.
crashed_alone() { : >"$hosts" && killed && says "cannot be taken over, as yet"; }
# The second signal is for the file that is open.
ends() {
	kill -TERM "$d" && says "signal 15\|interrupted" && kill -TERM "$d" 2>/dev/null
	wait_for 60 ended "$d" || return
	[ -z "$user" ] || kill "$user"
}
stays() { cat "$m/file" && same "$(cat "$m/file")" precious; }
number() { awk -v m="$m" '$5 == m { print $3 }' /proc/self/mountinfo; }
is_clear() { umount "$m" && not grep " $m " /proc/self/mounts; }
# umount(8) would ask it first.
umount2() { python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).umount2(sys.argv[1].encode(), 0))' "$m"; }
# Its number is the next one's.
replaced() {
	local was
	was=$(number) && umount2 && mount -t tmpfs over "$m" &&
		echo precious >"$m/file" && diag "device $was, then $(number)"
}
# In order there is nothing that could be.
tells_of_loss() {
	if [ "$1" = crashed_alone ]; then grep -q "not durable on the server, is lost" "$log"; else not grep lost "$log"; fi
}
is_gone() { not is_mounted "$m"; }

# Killed by whoever reads that it is mounted, at once.
killed_when_it_says_so() {
	local line
	echo "127.0.0.1 nullserver" >"$hosts" && mkfifo "$work/said" && exec {said}<>"$work/said" || return
	"$daemon" -f -o keep=process nullserver:/ "$m" >"$work/said" 2>&1 </dev/null {said}>&- &
	d=$!
	echo "$d" >>"$work/pids"
	while read -r -t 60 -u "$said" line; do
		[[ $line != *" mounted on "* ]] || break
	done
	kill -KILL "$d" && [[ $line == *" mounted on "* ]] && wait_for 60 ended "$d"
}
is_taken_over() {
	cat <&"$said" >"$log" &
	exec {said}>&-
	wait_for 60 is_other && echo "$other" >>"$work/pids" && d=$other &&
		says "goes on for a daemon that died" && not grep " mounted on " "$log"
}

user=
must "it is killed as soon as it says that it is mounted" killed_when_it_says_so
must "another one takes over" is_taken_over
must "it is told to end" ends
check "its own mount goes" is_gone

for way in "upgraded keep=no" "crashed keep=process" "crashed_alone keep=process"; do
	read -r how opts <<<"$way"
	must "$how: mounted" starts "$opts"
	must "a file is open" opened
	must "something else is there" covered
	must "another one takes over" "$how"
	must "it is told to end" ends
	check "what is there stays" stays
	check "it was all" is_clear
	check "what may be lost is told" tells_of_loss "$how"
	must "$how: mounted" starts "$opts"
	must "a file is open" opened
	must "another one takes over" "$how"
	must "it is told to end" ends
	check "its own mount goes" is_gone
done
if ! command -v python3 >/dev/null; then
	skip "one that was unmounted before" "there is no python3"
	tap_end
	exit
fi
user=
must "mounted" starts keep=process
must "another one takes over" crashed_alone
must "it is unmounted, and something else is there" replaced
must "it is told to end" ends
check "what is there stays" stays
tap_end
