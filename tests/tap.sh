# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Results in the Test Anything Protocol, and bounded waiting, for all test
# scripts. To be sourced. It works with and without `set -e`.
#
#   check NAME command...         one line of results; the command's output is shown only if it fails
#   check_fails NAME command...   the command must fail
#   check_equal NAME FOUND WANTED
#   must NAME command...          a check without which the rest makes no sense: its failure ends the test
#   no_failure                    ends the test here if a check has failed
#   skip NAME [REASON]            counted, not done
#   diag TEXT...                  a comment
#   tap_end                       the plan, at the end of the script; its status is the test's
#   wait_for SECONDS command...   true as soon as the command succeeds; else says what did not come
#
# Commands for check: same, between, not, on_each, ended. A script may set
# tap_output, the file that holds a command's output, and redefine tap_more and wait_more.

tap_count=0
tap_failed=0
tap_output=${TMPDIR:-/tmp}/tap-output.$$
tap_lines=60 # of a long output its end is shown

# ---- results ----

check() {
	local name=$1 rc=0 start=$SECONDS
	shift
	tap_count=$((tap_count + 1))
	"$@" >"$tap_output" 2>&1 || rc=$?
	if [ $rc -eq 0 ]; then
		echo "ok $tap_count - $name # $((SECONDS - start)) s"
	else
		tap_failed=$((tap_failed + 1))
		echo "not ok $tap_count - $name"
		echo "# status $rc: $*"
		tail -n $tap_lines "$tap_output" | sed 's/^/# /'
		tap_more "$@"
	fi
	return 0
}

# Prints, as comments, more that explains why the command failed.
tap_more() { :; }

check_fails() {
	local name=$1
	shift
	check "$name" not "$@"
}

check_equal() { check "$1" same "$2" "$3"; }

must() {
	local before=$tap_failed
	check "$@"
	[ $tap_failed = "$before" ] || tap_end || exit 1
}

no_failure() { [ $tap_failed = 0 ] || tap_end || exit 1; }

skip() {
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $1 # SKIP ${2:-}"
}

diag() { echo "# $*"; }

tap_end() {
	rm -f "$tap_output"
	echo "1..$tap_count"
	[ $tap_failed -eq 0 ] || echo "# $tap_failed of $tap_count failed"
	[ $tap_failed -eq 0 ]
}

# ---- what is checked ----

# same FOUND WANTED
same() { [ "$1" = "$2" ] || { echo "expected: $2"; echo "found:    $1"; return 1; }; }
# between LOW VALUE HIGH
between() { [ "$1" -le "$2" ] && [ "$2" -le "$3" ] || { echo "$2 is not in $1 ... $3"; return 1; }; }
not() { ! "$@"; }

# on_each "WORDS" command...: command... WORD for all words side by side.
on_each() {
	local word jobs=() job rc=0 words=$1
	shift
	for word in $words; do "$@" "$word" & jobs+=($!); done
	for job in "${jobs[@]}"; do wait "$job" || rc=1; done
	return $rc
}

# ---- bounded waiting ----

wait_for() {
	local seconds=$1 end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || { { echo "not within $seconds s: $*"; wait_more; } >&2; return 1; }
		sleep 0.05
	done
}

# Prints more that explains why nothing came.
wait_more() { :; }

now_ms() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }

# Processes: a zombie has ended, if all of its threads have: what is open is closed by the last.
runs() { grep -qs '^State:.[^ZX]' "/proc/$1/task/"*/status; }
ended() { ! runs "$1"; }
