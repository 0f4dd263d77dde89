# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The boot image: what a guest has in memory before it sees this machine's root.
# Sourced by `vm`, which sets kdir and kver and removes scratch.

# What the initramfs loads before it can see the 9p shares.
boot_modules="virtio_pci 9pnet_virtio 9p overlay virtio_rng virtio_console"

# Opening a file over 9p costs milliseconds under emulation, so what every test
# runs travels in the boot image. A program missing here still works.
hot_programs="bash sh cat cp mv rm ls ln mkdir mknod rmdir mktemp chmod chown
	stat touch head tail wc cut tr sort uniq seq sleep sync dd od env id date
	basename dirname readlink realpath tee true false timeout test sha256sum
	md5sum cksum cmp diff find xargs grep sed awk mawk tar ps pgrep kill
	mount umount mountpoint findmnt mount.nfs umount.nfs modprobe insmod
	kmod ip rdma sysctl exportfs rpcbind rpc.mountd rpc.nfsd nfsdcld
	mkfs.ext4 mke2fs fusermount3 su setpriv getent truncate hostname dmesg
	flock setsid stdbuf python3 perl"
hot_libraries="libibverbs.so.1 librdmacm.so.1 libfuse3.so.3 libnfs.so.13
	libcriterion.so.3 libgit2.so.1.5 libffi.so.8 libnanomsg.so.5 libasan.so.8
	libubsan.so.1 libnss_files.so.2 libgcc_s.so.1 libm.so.6 libpthread.so.0
	libdl.so.2 librt.so.1"
hot_files="/etc/ld.so.cache /etc/passwd /etc/group /etc/nsswitch.conf
	/etc/netconfig /etc/protocols /etc/services /etc/mke2fs.conf
	/etc/libibverbs.d/rxe.driver"
# Loaded by guest.sh; read at boot time from RAM rather than from 9p.
hot_modules="dummy brd ext4 fuse rdma_rxe ib_uverbs rdma_ucm rpcrdma nfsd nfsv4
	virtio_net virtio_blk sch_netem"

hot_list() {
	local p f
	for p in $hot_programs; do
		f=$(PATH=/usr/sbin:/usr/bin command -v -p "$p" 2>/dev/null ||
			PATH=/usr/sbin:/usr/bin type -P "$p" || true)
		[ ! -f "$f" ] || echo "$f"
	done
	for p in $hot_libraries; do
		for f in /usr/lib/*-linux-gnu/"$p" /usr/lib/*-linux-gnu/libibverbs/librxe-*.so; do
			[ ! -f "$f" ] || echo "$f"
		done
	done
}

# Everything the hot programs load, as the loader would find it.
hot_closure() {
	local list
	list=$(hot_list | sort -u)
	echo "$list"
	# shellcheck disable=SC2086  # a list of paths without spaces
	ldd $list 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }
		$1 ~ /^\// && $2 ~ /^\(/ { print $1 }'
}

# Copy one path under its real folder (/bin is a link to /usr/bin), following
# links step by step so that sonames and alternatives stay links.
hot_copy() {
	local f=$1 stage=$2 dir target
	while :; do
		dir=$(realpath "$(dirname "$f")")
		mkdir -p "$stage$dir"
		f=$dir/$(basename "$f")
		[ ! -e "$stage$f" ] && [ ! -L "$stage$f" ] || return 0
		cp -a "$f" "$stage$f"
		[ -L "$f" ] || return 0
		target=$(readlink "$f")
		case $target in
		/*) f=$target ;;
		*) f=$dir/$target ;;
		esac
		[ -e "$f" ] || return 0
	done
}

image_key() {
	{
		cat "$here/image.sh" "$here/init"
		echo "$kver"
		hot_closure | sort -u | xargs -r stat -L -c '%n %s %Y'
	} | sha256sum | cut -c1-16
}

build_image() {
	local image=$1 stage f
	say "building the boot image (once)"
	stage=$(mktemp -d "$cache/stage.XXXXXX")
	scratch=$stage
	mkdir -p "$stage"/{bin,proc,sys,dev,mods,lower,upper,new,hot}
	cp "$(type -P busybox)" "$stage/bin/busybox"
	install -m 755 "$here/init" "$stage/init"
	local n=100
	# shellcheck disable=SC2086
	while IFS= read -r f; do
		cp "$f" "$stage/mods/$n-$(basename "$f")"
		n=$((n + 1))
	done < <(module_paths $boot_modules)
	for f in $(hot_closure | sort -u) $hot_files; do
		[ ! -e "$f" ] || hot_copy "$f" "$stage/hot"
	done
	# shellcheck disable=SC2086
	while IFS= read -r f; do
		f=${f#"$kdir/lib/modules/"}
		mkdir -p "$stage/hot-modules/$(dirname "$f")"
		cp "$kdir/lib/modules/$f" "$stage/hot-modules/$f"
	done < <(module_paths $hot_modules)
	(cd "$stage" && find . -print0 | cpio --null -o -H newc --quiet) >"$stage.cpio"
	rm -rf "$stage"
	rm -f "$kdir"/image-*.cpio
	mv "$stage.cpio" "$image"
}
