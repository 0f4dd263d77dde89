# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Shared by t_capture, t_softcap and the pair's p5_capture: tcpdump beneath an rxe device,
# and what tshark makes of its capture and of ours. To be sourced behind guest.sh.

# ---- the wire ----

tcpdump_pid=
wire_capture() { # DEVICE FILE
	tcpdump -i "$1" -s 0 -B 65536 -w "$2" udp port 4791 2>/run/tcpdump.log &
	tcpdump_pid=$!
	wait_for 20 grep -q listening /run/tcpdump.log
}
# Fails if packets were lost on the way to it.
wire_capture_end() {
	sleep 1
	kill -INT "$tcpdump_pid"
	wait "$tcpdump_pid" || true
	grep '^0 packets dropped by kernel' /run/tcpdump.log || { cat /run/tcpdump.log; false; }
}

# ---- something of everything ----

# Of the files $cap/small and $cap/large, at $mnt, in a test of one machine.
work() { # NAME
	local file=called-back-$1
	cp $cap/small $cap/large $mnt/
	sync -f $mnt
	echo 3 >/proc/sys/vm/drop_caches
	cmp $mnt/large $cap/large
	cmp $mnt/small $cap/small
	ls -la $mnt >/dev/null
	mkdir $mnt/dir
	mv $mnt/small $mnt/dir/moved
	ln -s moved $mnt/dir/link
	cat $mnt/dir/link >/dev/null
	# The server takes a delegation back: a call the other way.
	cat "$mnt/$file" "$mnt/$file" >/dev/null
	exec 7<"$mnt/$file"
	echo "changed" >"$export_dir/$file"
	wait_for 10 cmp "$mnt/$file" "$export_dir/$file"
	exec 7<&-
	rm -r $mnt/dir $mnt/large
}

# ---- what tshark makes of a capture ----

# A line for each message: who sent it, RPC-over-RDMA's header and lists, RPC,
# operations and statuses. A call whose data was read has a second one, which
# tshark writes when the data is there.
decode() {
	tshark -n -r "$1" -Y 'rpcordma || rpc' -T fields -e ip.src -e rpcordma.xid \
		-e rpcordma.msg_type -e rpcordma.flow_control -e rpcordma.reads_count \
		-e rpcordma.writes_count -e rpcordma.reply_count -e rpcordma.position \
		-e rpcordma.rdma_handle -e rpcordma.rdma_length -e rpcordma.rdma_offset \
		-e rpc.xid -e rpc.msgtyp -e nfs.opcode -e nfs.nfsstat4 -e _ws.malformed \
		2>/dev/null | sort -u
}
xid_field=12 type_field=13 ops_field=14

# Of what decode() wrote: who sent which message that tshark calls malformed.
malformed() { awk -F'\t' '$NF != "" { print $1, $2 }' "$1" | sort -u; }
has_calls_of() { # ADDRESS FILE
	awk -F'\t' -v a="$1" -v t=$type_field '
		$1 == a && $t ~ /^0/ { n++ }
		END { exit n == 0 }' "$2"
}
count_calls() { # ADDRESS FILE
	awk -F'\t' -v a="$1" -v x=$xid_field -v t=$type_field '
		$1 == a && $t ~ /^0/ { split($x, xid, ","); print xid[1] }' "$2" | sort -u | wc -l
}
# ops_in ADDRESS FILE [executed]: numbers of the operations that it called; executed:
# without those behind one that failed. Some calls and replies tshark shows twice
# in one frame, with twice the operations; it gets lost in an OPEN with
# CLAIM_DELEG_CUR_FH ("operation 1" follows): then the reply has the operations.
ops_in() {
	awk -F'\t' -v a="$1" -v x=$xid_field -v t=$type_field -v o=$ops_field \
		-v executed="${3:-}" '
		{ times = split($x, xid, ","); n = times ? split($o, op, ",") / times : 0 }
		$1 == a && $t ~ /^0/ && n > cnt[xid[1]] {
			cnt[xid[1]] = n
			for (i = 1; i <= n; i++) {
				ops[xid[1], i] = op[i]
				if (op[i] < 3) lost[xid[1]] = 1
			}
		}
		$1 != a && $t ~ /^1/ && n > 0 {
			if ($(o + 1) !~ /^0/) until[xid[1]] = n
			answered[xid[1]] = n
			for (i = 1; i <= n; i++) results[xid[1], i] = op[i]
		}
		END {
			for (id in lost) {
				cnt[id] = answered[id]
				for (i = 1; i <= cnt[id]; i++) ops[id, i] = results[id, i]
			}
			for (id in cnt) {
				last = executed && (id in until) ? until[id] : cnt[id]
				for (i = 1; i <= last; i++) sum[ops[id, i]]++
			}
			for (i in sum) print i "=" sum[i]
		}' "$2" | sort
}

# ---- counters ----

op_names="3 access 4 close 5 commit 6 create 8 delegreturn 9 getattr 10 getfh 12 lock 14 locku
	15 lookup 18 open 22 putfh 24 putrootfh 25 read 26 readdir 27 readlink 28 remove 29 rename
	31 restorefh 32 savefh 34 setattr 38 write 41 bind_conn_to_session 42 exchange_id
	43 create_session 44 destroy_session 53 sequence 57 destroy_clientid 58 reclaim_complete"
# op_NAME=COUNT of the client or of server_stats, with numbers in place of names.
numbered() {
	tr '[:upper:]' '[:lower:]' | awk -F= -v names="$op_names" '
		BEGIN { n = split(names, w, /[ \t\n]+/); for (i = 1; i < n; i += 2) nr[w[i + 1]] = w[i] }
		/^op_/ && $2 > 0 { op = substr($1, 4); print ((op in nr) ? nr[op] : op) "=" $2 }' | sort
}
difference() { # BEFORE AFTER
	awk -F= 'NR == FNR { b[$1] = $2; next } { print $1 "=" $2 - b[$1] }' "$1" "$2"
}
# Of the `stats` that a daemon told when it ended.
final_stats() { sed -n 's/^rpcrdmafs: \([A-Za-z0-9_]*=[0-9]*\)$/\1/p' "$1"; }

subset() { [ -z "$(comm -23 "$1" "$2")" ] || { comm -23 "$1" "$2"; false; }; }
same_lines() { diff "$1" "$2" | head -n 30; cmp -s "$1" "$2"; }

# ---- the comparison ----

# compare NAME DIR CLIENT SERVER: in DIR: ours.pcapng, wire.pcap, stats (final_stats),
# before, after (server_stats).
compare() {
	local name=$1 dir=$2 client=$3 server=$4
	decode "$dir/ours.pcapng" >"$dir/ours"
	decode "$dir/wire.pcap" >"$dir/wire"
	malformed "$dir/ours" >"$dir/ours.bad"
	malformed "$dir/wire" >"$dir/wire.bad"
	diag "$name: lines: $(wc -l <"$dir/ours") ours, $(wc -l <"$dir/wire") of the wire; malformed to tshark: $(wc -l <"$dir/ours.bad"), $(wc -l <"$dir/wire.bad")"
	check "$name: there are messages" test "$(wc -l <"$dir/ours")" -gt 100
	check "$name: each message is what it was on the wire" same_lines "$dir/ours" "$dir/wire"
	check "$name: none is malformed that is not on the wire" subset "$dir/ours.bad" "$dir/wire.bad"
	check "$name: the server called back" has_calls_of "$server" "$dir/ours"
	check_equal "$name: calls as the client counted" "$(count_calls "$client" "$dir/ours")" \
		$(($(stat_of rpcs <"$dir/stats") + $(stat_of probes <"$dir/stats")))
	ops_in "$client" "$dir/ours" >"$dir/ops"
	numbered <"$dir/stats" >"$dir/ops.client"
	check "$name: operations as the client counted" same_lines "$dir/ops" "$dir/ops.client"
	ops_in "$client" "$dir/ours" executed >"$dir/ops"
	difference "$dir/before" "$dir/after" | numbered >"$dir/ops.server"
	check "$name: operations as the server counted" same_lines "$dir/ops" "$dir/ops.server"
}
