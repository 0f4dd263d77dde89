#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Tests of data again with the options that are not the default, write=wait and
# readahead=: two clients that see each other's files, random operations, a
# server that loses what was not committed.
# vm-boot: own
# vm-timeout: 900

. "$(dirname "$0")/../guest/guest.sh"

dir=$(cd "$(dirname "$0")" && pwd)
again() { FMOUNT_ARGS="-o write=wait,readahead=4" bash "$dir/$1.sh" </dev/null; }

for t in t_basic t_random t_verifier; do
	check "$t with write=wait,readahead=4" again $t
done
tap_end
