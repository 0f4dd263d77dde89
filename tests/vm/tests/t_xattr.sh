#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Extended attributes, NFSv4 ACLs and long symbolic links: what the server and
# the kernel's client see is the same, with both ways of exposing memory. The
# long ones are long calls (Position-Zero Read chunks) and Reply chunks; a
# large ACL is longer than the first Reply chunk offered, which is repeated.
# tier: quick
# vm-timeout: 300

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
mnt=/mnt
kmnt=/kmnt
dir=$export_dir/xattr
mkdir -m 777 $dir
head -c 60000 /dev/urandom >/tmp/value
head -c 65536 /dev/urandom >/tmp/longest

client() { stat_of "$1" <<<"$stats"; }
at_least() { [ "$1" -ge "$2" ] || { echo "$1 is less than $2"; false; }; }

# xattr get|set|list|remove|error ...: as the system calls, without what getfattr adds.
cat >/tmp/xattr.py <<'END'
import errno, os, sys
what, path = sys.argv[1:3]
rest = sys.argv[3:]
out = sys.stdout.buffer
if what == "get":
    out.write(os.getxattr(path, rest[0], follow_symlinks=False))
elif what == "set":  # NAME FILE [create|replace]
    flags = {"create": os.XATTR_CREATE, "replace": os.XATTR_REPLACE}
    os.setxattr(path, rest[0], open(rest[1], "rb").read(), flags[rest[2]] if rest[2:] else 0)
elif what == "list":
    print(" ".join(sorted(os.listxattr(path, follow_symlinks=False))))
elif what == "remove":
    os.removexattr(path, rest[0])
elif what == "errors":  # for each: what a program is told
    v = b"v"
    tries = {
        "get none": lambda: os.getxattr(path, "user.none"),
        "get user.": lambda: os.getxattr(path, "user."),
        "get trusted.a": lambda: os.getxattr(path, "trusted.a"),
        "get security.a": lambda: os.getxattr(path, "security.a"),
        "get system.posix_acl_access": lambda: os.getxattr(path, "system.posix_acl_access"),
        "get other": lambda: os.getxattr(path, "other.a"),
        "set trusted.a": lambda: os.setxattr(path, "trusted.a", v),
        "set security.a": lambda: os.setxattr(path, "security.a", v),
        "set system.posix_acl_access": lambda: os.setxattr(path, "system.posix_acl_access", v),
        "set user.": lambda: os.setxattr(path, "user.", v),
        "create what is there": lambda: os.setxattr(path, "user.a", v, os.XATTR_CREATE),
        "replace what is not": lambda: os.setxattr(path, "user.none", v, os.XATTR_REPLACE),
        "remove what is not": lambda: os.removexattr(path, "user.none"),
        "remove trusted.a": lambda: os.removexattr(path, "trusted.a"),
        "remove the ACL": lambda: os.removexattr(path, "system.nfs4_acl"),
        "set an empty ACL": lambda: os.setxattr(path, "system.nfs4_acl", b""),
        "name of 255": lambda: os.setxattr(path, "user." + "n" * 250, v),
        "name of 256": lambda: os.setxattr(path, "user." + "n" * 251, v),
        "value of 65537": lambda: os.setxattr(path, "user.b", b"x" * 65537),
        "value too big for the server's disk": lambda: os.setxattr(path, "user.b", b"x" * 65536),
    }
    for name, f in tries.items():
        try:
            r = f()
            print(name, "->", "ok" if r is None else r)
        except OSError as e:
            print(name, "->", errno.errorcode[e.errno])
END
xattr() { python3 /tmp/xattr.py "$@"; }
# By asking for the length first, without which the kernel's client cannot read a long one.
value() { getfattr --absolute-names --only-values -n "$2" "$1"; }

small() {
	local mode=$1 f=$mnt/xattr/$1
	echo "some text" >$dir/$mode
	check "$mode: set" setfattr -n user.a -v one $f
	check_equal "$mode: the server has it" "$(getfattr --only-values -n user.a $dir/$mode)" one
	check_equal "$mode: read" "$(getfattr --only-values -n user.a $f)" one
	check "$mode: another set on the server" setfattr -n user.b -v two $dir/$mode
	check_equal "$mode: listed, with the ACL" "$(xattr list $f)" "system.nfs4_acl user.a user.b"
	check_equal "$mode: as by the kernel's client" "$(xattr list $f)" "$(xattr list $kmnt/xattr/$mode)"
	check "$mode: replaced" setfattr -n user.a -v "" $f
	check_equal "$mode: an empty value" "$(xattr get $dir/$mode user.a | wc -c)" 0
	check "$mode: removed" setfattr -x user.b $f
	check_equal "$mode: and gone" "$(xattr list $dir/$mode)" user.a
	check "$mode: on a directory" setfattr -n user.d -v dir $mnt/xattr
	check_equal "$mode: there too" "$(getfattr --only-values -n user.d $dir)" dir
	setfattr -x user.d $mnt/xattr
	check "$mode: ctime is known at once" newer_ctime $f
	check_equal "$mode: errors are those of the kernel's client" \
		"$(xattr errors $f)" "$(cp --preserve=xattr $dir/$mode $dir/k.$mode && xattr errors $kmnt/xattr/k.$mode)"
}

newer_ctime() {
	local before after
	before=$(stat -c %z "$1")
	sleep 0.05
	setfattr -n user.t -v x "$1"
	after=$(stat -c %z "$1")
	setfattr -x user.t "$1"
	[ "$before" != "$after" ] || { echo "still $before"; false; }
}

# Long calls, and back by Reply chunks. On xfs: ext4 has no room for values like these.
long_value() {
	local mode=$1 f=$mnt/xattr/big/$mode
	touch $dir/big/$mode
	check "$mode: 60,000 bytes set" xattr set $f user.big /tmp/value
	check "$mode: the server has them" bash -c "python3 /tmp/xattr.py get $dir/big/$mode user.big | cmp - /tmp/value"
	check "$mode: read" bash -c "python3 /tmp/xattr.py get $f user.big | cmp - /tmp/value"
	check "$mode: the longest there are" xattr set $f user.big /tmp/longest
	check "$mode: read" bash -c "python3 /tmp/xattr.py get $f user.big | cmp - /tmp/longest"
	check "$mode: and by its length" cmp /tmp/longest <(value $f user.big)
	check "$mode: as by the kernel's client" cmp /tmp/longest <(value $kmnt/xattr/big/$mode user.big)
}

# As many names the kernel's client cannot list: error 523, EBADCOOKIE, with knfsd 6.1.
many_names() {
	local mode=$1 f=$dir/big/names.$1
	check "$mode: 200 names" python3 -c "
import os
open('$f', 'w').close()
for i in range(200): os.setxattr('$f', 'user.name%0200d' % i, b'%d' % i)"
	check "$mode: are listed" cmp \
		<(xattr list $mnt/xattr/big/names.$mode | sed 's/system.nfs4_acl //') <(xattr list $f)
}

long_symlink() {
	local mode=$1 target
	target=$(printf 'part%.0s/' {1..800})
	check "$mode: a symbolic link of 4,000 bytes" ln -s "$target" $mnt/xattr/link.$mode
	check_equal "$mode: the server has it" "$(readlink $dir/link.$mode)" "$target"
	rm -f $dir/link2.$mode
	ln -s "${target}x" $dir/link2.$mode
	check_equal "$mode: another is read" "$(readlink $mnt/xattr/link2.$mode)" "${target}x"
}

# large_acl FILE: an entry for each of 480 users
large_acl() {
	local i list=
	for i in {1..480}; do list+="u:$((10000 + i)):rw,"; done
	setfacl -m "${list%,}" "$1"
}

acls() {
	local mode=$1 f=$mnt/xattr/big/acl.$1 k=$kmnt/xattr/big/acl.$1
	touch $dir/big/acl.$mode $dir/big/acl2.$mode
	check "$mode: read as by the kernel's client" cmp \
		<(value $f system.nfs4_acl) <(value $k system.nfs4_acl)
	large_acl $dir/big/acl.$mode
	xattr get $f system.nfs4_acl >/tmp/acl
	check "$mode: a large one is longer than the first Reply chunk" at_least "$(wc -c </tmp/acl)" 9000
	check "$mode: and the kernel's client reads the same" cmp /tmp/acl <(value $k system.nfs4_acl)
	check "$mode: set on another file" xattr set $mnt/xattr/big/acl2.$mode system.nfs4_acl /tmp/acl
	check_equal "$mode: the server has it there" \
		"$(getfacl -cp $dir/big/acl2.$mode)" "$(getfacl -cp $dir/big/acl.$mode)"
	check "$mode: nfs4_getfacl" nfs4_getfacl $f
	check "$mode: nfs4_setfacl" nfs4_setfacl -a A::12345:RX $mnt/xattr/$mode
	check "$mode: the server has that too" bash -c "getfacl -cn $dir/$mode | grep user:12345:r-x"
	check "$mode: so has nfs4_getfacl" bash -c "nfs4_getfacl $mnt/xattr/$mode | grep A::12345:r"
	check "$mode: a short ACL" nfs4_setfacl -s A::OWNER@:RW,A::GROUP@:R,A::EVERYONE@: $mnt/xattr/$mode
	check_equal "$mode: and the mode with it at once" "$(stat -c %a $mnt/xattr/$mode)" 640
}

# A server's file system with room for long attributes below the exported one.
mkfs.xfs -q -f /dev/ram1
mkdir $dir/big
mount /dev/ram1 $dir/big
chmod 777 $dir/big
echo "$dir/big *(rw,fsid=9,no_root_squash,insecure,no_subtree_check,async)" >>/etc/exports
exportfs -r

# The kernel asks for security.capability before a buffered write: once for a file, not each time.
asked_once() {
	local before
	before=$(client_stats $mnt | stat_of fuse_requests)
	check "$1: 500 writes" dd if=/dev/zero of=$mnt/xattr/written.$1 bs=4k count=500 conv=fsync
	check "$1: are hardly more requests" at_least 530 \
		$(($(client_stats $mnt | stat_of fuse_requests) - before))
}

all() {
	local mode=$1
	check "$mode: mounted" fmount $mnt "memreg=$mode"
	small $mode
	long_value $mode
	many_names $mode
	long_symlink $mode
	acls $mode
	asked_once $mode
	stats=$(client_stats $mnt)
	diag "$(grep -E 'chunk|long_calls|rdma_errors|inval|mw_|op_(.*XATTR.*|SETATTR)=' <<<"$stats" | tr '\n' ' ')"
	check "$mode: long calls were made" at_least "$(client long_calls)" 4
	check "$mode: Reply chunks were used" at_least "$(client reply_chunks)" 5
	check "$mode: some again, larger" at_least "$(client reply_chunk_retries)" 3
	check_equal "$mode: no connection was lost" "$(client connects)" 1
	check "$mode: unmounted" funmount $mnt
}

check "mounted by the kernel" kmount $kmnt noac
all mw
check_equal "each window was invalidated by somebody" \
	"$(($(client remote_invals) + $(client local_invals)))" "$(client mw_binds)"
all static
check_equal "no window was bound" "$(client mw_binds)" 0
check "4.1: mounted" fmount $mnt vers=4.1
check_equal "4.1: an ACL and nothing else" "$(xattr list $mnt/xattr/mw)" system.nfs4_acl
check_fails "4.1: no attribute is set" setfattr -n user.a -v one $mnt/xattr/mw
check "4.1: unmounted" funmount $mnt
check "unmounted by the kernel" kumount $kmnt
sed -i "\\:^$dir/big:d" /etc/exports
exportfs -r
exportfs -f
check "the server lets go" wait_for 20 umount $dir/big
tap_end
