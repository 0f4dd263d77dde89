#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The link to the server is cut under load and comes back: programs on hard
# mounts wait and go on, what was acknowledged is on the server, what was asked
# for once was done once.
#
# A queue pair sends lost packets again for longer than these cuts last: `keep`
# goes on with the connection that it has. With memory windows (and with the
# registrations of the kernel's client) rxe of Linux 6.1 often does not: nothing
# moves any more when packets were lost, probably because its requester executes
# binds a second time when it starts over. `new` then replaces the connection,
# when a call had no answer for 10 s.
#
# LINK_KERNEL=yes: the kernel's own client, with a timeo of 10 s, too, for
# comparison of the times; it may hang for minutes:
#   tests/vm/vm --env BUILD_DIR=... --env LINK_KERNEL=yes -- tests/vm/tests/t_link.sh
# vm-boot: own
# tier: quick
# vm-timeout: 420

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
wire_up
server=$wire_server
load=$bin_dir/linkload
mkdir -p "$bin_dir" /run/link
cp "$BUILD_DIR/tests/vm/linkload" "$load"
declare -A job=()

own_qps() { rdma resource show qp | grep -c ' pid [1-9]'; }
packets() {
	local dev n=0
	for dev in wire1 soft0; do
		[ ! -e /sys/class/net/$dev ] || n=$((n + $(cat /sys/class/net/$dev/statistics/tx_packets)))
	done
	echo $n
}
start() {
	mkdir -p "$export_dir/link-$1"
	"$load" "/mnt-$1/link-$1" "$export_dir/link-$1" >"/run/link/$1" 2>&1 &
	job[$1]=$!
}
# said NAME TEXT: how often the programs of that mount said it
said() { grep -c "$2" "/run/link/$1" || true; }
has_said() { [ "$(said "$1" "$2")" -gt "$3" ]; }
show() { sed "s/^/$1: /" "/run/link/$1"; }
go_on() { wait_for "$1" has_said "$2" recovered "$3" || { show "$2"; return 1; }; }
at_work() { wait_for 60 has_said "$1" going 0 || { show "$1"; return 1; }; }

# cut SECONDS: returns when the programs of our mounts go on. The kernel's get a
# little longer.
cut() {
	local m
	declare -A before=()
	for m in "${!job[@]}"; do before[$m]=$(said "$m" recovered); done
	wire_cut
	sleep "$1"
	for m in "${!job[@]}"; do kill -USR1 "${job[$m]}"; done
	for m in "${!job[@]}"; do
		wait_for 60 has_said "$m" stuck "${before[$m]}" || diag "$m does not answer"
	done
	wire_mend
	for m in "${!job[@]}"; do kill -USR2 "${job[$m]}"; done
	for m in new keep; do
		check "$m: programs go on after a cut of $1 s" go_on 120 $m "${before[$m]}"
	done
	[ -z "${job[kernel]:-}" ] || go_on 10 kernel "${before[kernel]}" >/dev/null || true
	for m in "${!job[@]}"; do
		diag "$1 s without a link: $m: $(tail -n 1 "/run/link/$m")"
	done
}

counters() { # NAME
	stats=$(client_stats "/mnt-$1")
	diag "$1: $(grep -E '^(connects|reconnects|retransmits|timeouts|probes|probe_replies|sessions)=' <<<"$stats" | tr '\n' ' ')"
}
ends_well() {
	local rc=0
	kill -TERM "${job[$1]}"
	wait "${job[$1]}" || rc=$?
	show "$1"
	return $rc
}

check "mounted without windows" fmount /mnt-keep memreg=static
check "mounted, with a timeo of 10 s" fmount /mnt-new timeo=100,nconnect=2
no_failure
before=$(packets)
ls -l /mnt-keep >/dev/null
check "what goes to the server goes over the wire" test "$(packets)" -gt "$before"
start keep
start new
if [ "${LINK_KERNEL:-}" = yes ]; then kmount /mnt-kernel timeo=100 && start kernel; fi
for m in "${!job[@]}"; do check "$m: programs are at work" at_work "$m"; done
no_failure
cut 2
counters new
counters keep
# Without a device the server's queue pair gives up sooner (docs/quirks.md).
[ "${FABRIC:-}" = soft ] ||
	check_equal "keep: it cost no connection" "$(stat_of reconnects <<<"$stats")" 0
no_failure
cut 20
for m in new keep; do
	check_equal "$m: all of them had waited" "$(grep stuck /run/link/$m | tail -n 1)" "stuck 6 of 6"
	check "$m: nobody saw an error, all that was acknowledged is there" ends_well $m
	counters $m
done
if [ -n "${job[kernel]:-}" ]; then
	kill -TERM "${job[kernel]}"
	wait_for 10 has_said kernel calls 0 || kill -KILL "${job[kernel]}"
	diag "the kernel's: $(tail -n 1 /run/link/kernel)"
	wait_for 10 umount /mnt-kernel || umount -f -l /mnt-kernel || true
fi
check "unmounted" funmount /mnt-keep
check "unmounted" funmount /mnt-new
check_equal "no queue pair is left" "$(own_qps)" 0
# Its end of a connection that broke off in the cut: until it notices.
diag "queue pairs of the server: $(rdma resource show qp | grep -c 'type RC' || true)"
rm -r $export_dir/link-*
wire_down
tap_end
