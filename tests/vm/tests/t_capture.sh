#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A capture of a mount beside tcpdump's of the wire that it went over: tshark
# must make the same of both, message by message, and see the calls that the
# client and the server counted. Of most RDMA devices nobody sees the wire; rxe's
# is an Ethernet device.
# vm-boot: own
# tier: quick
# vm-timeout: 480
# vm-fabric: verbs

# shellcheck source-path=SCRIPTDIR source=../guest/guest.sh
. "$(dirname "$0")/../guest/guest.sh"
# shellcheck source-path=SCRIPTDIR source=../guest/capture_lib.sh
. "$(dirname "$0")/../guest/capture_lib.sh"

rxe_up
nfsd_up
wire_up
# shellcheck disable=SC2034,SC2154  # guest.sh's
server=$wire_server client=$wire_client
mnt=/mnt
cap=/run/capture
mkdir -p $cap
# A listing that comes in a Reply chunk.
for i in $(seq 300); do : >"$export_dir/a-name-of-some-length-$i"; done
head -c 700001 /dev/urandom >$cap/large
head -c 10003 /dev/urandom >$cap/small
# Else it loads for minutes over 9p.
in_ram tshark tcpdump /usr/share/wireshark "$(dirname "$(ldconfig -p | awk '/libwireshark.so/ { print $NF; exit }')")"/libw*

both() {
	local mode=$1 dir=$cap/$1
	mkdir "$dir"
	: >"$(fmount_log $mnt)"
	echo before >"$export_dir/called-back-$mode"
	check "$mode: tcpdump listens" wire_capture wire1 "$dir/wire.pcap"
	server_stats >"$dir/before"
	check "$mode: mounted" fmount $mnt "memreg=$mode,stats,capture=$dir/ours.pcapng,capture_data"
	check "$mode: a file is read" cat $mnt/ro/file
	check "$mode: worked" work "$mode"
	check "$mode: unmounted" funmount $mnt
	server_stats >"$dir/after"
	check "$mode: tcpdump has all" wire_capture_end
	final_stats "$(fmount_log $mnt)" >"$dir/stats"
	cp "$dir/ours.pcapng" "$RESULTS/$mode.pcapng"
	cp "$dir/wire.pcap" "$RESULTS/$mode.wire.pcap"
	check_equal "$mode: the capture is its owner's" "$(stat -c %a "$dir/ours.pcapng")" 600
	compare "$mode" "$dir" "$client" "$server"
}

both static
both mw

# ---- limits ----

check "without data: mounted" fmount $mnt "capture=$cap/messages.pcapng"
echo before >$export_dir/called-back-no
check "without data: a file is read" cat $mnt/ro/file
check "without data: worked" work no
check "without data: unmounted" funmount $mnt
size=$(stat -c %s $cap/messages.pcapng)
diag "messages alone: $size bytes; with data: $(stat -c %s $cap/mw/ours.pcapng)"
check "without data: the file is small" test "$size" -lt 300000
check_fails "a file that is there is not written to" fmount $mnt "capture=$cap/messages.pcapng"
check "and the user is told" grep -q 'capture=.*: File exists: remove it' "$(fmount_log $mnt)"
check "limited: mounted" fmount $mnt "capture=$cap/limited.pcapng,capture_data,capture_size=1"
for i in 1 2 3; do cp $cap/large $mnt/$i; done
check "limited: unmounted" funmount $mnt
check_equal "limited: the log says so once" "$(grep -c 'the capture ended' "$(fmount_log $mnt)")" 1
check "limited: the file is no longer than that" test "$(stat -c %s $cap/limited.pcapng)" -le 1048576
check "limited: and can be read to its end" tshark -n -r $cap/limited.pcapng -c 1000000
tap_end
