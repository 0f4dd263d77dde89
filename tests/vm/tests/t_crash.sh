#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# keep=process: a daemon that is killed is followed by another one. Files stay open, locks were never
# free for another client, requests that were not answered are answered by the
# successor, and whoever lost data hears of it. A keeper that is killed alone is replaced. A daemon
# that dies again and again is given up, and the mount fails instead of hanging. The end leaves
# nothing behind.
# vm-timeout: 400

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
mnt=/mnt knt=/knt
mkdir -p "$bin_dir"
cp "$BUILD_DIR/tests/vm/keepopen" "$bin_dir/"
in_ram python3
log=$(fmount_log $mnt)
info() { "$bin_dir/rpcrdmafs" info $mnt; }
field() { info | sed -n "s/^ *$1  *\([0-9]*\).*/\1/p"; }
serves() { field pid; }
keeper() { field keeper; }
taken_over() { grep -c 'goes on for a daemon that died' "$log"; }
crash_seen() { [ "$(taken_over)" -gt "$1" ]; }
# The daemon is killed, and its successor serves.
crash() {
	local before pid
	before=$(taken_over)
	pid=$(serves)
	kill -KILL "$pid"
	wait_for 60 crash_seen "$before"
}

check "mounted" fmount $mnt rw,nconnect=2,allow_other,keep=process
first=$(stat -c %t $mnt)
check "a keeper is there" runs "$(keeper)"
check_equal "by its name" "$(tr '\0' ' ' </proc/"$(keeper)"/cmdline)" "rpcrdmafs: keeper $mnt "

# ---- at rest, with a little of everything open ----

echo one >$export_dir/append
head -c 3000000 /dev/urandom >/tmp/data
cp /tmp/data $export_dir/data
mkdir $export_dir/list
(cd $export_dir/list && seq -f 'entry-%05.0f' 1 4000 | xargs touch)
exec 7>>$mnt/append 6<$mnt/data 5<>$mnt/gone
echo "without a name" >&5
sync -f $mnt/append
rm $mnt/gone
head -c 1000000 <&6 >/tmp/read
check_equal "the server keeps the removed one" "$(find $export_dir -maxdepth 1 -name '.nfs*' | wc -l)" 1
flock -x 7
flock -x $mnt/append -c 'echo asleep' >/tmp/asleep 2>&1 &
sleeper=$!
wait_for 20 grep -q '^73 ' /proc/$sleeper/syscall
cat >/tmp/list.py <<'EOT'
import os, sys, time
seen = []
with os.scandir(sys.argv[1]) as entries:
    for e in entries:
        seen.append(e.name)
        if len(seen) % 1000 == 0:
            open(sys.argv[2], "a").write("%d\n" % len(seen))
            while os.path.exists(sys.argv[3]):
                time.sleep(0.02)
print(len(seen), len(set(seen)))
EOT
: >/tmp/hold
python3 /tmp/list.py $mnt/list /tmp/at /tmp/hold >/tmp/listed 2>&1 &
lister=$!
wait_for 60 grep -q 1000 /tmp/at
check "the kernel's client mounts" kmount $knt
check "it does not get the lock" not flock -n $knt/append true

before=$(serves)
check "another daemon follows" crash
check "by another process" test "$(serves)" != "$before"
check_equal "on the same device" "$(stat -c %t $mnt)" "$first"
check "which has a keeper" runs "$(keeper)"
check "the lock is still held" not flock -n $knt/append true
check "who waits for it waits" not test -s /tmp/asleep
echo two >&7
cat <&6 >>/tmp/read
check "the open file was read on" cmp /tmp/read /tmp/data
check_equal "the one without a name is there" "$(cat /proc/$$/fd/5)" "without a name"
rm /tmp/hold
check "the directory was listed" wait $lister
check_equal "to its end" "$(cat /tmp/listed)" "4000 4000"
flock -u 7
check "who waited has the lock" wait $sleeper
check_equal "and said so" "$(cat /tmp/asleep)" asleep
exec 7>&- 6<&- 5>&-
check_equal "what was written is there" "$(tr '\n' ' ' <$export_dir/append)" "one two "
check "the removed one is gone" wait_for 20 bash -c "[ -z \"\$(find $export_dir -maxdepth 1 -name '.nfs*')\" ]"
check "the lock can be had" flock -n $knt/append true
check_equal "info counts it" "$(field 'daemons that died')" 1

# ---- the keeper alone ----

before=$(keeper)
kill -KILL "$before"
replaced() { local now; now=$(keeper); [ -n "$now" ] && [ "$now" != "$before" ] && runs "$now"; }
check "a keeper that is killed is replaced" wait_for 20 replaced
check "the mount goes on" bash -c "echo three >>$mnt/append"
check "and outlives the next crash" crash

# ---- an upgrade, which is no crash ----

before=$(keeper)
pid=$(serves)
exec 7>>$mnt/append
check "upgraded" "$bin_dir/rpcrdmafs" upgrade $mnt
check_equal "by the same process" "$(serves)" "$pid"
check "it has another keeper" replaced
check "the one before is gone" wait_for 20 not runs "$before"
check "it outlives the next crash as well" crash
echo four >&7
exec 7>&-
check_equal "all is there" "$(tr '\n' ' ' <$export_dir/append)" "one two three four "

# ---- requests that are not answered ----

nfsd_stop
(cat $mnt/data >/tmp/late; echo $? >/tmp/late.rc) &
reader=$!
mkdir $mnt/made &
maker=$!
in_request() { grep -q request_wait_answer "/proc/$1/stack"; }
wait_for 20 in_request $maker
pid=$(serves)
kill -KILL "$pid"
died() { grep -c 'another one takes the mount over' "$log"; }
wait_for 20 bash -c "[ \$(grep -c 'another one takes the mount over' '$log') -ge 4 ]"
check "while the server is away programs wait" kill -0 $maker
before=$(taken_over)
GRACE=keep nfsd_start
check "the successor goes on when it is back" wait_for 90 crash_seen "$before"
end_grace
check "who waited to read has read" wait $reader
check_equal "all of it" "$(cat /tmp/late.rc; cmp /tmp/late /tmp/data && echo same)" "0
same"
check "who waited to make a directory has made it" wait $maker
check "it is there" test -d $export_dir/made
check "the kernel's client unmounts" kumount $knt

# ---- under load ----

keep_log=$RESULTS/keepopen
laps() { grep -c ^lap "$keep_log"; }
has_lapped() { [ "$(laps)" -ge $(($1 + 1)) ] || grep -q ^keepopen: "$keep_log"; }
keep_open() {
	local rc=0 load i
	: >"$keep_log"
	mkdir $export_dir/keep
	"$bin_dir/keepopen" $mnt/keep $export_dir/keep >>"$keep_log" 2>&1 &
	load=$!
	for ((i = 1; i <= 10; i++)); do
		wait_for 100 has_lapped "$(laps)" || break
		! grep -q ^keepopen: "$keep_log" || break
		echo "crash $i" >>"$keep_log"
		crash || break
	done
	wait_for 100 has_lapped "$(laps)" || true
	kill -TERM $load
	wait $load || rc=$?
	cat "$keep_log"
	[ $rc = 0 ] && [ $i = 11 ]
}
check "a mixed load goes on over ten crashes" keep_open
check_equal "there were" "$(taken_over)" 14

# ---- for good ----

kpid=$(keeper)
pid=$(serves)
check "unmounted" fusermount3 -u $mnt
gone() { ! runs "$pid" && ! runs "$kpid"; }
check "neither daemon nor keeper is left" wait_for 30 gone
fmount_forget $mnt || true
forgotten() { [ -z "$(ls /proc/fs/nfsd/clients)" ]; }
check "the server forgets the client" wait_for 10 forgotten

# ---- one that dies again and again ----

check "mounted again" fmount $mnt rw,keep=process
again() {
	local i pid
	for ((i = 0; i < 200; i++)); do
		grep -q 'the mount is given up' "$log" && return 0
		pid=$(pgrep -f "rpcrdmafs -f .*$mnt" | head -1)
		if [ -n "$pid" ]; then
			kill -KILL "$pid"
		elif timeout 10 ls $mnt 2>&1 | grep -q 'not connected'; then
			return 0 # it was killed when it had no keeper yet
		fi
		sleep 0.1
	done
	return 1
}
check "one that dies again and again is given up" again
check "the mount fails" not timeout 10 ls $mnt
check "and can be taken away" fusermount3 -u $mnt
check "no process is left" wait_for 20 not pgrep -f "rpcrdmafs.*$mnt"
fmount_forget $mnt || true
tap_end
