#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The name by which the server knows a mount. A mount whose daemon was killed is the same client
# again: what it had locked is free at once. One with another name waits for the lease.

. "$(dirname "$0")/guest.sh"

rxe_up
nfsd_up
mnt=/mnt
# The boot's other tests may have left theirs.
rm -rf /var/lib/rpcrdmafs

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
tap_end
