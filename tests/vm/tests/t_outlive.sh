#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A mount that outlives many daemons under a load of all kinds: programs that know what was
# acknowledged (pairload), random operations against a model, mmap among them (fsx), locks of each
# kind that are held, with a checker on the server (keepopen), a directory being listed, large files
# being copied, and a lock that is waited for. Upgrades first, then kill -9 at random moments. No
# program may see an error or a wrong byte, nothing acknowledged may be lost, nothing may be done
# twice.
#
#   UPGRADES, KILLS   how many (100 each)     SEED  of the moments (printed)
#   OPTIONS           of the mount
#   COPY_MIB          of the large files, a multiple of 64 (64)
#   TWICE             1: one in four is killed again while it takes over; then a file may seem to
#                     be removed already (docs/upgrades.md, "Not exactly once")
# tier: soak
# vm-timeout: 5400
# vm-boot: own

copy_mib=${COPY_MIB:-64}
EXPORT_MIB=${EXPORT_MIB:-$((1400 + 2 * copy_mib))}
. "$(dirname "$0")/../guest/guest.sh"

upgrades=${UPGRADES:-100} kills=${KILLS:-100}
seed=${SEED:-$$}
RANDOM=$seed
diag "$upgrades upgrades, $kills kills, SEED=$seed, copies of $copy_mib MiB"
rxe_up
nfsd_up
mnt=/mnt work=/run/outlive
mkdir -p $work/model "$bin_dir"
cp "$BUILD_DIR/tests/fsx/fsx" "$BUILD_DIR/tests/vm/pair/pairload" "$BUILD_DIR/tests/vm/keepopen" $work
log=$(fmount_log $mnt)
info() { "$bin_dir/rpcrdmafs" info $mnt; }
field() { info 2>&1 | sed -n "s/^ *$1  *\([0-9]*\).*/\1/p"; }

# ---- the programs: each writes to NAME.out, and its last line there says what was wrong ----

# Its status is a file: of a child that ended long ago the shell forgets it when the number is used
# again.
declare -A job=()
runs_as() { # NAME COMMAND...
	local name=$1
	shift
	{ rc=0; "$@" || rc=$?; echo $rc >$work/$name.rc; } >$work/$name.out 2>&1 &
	job[$name]=$!
}
lists() {
	local n
	until [ -e $work/end ]; do
		n=$(ls $mnt/list | wc -l) || return
		[ "$n" = 2000 ] || { echo "$n names of 2000"; return 1; }
		echo lap
	done
}
content() { # NUMBER: 64 MiB, again and again
	local n
	echo "$1"
	for ((n = 0; n < copy_mib; n += 64)); do cat $export_dir/large || return; done
}
copies() { # a file with new content each time, on to another one
	local i
	for ((i = 0; ; i++)); do
		[ ! -e $work/end ] || return 0
		content $i >$mnt/copies/from && cp $mnt/copies/from $mnt/copies/to &&
			content $i | cmp - $mnt/copies/to && rm $mnt/copies/from || return
		echo lap
	done
}
# Two who wait for each other's lock. In the file is how often it was had.
takes_turns() {
	local n
	until [ -e $work/end ]; do
		exec 9<>$mnt/turns || return
		flock -x 9 || return
		n=$(cat $mnt/turns) && sleep 0.3 && echo $((n + 1)) >$mnt/turns || return
		flock -u 9 && exec 9>&- || return
		echo lap
	done
}

check "mounted" fmount $mnt "${OPTIONS:-rw,nconnect=2,allow_other,keep=process,write=lazy}"
mkdir $export_dir/{list,copies,pair,fsx,keep}
(cd $export_dir/list && seq -f 'entry-%05.0f' 1 2000 | xargs touch)
head -c $((64 << 20)) /dev/urandom >$export_dir/large
echo 0 >$export_dir/turns
runs_as pair $work/pairload run $mnt/pair $work/pair.log
runs_as fsx $work/fsx -n 1000000000 -s "$seed" -m mixed -k $work/model $mnt/fsx/f
runs_as keep $work/keepopen $mnt/keep $export_dir/keep
runs_as lists lists
runs_as copies copies
runs_as turn1 takes_turns
runs_as turn2 takes_turns
names="pair fsx keep lists copies turn1 turn2"
laps() { grep -c ^lap $work/"$1".out; }
has_lapped() { # each of these has done all it does once more
	local name
	for name in keep lists copies turn1 turn2; do [ "$(laps $name)" -gt "${lap[$name]}" ] || return; done
}
declare -A lap=()
lap_now() { local name; for name in keep lists copies turn1 turn2; do lap[$name]=$(laps $name); done; }
alive() { local name; for name in $names; do [ ! -e $work/$name.rc ] || { echo "$name:"; tail $work/$name.out; return 1; }; done; }
all_lap() { # the copies take the longest
	lap_now
	wait_for $((300 + copy_mib)) eval '! alive >/dev/null || has_lapped' && alive
}
check "all are at work" all_lap

# How long a mount takes here.
mount_ms=0
for i in 1 2 3; do
	t0=$(date +%s%3N)
	fmount /mnt2 || break
	t1=$(date +%s%3N)
	funmount /mnt2
	[ $((t1 - t0)) -le $mount_ms ] || mount_ms=$((t1 - t0))
done

# ---- the daemons ----

longest() { sed -n 's/.*requests waited \([0-9]*\) ms.*/\1/p' "$log" | tail -n "$1" | sort -n | tail -n 1; }
some_ms() { sleep "$(printf '0.%03d' $((RANDOM % 1000)))"; }
upgraded() { "$bin_dir/rpcrdmafs" upgrade $mnt; }
# Another daemon than that one can be asked, and has done what that one left.
serves_after() {
	local now
	now=$(field pid) && [ -n "$now" ] && [ "$now" != "$1" ] && [ -z "$(field 'requests wait ')" ]
}
killed() {
	local pid second
	pid=$(field pid)
	kill -KILL "$pid" || return
	if [ "${TWICE:-0}" = 1 ] && [ $((RANDOM % 4)) = 0 ]; then # and the next one, somewhere on its way
		sleep "$(printf '0.%03d' $((RANDOM % 500)))"
		second=$(pgrep -f "^$daemon -f .*$mnt\$" | head -n 1)
		[ -z "$second" ] || [ "$second" = "$pid" ] || ! kill -KILL "$second" || {
			echo "twice"
			pid=$second
		}
	fi
	wait_for 90 serves_after "$pid"
}
# STEP, so often. Deaths within 2 s of each other count: not so many that the mount is given up.
each() { # STEP COUNT
	local i
	for ((i = 1; i <= $2; i++)); do
		some_ms
		echo "$1 $i" >>"$RESULTS/steps"
		"$1" >>"$RESULTS/steps" 2>&1 && alive || { echo "$1 $i"; tail -n 5 "$log"; return 1; }
		[ $((i % 4)) != 0 ] || sleep 2.5
		[ $((i % 25)) != 0 ] || all_lap || return
	done
}
check "$upgrades upgrades" each upgraded "$upgrades"
upgrade_ms=$(longest "$upgrades")
check "all go on" all_lap
check "$kills kills" each killed "$kills"
kill_ms=$(longest "$kills")
check "all go on after them" all_lap
diag "a mount took at most $mount_ms ms; requests waited at most $upgrade_ms ms for an upgrade, $kill_ms ms after a kill"
diag "$(grep -c '^twice' "$RESULTS/steps" || true) of them were killed while taking over"

# ---- the end ----

touch $work/end
for name in pair keep fsx; do pkill -TERM -P "${job[$name]}" || true; done
ends() {
	local rc=1
	wait_for $((120 + copy_mib)) test -s $work/"$1".rc && rc=$(cat $work/"$1".rc)
	tail -n 5 $work/"$1".out
	return "$rc"
}
for name in $names; do
	check "$name: no call failed, nothing was wrong" ends $name
done
check "all that was acknowledged is there" $work/pairload check $work/pair.log $export_dir/pair
check_equal "each turn was had once" "$(cat $export_dir/turns)" $(($(laps turn1) + $(laps turn2)))
check_equal "no .nfs name is left" "$(find $export_dir -name '.nfs*' | wc -l)" 0
has_model() { cmp $export_dir/fsx/f $work/model/0 && cmp $export_dir/fsx/f.b $work/model/1; }
check "the server has what the model has" has_model
check "the last wait is no longer than two mounts" test "$kill_ms" -le $((2 * mount_ms))
check "nor is one for an upgrade" test "$upgrade_ms" -le $((2 * mount_ms))
pid=$(field pid) kpid=$(field keeper)
check "unmounted" fusermount3 -u $mnt
gone() { ended "$pid" && ended "$kpid"; }
check "neither daemon nor keeper is left" wait_for 60 gone
fmount_forget $mnt || true
tap_end
