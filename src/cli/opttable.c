/* SPDX-License-Identifier: BSD-3-Clause */
#include "opttable.h"

#include <string.h>

#include "options.h"

static const char *const words_proto[] = {"rdma", "rdma6", NULL};
static const char *const words_sec[] = {"none", "sys", NULL};
static const char *const words_write[] = {"wait", "eager", "lazy", NULL};
static const char *const words_lookupcache[] = {"all", "pos", "positive", "none", NULL};
static const char *const words_local_lock[] = {"none", "flock", "posix", "all", NULL};
static const char *const words_keep[] = {"no", "process", "systemd", "auto", "tables", NULL};
static const char *const words_fabric[] = {"verbs", "soft", "auto", NULL};
static const char *const words_memreg[] = {"auto", "mw", "static", NULL};

#define MAX_SECONDS 86400u
#define MAX_RETRY   1000000u /* minutes */

/* clang-format off */
static const struct opt opts[] = {
	{"rw", OPT_FLAG, ID_RW, 0}, {"ro", OPT_FLAG, ID_RW, 1},
	{"hard", OPT_FLAG, ID_HARD, 0}, {"soft", OPT_FLAG, ID_HARD, 1},
	{"softerr", OPT_FLAG, ID_HARD, 2},
	{"cto", OPT_FLAG, ID_CTO, 1}, {"nocto", OPT_FLAG, ID_CTO, 0},
	{"delegation", OPT_FLAG, ID_DELEGATION, 1},
	{"nodelegation", OPT_FLAG, ID_DELEGATION, 0},
	{"ac", OPT_FLAG, ID_AC, 1}, {"noac", OPT_FLAG, ID_AC, 0},
	{"sync", OPT_FLAG, ID_SYNC, 1}, {"async", OPT_FLAG, ID_SYNC, 0},
	{"proto", OPT_WORD, ID_PROTO, 0, 0, words_proto}, {"rdma", OPT_FLAG, ID_PROTO, 0},
	{"tcp", OPT_REFUSE, ID_NONE, 0, 0, NULL, "only proto=rdma is spoken here"},
	{"udp", OPT_REFUSE, ID_NONE, 0, 0, NULL, "only proto=rdma is spoken here"},
	{"vers", OPT_VERS, ID_VERS}, {"nfsvers", OPT_VERS, ID_VERS},
	{"v4.1", OPT_FLAG, ID_VERS, 41}, {"v4.2", OPT_FLAG, ID_VERS, 42},
	{"v4", OPT_FLAG, ID_VERS, 4},
	{"v2", OPT_REFUSE, ID_NONE, 0, 0, NULL, "only NFS 4.1 and 4.2 are spoken here"},
	{"v3", OPT_REFUSE, ID_NONE, 0, 0, NULL, "only NFS 4.1 and 4.2 are spoken here"},
	{"v4.0", OPT_REFUSE, ID_NONE, 0, 0, NULL, "only NFS 4.1 and 4.2 are spoken here"},
	{"minorversion", OPT_UINT, ID_MINOR, 1, 2},
	{"port", OPT_UINT, ID_PORT, 1, 65535},
	{"sec", OPT_WORD, ID_SEC, 0, 0, words_sec},
	{"lookupcache", OPT_WORD, ID_LOOKUPCACHE, 0, 0, words_lookupcache},
	{"write", OPT_WORD, ID_WRITE, 0, 0, words_write},
	{"rdirplus", OPT_FLAG, ID_RDIRPLUS, 1}, {"nordirplus", OPT_FLAG, ID_RDIRPLUS, 0},
	{"local_lock", OPT_WORD, ID_LOCAL_LOCK, 0, 0, words_local_lock},
	{"lock", OPT_FLAG, ID_LOCK, 1}, {"nolock", OPT_FLAG, ID_LOCK, 0},
	{"timeo", OPT_UINT, ID_TIMEO, 1, 36000}, {"retrans", OPT_UINT, ID_RETRANS, 0, 100},
	{"rsize", OPT_UINT, ID_RSIZE, 1, UINT32_MAX}, {"wsize", OPT_UINT, ID_WSIZE, 1, UINT32_MAX},
	{"acregmin", OPT_UINT, ID_ACREGMIN, 0, MAX_SECONDS},
	{"acregmax", OPT_UINT, ID_ACREGMAX, 0, MAX_SECONDS},
	{"acdirmin", OPT_UINT, ID_ACDIRMIN, 0, MAX_SECONDS},
	{"acdirmax", OPT_UINT, ID_ACDIRMAX, 0, MAX_SECONDS},
	{"actimeo", OPT_UINT, ID_ACTIMEO, 0, MAX_SECONDS},
	{"nconnect", OPT_UINT, ID_NCONNECT, 1, OPTIONS_NCONNECT_MAX},
	/* our own */
	{"metalane", OPT_FLAG, ID_METALANE, 1}, {"nometalane", OPT_FLAG, ID_METALANE, 0},
	{"fabric", OPT_WORD, ID_FABRIC, 0, 0, words_fabric},
	{"memreg", OPT_WORD, ID_MEMREG, 0, 0, words_memreg},
	{"credits", OPT_UINT, ID_CREDITS, 4, RPCRDMA_MAX_CREDITS},
	{"inline", OPT_UINT, ID_INLINE, 1024, 65536},
	{"ack_timeout", OPT_UINT, ID_ACKTIMEOUT, 0, 31},
	{"tos", OPT_UINT, ID_TOS, 0, 255},
	{"buffers", OPT_UINT, ID_BUFFERS, 4, 1024},
	{"dirty", OPT_UINT, ID_DIRTY, 0, 1024},
	{"readahead", OPT_UINT, ID_STREAM, 0, 1024},
	{"read_ahead_kb", OPT_UINT, ID_READAHEAD, 0, 1u << 20},
	{"max_background", OPT_UINT, ID_MAX_BACKGROUND, 1, 65535},
	{"max_seg", OPT_UINT, ID_MAX_SEG, 4096, 1u << 30},
	{"probe", OPT_UINT, ID_PROBE, 0, MAX_SECONDS},
	{"keep", OPT_WORD, ID_KEEP, 0, 0, words_keep},
	{"stats", OPT_FLAG, ID_STATS, 1},
	{"allow_other", OPT_FLAG, ID_ALLOW_OTHER, 1},
	{"noallow_other", OPT_FLAG, ID_ALLOW_OTHER, 0},
	{"default_permissions", OPT_FLAG, ID_DEFAULT_PERMISSIONS, 1},
	{"srcaddr", OPT_STRING, ID_SRC},
	{"clientid", OPT_STRING, ID_CLIENTID},
	{"capture", OPT_STRING, ID_CAPTURE},
	{"capture_size", OPT_UINT, ID_CAPTURE_SIZE, 1, 1u << 20},
	{"capture_data", OPT_FLAG, ID_CAPTURE_DATA, 1},
	/* the kernel's */
	{"suid", OPT_VFS}, {"nosuid", OPT_VFS}, {"dev", OPT_VFS}, {"nodev", OPT_VFS},
	{"exec", OPT_VFS}, {"noexec", OPT_VFS}, {"atime", OPT_VFS}, {"noatime", OPT_VFS},
	{"diratime", OPT_VFS}, {"nodiratime", OPT_VFS}, {"relatime", OPT_QUIET},
	{"norelatime", OPT_QUIET}, {"strictatime", OPT_QUIET}, {"nostrictatime", OPT_QUIET},
	{"lazytime", OPT_QUIET}, {"dirsync", OPT_VFS},
	/* for mount(8), systemd and fstab */
	{"defaults", OPT_QUIET}, {"auto", OPT_QUIET}, {"noauto", OPT_QUIET}, {"user", OPT_QUIET},
	{"nouser", OPT_QUIET}, {"users", OPT_QUIET}, {"owner", OPT_QUIET}, {"group", OPT_QUIET},
	{"_netdev", OPT_QUIET}, {"nofail", OPT_QUIET}, {"intr", OPT_QUIET}, {"nointr", OPT_QUIET},
	{"comment", OPT_QUIET}, {"silent", OPT_QUIET}, {"loud", OPT_QUIET},
	{"sloppy", OPT_FLAG, ID_SLOPPY, 1},
	{"remount", OPT_FLAG, ID_REMOUNT, 1},
	{"user_id", OPT_KERNEL}, {"group_id", OPT_KERNEL}, {"max_read", OPT_KERNEL},
	{"blksize", OPT_KERNEL},
	{"fg", OPT_FLAG, ID_BG, 0}, {"bg", OPT_FLAG, ID_BG, 1},
	{"retry", OPT_UINT, ID_RETRY, 0, MAX_RETRY},
	/* known from nfs(5), without meaning here */
	{"bsize", OPT_IGNORE},
	{"namlen", OPT_IGNORE}, {"posix", OPT_IGNORE}, {"noposix", OPT_IGNORE},
	{"sharecache", OPT_IGNORE}, {"nosharecache", OPT_QUIET}, {"clientaddr", OPT_IGNORE},
	{"resvport", OPT_IGNORE}, {"noresvport", OPT_IGNORE}, {"fsc", OPT_IGNORE},
	{"nofsc", OPT_QUIET}, {"acl", OPT_IGNORE}, {"noacl", OPT_IGNORE},
	{"migration", OPT_IGNORE}, {"nomigration", OPT_QUIET}, {"softreval", OPT_IGNORE},
	{"nosoftreval", OPT_QUIET}, {"max_connect", OPT_IGNORE},
	{"trunkdiscovery", OPT_IGNORE}, {"notrunkdiscovery", OPT_QUIET},
	{"mountproto", OPT_IGNORE}, {"mountvers", OPT_IGNORE}, {"mounthost", OPT_IGNORE},
	{"mountport", OPT_IGNORE}, {"mountaddr", OPT_IGNORE}, {"addr", OPT_IGNORE},
	{"source", OPT_IGNORE}, {"grpid", OPT_IGNORE}, {"nogrpid", OPT_IGNORE},
};
/* clang-format on */

const struct opt *opttable_find(const char *name)
{
	for (size_t i = 0; i < sizeof(opts) / sizeof(opts[0]); i++)
		if (strcmp(opts[i].name, name) == 0)
			return &opts[i];
	return NULL;
}

const struct opt *opttable_at(size_t i)
{
	return i < sizeof(opts) / sizeof(opts[0]) ? &opts[i] : NULL;
}
