#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# stress-ng's stressors of file systems, with --verify, one after the other: each
# ends in the same way on both mounts. By two processes each, few operations, and
# STRESS_SECONDS (4) at most, as its own sizes are made for local disks.
# vm-timeout: 2400
# tier: soak
# vm-boot: own

. "$(dirname "$0")/../guest/prog_lib.sh"

in_ram stress-ng
limit=${STRESS_SECONDS:-4}

# A stressor, its operations, what it needs to be of a bearable size.
stressors() {
	cat <<-END
		access 10
		aio 200
		aiol 200
		chattr 2
		chdir 4 --chdir-dirs 64
		chmod 20
		chown 20
		copy-file 6
		dentry 200 --dentries 50
		dir 40 --dir-dirs 64
		dirdeep 40 --dirdeep-dirs 2 --dirdeep-inodes 100 --dirdeep-files 1
		dirmany 200
		dnotify 10
		fallocate 6 --fallocate-bytes 4m
		fcntl 100
		fiemap 5 --fiemap-bytes 2m
		file-ioctl 40
		filename 60
		flock 100
		fpunch 2
		fsize 4
		fstat 20
		handle 200
		hdd 60 --hdd-bytes 2m --hdd-opts wr-rnd,rd-rnd,fsync
		hdd 60 --hdd-bytes 2m --hdd-opts wr-seq,rd-seq,direct
		hdd 60 --hdd-bytes 2m --hdd-opts wr-rnd,rd-seq,dsync,utimes
		inode-flags 20
		inotify 2
		io 10
		io-uring 60
		iomix 40 --iomix-bytes 2m
		ioprio 2
		lease 100
		link 1
		locka 200
		lockf 200
		lockofd 200
		mknod 20
		mmap 4 --mmap-bytes 1m --mmap-file
		msync 20 --msync-bytes 1m
		open 200
		readahead 100 --readahead-bytes 2m
		rename 200
		revio 60 --revio-bytes 2m
		seek 200 --seek-size 2m
		sendfile 10 --sendfile-size 1m
		splice 20 --splice-bytes 256k
		symlink 1
		sync-file 2 --sync-file-bytes 1m
		touch 200
		utime 200
		verity 10
		xattr 2
	END
}

# 3 and 4: it found that it cannot work here, or not all of it.
stress() {
	local name=$1 ops=$2 rc=0
	shift 2
	stress-ng --temp-path . --seed 1 --"$name" 2 --"$name"-ops "$ops" \
		--verify --timeout ${limit}s "$@" || rc=$?
	[ $rc -eq 0 ] || echo "$name: status $rc"
	[ -z "$(find . -mindepth 1 | head -n 3)" ] || echo "files are left"
}

work() {
	local line
	while read -r line; do
		# shellcheck disable=SC2086  # words
		step "${line/ / x }" stress $line
	done < <(stressors)
}

on_both work
tap_end
