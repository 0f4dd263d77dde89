# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What the fuse_sim_*.sh scripts share. To be sourced with the folder of the
# built programs as the script's first argument. Mounts lie in $work, one name
# each; whatever happens, the end of the script ends the daemons it started.
#
#   sim_start NAME SETTINGS [OPTIONS]   mounts, with write=$WRITE (lazy) and readahead=$AHEAD (4);
#                                       SETTINGS: see fuse_sim.c
#   ctl NAME command...                 tells the server to do it, prints its answer
#   sim_ends NAME SECONDS               waits for the daemon's end: its exit status, 124: none
#
# own_mounts=yes before that: the script runs in a namespace of mounts that no other test sees.
#
# Checks and waiting are those of tests/tap.sh; a check that fails also shows the
# ends of the logs of the mounts that its command names.
#
# No command on a mount may hang for ever: after LIMIT seconds (default 600) a
# watchdog kills the daemons, which ends everything that waits for them.

set -uo pipefail

if ! [ -c /dev/fuse ] || ! (: <>/dev/fuse) 2>/dev/null; then
	echo "# /dev/fuse cannot be used here"
	exit 77
fi
if [ "$(id -u)" != 0 ]; then
	echo "# mounting needs root"
	exit 77
fi

# In a namespace of mounts of its own.
if [ -n "${own_mounts:-}" ] && [ -z "${OWN_MOUNTS:-}" ]; then
	OWN_MOUNTS=yes exec unshare --mount --propagation private "$0" "$@"
fi

bin=$(cd "${1:?usage: $0 BUILD_DIR/tests/sim/fuse}" && pwd)
fsx=$bin/../../fsx/fsx # random operations against a model
work=$(mktemp -d "${TMPDIR:-/tmp}/fuse-sim.XXXXXX")
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}

# shellcheck source-path=SCRIPTDIR source=../../tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../tap.sh"
# shellcheck source-path=SCRIPTDIR source=../../stacks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../stacks.sh"
tap_output=$work/output
tap_lines=150
tap_more() {
	local log name
	for log in "$work"/*.log; do
		name=${log##*/}
		[[ " $* " == *" ${name%.log} "* ]] || continue
		echo "# $name ends with"
		tail -n 20 "$log" | sed 's/^/#   /'
	done
}

declare -A pid=() ctl_fd=() said_fd=()

# wait_for that failed: where the threads of our daemons, keepers and clients wait.
wait_more() {
	local p
	for p in $(ours); do
		tr '\0' ' ' <"/proc/$p/cmdline" && echo
		stacks "$p"
		! command -v gdb >/dev/null ||
			timeout 60 gdb -nx -batch -p "$p" -ex "thread apply all bt 12" | grep "^Thread\|src/\|tests/"
	done 2>/dev/null
}

# ---- daemons ----

# All that name our folder, but this script.
ours() {
	local dir
	for dir in /proc/[0-9]*; do
		[ "${dir#/proc/}" = $$ ] || ! grep -qsF "$work/" "$dir/cmdline" || echo "${dir#/proc/}"
	done
}

# By the kernel's table: asking the mount itself may have to wait for the server.
is_mounted() { grep -q " $1 fuse.rpcrdmafs " /proc/self/mounts; }

sim_start() {
	local name=$1 settings=$2 options=${3:-} fd
	mkdir -p "$work/$name"
	[ -p "$work/$name.ctl" ] || mkfifo "$work/$name.ctl" "$work/$name.said"
	: >"$work/$name.log"
	FUSE_SIM=$settings FUSE_SIM_CTL=$work/$name.ctl FUSE_SIM_SAID=$work/$name.said \
		"$bin/fuse_sim" -f -o "write=${WRITE:-lazy},readahead=${AHEAD:-4}${options:+,$options}" 127.0.0.1:/ "$work/$name" \
		>>"$work/$name.log" 2>&1 </dev/null &
	pid[$name]=$!
	echo "${pid[$name]}" >>"$work/pids"
	exec {fd}<>"$work/$name.ctl"
	ctl_fd[$name]=$fd
	exec {fd}<>"$work/$name.said"
	said_fd[$name]=$fd
	wait_for 60 mounted_or_ended "$name"
	runs "${pid[$name]}" && is_mounted "$work/$name"
}

mounted_or_ended() { grep -q " mounted on " "$work/$1.log" || ended "${pid[$1]}"; }

ctl() {
	local name=$1 answer
	shift
	echo "$*" >&"${ctl_fd[$name]}"
	if ! read -r -t 60 -u "${said_fd[$name]}" answer; then
		echo "no answer to $*"
		return 1
	fi
	echo "$answer"
}

# value NAME KEY: of the server's state.
value() { ctl "$1" state | tr ' ' '\n' | sed -n "s/^$2=//p"; }

# Its log, if it did not end well; the mount must be gone.
sim_ends() {
	local name=$1 rc=0 p=${pid[$1]} fd
	if ! wait_for "$2" ended "$p"; then
		echo "the daemon of $name runs on:"
		tail -n 20 "$work/$name.log"
		return 124
	fi
	wait "$p" || rc=$?
	unset "pid[$name]"
	fd=${ctl_fd[$name]}
	exec {fd}>&-
	fd=${said_fd[$name]}
	exec {fd}>&-
	[ $rc = 0 ] || tail -n 200 "$work/$name.log"
	[ $rc = 0 ] || grep FAILURE "$work/$name.log"
	if is_mounted "$work/$name"; then
		echo "$work/$name is still mounted"
		return 1
	fi
	return $rc
}

# sim_stop NAME: the usual way.
sim_stop() {
	fusermount3 -u "$work/$1" && sim_ends "$1" 60
}

# ---- the end, in any case ----

# Of those that have ended another process may have the number, of another test as well: each
# that is ours names our folder.
kill_daemons() {
	local p
	while read -r p; do
		! grep -qsF "$work/" "/proc/$p/cmdline" || kill -KILL "$p" 2>/dev/null
	done <"$work/pids"
}

clean_up() {
	local dir tries=100
	trap - EXIT
	kill_daemons
	[ -z "${watchdog:-}" ] || kill -KILL "$watchdog" 2>/dev/null
	# shellcheck disable=SC2046  # words: the programs that run
	kill -KILL $(jobs -rp) 2>/dev/null
	# Not by a pattern: a dead mount is no directory.
	while read -r _ dir _; do
		[[ $dir != "$work"/* ]] || umount -l "$dir"
	done </proc/self/mounts
	wait
	# Never into something that is still mounted.
	until rm -rf --one-file-system "$work" 2>/dev/null || [ $((tries -= 1)) = 0 ]; do
		sleep 0.1
	done
}
: >"$work/pids"
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

# A script with mounts of its own (own_mounts) has copies of those of tests beside it, whose daemons
# would not end before it.
if [ -n "${OWN_MOUNTS:-}" ]; then
	while read -r _ dir type _; do
		[ "$type" != fuse.rpcrdmafs ] || umount -l "$dir"
	done </proc/self/mounts
fi

mkfifo "$work/never" "$work/go"
(
	trap - EXIT
	trap 'exit 0' TERM
	read -r -t "${LIMIT:-600}" _ <>"$work/never"
	echo "# time is up: the daemons are killed"
	kill_daemons
) &
watchdog=$!
disown "$watchdog"

# ---- programs that wait for the server ----

declare -A job=()

# waiting NAME KIND DIR: a program that waits for `go` to begin its call.
waiting() {
	mkdir -p "$3"
	"$bin/fuse_sim_wait" "$2" "$3" <"$work/go" >"$work/$1.out" 2>&1 &
	job[$1]=$!
}

all_ready() {
	local name
	for name in "${!job[@]}"; do
		wait_for 60 grep -q . "$work/$name.out" && grep -qx ready "$work/$name.out" &&
			continue
		echo "$name: $(cat "$work/$name.out")"
		return 1
	done
}

all_began() {
	local name
	for name in "${!job[@]}"; do wait_for 60 grep -q begins "$work/$name.out" || return; done
}

go() { for _ in "${!job[@]}"; do echo -n g; done >"$work/go"; }

# ---- work ----

# The work-load's protocol on a file system of this machine: what is right.
reference() {
	mkdir -p "$work/local" && mount -t tmpfs none "$work/local" || return
	"$bin/fuse_sim_work" "$work/local" >"$work/right"
	umount "$work/local"
}

# work_load NAME [FOLDER]: the same on the mount, and compared.
work_load() {
	local dir=$work/$1/${2:-load}
	mkdir "$dir" || return
	timeout 500 "$bin/fuse_sim_work" "$dir" >"$work/found-$1" || return
	rmdir "$dir" || return
	diff "$work/right" "$work/found-$1"
}

# make_tree DIR FILES: of many sizes.
make_tree() {
	local i
	mkdir -p "$1"
	for ((i = 0; i < $2; i++)); do
		[ $((i % 10)) != 0 ] || mkdir "$1/d$((i / 10))"
		head -c $((i * i * 53 % 50000)) /dev/urandom >"$1/d$((i / 10))/f$i"
	done
	ln -s d0/f0 "$1/link"
}
