#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# RoCEv2 in the process on wires of several kinds: packets of Ethernet's size and larger ones, IPv4
# and IPv6; one that takes less by and by; one that loses packets; one that is cut.
# vm-timeout: 420

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
mnt=/mnt
FMOUNT_WRAP=$soft_in
mib=8
head -c $((mib << 20)) /dev/urandom >/run/data
drop() { sync && echo 3 >/proc/sys/vm/drop_caches; }
lost() { grep -c 'lost:' "$(fmount_log $mnt)" || true; }
moves() {
	rm -f $export_dir/{data,other}
	cp /run/data $export_dir/other
	cp /run/data $mnt/data && cmp /run/data $export_dir/data && drop && cmp $mnt/other /run/data
}

for mtu in 9000 4200 1500; do
	soft_up $mtu
	for server in $soft_server "[$soft_server6]" "[$soft_server_link]"; do
		check "$server, MTU $mtu: mounted" fmount $mnt fabric=soft
		check "$server, MTU $mtu: data" moves
		check "$server, MTU $mtu: unmounted" funmount $mnt
	done
	soft_down
done

# The kernel here hears of it at once; the server does not, and sends large packets, until the
# connection is another one.
path_mtu() { $soft_in "$daemon" probe -o fabric=soft "$server" | sed -n 's/^path MTU *\([0-9]*\).*/\1/p'; }
for server in $soft_server "[$soft_server6]"; do
	soft_up 4200
	check "$server: mounted" fmount $mnt fabric=soft
	check_equal "$server: with large packets" "$(path_mtu)" 4096
	check "$server: data" moves
	check "$server: the path takes less" ip -n soft link set soft1 mtu 1500
	check "$server: data goes on" moves
	check "$server: on another connection" [ "$(lost)" -gt 0 ]
	check_equal "$server: with smaller packets" "$(path_mtu)" 1024
	check "$server: unmounted" funmount $mnt
	soft_down
done

# Nobody hears of it: the server's side, or a switch on the way, takes less.
server_takes_less() { ip link set soft0 mtu 1500; }
switch_takes_less() {
	modprobe -a sch_ingress cls_u32 act_gact
	# Trains are packets, as on a wire.
	ip link set soft0 gso_max_segs 1 && ip -n soft link set soft1 gso_max_segs 1 &&
		drops_large soft0 && drops_large soft1 -n soft
}
drops_large() { # DEVICE [tc's OPTIONS]: those of 2048 bytes and more, by the header of IP
	local bit
	tc "${@:2}" qdisc add dev "$1" ingress || return
	for bit in 0x0800 0x1000; do
		tc "${@:2}" filter add dev "$1" parent ffff: protocol ip prio 1 \
			u32 match u16 $bit $bit at 2 action drop || return
	done
}
writes_first() { cp /run/data $mnt/data && cmp /run/data $export_dir/data; }
reads_first() { drop && cmp $export_dir/other /run/data && cmp $mnt/other /run/data; }
server=$soft_server
for less in server switch; do
	for first in writes reads; do
		what="the $less takes less, $first first"
		soft_up 4200
		check "$what" ${less}_takes_less
		check "$what: mounted" fmount $mnt fabric=soft,timeo=50
		check "$what: data, after all" ${first}_first
		check "$what: the log says why" grep -q 'do not pass.* from now on they have 1024' "$(fmount_log $mnt)"
		check "$what: more data" moves
		check "$what: unmounted" funmount $mnt
		soft_down
	done
done

soft_up
check "mounted" fmount $mnt fabric=soft
before=$(lost)
on_soft_wire add netem loss 1%
check "a packet in a hundred is lost, and no data" moves
check "more data" moves
on_soft_wire del
check_equal "no connection was lost" "$(lost)" "$before"
check "stat tells of it" grep -q '^  packets: sent again' <<<"$("$daemon" stat $mnt)"

# Programs go on when the wire does. Until then a packet is sent again at growing intervals.
resent() { client_stats $mnt | sed -n 's/^packets_resent=//p'; }
writes() { local n; for n in $(seq 40); do echo $n >$mnt/line$n && sync $mnt/line$n && sleep 0.2 || return; done; }
before=$(resent)
writes & job=$!
sleep 2
on_soft_wire add netem loss 100%
sleep 5
on_soft_wire del
check "what was written while the wire was cut is written" wait $job
check "it is there" [ "$(cat $export_dir/line40)" = 40 ]
again=$(($(resent) - before))
diag "$again packets were sent again"
check "few packets were sent again" [ $again -lt 100 ]
check "data" moves
check "unmounted" funmount $mnt
soft_down
tap_end
