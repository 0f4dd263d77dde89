#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Random operations against a model (tests/fsx), cached, O_DIRECT and mixed: the
# same ones here and on the kernel's client, with the same result. What is on the
# server in the end is the model's. OPS (default 3000): how many cached, and as
# many O_DIRECT; mixed, and with a second process, a part of that. SEED: others,
# or the same again. MODES: only these of the three.
# vm-boot: own
# vm-timeout: 900

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
mnt=/mnt knt=/knt
seed=${SEED:-1}
ops=${OPS:-3000}
cp "$BUILD_DIR/tests/fsx/fsx" /run/fsx

# random NAME DIR MODE [arguments]: its output without paths is what is compared.
random() {
	local name=$1 dir=$2/$1 mode=$3 rc=0
	shift 3
	mkdir -p "$dir" "/run/model/$name"
	/run/fsx -n "$ops" -s "$seed" -m "$mode" -k "/run/model/$name" "$@" "$dir/f" >"/tmp/$name" || rc=$?
	cat "/tmp/$name"
	[ $rc = 0 ]
}
took() { diag "$1: $(sed -n 's/ operations in /, /p' "/tmp/$1")"; }
digest() { sed -n 's/^digest //p' "/tmp/$1"; }

# The server has what the model has, and no file that was unlinked while open.
server_has() {
	cmp "$export_dir/$1/f" "/run/model/$1/0" && cmp "$export_dir/$1/f.b" "/run/model/$1/1" &&
		same "$(ls -A "$export_dir/$1" | grep -c '^\.nfs' || true)" 0
}

check "mounted" fmount $mnt
check "mounted by the kernel's client" kmount $knt
# The same on both clients, side by side: the guest has two processors.
on_both() {
	local name=$1 ours rc=0
	shift
	random "ours-$name" $mnt "$@" & ours=$!
	random "theirs-$name" $knt "$@" || rc=1
	wait $ours || rc=1
	return $rc
}
for mode in ${MODES:-cached direct mixed}; do
	[ $mode != mixed ] || ops=$((ops / 3))
	check "$ops operations on each client, $mode" on_both $mode $mode
	took ours-$mode
	took theirs-$mode
	check "the server has the result of ours" server_has ours-$mode
	check "and of the kernel's" server_has theirs-$mode
	check_equal "both read the same" "$(digest ours-$mode)" "$(digest theirs-$mode)"
done
ops=$((${OPS:-3000} / 6))
check "a second process sees the same" on_both two mixed -p
check_equal "both read the same" "$(digest ours-two)" "$(digest theirs-two)"

# What is changed behind the tester's back it finds, on both.
finds() { ! random "$@" || return 1; grep -q '^again: fsx' "/tmp/$1"; }
ops=30
for fault in byte size lost; do
	check "finds a fault here: $fault" finds ours-$fault $mnt cached -x $fault
	check "finds a fault there: $fault" finds theirs-$fault $knt cached -x $fault
done
check "the kernel's client unmounts" kumount $knt
check "unmounted" funmount $mnt
tap_end
