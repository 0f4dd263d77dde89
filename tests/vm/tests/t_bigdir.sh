#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A directory of 100,000 files, listed by this client and by the kernel's: each
# entry once, none missed, also while others come and go, and positions of
# telldir lead back.
# vm-timeout: 400

EXPORT_MIB=2048 # ext4 has no inodes for more than 98,000 files in less

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
mnt=/mnt knt=/knt files=${FILES:-100000}
dir=$export_dir/bigdir
mkdir -p $bin_dir
cp "$BUILD_DIR/tests/vm/bigdir" $bin_dir/bigdir
mkdir $dir

names() { ls -U "$1" | sort | sha256sum; }
entries() { find "$1" -mindepth 1 -maxdepth 1 -name '[0-9]*' -printf . | wc -c; }

check "made on the server" $bin_dir/bigdir make $dir $files
check "mounted" fmount $mnt allow_other
check "mounted by the kernel's client" kmount $knt
check "each is listed once" $bin_dir/bigdir list $mnt/bigdir $files
check "by the kernel's client too" $bin_dir/bigdir list $knt/bigdir $files
check_equal "the same names as on the server" "$(names $mnt/bigdir)" "$(names $dir)"
check "positions lead back" $bin_dir/bigdir seek $mnt/bigdir $files
check "none that stays is missed while others come and go" $bin_dir/bigdir change $mnt/bigdir $files
check_equal "those that went are gone" "$(entries $mnt/bigdir)" $((files - files / 100))
check_equal "and the server has the same names" "$(names $mnt/bigdir)" "$(names $dir)"
check "unmounted" funmount $mnt
check "unmounted by the kernel" kumount $knt
check "all are removed" rm -r $dir
tap_end
