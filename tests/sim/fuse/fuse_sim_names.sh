#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Names that the kernel knows are not walked any more once somebody lost the
# right to search their directory, although they were told for a minute.

. "$(dirname "$0")/fuse_sim_lib.sh"

user=65534
other=(setpriv --reuid="$user" --regid="$user" --clear-groups --inh-caps=-all)
times=acregmin=60,acregmax=60,acdirmin=60,acdirmax=60
LOOKUP=15

if ! "${other[@]}" true 2>/dev/null; then
	echo "# setpriv does not run as another user"
	exit 77
fi
chmod 755 "$work"
as_user() { "${other[@]}" "$@"; }
# The kernel is told beside the chmod. Long before the minute of the names is over, and longer than
# a busy machine needs.
soon() { wait_for 20 "$@"; }

# A directory with names that the user has seen.
make() {
	mkdir "$m/$1" "$m/$1/sub" && echo x | tee "$m/$1/"{a,b,c} >"$m/$1/sub/x" || return
	chown -R "$user" "$m/$1" && stat "$m" >/dev/null && sees "$1"
}
sees() { as_user stat "$m/$1/"{a,b,c,sub,sub/x} >/dev/null; }
refused() { ! as_user stat "$m/$1" 2>"$work/why" && grep -q 'Permission denied' "$work/why"; }
all_refused() {
	local name
	for name in a b c sub sub/x; do soon refused "$1/$name" || return; done
}
# As long as nothing changes they are not asked for again.
cached() {
	local before
	sees "$1" && before=$(ctl m ops $LOOKUP) && sees "$1" && same "$(ctl m ops $LOOKUP)" "$before"
}

open_below() { exec {kept}<"$m/$1/a" {kept_sub}<"$m/$1/sub/x"; }
usable() {
	local line
	read -r -u "$kept" line && same "$line" x && read -r -u "$kept_sub" line && same "$line" x
	exec {kept}<&- {kept_sub}<&-
}
# A program in the directory, which says where that is whenever it is asked.
stays() {
	mkfifo "$work/ask" "$work/says" && exec {ask}<>"$work/ask" {says}<>"$work/says"
	(cd "$m/$1" && while read -r _; do /bin/pwd; done) <&"$ask" >&"$says" 2>&1 &
	stayer=$!
}
leaves() { kill "$stayer" && ! wait "$stayer"; }
where() {
	local line
	echo >&"$ask" && read -r -t 60 -u "$says" line && same "$line" "$m/$1"
}

m=$work/m
must "mounted for several users" sim_start m "" "allow_other,$times"
must "names that another user knows" make d
check "they are cached" cached d
must "a program is in the directory" stays d
check "it knows where" where d
must "files below are open" open_below d
chown root "$m/d"
check "another owner, but all may search: they are cached" cached d
chmod 700 "$m/d"
check "chmod: the user may not walk them" all_refused d
check "the directory is where it was" where d
check "the open files are usable" usable
chmod 755 "$m/d"
check "given again" sees d
check "they are cached again" cached d
chown "$user" "$m/d"
as_user chmod 000 "$m/d"
check "the owner took it from himself" all_refused d

mkdir "$m/many" && (cd "$m/many" && touch f{1..2000})
check "a listing tells them too" as_user ls -l "$m/many"
check "a listing tells them too" as_user stat "$m/many/f1" "$m/many/f2000"
chmod 700 "$m/many"
check "none of many is walked" soon refused many/f1
check "nor the last" soon refused many/f2000

must "names to move" make from
mkdir -m 700 "$m/private"
check "moved to where the user may not search" mv "$m/from/a" "$m/private/a"
check "it is not walked" soon refused private/a
check "a directory" mv "$m/from/sub" "$m/private/sub"
check "it is not walked" soon refused private/sub
check "moved without replacing" mv -n "$m/from/b" "$m/private/b"
check "it is not walked" soon refused private/b
check "renamed" mv "$m/from/c" "$m/from/new"
check "the user knows it" as_user stat "$m/from/new"
chown root "$m/from" && chmod 711 "$m/from" && chmod 710 "$m/from"
check "it is not walked any more" soon refused from/new
check "the program goes" leaves
check "unmounted, nothing is left" sim_stop m
tap_end
