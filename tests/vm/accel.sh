# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# KVM or software emulation. Sourced by `vm`, which sets kdir and image.

# Some machines have no such register, and QEMU ends when it sets it.
kvm_cpu=host,arch-capabilities=off

# A /dev/kvm that opens may still run no guest: only a boot tells. It ends as soon
# as the first process runs (init). Tried once a boot of this machine and kernel.
choose_accel() {
	local key kept=$kdir/accel
	accel=tcg
	[ -w /dev/kvm ] || return 0
	key=$(cat /proc/sys/kernel/random/boot_id)
	if [ "$(cut -d ' ' -f 1 "$kept" 2>/dev/null || true)" = "$key" ]; then
		accel=$(cut -d ' ' -f 2 "$kept")
		return 0
	fi
	if kvm_boots; then
		accel=kvm
		say "a guest starts with /dev/kvm: it is used"
	else
		say "no guest starts with /dev/kvm within 10 s: software emulation is used"
	fi
	echo "$key $accel" >"$kept"
}

kvm_boots() {
	local rc=0
	scratch=$(mktemp -d "$cache/trial.XXXXXX")
	timeout -k 1 10 qemu-system-x86_64 -accel kvm -cpu "$kvm_cpu" -m 1024 \
		-nodefaults -no-user-config -display none -no-reboot -kernel "$kdir/vmlinuz" \
		-initrd "$image" -append "console=ttyS0 panic=-1 rpcrdmafs_trial=yes" \
		-chardev "file,id=console,path=$(q "$scratch/console")" -serial chardev:console \
		</dev/null >"$scratch/log" 2>&1 9>&- 8>&- || true
	grep -a -q "$trial_word" "$scratch/console" 2>/dev/null || rc=1
	rm -rf "$scratch"
	return $rc
}
# The line that init prints then.
trial_word="rpcrdmafs-vm: a guest starts"
