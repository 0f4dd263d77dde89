#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The mount goes on with another program in the same process, again and again, under a load that
# keeps files open and locked: no call fails, nothing that was acknowledged is lost, and no lock is
# free for a moment. Whoever sleeps for a lock sleeps on; a directory is listed to its end; a file
# without a name stays; a program that cannot go on gives the mount back.
# vm-timeout: 500

. "$(dirname "$0")/../guest/guest.sh"
. "$(dirname "$0")/../guest/open_lib.sh"

rxe_up
nfsd_up
mnt=/mnt knt=/knt
mkdir -p "$bin_dir"
cp "$BUILD_DIR/tests/vm/keepopen" "$bin_dir/"
in_ram python3
log=$(fmount_log $mnt)
upgrade() { "$bin_dir/rpcrdmafs" upgrade $mnt "$@"; }
set_to() { "$bin_dir/rpcrdmafs" set $mnt "$@"; }
info_has() { "$bin_dir/rpcrdmafs" info $mnt | grep -qE "^ *$1( |$)"; }
upgrades() { grep -c 'has taken over from' "$log"; }

check "mounted" fmount $mnt rw,nconnect=2,allow_other
pid=$(daemon_pid $mnt)
first=$(stat -c %t $mnt)

# ---- one at rest, with a little of everything open ----

hold_open

check "upgraded" upgrade
check_equal "by the same process" "$(daemon_pid $mnt) $(runs "$pid" && echo runs)" "$pid runs"
check_equal "that is another program" "$(upgrades)" 1
check_equal "on the same device" "$(stat -c %t $mnt)" "$first"
held_open
check "the kernel's client unmounts" kumount $knt

cp "$bin_dir/rpcrdmafs" $mnt/program
check "a program on the mount itself is refused" not upgrade $mnt/program
rm $mnt/program
limit=$(ulimit -f)
prlimit --pid "$pid" --fsize=256
check "so is one that has no room for the tables" not upgrade
prlimit --pid "$pid" --fsize="$limit"
check_equal "the mount goes on, as it was" "$(daemon_pid $mnt) $(upgrades)" "$pid 1"

# ---- under load ----

upgrade_nr() { upgrade; }
check "a mixed load goes on over ten upgrades" keep_open upgrade_nr
check_equal "they were" "$(upgrades)" 11
check "none was lost" not grep "does not give back" "$log"
check "nothing was reclaimed" not grep -i "reclaim" "$log"

# ---- programs that cannot ----

check_fails "one that is none is refused" upgrade /bin/true
check_equal "with the reason" "$(upgrade /bin/false 2>&1 | grep -c 'cannot take over')" 1
cp /bin/true /tmp/others
chmod 777 /tmp/others
check_fails "one that others may write to" upgrade /tmp/others
check "the mount goes on" bash -c "echo three >>$mnt/append && cat $mnt/append >/dev/null"
check_equal "nothing has changed" "$(upgrades)" 11

# A script: its interpreter cannot open it by our descriptor.
printf '#!/bin/sh\necho "rpcrdmafs can resume"\n' >/tmp/script
chmod 755 /tmp/script
check_fails "one that is not executed" upgrade /tmp/script
check "the mount goes on" bash -c "echo four >>$mnt/append"
check_equal "nothing has changed" "$(upgrades)" 11
check "another could" upgrade --check "$bin_dir/rpcrdmafs"
check_equal "and has not" "$(upgrades)" 11

# ---- the server is away meanwhile ----

# Without delegations: these cannot be returned while it is away, which an upgrade waits for.
check "unmounted" funmount $mnt
check "mounted without delegations" fmount $mnt rw,nconnect=2,allow_other,nodelegation
check "the kernel's client mounts" kmount $knt
# In a process of its own: each close() of a copy of the descriptor is a request to the mount.
rm -f /tmp/held /tmp/go # another test on this machine may have had them
mkfifo /tmp/go
bash -c "exec 7>>$mnt/append; flock -x 7; : >/tmp/held; read -r _ </tmp/go; echo five >&7" &
holder=$!
wait_for 20 test -e /tmp/held
nfsd_stop
set_to write=wait >/tmp/away 2>&1 &
upgrader=$!
check "a program that does not come up gives the mount back" \
	wait_for 60 grep -q "gives the mount back to the one before" "$log"
GRACE=keep nfsd_start
check "which goes on when the server is back" wait_for 60 grep -q "goes on, as the program" "$log"
end_grace
check "the lock is still held" not flock -n $knt/append true
echo >/tmp/go
check "the open file is written" wait $holder
check "whoever asked is told" not wait $upgrader
check "why" grep -q "could not go on, and the one before does: [a-z]*: " /tmp/away
check "its options are those of before" info_has "write +lazy"
check_equal "all is there" "$(tr '\n' ' ' <$export_dir/append)" "one two three four five "
check "upgraded again" upgrade
check_equal "it was" "$(upgrades)" 12

# ---- other options ----

bash -c "exec 7>>$mnt/append; flock -x 7; : >/tmp/held2; read -r _ </tmp/go; echo six >&7" &
holder=$!
wait_for 20 test -e /tmp/held2
check "other options, and fewer lanes" set_to write=eager,nconnect=1,timeo=300
check "they are in force" info_has "write +eager"
check "and named" info_has "set while mounted +write=eager,nconnect=1,timeo=300"
check "one of them again" set_to write=wait
check "the others stay" info_has "set while mounted +nconnect=1,timeo=300,write=wait"
check "an upgrade leaves them" upgrade
check "as they were" info_has "write +wait"
check "more lanes" set_to nconnect=3
check "now it outlives its daemon" set_to keep=process
crashed() { grep -q 'goes on for a daemon that died' "$log"; }
kill -KILL "$("$bin_dir/rpcrdmafs" info $mnt | sed -n 's/^ *pid  *//p')"
check "when that is killed" wait_for 60 crashed
check "with these options" info_has "set while mounted +timeo=300,write=wait,nconnect=3,keep=process"
check "and now not" set_to keep=no
check "no keeper is left" wait_for 20 not pgrep -f "rpcrdmafs: keeper $mnt"
check_fails "one that needs another mount" set_to vers=4.1
check_equal "is named" "$(set_to vers=4.1 2>&1 | grep -c 'option vers=4.1 cannot be changed while it is mounted')" 1
check_fails "one that is none" set_to "write=eager,more words"
check_fails "one that no unit offers" set_to keep=systemd
check "the lock is still held" not flock -n $knt/append true
echo >/tmp/go
check "the open file is written" wait $holder
check_equal "all is there" "$(tr '\n' ' ' <$export_dir/append)" "one two three four five six "
check "the kernel's client unmounts" kumount $knt

check "unmounted" fusermount3 -u $mnt
fmount_forget $mnt || true # the daemon that it has started is dead
forgotten() { [ -z "$(ls /proc/fs/nfsd/clients)" ]; }
check "the server forgets the client" wait_for 10 forgotten
tap_end
