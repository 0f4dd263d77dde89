#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Random operations against a model (tests/fsx): cached, O_DIRECT and mixed, on
# one mount each. And that the tester finds what it is there to find.
#
# OPS (default 3000): how many each. SEED (default 1): another walk, or the
# same again; SEED= for one by the clock.

. "$(dirname "$0")/fuse_sim_lib.sh"

ops=${OPS:-3000}
seed=${SEED-1}

# random MOUNT: of a mode's name; others are mixed.
random() {
	local mode=$1
	[[ " $modes " == *" $1 "* ]] || mode=mixed
	"$fsx" -n "$ops" ${seed:+-s "$seed"} -m "$mode" "$work/$1/f" && nothing_left "$1"
}
nothing_left() { ! ls -A "$work/$1" | grep .; } # no .nfs file either

# finds FAULT SEED: which is the last operation, the check after it tells.
finds() {
	local out
	! out=$("$fsx" -x "$1" -s "$2" -n $((40 + $2)) "$work/cached/$1$2") || return 1
	echo "$out"
	grep -q "^again: fsx -s $2 -n" <<<"$out" || return 1
	case $1 in
	byte) grep -q "difference is at offset $(sed -n 's/^sabotage: offset //p' <<<"$out"):" <<<"$out" ;;
	size) grep -q 'expected size' <<<"$out" ;;
	lost) grep -qE 'expected|difference' <<<"$out" ;;
	esac
}

modes="cached direct mixed"
writes="eager wait"
for m in $modes; do must "mounted" sim_start $m "" ""; done
for m in $writes; do WRITE=$m must "mounted, write=$m" sim_start $m "" ""; done
check "$ops operations each: $modes $writes" on_each "$modes $writes" random
for fault in byte size lost; do
	for s in 1 2 3; do check "finds a fault: $fault" finds $fault $s; done
done
rm -f "$work"/cached/*
check "a second process sees the same" "$fsx" -n $((ops / 4)) -p ${seed:+-s "$seed"} "$work/cached/f"
check "of what is mixed too" "$fsx" -n $((ops / 4)) -p ${seed:+-s "$seed"} -m mixed "$work/mixed/f"
for m in $modes $writes; do check "unmounted, nothing is left" sim_stop $m; done
tap_end
