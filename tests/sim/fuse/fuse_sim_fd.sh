#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Somebody else has opened /dev/fuse and mounted; a daemon without any privilege gets
# the descriptor (/dev/fd/N), serves it, and ends when it is unmounted.

. "$(dirname "$0")/fuse_sim_lib.sh"

user=65534
drop=(setpriv --reuid=$user --regid=$user --clear-groups --no-new-privs --bounding-set=-all
	--inh-caps=-all)
if ! "${drop[@]}" true 2>/dev/null; then
	echo "# setpriv cannot drop all privileges"
	exit 77
fi
chmod 755 "$work"
cp "$bin/fuse_sim" "$work/"

mount_fd() {
	mount -i -t fuse.rpcrdmafs \
		-o "fd=3,rootmode=40000,user_id=$user,group_id=$user,allow_other" sim "$work/m"
}

# As in docs/containers.md; the mount is the shell's, the daemon has nothing.
start() {
	mkdir -p "$work/m"
	: >"$work/m.log"
	(
		exec 3<>/dev/fuse
		mount_fd || exit
		FUSE_SIM="" exec "${drop[@]}" "$work/fuse_sim" -f -o allow_other 127.0.0.1:/ /dev/fd/3
	) >>"$work/m.log" 2>&1 </dev/null &
	pid[m]=$!
	echo "${pid[m]}" >>"$work/pids"
	wait_for 60 mounted_or_ended m
	runs "${pid[m]}" && is_mounted "$work/m"
}
no_privileges() { grep -q '^CapPrm:.0*$' "/proc/${pid[m]}/status" && grep -q "^Uid:.$user" "/proc/${pid[m]}/status"; }

ends() {
	local rc=0
	wait_for "$1" ended "${pid[m]}" || { tail -n 20 "$work/m.log"; return 124; }
	wait "${pid[m]}" || rc=$?
	unset "pid[m]"
	[ $rc = 0 ] || tail -n 20 "$work/m.log"
	return $rc
}

use() {
	head -c 3000000 /dev/urandom >"$work/data"
	mkdir "$work/m/dir" && cp "$work/data" "$work/m/dir/file" && cmp "$work/data" "$work/m/dir/file" &&
		mv "$work/m/dir/file" "$work/m/file" && [ "$(ls "$work/m")" = $'dir\nfile' ]
}

refuses() {
	local text=$1
	shift
	! "$@" >"$work/out" 2>&1 </dev/null || return
	grep -q -- "$text" "$work/out" || { cat "$work/out"; return 1; }
}

check "mounted by somebody else" start
check "the daemon has no privilege" no_privileges
check "files go in and out" use
check "unmounted by somebody else" umount "$work/m"
check "the daemon ends" ends 60

start >/dev/null
check "SIGTERM with a mount that is still there" kill -TERM "${pid[m]}"
check "it can be used meanwhile" use
check "and is unmounted" umount "$work/m"
check "then the daemon ends" ends 60

check "a descriptor that is not open" refuses "descriptor 77 is not open" \
	"$work/fuse_sim" -f 127.0.0.1:/ /dev/fd/77
check "one that is something else" refuses "descriptor 0 is not /dev/fuse" \
	"$work/fuse_sim" -f 127.0.0.1:/ /dev/fd/0
check "one that is open and not mounted" refuses "FUSE_INIT" \
	bash -c "exec 3<>/dev/fuse; exec '$work/fuse_sim' -f 127.0.0.1:/ /dev/fd/3"
tap_end
