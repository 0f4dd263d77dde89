#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The name by which the server knows a mount. A mount whose daemon was killed is the same client
# again: what it had locked is free at once. One with another name waits for the lease.

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
mnt=/mnt
# Of its own: the boot's other tests leave theirs, and the folder below is the machine's that runs the VM.
mkdir -p /var/lib/rpcrdmafs
mount -t tmpfs tmpfs /var/lib/rpcrdmafs

identity() { "$daemon" info $mnt | awk '$1 == "identity" { print $NF }'; }
kept_in() { "$daemon" info $mnt | awk '$1 == "which" { print $NF }'; }
try_lock() { flock -n $mnt/file true; }
# The daemon dies with a lock, and nobody says goodbye to the server.
die_with_a_lock() {
	exec 7>$mnt/file
	flock -n 7 || return 1
	kill -KILL "${fmount_pid[$mnt]}"
	exec 7>&- || true
	umount -l $mnt
}

check "mounted" fmount $mnt rw
touch $mnt/file
first=$(identity)
file=$(kept_in)
check_equal "its name is in a file" "$(awk 'NR == 1 { print $NF }' "$file")" "$first"
check_equal "for root alone" "$(stat -c %a "$file")" 600
check "it dies with a lock" die_with_a_lock
check "mounted again" fmount $mnt rw
check_equal "under the same name" "$(identity)" "$first"
check "the lock is free at once" try_lock

check "it dies with a lock" die_with_a_lock
check "mounted under another name" fmount $mnt rw,clientid=another
check_equal "which was given" "$(identity)" another
check_fails "is another client: the lock is held" try_lock
check "unmounted" funmount $mnt
check "mounted as before" fmount $mnt rw
check_equal "is its again" "$(identity)" "$first"
check "and its lock is free" try_lock
check "unmounted" funmount $mnt

# Another host with the same machine-id, name and mountpoint, as copies of one image have: it is
# another client because its disk is another one. Each keeps its lock over a restart of the server.
twin_main() {
	mount -t tmpfs tmpfs /var/lib/rpcrdmafs
	$net "$daemon" -f -o "allow_other,$net_option" "$from:/" $mnt >/tmp/twin.log 2>&1 &
	local pid=$! word # try, or end
	wait_for 30 mountpoint -q $mnt || exit 1
	exec 6>$mnt/twin
	flock -n 6 || exit 1
	identity >/tmp/twin.identity
	echo ready >/tmp/twin.said
	while read -r word; do
		[ "$word" != end ] || break
		{ flock -n $mnt/file true && echo free || echo held; } >/tmp/twin.said
	done </tmp/twin.ask
	exec 6>&-
	umount $mnt && wait $pid
}
ask_twin() { echo "$1" >&5; timeout 60 head -n 1 /tmp/twin.said; }
rm -f /tmp/twin.*
mkfifo /tmp/twin.ask /tmp/twin.said
exec 5<>/tmp/twin.ask
own_net
export daemon from net net_option mnt
unshare -m --propagation private bash -c "$(declare -f); twin_main" >/tmp/twin.out 2>&1 &
twin=$!
check_equal "a twin with a lock is there" "$(timeout 60 head -n 1 /tmp/twin.said)" ready
check "mounted beside it" fmount $mnt rw
check "they are two clients" not same "$(identity)" "$(cat /tmp/twin.identity)"
exec 7>$mnt/file
check "ours is locked" flock -n 7
check_fails "what the twin has locked is not free" flock -n $mnt/twin true
check_equal "nor is ours to the twin" "$(ask_twin try)" held
check "the server restarts, with its grace" nfsd_restart_in_grace
check_fails "the twin has kept its lock" flock -n $mnt/twin true
check_equal "and we ours" "$(ask_twin try)" held
exec 7>&-
echo end >&5
check "the twin ends" wait $twin
check "unmounted" funmount $mnt
umount /var/lib/rpcrdmafs
tap_end
