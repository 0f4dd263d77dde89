# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Programs that have something open on $mnt while another daemon comes, as t_upgrade and
# t_crash need them. To be sourced behind guest.sh; $knt is where the kernel's
# client, which must not get their lock, is mounted meanwhile.

# ---- at rest, with a little of everything ----

# 5: a file without a name; 6: one that is read; 7: one that is appended to and locked.
# $sleeper waits for that lock, $lister has listed a part of a directory.
hold_open() {
	# Another test of this boot may have left its own.
	rm -rf $export_dir/append $export_dir/data $export_dir/list
	echo one >$export_dir/append
	head -c 3000000 /dev/urandom >/tmp/data
	cp /tmp/data $export_dir/data
	mkdir $export_dir/list
	(cd $export_dir/list && seq -f 'entry-%05.0f' 1 4000 | xargs touch)
	exec 7>>$mnt/append 6<$mnt/data 5<>$mnt/gone
	echo "without a name" >&5
	sync -f $mnt/append
	rm $mnt/gone
	head -c 1000000 <&6 >/tmp/read
	check_equal "the server keeps the removed one" "$(find $export_dir -maxdepth 1 -name '.nfs*' | wc -l)" 1
	flock -x 7
	flock -x $mnt/append -c 'echo asleep' >/tmp/asleep 2>&1 &
	sleeper=$!
	# Its system call is flock(2), and not over.
	wait_for 20 grep -q '^73 ' /proc/$sleeper/syscall
	cat >/tmp/list.py <<'EOF'
import os, sys, time
seen = []
with os.scandir(sys.argv[1]) as entries:
    for e in entries:
        seen.append(e.name)
        if len(seen) % 1000 == 0:
            open(sys.argv[2], "a").write("%d\n" % len(seen))
            while os.path.exists(sys.argv[3]):
                time.sleep(0.02)
print(len(seen), len(set(seen)))
EOF
	: >/tmp/hold
	python3 /tmp/list.py $mnt/list /tmp/at /tmp/hold >/tmp/listed 2>&1 &
	lister=$!
	wait_for 60 grep -q 1000 /tmp/at
	check "the kernel's client mounts" kmount $knt
	check "it does not get the lock" not flock -n $knt/append true
}
# They go on, and end.
held_open() {
	check "the lock is still held" not flock -n $knt/append true
	check "who waits for it waits" not test -s /tmp/asleep
	echo two >&7
	cat <&6 >>/tmp/read
	check "the open file was read on" cmp /tmp/read /tmp/data
	check_equal "the one without a name is there" "$(cat /proc/$$/fd/5)" "without a name"
	rm /tmp/hold
	check "the directory was listed" wait $lister
	check_equal "to its end" "$(cat /tmp/listed)" "4000 4000"
	flock -u 7
	check "who waited has the lock" wait $sleeper
	check_equal "and said so" "$(cat /tmp/asleep)" asleep
	exec 7>&- 6<&- 5>&-
	check_equal "what was written is there" "$(tr '\n' ' ' <$export_dir/append)" "one two "
	check "the removed one is gone" wait_for 20 bash -c "[ -z \"\$(find $export_dir -maxdepth 1 -name '.nfs*')\" ]"
	check "the lock can be had" flock -n $knt/append true
}

# ---- while the kernel waits ----

in_request() { grep -q request_wait_answer "/proc/$1/stack"; }
# Threads end while it looks: its status says nothing.
waits_in_kernel() { [ -n "$(grep -ls fuse_reverse_inval /proc/[0-9]*/task/[0-9]*/stack)" ]; }
# $maker makes a directory in held, which has others, and the server does not answer before `fsfreeze -u`. $reader
# opens held, so that the kernel is told to forget names in it, as its mode has changed. That
# waits, and cannot be killed.
freeze() { # NAME
	chmod 755 $knt/held
	ls -l $mnt/held >/dev/null
	chmod 700 $knt/held
	fsfreeze -f $export_dir
	mkdir $mnt/held/"$1" &
	maker=$!
	wait_for 20 in_request $maker
	ls $mnt/held >/tmp/held &
	reader=$!
	check "the kernel waits" wait_for 20 waits_in_kernel
}

# ---- under load ----

# restart_nr N: of the server, in turn with a grace period in which files and locks are reclaimed, and
# without one, which is over before a client can connect.
restart_without_grace() {
	nfsd_stop
	rpc.nfsd -N 3 "$THREADS"
	end_grace
	echo "rdma 20049" >/proc/fs/nfsd/portlist
}
restart_nr() {
	case $(($1 % 4)) in
	1 | 3) GRACE=keep nfsd_restart ;;
	2) restart_without_grace ;;
	0) nfsd_restart ;; # it ends while files are reclaimed, or just before
	esac
}

keep_log=$RESULTS/keepopen
laps() { grep -c ^lap "$keep_log"; }
has_lapped() { [ "$(laps)" -ge "$1" ] || grep -q ^keepopen: "$keep_log"; }
# STEP, with its number, ten or STEPS times under it, a lap or LAPS after each other. Fails if a call
# failed or a state was lost.
keep_open() { # STEP [LAPS [STEPS]]
	local rc=0 load i steps=${3:-10}
	: >"$keep_log"
	rm -rf $export_dir/keep
	mkdir $export_dir/keep
	"$bin_dir/keepopen" $mnt/keep $export_dir/keep >>"$keep_log" 2>&1 &
	load=$!
	for ((i = 1; i <= steps; i++)); do
		wait_for 200 has_lapped $(($(laps) + ${2:-1})) || break
		! grep -q ^keepopen: "$keep_log" || break
		echo "$1 $i" >>"$keep_log"
		"$1" $i >>"$keep_log" 2>&1 || break
	done
	wait_for 200 has_lapped $(($(laps) + ${2:-1})) || true
	kill -TERM $load
	wait $load || rc=$?
	cat "$keep_log"
	[ $rc = 0 ] && [ $i = $((steps + 1)) ]
}
