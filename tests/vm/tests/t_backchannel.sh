#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What nfsd knows of us: a client with a back channel that is up, also after a
# restart, with opens and delegations, which it calls back; nothing in its log
# about us.
# vm-timeout: 240

. "$(dirname "$0")/../guest/guest.sh"

rxe_up
nfsd_up
mnt=/mnt
dmesg -C
echo before >$export_dir/cb-file

# Our client's folder in /proc/fs/nfsd/clients, by the name we gave ourselves.
our_client() {
	local info
	for info in /proc/fs/nfsd/clients/*/info; do
		if grep -q '^name: "rpcrdmafs' "$info" 2>/dev/null; then
			dirname "$info"
			return
		fi
	done
	cat /proc/fs/nfsd/clients/*/info
	return 1
}
info_says() { grep -E "$1" "$(our_client)/info"; }
show_info() { cat "$(our_client)/info"; }
states() { cat "$(our_client)/states"; }
# cb_up: "callback state: UP"; shows the rest if it is not.
cb_up() { info_says '^callback state: UP' || { show_info; false; }; }

check "mounted" fmount $mnt nconnect=2
check "nfsd knows us" our_client
diag "$(show_info | tr '\n' ' ')"
check "the back channel is up" cb_up

# Opens of every kind: nfsd 6.1 gives read delegations to who wants them.
touch $mnt/cb-{1,2,3}
check "files are read" cat $mnt/cb-file $mnt/cb-1
exec 7<$mnt/cb-file 8>>$mnt/cb-2 9<>$mnt/cb-3
states_say() { states | tee /dev/stderr | grep -q "type: $1"; }
check "opens are there" states_say open
check "and a delegation" states_say deleg
echo more >&8
check "writes go on" same "$(cat $export_dir/cb-2)" more
exec 8>&- 9<&-

# The conflict that recalls one, while it is open by it.
before=$(client_stats $mnt | stat_of reverse_calls)
echo changed >$export_dir/cb-file
check "a change on the server is seen" wait_for 10 grep -q changed $mnt/cb-file
called() { [ "$(client_stats $mnt | stat_of reverse_calls)" -gt "$before" ]; }
check "it was called back" called
exec 7<&-
check "all of them" bash -c "for i in 1 2 3; do echo x >$export_dir/cb-\$i; done"
check "and none is left" wait_for 10 not states_say deleg

# Idle over a lease: renewals go on, the server's probes of the path too.
sleep $((LEASE + 2))
check "the back channel is up after a lease" cb_up
check "the mount works" cat $mnt/cb-file

check "the server restarts" nfsd_restart
check "the same mount goes on" timeout 60 cat $mnt/cb-file
check "with a back channel" wait_for 20 cb_up
# Each lane when it next speaks: the second one may not have had to yet.
new_sessions() { stats=$(client_stats $mnt) && [ "$(stat_of sessions <<<"$stats")" -ge 4 ]; }
check "each lane made its session anew" wait_for 30 new_sessions
check_equal "no answer was refused" "$(stat_of reverse_dropped <<<"$stats")" 0
check "unmounted" funmount $mnt
dmesg | grep -i -E 'nfsd|svcrdma|rpc' >/tmp/log || true
check_fails "nfsd logs nothing about callbacks" grep -i -E 'callback|backchannel|cb_|bad xid|WARN' /tmp/log
tap_end
