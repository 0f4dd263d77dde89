#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A device without memory windows (memreg=static), and other shapes of the
# same: small segments, small inline size, small rsize and wsize, v4.1.

. "$(dirname "$0")/fuse_sim_lib.sh"

shape() {
	sim_start m "$1" "$2" && work_load m &&
		timeout 500 "$fsx" -n 600 -m mixed "$work/m/fsx" && sim_stop m
}

# A counter as SIGUSR1 told it last; 0 is not told.
counter() { grep -oE "\b$1=[0-9]+" "$work/m.log" | tail -1 | grep -oE '[0-9]+$' || echo 0; }

# Pieces of 128 KiB, which the server gets several at once, from several buffers.
batched() {
	sim_start m "$1" "$2" || return 1
	dd if=/dev/urandom of="$work/pieces" bs=128k count=40 status=none
	dd if="$work/pieces" of="$work/m/pieces" bs=128k conv=fsync status=none || return 1
	cmp "$work/pieces" "$work/m/pieces" || return 1
	kill -USR1 "${pid[m]}"
	wait_for 60 grep -q writes_coupled= "$work/m.log" || return 1
	echo "$(counter writes_coupled) coupled, $(counter copied_bytes_large) bytes copied"
	[ "$(counter writes_coupled)" -ge 20 ] && [ "$(counter copied_bytes_large)" = 0 ] && sim_stop m
}

check "the work-load on a local file system" reference
check "no windows" shape static ""
check "memreg=static" shape "" "memreg=static"
check "no windows, segments of 4096 bytes, inline 1024" shape static "max_seg=65536,inline=1024"
check "windows, inline 16384, wsize 8192, rsize 4096" shape "" "inline=16384,wsize=8192,rsize=4096"
check "v4.1, noac, sync" shape "" "v4.1,noac,sync"
check "lookupcache=none, nordirplus" shape "" "lookupcache=none,nordirplus"
check "pieces are joined, with windows" batched "" ""
check "pieces are joined, memreg=static, segments of 65536 bytes" batched "" "memreg=static,max_seg=65536"
check "pieces are joined, inline 1024" batched "" "inline=1024"
check "memreg=mw is refused where there is none" not sim_start bad static "memreg=mw"
check "and ends with status 1" test "$(sim_ends bad 60 >"$work/bad.end"; echo $?)" = 1
tap_end
