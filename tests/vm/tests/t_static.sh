#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The tests of files again, in the settings that the others do not use: static
# registrations, NFSv4.1, small buffers, segmented chunks, synchronous writes.
# vm-timeout: 300

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
again() { criterion "MNT_OPTS=$1" timeout 100 "$BUILD_DIR/tests/vm/test_$2" -j1; }

check "memreg=static, vers=4.1" again memreg=static,vers=4.1 files
check "memreg=mw, chunks of 64 KiB segments" again memreg=mw,max_seg=131072,sync files
check "few buffers, small rsize and wsize" again buffers=4,rsize=65536,wsize=32768,credits=8 files
tap_end
