#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# This project is built on the mount with meson and ninja, two compilers at a
# time: the program runs, nothing is built twice, what changed is built again,
# and all objects are the same on both mounts.
# vm-timeout: 7200
# tier: soak
# vm-boot: own

. "$(dirname "$0")/../guest/prog_lib.sh"

top=$(cd "$(dirname "$0")/../../.." && pwd)
mkdir "$scratch/source"
(cd "$top" && cp -a --parents meson.build meson_options.txt src docs/man contrib/{systemd,completion} "$scratch/source")
export PYTHONDONTWRITEBYTECODE=1 CC=gcc

# The compiler, meson, and the headers that the sources want; some are of other machines (-MG).
tool() { readlink -f "$(type -P "$(gcc -print-prog-name="$1")")"; }
grep -rh '^#include <' "$scratch/source/src" | grep -v fuse | sort -u >/run/all.c
in_ram gcc ninja pkg-config python3 "$(tool cc1)" "$(tool as)" "$(tool ld)" "$(tool collect2)" ar \
	"$(gcc -print-file-name=liblto_plugin.so)" /usr/lib/python3/dist-packages/mesonbuild
# shellcheck disable=SC2046  # a list
in_ram /usr/include/fuse3 $(gcc -D_GNU_SOURCE -M -MG /run/all.c | tr ' \\' '\n\n' | grep '^/usr')

configured() { meson setup --buildtype=debug -Dtests=disabled build source >&2; }
ninja_says() { ninja -C build "$@" | sed 's/^\[[0-9/]*\] //' | grep -v 'Entering directory' | sort; }
built() { ninja_says src/rpcrdmafs; }

header_changed() {
	echo '#define CHANGED 1' >>source/src/cli/options.h
	built
	build/src/rpcrdmafs --version
}
source_changed() {
	sed -i 's/^int main(/int main (/' source/src/main.c
	built
}
objects() { find build -name '*.o' -o -name '*.a' -o -name rpcrdmafs -type f | sort | xargs sha256sum; }

work() {
	step "the sources are copied" cp -a "$scratch/source" .
	step "meson setup" configured
	step "ninja" built
	step "the program runs" build/src/rpcrdmafs --version
	step "ninja again has nothing to do" built
	step "a header that changed" header_changed
	step "a source that changed" source_changed
	step "objects, archives and program" objects
	step "meson introspect" eval 'meson introspect build --targets --indent | grep -c filename'
	step "meson install" eval 'DESTDIR=$PWD/root meson install -C build --no-rebuild >&2; find root -printf "%P %m %s\n" | sort'
	step "ninja -t clean" eval 'ninja -C build -t clean >&2; find build -name "*.o"'
}

# meson keeps times in its files.
COMPARE_TREES=no on_both work
tap_end
