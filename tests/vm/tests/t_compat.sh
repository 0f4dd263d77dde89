#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What programs may do, on this client and on the kernel's, beside each other:
# every operation and flag that tests/vm/compat probes. Where the two differ, it
# is a row of docs/compatibility.md with its reason; and each row was told here.
# On another version than the document's only the differences are compared.
# When probes or results changed on purpose, the tables are made anew from the
# folder of results, and explanations are written where there is none:
#
#   tests/vm/compat/table make docs/compatibility.md DIR/t_compat.d
#
# TOPICS="open mmap": only these, on NFSv4.2, without the comparison.
# SERVER_TOO=yes: the server's own file system as well, in server.server.
# vm-timeout: 1200
# vm-boot: own

. "$(dirname "$0")/../guest/guest.sh"

here=$(cd "$(dirname "$0")" && pwd)
rxe_up
nfsd_up
mnt=/mnt knt=/knt
told=$RESULTS
uname -r >"$told/linux"
mkdir -p $bin_dir
cp "$BUILD_DIR/tests/vm/compat" $bin_dir/compat
chmod 755 $bin_dir/compat

# A server's file system on a RAM disk of its own, exported below the others.
# below NAME NUMBER MKFS... : the device is the last argument
below() {
	local dir=$export_dir/$1 device=/dev/ram$2
	shift 2
	[ -b "$device" ] || mknod "$device" b 1 "${device#/dev/ram}"
	mkdir -p "$dir"
	"$@" "$device"
	mount -o "${MOUNT_OPTS:-rw}" "$device" "$dir"
	chmod 777 "$dir"
	echo "$dir *(rw,fsid=1${device#/dev/ram},no_root_squash,insecure,no_subtree_check,async)" >>/etc/exports
	exportfs -r
}

# small_ext4 DEVICE: 16 MiB, 304 inodes, with the limits of users.
small_ext4() { mkfs.ext4 -q -b 4096 -N 304 -O ^has_journal,quota -E quotatype=usrquota "$1" 4096; }

# probe CONDITION WHO MOUNT EXPORT [TOPIC...]
probe() {
	local condition=$1 who=$2 mount=$3 export=$4
	shift 4
	$bin_dir/compat "$mount" "$export" "$condition.$who" "$@" >"$told/$condition.$who" \
		2>>"$told/errors" </dev/null
	rm -rf "${export:?}/$condition.$who"
}

# both CONDITION OPTIONS BELOW TOPIC... : one client after the other
both() {
	local condition=$1 opts=$2 sub=$3
	shift 3
	check "$condition: mounted" fmount $mnt "allow_other,$opts"
	check "$condition: mounted by the kernel" kmount $knt "$opts"
	check "$condition: probed" probe "$condition" ours "$mnt$sub" "$export_dir$sub" "$@"
	check "$condition: the kernel's client probed" \
		probe "$condition" kernel "$knt$sub" "$export_dir$sub" "$@"
	check "$condition: unmounted" funmount $mnt
	check "$condition: unmounted by the kernel" kumount $knt
}

if [ -n "${TOPICS:-}" ]; then
	# shellcheck disable=SC2086  # words
	both nfs42 actimeo=1,vers=4.2 '' $TOPICS
	paste -d '\n' "$told"/nfs42.{ours,kernel} | uniq -c
	tap_end
	exit
fi

# To look at; nobody is measured by it.
[ -z "${SERVER_TOO:-}" ] || probe server server $export_dir $export_dir
below xfs 1 mkfs.xfs -q -f
MOUNT_OPTS=usrquota below small 2 small_ext4
both small actimeo=1 /small quota 'no space'
both xfs actimeo=1 /xfs 'copy_file_range' reflink space 'extended attributes'
both dev actimeo=1,suid,dev '' 'special files' exec
both ro ro,actimeo=1 '' read-only
both default actimeo=60 '' options
both noac noac '' options
both sync sync,actimeo=60 '' options
both actimeo0 actimeo=0 '' options
both pos lookupcache=pos,actimeo=60 '' options
both none lookupcache=none,actimeo=60 '' options
both nocto nocto,actimeo=60 '' options
both nfs42 actimeo=1,vers=4.2 ''
both nfs41 actimeo=1,vers=4.1 ''

# Lines of TAP, which are numbered anew.
compare() {
	local line
	while read -r line; do
		case $line in
		"ok "* | "not ok "*)
			tap_count=$((tap_count + 1))
			[[ $line == ok* ]] || tap_failed=$((tap_failed + 1))
			echo "${line%% [0-9]* - *} $tap_count - ${line#* - }"
			;;
		esac
	done < <("$here/../compat/table" check "$here/../../../docs/compatibility.md" "$told")
}
check "no probe ended early" not grep -E 'line [0-9]+: |killed by|died' "$told"/*.{ours,kernel}
check "nothing was said about errors" not test -s "$told/errors"
compare
tap_end
