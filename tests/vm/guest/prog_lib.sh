# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Real programs on our mount and on the kernel's, one after the other, of the
# same export at the same path: what they say and what they leave must be the
# same. To be sourced; a script goes on with
#
#   work() {
#           step "a clone" git clone /run/bare repo
#           step "is whole" git -C repo fsck
#   }
#   on_both work
#   tap_end
#
# A step counts as passed if it ended with status 0 on both mounts and wrote the
# same to its standard output. Each is a shell of its own, in which a command
# that fails ends the step, and begins in the mount's root.

. "$(dirname "${BASH_SOURCE[0]}")/guest.sh"

prog=$(basename "$0" .sh)
w=/w                                    # where both are mounted, in turn
records=${TMPDIR:-/tmp}/$prog.$$        # what the steps did: CLIENT/{steps,N.out,N.err}
rxe_up
nfsd_up
# Where things are that both copy from: tmpfs has no user's attributes.
scratch=$export_dir/$prog/scratch
mkdir -p "$scratch"

# ---- what is compared ----

# tree_list DIR [mtime]: names, types, modes, owners, links, sizes, targets,
# device numbers, user's attributes and contents below DIR; also the times if
# the programs set them. Which names are links of one file is told by the first.
tree_list() (
	cd "$1"
	{
		find . -printf '%y\t%i\t%n\t%m %U:%G\t%s\t%T@\t%l\t%p\n' | LC_ALL=C sort -t '	' -k 8 |
			awk -F '\t' -v times="${2:-}" '
			NF < 8 { print; next }	# the rest of a name of several lines
			{
				line = $1 " " $4
				if ($1 != "d") line = line " " $3 " " $5 " " $7
				if ($1 == "f" && $3 > 1) {
					if (!($2 in first)) first[$2] = $8
					line = line " is " first[$2]
				}
				if (times) line = line " " $6
				for (i = 8; i <= NF; i++) printf "%s\t", $i
				print line
			}'
		find . \( -type b -o -type c \) -exec stat -c '%n	%t:%T' {} +
		find . -type f -print0 | xargs -0 -r sha256sum | sed 's/^\([^ ]*\)  \(.*\)/\2\t\1/'
		getfattr -R -P -h -d -m '^user\.' . 2>/dev/null |
			awk '/^# file: / { f = "./" substr($0, 9); next } NF { print f "\t" $0 }'
	} | LC_ALL=C sort
)

# ---- steps ----

step() {
	local name=$1 rc start=${EPOCHREALTIME/./} out
	shift
	step_count=$((step_count + 1))
	out=$records/$client/$step_count
	set +e
	(set -e; cd $w; "$@") >"$out.out" 2>"$out.err" </dev/null
	rc=$?
	set -e
	local ms=$(((${EPOCHREALTIME/./} - start) / 1000))
	printf '%d\t%d\t%s\n' $rc $ms "$name" >>"$records/$client/steps"
	diag "$client: $name: $ms ms$([ $rc -eq 0 ] || echo ", status $rc")"
}

# For what fails as it should, on both in the same way.
status_of() {
	local rc=0
	"$@" || rc=$?
	echo "status $rc"
}

# ---- both mounts ----

# on_both FUNCTION: once with each client. FMOUNT_OPTS, KMOUNT_OPTS: mount
# options. COMPARE_TREES=no: what is left on the server is not compared.
on_both() {
	for client in ours kernel; do
		mkdir -p "$records/$client" $export_dir/$prog/$client
		chmod 1777 $export_dir/$prog/$client
		: >"$records/$client/steps"
		step_count=0
		mount_$client
		"$1"
		unmount_$client
	done
	compare_steps
	[ "${COMPARE_TREES:-yes}" = no ] ||
		check "the server has the same files of both" same_trees
	rm -rf "$records" ${export_dir:?}/"$prog"
}

mount_ours() { check "our mount" fmount $w "${FMOUNT_OPTS:-allow_other}" "/$prog/ours"; }
unmount_ours() { check "our unmount" funmount $w; }
mount_kernel() { check "the kernel's mount" kmount $w "${KMOUNT_OPTS:-}" "/$prog/kernel"; }
unmount_kernel() { check "the kernel's unmount" umount $w; }

compare_steps() {
	local i=0 rc_ours rc_kernel ms_ours ms_kernel name
	while IFS=$'\t' read -r rc_ours ms_ours name rc_kernel ms_kernel _; do
		i=$((i + 1))
		check "$name" same_step $i "$rc_ours" "$rc_kernel"
		diag "seconds ours/kernel: $(ratio "$ms_ours" "$ms_kernel")"
	done < <(paste "$records/ours/steps" "$records/kernel/steps")
	check_equal "both did all steps" "$i" "$step_count"
}

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f/%.1f = %.2f\n", a / 1000, b / 1000, a / (b ? b : 1) }'; }

same_step() {
	local o=$records/ours/$1 k=$records/kernel/$1 rc=0
	if [ "$2" != 0 ] || [ "$3" != 0 ]; then
		echo "status: $2 on ours, $3 on the kernel's mount"
		rc=1
	fi
	diff "$k.out" "$o.out" >"$records/diff" || rc=1
	[ $rc -ne 0 ] || return 0
	echo "output, kernel's (<) and ours (>):"
	head -n 20 "$records/diff"
	echo "errors on ours:"
	tail -n 10 "$o.err"
	echo "errors on the kernel's mount:"
	tail -n 5 "$k.err"
	return 1
}

same_trees() { diff <(tree_list $export_dir/"$prog"/kernel) <(tree_list $export_dir/"$prog"/ours); }
