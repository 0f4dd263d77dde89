#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Servers at their worst, at random: they answer DELAY, close the connection after every 50th WRITE
# without an answer, restart, lose what was not committed, have grace periods, and cannot be
# reached. Eight programs that know what they were told work meanwhile: pairload (tests/vm/pair),
# whose calls may not be executed twice, and fsx. None may fail or hang, and in the end everything
# acknowledged is there and nothing is left.
#
#   TIME  seconds (15)      SEED  of the faults (printed)
#
# An hour of it: `TIME=3600 meson test -C build/asan -t 10 fuse_faults`.

time=${TIME:-15}
seed=${SEED:-$$}
LIMIT=$((time + 600))
. "$(dirname "$0")/fuse_sim_lib.sh"

RANDOM=$seed
pairload=$bin/fuse_sim_pairload
diag "$time s, SEED=$seed"

stat_of() { timeout 60 "$bin/fuse_sim" stat --json "$work/$1" >"$work/stat-$1"; }
gauge() { sed -E "s/.*\"$2\":([0-9]+).*/\1/" "$work/stat-$1"; }
idle() {
	local what
	stat_of "$1" || return
	for what in in_flight dirty_bytes uncommitted_bytes files; do
		same "$(gauge "$1" $what)" 0 || return
	done
}

# ---- the programs ----

said() { [ "$(grep -c "^$1" "$work/load.out")" -gt "$2" ]; }
ended_badly() {
	kill -0 "$load" 2>/dev/null && return 1
	cat "$work/load.out"
}
# Each call that was under way has been answered; no fault may have begun since.
rounds=0
answered() {
	ended_badly && return 1
	kill -USR1 "$load" && wait_for 60 said stuck $rounds &&
		kill -USR2 "$load" && wait_for 60 said recovered $rounds || {
		cat "$work/load.out"
		return 1
	}
	rounds=$((rounds + 1))
}
fsx_on() { # FILE
	timeout $((time + 300)) "$fsx" -n 1000000000 -t "$time" -s "$seed" -m mixed "$1" >"$work/${1##*/}.out" 2>&1
}

# ---- the faults ----

unkind() { ctl "$1" delay 37 && ctl "$1" close 50; }
kind() { ctl "$1" delay 0 && ctl "$1" close 0; }
# Of what it had executed and not answered a restarted server would know nothing.
restart() { kind load && answered && ctl load restart "$1" && unkind load; }
fault() {
	local what=$((RANDOM % 5))
	echo "fault $what"
	case $what in
	0) restart 0 ;;
	1) restart 1 ;;
	2) kind load && answered && ctl load grace 2000 && sleep 1 && ctl load grace 0 && unkind load ;;
	3) ctl load cut ;;
	4) ctl load gone 1 && sleep $((1 + RANDOM % 3)) && ctl load gone 0 ;;
	esac
}
faults() {
	local end=$((SECONDS + time))
	while [ $SECONDS -lt $end ]; do
		fault && answered || return
		cnt=$((cnt + 1))
	done
}

must "mounted" sim_start load "" ""
must "mounted, three lanes" sim_start ops "" "nconnect=3"
mkdir "$work/load/dir"
"$pairload" run "$work/load/dir" "$work/acknowledged" >"$work/load.out" 2>&1 &
load=$!
check "programs are at work" wait_for 60 said going 0
check "DELAY, and a connection that ends after every 50th WRITE" unkind load
check "and with the other server, cuts too" eval 'unkind ops && ctl ops cuts 60'
fsx_on "$work/ops/one" &
one=$!
fsx_on "$work/ops/two" &
two=$!
cnt=0
check "after each fault all go on" faults
diag "$cnt faults; $(value load conns_made) and $(value ops conns_made) connections"
check "servers are kind again" eval 'kind load && kind ops && ctl ops cuts 0'

loads_end() {
	local rc=0
	kill -TERM "$load" && wait "$load" || rc=$?
	cat "$work/load.out"
	return $rc
}
fsx_ends() {
	local rc=0
	wait "$1" || rc=$?
	tail -n 20 "$work/$2.out"
	return $rc
}
check "no call failed, no read was wrong" loads_end
check "random operations found what the model has" fsx_ends $one one
check "on both files" fsx_ends $two two

# Past the page cache: what the server has.
fetched() {
	local f
	mkdir "$work/theirs"
	for f in "$work"/load/dir/*; do
		dd if="$f" of="$work/theirs/${f##*/}" bs=1M iflag=direct status=none || return
	done
}
check "what the server has" fetched
check "is all that was acknowledged" "$pairload" check "$work/acknowledged" "$work/theirs"
for m in load ops; do check "nothing is in flight, nothing is unstable" wait_for 60 idle $m; done
for m in load ops; do check "unmounted, nothing is left" sim_stop $m; done
tap_end
