# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The part of contrib/check that needs no virtual machine. To be sourced.

formatted() {
	find "$top/src" "$top/tests" -name '*.[ch]' -print0 |
		xargs -0 -r -n 64 -P "$(nproc)" clang-format --dry-run -Werror --style=file
}

# configure NAME COMPILER [meson options]
configure() {
	local name=$1 compiler=$2 dir=$out/$1 fresh=()
	shift 2
	[ ! -f "$dir/build.ninja" ] || fresh=(--reconfigure)
	CC=$compiler meson setup ${fresh[@]+"${fresh[@]}"} -Dwerror=true "$@" "$dir" "$top" ||
		CC=$compiler meson setup --wipe -Dwerror=true "$@" "$dir" "$top"
}
configure_asan() {
	configure asan clang --buildtype=debugoptimized -Db_lundef=false -Db_sanitize=address,undefined
}
configure_tsan() {
	configure tsan clang --buildtype=debugoptimized -Db_lundef=false -Db_sanitize=thread
}

# built NAME [target...]
built() {
	local name=$1
	shift
	configure_"$name" && ninja -C "$out/$name" "$@"
}

# suite NAME TEST...: one line a test as it ends, then the end of the log of each that failed.
suite() {
	local name=$1 rc=0 log
	shift
	mkdir -p "$logs/$name"
	# Named for the wrapper.
	local record=$out/$name/meson-logs/testlog-run-sanitized.json
	rm -f "$record"
	# More at a time than there are cores: many of them mostly wait.
	# meson splits the wrapper as a shell would.
	LOGS=$logs/$name meson test -C "$out/$name" --no-rebuild \
		--wrapper "$(printf '%q' "$top/tests/run-sanitized")" \
		--num-processes $((2 * $(nproc))) --timeout-multiplier 3 "$@" >"$logs/$name.out" 2>&1 &
	follow $! "$logs/$name.out" || rc=$?
	while read -r log; do
		say "FAILED: $log ends with"
		tail -n 120 "$log" | sed 's/^/    | /'
	done < <("$top/tests/tally.sh" --failed "$logs/$name")
	# meson itself may have failed, with no log to tell.
	if [ $rc -ne 0 ] && [ -z "$("$top/tests/tally.sh" --failed "$logs/$name")" ]; then
		tail -n 20 "$logs/$name.out" | sed 's/^/    | /'
		echo "# exit $rc" >"$logs/$name/meson.log"
	fi
	[ ! -f "$record" ] || catalog meson "$logs/ran" "$record"
	say "$name: $("$top/tests/tally.sh" "$logs/$name" || true)"
}

# meson's own lines for tests, as they come; waits for the process.
follow() {
	local pid=$1 rc=0
	tail -n +1 -f --pid="$pid" "$2" 2>/dev/null | grep --line-buffered -E '^ *[0-9]+/[0-9]+ ' || true
	wait "$pid" || rc=$?
	return $rc
}

# The programs of the tests that meson runs, and nothing else.
asan_built() {
	local targets
	configure_asan
	mapfile -t targets < <(catalog targets "$@")
	# Without a target ninja would build everything.
	[ ${#targets[@]} = 0 ] || ninja -C "$out/asan" "${targets[@]}"
}

asan_tests() {
	local tests
	mapfile -t tests < <(picked unit sim fuse replay bench)
	phase build-asan step build-asan "build with clang, ASan and UBSan: ${#tests[@]} tests" \
		asan_built "${tests[@]}" || return
	say "unit, sim and fuzz-replay tests under ASan and UBSan"
	phase tests suite asan "${tests[@]}"
}

tsan_tests() {
	local tests
	mapfile -t tests < <(picked race)
	step build-tsan "build with clang and TSan" built tsan race_programs || return
	say "programs with threads under TSan"
	suite tsan "${tests[@]}"
}

# Each target for a while, beside its corpus, which the replay tests ran already.
# Always from the same seed: what it finds can be found again.
fuzzed() {
	local rc=0 target targets
	mapfile -t targets < <(picked fuzz)
	mkdir -p "$logs/fuzz"
	say "fuzzing, 20 s a target"
	BUILD=$out/fuzz LOGS=$logs/fuzz "$top/tests/fuzz/fuzz" -j $(($(nproc) * 3 / 2)) -s 1 20 \
		"${targets[@]}" >"$logs/fuzz.out" 2>&1 || rc=$?
	grep -E ' inputs in ' "$logs/fuzz.out" || true
	if [ $rc -ne 0 ]; then
		say "FAILED: the end of its output:"
		tail -n 60 "$logs/fuzz.out" | sed 's/^/    | /'
	fi
	for target in "${targets[@]}"; do
		# It may not even have been built.
		[ -f "$logs/fuzz/$target.log" ] || echo "# exit $rc" >"$logs/fuzz/$target.log"
		if "$top/tests/tally.sh" "$logs/fuzz/$target.log" >/dev/null; then
			ran "$target" passed 20
		else
			ran "$target" failed 20
		fi
	done
	say "fuzz: $("$top/tests/tally.sh" "$logs/fuzz" || true)"
}

# Of packets to src/roce so many that they are a soak; the first two are other ones each time, and
# the log has the seed. A generator's:
a_storm() {
	asan_built storm_roce &&
		PACKETS=100000000 SEED=$RANDOM "$top/tests/run-sanitized" "$out/asan/tests/fuzz/replay/storm_roce"
}

# Those that libFuzzer finds:
many_inputs() {
	local seed=$RANDOM
	echo "# seed $seed"
	BUILD=$out/fuzz "$top/tests/fuzz/fuzz" -s $seed -n 10000000 0 roce
}

# Those of a peer on a wire of the machine's own, of 1000 of which 10 are lost, for tshark; and of
# IPv6, which the peer looks at alone.
a_long_wire() {
	local wire=$out/asan/tests/bench/roce_wire
	asan_built bench_wire_tshark && "$top/tests/bench/wire_tshark" "$wire" 10 10 &&
		"$top/tests/run-sanitized" "$wire" -6 -m 5120 500000 &&
		"$top/tests/run-sanitized" "$wire" -6 -m -l 10 512 50000
}

stormed() {
	local name
	for name in $(picked storm); do
		case $name in
		storm_roce_long) test_step "$name" "a storm of 100,000,000 packets" a_storm ;;
		fuzz_roce_long) test_step "$name" "10,000,000 inputs of fuzz_roce" many_inputs ;;
		wire_roce_long) test_step "$name" "10 GiB of packets on a wire" a_long_wire ;;
		esac || true
	done
}

# Static analysis, of the sources as the sanitizer build compiles them.
analyzed() {
	step deps-analyze "installing clang-tidy" "$top/contrib/deps" analyze || return
	test_step analyze "clang-tidy over src/" "$top/tests/lint/analyze" "$out/asan"
}

# Small defects: whether the tests notice. Another tenth each week: one that survives is
# found on the day it is in the tenth, and again for as long as the week lasts.
mutated() {
	local name start rc
	for name in $(picked mutants); do
		start=$SECONDS rc=0
		say "$name: whether the tests notice small defects"
		mkdir -p "$logs/$name/list"
		case $name in
		mutants_tenth) run_mutants "$name" "$logs/$name" --sample 1/10 --seed "$(date -u +%G%V)" || rc=$? ;;
		mutants_generated) generated "$logs/$name" || rc=$? ;;
		*) run_mutants "$name" "$logs/$name" || rc=$? ;;
		esac
		if [ $rc -ne 0 ]; then
			say "FAILED: $name"
			grep -A6 '^not ok' "$logs/$name.out" | sed 's/^/    | /' || true
			compgen -G "$logs/$name/*.log" >/dev/null || echo "# exit $rc" >"$logs/$name/mutants.log"
		fi
		ran "$name" "$([ $rc = 0 ] && echo passed || echo failed)" $((SECONDS - start))
		say "$name: $("$top/tests/tally.sh" "$logs/$name" || true)"
	done
}

# run_mutants NAME RESULTS [options]
run_mutants() {
	local name=$1 results=$2
	shift 2
	"$top/tests/mutants/run" --work "$out/mutants" --results "$results" "$@" >"$logs/$name.out" 2>&1
}

# Some that a rule made cannot be noticed (tests/mutants/survivors.md): most must be.
generated() {
	local list=$1/list
	"$top/tests/mutants/generate" --seed 1 --count 300 >"$list/generated.mutants" || return
	run_mutants mutants_generated "$list" "$list/generated.mutants" || true
	awk '
		/^ok/ && !/# SKIP/ { noticed++ }
		/^not ok/ { missed++ }
		END {
			all = noticed + missed
			printf "%sok - %d of %d generated mutants are noticed, at least 85 %%\n",
				noticed < 0.85 * all || !all ? "not " : "", noticed, all
			exit noticed < 0.85 * all || !all
		}' "$list/mutants.log" >"$1/generated.log" && echo "# exit 0" >>"$1/generated.log"
}

on_host() {
	host_tests
	[ $vm = no ] || beside_vm
}

# In a shell of its own, which is nice: the machine in QEMU has clocks of its own.
host_tests() (
	[ $vm = no ] || renice -n 10 -p $BASHPID >/dev/null
	if is_picked format; then
		phase lint test_step format "clang-format" formatted || true
	fi
	if is_picked unit sim fuse replay bench; then asan_tests || true; fi
	if is_picked race; then phase tsan tsan_tests || true; fi
	if is_picked fuzz; then phase fuzz fuzzed || true; fi
	if is_picked storm; then phase storm stormed || true; fi
	if is_picked analyze; then phase analyze analyzed || true; fi
	if is_picked mutants; then phase mutants mutated || true; fi
)
