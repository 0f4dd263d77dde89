# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What scripts inside the test VM share: bring up rxe and nfsd, mount with the
# kernel's client and with rpcrdmafs. Results are those of tests/tap.sh. To be sourced.
#
# Settings (environment):
#   BUILD_DIR    where rpcrdmafs and the test programs were built
#   LEASE        seconds of lease and grace (default 10)
#   THREADS      nfsd threads (default 32: each one blocks for its RDMA Reads)
#   EXPORT_FS    ext4 (default) or xfs
#   EXPORT_MIB   size of the exported RAM disk (default 1536)
#   FABRIC       soft: our client mounts without a device (soft_up)
#   SOFT_IP      6: by IPv6 then (default 4)
#   SOFT_MTU     of the wire then (default 4200)

set -euo pipefail

server=${SERVER:-10.77.0.1}
bin_dir=${BIN_DIR:-/run/bin}
export_dir=/export
RESULTS=${RESULTS:-/tmp}
LEASE=${LEASE:-10}
THREADS=${THREADS:-32}
EXPORT_FS=${EXPORT_FS:-ext4}
EXPORT_MIB=${EXPORT_MIB:-1536}

# check, wait_for and the like.
# shellcheck source-path=SCRIPTDIR source=../../tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../tap.sh"
# shellcheck source-path=SCRIPTDIR source=../../stacks.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../stacks.sh"

# wait_for that failed: where everything in the guest waits.
wait_more() { [ -z "${IN_VM:-}" ] || stacks; }

# ---- programs ----

# Programs over 9p start slowly: this makes the root's overlay take files into
# RAM, where they are; with what a program loads. Folders with all in them.
in_ram() {
	local f list=()
	for f in "$@"; do
		[ -e "$f" ] || f=$(type -P "$f") || continue
		f=$(readlink -f "$f")
		list+=("$f")
		[ ! -f "$f" ] || [ ! -x "$f" ] || mapfile -t -O ${#list[@]} list < <(loaded_by "$f")
	done
	# A change that changes nothing: all of them are readable by their owner.
	printf '%s\0' "${list[@]}" | sort -zu |
		find -files0-from - -xdev -type f -print0 | xargs -0 chmod u+r
}

loaded_by() {
	{ ldd "$1" 2>/dev/null || true; } | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
		xargs -r readlink -f
}

# ---- the network and the RDMA device ----

rxe_up() {
	[ ! -e /sys/class/infiniband/rxe0 ] || return 0
	modprobe -a dummy rdma_rxe ib_uverbs rdma_ucm fuse
	ip link show dummy0 >/dev/null 2>&1 || ip link add dummy0 type dummy
	# 4200 leaves room for RoCE headers around a path MTU of 4096.
	ip link set dummy0 mtu 4200 up
	ip addr add 10.77.0.1/24 dev dummy0
	rdma link add rxe0 type rxe netdev dummy0
	wait_for 10 test -c /dev/infiniband/rdma_cm
}

rxe_down() { rdma link delete rxe0; }

# A wire beside dummy0, between two rxe devices of this machine, for tests that
# cut it: what goes over dummy0 rxe hands to itself, past the network device.
#
#   wire_server, wire0, rxe1 <---> wire1, rxe2, wire_client
#
# Both ends are this machine's addresses, so that the kernel would send nothing
# over the wire: what starts here (iif lo) is routed before the local table.
wire_server=10.78.0.1
wire_client=10.78.0.2

wire_up() {
	local i
	rxe_up
	[ ! -e /sys/class/net/wire0 ] || wire_down
	modprobe sch_netem
	ip link add wire0 type veth peer name wire1
	for i in 0 1; do
		sysctl -q -w net.ipv4.conf.wire$i.{rp_filter=0,accept_local=1}
		ip link set wire$i mtu 4200 up
		arrives_at wire$i $i
	done
	sysctl -q -w net.ipv4.conf.all.rp_filter=0
	# /24: a server accepts only from where it has a route to by that device.
	ip addr add $wire_server/24 dev wire0
	ip addr add $wire_client/32 dev wire1
	# An answer that comes before rdma_cm waits for it would cost its 5 s.
	ip neigh add $wire_server dev wire1 lladdr "$(cat /sys/class/net/wire0/address)"
	ip neigh add $wire_client dev wire0 lladdr "$(cat /sys/class/net/wire1/address)"
	ip route add $wire_server dev wire1 src $wire_client table 101
	ip route add $wire_client dev wire0 src $wire_server table 102
	ip rule add pref 5 iif lo to $wire_server lookup 101
	ip rule add pref 6 iif lo to $wire_client lookup 102
	ip rule add pref 10 lookup local
	ip rule del pref 0
	rdma link add rxe1 type rxe netdev wire0
	rdma link add rxe2 type rxe netdev wire1
}

# All that arrives goes to one CPU: two would change the order, a wire does not. Each end of one has
# its own, as two machines have.
arrives_at() { echo $((1 << $2)) >"/sys/class/net/$1/queues/rx-0/rps_cpus"; } # DEVICE CPU

# Every packet is lost, in both directions; the devices see a link that is up. So it is on the wire
# of mounts without a device, if that is there (soft_up).
on_wires() { # add|del ARGUMENTS
	local i
	for i in 0 1; do tc qdisc "$1" dev wire$i root "${@:2}"; done
	[ ! -e /sys/class/net/soft0 ] || on_soft_wire "$@"
}
on_soft_wire() { tc qdisc "$1" dev soft0 root "${@:2}" && tc -n soft qdisc "$1" dev soft1 root "${@:2}"; }
wire_cut() { on_wires add netem loss 100%; }
wire_mend() { on_wires del; }

wire_down() {
	rdma link delete rxe1
	rdma link delete rxe2
	ip rule add pref 0 lookup local
	ip rule del pref 5
	ip rule del pref 6
	ip rule del pref 10
	ip link del wire0
}

# A network namespace without a device, at the other end of a wire to one of ours with rxe: what is
# started by soft_in reaches the server there by RoCEv2 of its own (fabric=soft).
soft_server=10.79.0.1
soft_server6=fd79::1
soft_server_link=fe80::79%soft1 # of this link alone

soft_up() { # [MTU]
	rxe_up
	[ ! -e /sys/class/net/soft0 ] || return 0
	modprobe sch_netem
	ip netns add soft
	ip link add soft0 type veth peer name soft1 netns soft
	ip link set soft0 mtu "${1:-${SOFT_MTU:-4200}}" up
	ip -n soft link set soft1 mtu "${1:-${SOFT_MTU:-4200}}" up
	arrives_at soft0 0
	ip netns exec soft bash -c "$(declare -f arrives_at); arrives_at soft1 1"
	ip -n soft link set lo up
	ip addr add $soft_server/24 dev soft0
	ip addr add $soft_server6/64 dev soft0 nodad
	ip -n soft addr add 10.79.0.2/24 dev soft1
	ip -n soft addr add fd79::2/64 dev soft1 nodad
	ip addr add ${soft_server_link%\%*}/64 dev soft0 nodad
	ip -n soft addr add fe80::7a/64 dev soft1 nodad
	rdma link add rxe3 type rxe netdev soft0
}
# nsenter leaves the mounts as they are.
soft_in="nsenter --net=/run/netns/soft"
# How a mount calls the server there.
soft_from() { if [ "${SOFT_IP:-4}" = 4 ]; then echo $soft_server; else echo "[$soft_server6]"; fi; }

# For a script that starts the program by itself: what such a mount calls the server, the words before
# a command that starts one ("": none), and an option for it (with a device the default).
own_net() {
	net='' net_option=hard from=$server
	[ "${FABRIC:-}" = soft ] || return 0
	soft_up
	net=$soft_in net_option=fabric=soft from=$(soft_from)
}

soft_down() {
	rdma link delete rxe3
	ip link del soft0
	ip netns del soft
}

# ---- the server ----

# nfsd_up [opts]: opts are export options of the root (default below). Exports:
#   /            /export          rw, all users as they are
#   /ro          /export/ro       read-only
#   /squash      /export/squash   root becomes nobody
#   /sub         /export/sub      a file system of its own (crossed by LOOKUP)
# Does nothing if the same server is up already (tests share a boot).
nfsd_up() {
	local opts=${1:-rw,no_root_squash}
	local key="$opts $EXPORT_FS $EXPORT_MIB $THREADS $LEASE ${SYNC_EXPORT:-async}"
	if [ -f /run/nfsd.key ]; then
		[ "$(cat /run/nfsd.key)" != "$key" ] || [ "$(nfsd_threads)" = 0 ] || return 0
		nfsd_down
	fi
	export_root
	exports_file "$opts"
	state_root
	mkdir -p /var/lib/nfs/v4recovery /var/lib/nfs/nfsdcld /var/lib/nfs/sm /run/rpc_pipefs
	: >/var/lib/nfs/etab
	: >/var/lib/nfs/rmtab
	# Debian turns manage-gids on: the server would look the caller's groups up
	# in its own database and ignore those that the client sends.
	printf '[mountd]\nmanage-gids=n\n' >/etc/nfs.conf
	rm -rf /etc/nfs.conf.d
	modprobe nfsd
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
	mountpoint -q /run/rpc_pipefs || mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs
	# Without nfsdcld nfsd tracks its clients elsewhere and forgets them at a
	# restart. In the foreground, in sessions of their own: nfsd_down knows them,
	# and the end of the test that started them does not take them along.
	setsid nfsdcld -F -p /run/rpc_pipefs >/run/nfsdcld.log 2>&1 </dev/null &
	echo $! >/run/nfsd.pids
	exportfs -r
	setsid rpc.mountd -F --no-nfs-version 2 --no-nfs-version 3 --no-udp \
		>/run/mountd.log 2>&1 </dev/null &
	echo $! >>/run/nfsd.pids
	wait_for 10 test -e /var/lib/nfs/nfsdcld/main.sqlite
	nfsd_start
	echo "$key" >/run/nfsd.key
}

exports_file() {
	local common="insecure,no_subtree_check,${SYNC_EXPORT:-async}"
	cat >/etc/exports <<-END
		/export *($1,fsid=0,crossmnt,$common)
		/export/ro *(ro,fsid=2,no_root_squash,$common)
		/export/squash *(rw,fsid=3,root_squash,$common)
		/export/sub *(rw,fsid=4,no_root_squash,$common)
	END
}

nfsd_threads() { cat /proc/fs/nfsd/threads 2>/dev/null || echo 0; }

nfsd_down() {
	local pid
	nfsd_stop
	while read -r pid; do kill "$pid" 2>/dev/null || true; done </run/nfsd.pids
	exportfs -ua
	exportfs -f
	umount $export_dir/ro $export_dir/squash $export_dir/sub
	wait_for 10 umount $export_dir
	umount /var/lib/nfs || umount -l /var/lib/nfs
	rmmod brd
	rm -f /run/nfsd.key /run/nfsd.pids
}

# The exported file system on a RAM disk; sub-exports inside it.
export_root() {
	local kib=$((EXPORT_MIB * 1024))
	modprobe brd rd_nr=2 rd_size=$kib max_part=0
	mkdir -p $export_dir
	case $EXPORT_FS in
	ext4) mkfs.ext4 -q -E lazy_itable_init=1,lazy_journal_init=1 -O ^has_journal /dev/ram0 ;;
	xfs) mkfs.xfs -q -f /dev/ram0 ;;
	esac
	mount /dev/ram0 $export_dir
	chmod 1777 $export_dir
	mkdir -m 777 $export_dir/{ro,squash,sub}
	mkdir $export_dir/ro/dir
	echo "read me" >$export_dir/ro/file
	mount -t tmpfs -o size=64m,mode=1777 sub $export_dir/sub
	for d in ro squash; do mount --bind $export_dir/$d $export_dir/$d; done
}

# Where nfsd's helpers keep what they know.
state_root() { mount -t tmpfs -o mode=755 nfsstate /var/lib/nfs; }

# Start nfsd and its RDMA listener. Grace ends at once unless GRACE=keep, since
# nothing that opens works during grace.
nfsd_start() {
	echo "$LEASE" >/proc/fs/nfsd/nfsv4leasetime
	echo "$LEASE" >/proc/fs/nfsd/nfsv4gracetime
	# As on a machine with memory to spare, whatever this guest has.
	echo $((1024 * 1024)) >/proc/fs/nfsd/max_block_size 2>/dev/null || true
	rpc.nfsd -N 3 "$THREADS"
	echo "rdma 20049" >/proc/fs/nfsd/portlist
	[ "${GRACE:-}" = keep ] || end_grace
}

# Writing Y when grace is over already (nobody to reclaim), or is just ending,
# would be EBUSY.
end_grace() { wait_for 10 try_end_grace; }
try_end_grace() {
	[ "$(cat /proc/fs/nfsd/v4_end_grace)" = Y ] || echo Y >/proc/fs/nfsd/v4_end_grace
}

# All state and connections are dropped: to the client, a server reboot.
nfsd_stop() { rpc.nfsd 0; }

nfsd_restart() {
	nfsd_stop
	nfsd_start
}
# Nobody gets a lock that another client may reclaim.
nfsd_restart_in_grace() { GRACE=keep nfsd_restart; }

# name=value lines: what svcrdma and nfsd counted since boot.
server_stats() {
	local f
	for f in /proc/sys/sunrpc/svc_rdma/rdma_stat_*; do
		echo "${f##*/rdma_stat_}=$(cat "$f")"
	done
	awk '$1 == "rpc" { print "rpc_calls=" $2 }
		$1 == "io" { print "io_read=" $2; print "io_written=" $3 }
		$1 == "proc4ops" {
			n = split("access close commit create delegpurge delegreturn getattr getfh " \
				"link lock lockt locku lookup lookupp nverify open openattr open_confirm " \
				"open_downgrade putfh putpubfh putrootfh read readdir readlink remove rename " \
				"renew restorefh savefh secinfo setattr setclientid setclientid_confirm " \
				"verify write release_lockowner backchannel_ctl bind_conn_to_session " \
				"exchange_id create_session destroy_session free_stateid get_dir_delegation " \
				"getdeviceinfo getdevicelist layoutcommit layoutget layoutreturn " \
				"secinfo_no_name sequence set_ssv test_stateid want_delegation " \
				"destroy_clientid reclaim_complete allocate copy copy_notify deallocate " \
				"io_advise layouterror layoutstats offload_cancel offload_status read_plus " \
				"seek write_same clone getxattr setxattr listxattrs removexattr", name, " ")
			# Operation numbers begin at 3 (ACCESS), after the number of counters.
			for (i = 1; i <= n; i++) print "op_" name[i] "=" $(2 + 3 + i)
		}' /proc/net/rpc/nfsd
}

# stat_of NAME: one value out of server_stats on stdin (0 if absent).
stat_of() { awk -F= -v n="$1" '$1 == n { v = $2 } END { print v + 0 }'; }

# ---- the clients ----

# kmount MNT [opts] [path]: the kernel's own client, its own superblock.
kmount() {
	local opts=proto=rdma,port=20049,nosharecache,retry=0${2:+,$2}
	[[ $opts == *vers=* ]] || opts+=,vers=4.2
	mkdir -p "$1"
	modprobe -a rpcrdma nfsv4 || return
	# A lease of a former server may have to run out first.
	timeout 60 mount -t nfs -o "$opts" "$server:${3:-/}" "$1"
}

kumount() { umount "$1"; }

declare -A fmount_pid=()

# Programs over 9p start slowly and unprivileged users may not be able to reach
# the build folder: run copies in RAM.
daemon=
daemon_path() {
	[ -z "$daemon" ] || return 0
	: "${BUILD_DIR:?BUILD_DIR is not set}"
	mkdir -p "$bin_dir"
	cp "$BUILD_DIR/src/rpcrdmafs" "$bin_dir/rpcrdmafs"
	daemon=$bin_dir/rpcrdmafs
}

fmount_log() { echo "$RESULTS/fmount${1//\//-}.log"; }

# fmount MNT [opts] [path]: rpcrdmafs in the foreground, its messages in
# fmount_log. Returns when the mount is usable, non-zero if the daemon ended.
# DAEMON: another build of it (under a sanitizer, for instance).
# FMOUNT_WRAP: a program to run it under. FMOUNT_ARGS: more arguments (-d).
# FABRIC=soft: without a device.
fmount() {
	local mnt=$1 opts=${2:-} path=${3:-/} log end from=$server
	local wrap=${FMOUNT_WRAP:-}
	daemon_path
	if [ "${FABRIC:-}" = soft ]; then
		soft_up
		opts=fabric=soft${opts:+,$opts} from=$(soft_from) wrap="$soft_in $wrap"
	fi
	mkdir -p "$mnt"
	log=$(fmount_log "$mnt")
	# allow_other: tests work as several users. Locked memory as for a real one.
	(ulimit -l unlimited
	 # shellcheck disable=SC2086  # words
	 exec $wrap "${DAEMON:-$daemon}" -f ${FMOUNT_ARGS:-} ${opts:+-o "$opts"} "$from:$path" "$mnt") \
		>>"$log" 2>&1 </dev/null &
	fmount_pid[$mnt]=$!
	end=$((SECONDS + ${FMOUNT_WAIT:-30}))
	until mountpoint -q "$mnt"; do
		if ! kill -0 "${fmount_pid[$mnt]}" 2>/dev/null || [ $SECONDS -ge $end ]; then
			tail -n 5 "$log" >&2
			fmount_forget "$mnt"
			return 1
		fi
		sleep 0.05
	done
}

# criterion [NAME=VALUE...] PROGRAM...: a Criterion program, which mounts by itself (mnt.h).
criterion() {
	local from=$server wrap=
	if [ "${FABRIC:-}" = soft ]; then
		soft_up
		from=$(soft_from) wrap=$soft_in
	fi
	env EXPORT_DIR=$export_dir "SERVER=$from" "MNT_WRAP=$wrap" "$@"
}

# The daemon's process for a mount made by fmount.
daemon_pid() { echo "${fmount_pid[$1]:-}"; }

fmount_forget() {
	local rc=0 pid=${fmount_pid[$1]:-}
	unset "fmount_pid[$1]"
	[ -n "$pid" ] || return 0
	kill -KILL "$pid" 2>/dev/null || true
	wait "$pid" 2>/dev/null || rc=$?
	return $rc
}

# funmount MNT: unmount and wait for the daemon's end; fails if it takes more
# than FUNMOUNT_WAIT seconds or ends with a status other than 0.
funmount() {
	local mnt=$1 rc=0 pid=${fmount_pid[$1]:-} end=$((SECONDS + ${FUNMOUNT_WAIT:-30}))
	fusermount3 -u "$mnt" || rc=$?
	[ -n "$pid" ] || return $rc
	while kill -0 "$pid" 2>/dev/null && [ $SECONDS -lt $end ]; do sleep 0.05; done
	if kill -0 "$pid" 2>/dev/null; then
		echo "the daemon of $mnt did not end" >&2
		fmount_forget "$mnt" || true
		return 1
	fi
	wait "$pid" || rc=$?
	unset "fmount_pid[$mnt]"
	return $rc
}

# The daemon's counters as name=value lines, asked for by SIGUSR1.
client_stats() {
	local mnt=$1 log before
	log=$(fmount_log "$mnt")
	before=$(wc -c <"$log")
	kill -USR1 "${fmount_pid[$mnt]}"
	wait_for 30 counters_told "$log" "$before" || return 1
	tail -c "+$((before + 1))" "$log" | sed -n 's/^\(.*: \)\{0,1\}\([A-Za-z0-9_]*=[0-9]*\)$/\2/p'
}

# lanes= is the last of them.
counters_told() { tail -c "+$(($2 + 1))" "$1" | grep -q 'lanes=[0-9]*$'; }

# ---- trees ----

# tree_sums DIR: what `witness` prints for the same directory, seen through the
# file system that DIR is on; sort both before comparing.
tree_sums() {
	(cd "$1" && {
		find . -type f -print0 | xargs -0 -r sha256sum
		find . -type l -printf '-> %l  %p\n'
		find . -mindepth 1 -type d -printf 'dir  %p\n'
		find . ! -type f ! -type l ! -type d -printf 'other  %p\n'
	} | sort -k 2)
}
