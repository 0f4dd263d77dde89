#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Small files come with their OPEN: how many calls that takes, and whether what
# is read is right, whoever changes them and whatever happens to the connection.

. "$(dirname "$0")/fuse_sim_lib.sh"

FILES=120

# What the server has seen until now, and how much more since then.
declare -A seen=()
seen_of() {
	local number
	case $1 in
	CALLS) value m calls && return ;;
	CLOSE) number=4 ;;
	LOOKUP) number=15 ;;
	OPEN) number=18 ;;
	READ) number=25 ;;
	esac
	ctl m ops $number | sed 's/.*=//; s/ //g'
}
count() { for key in CALLS CLOSE LOOKUP OPEN READ; do seen[$key]=$(seen_of $key); done; }
since() { echo $(($(seen_of "$1") - seen[$1])); }

closed() { [ "$(value m opens)" = 0 ]; }

# right NUMBER [MORE]: what cat prints is what the server has.
right() {
	local letter
	letter=$(printf "\\$(printf %o $((97 + $1 % 26)))")
	cat "$work/m/small$1" >"$work/out.$1" &&
		cmp "$work/out.$1" <(head -c 3000 /dev/zero | tr '\0' "$letter" && echo -n "${2:-}")
}

# LOOKUP, OPEN with READ, CLOSE.
three_calls() {
	stat "$work/m"
	wait_for 60 closed || return
	count
	right 1 && wait_for 60 closed || return
	for key in CALLS LOOKUP OPEN READ CLOSE; do diag "$key $(since $key)"; done
	same "$(since LOOKUP) $(since OPEN) $(since READ) $(since CLOSE)" "1 1 1 1" &&
		same "$(since CALLS)" 3
}

each_of_them() {
	local i
	count
	for ((i = 10; i < 60; i++)); do right $i || return; done
	wait_for 60 closed && same "$(since READ)" 50 && between 150 "$(since CALLS)" 153
}

grown_meanwhile() {
	stat "$work/m/small2"
	same "$(ctl m grow 2)" ok && right 2 "more
"
}

# What nobody reads is not fetched for ever; whoever reads then has all the same.
opened_in_vain() {
	local i
	count
	for ((i = 60; i < FILES; i++)); do : <"$work/m/small$i" || return; done
	wait_for 60 closed && same "$(since OPEN)" 60 && between 8 "$(since READ)" 10 || return
	for ((i = 60; i < FILES; i++)); do right $i || return; done
}

some() {
	local i
	for ((i = $1; i < FILES; i += 3)); do
		[ "$i" = 2 ] || right "$i" || return
	done
}

# The reply to each OPEN may be lost, once or more often.
while_it_is_cut() {
	ctl m cuts 4
	on_each "0 1 2" some || return
	ctl m cuts 0
	wait_for 60 closed && between 10 "$(value m conns_made)" 10000
}

for AHEAD in 0 4; do
	must "mounted, readahead=$AHEAD" sim_start m "small $FILES;delegs 0"
	check "a small file takes three calls" three_calls
	check "so does each of them" each_of_them
	check "what another client appended before the open is seen" grown_meanwhile
	check "OPENs without a read" opened_in_vain
	check "unmounted, nothing is left" sim_stop m
	must "mounted again" sim_start m "small $FILES" nconnect=2
	check "the connection breaks every few requests" while_it_is_cut
	check "unmounted, nothing is left, no delegation either" sim_stop m
done
tap_end
