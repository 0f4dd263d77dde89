# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# systemd in the guest, which has another first process: as the first one of
# namespaces of its own. For scripts that have read guest.sh.
#
#   systemd_up      "boots": reads fstab and units, reaches remote-fs.target; in the network of
#                   own_net, if a script has called that
#   systemd_down    "shuts down": stops units in their order, unmounts
#   sd COMMAND...   runs it where systemd runs: its mounts are seen there alone
#   sd_load DIR     a load works in DIR there, until
#   sd_load_ends EXPORTED   it ends: true if no call of it failed, and all that was acknowledged is
#                   in this folder of the server

systemd_pid=
systemd_root= # its root, if not that of the guest

# What the guest's root has enabled for another machine, or a guest has no use for.
systemd_masked="systemd-udevd.service systemd-udev-trigger.service systemd-udev-settle.service
	systemd-udevd-control.socket systemd-udevd-kernel.socket systemd-modules-load.service
	systemd-binfmt.service proc-sys-fs-binfmt_misc.automount systemd-sysctl.service
	systemd-journal-flush.service systemd-update-utmp.service systemd-remount-fs.service
	systemd-random-seed.service systemd-firstboot.service systemd-sysusers.service
	systemd-machine-id-commit.service kmod-static-nodes.service systemd-pstore.service
	systemd-tmpfiles-setup.service systemd-tmpfiles-setup-dev.service
	sys-kernel-config.mount sys-kernel-debug.mount sys-kernel-tracing.mount
	dev-hugepages.mount dev-mqueue.mount sys-fs-fuse-connections.mount
	nfs-client.target rpc-statd-notify.service nfs-blkmap.service run-rpc_pipefs.mount
	systemd-ask-password-console.path systemd-ask-password-wall.path"

systemd_up() {
	local unit dir=/run/systemd/system
	mkdir -p $dir /sys/fs/cgroup
	mountpoint -q /sys/fs/cgroup || mount -t cgroup2 cgroup2 /sys/fs/cgroup
	for unit in $systemd_masked; do ln -sf /dev/null "$dir/$unit"; done
	cat >$dir/guest.target <<-END
		[Unit]
		Description=What a test boots
		Wants=remote-fs.target
		After=remote-fs.target
		AllowIsolate=yes
	END
	${net:-} unshare --cgroup --pid --fork --mount --mount-proc ${systemd_root:+--root "$systemd_root"} \
		env container=unshare \
		/lib/systemd/systemd --system --unit=guest.target --log-target=console \
		--show-status=no </dev/null >>"$RESULTS/systemd.log" 2>&1 &
	systemd_unshare=$!
	wait_for 20 systemd_child && wait_for 60 systemd_booted && return
	echo "# its jobs:" >&2
	sd systemctl --no-pager list-jobs >&2 || true
	return 1
}
systemd_child() { systemd_pid=$(pgrep -P $systemd_unshare); }
# "degraded": a unit failed, which may be what a test wants.
systemd_booted() {
	case $(sd systemctl is-system-running 2>/dev/null) in
	running | degraded) ;;
	*) return 1 ;;
	esac
}

# Bounded: a systemd that hangs, or a mount that does, must not stop the test.
sd() { timeout -k 5 90 nsenter --target "$systemd_pid" --mount --pid --cgroup ${systemd_root:+--root --wd} -- "$@"; }

# Not by sd, which ends it after a while.
sd_load() {
	cp "$BUILD_DIR/tests/vm/pair/pairload" /run/pairload
	sd mkdir "$1"
	nsenter --target "$systemd_pid" --mount --pid --cgroup -- \
		/run/pairload run "$1" /run/pair.log >/run/pair.out 2>&1 &
	systemd_loader=$!
	wait_for 60 systemd_loaded
}
systemd_loaded() { [ -s /run/pair.log ] && grep -q going /run/pair.out; }
systemd_unloaded() { ! kill -0 "$systemd_loader" 2>/dev/null; }
sd_load_ends() {
	pgrep -x pairload >/dev/null && pkill -TERM -o -x pairload && wait_for 120 systemd_unloaded &&
		wait "$systemd_loader" && /run/pairload check /run/pair.log "$1" && return
	cat /run/pair.out
	return 1
}

# SIGRTMIN+4 is "poweroff" to a systemd; in a container it ends.
systemd_down() {
	kill -s RTMIN+4 "$systemd_pid"
	wait_for 60 systemd_gone
}
systemd_gone() { ! kill -0 "$systemd_pid" 2>/dev/null; }
