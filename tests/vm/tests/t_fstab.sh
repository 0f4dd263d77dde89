#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# /etc/fstab and mount(8): lines as administrators write them, right ones and
# wrong ones, each with its message; umount in all its ways; a server that comes
# later; a daemon that was killed under load.
# vm-boot: own
# vm-timeout: 300

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
own_net
daemon_path
ulimit -l unlimited
echo there >$export_dir/there
chmod 644 $export_dir/there
ln -sf "$daemon" /sbin/mount.rpcrdmafs
ln -sf "$daemon" /usr/bin/rpcrdmafs
mnt=/media/share
mkdir -p $mnt
out=/run/fstab.out

# line TYPE OPTIONS [SOURCE] [MOUNTPOINT]: all that is in fstab
line() { echo "${3:-$from:/} ${4:-$mnt} $1 $2,$net_option 0 0" >/etc/fstab; }
is_mounted() { grep -q " ${1:-$mnt} fuse.rpcrdmafs " /proc/self/mounts; }
gone() { ! pgrep -x 'rpcrdmafs|mount.rpcrdmafs' && ! is_mounted; }
run() { timeout 60 $net "$@" >$out 2>&1 </dev/null; }
status() { local want=$1 rc=0; shift; "$@" || rc=$?; cat $out; same "$rc" "$want"; }
said() { cat $out; grep -Eq "$1" $out; }
quiet() { cat $out; [ ! -s $out ]; }
options_of() { awk -v m="${1:-$mnt}" '$2 == m { print $4 }' /proc/self/mounts; }
has_option() { options_of; [[ ,$(options_of), == *,$1,* ]]; }

# good NAME TYPE OPTIONS [command]: mounted and unmounted by mount(8)
good() {
	line "$2" "$3"
	check "$1: mounts" status 0 run ${4:-mount $mnt}
	check "$1: works" grep -q there $mnt/there
	[ -z "${5:-}" ] || check "$1: has $5" has_option "$5"
	check "$1: unmounts" umount $mnt
	check "$1: and ends" wait_for 15 gone
}

good "defaults" rpcrdmafs defaults
check "without a word" quiet
good "mount -a" rpcrdmafs rw,_netdev,nofail "mount -a" allow_other
good "_netdev by mount -a -O" rpcrdmafs _netdev "mount -a -O _netdev"
good "ro" rpcrdmafs ro "mount $mnt" ro
good "noauto and systemd's" rpcrdmafs noauto,x-systemd.automount,x-systemd.idle-timeout=60,comment=mine
good "options of nfs" rpcrdmafs rw,hard,proto=rdma,port=20049,vers=4.2,timeo=600,retrans=2,noatime "mount $mnt" noatime
good "nosuid" rpcrdmafs nosuid,nodev,noexec "mount $mnt" nosuid
good "fuse.rpcrdmafs" fuse.rpcrdmafs defaults,_netdev,allow_other
good "fuse.rpcrdmafs, read-only" fuse.rpcrdmafs ro,nofail,x-systemd.automount "mount $mnt" ro
good "mount -v" rpcrdmafs fg,retry=1 "mount -v $mnt"
line rpcrdmafs X-mount.mkdir "$from:/" /media/made
check "X-mount.mkdir: mounts" status 0 run mount /media/made
check "X-mount.mkdir: works" grep -q there /media/made/there
check "umount -f" umount -f /media/made
check "and ends" wait_for 15 gone
line rpcrdmafs defaults
check "mount -f" status 0 run mount -f $mnt
check "mounts nothing" gone

# ---- a user ----
chmod u+s /usr/bin/fusermount3 /usr/bin/mount /usr/bin/umount
mkdir -p /home/joe/share
id joe >/dev/null 2>&1 || useradd -u 4711 joe
chown -R joe /home/joe
chmod 666 /dev/fuse /dev/infiniband/*
chmod 755 "$bin_dir"
as_joe=(setpriv --reuid 4711 --clear-groups --regid 4711 --)
line rpcrdmafs user,noauto "$from:/" /home/joe/share
check "user: mounts" status 0 run "${as_joe[@]}" mount /home/joe/share
check "user: he sees it" "${as_joe[@]}" grep -q there /home/joe/share/there
check "user: nosuid comes with it" grep -q '/home/joe/share .*nosuid' /proc/self/mounts
check "user: he unmounts it" "${as_joe[@]}" fusermount3 -u /home/joe/share
check "user: and it ends" wait_for 15 gone
# mount(8) drops its privileges then, and what a user may mount is for fusermount3 to say.
line rpcrdmafs noauto
check "no user in the line, and not his mountpoint: refused" status 32 run "${as_joe[@]}" mount $mnt
check "says why" said 'no write access to mountpoint'
check "and nothing is mounted" gone

# ---- wrong lines ----
# wrong NAME STATUS TEXT
wrong() {
	check "$1: fails" status "$2" run mount "${4:-$mnt}"
	check "$1: says it" said "$3"
	check "$1: in one line of ours" same "$(grep -c ^rpcrdmafs: $out)" 1
	check "$1: nothing is mounted" gone
}
line rpcrdmafs defaults,frobnicate
wrong "no such option" 1 'unknown option frobnicate'
line rpcrdmafs defaults "$from"
wrong "no path in the source" 1 'expected server:/path'
line rpcrdmafs defaults "$from:/missing"
wrong "no such export" 32 'export path.*missing'
line rpcrdmafs vers=3
wrong "NFSv3" 1 'only NFS 4.1 and 4.2'
line rpcrdmafs defaults,retry=0,port=20050
wrong "nothing listens, retry=0" 32 'connect'
line rpcrdmafs defaults "$from:/" /media/none
check "no mountpoint: fails" status 32 run mount /media/none
check "no mountpoint: says so" said 'exist'

# ---- mounted already, dead ----
line rpcrdmafs defaults
check "mounts" status 0 run mount $mnt
check "the same again: 32" status 32 run mount $mnt
check "says so" said "already mounted on $mnt"
check "mount -a passes over it" status 0 run mount -a
load() { local i; for ((i = 0; i < 10000; i++)); do dd if=/dev/zero of=$mnt/load bs=64k count=16 || break; done >/dev/null 2>&1; }
load & loads=$!
sleep 1
kill -KILL "$(pgrep -x 'rpcrdmafs|mount.rpcrdmafs')"
wait $loads || true
check "killed under load: ENOTCONN" bash -c "ls $mnt 2>&1 | grep -q 'not connected'"
check "the same line mounts again" status 0 run mount $mnt
check "says that it took a dead one away" said 'had died was taken away'
check "it works" grep -q there $mnt/there
once() { same "$(grep -c " $mnt fuse.rpcrdmafs " /proc/self/mounts)" 1; }
check "and is there once" once
check "umount -l" umount -l $mnt
check "and ends" wait_for 15 gone

# ---- changed while it is there ----
line rpcrdmafs defaults
mkdir -p /media/bound
check "mounts" status 0 run mount $mnt
mount --bind $mnt /media/bound
again() { run mount -o "remount,$1" ${2:-$mnt}; }
info_has() { rpcrdmafs info $mnt >$out && said "$1"; }
cp /bin/true $mnt/program
chmod 755 $mnt/program
exec 7>$mnt/open
check "ro, a file is open for writing: 32" status 32 again ro
check "says why" said 'open for writing'
exec 7>&-
echo safe >$mnt/safe
check "ro" status 0 again ro
check "without a word" quiet
check "what was written is there" grep -qx safe $export_dir/safe
check "nothing more is" not touch $mnt/more
check "not elsewhere either" not touch /media/bound/more
check "info knows" info_has 'access +ro'
check "rw" status 0 again rw
check "is written again" touch $mnt/more
check "info knows that" info_has 'access +rw'
check "noexec" status 0 again noexec
check "nothing runs" not $mnt/program
check "but on the other mountpoint" /media/bound/program
check "exec, and the options in force" status 0 again exec,rw,hard,timeo=600,allow_other
check "it runs" $mnt/program
check "nosuid,nodev, which it has" status 0 again nosuid,nodev
check "suid: refused, where mount(8) hands it on" status 1 run rpcrdmafs -o remount,suid "$from:/" $mnt
check "by name" said 'option suid cannot be changed while it is mounted'
check "another wsize: refused" status 32 again ro,wsize=8192
check "by name" said 'option wsize=8192 is changed by: rpcrdmafs set'
check "another vers: refused" status 32 again ro,vers=4.1
check "by name" said 'option vers=4.1 cannot be changed while it is mounted'
check "and nothing changed" touch $mnt/more
check "ro, from another mount namespace" unshare -m --propagation private mount -o remount,ro $mnt
check "holds here" not touch /media/bound/more
check "without fstab" bash -c ': >/etc/fstab; mount -o remount,rw '$mnt
check "is written again" touch /media/bound/more
umount /media/bound
check "unmounts" umount $mnt
check "and ends" wait_for 15 gone

# ---- a server that comes later ----
nfsd_stop
line rpcrdmafs bg,retry=2
check "bg, server down: 0" status 0 run mount $mnt
check "says that it waits" said 'trying again for 2 min, in the background'
check "is not there" not is_mounted
nfsd_start
check "is there when the server is" wait_for 60 is_mounted
check "and works" grep -q there $mnt/there
check "unmounts" umount $mnt
check "and ends" wait_for 15 gone
nfsd_stop
line rpcrdmafs retry=1
(sleep 5; nfsd_start >/dev/null 2>&1) & later=$!
check "fg: the command waits for the server" status 0 run mount $mnt
check "and said so" said 'trying again for 1 min$'
wait $later
check "works" grep -q there $mnt/there
check "unmounts" umount $mnt
check "and ends" wait_for 15 gone
tap_end
