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
