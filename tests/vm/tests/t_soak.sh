#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A long time with faults: two clients, each with seven programs that know what they were told
# (pairload and fsx), while the server restarts and the wire is cut, at random. Nothing
# acknowledged may be lost, no program may hang once a fault is over, and in the end the
# clients have nothing left. The first client lives in a memory cgroup without swap and logs to
# a pipe that nobody reads; its anonymous memory may not grow after the first sixth.
#
#   MINUTES  how long (60)      SEED  of the faults (printed)
#   MIB      of the cgroup (160); 0: none, for a daemon with sanitizers
#   DAEMON   another rpcrdmafs, one with sanitizers for one
# tier: soak
# vm-timeout: 5400
# vm-boot: own

. "$(dirname "$0")/../guest/guest.sh"

minutes=${MINUTES:-60}
seed=${SEED:-$$}
mib=${MIB:-160}
RANDOM=$seed
diag "$minutes minutes, SEED=$seed"
wire_up
server=$wire_server
nfsd_up
daemon_path
a=/mnt/a b=/mnt/b work=/run/soak
mkdir -p $a $b $work
cp "$BUILD_DIR/tests/fsx/fsx" "$BUILD_DIR/tests/vm/pair/pairload" $work
ulimit -l unlimited
export ASAN_OPTIONS=log_path=$RESULTS/asan:exitcode=99 UBSAN_OPTIONS=print_stacktrace=1:log_path=$RESULTS/ubsan

# ---- the clients ----

group=/sys/fs/cgroup/soak
make_group() {
	mountpoint -q /sys/fs/cgroup || mount -t cgroup2 cgroup2 /sys/fs/cgroup
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir -p $group
	[ "$mib" = 0 ] || { echo "${mib}M" >$group/memory.max && echo 0 >$group/memory.swap.max; }
}
anon() { awk '$1 == "anon" { print $2 }' $group/memory.stat; }
# mount_in_group MNT: what it logs goes to a pipe that nobody reads and that is full from the
# start. Not /dev/log: rpc.mountd would wait there too.
mount_in_group() {
	mkfifo $work/unread && exec 8<>$work/unread || return
	! timeout 1 cat /dev/zero >&8 || return
	(echo $BASHPID >$group/cgroup.procs &&
		exec "${DAEMON:-$daemon}" -f -o allow_other "$server:/" "$1" </dev/null >/dev/null 2>&8) &
	first=$!
	wait_for 60 mountpoint -q "$1" && "$daemon" log "$1" debug
}
gauge() { "$daemon" stat --json "$1" | tee $work/stat.json | sed -E "s/.*\"$2\":([0-9]+).*/\1/"; }
idle() {
	local name
	for name in in_flight dirty_bytes uncommitted_bytes files; do
		[ "$(gauge "$1" $name)" = 0 ] || return
	done
}

# ---- the programs ----

declare -A job=()
# load NAME MNT: six processes that note what was acknowledged, and random operations.
load() {
	mkdir "$2/$1" "$2/$1-fsx" $work/$1-model || return
	$work/pairload run "$2/$1" $work/$1.log >$work/$1.out 2>&1 3>&- &
	job[$1]=$!
	$work/fsx -n 1000000000 -t $((minutes * 60)) -s $((seed + ${#1})) -m mixed -k $work/$1-model \
		"$2/$1-fsx/f" >$work/$1-fsx.out 2>&1 3>&- &
	job[$1-fsx]=$!
}
said() { [ "$(grep -c "^$2" $work/$1.out)" -gt "$3" ]; }
alive() { local name; for name; do kill -0 "${job[$name]}" 2>/dev/null || { cat "$work/$name.out"; return 1; }; done; }

recoveries=0
# All go on within this time of the fault's end; the grace period is 10 s.
RECOVERS=90
go_on() {
	local name
	# Calls that are answered from here on are counted.
	for name in one two; do kill -USR1 "${job[$name]}" || return; done
	for name in one two; do wait_for $RECOVERS said $name stuck $recoveries || return; done
	for name in one two; do kill -USR2 "${job[$name]}" || return; done
	for name in one two; do
		wait_for $RECOVERS said $name "recovered in" $recoveries || { cat $work/$name.out; return 1; }
	done
	recoveries=$((recoveries + 1))
}

# ---- the faults ----

fault() {
	case $((RANDOM % 4)) in
	0 | 1)
		what="restart"
		nfsd_restart
		;;
	2)
		what="cut of $((secs = 1 + RANDOM % 7)) s"
		wire_cut
		sleep $secs
		wire_mend
		;;
	3)
		what="down for $((secs = 5 + RANDOM % 20)) s"
		nfsd_stop
		sleep $secs
		nfsd_start
		;;
	esac >>$work/faults.out 2>&1
	echo "$SECONDS $what" >>"$RESULTS/faults"
}

make_group
check "the first client, in a cgroup of $mib MiB" mount_in_group $a
check "the second" fmount $b allow_other,nconnect=2
load one $a
load two $b
check "all are at work" wait_for 60 eval 'said one going 0 && said two going 0'
begun=$SECONDS early=0 faults=0
while [ $((SECONDS - begun)) -lt $((minutes * 60)) ]; do
	sleep $((5 + RANDOM % 20))
	fault
	faults=$((faults + 1))
	if ! go_on || ! alive one two; then
		diag "after $what, $((SECONDS - begun)) s after the begin"
		failed=yes
		break
	fi
	[ $early != 0 ] || [ $((SECONDS - begun)) -lt $((minutes * 10)) ] || early=$(anon)
done
late=$(anon)
check "$faults faults, after each of them all went on" test -z "${failed:-}"
diag "$(awk '{ print $2 }' "$RESULTS/faults" | sort | uniq -c | tr '\n' ' ')"
[ -z "${failed:-}" ] || { stacks; cp $work/*.out "$RESULTS"; }

# ends NAME: no call failed, no read was wrong.
ends() {
	local rc=0
	kill -TERM "${job[$1]}" || return
	wait_for 90 said "$1" calls 0 || rc=124
	[ $rc != 0 ] || wait "${job[$1]}" || rc=$?
	cat "$work/$1.out"
	return $rc
}
fsx_ends() { local rc=0; wait_for 120 ended "${job[$1-fsx]}" && wait "${job[$1-fsx]}" || rc=$?; tail -n 20 "$work/$1-fsx.out"; return $rc; }
has_model() { cmp "$export_dir/$1-fsx/f" "$work/$1-model/0" && cmp "$export_dir/$1-fsx/f.b" "$work/$1-model/1"; }
for name in one two; do
	check "$name: no call failed, no read was wrong" ends $name
	check "$name: random operations found what the model has" fsx_ends $name
	check "$name: all that was acknowledged is there" $work/pairload check $work/$name.log $export_dir/$name
	check "$name: the server has what the model has" has_model $name
done
for mnt in $a $b; do check "$mnt: nothing is in flight, nothing is unstable" wait_for 60 idle $mnt; done
diag "anonymous memory: $((early >> 10)) KiB after the first sixth, $((late >> 10)) KiB in the end"
[ "$mib" = 0 ] || check "memory did not grow by more than 5 %" test "$late" -le $((early + early / 20))
diag "$(gauge $a log_dropped) lines of the log were dropped"
check "the first is unmounted" umount $a
exec 8>&-
check "and ends" wait_for 60 ended "$first"
check "the second is unmounted" funmount $b
check "no sanitizer complained" bash -c "! ls $RESULTS/asan.* $RESULTS/ubsan.* 2>/dev/null"
tap_end
