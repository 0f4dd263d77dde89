# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: BSD-3-Clause
#
# A second client: what one wrote and closed the other sees when it opens; what
# one locked the other does not get; what one has open for reading the other
# may change.

mount_both
need_kernel
# Both know that it is there: names are not what is at stake.
on client "mkdir /mnt/ours/second && echo first >/mnt/ours/second/file"

# On the client, FROM and TO are mounts: TO has read what FROM then writes.
for pair in "ours kernel" "kernel ours"; do
	read -r from to <<<"$pair"
	for size in 1 5000 300000; do
		check "$to sees $size bytes that $from wrote" on client "sees $from $to $size"
	done
	check "$to sees that $from cut a file" on client "sees $from $to 77"
	check "$to sees what $from appended" on client "sees_appended $from $to"
done
check_fails "old content is noticed" on client "is_seen_wrong kernel"

for kind in posix flock; do
	check "$kind: what we hold the other does not get" on client "locks conflict $kind ours kernel"
	check "$kind: nor the other way round" on client "locks conflict $kind kernel ours"
	check "$kind: each waits for the other" on client "locks block $kind ours kernel"
done

declare -A took=()
for pair in "ours kernel" "kernel ours"; do
	read -r reader writer <<<"$pair"
	# By neither client: nfsd delegates no file that it has open for writing still.
	on server "echo old >$export_dir/second/recall-$reader"
	check "$reader reads a file again and again" on client "reader_start $reader"
	if on server "states deleg second/recall-$reader $reader" >"$tmp/states"; then
		diag "the server had delegated the file to $reader"
	else
		diag "no delegation to $reader"
	fi
	check "$writer writes to it in time" on client "writer $writer recall-$reader $LEASE"
	took[$reader]=$(on client "cat /run/pair/took")
	check "$reader sees it" on client reader_sees
	check "its delegation is gone" on server "no_states deleg second/recall-$reader $reader"
	check "$reader ends well" on client reader_end
done
row "another client writes to a file that is open for reading: it waits" "${took[ours]} s" "${took[kernel]} s"

umount_both
tap_end
