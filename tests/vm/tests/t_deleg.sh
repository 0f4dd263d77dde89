#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Delegations of a real server: what they save, who breaks them, how they end.
# vm-boot: own
# vm-timeout: 600

. "$(dirname "$0")/../guest/guest.sh"

# A delegation that nobody uses for a lease is returned: not while this looks at it.
LEASE=90
rxe_up
nfsd_up
mnt=/mnt

# What our client holds, as nfsd tells it: lines of "type: deleg", "type: open".
our_states() {
	local info
	for info in /proc/fs/nfsd/clients/*/info; do
		! grep -q '^name: "rpcrdmafs' "$info" || cat "$(dirname "$info")/states"
	done
}
held() { our_states | grep -c "type: $1" || true; }
holds() { [ "$(held "$1")" = "$2" ] || { our_states; false; }; }
counted() { server_stats | stat_of "op_$1"; }
# A file on the server, read by us: nfsd delegates it.
delegated() {
	echo "${2:-one}" >"$export_dir/$1"
	# An OPEN that brings a small file along asks for none, the next one does.
	cat "$mnt/$1" && cat "$mnt/$1"
	[ "$(held deleg)" -ge 1 ] || { our_states; false; }
}
says() { [ "$(cat "$1")" = "$2" ] || { cat "$1"; false; }; }
delays() { client_stats $mnt | stat_of delays; }
returns() { counted delegreturn; }

check "mounted" fmount $mnt nconnect=2
check "mounted by the kernel" kmount /kmnt vers=4.1

# What it saves.
check "a file that is read is delegated" delegated f
check_equal "the counters tell" "$(client_stats $mnt | stat_of delegations)" 1
# A LOOKUP has two of its own: names are another matter.
attrs() { echo $(($(counted getattr) - 2 * $(counted lookup))); }
calls() { echo "$(returns) DELEGRETURN, $(counted open) OPEN, $(counted close) CLOSE, $(attrs) GETATTR"; }
again() { for _ in 1 2 3 4 5 6 7 8 9 10; do says $mnt/f one && stat $mnt/f || return; done; }
free_of_calls() { [ "$(calls)" = "$before" ] || { echo "$before before, $(calls) after"; false; }; }
before=$(calls)
check "it is read again ten times" again
check "without a call" free_of_calls

# Who breaks it, with nobody and with somebody of ours who has it open.
check "the kernel's client writes" bash -c "echo two >/kmnt/f"
check "it is gone then" holds deleg 0
check "we see it" says $mnt/f two
check "another one" delegated g
exec 7<$mnt/g
check "is open by it" holds open 0
check "the server's own program writes" bash -c "echo two >$export_dir/g"
check "it is gone then" wait_for 30 holds deleg 0
check "and claimed" holds open 1
check "who has it open reads on" cat <&7
exec 7<&-
check "who opens it sees it" says $mnt/g two
check "and it is closed" wait_for 10 holds open 0
check "another one" delegated h
check "the kernel's client changes its mode" chmod 600 /kmnt/h
check "we see that" same "$(stat -c %a $mnt/h)" 600
check "another one" delegated i
check "the kernel's client removes it" rm /kmnt/i
check_fails "and it is not there" wait_for 1 cat $mnt/i

# We ourselves: it is returned before, so nothing is called back and has to wait.
waited=$(delays)
ours() {
	local name=$1 before
	shift
	delegated "$name" || return
	before=$(returns)
	"$@" || return
	[ "$(returns)" -gt "$before" ] || { echo "not returned"; false; }
}
check "opened for writing" ours w1 bash -c "echo more >>$mnt/w1"
check_equal "it is written" "$(tail -n 1 $export_dir/w1)" more
check "truncated" ours w2 truncate -s 0 $mnt/w2
check "chmod" ours w3 chmod 640 $mnt/w3
check "renamed" ours w4 mv $mnt/w4 $mnt/w4b
check "renamed over" ours w5 mv $mnt/w4b $mnt/w5
check "linked" ours w6 ln $mnt/w6 $mnt/w6b
check "removed" ours w7 rm $mnt/w7
check "an attribute set" ours w8 setfattr -n user.x -v y $mnt/w8
check "opened, and removed" delegated w9
exec 7<$mnt/w9
check "it is renamed away" rm $mnt/w9
check_equal "and read on" "$(cat <&7)" one
exec 7<&-
check_equal "nothing had to wait" "$(delays)" "$waited"

# A lock is the server's.
check "another one" delegated l
exec 7<$mnt/l
check "is locked" flock -s -n 7
check "on the server" wait_for 5 holds lock 1
exec 7<&-
check "and given back" wait_for 10 holds lock 0

check "unmounted" funmount $mnt
check "unmounted by the kernel" kumount /kmnt
LEASE=10
check "the server restarts with a short lease" nfsd_restart
check "mounted" fmount $mnt nconnect=2
check "mounted by the kernel" kmount /kmnt vers=4.1

# It goes with the server's memory, and what it served is there again.
check "another one" delegated r
exec 7<$mnt/r
check "the server restarts" nfsd_restart
check "who has it open reads on" same "$(timeout 60 cat <&7)" one
check "opens are as good as before" timeout 60 cat $mnt/r
echo two >$export_dir/r
check "and see what changes" wait_for 10 says $mnt/r two
exec 7<&-
check "a restart with a grace period" delegated r2
exec 7<$mnt/r2
check "the server restarts" nfsd_restart_in_grace
check "who has it open reads on" same "$(timeout 60 cat <&7)" one
exec 7<&-
wait_for $((LEASE + 5)) grep -q Y /proc/fs/nfsd/v4_end_grace

# One that nobody uses is returned after a lease, and all of them at the end.
check "some more" delegated s1
check "some more" delegated s2
check "they go by themselves" wait_for $((LEASE * 3)) holds deleg 0
check "the last ones" delegated s3
check "the last ones" delegated s4
before=$(returns)
check "unmounted" funmount $mnt
check "they were returned" test "$(returns)" -ge $((before + 2))

# Another daemon does not go on with them, but knows of them.
log=$(fmount_log $mnt)
serves() { "$bin_dir/rpcrdmafs" info $mnt | sed -n 's/^ *pid  *\([0-9]*\).*/\1/p'; }
taken_over() { grep -c 'goes on for a daemon that died' "$log" || true; }
crash_seen() { [ "$(taken_over)" -gt "$1" ]; }
crash() {
	local before
	before=$(taken_over)
	kill -KILL "$(serves)"
	wait_for 60 crash_seen "$before"
}
check "mounted, to outlive its daemon" fmount $mnt nconnect=2,keep=process
check "some" delegated k1
check "some more" delegated k2
exec 7<$mnt/k2
check "one is open by it" holds open 0
check "the daemon is killed" crash
check "they are returned" wait_for 30 holds deleg 0
check "the server has it open now" holds open 1
check "who has it open reads on" same "$(cat <&7)" one
exec 7<&-
check "and closes it" wait_for 10 holds open 0
check "another one" delegated k3
before=$(taken_over)
kill -KILL "$(serves)"
check "the kernel's client writes meanwhile" timeout 60 bash -c "echo two >/kmnt/k3"
check "another daemon follows" wait_for 60 crash_seen "$before"
check "we see it" says $mnt/k3 two
check "unmounted" fusermount3 -u $mnt
fmount_forget $mnt || true
check "none is left" wait_for 20 holds deleg 0

check "mounted without" fmount $mnt nodelegation
cat $mnt/s3 $mnt/s3 >/dev/null
check "there are none" holds deleg 0
check "unmounted" funmount $mnt
check "unmounted by the kernel" kumount /kmnt
tap_end
