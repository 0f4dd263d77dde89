#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# dpkg-deb builds and unpacks packages, and dpkg installs, upgrades and removes
# them in a root on the mount.
# vm-timeout: 1800
# vm-boot: own

. "$(dirname "$0")/../guest/prog_lib.sh"

in_ram dpkg-deb dpkg dpkg-query dpkg-split tar gzip xz rm diff md5sum
export SOURCE_DATE_EPOCH=1700000000

# package VERSION: a tree of 120 files with what packages have in them.
package() {
	local version=$1
	mkdir -p tree-"$version"/{DEBIAN,etc,usr/{bin,lib/thing/{0..9},share/doc/thing},var/lib/thing}
	cd tree-"$version"
	awk -v version="$version" 'BEGIN {
		for (i = 0; i < 120; i++) {
			f = "usr/lib/thing/" i % 10 "/file-" i
			printf "file %d of %s\n%*s\n", i, version, i * 37 % 5000, "x" >f
			close(f)
		}
	}'
	[ "$version" = 1 ] || rm -r usr/lib/thing/7
	cat /run/random >usr/lib/thing/large
	printf '#!/bin/sh\necho %s\n' "$version" >usr/bin/thing
	chmod 4755 usr/bin/thing
	ln usr/bin/thing usr/bin/thing-hard
	ln -s thing usr/bin/thing-soft
	ln -s ../../../lib/thing usr/share/doc/thing/lib
	echo "version $version" >etc/thing.conf
	chmod 2775 var/lib/thing
	chown 100:200 var/lib/thing
	printf 'Package: thing\nVersion: %s\nArchitecture: all\nMaintainer: A U Thor <a@example.org>\nDescription: a thing\n' \
		"$version" >DEBIAN/control
	echo /etc/thing.conf >DEBIAN/conffiles
	printf '#!/bin/sh\necho "postinst $*"\n' >DEBIAN/postinst
	chmod 755 DEBIAN/postinst
	find . -exec touch -h -d @1700000000 {} +
}
head -c 1000000 /dev/urandom >/run/random

build() {
	package "$1"
	cd ..
	dpkg-deb --build --uniform-compression -Z"$2" tree-"$1" thing_"$1".deb
	sha256sum thing_"$1".deb
	dpkg-deb --info thing_"$1".deb
	dpkg-deb --contents thing_"$1".deb
}

# Of folders dpkg gives back some times before it has filled them.
file_times() { find "$1" -path '*/dpkg/*' -prune -o ! -type d -printf '%p %T@\n' | sort; }

unpack() {
	dpkg-deb --raw-extract thing_"$1".deb raw-"$1"
	diff <(tree_list tree-"$1") <(tree_list raw-"$1")
	dpkg-deb --extract thing_"$1".deb only-"$1"
	tree_list only-"$1"
	file_times only-"$1"
}

# A root of its own, with dpkg's records in it: they are renamed, synced, linked.
in_root() {
	dpkg --root="$PWD/root" --force-script-chrootless --force-not-root --log=/dev/null "$@"
}
new_root() {
	# What all packages share is not removed.
	mkdir -p root/usr/keep root/var/lib/dpkg/{updates,info,triggers,alternatives,parts} root/etc
	: >root/var/lib/dpkg/status
	: >root/var/lib/dpkg/available
}
installed() {
	in_root "$@"
	dpkg-query --root="$PWD/root" -W || true
	in_root --verify thing || true
	[ ! -d root/usr ] || tree_list root/usr
	file_times root
	[ ! -d root/etc ] || tree_list root/etc
	cat root/var/lib/dpkg/info/thing.list || true
	find root -name '*.dpkg-*' | sort
}
conffile() {
	echo mine >>root/etc/thing.conf
	touch -d @1800000000 root/etc/thing.conf
	installed --force-confold -i thing_1.deb
}

work() {
	step "dpkg-deb --build with gzip" build 1 gzip
	step "dpkg-deb --build with xz" build 2 xz
	step "dpkg-deb --raw-extract and --extract" unpack 1
	step "a root for dpkg" new_root
	step "dpkg --install" installed -i thing_1.deb
	step "dpkg --install of the next version" installed -i thing_2.deb
	step "dpkg --install of the former, a file of etc was changed" conffile
	step "dpkg --remove" installed --remove thing
	step "dpkg --purge" installed --purge thing
	step "dpkg --audit" in_root --audit
}

on_both work
tap_end
