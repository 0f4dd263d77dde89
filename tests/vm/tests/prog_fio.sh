#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# fio with verify: random places and sizes, through the page cache, past it, and
# mapped; several jobs on one file; and all of it read again without a cache.
# vm-timeout: 1800

. "$(dirname "$0")/../guest/prog_lib.sh"

in_ram fio awk
mib=${MIB:-4} # 16 at the most: both mounts' files fit into the export

# job NAME [fio options]: what it writes it verifies, as fio goes (in part) and
# at its end. Tells each job's error and the sums of bytes.
job() {
	local name=$1 rc=0
	shift
	fio --name="$name" --size=${mib}m --randseed=4711 --allrandrepeat=1 --verify=crc32c \
		--verify_fatal=1 --verify_dump=0 --do_verify=1 --output-format=terse --terse-version=3 \
		--output="/run/fio.$client.$name" --fallocate=none "$@" || rc=$?
	awk -F ';' 'NF > 100 { print $3, "error " $5, "written KiB " $47 }' "/run/fio.$client.$name"
	return $rc
}

# What `job` wrote with the same arguments, later.
verify() {
	job "$@" --verify_only=1
}

mixed="--rw=randwrite --bsrange=512-192k --bs_unaligned=1"
aligned="--rw=randwrite --bssplit=512/10:4k/30:12k/20:64k/20:256k/20"
paged="--rw=randwrite --bsrange=4k-64k"

# shellcheck disable=SC2086  # words
work() {
	step "buffered, any size, fsync at times, 3 jobs" job buffered $mixed --numjobs=3 --fsync=16
	step "buffered, reads between the writes" job backlog $mixed --verify_backlog=32
	step "buffered, 2 jobs, aligned" job cached $aligned --numjobs=2
	step "and read again without a cache" eval "echo 3 >/proc/sys/vm/drop_caches; verify cached $aligned --numjobs=2"
	step "O_DIRECT, sizes of 512 and more" job direct $aligned --direct=1 --ioengine=psync
	step "O_DIRECT, any size" job odd $mixed --direct=1 --ioengine=psync
	step "O_DIRECT, 16 at a time" job libaio $aligned --direct=1 --ioengine=libaio --iodepth=16
	step "written past the cache, read through it" verify libaio $aligned --direct=0 --ioengine=psync
	step "io_uring, buffered" job uring $aligned --ioengine=io_uring --iodepth=8
	step "mapped" job mapped $paged --ioengine=mmap --fsync=64
	step "mapped, then read past the cache" verify mapped $paged --ioengine=psync --direct=1
	step "vectors, O_SYNC" job vectors --rw=write --bsrange=512-64k --bs_unaligned=1 --ioengine=pvsync2 --sync=1 --size=1m
	step "fdatasync, preallocated" job prealloc $aligned --fallocate=native --fdatasync=8
	step "4 jobs in parts of one file" job parts $aligned --numjobs=4 --filename=parts --offset_increment=${mib}m --filesize=$((4 * mib))m --thread
	step "reads and writes, 2 jobs" job readwrite --rw=randrw --rwmixread=40 --bsrange=1k-96k --numjobs=2
	step "splice" job splice --rw=write --bs=64k --ioengine=splice --verify=0 --size=2m
	step "append" job append --rw=write --bsrange=100-9000 --bs_unaligned=1 --size=1m --file_append=0
	step "names and sizes" eval 'stat -c "%n %s" * | grep -v verify.state | sort'
}

# What fio writes has the time in it.
COMPARE_TREES=no on_both work
tap_end
