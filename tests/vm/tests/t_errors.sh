#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Whatever is wrong with what the user asked for or has: one line that says
# what and what to check, exit status 1, nothing mounted.
# vm-boot: own
# vm-timeout: 240

. "$(dirname "$0")/../guest/guest.sh"

daemon_path
ulimit -l unlimited
mnt=/mnt
mkdir -p $mnt
out=/tmp/out

mounts() { grep -c ' fuse\.' /proc/self/mounts || true; }

# refused NAME PATTERN command...: the command says one line, which matches.
refused() { check "$1" one_line "${@:2}"; }
one_line() {
	local pattern=$1 rc=0 before
	shift
	before=$(mounts)
	timeout 100 "$@" >$out 2>&1 </dev/null || rc=$?
	cat $out
	[ $rc = 1 ] || { echo "status $rc, not 1"; return 1; }
	[ "$(wc -l <$out)" = 1 ] || { echo "not one line"; return 1; }
	grep -q '^rpcrdmafs: ' $out || { echo "not ours"; return 1; }
	grep -q -i -E -e "$pattern" $out || { echo "does not say: $pattern"; return 1; }
	[ "$(mounts)" = "$before" ] || { echo "mounted"; return 1; }
	! pgrep -x rpcrdmafs || { echo "still running"; return 1; }
}
fuse_mount() { refused "$1" "$2" $daemon ${3:+-o "$3"} "${4:-$server:/}" "${5:-$mnt}"; }

# ---- before there is a device ----
modprobe fuse
fuse_mount "no RDMA device" 'RDMA device.*rdma link|rdma_cm|RDMA'

# ---- the command line ----
refused "no arguments" 'what to mount' $daemon
refused "no mountpoint" 'mountpoint is missing' $daemon $server:/
refused "too many arguments" 'too many.*extra' $daemon $server:/ $mnt extra
refused "an unknown option letter" 'unknown option -x' $daemon -x $server:/ $mnt
refused "a source without a path" 'server' $daemon justaword $mnt
refused "a source without a server" ':/' $daemon :/export $mnt
fuse_mount "an unknown option" 'unknown option frobnicate' frobnicate
fuse_mount "an unknown option with a value" 'frob=1' rw,frob=1
fuse_mount "ro and rw" 'rw contradicts.*ro|ro contradicts.*rw' ro,rw
fuse_mount "hard and soft" 'contradicts' hard,soft
fuse_mount "two versions" 'contradicts' vers=4.1,vers=4.2
fuse_mount "vers=4.1 and minorversion=2" 'contradicts' vers=4.1,minorversion=2
fuse_mount "noac and actimeo" 'contradicts' noac,actimeo=5
fuse_mount "NFSv3" 'only NFS 4.1 and 4.2' vers=3
fuse_mount "NFSv4.0" 'only NFS 4.1 and 4.2' vers=4.0
fuse_mount "TCP" 'only proto=rdma' proto=tcp
fuse_mount "Kerberos" 'sec=krb5' sec=krb5
fuse_mount "a word for a number" 'rsize=big' rsize=big
fuse_mount "a number too large" 'port=99999' port=99999
fuse_mount "a missing value" 'timeo needs a value' timeo
fuse_mount "a value too many" 'hard takes no value' hard=1
fuse_mount "acregmin above acregmax" 'acregmin=100' acregmin=100

# ---- the mountpoint ----
fuse_mount "no mountpoint there" 'mountpoint.*(No such|not exist)' "" "" /nowhere/at/all
touch /tmp/file
rxe_up
nfsd_up
fuse_mount "a file as mountpoint" 'mountpoint.*not a directory' "" "" /tmp/file

# ---- the way to the server ----
fuse_mount "an unknown host" 'resolve.*nosuchhost.invalid' "" nosuchhost.invalid:/
fuse_mount "a host that does not answer" 'connect|resolve|route' "" 10.77.0.99:/
fuse_mount "an address no RDMA device reaches" 'RDMA|route|resolve' "" 198.51.100.7:/
fuse_mount "a closed port" 'connect.*(refused|listens)' port=20050

# ---- the export ----
fuse_mount "an export that does not exist" 'export path.*/missing.*(exist|exported)' "" $server:/missing
fuse_mount "deeper" '/ro/dir/none' "" $server:/ro/dir/none
fuse_mount "a file as export" 'ro/file.*not a directory' "" $server:/ro/file
fuse_mount "below a file" 'not' "" $server:/ro/file/x
fuse_mount "a path with .." '\.\.' "" $server:/ro/../sub
mkdir -p $export_dir/squash/closed/in
chmod 700 $export_dir/squash/closed
fuse_mount "no permission on the way" 'permission denied' "" $server:/squash/closed/in

# ---- locked memory ----
small_memlock() {
	(ulimit -l 256
	 exec setpriv --bounding-set -ipc_lock --inh-caps -ipc_lock -- $daemon $server:/ $mnt)
}
fd_limit() { (ulimit -n 6; exec $daemon $server:/ $mnt); }
export -f small_memlock fd_limit
export daemon server mnt
refused "a memlock limit too small" 'memlock.*(ulimit -l|LimitMEMLOCK)' bash -c small_memlock
refused "too few files" 'files|open' bash -c fd_limit

# ---- mounted already, and dead ----
check "a good mount works after all this" $daemon $server:/ $mnt
second() {
	timeout 60 $daemon $server:/ $mnt >$out 2>&1 && return 1
	cat $out
	[ "$(wc -l <$out)" = 1 ] && grep -q 'mountpoint.*already mounted on' $out && [ "$(mounts)" = 1 ]
}
check "mounted there already" second
kill -KILL "$(pgrep -x rpcrdmafs)"
wait_for 5 bash -c '! pgrep -x rpcrdmafs'
dead() {
	timeout 60 $daemon $server:/ $mnt >$out 2>&1 || return 1
	cat $out
	[ "$(wc -l <$out)" = 1 ] && grep -q "had died was taken away" $out && [ "$(mounts)" = 1 ]
}
check "a dead mount is there: it is taken away, and said" dead
check "unmounted" fusermount3 -u $mnt
check "and it can be mounted again" fmount $mnt rw
check "unmounted" funmount $mnt

# ---- a warning is no error ----
warned() {
	$daemon -o resvport,intr,x-systemd.automount,_netdev,nofail $server:/ $mnt >$out 2>&1 || return 1
	cat $out
	grep -q 'option resvport has no meaning' $out && fusermount3 -u $mnt
}
check "options without meaning are named and accepted" warned
nfsd_stop
fuse_mount "no server" 'connect'
tap_end
