#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A tree copied in and out, seen by the server's file system, by libnfs over
# TCP and by the kernel's NFS client on the same export; changes by either
# client are seen by the other after open.
# tier: quick
# vm-timeout: 240

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
mnt=/mnt knt=/knt
cp "$BUILD_DIR/tests/vm/witness" /run/witness

# 200 files of many sizes in 20 folders.
make_tree() {
	local d f
	mkdir -p "$1"
	for d in $(seq 20); do
		mkdir "$1/d$d"
		for f in $(seq 10); do
			head -c $((d * f * 97 % 30000)) /dev/urandom >"$1/d$d/f$f"
		done
		ln -s "f$d" "$1/d$d/link"
	done
	head -c 5000000 /dev/urandom >"$1/large"
	: >"$1/empty"
	mkfifo "$1/fifo"
}
make_tree /tmp/tree
sums=$(tree_sums /tmp/tree)
same_tree() { same "$(tree_sums "$1")" "$sums"; }
libnfs_sees() { same "$(/run/witness $server "$1" | sort -k 2)" "$sums"; }

# Directories are looked at again soon: half a minute is long in a test.
check "mounted" fmount $mnt allow_other,acdirmin=1,acdirmax=2
check "a tree is copied in" cp -a /tmp/tree $mnt/tree
check "the server's file system has it" same_tree $export_dir/tree
check "libnfs sees it over TCP" libnfs_sees /tree
check "it is read back" same_tree $mnt/tree
check "with the same metadata" bash -c "cd /tmp/tree && tar c . | (cd $mnt/tree && tar d)"
check "it is copied out" cp -a $mnt/tree /tmp/out
check "and is the same" same_tree /tmp/out
check "du agrees" bash -c "[ \$(du -s $mnt/tree | cut -f1) = \$(du -s $export_dir/tree | cut -f1) ]"

check "the kernel's client mounts the same export" kmount $knt acdirmin=1,acdirmax=2
check "it sees the tree" same_tree $knt/tree
rewrite() { for i in 1 2 3; do echo "$2 $i" >"$1/shared" && [ "$(cat "$3/shared")" = "$2 $i" ] || return 1; done; }
check "what it writes we see after open" rewrite $knt kernel $mnt
check "what we write it sees after open" rewrite $mnt ours $knt
appear() { echo new >"$1/new-$2" && wait_for 20 cat "$3/new-$2"; }
check "a file it makes appears here" appear $knt k $mnt
check "a file we make appears there" appear $mnt o $knt

# An open handle keeps what it opened; the next open sees the new file.
exec 7<$mnt/shared
echo replaced >$knt/replacement
mv $knt/replacement $knt/shared
check "a file it replaces is the new one here" wait_for 20 grep -q replaced $mnt/shared
exec 7<&-

check "removing the tree" rm -r $mnt/tree
check "leaves nothing on the server" test ! -e $export_dir/tree
check "statfs" bash -c "[ \$(stat -f -c %b $mnt) -gt 0 ]"
check "df" bash -c "[ \$(df --output=size -B1 $mnt | tail -1) = \$(df --output=size -B1 $export_dir | tail -1) ]"
check "kernel unmounts" kumount $knt
check "unmounted" funmount $mnt

# Without attribute cache each stat asks the server.
check "mounted with noac" fmount $mnt noac
echo 1 >$export_dir/ac
check_equal "1" "$(cat $mnt/ac)" 1
stat_follows() {
	local i
	for i in 1 22 333 4444; do
		printf %s $i >$export_dir/ac
		same "$(stat -c %s $mnt/ac)" ${#i} || return 1
	done
}
check "stat follows the server at once" stat_follows
check "unmounted" funmount $mnt
check "mounted with lookupcache=none" fmount $mnt lookupcache=none
names_follow() {
	local i
	for i in 1 2 3; do
		[ ! -e $mnt/lc ] && touch $export_dir/lc && [ -e $mnt/lc ] && rm $export_dir/lc || return 1
	done
}
check "names follow the server at once" names_follow
check "unmounted" funmount $mnt
tap_end
