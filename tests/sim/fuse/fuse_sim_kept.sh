#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Files that are kept open while another client changes them: what the kernel has
# of them is looked at again as the attributes age; what is appended goes to the end
# that there is.

. "$(dirname "$0")/fuse_sim_lib.sh"

GETATTR=9
times=acregmin=1,acregmax=2

getattrs() { ctl m ops $GETATTR | sed 's/.*=//; s/ //g'; }

# The reader has all of it in the page cache, and asks for nothing but its bytes.
cat >"$work/reader" <<-'END'
	import mmap, os, sys, time
	fd = os.open(sys.argv[1], os.O_RDONLY)
	mapped = mmap.mmap(fd, 3000, prot=mmap.PROT_READ)
	def seen():
	    return mapped[:7] if sys.argv[2] == "mmap" else os.pread(fd, 7, 0)
	assert os.pread(fd, 3000, 0)[:7] == mapped[:7] != b"CHANGED"
	print("ready", flush=True)
	for _ in range(600):
	    if seen() == b"CHANGED":
	        print("seen", flush=True)
	        sys.exit(0)
	    time.sleep(0.1)
	sys.exit("never")
END

# sees I HOW
sees() {
	local line rc=0 out
	exec {out}< <(python3 "$work/reader" "$work/m/small$1" "$2" 2>&1)
	read -r -t 60 -u "$out" line && same "$line" ready &&
		same "$(ctl m change "$1")" ok &&
		read -r -t 90 -u "$out" line && same "$line" seen || rc=1
	exec {out}<&-
	return $rc
}

# 20 files are two calls each time, not 20.
cheap() {
	local i fd before
	local -a fds=()
	for ((i = 2; i < 22; i++)); do
		exec {fd}<"$work/m/small$i" && fds+=("$fd") || return
	done
	before=$(ctl m state | sed 's/.* calls=//; s/ .*//')
	wait_for 60 asked_for $(($(getattrs) + 60)) || return
	diag "$(($(ctl m state | sed 's/.* calls=//; s/ .*//') - before)) calls for 60 GETATTRs"
	between 4 $(($(ctl m state | sed 's/.* calls=//; s/ .*//') - before)) 15 || return
	for fd in "${fds[@]}"; do exec {fd}<&-; done
}
asked_for() { [ "$(getattrs)" -ge "$1" ]; }

# The lines of a file behind its first bytes.
holds() {
	local number=$1 first=$2 want=$3
	same "$(tail -c "+$((first + 1))" "$m/small$number" | tr '\n' ' ')" "$want" &&
		same "$(stat -c %s "$m/small$number")" $((first + ${#want}))
}

# Another client appends between our appends: nobody's lines are lost.
both_append() {
	local fd
	exec {fd}>>"$m/small$1" && cat "$m/small$1" >"$work/before" || return
	echo ours1 >&"$fd" && sync "$m/small$1" && same "$(ctl m join "$1")" ok &&
		echo ours2 >&"$fd" && echo ours3 >&"$fd" && sync "$m/small$1" &&
		same "$(ctl m join "$1")" ok && same "$(ctl m join "$1")" ok &&
		echo ours4 >&"$fd" && sync "$m/small$1" || return
	exec {fd}>&-
	holds "$1" 3000 "ours1 theirs ours2 ours3 theirs theirs ours4 "
}

# As logrotate's copytruncate does: no zeros before what comes next.
others_truncate() {
	local fd
	exec {fd}>>"$m/small$1" || return
	echo ours1 >&"$fd" && sync "$m/small$1" && same "$(ctl m cutoff "$1")" ok &&
		echo ours2 >&"$fd" && echo ours3 >&"$fd" || return
	exec {fd}>&-
	holds "$1" 10 "ours2 ours3 "
}

# Four programs here, each with a descriptor of its own.
many_append() {
	local i number=$1
	writer() {
		local k
		for ((k = 0; k < 200; k++)); do echo "$1 $k" || return; done >>"$m/small$number"
	}
	on_each "a b c d" writer || return
	for i in a b c d; do
		same "$(tail -c +3001 "$m/small$number" | grep -c "^$i ")" 200 || return
	done
}

m=$work/m
must "mounted" sim_start m "small 22;delegs 0" "$times"
check "a change is seen by read(2) of a file that is kept open" sees 0 read
check "and in a mapping" sees 1 mmap
check "many files are few calls" cheap
check "two clients append" both_append 0
check "another client truncates what we append to" others_truncate 1
check "several programs append" many_append 2
check "unmounted, nothing is left" sim_stop m
for WRITE in wait eager; do
	must "mounted, write=$WRITE" sim_start m "small 3;delegs 0" "$times"
	check "two clients append" both_append 0
	check "another client truncates what we append to" others_truncate 1
	check "several programs append" many_append 2
	check "unmounted, nothing is left" sim_stop m
done
tap_end
