#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# copy_file_range by the server: little and much of a file, at any offsets, over
# a restart; no data travels. Beside the kernel's client, and with NFSv4.1,
# where it does.
# vm-boot: own
# vm-timeout: 600

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
mnt=/mnt knt=/knt

# copy.py FROM TO OFF_IN OFF_OUT LEN [MOST]: as often as it takes, so much at once; tells how much
# that was.
cat >/tmp/copy.py <<'END'
import os, sys
src = os.open(sys.argv[1], os.O_RDONLY)
dst = os.open(sys.argv[2], os.O_RDWR | os.O_CREAT, 0o644)
off_in, off_out, left = map(int, sys.argv[3:6])
most = int(sys.argv[6]) if len(sys.argv) > 6 else left
done = 0
while left > done:
    n = os.copy_file_range(src, dst, min(most, left - done), off_in + done, off_out + done)
    if n == 0:
        break
    done += n
    # What this mount sees at once is what was copied.
    want = os.pread(src, min(n, 65536), off_in + done - min(n, 65536))
    assert os.pread(dst, min(n, 65536), off_out + done - min(n, 65536)) == want, 'seen at once'
assert os.fstat(dst).st_size >= off_out + done, 'the size it has at once'
os.close(dst)
print(done)
END
copy() { python3 /tmp/copy.py "$@"; }
# by_hand FROM TO OFF_IN OFF_OUT LEN
by_hand() {
	python3 - "$@" <<'END'
import os, sys
src, dst = open(sys.argv[1], 'rb'), open(sys.argv[2], 'r+b' if os.path.exists(sys.argv[2]) else 'w+b')
off_in, off_out, n = map(int, sys.argv[3:6])
src.seek(off_in)
dst.seek(off_out)
dst.write(src.read(n))
END
}
ops() { server_stats | stat_of "op_$1"; }

# Of 64 MiB that nobody here has read.
python3 -c '
import random, sys
block = random.Random(7).randbytes(1 << 20)
for i in range(64):
    sys.stdout.buffer.write(block[i:] + block[:i])' >$export_dir/large

check "mounted" fmount $mnt allow_other,actimeo=1
check "mounted by the kernel's client" kmount $knt actimeo=1

reads=$(ops read) writes=$(ops write) copies=$(ops copy) written=$(server_stats | stat_of io_written)
cat >/tmp/quick.py <<'END'
import os, sys
src, dst = os.open(sys.argv[1], os.O_RDONLY), os.open(sys.argv[2], os.O_RDWR | os.O_CREAT)
n = os.copy_file_range(src, dst, 1 << 30, 0, 0)
assert n == 64 << 20, n
END
check "64 MiB at once" python3 /tmp/quick.py $mnt/large $mnt/copied
check "are what they were" cmp $export_dir/large $export_dir/copied
check_equal "nothing was read" "$(ops read)" "$reads"
check_equal "nothing was written" "$(ops write)" "$writes"
check_equal "by one COPY, whose end was heard of" "$(ops copy)" $((copies + 1))
check_equal "no byte travelled" "$(server_stats | stat_of io_written)" "$written"
diag "OFFLOAD_STATUS: $(ops offload_status)"
check "they are read here as well" cmp $export_dir/large $mnt/copied

copies=$(ops copy)
check "cp copies like that" cp --sparse=never $mnt/large $mnt/cp
check "the whole file" cmp $export_dir/large $export_dir/cp
check "by the server" test "$(ops copy)" -gt "$copies"
rm $mnt/cp

# Anywhere: unaligned, appended, beyond the end, little, much.
ranges() { # MNT NAME
	copy "$1/large" "$1/$2" 0 0 100000
	copy "$1/large" "$1/$2" 12345 777 54321
	copy "$1/large" "$1/$2" 4097 100000 3000001
	copy "$1/large" "$1/$2" 99 4000003 1
	copy "$1/large" "$1/$2" 67000000 5000000 1000000
	copy "$1/large" "$1/$2" 67108864 6000000 10
	copy "$1/large" "$1/$2" 67109000 6000000 10
	copy "$1/large" "$1/$2" 1000001 8000000 20000003
}
ranges $mnt ours >/tmp/ours 2>&1 || true
ranges $knt theirs >/tmp/theirs 2>&1 || true
check_equal "as much as the kernel's client copies" "$(cat /tmp/ours)" "$(cat /tmp/theirs)"
check "and the same" cmp $export_dir/ours $export_dir/theirs
for range in "0 0 100000" "12345 777 54321" "4097 100000 3000001" "99 4000003 1" \
	"67000000 5000000 1000000" "1000001 8000000 20000003"; do
	# shellcheck disable=SC2086  # words
	by_hand $export_dir/large $export_dir/by-hand $range
done
check "as by hand" cmp $export_dir/ours $export_dir/by-hand

# Of what was just written, onto what was just written; within a file.
cat >/tmp/fresh.py <<'END'
import os, sys
src, dst = (os.open(p, os.O_RDWR | os.O_CREAT) for p in sys.argv[1:3])
os.write(src, b'a' * 5000000)
os.write(dst, b'b' * 6000000)
assert os.copy_file_range(src, dst, 3000000, 1, 1000001) == 3000000
want = b'b' * 1000001 + b'a' * 3000000 + b'b' * 1999999
assert os.pread(dst, 6000000, 0) == want
os.fsync(dst)
assert os.pread(dst, 6000000, 0) == want
assert os.copy_file_range(dst, dst, 100, 900000, 5999950) == 100
assert os.pread(dst, 200, 5999950) == b'b' * 100
try:
    os.copy_file_range(dst, dst, 100, 0, 50)
    assert False, 'onto itself'
except OSError:
    pass
END
check "what was just written" python3 /tmp/fresh.py $mnt/fresh1 $mnt/fresh2
check_equal "the server has it" "$(stat -c %s $export_dir/fresh2)" 6000050

copies=$(ops copy)
check "to another file system" copy $mnt/large $mnt/sub/copied 100 0 5000000
check "is right" cmp -n 5000000 -i 100:0 $export_dir/large $export_dir/sub/copied

# A server that is full says so, or copies what there is room for.
refused() { ! LC_ALL=C copy "$@" >/dev/null 2>/tmp/refused || return 1; grep -o 'No space left.*' /tmp/refused; }
check "more than there is room for" refused $mnt/large $mnt/sub/copied 0 5000000 67108864
rm $mnt/sub/copied

# The server is restarted while it copies. Not while it does so by itself: Linux 6.1 then jumps
# through NULL in its copy thread (nfsd4_run_cb of a client that is gone), whoever asked for it.
cat $export_dir/large $export_dir/large $export_dir/large >$export_dir/larger
over_restart() {
	python3 /tmp/copy.py $mnt/larger $mnt/over 0 0 201326592 2097152 >/tmp/over &
	local pid=$!
	sleep "$1"
	nfsd_restart
	wait $pid && [ "$(cat /tmp/over)" = 201326592 ] && cmp $export_dir/larger $export_dir/over
}
check "over a restart" over_restart 0.5

# A program that is killed does not wait for it, and nothing is left behind.
killed() {
	rm -f $mnt/over
	python3 /tmp/copy.py $mnt/larger $mnt/over 0 0 201326592 &
	local pid=$!
	sleep 0.6
	kill -KILL $pid
	wait_for 20 not kill -0 $pid
	wait $pid || true
	printf new >$mnt/over
	sleep 3
	[ "$(cat $export_dir/over)" = new ]
}
check "a killed program's copy ends" killed
diag "OFFLOAD_CANCEL: $(ops offload_cancel)"
check "unmounted" funmount $mnt

check "mounted with vers=4.1" fmount $mnt vers=4.1
copies=$(ops copy)
check_equal "is copied by the kernel" "$(copy $mnt/large $mnt/ours 5 0 10000000)" 10000000
check "is right" cmp -n 10000000 -i 5:0 $export_dir/large $export_dir/ours
check_equal "not by the server" "$(ops copy)" "$copies"
check "unmounted" funmount $mnt
check "the kernel's client unmounts" kumount $knt
tap_end
