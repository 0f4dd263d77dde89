#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# vm-timeout: 240
# vm-boot: own
#
# Owners as names: the server maps its numbers by rpc.idmapd, ours by
# libnfsidmap, both as the guest's /etc/idmapd.conf says. They are one machine
# with one /etc/passwd; a name that the client does not know is made by taking
# it out of that file after the server has learned it.

. "$(dirname "$0")/../guest/guest.sh"

rxe_up

# The guest's own users; ann and bob are both sides', eve will be the server's.
printf '%s\n' root:x:0:0::/:/bin/sh nobody:x:65534:65534::/:/bin/sh \
	ann:x:4001:4001::/:/bin/sh bob:x:4002:4002::/:/bin/sh eve:x:4003:4003::/:/bin/sh >/etc/passwd
printf '%s\n' root:x:0: nogroup:x:65534: ann:x:4001: bob:x:4002: eve:x:4003: >/etc/group
printf 'passwd: files\ngroup: files\n' >/etc/nsswitch.conf
cat >/etc/idmapd.conf <<-END
	[General]
	Domain = rig.test
	[Mapping]
	Nobody-User = nobody
	Nobody-Group = nogroup
	[Translation]
	Method = nsswitch
END

nfsd_up
# Names on the wire, as with Kerberos; without idmapd nfsd would fall back to numbers.
echo N >/sys/module/nfsd/parameters/nfs4_disable_idmapping
setsid rpc.idmapd -f -S -p /run/rpc_pipefs >/run/idmapd.log 2>&1 </dev/null &
echo $! >>/run/nfsd.pids
idmapd_listens() { [ -n "$(ls /proc/net/rpc/nfs4.idtoname/channel 2>/dev/null)" ] && kill -0 "$(tail -n 1 /run/nfsd.pids)"; }
wait_for 10 idmapd_listens || true
sleep 1

mnt=/mnt
as() {
	local id=$1
	shift
	setpriv --reuid "$id" --regid "$id" --clear-groups "$@"
}
owner() { stat -c %u:%g "$1"; }

mkdir -m 777 $export_dir/d
for who in ann:4001 bob:4002 eve:4003 root:0; do
	echo "of ${who%:*}" >$export_dir/d/"${who%:*}"
	chown "${who#*:}:${who#*:}" $export_dir/d/"${who%:*}"
	chmod 600 $export_dir/d/"${who%:*}"
done
mkdir -m 700 $export_dir/d/eves
echo secret >$export_dir/d/eves/f
chmod 644 $export_dir/d/eves/f
chown -R 4003:4003 $export_dir/d/eves

check "mounted" fmount $mnt allow_other,actimeo=1
check_equal "ann is ann" "$(owner $mnt/d/ann)" 4001:4001
check_equal "root is root" "$(owner $mnt/d/root)" 0:0
check_equal "ls has names" "$(ls -l $mnt/d | awk '$9 == "bob" { print $3, $4 }')" "bob bob"
check_equal "all as on the server" "$(cd $mnt/d && stat -c '%n %u:%g' ./*)" \
	"$(cd $export_dir/d && stat -c '%n %u:%g' ./*)"
# What was on the wire: nfsd has asked for these.
check "names were on the wire" grep -q 'ann@rig.test' /proc/net/rpc/nfs4.idtoname/content
check "the log says which domain" wait_for 30 grep -q 'in the domain rig.test' "$(fmount_log $mnt)"

check "chown by number" chown 4002:4001 $mnt/d/ann
check_equal "reaches the server" "$(owner $export_dir/d/ann)" 4002:4001
check "chown by name" chown ann:ann $mnt/d/ann
check_equal "reaches the server too" "$(owner $export_dir/d/ann)" 4001:4001
check "the server was sent a name" grep -q 'ann@rig.test' /proc/net/rpc/nfs4.nametoid/content
check "the log says why" wait_for 30 grep -q 'does not take numbers as owners' "$(fmount_log $mnt)"
check_fails "a number without a name is refused" chown 4999 $mnt/d/ann
check "with EINVAL" bash -c "chown 4999 $mnt/d/ann 2>&1 | grep -q 'Invalid argument'"
check_equal "and changes nothing" "$(owner $export_dir/d/ann)" 4001:4001
check "what ann makes is ann's" as 4001 touch $mnt/d/made
check_equal "there" "$(owner $export_dir/d/made)" 4001:4001
check_equal "and here" "$(owner $mnt/d/made)" 4001:4001
check "unmounted" funmount $mnt

# The kernel's client in the same boot (its upcall is nfsidmap, by request-key).
known() { (cd "$1/d" && stat -c '%n %u:%g' ann bob root made); }
check "the kernel's client mounts" kmount /kmnt
check_equal "it sees what we do" "$(known /kmnt)" "$(known $export_dir)"
check "and sends what we do" chown bob:bob /kmnt/d/made
check_equal "to the same end" "$(owner $export_dir/d/made)" 4002:4002
check "unmounted" kumount /kmnt

# eve goes from this machine's users; the server knows her for ten minutes yet.
sed -i /^eve:/d /etc/passwd /etc/group
check "mounted again" fmount $mnt allow_other,actimeo=1
check_equal "eve is nobody here" "$(owner $mnt/d/eve)" 65534:65534
check_equal "and still eve there" "$(owner $export_dir/d/eve)" 4003:4003
check_fails "nobody reads nothing of hers" as 65534 cat $mnt/d/eve
check_fails "nor writes" as 65534 bash -c "echo x >>$mnt/d/eve"
check_fails "nor changes the mode" as 65534 chmod 666 $mnt/d/eve
check_fails "nor the owner" as 65534 chown 65534 $mnt/d/eve
check_fails "nor lists her folder" as 65534 ls $mnt/d/eves
check "she walks into her folder" as 4003 cat $mnt/d/eves/f
check_fails "nobody does not, by a name that was just used" as 65534 cat $mnt/d/eves/f
check_fails "nor looks at what is in it" as 65534 stat $mnt/d/eves/f
check_fails "access(2) says so too" as 65534 test -r $mnt/d/eve
check_fails "another user is refused" as 4002 cat $mnt/d/eve
check "she reads her own, whatever is shown" as 4003 cat $mnt/d/eve
# There the kernel judges by what is shown, and the server by what is: both must allow it.
check "mounted with default_permissions" fmount /mnt2 allow_other,default_permissions
check_fails "the server refuses who looks like the owner" as 65534 cat /mnt2/d/eve
check_fails "the kernel refuses her, who does not" as 4003 cat /mnt2/d/eve
check "unmounted" funmount /mnt2
check "unmounted" funmount $mnt

# Without a resolver at all.
echo 'broken' >/etc/nsswitch.conf
rm -f /etc/passwd /etc/group
check "mounted without users" fmount $mnt allow_other,actimeo=1
check_equal "everybody is nobody" "$(owner $mnt/d/bob)" 65534:65534
check "and reads his own" as 4002 cat $mnt/d/bob
check "unmounted" funmount $mnt
tap_end
