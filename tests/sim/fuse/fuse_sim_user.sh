#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A user who is not root mounts with the help of fusermount3.

. "$(dirname "$0")/fuse_sim_lib.sh"

user=65534
why=
helper=$(command -v fusermount3)
if [ -z "$helper" ] || ! [ -u "$helper" ]; then
	why="fusermount3 is not setuid root"
elif ! [ -e /etc/mtab ]; then
	why="there is no /etc/mtab"
elif ! setpriv --reuid="$user" --regid="$user" --clear-groups "$helper" -V >/dev/null 2>&1; then
	why="setpriv or fusermount3 does not run as another user"
elif ! (setpriv --reuid="$user" --regid="$user" --clear-groups bash -c ': <>/dev/fuse') 2>/dev/null; then
	why="other users may not open /dev/fuse"
fi
if [ -n "$why" ]; then
	echo "# $why"
	exit 77
fi

# The daemon and what it needs, where the user may go.
chmod 755 "$work"
cp "$bin/fuse_sim" "$bin/fuse_sim_work" "$work/"
bin=$work
mkdir "$work/u" "$work/run"
chown "$user:$user" "$work/u" "$work/run"
export XDG_RUNTIME_DIR=$work/run
other=(setpriv --reuid="$user" --regid="$user" --clear-groups --inh-caps=-all)
as_user() { "${other[@]}" "$@"; }

start() {
	: >"$work/u.log"
	FUSE_SIM="" "${other[@]}" "$bin/fuse_sim" -f 127.0.0.1:/ "$work/u" >>"$work/u.log" 2>&1 </dev/null &
	pid[u]=$!
	echo "${pid[u]}" >>"$work/pids"
	wait_for 60 mounted_or_ended u
	runs "${pid[u]}" && is_mounted "$work/u"
}

works() {
	as_user mkdir "$work/u/load" || return
	as_user timeout 500 "$bin/fuse_sim_work" -u "$work/u/load" >"$work/found" || return
	mkdir "$work/local" && chown "$user" "$work/local" || return
	as_user timeout 500 "$bin/fuse_sim_work" -u "$work/local" >"$work/right" || return
	diff "$work/right" "$work/found"
}

finds_no_socket() {
	local out
	! out=$("$@" 2>&1) && [[ $out == *"no control socket here"* ]]
}

# Root's sockets are elsewhere, and this one's folder is not where root looks for those of users.
asked() {
	[ "$(stat -c %a:%u "$work/run/rpcrdmafs")" = "700:$user" ] &&
		as_user "$bin/fuse_sim" stat "$work/u" | grep " on $work/u (pid ${pid[u]})" &&
		as_user "$bin/fuse_sim" info "$work/u" | grep "^server " || return
	finds_no_socket "$bin/fuse_sim" info "$work/u"
}

# Nowhere to have one: the mount works as always.
without_socket() {
	XDG_RUNTIME_DIR='' start && as_user touch "$work/u/file" || return
	finds_no_socket as_user "$bin/fuse_sim" log "$work/u"
}

ends() {
	local rc=0
	wait_for 60 ended "${pid[u]}" || return
	wait "${pid[u]}" || rc=$?
	[ $rc = 0 ] || cat "$work/u.log"
	! is_mounted "$work/u" && return $rc
}

by_fusermount() { as_user fusermount3 -u "$work/u" && ends; }
by_signal() { kill -TERM "${pid[u]}" && ends; }

refused_by_name() {
	! FUSE_SIM="" as_user timeout 60 "$bin/fuse_sim" -f -o "$1" 127.0.0.1:/ "$work/u" >"$work/why" 2>&1 &&
		grep -q "option $1: only root" "$work/why"
}

check "a user's mount has no devices" refused_by_name dev
check "nor programs of root" refused_by_name suid
must "a user mounts" start
check "every operation does what it does locally" works
check "the user may ask its daemon, over a socket of its own" asked
check "root is kept out" not ls "$work/u"
check "the user unmounts" by_fusermount
must "a user mounts" start
check "the daemon unmounts" by_signal
check "without XDG_RUNTIME_DIR there is a mount, and no socket" without_socket
check "which ends as well" by_signal
tap_end
