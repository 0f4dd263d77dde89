#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# keep=process: a daemon that is killed is followed by another one. Files stay open, locks were never
# free for another client, requests that were not answered are answered by the
# successor, and whoever lost data hears of it. A keeper that is killed alone is replaced. A daemon
# that dies again and again is given up, and the mount fails instead of hanging. The end leaves
# nothing behind. With keep=tables data that was not durable is an error, once.
# vm-timeout: 400

. "$(dirname "$0")/../guest/guest.sh"
. "$(dirname "$0")/../guest/open_lib.sh"

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

hold_open

before=$(serves)
kpid=$(keeper)
check "another daemon follows" crash
check "by another process" test "$(serves)" != "$before"
check_equal "on the same device" "$(stat -c %t $mnt)" "$first"
check_equal "the keeper stays" "$(keeper)" "$kpid"
held_open
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
check_equal "the keeper stays" "$(keeper)" "$before"
cp "$bin_dir/rpcrdmafs" "$bin_dir/another"
check "upgraded to another program" "$bin_dir/rpcrdmafs" upgrade $mnt "$bin_dir/another"
is_another() { [ "$(readlink "/proc/$(keeper)/exe")" = "$(readlink -f "$bin_dir/another")" ]; }
check "the keeper becomes that as well" wait_for 20 is_another
check_equal "by the same process" "$(keeper)" "$before"
check "it outlives the next crash as well" crash
program() { readlink "/proc/$(serves)/exe"; }
check_equal "as that program" "$(program)" "$(readlink -f "$bin_dir/another")"
check "and one more" crash
check "but a third one in its first minute" crash
check_equal "brings the program of before" "$(program)" "$(readlink -f "$bin_dir/rpcrdmafs")"
check "which says why" grep -q 'died 3 times in its first minute' "$log"
sleep 2.2 # those so far do not count any more
echo four >&7
exec 7>&-
check_equal "all is there" "$(tr '\n' ' ' <$export_dir/append)" "one two three four "

# ---- requests that are not answered ----

nfsd_stop
(cat $mnt/data >/tmp/late; echo $? >/tmp/late.rc) &
reader=$!
mkdir $mnt/made &
maker=$!
wait_for 20 in_request $maker
pid=$(serves)
kill -KILL "$pid"
died() { grep -c 'another one takes the mount over' "$log"; }
wait_for 20 bash -c "[ \$(grep -c 'another one takes the mount over' '$log') -ge 6 ]"
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

check "a mixed load goes on over ten crashes" keep_open crash
check_equal "there were" "$(taken_over)" 16

# ---- while the kernel waits ----

check "the kernel's client mounts" kmount $knt
mkdir $mnt/held
touch $mnt/held/{a,b,c}
freeze new
before=$(taken_over)
deaths=$(died)
died_again() { [ "$(died)" -gt "$deaths" ]; }
kill -KILL "$(serves)"
check "another daemon is started nevertheless" wait_for 30 died_again
check "the notifier still waits" waits_in_kernel
fsfreeze -u $export_dir
check "it serves" wait_for 60 crash_seen "$before"
check "the directory is made" wait $maker
check "the other one is listed" wait $reader
check_equal "with it" "$(tr '\n' ' ' </tmp/held)" "a b c new "
one_notifier() { [ "$(pgrep -f "rpcrdmafs: notifier $mnt" | wc -l)" = 1 ]; }
check "the notifier of before has ended" wait_for 20 one_notifier
check "the kernel's client unmounts" kumount $knt

# ---- for good ----

kpid=$(keeper)
pid=$(serves)
check "unmounted" fusermount3 -u $mnt
gone() { ! runs "$pid" && ! runs "$kpid" && ! pgrep -f "rpcrdmafs: notifier $mnt"; }
check "neither daemon nor keeper nor notifier is left" wait_for 30 gone
fmount_forget $mnt || true
forgotten() { [ -z "$(ls /proc/fs/nfsd/clients)" ]; }
check "the server forgets the client" wait_for 10 forgotten

# ---- keep=tables ----

# Writes without fsync, and tells what fsync says then, and once more.
cat >/tmp/loses.py <<'END'
import errno, os, sys
fd = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
os.write(fd, b"x" * 100000)
print("written", flush=True)
sys.stdin.readline()
for _ in range(2):
    try:
        os.fsync(fd)
        print("none", flush=True)
    except OSError as e:
        print(errno.errorcode[e.errno], flush=True)
os.pwrite(fd, b"y" * 100000, 0)
os.fsync(fd)
print("durable", flush=True)
END
mkfifo /tmp/loses.go /tmp/loses.said
check "mounted, and data is not kept" fmount $mnt rw,keep=tables,write=lazy
check_equal "info says so" "$(info | sed -n 's/^ *keep  *\([a-z]*\).*/\1/p')" tables
python3 /tmp/loses.py $mnt/loses </tmp/loses.go >/tmp/loses.said &
loser=$!
exec 8>/tmp/loses.go 9</tmp/loses.said
says() { local line; read -r -t 60 -u 9 line; echo "$line"; }
check_equal "a program writes" "$(says)" written
check "another daemon follows" crash
echo >&8
check_equal "what was not durable is an error" "$(says)" EIO
check_equal "once" "$(says)" none
check_equal "then the file is as any other" "$(says)" durable
check "the program ends" wait $loser
exec 8>&- 9<&-
check_equal "the server has it" "$(head -c 100000 /dev/zero | tr '\0' y | cmp - $export_dir/loses && echo same)" same
pid=$(serves)
check "unmounted" fusermount3 -u $mnt
check "the daemon ends" wait_for 30 ended "$pid"
fmount_forget $mnt || true

# ---- one that dies again and again ----

given_up() { grep -c 'the mount is given up' "$log" || true; }
again() {
	local i pid before
	before=$(given_up)
	for ((i = 0; i < 200; i++)); do
		[ "$(given_up)" = "$before" ] || return 0
		pid=$(pgrep -f "rpcrdmafs -f .*$mnt" | head -1)
		[ -n "$pid" ] && kill -KILL "$pid"
		sleep 0.1
	done
	return 1
}
check "mounted again" fmount $mnt rw,keep=process
check "one that dies again and again is given up" again
check "the mount fails" not timeout 10 ls $mnt
check "and can be taken away" fusermount3 -u $mnt
check "no process is left" wait_for 20 not pgrep -f "rpcrdmafs.*$mnt"
fmount_forget $mnt || true
# As above, but nobody will answer what the notifier waits for.
check "mounted again" fmount $mnt rw,keep=process
check "the kernel's client mounts" kmount $knt
freeze newer
check "one that dies again and again meanwhile is given up" again
check "who waits for it fails" not wait $maker
check "no process is left" wait_for 20 not pgrep -f "rpcrdmafs.*$mnt"
fsfreeze -u $export_dir
wait $reader || true
check "it can be taken away" fusermount3 -u $mnt
kumount $knt
fmount_forget $mnt || true
tap_end
