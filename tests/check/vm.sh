# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The part of contrib/check that runs in the virtual machine, and the builds that it
# wants. To be sourced.

# The programs of the tests that meson runs are not built here.
configure_release() { configure release gcc --buildtype=release -Dtests=enabled; }

# noted TEST|boot|... from the file that run-tests and run-pair leave.
noted() { [ ! -f "$1/times" ] || cat "$1/times" >>"$logs/ran"; }

# A program that runs tests has to leave a verdict: judged NAME command...
judged() {
	local name=$1 rc=0
	shift
	mkdir -p "$logs/$name"
	"$@" --results "$logs/$name" || rc=$?
	compgen -G "$logs/$name/*.log" >/dev/null || echo "# exit $((rc ? rc : 1))" >"$logs/$name/none.log"
	return $rc
}

# And those tests have run as `--list` means them: on the chosen kernel, with a device.
rig() {
	local rc=0
	judged "$@" || rc=$?
	noted "$logs/$1"
	return $rc
}

# vm_list own|shared: tests that boot a machine of their own, or do not; the longest first,
# as far as their limits tell.
vm_list() {
	local name script own
	for name in $(picked vm); do
		script=$top/tests/vm/tests/$name.sh own=shared
		if [ -f "$script" ] && grep -q '^# vm-boot: own$' "$script"; then own=own; fi
		[ $own != "$1" ] ||
			echo "$(sed -n 's/^# vm-timeout: *//p' "$script" 2>/dev/null | head -n 1)" "$name"
	done | sort -rn -s -k 1,1 | awk '{ print $NF }'
}

# The next of those that no track has taken.
vm_take() {
	local name
	for name in $(vm_list own); do
		if mkdir "$logs/.taken/$name" 2>/dev/null; then
			echo "$name"
			return
		fi
	done
	return 1
}

# Those that share a machine.
vm_shared() {
	local tests
	mkdir -p "$logs/.taken"
	mapfile -t tests < <(vm_list shared)
	[ ${#tests[@]} -gt 0 ] || return 0
	say "tests in the VM"
	rig vm "$top/tests/vm/run-tests" --build "$out/release" --kernel "$kernel" "${tests[@]}"
}

# One after the other, until both tracks have done all.
vm_own() {
	local name rc=0
	mkdir -p "$logs/.taken"
	while name=$(vm_take); do
		say "$name in the VM"
		rig "vm-$name" "$top/tests/vm/run-tests" --build "$out/release" \
			--kernel "$kernel" "$name" || rc=1
	done
	return $rc
}

vm_tests() {
	local rc=0
	vm_shared || rc=1
	vm_own || rc=1
	return $rc
}

pair_tests() {
	local tests
	mapfile -t tests < <(picked pair)
	say "tests with two machines"
	rig pair "$top/tests/vm/pair/run-pair" --build "$out/release" --kernel "$kernel" "${tests[@]}"
}

# On another kernel: a core of the tests.
kernel_tests() {
	local name start rc
	for name in $(picked kernel); do
		start=$SECONDS rc=0
		say "the core of the tests on Linux ${name#kernel_}"
		judged "$name" "$top/tests/vm/run-tests" --build "$out/release" \
			--kernel "${name#kernel_}" --core || rc=1
		ran "$name" "$([ $rc = 0 ] && echo passed || echo failed)" $((SECONDS - start))
	done
}

# Once more, where ours has no device: over either protocol, in packets of either size.
soft_test() {
	local tests=("$top/tests/vm/run-tests")
	case $1 in
	soft_ip4) tests=(env VM_ENV="FABRIC=soft SOFT_IP=4 SOFT_MTU=1500" "${tests[@]}" --tier all) ;;
	soft_ip6) tests=(env VM_ENV="FABRIC=soft SOFT_IP=6 SOFT_MTU=9000" "${tests[@]}" --tier all) ;;
	soft_soak) tests=(env VM_ENV="FABRIC=soft" "${tests[@]}" --tier soak) ;;
	soft_pair) tests=(env FABRIC=soft "$top/tests/vm/pair/run-pair") ;;
	esac
	judged "$1" "${tests[@]}" --build "$out/release" --kernel "$kernel"
}

soft_tests() {
	local name start verdict
	for name in $(picked soft); do
		start=$SECONDS verdict=passed
		say "$name: the tests in the VM without a device"
		soft_test "$name" || verdict=failed
		ran "$name" $verdict $((SECONDS - start))
	done
}

reboot_test() {
	local start=$SECONDS rc=0
	say "a machine that is booted again"
	rig reboot "$top/tests/vm/reboot/run-reboot" --build "$out/release" \
		--package "$out/package" --kernel "$kernel" || rc=1
	ran reboot "$([ $rc = 0 ] && echo passed || echo failed)" $((SECONDS - start))
}

# t_package and the reboot install it.
packaged() {
	local name
	for name in $(picked package); do
		if [ "$name" = package_twice ]; then
			test_step package_twice "Debian package, twice, and lintian" \
				"$top/contrib/package" --check "$out/package"
		elif ! picked package | grep -qx package_twice; then
			test_step package "Debian package" "$top/contrib/package" "$out/package"
		fi
	done
	if [ -n "$(picked soft; picked vm reboot | grep -xE 't_package|reboot')" ] &&
		! is_picked package; then
		step package "Debian package" "$top/contrib/package" "$out/package"
	fi
}

vm_needs() {
	local sets="package vm"
	[ -z "$(picked soft; picked vm | grep -E '^prog_')" ] || sets+=" programs"
	! picked package | grep -qx package_twice || sets+=" lintian"
	# shellcheck disable=SC2086  # words
	"$top/contrib/deps" $sets
}

# Tests that have machines of their own: in the track of the host part, once that is done.
beside_vm() {
	is_picked vm pair kernel reboot soft || return 0
	until [ -f "$logs/vm-ready" ]; do sleep 1; done
	[ "$(cat "$logs/vm-ready")" = yes ] || return 0
	# `vm` lets one machine run at a time; this is the second on purpose.
	export RPCRDMAFS_VM_LOCK=${RPCRDMAFS_VM_LOCK:-/tmp/rpcrdmafs-vm.lock}.second
	if is_picked pair; then phase pair pair_tests || true; fi
	if is_picked kernel; then phase kernels kernel_tests || true; fi
	if is_picked reboot; then phase reboot reboot_test || true; fi
	if is_picked soft; then phase soft soft_tests || true; fi
	phase vm vm_own || true
}

# beside_vm() waits for this, however it ends.
vm_ready() { [ -f "$logs/vm-ready" ] || echo "$1" >"$logs/vm-ready"; }

in_vm() {
	trap 'vm_ready no' EXIT
	is_picked release package vm pair kernel reboot soft || return 0
	phase install step deps-vm "installing what the VM needs" vm_needs || return 0
	if is_picked release vm pair kernel reboot soft; then
		phase release test_step release "release build with gcc" built release src/rpcrdmafs \
			vm_programs $([ -z "$(picked soft; picked vm | grep -x t_bench)" ] || echo bench_programs) ||
			return 0
	fi
	phase package packaged || true
	is_picked vm pair kernel reboot soft || return 0
	phase prepare step vm "preparing the test VM" \
		"$top/tests/vm/vm" --kernel "$kernel" --prepare || return 0
	vm_ready yes
	if is_picked vm; then phase vm vm_tests || true; fi
	[ $host = yes ] || beside_vm
}
