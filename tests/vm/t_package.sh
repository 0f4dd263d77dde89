#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The Debian package: installed, used, purged. It is what contrib/package made beside
# the build folder.
# vm-boot: own
# vm-timeout: 480

. "$(dirname "$0")/guest.sh"

deb=$(echo "$BUILD_DIR"/../package/rpcrdmafs_*.deb)
if [ ! -e "$deb" ]; then
	skip "no package: contrib/package $(realpath "$BUILD_DIR/..")/package"
	tap_end
	exit
fi

# Its trigger would read every manual page of the machine, over 9p.
rm -f /var/lib/man-db/auto-update

rxe_up
nfsd_up
head -c 5000000 /dev/urandom >/tmp/data
mnt=/mnt

# Links to folders that are one (/sbin) would list files twice.
files() { find /usr /etc /lib/systemd /var/lib/rpcrdmafs /run/rpcrdmafs -xdev 2>/dev/null | grep rpcrdmafs | sort; }
check_equal "nothing of it is there" "$(files)" ""

check "installed" dpkg -i "$deb"
check "the program says the package's version" \
	bash -c "[[ '$(dpkg-deb -f "$deb" Version)' = \"\$(rpcrdmafs -V | cut -d' ' -f2)\"-* ]]"
check "it finds its libraries" bash -c '! ldd /usr/bin/rpcrdmafs | grep "not found"'
for page in rpcrdmafs mount.rpcrdmafs; do
	check "manual page $page(8)" bash -c "zcat /usr/share/man/man8/$page.8.gz | grep -q '^.Nm $page'"
done
check "bash completion" bash -c \
	'. /usr/share/bash-completion/completions/rpcrdmafs && complete -p rpcrdmafs'

check "mounted" rpcrdmafs "$server:/" $mnt
check "written" cp /tmp/data $mnt/data
check "the server has it" cmp /tmp/data $export_dir/data
check "purged while mounted" dpkg -P rpcrdmafs
check "the mount goes on" cmp /tmp/data $mnt/data
check "unmounted" umount $mnt
check_equal "nothing of it is left" "$(files)" ""
tap_end
