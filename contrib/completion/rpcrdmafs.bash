# SPDX-License-Identifier: BSD-3-Clause
# bash completion for rpcrdmafs(8) and mount.rpcrdmafs(8)

# After -o: the last of the words between commas, or its value.
_rpcrdmafs_options()
{
	local done= last=$1
	# mount options
	local options='vers= nfsvers= minorversion= v4 v4.1 v4.2 proto= rdma port= srcaddr= sec=
		nconnect= metalane nometalane credits= inline= fabric= memreg= ack_timeout= tos= max_seg= probe=
		hard soft softerr timeo= retrans= rw ro rsize= wsize= write= dirty= buffers=
		readahead= read_ahead_kb= max_background= sync async ac noac acregmin= acregmax=
		acdirmin= acdirmax= actimeo= cto nocto lookupcache= rdirplus nordirplus
		delegation nodelegation local_lock= lock nolock allow_other noallow_other default_permissions sloppy remount keep= stats fg bg retry= clientid= capture= capture_size= capture_data
		suid nosuid dev nodev exec noexec atime noatime diratime nodiratime dirsync'
	# end of mount options
	local values=

	if [[ $last == *,* ]]; then
		done=${last%,*},
		last=${last##*,}
	fi
	case $last in
	vers=* | nfsvers=*) values='4.1 4.2' ;;
	proto=*) values='rdma rdma6' ;;
	sec=*) values='sys none' ;;
	fabric=*) values='auto verbs soft' ;;
	memreg=*) values='auto mw static' ;;
	keep=*) values='auto process systemd tables no' ;;
	write=*) values='lazy eager wait' ;;
	lookupcache=*) values='all pos none' ;;
	local_lock=*) values='none flock posix all' ;;
	esac
	if [[ $last == *=* ]]; then
		COMPREPLY=($(compgen -P "$done${last%%=*}=" -W "$values" -- "${last#*=}"))
	else
		COMPREPLY=($(compgen -P "$done" -W "$options" -- "$last"))
	fi
	[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
	return 0
}

# Options, without what readline takes for the words before the last one.
_rpcrdmafs_offer_options()
{
	_rpcrdmafs_options "$1"
	[[ ${COMP_WORDBREAKS-} == *=* && $1 == *=* ]] &&
		COMPREPLY=("${COMPREPLY[@]#"${1%"${1##*=}"}"}")
	return 0
}

# A word of a command, or a mountpoint.
_rpcrdmafs_command()
{
	local mounts
	mounts=$(awk '/ - fuse\.rpcrdmafs / { print $5 }' /proc/self/mountinfo 2>/dev/null)
	COMPREPLY=($(compgen -W "$2 $mounts" -- "$1"))
}

_rpcrdmafs()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}

	COMPREPLY=()
	# readline takes "=" for a word of its own: put -o's argument together again.
	if declare -F _get_comp_words_by_ref >/dev/null; then
		_get_comp_words_by_ref -n =: cur prev
	fi
	case $prev in
	-o)
		_rpcrdmafs_offer_options "$cur"
		return 0
		;;
	esac
	if [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[0]##*/} == rpcrdmafs ]]; then
		case ${COMP_WORDS[1]} in
		stat) _rpcrdmafs_command "$cur" '-i -c -h --json --prometheus'; return ;;
		info) _rpcrdmafs_command "$cur" '-h --json'; return ;;
		capture) _rpcrdmafs_command "$cur" '-d -s -t -h stop'; return ;;
		sync | leave) _rpcrdmafs_command "$cur" '-h'; return ;;
		hold)
			COMPREPLY=($(compgen -W '-h --wait' -- "$cur") $(compgen -d -- "$cur"))
			return
			;;
		upgrade) _rpcrdmafs_command "$cur" '-h --all --check'; return ;;
		probe)
			COMPREPLY=($(compgen -W '-o -t -h --json' -- "$cur") $(compgen -A hostname -- "$cur"))
			return
			;;
		set)
			if [[ $COMP_CWORD -gt 2 ]]; then
				_rpcrdmafs_offer_options "$cur"
			else
				_rpcrdmafs_command "$cur" '-h'
			fi
			return
			;;
		log) _rpcrdmafs_command "$cur" '-h error warn info debug ops=on ops=off'; return ;;
		esac
	fi
	if [[ $COMP_CWORD -eq 1 && ${COMP_WORDS[0]##*/} == rpcrdmafs && $cur == [a-z]* ]]; then
		COMPREPLY=($(compgen -W 'stat info log sync capture upgrade set leave hold probe' -- "$cur"))
		return 0
	fi
	case $cur in
	-*) COMPREPLY=($(compgen -W '-f -d -o -h -V --help --version' -- "$cur")) ;;
	*) COMPREPLY=($(compgen -d -- "$cur")) && compopt -o filenames ;;
	esac
	return 0
}

complete -F _rpcrdmafs rpcrdmafs mount.rpcrdmafs
