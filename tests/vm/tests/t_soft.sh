#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Mounts without an RDMA device: RoCEv2 in the process, over a wire to rxe. From a network namespace
# that has no device, by several mounts at once, by a daemon that may do nothing, without rdma-core, and
# where there is no device at all.
# tier: quick
# vm-timeout: 300

. "$(dirname "$0")/../guest/guest.sh"

unset FABRIC # it says itself which one a mount is to take
rxe_up
nfsd_up
soft_up
mnt=/mnt
server=$soft_server FMOUNT_WRAP=$soft_in
mib=4
head -c $((mib << 20)) /dev/urandom >/run/data
drop() { sync && echo 3 >/proc/sys/vm/drop_caches; }
log_says() { grep -q "$2" "$(fmount_log "$1")"; }
moves() { # MNT: data there and back, names
	rm -rf $export_dir/{data,other,dir}
	cp /run/data $export_dir/other
	cp /run/data "$1/data" && cmp /run/data $export_dir/data &&
		drop && cmp "$1/other" /run/data &&
		mkdir "$1/dir" && (cd "$1/dir" && seq 50 | xargs touch) &&
		[ "$(ls "$1/dir" | wc -l)" = 50 ] && rm -r "$1/dir"
}

# A question without a mount: by nobody in particular, without a capability, a device node or
# locked memory.
daemon_path
probe() {
	local rc=0
	$soft_in prlimit --memlock=0 setpriv --reuid 1000 --regid 1000 --clear-groups --no-new-privs \
		--bounding-set -all --inh-caps -all "$daemon" probe "$@" >/run/probe 2>&1 || rc=$?
	cat /run/probe
	return $rc
}
probe_says() { grep -Eq "$1" /run/probe || { cat /run/probe; return 1; }; }
check "a probe is answered" probe $soft_server
check "without a device" probe_says '^fabric +soft$'
check "from here" probe_says '^local address +10\.79\.0\.2$'
check "to there" probe_says "^address +${soft_server//./\\.}:20049$"
check "over a path" probe_says '^path MTU +(1024|2048|4096) bytes$'
check "in packets that there is room for" probe_says '^server writes +[1-9][0-9]* bytes at a time'
check "credits are granted" probe_says '^credits granted +[1-9]'
check "windows are invalidated by the server" probe_says '^remote invalidation +yes$'
check "five calls were answered" probe_says '^NULL calls answered +5$'
check "so it is by IPv6" probe "[$soft_server6]:20049"
check "from here" probe_says '^local address +fd79::2$'
check_fails "with fabric=verbs there is no device" probe -o fabric=verbs $soft_server
check "which is said" probe_says '^rpcrdmafs: probe: .*: no RDMA device'
check_fails "at another port nobody listens" probe $soft_server:20050
check "which is said" probe_says 'connect: Connection refused: nothing listens'
taken_here() { ! "$daemon" probe -o fabric=soft $soft_server >/run/probe 2>&1; }
check "beside rxe there is no way without the device" taken_here
check "which is said" probe_says '^rpcrdmafs: .*UDP port 4791 is taken'
check_fails "a host that is not there does not answer" probe -t 2 10.79.0.99
check "the step is named" probe_says '^rpcrdmafs: probe: 10\.79\.0\.99 at .*: (connect|resolve|route): '
chmod 700 /dev/infiniband
check "with fabric=soft nobody looks for one" probe -o fabric=soft $soft_server
chmod 755 /dev/infiniband

check "where no device leads to the server it goes without" fmount $mnt nconnect=2
check "the log says so" log_says $mnt 'no RDMA device leads to the server'
said_once() { [ "$(grep -c 'RoCEv2 is spoken by this process' "$(fmount_log $mnt)")" = 1 ]; }
check "once, though there are two lanes" said_once
check "and what it is" grep -q 'fabric *soft' <<<"$("$daemon" info $mnt)"
check "data and names go over it" moves $mnt
check "another mount shares the port" fmount /mnt2 fabric=soft
check "and works" moves /mnt2
check "so does the first one" moves $mnt
check "that one ends" funmount $mnt
check "the other goes on" moves /mnt2
check_fails "with fabric=verbs there is none" fmount $mnt fabric=verbs
check "no connection was lost" [ "$(cat "$(fmount_log $mnt)" "$(fmount_log /mnt2)" | grep -c 'lost:')" = 0 ]

# Programs that need librdmacm or libibverbs find empty files.
rdma_core=$(ldconfig -p | awk '$1 ~ /^lib(rdmacm|ibverbs)\.so\.1$/ { print $NF }')
hide() { local file; for file in $rdma_core; do mount --bind /dev/null "$file" || return; done; }
# The machine has no device then: neither a node of one nor what sysfs says of it.
devices="/dev/infiniband /sys/class/infiniband /sys/class/infiniband_verbs"
no_device() { local dir; for dir in $devices; do mount -t tmpfs none "$dir" || return; done; }

# Nobody in particular, without a capability, a device node or locked memory; beside root's mount.
own() { # OPTIONS
	exec 3<>/dev/fuse
	mount -i -t fuse.rpcrdmafs -o fd=3,rootmode=40000,user_id=1000,group_id=1000,allow_other \
		$server:/ $mnt || return
	$soft_in prlimit --memlock=0 setpriv --reuid 1000 --regid 1000 --clear-groups --no-new-privs \
		--bounding-set -all --inh-caps -all \
		"$daemon" -f -o "allow_other,$1" $server:/ /dev/fd/3 >/run/own.log 2>&1 &
	own=$!
	exec 3>&-
	stat $mnt/own >/dev/null
}
mkdir -m 777 $export_dir/own
check "rdma-core is hidden" hide
check "and there is no device at all" no_device
check "mounted by a user without any rights" own fabric=soft
check "data goes there" cp /run/data $mnt/own/data
check "and is right" cmp /run/data $export_dir/own/data
own_reads() { cp /run/data $export_dir/own/other && drop && cmp $mnt/own/other /run/data; }
check "data comes from there" own_reads
check "with as much room for packets as the system gives" grep -q 'net.core.rmem_max=[0-9]* (sysctl)' /run/own.log
check "root's mount goes on beside it" moves /mnt2
check "unmounted by root" umount $mnt
ended() { ! kill -0 $own 2>/dev/null; }
check "the daemon has ended" wait_for 30 ended
check "root's mount goes on without it" moves /mnt2
check "unmounted" funmount /mnt2

# auto_own REASON: so does fabric=auto, and this is why.
auto_own() {
	local rc=0
	own fabric=auto && grep "$1: RoCEv2 is spoken by this process" /run/own.log || rc=1
	umount $mnt && wait_for 30 ended || rc=1
	[ $rc = 0 ] || cat /run/own.log
	return $rc
}
check "fabric=auto does without the libraries" \
	auto_own 'rdma-core cannot be loaded: .*libibverbs.so.1: .*'
# shellcheck disable=SC2086  # a list
check "rdma-core is back" umount $rdma_core
check "or a device" auto_own 'no RDMA device leads to the server'
# shellcheck disable=SC2086  # a list
check "the device is back" umount $devices
chmod 700 /dev/infiniband
check "and without a device that it may not open" auto_own '/dev/infiniband/rdma_cm: Permission denied'
chmod 755 /dev/infiniband
soft_down
tap_end
