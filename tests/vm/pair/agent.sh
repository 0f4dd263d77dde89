#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Inside one of the two machines of run-pair: joins the wire, then does what
# comes over /dev/port-orders, a line at a time, until "end".
#
#   agent.sh server|client
#
# An order is `NUMBER COMMAND`; its output goes back with a space before each
# line, then `@ NUMBER STATUS`. Commands run in this shell: what one of them
# starts or sets is there for the next ones.

# shellcheck source-path=SCRIPTDIR source=../guest/guest.sh
. "$(dirname "$0")/../guest/guest.sh"
set +eu

role=$1
server=10.79.0.1
client=10.79.0.2
work=/run/pair
mkdir -p $work "$bin_dir"

# ---- the wire ----

# Addresses on it do not have to be asked for: an answer that comes before
# rdma_cm waits for it would cost its 5 s.
wire_join() {
	local own=$server peer=$client peer_mac=$CLIENT_MAC
	if [ "$role" = client ]; then own=$client peer=$server peer_mac=$SERVER_MAC; fi
	modprobe -a virtio_net rdma_rxe ib_uverbs rdma_ucm sch_netem fuse
	wait_for 10 test -e /sys/class/net/eth0 &&
		ip link set eth0 name wire &&
		ip link set wire mtu 4200 up &&
		ip addr add $own/24 dev wire &&
		ip neigh add $peer lladdr "$peer_mac" dev wire &&
		rdma link add rxe0 type rxe netdev wire &&
		wait_for 10 test -c /dev/infiniband/rdma_cm
}

# In place of that of guest.sh: a namespace with a MAC and an address of its own on the wire, as rxe
# has RoCE's port of this one. It goes through the wire's netem, too.
soft_server=$server
# shellcheck disable=SC2317  # called by fmount
soft_up() {
	[ ! -e /run/netns/soft ] || return 0
	modprobe macvlan
	ip netns add soft
	ip link add link wire name soft1 type macvlan mode private
	ip link set soft1 netns soft
	ip -n soft link set soft1 mtu 4200 up
	ip -n soft link set lo up
	ip -n soft addr add 10.79.0.3/24 dev soft1
}

# What leaves this machine is lost, all of it or a part. The device sees a link
# that is up. Both machines do it.
# shellcheck disable=SC2317  # called by orders, as are many below
wire_loses() { tc qdisc add dev wire root netem loss "$1"; }
wire_mend() { tc qdisc del dev wire root; }

# What would take long when it is needed: all of it is on 9p.
get_ready() {
	tc qdisc show dev wire
	cp "$BUILD_DIR"/tests/vm/{pair/pairload,locker} "$bin_dir/"
}

# ---- the server ----

# Its disk outlives it: the export, and what nfsd's helpers know of clients.
disk_up() {
	! mountpoint -q $export_dir || return 0
	mkdir -p $work/disk $export_dir
	modprobe -a virtio_blk ext4
	wait_for 10 test -b /dev/vda && mount /dev/vda $work/disk &&
		mkdir -p $work/disk/export $work/disk/nfs &&
		chmod 1777 $work/disk/export &&
		mount --bind $work/disk/export $export_dir
}

# In place of those of guest.sh.
export_root() { disk_up; }
# nfsd gives nfsdcld a second to open its pipe, or keeps its records elsewhere.
nfsd_start() {
	echo "$LEASE" >/proc/fs/nfsd/nfsv4leasetime
	# It ends as soon as all clients have reclaimed.
	echo $((5 * LEASE)) >/proc/fs/nfsd/nfsv4gracetime
	echo $((1024 * 1024)) >/proc/fs/nfsd/max_block_size
	for _ in 1 2 3 4 5; do
		rpc.nfsd -N 3 "$THREADS"
		! tracks_clients || break
		rpc.nfsd 0
	done
	echo "rdma 20049" >/proc/fs/nfsd/portlist
}
tracks_clients() { dmesg | grep "Using nfsdcld client tracking"; }
state_root() { mount --bind $work/disk/nfs /var/lib/nfs; }
exports_file() {
	echo "$export_dir *($1,fsid=0,insecure,no_subtree_check,$SYNC_EXPORT)" >/etc/exports
}

server_up() { nfsd_up rw,no_root_squash; }
# Asked after server_up.
knew_clients() { ! dmesg | grep "no clients to reclaim"; }

# states TYPE FILE ours|kernel: what nfsd says of a file for one client. By the
# inode: nfsd may not know the name of what is reclaimed.
states() {
	local c is inode
	inode=$(stat -c %i "$export_dir/$2") || return 2
	for c in /proc/fs/nfsd/clients/*; do
		is=ours
		! grep -q '^name: "Linux NFSv4' "$c/info" || is=kernel
		[ $is != "$3" ] || grep "type: $1" "$c/states" | grep ":$inode\""
	done | grep .
}
no_states() {
	states "$@"
	[ $? = 1 ]
}

# What the log of a load, which lies in our results, says is acknowledged must be
# in the folder of that name.
on_disk() { "$bin_dir/pairload" check "/results/${2:-$1}.log" "$export_dir/$1"; }

# In a copy of what a load left. Its last acknowledged block, name, removal.
take_away() { # HOW NAME
	local to=$export_dir/$2-$1 log=/results/$2.log at
	cp -a "$export_dir/$2" "$to" || return
	at=$(awk '$1 == "durable" && $2 == "fsync" { at = $3 } END { print at }' "$log")
	case $1 in
	spoilt) printf x | dd of="$to/fsync" bs=1 seek=$((at * 32768 + 77)) conv=notrunc status=none ;;
	cut) truncate -s $((at * 32768 + 100)) "$to/fsync" ;;
	lost) rm "$to/$(awk '$1 == "new" { f = $2 } END { print f }' "$log")" ;;
	revived) echo >"$to/$(awk '$1 == "gone" { f = $2 } END { print f }' "$log")" ;;
	esac
}

# ---- the client ----

# pairloads, each with the name of the folder it works in
declare -A job=()
load_start() { # NAME MNT [KILLS]
	mkdir "$2/$1" || return
	"$bin_dir/pairload" run "$2/$1" $work/"$1".log "${3:-0}" >$work/"$1".out 2>&1 3>&- &
	job[$1]=$!
}
said() { grep -c "^$2" $work/"$1".out; }
has_said() { [ "$(said "$1" "$2")" -gt "$3" ]; }
# What a load says that begins so, for the COUNTth time (from 0), within SECONDS;
# else all that it said.
says() { # NAME TEXT COUNT SECONDS
	wait_for "$4" has_said "$1" "$2" "$3"
	grep "^$2" $work/"$1".out | tail -n "+$(($3 + 1))" | grep . && return
	cat $work/"$1".out
	return 1
}
# NAME COUNT: of the times that it was asked before
load_ask() { kill -USR1 "${job[$1]}" && says "$1" stuck "$2" 10; }
load_back() {
	local name
	for name; do kill -USR2 "${job[$name]}"; done
}
# It was told of all that take_away takes.
has_all_kinds() {
	wait_for 60 grep -q ^gone "$work/$1.log" && wait_for 60 grep -q '^durable fsync' "$work/$1.log"
}
load_end() { # NAME SECONDS
	local rc=0
	kill -TERM "${job[$1]}"
	wait_for "${2:-60}" has_said "$1" calls 0 || { rc=124; kill -KILL "${job[$1]}"; }
	[ $rc != 0 ] || wait "${job[$1]}" || rc=$?
	cat $work/"$1".out
	return $rc
}

# What NAME locked all the time is refused to a program on MOUNT.
refused() { # MOUNT NAME
	echo "try w 0 1" >$work/try
	timeout 30 "$bin_dir/locker" hold posix "/mnt/$1/$2/lock" $work/try | tee $work/tried
	grep -q 'temporarily unavailable' $work/tried
}
gave_all_back() { ! grep -E 'does not give back|takes no reclaims|is lost' "$(fmount_log "/mnt/$1")"; }

rewritten() { echo "$(grep -c 'is written again' "$(fmount_log "$1")") files were written again"; }

# ---- two clients ----

# A file that TO has read before FROM changes it; $work/want is what it is then.
changes=0
change() {
	changes=$((changes + 1))
	yes "change $changes" | head -c "$1" >$work/want
}
sees() { # FROM TO SIZE
	cat "/mnt/$2/second/file" >/dev/null 2>&1
	change "$3"
	cat $work/want >"/mnt/$1/second/file" && is_seen "$2"
}
sees_appended() { # FROM TO
	cat "/mnt/$2/second/file" >/dev/null
	echo more >>$work/want
	echo more >>"/mnt/$1/second/file" && is_seen "$2"
}
is_seen() {
	local size
	exec 5<"/mnt/$1/second/file" || return
	size=$(stat -L -c %s /proc/self/fd/5)
	cat <&5 >$work/is
	exec 5<&-
	same "$size" "$(stat -c %s $work/want)" && cmp $work/want $work/is
}
# Nobody wrote what is wanted.
is_seen_wrong() { change 500 && is_seen "$1"; }

# locks WHAT KIND MOUNT1 MOUNT2: see locker.c
locks() {
	local file=second/$1-$2-$3
	timeout 60 "$bin_dir/locker" "$1" "$2" "/mnt/$3/$file" "/mnt/$4/$file"
}

# A program that has a file open, and opens and reads it over and over.
read_on() {
	local line
	exec 5<"$1"
	while [ ! -e $work/stop ]; do
		! IFS= read -r line <"$1" || echo "$line" >>$work/seen
		sleep 0.05
	done
}
reader_start() { # MOUNT
	rm -f $work/stop $work/seen
	read_on "/mnt/$1/second/recall-$1" 3>&- &
	reader=$!
	wait_for 10 grep -q old $work/seen
}
reader_end() { touch $work/stop && wait "$reader"; }
writer() { # MOUNT FILE SECONDS: it must take less
	timeout 60 "$bin_dir/pairload" write "/mnt/$1/second/$2" new | tee $work/took
	awk -v most="$3" 'END { exit !($1 != "" && $1 < most) }' $work/took
}
# Reads that began before the writer had closed do not count.
reader_sees() {
	local before
	before=$(wc -l <$work/seen)
	wait_for 20 has_lines $work/seen $((before + 4)) &&
		tail -n "+$((before + 2))" $work/seen | sort | uniq -c &&
		! tail -n "+$((before + 2))" $work/seen | grep -v -x new
}
has_lines() { [ "$(wc -l <"$1")" -ge "$2" ]; }

# ---- orders ----

obey() {
	local number command rc
	# Nobody gives orders any more: run-pair was killed.
	while IFS= read -r -t 300 -u 3 number; do
		command=${number#* } number=${number%% *}
		[ "$command" != end ] || break
		rc=0
		eval "$command" >$work/answer 2>&1 </dev/null 3>&- || rc=$?
		{ sed 's/^/ /' $work/answer; echo "@ $number $rc"; } >&3
	done
}

# Programs may wait for their server for longer than the kernel thinks is right.
[ "$role" = server ] || sysctl -q -w kernel.hung_task_timeout_secs=0

exec 3<>/dev/port-orders
wire_join || exit 1
obey
