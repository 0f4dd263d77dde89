#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A little of everything on one mount, for kernels that the whole suite is not run
# on: data both ways, metadata, locks, extended attributes, a second client, a
# restart of the server under an open file; memory windows where the device has them.
# vm-core: yes
# vm-timeout: 240

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
mnt=/mnt knt=/knt
diag "kernel $(uname -r)"

check "mounted" fmount $mnt allow_other,acdirmin=1,acdirmax=2
# PF_MEMALLOC_NOIO, which PR_SET_IO_FLUSHER sets; a kernel before 5.6 has no such call.
flusher() { (($(cut -d' ' -f9 /proc/"$1"/task/"$1"/stat) & 0x80000)); }
# Code of the program itself is locked.
code_locked() { awk '/^[0-9a-f]+-/ { code = $2 ~ /x/ && /rpcrdmafs/ } code && /^VmFlags:/ && / lo/ { ok = 1 } END { exit !ok }' /proc/"$1"/smaps; }
daemon_pid=$(pgrep -x 'rpcrdmafs|mount.rpcrdmafs')
check_equal "the OOM killer spares the daemon" "$(cat /proc/$daemon_pid/oom_score_adj)" -900
check "reclaim does not wait for it" flusher $daemon_pid
check "its code stays in memory" code_locked $daemon_pid
mkdir $export_dir/core
chmod 777 $export_dir/core
dir=$mnt/core there=$export_dir/core
head -c 9000000 /dev/urandom >/tmp/data
check "9 MB are written" dd if=/tmp/data of=$dir/data bs=1M conv=fsync
check "the server has them" cmp /tmp/data $there/data
check "read past the cache" bash -c "dd if=$dir/data bs=1M iflag=direct | cmp - /tmp/data"
check "read through it" cmp $dir/data /tmp/data
check "appended to" bash -c "echo end >>$dir/data && [ \$(stat -c %s $there/data) = 9000004 ]"

check "names: made, renamed, linked" \
	bash -c "cd $dir && mkdir d && echo 1 >d/a && mv d/a b && ln b c && ln -s b s && rm c && cat s"
check_equal "listed" "$(ls $dir | tr '\n' ' ')" "b d data s "
check_equal "as by the server" "$(ls $dir)" "$(ls $there)"
check "mode and times" bash -c "chmod 640 $dir/b && touch -d @86400 $dir/b && [ \"\$(stat -c '%a %Y' $there/b)\" = '640 86400' ]"
check "another user may not read it" not setpriv --reuid 1001 --regid 1001 --clear-groups cat $dir/b
check "a file is locked" flock -n $dir/b flock -n $dir/data true
check "not twice" not flock -n $dir/b flock -n $dir/b true
check "an extended attribute" setfattr -n user.a -v one $dir/b
check_equal "is there" "$(getfattr --absolute-names --only-values -n user.a $dir/b)" one

check "the kernel's client mounts" kmount $knt acdirmin=1,acdirmax=2
check "it reads what we wrote" cmp $knt/core/data $there/data
check "it writes" bash -c "echo theirs >$knt/core/b"
check_equal "we read it" "$(cat $dir/b)" theirs
check "it unmounts" kumount $knt

exec 7>>$dir/b
check "the server restarts" nfsd_restart
check "an open file is written" bash -c "echo after >&7"
exec 7>&-
check_equal "all is there" "$(tr '\n' ' ' <$there/b)" "theirs after "
check "removed" rm -r $dir/b $dir/d $dir/data $dir/s
check_equal "the server has nothing" "$(ls $there)" ""
check "unmounted" funmount $mnt
if ibv_devinfo -v | grep -q 'max_mw:[[:space:]]*0$'; then
	check_fails "without memory windows memreg=mw is refused" fmount $mnt memreg=mw
	skip "with them" "rxe has none before Linux 5.14"
else
	check "with memory windows" fmount $mnt memreg=mw
	check "data are written" dd if=/tmp/data of=$dir/data bs=1M conv=fsync
	check "they are there" cmp /tmp/data $there/data
	check "unmounted" funmount $mnt
fi
tap_end
