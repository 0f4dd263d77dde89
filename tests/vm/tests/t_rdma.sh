#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Bulk data goes by RDMA, once and uncopied: what the client counted and what
# the server counted agree. Both ways of exposing memory.
# vm-timeout: 240

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
mnt=/mnt
mib=24
head -c $((mib << 20)) /dev/urandom >/tmp/data

# Server counters before and after, as the difference of one of them.
declare -A before=()
server_mark() {
	local line
	while read -r line; do before[${line%%=*}]=${line#*=}; done < <(server_stats)
}
server_since() { echo $(($(server_stats | stat_of "$1") - ${before[$1]:-0})); }
client() { stat_of "$1" <<<"$stats"; }
at_least() { [ "$1" -ge "$2" ] || { echo "$1 is less than $2"; false; }; }

transfer() {
	local mode=$1
	check "$mode: mounted" fmount $mnt "memreg=$mode"
	server_mark
	check "$mode: written by O_DIRECT" dd if=/tmp/data of=$mnt/direct bs=1M oflag=direct conv=fsync
	check "$mode: written" dd if=/tmp/data of=$mnt/cached bs=64k conv=fsync
	check "$mode: the server has it" cmp /tmp/data $export_dir/direct
	check "$mode: and it" cmp /tmp/data $export_dir/cached
	check "$mode: read by O_DIRECT" bash -c "dd if=$mnt/direct bs=1M iflag=direct | cmp - /tmp/data"
	check "$mode: read" cmp $mnt/cached /tmp/data
	stats=$(client_stats $mnt)
	check_equal "$mode: bytes written" "$(client bytes_written)" $((2 * mib << 20))
	check "$mode: bytes read" at_least "$(client bytes_read)" $((2 * mib << 20))
	check_equal "$mode: no payload of 16 KiB or more was copied" "$(client copied_bytes_large)" 0
	check_equal "$mode: WRITEs, client and server" "$(client op_WRITE)" "$(server_since op_write)"
	check_equal "$mode: READs, client and server" "$(client op_READ)" "$(server_since op_read)"
	check "$mode: each WRITE of 4 KiB and more by Read chunk" \
		at_least "$(client read_chunks)" "$(client op_WRITE)"
	check "$mode: the server did RDMA Reads" at_least "$(server_since read)" "$(client read_chunks)"
	check "$mode: the server did RDMA Writes" at_least "$(server_since write)" "$(client write_chunks)"
	check "$mode: READs by Write chunk" at_least "$(client write_chunks)" $((2 * mib))
	diag "$(grep -E 'rpcs|inline|chunk|copied|mw_|inval|op_(READ|WRITE|COMMIT)=' <<<"$stats" | tr '\n' ' ')"
	rm $mnt/direct $mnt/cached
	check "$mode: unmounted" funmount $mnt
}

# A question without a mount, by the device.
daemon_path
probe() {
	local rc=0
	"$daemon" probe "$@" >/tmp/probe 2>&1 </dev/null || rc=$?
	cat /tmp/probe
	return $rc
}
probe_says() { grep -Eq "$1" /tmp/probe || { cat /tmp/probe; return 1; }; }
check "a probe is answered" probe "$server"
check "by a device" probe_says '^fabric +verbs$'
check "which is named" probe_says '^device +rxe'
check "over a path" probe_says '^path MTU +(1024|2048|4096) bytes$'
check "credits are granted" probe_says '^credits granted +[1-9]'
check "nfsd says its inline sizes" probe_says '^  server sends +[1-9]'
check "and invalidates windows" probe_says '^remote invalidation +yes$'
check "five calls were answered" probe_says '^NULL calls answered +5$'
check "without windows too" probe -o memreg=static "$server"
check_fails "at another port nobody listens" probe "$server:20050"
check "which is said" probe_says 'connect: Connection refused: nothing listens'
check_fails "a host that is not there does not answer" probe -t 5 10.77.0.99
check "the step is named" probe_says '^rpcrdmafs: probe: 10\.77\.0\.99 at .*: (connect|resolve|route): '
check_equal "no queue pair is left" "$(rdma resource show qp | grep -c ' pid [1-9]')" 0
check "and no client at the server" [ -z "$(ls /proc/fs/nfsd/clients)" ]

transfer mw,write=eager
check "windows were bound" at_least "$(client mw_binds)" 1
check "and invalidated by the server" at_least "$(client remote_invals)" "$(client mw_binds)"
transfer mw
check "pieces were joined" at_least "$(client writes_coupled)" $((8 * mib))
check "and each window invalidated" at_least \
	$(($(client remote_invals) + $(client local_invals))) "$(client mw_binds)"
transfer static
check_equal "no window was bound" "$(client mw_binds)" 0
check_equal "no queue pair is left" "$(rdma resource show qp | grep -c ' pid [1-9]')" 0
tap_end
