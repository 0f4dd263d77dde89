#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# git, tar and fio at once for a minute (SECONDS_EACH), in random order of what
# each does next; then everything is checked, also as the server's file system
# has it. SEED=n does a run again, as far as three programs at once can.
# vm-timeout: 1800
# vm-boot: own

. "$(dirname "$0")/../guest/prog_lib.sh"

length=${SECONDS_EACH:-60}
seed=${SEED:-$((SRANDOM % 100000))}
diag "SEED=$seed"
in_ram git /usr/lib/git-core/git tar fio awk sha256sum
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/run/gitconfig
printf '[user]\nname = A\nemail = a@example.org\n[safe]\ndirectory = *\n[gc]\nauto = 0\n' >$GIT_CONFIG_GLOBAL

mkdir "$scratch/tree"
(cd "$scratch/tree" && mkdir {0..7} && awk 'BEGIN {
	for (i = 0; i < 160; i++) {
		f = i % 8 "/file" i
		for (n = i * 17 % 400; n >= 0; n--) print n * 7919 % 10007, i >f
		close(f)
	}
}' && truncate -s 3M 0/sparse && ln 1/file1 2/link && ln -s ../1/file1 3/soft)
tree_list "$scratch/tree" >/run/list

git_turns() {
	local n=0 i
	RANDOM=$((seed + 1))
	git init -q git
	cd git
	cp -r "$scratch/tree/." .
	git add -A
	git commit -q -m first
	while [ $SECONDS -lt "$1" ]; do
		n=$((n + 1))
		case $((RANDOM % 6)) in
		0 | 1) for i in 1 2 3 4 5; do echo "$n $i" >>$((RANDOM % 8))/new$((RANDOM % 20)); done
			git add -A; git commit -q --allow-empty -m "commit $n" ;;
		2) git repack -q -d ;;
		3) git checkout -q -B other HEAD~0; git checkout -q - ;;
		4) git mv $((RANDOM % 8))/new$((RANDOM % 20)) moved$n 2>/dev/null || true
			git commit -q --allow-empty -m "move $n" ;;
		5) git stash -q -u || true; git reset -q --hard ;;
		esac
	done
	[ -z "$(git status --porcelain)" ]
	git fsck --full --strict
	git gc -q
	git fsck --full
	echo "git: $n turns" >&2
}

tar_turns() {
	local n=0
	RANDOM=$((seed + 2))
	mkdir tar
	cd tar
	while [ $SECONDS -lt "$1" ]; do
		n=$((n + 1))
		mkdir out
		case $((RANDOM % 3)) in
		0) tar -C "$scratch/tree" -cS . | tar -C out -xp ;;
		1) tar -C "$scratch/tree" -czf a.tar .; tar -C out -xpf a.tar; rm a.tar ;;
		2) tar -C "$scratch/tree" -cf a.tar 0 1 2 3; tar -C "$scratch/tree" -rf a.tar 4 5 6 7; tar -C out -xpf a.tar; rm a.tar
			chmod --reference="$scratch/tree" out ;;
		esac
		diff /run/list <(tree_list out)
		mv out out$n
		[ $((RANDOM % 3)) != 0 ] || mv out$n old
		[ ! -d old ] || rm -r old
	done
	[ ! -d out$n ] || diff /run/list <(tree_list out$n)
	echo "tar: $n turns" >&2
}

fio_turns() {
	local n=0 options
	RANDOM=$((seed + 3))
	mkdir fio
	while [ $SECONDS -lt "$1" ]; do
		n=$((n + 1))
		options=(--rw=randwrite --bsrange=512-200k --bs_unaligned=1)
		case $((RANDOM % 5)) in
		0) ;;
		1) options+=(--direct=1) ;;
		2) options=(--rw=randwrite --bs=4k-64k --ioengine=mmap) ;;
		3) options+=(--fsync=$((1 + RANDOM % 8)) --numjobs=2) ;;
		4) options+=(--verify_backlog=8) ;;
		esac
		fio --name="turn$((n % 3))" --directory=fio --size=4m --randseed=$RANDOM --verify=crc32c \
			--verify_fatal=1 --do_verify=1 --verify_state_save=0 --minimal --output=/run/fio.$client "${options[@]}"
	done
	echo "fio: $n turns" >&2
}

# As a step, the three are in folders of their own.
at_once() {
	local rc=0 p pids=() end=$((SECONDS + length))
	(git_turns $end) & pids+=($!)
	(tar_turns $end) & pids+=($!)
	(fio_turns $end) & pids+=($!)
	for p in "${pids[@]}"; do wait "$p" || rc=1; done
	return $rc
}

# What the mount shows without a cache is what the server has.
server_agrees() {
	echo 3 >/proc/sys/vm/drop_caches
	diff <(tree_list $w) <(tree_list "$export_dir/$prog/$client")
}

work() {
	step "git, tar and fio at once" at_once
	step "the server has what the mount shows" server_agrees
	step "fsck of the server's" git -C "$export_dir/$prog/$client/git" fsck --full --strict
}

COMPARE_TREES=no on_both work
tap_end
