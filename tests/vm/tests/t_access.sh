#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Users: each request carries the uid, gid and supplementary groups of who made
# it, and the server decides. manage-gids is off in the guest (guest.sh).
# tier: quick
# vm-core: yes

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
mnt=/mnt
# as UID GID GROUPS command...
as() {
	local who=(--reuid "$1" --regid "$2")
	if [ -n "$3" ]; then who+=(--groups "$3"); else who+=(--clear-groups); fi
	shift 3
	setpriv "${who[@]}" "$@"
}
owner() { stat -c %u:%g "$1"; }

check "mounted with allow_other" fmount $mnt allow_other,acdirmin=1,acdirmax=2
mkdir -m 777 $export_dir/acc
check "a user makes a file" as 1001 1001 "" bash -c "echo 1 >$mnt/acc/u"
check_equal "it is the user's" "$(owner $export_dir/acc/u)" 1001:1001
check "with a group" as 1001 2002 "" touch $mnt/acc/g
check_equal "it is the group's" "$(owner $export_dir/acc/g)" 1001:2002
chmod 600 $export_dir/acc/u
check "the owner reads it" as 1001 1001 "" cat $mnt/acc/u
check_fails "another does not" as 1002 1002 "" cat $mnt/acc/u
check_fails "nor after the owner did" as 1002 1001 "" cat $mnt/acc/u
check "root does" cat $mnt/acc/u

# Supplementary groups.
mkdir $export_dir/team
chown 0:3003 $export_dir/team
chmod 2770 $export_dir/team
check_fails "not in the group: no entry" as 1003 1003 "" ls $mnt/team
check "in the group: entry" as 1003 1003 3003 ls $mnt/team
check "and files" as 1003 1003 3001,3002,3003 touch $mnt/team/f
check_equal "of that group, as sgid says" "$(owner $export_dir/team/f)" 1003:3003
check "the 16th group counts" as 1004 1004 5001,5002,5003,5004,5005,5006,5007,5008,5009,5010,5011,5012,5013,5014,5015,3003 ls $mnt/team
check_fails "a name known to one is not shown to another" as 1005 1005 "" cat $mnt/team/f
echo secret >$export_dir/team/s
chmod 640 $export_dir/team/s
chown 0:3003 $export_dir/team/s
check "a group's file is read by its member" as 1003 1003 3003 cat $mnt/team/s
check_fails "not written" as 1003 1003 3003 bash -c "echo >>$mnt/team/s"

# Sticky folders, set-id, access(2).
mkdir -m 1777 $export_dir/tmp
as 1001 1001 "" touch $mnt/tmp/mine
check_fails "others' files in sticky folders stay" as 1002 1002 "" rm -f $mnt/tmp/mine
check "one's own go" as 1001 1001 "" rm $mnt/tmp/mine
check "access(2) asks the server" as 1001 1001 "" test -w $mnt/acc/u
check_fails "and refuses" as 1002 1002 "" test -r $mnt/acc/u
check "a directory that may be searched but not read" bash -c "
	mkdir -m 711 $export_dir/blind && echo x >$export_dir/blind/f"
check "is entered" as 1002 1002 "" cat $mnt/blind/f
check_fails "but not listed" as 1002 1002 "" ls $mnt/blind
chmod 700 $export_dir/blind
# As long as names are cached they are walked without asking, as by the kernel's client.
check_fails "closed later, nobody walks through" bash -c "sleep 4; $(declare -f as); as 1002 1002 '' cat $mnt/blind/f"

# An open file goes on with who opened it.
as 1001 1001 "" bash -c "exec 5>>$mnt/acc/u; chmod 000 $mnt/acc/u; echo 2 >&5" || true
check_equal "written by its opener" "$(tail -n1 $export_dir/acc/u)" 2

# Root squash: root is nobody in /squash.
check "root in a squashed export" touch $mnt/squash/r
check_equal "is nobody" "$(owner $export_dir/squash/r)" 65534:65534
chmod 755 $export_dir/squash
check_fails "and has no rights" touch $mnt/squash/r2
chmod 777 $export_dir/squash
check_fails "may not chown" chown 1001 $mnt/squash/r
check "other users are who they are" as 1001 1001 "" touch $mnt/squash/u
check_equal "there too" "$(owner $export_dir/squash/u)" 1001:1001
check "unmounted" funmount $mnt

# Names that the kernel knows for a minute.
sees() { stat $mnt/closed >/dev/null && as 1002 1002 "" stat $mnt/closed/f $mnt/closed/sub; }
soon_refused() {
	local tries=100
	while as 1002 1002 "" stat "$1" 2>/dev/null; do
		[ $((tries -= 1)) -gt 0 ] || return 1
		sleep 0.1
	done
}
check "mounted, names are known for long" fmount $mnt allow_other,actimeo=60
mkdir -m 755 $mnt/closed $mnt/closed/sub
echo x >$mnt/closed/f
check "a user sees them" sees
check_equal "closed by a program in it, which is where it was" \
	"$(cd $mnt/closed && chmod 700 . && sleep 1 && /bin/pwd)" $mnt/closed
check "nobody walks through" soon_refused $mnt/closed/f
check "nor into what is below" soon_refused $mnt/closed/sub
chmod 755 $mnt/closed
check "opened again" sees
mount -t tmpfs none $mnt/closed/sub
chmod 700 $mnt/closed
sleep 2
check "what is mounted below stays" mountpoint -q $mnt/closed/sub
umount $mnt/closed/sub
check "unmounted" funmount $mnt

check "without allow_other" fmount $mnt rw
check "root uses it" ls $mnt
check_fails "others do not" as 1001 1001 "" ls $mnt
check "unmounted" funmount $mnt
tap_end
