#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The bench of contrib/bench works: each work-load once, of next to nothing, by
# each of its clients. How fast they are is not looked at.
# vm-timeout: 3600
# tier: soak

top=$(cd "$(dirname "$0")/../../.." && pwd)
. "$top/tests/vm/guest/guest.sh"
. "$top/tests/bench/lib.sh"

measured() {
	"$top/tests/bench/vm" --turns 1 --mib 4 --small 32 --names 16 --files 30 >"$RESULTS/bench.log" 2>&1 ||
		{ tail -n 30 "$RESULTS/bench.log"; return 1; }
}

# all: 3 clients; +libnfs and +ceiling: one more; +lanes: two
rows() { awk -F '\t' '/^#/ || $1 == "work" { next } { n[$1]++ } END { for (w in n) print w, n[w] }' "$RESULTS/vm.tsv" | sort; }
wanted() {
	works vm | awk -F '\t' '{ print $2, 3 + ($5 ~ /libnfs/) + ($5 ~ /ceiling/) + 2 * ($5 ~ /lanes/) }' | sort
}

complete() { diff <(wanted) <(rows); }
uncopied() {
	"$top/tests/bench/report" below "$RESULTS/vm.tsv" >"$RESULTS/below" || true
	! grep 'bytes copied' "$RESULTS/below"
}

check "all work-loads, by all clients" measured
check "each of them has its results" complete
check "the tables are made" "$top/tests/bench/report" tables "$RESULTS/vm.tsv"
check "of 16 KiB and more nothing was copied" uncopied
tap_end
