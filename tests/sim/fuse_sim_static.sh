#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A device without memory windows (memreg=static), and other shapes of the
# same: small segments, small inline size, small rsize and wsize, v4.1.

. "$(dirname "$0")/fuse_sim_lib.sh"

shape() {
	sim_start m "$1" "$2" && work_load m &&
		timeout 100 "$fsx" -n 600 -m mixed "$work/m/fsx" && sim_stop m
}

check "the work-load on a local file system" reference
check "no windows" shape static ""
check "memreg=static" shape "" "memreg=static"
check "no windows, segments of 4096 bytes, inline 1024" shape static "max_seg=65536,inline=1024"
check "windows, inline 16384, wsize 8192, rsize 4096" shape "" "inline=16384,wsize=8192,rsize=4096"
check "v4.1, noac, sync" shape "" "v4.1,noac,sync"
check "lookupcache=none, nordirplus" shape "" "lookupcache=none,nordirplus"
check "memreg=mw is refused where there is none" not sim_start bad static "memreg=mw"
check "and ends with status 1" test "$(sim_ends bad 60 >"$work/bad.end"; echo $?)" = 1
tap_end
