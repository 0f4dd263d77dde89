#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Space in files: fallocate, punched holes, SEEK_DATA and SEEK_HOLE, beside the
# kernel's client on the same export.

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
mnt=/mnt knt=/knt

# holes FILE: where lseek finds data and holes, as "data FROM TO" lines.
cat >/tmp/holes.py <<'END'
import errno, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
pos, size = 0, os.fstat(fd).st_size
while pos < size:
    try:
        data = os.lseek(fd, pos, os.SEEK_DATA)
    except OSError as e:
        assert e.errno == errno.ENXIO, e
        break
    pos = os.lseek(fd, data, os.SEEK_HOLE)
    print('data', data, pos)
print('size', size)
END
holes() { python3 /tmp/holes.py "$1"; }
blocks() { stat -c %b "$1"; }

check "mounted" fmount $mnt allow_other,actimeo=1
check "mounted by the kernel's client" kmount $knt actimeo=1
check "space is allocated" fallocate -l 3000000 $mnt/space
check_equal "and counts in the size" "$(stat -c %s $export_dir/space)" 3000000
check "on the server too" test "$(blocks $export_dir/space)" -ge 5800
check "the size it has at once here" test "$(stat -c %s $mnt/space)" = 3000000

head -c 1048576 /dev/urandom >/tmp/data
cp /tmp/data $mnt/punched
check "a hole is punched" fallocate -p -o 65536 -l 131072 $mnt/punched
python3 - <<'END'
data = bytearray(open('/tmp/data', 'rb').read())
data[65536:65536 + 131072] = bytes(131072)
open('/tmp/data', 'wb').write(data)
END
check "zeros are read there" cmp /tmp/data $mnt/punched
check "on the server as well" cmp /tmp/data $export_dir/punched
check_equal "the hole is found" "$(holes $mnt/punched)" "data 0 65536
data 196608 1048576
size 1048576"
check_equal "as the server's file system tells it" "$(holes $mnt/punched)" "$(holes $export_dir/punched)"

# Written but not committed yet, then punched: the data does not come back.
writer() {
	python3 - "$mnt/order" <<'END'
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(fd, b'x' * 300000)
assert libc.fallocate(fd, 3, ctypes.c_long(0), ctypes.c_long(131072)) == 0, ctypes.get_errno()
os.fsync(fd)
assert os.pread(fd, 300000, 0) == bytes(131072) + b'x' * (300000 - 131072)
os.close(fd)
END
}
check "a hole in what was just written" writer

truncate -s 10000000 $mnt/sparse
printf data | dd of=$mnt/sparse bs=1 seek=5000000 conv=notrunc status=none
check_equal "a sparse file" "$(holes $mnt/sparse)" "$(holes $export_dir/sparse)"
check "copied sparse" cp --sparse=auto $mnt/sparse $mnt/copy
check "the copy is right" cmp $mnt/copy $export_dir/sparse
check "and sparse" test "$(blocks $export_dir/copy)" -le 64

# What the kernel's client refuses is refused, and with the same error.
refused() { ! LC_ALL=C "$@" >/dev/null 2>/tmp/refused || return 1; sed 's/.*: //' /tmp/refused; }
for what in "-n -l 100" "-z -l 100" "-c -l 4096" "-i -l 4096"; do
	# shellcheck disable=SC2086  # words
	check_equal "fallocate $what" "$(refused fallocate $what $mnt/punched)" \
		"$(refused fallocate $what $knt/punched)"
done
check_equal "more than there is" "$(refused fallocate -l 100G $mnt/space)" "$(refused fallocate -l 100G $knt/space)"
rm $mnt/space

# Every other page of a hole is written through a mapping, which the kernel takes for written when
# munmap(2) returns: no SEEK may come before the last of those WRITEs. (mmap.mmap closes a descriptor
# of its own: the FLUSH of that would wait for them.)
cat >/tmp/mapped.py <<'END'
import ctypes, os, sys
PAGE, rounds, size = 4096, int(sys.argv[2]), int(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
written = range(0, size, 2 * PAGE)
looked_for = written[-1::-max(1, len(written) // 8)]
seen = set()
for _ in range(rounds):
    fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.ftruncate(fd, size)
    addr = libc.mmap(None, size, 3, 1, fd, 0)
    assert addr != ctypes.c_void_p(-1).value, ctypes.get_errno()
    for pos in written:
        ctypes.memset(addr + pos, 1, 1)
    assert libc.munmap(addr, size) == 0
    for pos in looked_for:
        found = os.lseek(fd, pos, os.SEEK_DATA)
        assert found == pos, f'data at {pos} found at {found}'
    # While it is not known that the kernel keeps none, all is data.
    found = os.lseek(fd, PAGE, os.SEEK_DATA)
    assert found in (PAGE, 2 * PAGE)
    seen.add(found)
    os.close(fd)
assert 2 * PAGE in seen or sys.argv[4:] == ['kept']
END
check "data that a mapping wrote is found right after" python3 /tmp/mapped.py $mnt/mapped 50 16384
rm $mnt/mapped
check "unmounted" funmount $mnt

check "mounted, and the kernel keeps what it writes" fmount $mnt nconnect=2,max_background=1
check "data that it keeps is found" python3 /tmp/mapped.py $mnt/mapped 1 2097152 kept
check "unmounted" funmount $mnt

# To a user's daemon it sends no more than this, and does not say so.
limit=/sys/module/fuse/parameters/max_user_bgreq
as_joe=(env XDG_RUNTIME_DIR=/run/joe setpriv --reuid 1000 --regid 1000 --clear-groups --)
of_users=$(cat $limit)
echo 1 >$limit
chmod a+rw /dev/fuse
cp /etc/fuse.conf /tmp/fuse.conf && echo user_allow_other >>/etc/fuse.conf
mkdir -m 700 /run/joe && mkdir $export_dir/joe && chown 1000:1000 /run/joe $export_dir/joe $mnt
FMOUNT_WRAP=${as_joe[*]} check "mounted by a user, of whom the kernel keeps more" fmount $mnt allow_other /joe
check "data that it keeps is found" "${as_joe[@]}" python3 /tmp/mapped.py $mnt/mapped 1 2097152 kept
# The limit is of the connection, which outlives a daemon.
echo "$of_users" >$limit
mountpoint -q /sys/fs/fuse/connections || mount -t fusectl fusectl /sys/fs/fuse/connections
check "another daemon takes over" "${as_joe[@]}" "$daemon" upgrade "pid:$(daemon_pid $mnt)"
check "data that it keeps is found" "${as_joe[@]}" python3 /tmp/mapped.py $mnt/mapped 1 2097152 kept
check "unmounted" funmount $mnt
umount /sys/fs/fuse/connections
chmod go-rw /dev/fuse && cp /tmp/fuse.conf /etc/fuse.conf && rm -r /run/joe

check "mounted with vers=4.1" fmount $mnt vers=4.1
check_equal "fallocate is not supported" "$(refused fallocate -l 5000000 $mnt/sparse)" "Operation not supported"
check_equal "all of the file is data" "$(holes $mnt/sparse)" "data 0 10000000
size 10000000"
check "the kernel's client unmounts" kumount $knt
check "unmounted" funmount $mnt
tap_end
