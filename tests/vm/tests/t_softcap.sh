#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A capture of a mount without a device beside tcpdump's of the wire that it went over: the same
# frames, in each direction, byte for byte; and tshark makes the same of both. Without contents of
# files these are cut off, and nothing else is. One that begins later knows the connection.
# tshark 4.0 mis-dissects RoCEv2 on IPv6: over that (SOFT_IP=6) the frames are compared alone.
# vm-boot: own
# vm-timeout: 480

# shellcheck source-path=SCRIPTDIR source=../guest/guest.sh
. "$(dirname "$0")/../guest/guest.sh"
# shellcheck source-path=SCRIPTDIR source=../guest/capture_lib.sh
. "$(dirname "$0")/../guest/capture_lib.sh"

rxe_up
nfsd_up
soft_up
server=$soft_server client=10.79.0.2
[ "${SOFT_IP:-4}" = 4 ] || client=fd79::2
FMOUNT_WRAP=$soft_in
# Else the device takes long datagrams as they are, and tcpdump sees these.
ip -n soft link set soft1 gso_max_segs 1
mnt=/mnt
cap=/run/capture
mkdir -p $cap
# A listing that comes in a Reply chunk.
for i in $(seq 300); do : >"$export_dir/a-name-of-some-length-$i"; done
secret="what nobody is to see. "
yes "$secret" | head -c 700001 >$cap/large || true
yes "$secret" | head -c 10003 >$cap/small || true
# Else it loads for minutes over 9p.
in_ram tshark tcpdump python3 /usr/share/wireshark "$(dirname "$(ldconfig -p | awk '/libwireshark.so/ { print $NF; exit }')")"/libw*

# same_frames OURS WIRE CLIENT [cut]: each frame of our capture is on the wire and the other way
# round: addresses, ports, type of service, length, IPv4's Identification, and all from the BTH to
# the ICRC. cut: payload of RDMA Writes and Read responses may be cut off, which is the case for
# some, and nothing else is. Of the wire what follows our last DREQ may be missing, and what comes
# twice behind all that the client got: it parts, and nobody is there for it. The second one has
# another Identification, and so another ICRC.
same_frames() {
	python3 - "$@" <<-'END'
	import collections, socket, struct, sys

	def blocks(data):
	    at = 0
	    while at < len(data):
	        kind, size = struct.unpack_from('<II', data, at)
	        if kind == 6:
	            there, whole = struct.unpack_from('<II', data, at + 20)
	            yield data[at + 28:at + 28 + there], whole
	        at += size

	def records(data):
	    at = 24
	    while at + 16 <= len(data):
	        there, whole = struct.unpack_from('<II', data, at + 8)
	        yield data[at + 16:at + 16 + there], whole
	        at += 16 + there

	# Of the IP header all but its checksum, TTL or hop limit, and flow label. number: the
	# Identification, 0 of IPv6.
	Key = collections.namedtuple('Key', 'source target number ip ports bth')

	def frames(path):
	    with open(path, 'rb') as f:
	        data = f.read()
	    for frame, whole in (blocks if data[:4] == b'\n\r\r\n' else records)(data):
	        if frame[12:15] == b'\x08\0\x45' and frame[23] == 17:
	            at, size, number = 34, 4, frame[18:20]
	            ip = frame[15:18] + frame[20:22]
	        elif frame[12:14] == b'\x86\xdd' and frame[20] == 17:
	            at, size, number = 54, 16, b'\0\0'
	            ip = bytes((frame[14], frame[15] & 0xf0)) + frame[18:20]
	        else:
	            continue
	        source, target = frame[at - 2 * size:at - size], frame[at - size:at]
	        udp = frame[at + 8:]
	        yield Key(source, target, number, ip, frame[at:at + 6], udp[:12]), udp, whole - at - 8

	def address(source):
	    return socket.inet_ntop(socket.AF_INET6 if len(source) == 16 else socket.AF_INET, source)

	def told(key, udp):
	    mad = ', attribute %#x' % struct.unpack_from('>H', udp, 36) if udp[0] == 0x64 else ''
	    return '%s opcode %#x, PSN %d%s, %d bytes' % (
	        address(key.source), udp[0], int.from_bytes(udp[9:12], 'big'), mad, len(udp))

	ours, wire, client = sys.argv[1:4]
	may_cut = len(sys.argv) > 4
	seen, at, faults, dreq = collections.defaultdict(list), 0, [], 0
	cut = total = trains = 0
	had, last = set(), 0
	for at, (key, udp, whole) in enumerate(frames(wire)):
	    seen[key].append((at, udp))
	    if whole != len(udp) or len(udp) > 4200:
	        faults.append('tcpdump cut it, or the kernel did not: ' + told(key, udp))
	    if address(key.source) == client and udp[0] == 0x64 and udp[36:38] == b'\0\x15':
	        dreq = at
	for key, udp, whole in frames(ours):
	    total += 1
	    trains += address(key.source) == client and key.number != b'\0\0'
	    left = seen[key]
	    match = next((i for i, (_, w) in enumerate(left) if len(w) == whole and w[:len(udp)] == udp), None)
	    if match is None:
	        faults.append('not on the wire: ' + told(key, udp))
	    else:
	        n, whole_udp = left.pop(match)
	        had.add((key.source, whole_udp[:-4]))
	        if n < dreq and address(key.source) != client:
	            last = max(last, n)
	    if whole != len(udp):
	        cut += 1
	        if not (may_cut and (6 <= udp[0] <= 10 or 13 <= udp[0] <= 16)):
	            faults.append('cut: ' + told(key, udp))
	missing = sorted((n, key, udp) for key, left in seen.items() for n, udp in left)
	late = [m for m in missing if m[0] > dreq or m[0] > last and (m[1].source, m[2][:-4]) in had]
	faults += ['on the wire alone: ' + told(m[1], m[2]) for m in missing if m not in late]
	if total < 100:
	    faults.append('%d frames are not all' % total)
	if may_cut != (cut > 0):
	    faults.append('%d frames are cut' % cut)
	with open('/run/same_frames', 'w') as f:
	    f.write('%d frames, of which %d are cut and %d in trains; %d on the wire, of which %d came when '
	            'nobody was there' % (total, cut, trains, at + 1, len(late)))
	for fault in faults[:20]:
	    print('#', fault)
	sys.exit(len(faults) > 0)
	END
}

has() { grep -qaF "$1" "$2"; }

# both NAME OPTIONS: works on a mount with a capture, beside tcpdump.
both() {
	local name=$1 dir=$cap/$1
	mkdir "$dir"
	: >"$(fmount_log $mnt)"
	echo before >"$export_dir/called-back-$name"
	check "$name: tcpdump listens" wire_capture soft0 "$dir/wire.pcap"
	server_stats >"$dir/before"
	check "$name: mounted" fmount $mnt "fabric=soft,stats,capture=$dir/ours.pcapng,$2"
	check "$name: worked" work "$name"
	check "$name: unmounted" funmount $mnt
	server_stats >"$dir/after"
	check "$name: tcpdump has all" wire_capture_end
	final_stats "$(fmount_log $mnt)" >"$dir/stats"
	cp "$dir/ours.pcapng" "$RESULTS/soft-$name.pcapng"
	cp "$dir/wire.pcap" "$RESULTS/soft-$name.wire.pcap"
}

both data memreg=mw,capture_data
check "data: the frames are those of the wire" same_frames $cap/data/{ours.pcapng,wire.pcap} $client
diag "data: $(cat /run/same_frames)"
check "data: what was written is in it" has "$secret" $cap/data/ours.pcapng
[ "${SOFT_IP:-4}" = 6 ] || compare data $cap/data "$client" "$server"

for memreg in mw static; do
	both $memreg memreg=$memreg
	check "$memreg: the frames are those of the wire" \
		same_frames $cap/$memreg/{ours.pcapng,wire.pcap} $client cut
	diag "$memreg: $(cat /run/same_frames)"
	check_fails "$memreg: nothing of a file is in it" has "$secret" $cap/$memreg/ours.pcapng
	# It came in a Reply chunk.
	check "$memreg: the listing is in it" has a-name-of-some-length-300 $cap/$memreg/ours.pcapng
	# Replies to calls whose data are missing may be (docs/capture.md).
	check_equal "$memreg: what is cut is not malformed to tshark" \
		"$(tshark -n -r $cap/$memreg/ours.pcapng -Y '_ws.malformed && frame.cap_len < frame.len' 2>&1 | grep -v root)" ""
done

# ---- one that begins later ----

check "later: mounted" fmount $mnt fabric=soft
cp $cap/small $mnt/
"$daemon" capture $mnt $cap/later.pcapng 2>/run/capture.log & job=$!
check "later: it begins" wait_for 10 test -s $cap/later.pcapng
check "later: worked" mkdir $mnt/later
kill -INT $job
check "later: it ends" wait $job
check "later: unmounted" funmount $mnt
first() { tshark -n -r $cap/later.pcapng -T fields -e infiniband.mad.attributeid -c 3 2>/dev/null | tr '\n' ' '; }
check_equal "later: it begins with REQ, REP, RTU" "$(first)" "0x0010 0x0013 0x0014 "
if [ "${SOFT_IP:-4}" = 4 ]; then
	decode $cap/later.pcapng >$cap/later
	diag "later: $(wc -l <$cap/later) messages"
	check "later: calls are found in it" test "$(count_calls $client $cap/later)" -ge 1
fi
tap_end
