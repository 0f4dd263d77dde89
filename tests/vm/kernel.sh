# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The guest's kernel: Debian's own, unpacked, never installed. Sourced by `vm`,
# which sets kernel, cache and kdir and removes scratch.
#
# Each kernel is that of one suite. Its package lists are apt's in a folder of
# ours; the machine's own lists, sources and packages stay as they are. The
# mirror is the one that the machine's own sources name.

kernels="6.1 6.12 newest 5.10"
suite_of() {
	case $1 in
	6.1) echo bookworm ;;
	6.12) echo bookworm-backports ;;
	newest) echo trixie-backports ;;
	5.10) echo bullseye ;;
	*) return 1 ;;
	esac
}

# Of no use in the guest; half of the time that unpacking takes.
unused_modules="sound drivers/accel drivers/ata drivers/comedi drivers/gpu drivers/hid
	drivers/hwmon drivers/iio drivers/input drivers/media drivers/md drivers/mmc
	drivers/mtd drivers/net/ethernet drivers/net/wireless drivers/nvme
	drivers/platform drivers/scsi drivers/staging drivers/target drivers/usb
	drivers/video"

archive_keys=/usr/share/keyrings/debian-archive-keyring.gpg

# The first of the machine's sources that is Debian itself, in whatever format:
# apt tells what it would fetch.
mirror() {
	local none=$1/none
	mkdir -p "$none/partial"
	apt-get -o Dir::State::lists="$none" -o Debug::NoLocking=1 update --print-uris 2>/dev/null |
		sed -n "s|^'\(.*\)/dists/\([^/']*\)/InRelease' .*|\2 \1|p" |
		awk '$1 ~ /^(bullseye|bookworm|trixie|forky|sid|stable|testing|unstable)$/ && !n++ { print $2 }'
}

# own_apt_up FOLDER SUITE: from now on own_apt and own_cache know this suite only
own_apt_up() {
	local dir=$1 uri signed=
	uri=$(mirror "$dir")
	[ -n "$uri" ] || die "none of this machine's apt sources is a Debian mirror"
	mkdir -p "$dir"/lists/partial "$dir"/archives/partial
	: >"$dir/status"
	# Without it apt has the keys in /etc/apt/trusted.gpg.d.
	[ ! -f $archive_keys ] || signed="Signed-By: $archive_keys"
	printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n%s\n' "$uri" "$2" "$signed" \
		>"$dir/suite.sources"
	own=(-qq -o "Dir::Etc::sourcelist=$dir/suite.sources" -o Dir::Etc::sourceparts=/dev/null
		-o "Dir::State::lists=$dir/lists" -o "Dir::State::status=$dir/status"
		-o "Dir::Cache=$dir" -o "Dir::Cache::archives=$dir/archives"
		-o APT::Architecture=amd64 -o APT::Architectures=amd64 -o Acquire::Languages=none
		# apt drops its privileges to _apt, which may not enter our folder.
		-o APT::Sandbox::User=root)
	if ! apt-get "${own[@]}" update --error-on=any >"$dir/update.log" 2>&1; then
		cat "$dir/update.log" >&2
		! grep -q -E 'NO_PUBKEY|not signed' "$dir/update.log" ||
			die "no key of this machine signed $2: a newer debian-archive-keyring has it"
		die "apt cannot read $2 of $uri"
	fi
}

# The packages of a kernel: since 7.0 image, binary, modules and base are apart.
kernel_packages() {
	local queue=(linux-image-amd64) seen=' ' p
	while [ ${#queue[@]} -gt 0 ]; do
		p=${queue[0]} queue=("${queue[@]:1}")
		[[ $seen != *" $p "* ]] || continue
		seen+="$p "
		case $p in linux-*-[0-9]*) echo "$p" ;; esac
		mapfile -t -O ${#queue[@]} queue < <(apt-cache "$@" depends "$p" 2>/dev/null |
			awk '$1 == "Depends:" && $2 ~ /^linux-(image|binary|modules|base)-[0-9]/ { print $2 }')
	done
}

# The packages that the machine's own lists name, if they are those of the suite: 6.1
# on Debian 12 needs no lists of ours.
from_own_lists() {
	local packages
	[ "$kernel" = 6.1 ] || return 1
	mapfile -t packages < <(kernel_packages)
	[[ ${packages[0]:-} == linux-image-6.1.* ]] || return 1
	say "fetching ${packages[*]} (once)"
	(cd "$1" && apt-get -qq -o APT::Sandbox::User=root download "${packages[@]}" >&2)
}

from_suite() {
	local own=() packages suite
	suite=$(suite_of "$kernel")
	own_apt_up "$1" "$suite"
	mapfile -t packages < <(kernel_packages "${own[@]}")
	[ ${#packages[@]} -gt 0 ] || die "$suite has no linux-image-amd64"
	say "fetching ${packages[*]} (once)"
	(cd "$1" && apt-get "${own[@]}" download "${packages[@]}" >&2) ||
		die "cannot download ${packages[*]} of $suite"
}

# $kdir then has vmlinuz, lib/modules and version.
fetch_kernel() {
	local tmp deb m
	tmp=$(mktemp -d "$cache/fetch.XXXXXX")
	scratch=$tmp
	from_own_lists "$tmp" || from_suite "$tmp"
	for deb in "$tmp"/*.deb; do dpkg-deb -x "$deb" "$tmp/root"; done
	[ -d "$tmp/root/lib/modules" ] || mv "$tmp/root/usr/lib" "$tmp/root/lib"
	kver=$(cd "$tmp/root/lib/modules" && echo *)
	for m in $unused_modules; do rm -rf "$tmp/root/lib/modules/$kver/kernel/$m"; done
	# The guest would do it slowly, and busybox not at all.
	find "$tmp/root/lib/modules" -name '*.ko.xz' -print0 |
		xargs -0 -r -n 50 -P "$(nproc)" busybox unxz
	depmod -b "$tmp/root" "$kver"
	mkdir "$tmp/new"
	mv "$tmp/root/lib" "$tmp/new/"
	mv "$tmp/root/boot/vmlinuz-$kver" "$tmp/new/vmlinuz" 2>/dev/null ||
		mv "$tmp/new/lib/modules/$kver/vmlinuz" "$tmp/new/vmlinuz"
	echo "$kver" >"$tmp/new/version"
	rm -rf "${kdir:?}" && mv "$tmp/new" "$kdir"
	rm -rf "$tmp"
}

# Modules with their dependencies, in insmod order, each once, one a line.
module_paths() {
	local m
	for m in "$@"; do
		modprobe -d "$kdir" -S "$kver" --show-depends "$m" 2>/dev/null || true
	done | sed -n 's/^insmod \(.*\.ko\)\( .*\)*$/\1/p' | awk '!seen[$0]++'
}
