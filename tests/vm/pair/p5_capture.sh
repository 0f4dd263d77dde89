# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: BSD-3-Clause
#
# A capture of a mount beside tcpdump's of the wire between the two machines, as
# t_capture does it inside one. Decoded here: run-pair needs tshark.
# vm-fabric: verbs

lib=$here/../guest/capture_lib.sh
# shellcheck source-path=SCRIPTDIR source=../guest/capture_lib.sh
. "$lib"

dir=$tmp/capture
mkdir "$dir"
on client ". $lib"
on server "for i in \$(seq 300); do : >$export_dir/a-name-of-some-length-\$i; done; echo before >$export_dir/called-back"
check "tcpdump listens" on client "wire_capture wire /run/pair/wire.pcap"
on server server_stats >"$dir/before"
# The tests before left their counters in the mountpoint's log.
on client ": >\$(fmount_log /mnt/ours)"
check "mounted" on client "fmount /mnt/ours stats,capture=/run/pair/ours.pcapng,capture_data"
no_failure

on client "head -c 700001 /dev/urandom >/run/pair/large; head -c 10003 /dev/urandom >/run/pair/small"
check "files are written" on client "cp /run/pair/large /run/pair/small /mnt/ours/ && sync -f /mnt/ours"
check "and read" on client "echo 3 >/proc/sys/vm/drop_caches; cmp /mnt/ours/large /run/pair/large && cmp /mnt/ours/small /run/pair/small"
check "a directory is listed" on client "ls -la /mnt/ours | wc -l"
check "names change" on client "mkdir /mnt/ours/dir && mv /mnt/ours/small /mnt/ours/dir/ && ln -s small /mnt/ours/dir/link && cat /mnt/ours/dir/link | wc -c"
check "a file is read again and again" on client "cat /mnt/ours/called-back /mnt/ours/called-back && exec 5</mnt/ours/called-back"
check "the server changes it" on server "echo changed >$export_dir/called-back"
check "which is seen" on client "wait_for 10 grep changed /mnt/ours/called-back; exec 5<&-; grep changed /mnt/ours/called-back"
check "all is removed" on client "rm -r /mnt/ours/dir /mnt/ours/large"

check "unmounted" on client "funmount /mnt/ours"
on server server_stats >"$dir/after"
check "tcpdump has all" on client wire_capture_end
on client "cp /run/pair/wire.pcap /run/pair/ours.pcapng /results/"
cp "$(folder client)"/{wire.pcap,ours.pcapng} "$dir/"
on client "final_stats \$(fmount_log /mnt/ours)" >"$dir/stats"
compare "two machines" "$dir" 10.79.0.2 10.79.0.1
on server "rm -r $export_dir/*"
tap_end
