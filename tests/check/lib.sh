# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The parts of contrib/check: lines with the time, steps, phases with their budget, and
# tracks that run side by side. To be sourced; top, out, logs and tier are contrib/check's.

say() { printf '[%4d s] %s\n' $SECONDS "$*"; }

catalog() { "$top/tests/check/catalog" --build "$out" "$@"; }

# ran NAME passed|failed|skipped SECONDS
ran() { printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$logs/ran"; }

# picked KIND...: the names of the tests of these kinds that are to run.
picked() {
	local kind
	for kind in "$@"; do
		awk -v k="$kind" '$1 == k { print $2 }' "$logs/picked"
	done
}
is_picked() { [ -n "$(picked "$@")" ]; }

# A step that is no test program counts as one test: step NAME WHAT command...
step() {
	local name=$1 what=$2 rc=0 start=$SECONDS
	shift 2
	say "$what"
	mkdir -p "$logs/steps"
	"$@" >"$logs/steps/$name.out" 2>&1 || rc=$?
	{
		if [ $rc = 0 ]; then echo "ok - $what"; else echo "not ok - $what"; fi
		echo "# exit $rc"
	} >"$logs/steps/$name.log"
	[ $rc -ne 0 ] || return 0
	say "FAILED: $what; the end of $logs/steps/$name.out:"
	# Without what meson and ninja say on the way.
	{ grep -v -E '^\[[0-9]+/[0-9]+\] |^Compiler for C|^Dependency ' "$logs/steps/$name.out" || true; } |
		tail -n 60 | sed 's/^/    | /'
	return $rc
}

# The same for a test that --list names: test_step NAME WHAT command...
test_step() {
	local name=$1 start=$SECONDS verdict=passed
	step "$@" || verdict=failed
	ran "$name" $verdict $((SECONDS - start))
	[ $verdict = passed ]
}

# ---- phases ----

# phase NAME command...: notes how long it took; its status does not matter, what failed
# has left a log.
phase() {
	local name=$1 start=$SECONDS rc=0
	shift
	"$@" || rc=$?
	printf '%s %s %s\n' "${track:-all}" "$name" $((SECONDS - start)) >>"$logs/phases"
	return $rc
}

# ---- tracks ----

tracks=() meter=

# start TRACK command...: in a process group of its own, so that it can be ended whole.
start() {
	set -m
	(
		set +m
		trap - INT TERM HUP
		track=$1
		shift
		"$@"
	) </dev/null &
	tracks+=($!)
	set +m
}

# The same for what only measures them: stop_meter ends it.
start_meter() {
	start meter measure_meanwhile
	meter=${tracks[-1]}
	unset 'tracks[-1]'
}
stop_meter() {
	kill -TERM -- "-$meter" 2>/dev/null || true
	wait "$meter" 2>/dev/null || true
	meter=
}

# A track that dies is a failure, whatever it has counted until then.
ended_all() {
	local pid rc
	for pid in "${tracks[@]}"; do
		rc=0
		wait "$pid" || rc=$?
		[ $rc = 0 ] || { mkdir -p "$logs/steps"; echo "# exit $rc" >"$logs/steps/track-$pid.log"; }
	done
	tracks=()
}

cancelled() {
	local pid
	trap '' INT TERM HUP
	say "cancelled"
	for pid in ${tracks[@]+"${tracks[@]}"} ${meter:-}; do kill -TERM -- "-$pid" 2>/dev/null || true; done
	for pid in ${tracks[@]+"${tracks[@]}"}; do wait "$pid" 2>/dev/null || true; done
	exit 130
}

# ---- the budget ----

# A program that stays the same, whatever becomes of this project.
yardstick_program() {
	awk 'BEGIN {
		print "struct s { unsigned a[16]; struct s *n; };"
		for (i = 0; i < 60; i++) {
			printf "unsigned f%d(struct s *p, unsigned x)\n{\nfor (struct s *q = p; q; q = q->n)\n", i
			printf "for (unsigned i = 0; i < 16; i++)\nif (q->a[i] %% %du == x) x ^= q->a[(i * %du) & 15] << %d;\n", i + 3, i + 5, i % 13
			print "else switch (x & 7) {"
			for (c = 0; c < 8; c++)
				printf "case %d: x = x * %du + q->a[%d]; break;\n", c, c * 31 + i, (c + i) % 16
			print "}\nreturn x;\n}"
		}
	}'
}

# Seconds that it takes to compile it, and how many of them a processor worked: how fast this
# machine is now. Compiling is most of what a check does.
yardstick() {
	local TIMEFORMAT='%R %U %S' program=$logs/yardstick.$BASHPID.c
	yardstick_program >"$program"
	{ time cc -O2 -c -o /dev/null "$program"; } 2>&1 |
		awk '{ printf "%.2f %.2f\n", $1, $2 + $3 }'
	rm -f "$program"
}
# Seconds of each processor that a hypervisor has given to others, since the boot.
stolen() { awk -v hz="$(getconf CLK_TCK)" -v cpus="$(nproc)" '$1 == "cpu" { printf "%.1f\n", $9 / hz / cpus }' /proc/stat; }
measure_machine() {
	yardstick >"$logs/yardstick-$1"
	stolen >"$logs/stolen-$1"
}
# While the tracks run: what the work costs a processor then. It is more where two processors
# are one, or others slow both.
measure_meanwhile() {
	while sleep 30; do yardstick >>"$logs/yardstick-meanwhile"; done
}

# The check fails if a track's phases take longer than their budgets' sum. A machine that
# is slower than the one of the budget has more time in proportion, a faster one no less;
# time that others had of its processors does not count.
within_budget() {
	[ ${#names[@]} = 0 ] && [ -z "$failed" ] && [ $vm = yes ] && [ $host = yes ] || return 0
	catalog budget "$tier" >"$logs/budget"
	[ -s "$logs/budget" ] || return 0
	{
		cut -d ' ' -f 1 "$logs/yardstick-before" "$logs/yardstick-after"
		[ ! -s "$logs/yardstick-meanwhile" ] ||
			awk '{ sum += $2 } END { print sum / NR }' "$logs/yardstick-meanwhile"
	} >"$logs/yardstick"
	awk -v total="$SECONDS" -v before="$(cat "$logs/stolen-before")" \
		-v after="$(cat "$logs/stolen-after")" '
		FILENAME ~ /yardstick$/ { if ($1 > slow) slow = $1; next }
		FILENAME ~ /budget$/ {
			if ($1 == "yardstick") reference = $2
			else { budget[$1 " " $2] = $3; sum[$1] += $3 }
			next
		}
		{ took[$1 " " $2] += $3; if (!(($1 " " $2) in order)) { order[$1 " " $2] = ++n; key[n] = $1 " " $2 } }
		END {
			scale = slow > reference ? slow / reference : 1
			for (i = 1; i <= n; i++) {
				split(key[i], w, " ")
				line[w[1]] = line[w[1]] sprintf("  %s %d/%d", w[2], took[key[i]], budget[key[i]])
			}
			for (t in line) print "seconds/budget, " t ":" line[t]
			longest = 0
			for (t in sum) if (t != "all" && sum[t] > longest) longest = sum[t]
			limit = (sum["all"] + longest) * scale + after - before
			printf "%d s of %d", total, limit
			if (scale > 1) printf " (the machine is %.2f times slower than that of tests/budget)", scale
			if (after - before >= 1) printf " (%d s of it given to others)", after - before
			print ""
			if (total > limit) { print "FAILED: longer than the sum of its budgets"; exit 1 }
		}' "$logs/yardstick" "$logs/budget" "$logs/phases" && return
	mkdir -p "$logs/steps"
	printf 'not ok - within the budget\n# exit 1\n' >"$logs/steps/budget.log"
	return 1
}

# One line that names what the tier did not run.
left_out() {
	local text=
	[ ${#names[@]} = 0 ] && [ -z "$failed" ] || return 0
	[ $vm = yes ] || text+=" all that runs in the virtual machine;"
	[ $host = yes ] || text+=" all that runs outside the virtual machine;"
	text+=$(catalog list | awk -v tier="$tier" '
		NR > 1 && (tier == "quick" && $3 != "quick" || tier == "all" && $3 == "soak" ||
			tier == "soak" && $3 != "soak") { n[$3]++; names[$3] = names[$3] " " $1 }
		END {
			if (n["quick"]) printf " %d of the quick check;", n["quick"]
			if (n["all"]) printf " %d of --all%s;", n["all"], tier == "soak" ? "" : ":" names["all"]
			if (n["soak"]) printf " %d of --soak:%s;", n["soak"], names["soak"]
		}')
	say "left out:${text%;}"
}
