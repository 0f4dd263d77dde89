#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Count tests over all suites.
#
#   tests/tally.sh [--failed] DIR-OR-LOG...
#
# Reads the logs (*.log in the folders given) of test programs, one program a
# file: Criterion's closing line, or TAP lines, or neither, in which case the
# program is one test. The last line `# exit N` tells how it ended: a log
# without one was cut off, which is a failure; 77 means skipped.
#
# Prints `N passed, N failed` (`, N skipped` if any) and returns non-zero if
# anything failed. --failed lists the logs with failures instead.

set -euo pipefail

logs() {
	local p
	for p in "$@"; do
		if [ -d "$p" ]; then
			find "$p" -maxdepth 1 -name '*.log' | sort
		else
			echo "$p"
		fi
	done
}

# passed failed skipped file, one line a log: the file's path may have spaces
count() {
	logs "$@" | while IFS= read -r log; do
		# Colours, where a program insists on them, hide the numbers.
		sed 's/\x1b\[[0-9;]*m//g; s/\r$//' "$log" | awk -v log_name="$log" '
			/Synthesis: Tested:/ {
				# Crashing ones are among the failing ones.
				for (i = 1; i < NF; i++) {
					if ($i == "Passing:") pass += $(i + 1)
					if ($i == "Failing:") fail += $(i + 1)
				}
				counted = 1
			}
			/^(ok|not ok)( [0-9]+)?( |$)/ {
				if ($0 ~ /# (SKIP|skip)/) skip++
				else if ($1 == "ok") pass++
				else fail++
				counted = 1
			}
			/^# exit [0-9]+$/ { status = $3; ended = 1 }
			END {
				if (!ended) status = "cut off"
				if (!counted && status == 77) skip++
				else if (!counted && status == "0") pass++
				else if (status != "0" && !fail) fail++
				print pass + 0, fail + 0, skip + 0, log_name
			}'
	done
}

if [ "${1:-}" = --failed ]; then
	shift
	count "$@" | awk '$2 > 0 { sub(/^[0-9]+ [0-9]+ [0-9]+ /, ""); print }'
	exit
fi

count "$@" | awk '
	{ pass += $1; fail += $2; skip += $3 }
	END {
		printf "%d passed, %d failed", pass, fail
		if (skip) printf ", %d skipped", skip
		printf "\n"
		exit fail > 0
	}'
