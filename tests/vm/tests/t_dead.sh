#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A server that never answers: every packet to and from it is lost. `soft` and
# `softerr` give up timeo * (retrans + 1) after a call began, not earlier;
# `hard` waits; a waiting program that is killed ends; `umount -f` and
# `umount -l` end the mount and its daemon, which gives up when the server was
# silent for `probe` + 5 s, its sessions within 5 s more. A busy machine gets
# 30 s on top of all of these. What still waits goes on when packets come again.
# vm-boot: own
# vm-timeout: 300

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
wire_up
server=$wire_server
least=4000 most=34000 # of timeo=20,retrans=1
declare -A job=()
mkdir -p /run/dead

# By the kernel's table: asking the mount itself may have to wait for the server.
is_mounted() { grep -q " $1 fuse" /proc/self/mounts; }
own_qps() { rdma resource show qp | grep -c ' pid [1-9]'; }

# fails_with TEXT command...: in time
fails_with() {
	local text=$1 start took rc=0 out
	shift
	start=$(now_ms)
	out=$("$@" 2>&1) || rc=$?
	took=$(($(now_ms) - start))
	echo "$took ms, status $rc: $out"
	[ $rc != 0 ] && [[ $out == *"$text"* ]] && [ $took -ge $least ] && [ $took -le $most ]
}

# Side by side, in a folder each: the kernel lets one change of a folder wait
# for the other.
all_give_up() {
	local text=$1 dir=$2 out=/run/dead/${2##*/} jobs=() i rc=0
	fails_with "$text" stat "$dir/d0/missing" >"$out.0" & jobs+=($!)
	fails_with "$text" mkdir "$dir/d1/new" >"$out.1" & jobs+=($!)
	fails_with "$text" chmod 600 "$dir/d2" >"$out.2" & jobs+=($!)
	fails_with "$text" dd if=/dev/zero of="$dir/d3/there" bs=64k count=1 conv=fsync,notrunc \
		status=none >"$out.3" & jobs+=($!)
	for i in "${!jobs[@]}"; do
		wait "${jobs[i]}" || rc=1
		cat "$out.$i"
	done
	return $rc
}

# Programs that wait for the server: NAME is the mount's and a number.
waiting() {
	local m=$1
	cat "/mnt-$m/d0/there" >/run/dead/$m.out 2>&1 & job[$m.read]=$!
	mkdir "/mnt-$m/d1/$m" 2>/dev/null & job[$m.mkdir]=$!
	stat "/mnt-$m/d2/missing" >/dev/null 2>&1 & job[$m.stat]=$!
	dd if=/dev/zero of="/mnt-$m/d3/$m" bs=64k count=4 conv=fsync status=none 2>/dev/null &
	job[$m.write]=$!
}
all_wait() {
	local name rc=0
	for name in "${!job[@]}"; do runs "${job[$name]}" || { echo "$name has ended"; rc=1; }; done
	return $rc
}
programs() {
	local m=$1 name
	for name in "${!job[@]}"; do [[ $name != "$m".* ]] || echo "$name"; done
}
kill_programs() {
	local name
	for name in $(programs "$1"); do kill -KILL "${job[$name]}" || true; done
}
# programs_end MOUNT: not well
programs_end() {
	local name rc=0
	for name in $(programs "$1"); do
		if ! wait_for 40 ended "${job[$name]}"; then
			echo "$name waits on: $(cat "/proc/${job[$name]}/stack")"
			rc=1
			continue
		fi
		! wait "${job[$name]}" || { echo "$name ended well"; rc=1; }
	done
	return $rc
}
# mount_ends MOUNT: and its daemon, with status 0, and its programs.
mount_ends() {
	local m=$1 rc=0 start=$SECONDS pid
	pid=$(daemon_pid "/mnt-$m")
	wait_for 41 ended "$pid" || { echo "the daemon of $m lives on"; return 1; }
	echo "the daemon ended after $((SECONDS - start)) s" | tee "/run/dead/$m.end"
	wait "$pid" || rc=$?
	unset "fmount_pid[/mnt-$m]"
	[ $rc = 0 ] || { echo "with status $rc"; return 1; }
	! is_mounted "/mnt-$m" || { echo "it is still mounted"; return 1; }
	programs_end "$m"
}

for i in 0 1 2 3; do mkdir -p $export_dir/d$i && echo there >$export_dir/d$i/there; done
chmod 777 $export_dir/d?
# Names and attributes stay cached, so that each program waits for its own call.
options=timeo=20,retrans=1,probe=1,actimeo=600
for m in soft softerr hard force lazy; do
	o=$m
	case $m in force | lazy) o=hard ;; esac
	check "mounted: $m" fmount /mnt-$m "$o,$options"
	ls -lR /mnt-$m >/dev/null
done
no_failure

wire_cut
for m in hard force lazy; do waiting $m; done
all_give_up "Connection timed out" /mnt-softerr >/run/dead/softerr 2>&1 &
softerr=$!
check "soft: EIO in time" all_give_up "Input/output error" /mnt-soft
check "softerr: ETIMEDOUT in time" wait $softerr
sed 's/^/# /' /run/dead/mnt-soft.? /run/dead/mnt-softerr.?
check "hard: all programs wait" all_wait

diag "umount -f, and -l with killed programs"
# Busy until the programs that it aborts have gone.
check "umount -f" wait_for 20 umount -f /mnt-force
umount -l /mnt-lazy
kill_programs lazy
check "the mount, its programs and the daemon end" mount_ends force
check "those of umount -l, too" mount_ends lazy
sed 's/^/# /' /run/dead/force.end /run/dead/lazy.end

# One is left that goes on.
for name in hard.mkdir hard.stat hard.write; do
	kill -KILL "${job[$name]}"
	check "SIGKILL ends $name" wait_for 20 ended "${job[$name]}"
done
check "the last one waits" runs "${job[hard.read]}"
wire_mend
check "and goes on" wait "${job[hard.read]}"
check_equal "with the right data" "$(cat /run/dead/hard.out)" there
for m in soft softerr; do check "$m works again" wait_for 60 cat /mnt-$m/d3/there; done
for m in hard soft softerr; do check "unmounted: $m" funmount /mnt-$m; done
check "no daemon is left" not pgrep -x rpcrdmafs
check "no mount is left" not grep -q ' /mnt-' /proc/self/mounts
check_equal "no queue pair is left" "$(own_qps)" 0
rm -r $export_dir/d?
wire_down
tap_end
