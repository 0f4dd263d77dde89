# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What the two parts of the bench share: the table of work-loads, the account
# of a daemon, and the results, which docs/performance.md describes. To be
# sourced.

bench_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
columns="work client turn ops bytes seconds requests cpu_ns server_ns switches copied copied_large"

die() { echo "bench: $*" >&2; exit 2; }

# works PART NAME...: the lines of the table, of all if no name is given. A name may be a part of
# one.
works() {
	local part=$1 name o
	shift
	grep "^$part	" "$bench_dir/works" | while IFS= read -r line; do
		IFS=$'\t' read -r _ name _ <<<"$line"
		[ $# -gt 0 ] || { printf '%s\n' "$line"; continue; }
		for o in "$@"; do
			[[ $name != *"$o"* ]] || { printf '%s\n' "$line"; break; }
		done
	done
}

# results_begin FILE PART KEY=VALUE...
results_begin() {
	local file=$1 kv
	{
		printf '# bench\t1\n# part\t%s\n' "$2"
		shift 2
		for kv in "$@"; do printf '# %s\t%s\n' "${kv%%=*}" "${kv#*=}"; done
		printf '%s\n' "${columns// /$'\t'}"
	} >"$file"
}

# result FILE VALUE...: in the order of the columns; - for what does not apply.
result() {
	local file=$1 IFS=$'\t'
	shift
	printf '%s\n' "$*" >>"$file"
}

# Nanoseconds that the threads of a process ran, and their voluntary context switches. Of threads
# that ended nothing is known; the daemons' do not end. Kernels without SCHEDSTATS tell 0 unless
# kernel.task_delayacct is 1; then it is hundredths of a second.
cpu_ns() {
	local ns
	ns=$(cat "/proc/$1"/task/*/schedstat | awk '{ n += $1 } END { printf "%.0f\n", n }')
	[ "$ns" != 0 ] || ns=$(ticks_ns "$1")
	echo "$ns"
}
ticks_ns() { awk '{ sub(/.*\) /, ""); printf "%.0f\n", ($12 + $13) * 10000000 }' "/proc/$1/stat"; }
switches() {
	cat "/proc/$1"/task/*/status |
		awk '$1 == "voluntary_ctxt_switches:" { n += $2 } END { print n + 0 }'
}
hwm_kib() { awk '$1 == "VmHWM:" { print $2 }' "/proc/$1/status"; }
