#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# tar, rsync -aHAX, cpio and cp -a, onto the mount, from it, and on it: names,
# modes, owners, times, hard links, special files, extended attributes, contents.
# vm-timeout: 2400
# vm-boot: own

. "$(dirname "$0")/../guest/prog_lib.sh"

in_ram tar rsync cpio cp getfattr setfattr chown mkfifo mknod gzip

# What archives have trouble with. Times are whole and split seconds of the past,
# and one of the future.
make_tree() {
	local d f i
	mkdir -p "$1"
	cd "$1"
	mkdir -p 'dir '{1..10}/sub
	# Programs take long to start in an emulated machine: one makes all of them.
	awk 'BEGIN {
		for (d = 1; d <= 10; d++) for (i = 1; i <= 8; i++) {
			f = "dir " d "/sub/file-" i
			for (n = d * i * 7 % 500; n >= 0; n--) printf "%d %d %d\n", n * 7919 % 10007, d, i >f
			close(f)
		}
	}'
	for d in {1..5}; do
		ln "dir $d/sub/file-1" "dir $d/hard"
		ln -s "sub/file-$d" "dir $d/soft"
	done
	ln "dir 1/sub/file-1" "dir 2/from another"
	head -c 2000000 /dev/urandom >large
	# Holes before, between and after data.
	truncate -s 3M sparse
	printf middle | dd of=sparse bs=1 seek=1500000 conv=notrunc status=none
	: >empty
	mkfifo -m 640 fifo
	mknod -m 600 character c 1 3
	mknod -m 660 block b 7 0
	ln -s "$(printf 'long%.0s' $(seq 250))" 'long target'
	ln -s '' nowhere 2>/dev/null || ln -s /nowhere nowhere
	: >"$(printf 'n%.0s' $(seq 255))"
	: >$'new\nline\ttab "quotes" \\back'
	: >$'not UTF-8: \xff\xfe'
	mkdir -m 3777 sticky
	mkdir -m 2755 setgid
	mkdir -m 0 closed
	i=0
	for f in 4755 2755 6711 0 400 777; do
		echo "$f" >"mode $f"
		chown $((1000 + i)):$((2000 + i)) "mode $f"
		chmod $f "mode $f"
		i=$((i + 1))
	done
	chown 1234:5678 'dir 3' 'dir 3/sub/file-2'
	chown -h 4321:8765 'dir 4/soft'
	setfattr -n user.short -v value large
	setfattr -n user.binary -v 0x00ff00fe empty
	setfattr -n user.long -v "$(printf 'x%.0s' $(seq 2000))" 'dir 1'
	for i in $(seq 12); do setfattr -n "user.many.$i" -v "$i" 'dir 2/hard'; done
	touch -h -d '1999-12-31 23:59:59.987654321' 'dir 5/soft' 'dir 5/hard' fifo
	touch -d '2033-03-03 03:03:03' large
	find . -depth -type d -exec touch -d '2001-02-03 04:05:06.5' {} +
}
make_tree "$scratch/tree"
cd /
tree_list $scratch/tree mtime >/run/list
diag "the tree: $(find $scratch/tree | wc -l) names, $(du -sm $scratch/tree | cut -f1) MiB"

# whole DIR: as it was made.
whole() { tree_list "$1" mtime | diff /run/list - | head -n 30; }

# What differs is told, and is the same on both mounts.
copied_in() { cp -a $scratch/tree in; whole in; }
copied_on() { cp -a in again; whole again; rm -r again; }
copied_out() { cp -a in $scratch/out; whole $scratch/out; rm -r $scratch/out; }

tar_in() { mkdir tar; tar -C $scratch/tree -c --xattrs --acls . | tar -C tar -xp --xattrs --acls --numeric-owner; whole tar; }
tar_differs() { tar -C $scratch/tree -c --xattrs . | tar -C tar -d --xattrs; }
# The archive itself is not compared: in which order attributes are listed is open.
tar_out() {
	tar -C tar -czf whole.tar.gz --xattrs --sort=name --pax-option=exthdr.name=%d/%f,delete=atime,delete=ctime .
	mkdir $scratch/out
	tar -C $scratch/out -xzpf whole.tar.gz --xattrs --xattrs-include='user.*' --numeric-owner
	whole $scratch/out
	rm -r $scratch/out whole.tar.gz
}
tar_sparse() {
	tar -C tar -cSf sparse.tar sparse
	stat -c %s sparse.tar
	mkdir holes
	tar -C holes -xf sparse.tar
	cmp holes/sparse $scratch/tree/sparse
	stat -c '%s %b' holes/sparse
}
tar_update() {
	tar -C $scratch/tree -cf update.tar 'dir 1'
	tar -C $scratch/tree -rf update.tar 'dir 2'
	tar -tf update.tar | sort
}

rsync_in() { rsync -aHAX --numeric-ids $scratch/tree/ rsync; whole rsync; }
# Without a thing to do it says nothing.
rsync_again() { rsync -aHAX --numeric-ids --itemize-changes --checksum $scratch/tree/ rsync; }
rsync_changed() {
	cp -a $scratch/tree $scratch/changed
	rm -r "$scratch/changed/dir 7"
	echo more >>"$scratch/changed/dir 8/sub/file-3"
	chmod 711 "$scratch/changed/dir 9"
	setfattr -n user.short -v other $scratch/changed/large
	ln $scratch/changed/large "$scratch/changed/dir 9/large"
	mv "$scratch/changed/dir 10" $scratch/changed/moved
	rsync -aHAX --numeric-ids --delete --itemize-changes $scratch/changed/ rsync
	diff <(tree_list $scratch/changed) <(tree_list rsync)
	rm -r $scratch/changed
}
rsync_parts() {
	cp --preserve=all -r $scratch/tree/large large
	printf changed | dd of=large bs=1 seek=1000000 conv=notrunc status=none
	rsync -a --inplace --no-whole-file $scratch/tree/large ./
	cmp large $scratch/tree/large
	truncate -s 1M large
	rsync -a --append-verify $scratch/tree/large ./
	cmp large $scratch/tree/large
}
rsync_out() { rsync -aHAX --numeric-ids in/ $scratch/out; whole $scratch/out; rm -r $scratch/out; }
rsync_on() { rsync -aHAX --numeric-ids in/ again; whole again; rm -r again; }

# cpio writes 512 bytes at a time: of the large files none. It keeps whole
# seconds and no attributes.
cpio_in() {
	mkdir cpio
	(cd "$scratch/tree" && find . ! -name large ! -name sparse ! -name 'mode*' -print0 |
		cpio -0 -o -C 65536 -H newc --quiet) >whole.cpio
	(cd cpio && cpio -i -d -m --quiet --no-absolute-filenames <../whole.cpio)
	tree_list cpio
}
cpio_pass() {
	mkdir pass
	(cd in && find . -depth -print0 | cpio -0 -p -d -m -l --quiet ../pass)
	find pass -type f -links +2 | sort | head -n 20
	rm -r pass
}

work() {
	step "cp -a onto the mount" copied_in
	step "cp -a on the mount" copied_on
	step "cp -a from the mount" copied_out
	step "cp --reflink=auto, --sparse=always" eval \
		'cp --sparse=always $scratch/tree/sparse s1; cp --reflink=auto s1 s2; cmp s1 s2; stat -c "%s %b" s1'
	step "tar onto the mount" tar_in
	step "tar --compare" tar_differs
	step "tar from the mount and back" tar_out
	step "tar of a sparse file" tar_sparse
	step "tar appends to an archive" tar_update
	step "rsync -aHAX onto the mount" rsync_in
	step "rsync -aHAX --checksum again does nothing" rsync_again
	step "rsync -aHAX --delete of changes" rsync_changed
	step "rsync of parts of a file" rsync_parts
	step "rsync -aHAX from the mount" rsync_out
	step "rsync -aHAX on the mount" rsync_on
	step "cpio onto the mount" cpio_in
	step "cpio -p with links" cpio_pass
	step "du and find agree" eval 'du -s --apparent-size in | cut -f1; find in -links +1 | wc -l'
}

on_both work
tap_end
