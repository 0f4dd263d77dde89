#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# FIFOs, sockets and devices of a mount that several users share: the kernel
# opens them without asking, and still they are only for who may use them.

. "$(dirname "$0")/fuse_sim_lib.sh"

owner=65533
user=65534
as() {
	local uid=$1
	shift
	setpriv --reuid="$uid" --regid="$uid" --clear-groups --inh-caps=-all "$@"
}
as_owner() { as $owner "$@"; }
as_user() { as $user "$@"; }

if ! as_user true 2>/dev/null; then
	echo "# setpriv does not run as another user"
	exit 77
fi
chmod 755 "$work"
cp "$bin/fuse_sim_sock" "$work/sock"
sock=$work/sock

# serves NAME PATH MASK: the owner's program behind a socket
serves() {
	rm -f "$work/$1.out"
	(umask "$3" && exec setpriv --reuid=$owner --regid=$owner --clear-groups --inh-caps=-all \
		"$sock" serve "$2") >"$work/$1.out" 2>&1 &
	serving=$!
	wait_for 60 grep -qx ready "$work/$1.out"
}
# It has its socket open, which keeps the mount busy, until it has ended.
serves_no_more() { kill "$serving" && ! wait "$serving" 2>/dev/null; }
hears() { same "$(as "$1" "$sock" ask "$2" "${4:-1}")" "$3"; }

# holds PATH TEXT: the owner has the FIFO open, with something in it.
holds() {
	rm -f "$work/held"
	# shellcheck disable=SC2016  # for the shell that it starts
	as_owner bash -c 'exec 3<>"$1" && echo "$2" >&3 && echo holds && read -r _' - "$1" "$2" \
		<"$work/end" >"$work/held" 2>&1 &
	holding=$!
	wait_for 60 grep -qx holds "$work/held"
}
ends() { echo >&"$end" && wait "$holding"; }
# Without waiting for a writer or reader.
gets() { same "$(as "$1" dd if="$2" iflag=nonblock count=1 status=none 2>&1)" "$3"; }
# shellcheck disable=SC2016  # for the shell that it starts
puts_in() { as "$1" bash -c 'echo more | dd of="$1" oflag=nonblock conv=notrunc status=none' - "$2"; }
nobody_reads() {
	! puts_in "$1" "$2" 2>"$work/why" && grep -q 'No such device or address' "$work/why"
}
shows() { same "$(as "$1" stat -c "$3" "$2")" "$4"; }
fails_with() {
	local why=$1
	shift
	! "$@" 2>"$work/why" && grep -q "$why" "$work/why"
}

mkfifo "$work/end" && exec {end}<>"$work/end"
must "mounted for several users" sim_start m "" allow_other,dev
m=$work/m
mkdir "$m/d" && chown $owner "$m/d" && chmod 755 "$m/d"

# ---- sockets ----

must "a socket of its owner" serves s "$m/d/s" 077
check "the owner connects" hears $owner "$m/d/s" hello
check "another user finds nobody there" hears $user "$m/d/s" ECONNREFUSED
check "the owner still does" hears $owner "$m/d/s" hello
check "root does" hears 0 "$m/d/s" hello
check "what a stat shows is the same" same "$(as_user stat -c '%i %a %u %F %h' "$m/d/s")" \
	"$(as_owner stat -c '%i %a %u %F %h' "$m/d/s")"
# Both at once, the name walked by a third as well.
together() {
	local a b c
	hears $owner "$m/d/s" hello 500 &
	a=$!
	hears $user "$m/d/s" ECONNREFUSED 500 &
	b=$!
	# shellcheck disable=SC2016  # for the shell that it starts
	as_user bash -c 'for ((i = 0; i < 200; i++)); do [ -S "$1" ] || exit; done' - "$m/d/s" &
	c=$!
	wait "$a" && wait "$b" && wait "$c"
}
check "at once, many times" together
check "chmod: the other may" as_owner chmod 777 "$m/d/s"
check "and does" hears $user "$m/d/s" hello
check "not any more" as_owner chmod 700 "$m/d/s"
check "he does not" hears $user "$m/d/s" ECONNREFUSED
check "a second name, made by the owner" as_owner ln "$m/d/s" "$m/d/s2"
check "is as good for him" hears $owner "$m/d/s2" hello
check "and not for the other" hears $user "$m/d/s2" ECONNREFUSED
check "nor by the first" hears $user "$m/d/s" ECONNREFUSED
check "renamed" as_owner mv "$m/d/s2" "$m/d/s3"
check "good for the owner" hears $owner "$m/d/s3" hello
check "not for the other" hears $user "$m/d/s3" ECONNREFUSED
check "shown in a listing" same "$(as_user ls -F "$m/d" | tr '\n' ' ')" "s= s3= "
check "unlinked after the other saw it" as_owner rm "$m/d/s3"
check "is gone" fails_with 'No such file' as_user stat "$m/d/s3"
check "the other one is not" hears $owner "$m/d/s" hello

# ---- what something is mounted on ----

mounted_there() { grep -q " $1 " /proc/self/mountinfo && shows "$2" "$1" '%F %t:%T' 'character special file 1:3'; }
check "something is mounted on it" mount --bind /dev/null "$m/d/s"
check "the other comes to it" mounted_there "$m/d/s" $user
check "the owner, too" mounted_there "$m/d/s" $owner
check "and the other again" mounted_there "$m/d/s" $user
check "unmounted" umount "$m/d/s"
check "it is the socket" hears $owner "$m/d/s" hello
check "and not for the other" hears $user "$m/d/s" ECONNREFUSED
serves_no_more

# ---- FIFOs ----

as_owner mkfifo -m 600 "$m/d/p"
must "a FIFO that its owner has open" holds "$m/d/p" secret
check "another user reads nothing of it" gets $user "$m/d/p" ""
check "nor is there anybody to write to" nobody_reads $user "$m/d/p"
check "the owner reads it" gets $owner "$m/d/p" secret
check "and writes" puts_in $owner "$m/d/p"
check "what he wrote is not the other's" gets $user "$m/d/p" ""
check "closed" ends
as_owner chmod 644 "$m/d/p"
must "one that others may read" holds "$m/d/p" news
check "is read" gets $user "$m/d/p" news
check "closed" ends

# ---- devices ----

mknod "$m/d/null" c 1 3 && chmod 600 "$m/d/null"
check "root's device" same "$(cat "$m/d/null")" ""
check "has a number for root" shows 0 "$m/d/null" %t:%T 1:3
check "for others it has none" shows $user "$m/d/null" %t:%T 0:0
check "and cannot be opened" fails_with 'No such device or address' as_user cat "$m/d/null"
chmod 644 "$m/d/null"
check "who may only read cannot either" fails_with 'No such device or address' as_user cat "$m/d/null"
chmod 666 "$m/d/null"
check "who may write can" as_user dd if=/dev/zero of="$m/d/null" bs=1 count=1 conv=notrunc status=none
rm "$m/d/null" "$m/d/p" "$m/d/s"
check "the folder is empty" rmdir "$m/d"
check "counted" grep -q 'shadows=[1-9]' <(kill -USR1 "${pid[m]}" && wait_for 60 grep -q 'lanes=' "$work/m.log" && cat "$work/m.log")
check "unmounted, nothing is left" sim_stop m

# ---- root's programs, root's trust ----

options_of() { sed -n "s|.* $work/$1 \([^ ]*\) .*- fuse.*|\1|p" /proc/self/mountinfo; }
must "mounted as it is by default" sim_start n "" allow_other
check "no device and no program is root's" grep -q nosuid,nodev <(options_of n)
check "unmounted, nothing is left" sim_stop n
must "mounted by root who trusts the server" sim_start r "" allow_other,suid,dev
check "they are" same "$(options_of r | sed 's/,.*time//')" rw
cp "$(command -v id)" "$work/r/id" && chmod 4755 "$work/r/id"
check "a user is root by root's program" same "$(as_user "$work/r/id" -u)" 0
chmod 4754 "$work/r/id"
check "not by one that he may not execute" fails_with 'Permission denied' as_user "$work/r/id" -u
rm "$work/r/id"
check "unmounted, nothing is left" sim_stop r

# ---- the kernel judges ----

must "mounted with default_permissions" sim_start k "" allow_other,default_permissions
k=$work/k
chmod 777 "$k"
must "a socket" serves k "$k/s" 077
check "the owner connects" hears $owner "$k/s" hello
check "another user may not" hears $user "$k/s" EACCES
as_owner mkfifo -m 600 "$k/p"
check "a FIFO: nor open it" fails_with 'Permission denied' as_user cat "$k/p"
serves_no_more
rm "$k/s" "$k/p"
check "unmounted, nothing is left" sim_stop k
tap_end
