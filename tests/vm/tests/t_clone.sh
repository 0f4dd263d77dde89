#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# CLONE on a file system whose files can share blocks: what cp and
# copy_file_range make of it here, and the kernel's client beside. Where they
# cannot share (/sub), and with NFSv4.1, it is as without CLONE.
# vm-boot: own
# vm-timeout: 400

export EXPORT_FS=xfs SYNC_EXPORT=sync
. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
mnt=/mnt knt=/knt

ops() { server_stats | stat_of "op_$1"; }

# shared FILE: bytes of it that it shares with another file, as the server's file system has it.
shared() {
	filefrag -s -v -b1 "$1" | awk -F: '/shared/ { sum += $4 } END { print sum + 0 }'
}

# copy.py FROM TO OFF_IN OFF_OUT LEN: one call; tells how much that was, or the error.
cat >/tmp/copy.py <<'END'
import errno, os, sys
src = os.open(sys.argv[1], os.O_RDWR)
dst = os.open(sys.argv[2], os.O_RDWR | os.O_CREAT, 0o644)
off_in, off_out, n = map(int, sys.argv[3:6])
try:
    done = os.copy_file_range(src, dst, n, off_in, off_out)
    want = os.pread(src, done, off_in)
    assert os.pread(dst, done, off_out) == want, 'seen at once'
    assert os.fstat(dst).st_size >= off_out + done, 'the size it has at once'
    print(done)
except OSError as e:
    print(errno.errorcode[e.errno])
END
copy() { python3 /tmp/copy.py "$@"; }
cat >/tmp/ficlone.py <<'END'
import errno, fcntl, sys
with open(sys.argv[1], 'rb') as src, open(sys.argv[2], 'wb') as dst:
    try:
        fcntl.ioctl(dst, 0x40049409, src.fileno())
        print('cloned')
    except OSError as e:
        print('EOPNOTSUPP' if e.errno == errno.EOPNOTSUPP else e.strerror)
END
ficlone() { python3 /tmp/ficlone.py "$@"; }

size=20000123
blocks=$(((size + 4095) / 4096 * 4096))
python3 -c '
import random, sys
sys.stdout.buffer.write(random.Random(3).randbytes(int(sys.argv[1])))' $size >$export_dir/large
cp $export_dir/large $export_dir/sub/large
sync

check "mounted" fmount $mnt allow_other,actimeo=1
check "mounted by the kernel's client" kmount $knt actimeo=1

clones=$(ops clone) copies=$(ops copy)
check_equal "FUSE has no FICLONE" "$(ficlone $mnt/large $mnt/ioctl)" EOPNOTSUPP
check_equal "the kernel's client has" "$(ficlone $knt/large $knt/kioctl)" cloned
check_equal "by CLONE" "$(ops clone)" $((clones + 1))

clones=$(ops clone) reads=$(ops read) writes=$(ops write)
check "cp" cp --reflink=auto $mnt/large $mnt/cp
check_equal "is a clone" "$(ops clone)" $((clones + 1))
check_equal "and no COPY" "$(ops copy)" "$copies"
check_equal "nothing is read" "$(ops read)" "$reads"
check_equal "nothing is written" "$(ops write)" "$writes"
check "it is the same" cmp $export_dir/large $export_dir/cp
check_equal "of the same size" "$(stat -c %s $mnt/cp)" $size
check_equal "all its blocks are shared" "$(shared $export_dir/cp)" "$blocks"
check "the kernel's client's cp" cp --reflink=auto $knt/large $knt/kcp
check_equal "makes the same of it" "$(shared $export_dir/kcp)" "$blocks"

clones=$(ops clone)
check_equal "copy_file_range of it all" "$(copy $mnt/large $mnt/cfr 0 0 $size)" $size
check_equal "is a clone too" "$(ops clone)" $((clones + 1))
check_equal "of all blocks" "$(shared $export_dir/cfr)" "$blocks"
clones=$(ops clone) copies=$(ops copy)
check_equal "a part with an odd end" "$(copy $mnt/large $mnt/part 4096 8192 1000000)" 1000000
check_equal "is a clone" "$(ops clone)" $((clones + 1))
check_equal "and a COPY" "$(ops copy)" $((copies + 1))
check_equal "not more than asked for" "$(stat -c %s $export_dir/part)" 1008192
check "and right" cmp -n 1000000 -i 4096:8192 $export_dir/large $export_dir/part
clones=$(ops clone)
check_equal "from an odd offset" "$(copy $mnt/large $mnt/odd 77 8192 1000000)" 1000000
check_equal "it is none" "$(ops clone)" "$clones"
check "but right" cmp -n 1000000 -i 77:8192 $export_dir/large $export_dir/odd

# What was just written is in the clone, and what is written then is not in the other file.
cat >/tmp/fresh.py <<'END'
import os, sys
src, dst = (os.open(p, os.O_RDWR | os.O_CREAT) for p in sys.argv[1:3])
os.write(src, b'a' * 1000000)
os.write(dst, b'b' * 100000)
assert os.copy_file_range(src, dst, 1000000, 0, 0) == 1000000
assert os.pread(dst, 2000000, 0) == b'a' * 1000000
os.pwrite(src, b'c' * 5000, 3000)
os.pwrite(dst, b'd' * 5000, 300000)
os.fsync(src)
os.fsync(dst)
assert os.pread(dst, 10000, 0) == b'a' * 10000
assert os.pread(src, 5000, 300000) == b'a' * 5000
assert os.pread(dst, 5000, 300000) == b'd' * 5000
END
check "what was just written" python3 /tmp/fresh.py $mnt/fresh1 $mnt/fresh2
many() { head -c "$2" /dev/zero | tr '\0' "$1"; }
check_equal "the server has it" "$(sha256sum <$export_dir/fresh2)" \
	"$( (many a 300000; many d 5000; many a 695000) | sha256sum)"

clones=$(ops clone)
check_equal "within a file" "$(copy $mnt/cp $mnt/cp 0 10002432 4096000)" 4096000
check_equal "is a clone" "$(ops clone)" $((clones + 1))
check "and right" cmp -n 4096000 -i 0:10002432 $export_dir/large $export_dir/cp
clones=$(ops clone)
check_equal "of no whole blocks" "$(copy $mnt/cp $mnt/cp 5 15000001 100000)" 100000
check_equal "it is the kernel's" "$(ops clone)" "$clones"
check "and right" cmp -n 100000 -i 5:15000001 $export_dir/large $export_dir/cp

# The server is restarted meanwhile: what was told to be copied is.
over_restart() {
	local i pid
	(for i in $(seq 20); do copy $mnt/large $mnt/over-$i 0 0 $size >/tmp/over-$i || exit 1; done) &
	pid=$!
	sleep 0.5
	nfsd_restart
	wait $pid || return 1
	for i in $(seq 20); do
		[ "$(cat /tmp/over-$i)" = $size ] && cmp $export_dir/large $export_dir/over-$i || return 1
	done
	rm $mnt/over-*
}
check "over a restart" over_restart

# Where there is none: asked once.
clones=$(ops clone)
for i in 1 2; do
	check_equal "where there is no CLONE" "$(copy $mnt/sub/large $mnt/sub/copy-$i 0 0 $size)" $size
	check "it is copied" cmp $export_dir/large $export_dir/sub/copy-$i
	rm $mnt/sub/copy-$i
done
check_equal "and CLONE tried once" "$(ops clone)" $((clones + 1))
clones=$(ops clone)
check_equal "from one file system to another" "$(copy $mnt/sub/large $mnt/crossed 0 0 100000)" 100000
check "is right" cmp -n 100000 $export_dir/large $export_dir/crossed
check_equal "without a CLONE" "$(ops clone)" "$clones"
check_equal "the other one still has it" "$(copy $mnt/large $mnt/again 0 0 $size)" $size
check_equal "for itself" "$(ops clone)" $((clones + 1))
check "unmounted" funmount $mnt

check "mounted with vers=4.1" fmount $mnt vers=4.1
clones=$(ops clone)
check "cp" cp --reflink=auto $mnt/large $mnt/old
check "is right" cmp $export_dir/large $export_dir/old
check_equal "without a CLONE" "$(ops clone)" "$clones"
check "unmounted" funmount $mnt
check "the kernel's client unmounts" kumount $knt
tap_end
