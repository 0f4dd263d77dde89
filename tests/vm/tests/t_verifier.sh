#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The server is restarted between a WRITE and its COMMIT, and has lost the data
# (which is taken away behind its back): fsync and close succeed, and the data
# is on the server, as its own file system and another client see it.
# vm-boot: own
# vm-timeout: 300

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
mnt=/mnt

# A program that writes what its arguments say, waits while the server loses
# it, goes on, and tells how it ended.
#   writer FILE fsync|close|read PART...     PART: offset,length,seed
cat >/tmp/writer.py <<'END'
import os, sys, time
path, end = sys.argv[1:3]
def part(p):
    off, n, seed = map(int, p.split(','))
    return off, bytes((i * 31 + i // 251 + seed) & 255 for i in range(min(n, 65536))) * (-(-n // 65536))
fd = os.open(path, os.O_RDWR | os.O_CREAT)
want = bytearray()
for p in sys.argv[3:]:
    off, data = part(p)
    data = data[:int(p.split(',')[1])]
    while len(want) < off + len(data):
        want += bytes(off + len(data) - len(want))
    want[off:off + len(data)] = data
    for i in range(0, len(data), 1 << 20):
        chunk = data[i:i + (1 << 20)]
        assert os.pwrite(fd, chunk, off + i) == len(chunk)
open('/tmp/want', 'wb').write(want)
open('/tmp/ready', 'w').close()
while not os.path.exists('/tmp/go'):
    time.sleep(0.05)
if end == 'read':
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    assert os.pread(fd, len(want), 0) == want, 'read back'
if end == 'fsync':
    os.fsync(fd)
    os.fsync(fd)
os.close(fd)
END

aged() { client_stats $mnt | stat_of commits_by_age; }

# lose FILE: the server goes down, and what it has of the file with it. KEEP=1: not so (of a file
# that is committed in part already), nor if that took so long that it was committed for its age.
lose() {
	nfsd_stop
	[ -n "${KEEP:-}" ] || [ "$(aged)" != "$before" ] || truncate -s 0 "$export_dir/$1"
	nfsd_start
}

# over_restart FILE fsync|close|read PART...
over_restart() {
	rm -f /tmp/ready /tmp/go
	before=$(aged)
	timeout 100 python3 /tmp/writer.py "$mnt/$1" "${@:2}" &
	local pid=$!
	wait_for 60 test -e /tmp/ready || return 1
	lose "$1" || return 1
	touch /tmp/go
	wait $pid || return 1
	cmp /tmp/want "$export_dir/$1"
}

changes() { client_stats $mnt | stat_of verifier_changes; }

tests() {
	check "three large writes, fsync" over_restart large fsync 0,3145728,1
	check "the client saw it" test "$(changes)" -ge 1
	check "small appends, fsync" over_restart small fsync 0,100,1 100,100,2 200,5000,3 5200,9,4
	check "overlapping writes, close" over_restart over close 0,1048576,1 1000,3000,2 500000,700000,3 2000,10,4
	check "it is read back before anything is committed" over_restart back read 0,2000000,5 70000,100,6
	KEEP=1 check "more than may be unstable at once" over_restart much fsync 0,73400320,7
}

check "mounted" fmount $mnt rw
tests
check "unmounted" funmount $mnt
check "mounted with two lanes" fmount $mnt nconnect=2
tests
check "unmounted" funmount $mnt

cp "$BUILD_DIR/tests/vm/witness" "$bin_dir/witness"
check_equal "another client sees the same" "$("$bin_dir/witness" $server / | sort)" \
	"$(tree_sums $export_dir | sort)"
tap_end
