/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one table of NFSv4 errors: every status of RFC 8881 section 15, RFC 7862
 * section 11 and RFC 8276 section 8.3 with the errno a program sees and what
 * the client does about it. What the same status means on SEQUENCE itself is
 * nfs4_recover.c's.
 *
 * Context: pure, but for the log line of an unknown status.
 */
#include <errno.h>
#include <stddef.h>

#include "nfs4_int.h"
#include "nfs4_status.h"

/* clang-format off */
/* X(status, errno, action, note for docs/errors.md) */
#define STATUS_FOREACH(X) \
	X(PERM, EPERM, FAIL, "not owner, or the server forbids it") \
	X(NOENT, ENOENT, FAIL, "") \
	X(IO, EIO, FAIL, "") \
	X(NXIO, ENXIO, FAIL, "SEEK past the end") \
	X(ACCESS, EACCES, FAIL, "") \
	X(EXIST, EEXIST, FAIL, "") \
	X(XDEV, EXDEV, FAIL, "") \
	X(NOTDIR, ENOTDIR, FAIL, "") \
	X(ISDIR, EISDIR, FAIL, "") \
	X(INVAL, EINVAL, FAIL, "") \
	X(FBIG, EFBIG, FAIL, "") \
	X(NOSPC, ENOSPC, FAIL, "") \
	X(ROFS, EROFS, FAIL, "") \
	X(MLINK, EMLINK, FAIL, "") \
	X(NAMETOOLONG, ENAMETOOLONG, FAIL, "") \
	X(NOTEMPTY, ENOTEMPTY, FAIL, "") \
	X(DQUOT, EDQUOT, FAIL, "") \
	X(STALE, ESTALE, REVALIDATE, "the file is gone") \
	X(BADHANDLE, ESTALE, REVALIDATE, "the server does not know this filehandle's form any more") \
	X(BAD_COOKIE, EINVAL, FAIL, "the directory changed under a READDIR, or a bad seek in it") \
	X(NOTSUPP, EOPNOTSUPP, FAIL, "") \
	X(TOOSMALL, EINVAL, FAIL, "not one entry fits the buffer") \
	X(SERVERFAULT, EREMOTEIO, FAIL, "the server's own trouble") \
	X(BADTYPE, EOPNOTSUPP, FAIL, "CREATE of a type the server does not have") \
	X(DELAY, EAGAIN, DELAY, "") \
	X(SAME, EIO, FAIL, "NVERIFY; not sent") \
	X(DENIED, EAGAIN, FAIL, "a lock conflicts") \
	X(EXPIRED, EIO, STATE, "the lease ran out and the state with it: freed, opened anew") \
	X(LOCKED, EAGAIN, FAIL, "mandatory lock of someone else") \
	X(GRACE, EAGAIN, DELAY, "others reclaim after a restart") \
	X(FHEXPIRED, ESTALE, REVALIDATE, "volatile filehandle") \
	X(SHARE_DENIED, EACCES, FAIL, "") \
	X(WRONGSEC, EPERM, FAIL, "another sec= is wanted there") \
	X(CLID_INUSE, EIO, FAIL, "another principal owns our co_ownerid") \
	X(RESOURCE, EREMOTEIO, FAIL, "4.0's; servers use it for a COMPOUND that is too complex") \
	X(MOVED, EREMOTE, FAIL, "referral or migration") \
	X(NOFILEHANDLE, EIO, FAIL, "our COMPOUND is wrong") \
	X(MINOR_VERS_MISMATCH, EPROTONOSUPPORT, FAIL, "") \
	X(STALE_CLIENTID, EIO, CLIENT, "the server was restarted") \
	X(STALE_STATEID, EIO, STATE, "from before the server's restart") \
	X(OLD_STATEID, EIO, STATE, "overtaken by a newer one") \
	X(BAD_STATEID, EIO, STATE, "") \
	X(BAD_SEQID, EIO, FAIL, "4.0's") \
	X(NOT_SAME, EIO, FAIL, "VERIFY; its user looks at it") \
	X(LOCK_RANGE, EINVAL, FAIL, "") \
	X(SYMLINK, ELOOP, FAIL, "a symbolic link where that cannot be") \
	X(RESTOREFH, EIO, FAIL, "4.0's") \
	X(LEASE_MOVED, EIO, FAIL, "4.0's") \
	X(ATTRNOTSUPP, EOPNOTSUPP, FAIL, "") \
	X(NO_GRACE, EIO, FAIL, "too late to reclaim") \
	X(RECLAIM_BAD, EIO, FAIL, "") \
	X(RECLAIM_CONFLICT, EIO, FAIL, "") \
	X(BADXDR, EIO, FAIL, "our encoding is wrong, or exceeds what the server takes") \
	X(LOCKS_HELD, EBUSY, FAIL, "") \
	X(OPENMODE, EBADF, FAIL, "the stateid is not open for that") \
	X(BADOWNER, EINVAL, FAIL, "the server does not know this owner or group") \
	X(BADCHAR, EINVAL, FAIL, "a name the server cannot store") \
	X(BADNAME, EINVAL, FAIL, "likewise") \
	X(BAD_RANGE, EINVAL, FAIL, "") \
	X(LOCK_NOTSUPP, EOPNOTSUPP, FAIL, "") \
	X(OP_ILLEGAL, EOPNOTSUPP, FAIL, "the server does not know the operation") \
	X(DEADLOCK, EDEADLK, FAIL, "") \
	X(FILE_OPEN, EBUSY, BUSY, "a client of another protocol has it open, maybe just closes it") \
	X(ADMIN_REVOKED, EIO, STATE, "somebody took it away: freed, and lost") \
	X(CB_PATH_DOWN, EIO, FAIL, "4.0's") \
	X(BADIOMODE, EIO, FAIL, "pNFS") \
	X(BADLAYOUT, EIO, FAIL, "pNFS") \
	X(BAD_SESSION_DIGEST, EACCES, FAIL, "SP4_SSV; not used") \
	X(BADSESSION, EIO, SESSION, "") \
	X(BADSLOT, EIO, SLOT, "") \
	X(COMPLETE_ALREADY, EIO, FAIL, "RECLAIM_COMPLETE twice: its sender takes it as success") \
	X(CONN_NOT_BOUND_TO_SESSION, EIO, SESSION, "") \
	X(DELEG_ALREADY_WANTED, EIO, FAIL, "") \
	X(BACK_CHAN_BUSY, EAGAIN, DELAY, "DESTROY_SESSION while callbacks are out") \
	X(LAYOUTTRYLATER, EAGAIN, DELAY, "pNFS") \
	X(LAYOUTUNAVAILABLE, EIO, FAIL, "pNFS") \
	X(NOMATCHING_LAYOUT, EIO, FAIL, "pNFS") \
	X(RECALLCONFLICT, EAGAIN, DELAY, "a recall is on its way") \
	X(UNKNOWN_LAYOUTTYPE, EIO, FAIL, "pNFS") \
	X(SEQ_MISORDERED, EIO, SLOT, "") \
	X(SEQUENCE_POS, EIO, FAIL, "our COMPOUND is wrong") \
	X(REQ_TOO_BIG, EIO, FAIL, "") \
	X(REP_TOO_BIG, EIO, FAIL, "") \
	X(REP_TOO_BIG_TO_CACHE, EIO, FAIL, "may have been executed") \
	X(RETRY_UNCACHED_REP, EIO, SLOT, "executed, the reply is lost") \
	X(UNSAFE_COMPOUND, EIO, FAIL, "our COMPOUND is wrong") \
	X(TOO_MANY_OPS, EIO, FAIL, "") \
	X(OP_NOT_IN_SESSION, EIO, FAIL, "our COMPOUND is wrong") \
	X(HASH_ALG_UNSUPP, EIO, FAIL, "SP4_SSV; not used") \
	X(CLIENTID_BUSY, EBUSY, FAIL, "DESTROY_CLIENTID with state or sessions left") \
	X(PNFS_IO_HOLE, EIO, FAIL, "pNFS") \
	X(SEQ_FALSE_RETRY, EIO, SLOT, "") \
	X(BAD_HIGH_SLOT, EIO, SLOT, "") \
	X(DEADSESSION, EIO, SESSION, "") \
	X(ENCR_ALG_UNSUPP, EIO, FAIL, "SP4_SSV; not used") \
	X(PNFS_NO_LAYOUT, EIO, FAIL, "pNFS") \
	X(NOT_ONLY_OP, EIO, FAIL, "our COMPOUND is wrong") \
	X(WRONG_CRED, EACCES, FAIL, "another principal made this state") \
	X(WRONG_TYPE, EINVAL, FAIL, "the operation is not for a file of this type") \
	X(DIRDELEG_UNAVAIL, EIO, FAIL, "") \
	X(REJECT_DELEG, EIO, FAIL, "only a client says this") \
	X(RETURNCONFLICT, EAGAIN, DELAY, "pNFS") \
	X(DELEG_REVOKED, EIO, STATE, "as EXPIRED") \
	X(PARTNER_NOTSUPP, EOPNOTSUPP, FAIL, "COPY between servers") \
	X(PARTNER_NO_AUTH, EACCES, FAIL, "COPY between servers") \
	X(UNION_NOTSUPP, EOPNOTSUPP, FAIL, "") \
	X(OFFLOAD_DENIED, EOPNOTSUPP, FAIL, "COPY: do it by hand") \
	X(WRONG_LFS, EINVAL, FAIL, "security labels") \
	X(BADLABEL, EINVAL, FAIL, "") \
	X(OFFLOAD_NO_REQS, EOPNOTSUPP, FAIL, "COPY: synchronous or consecutive refused") \
	X(NOXATTR, ENODATA, FAIL, "") \
	X(XATTR2BIG, E2BIG, FAIL, "")
/* clang-format on */

static const struct nfs4_status_row rows[] = {{NFS4_OK, "NFS4_OK", 0, "0", NFS4_ACT_NONE, ""},
#define X(name, err, action, note)                                                                 \
	{NFS4ERR_##name, "NFS4ERR_" #name, err, #err, NFS4_ACT_##action, note},
	STATUS_FOREACH(X)
#undef X
};

#define ROW_CNT (sizeof(rows) / sizeof(rows[0]))

/* Errors are rare enough for a linear search; success does not come here. */
const struct nfs4_status_row *nfs4_status_find(uint32_t status)
{
	for (size_t i = 0; i < ROW_CNT; i++)
		if ((uint32_t)rows[i].status == status)
			return &rows[i];
	return NULL;
}

const struct nfs4_status_row *nfs4_status_at(unsigned int i)
{
	return i < ROW_CNT ? &rows[i] : NULL;
}

enum nfs4_action nfs4_status_action(enum nfs4_status status)
{
	const struct nfs4_status_row *row;

	if (status == NFS4_OK)
		return NFS4_ACT_NONE;
	row = nfs4_status_find(status);
	return row ? row->action : NFS4_ACT_FAIL;
}

int nfs4_status_errno(enum nfs4_status status)
{
	const struct nfs4_status_row *row;

	if (status == NFS4_OK)
		return 0;
	row = nfs4_status_find(status);
	if (row)
		return row->err;
	log_warn("the server answers with status %u, which no RFC we know has: taken as an I/O "
		 "error",
		(unsigned int)status);
	return EIO;
}

bool nfs4_status_is_revoked(enum nfs4_status status)
{
	return status == NFS4ERR_EXPIRED || status == NFS4ERR_ADMIN_REVOKED ||
	       status == NFS4ERR_DELEG_REVOKED;
}

bool nfs4_status_is_gone(enum nfs4_status status)
{
	return nfs4_status_is_revoked(status) || status == NFS4ERR_BAD_STATEID ||
	       status == NFS4ERR_STALE_STATEID;
}

bool nfs4_status_is_too_big(enum nfs4_status status)
{
	return status == NFS4ERR_REP_TOO_BIG || status == NFS4ERR_REP_TOO_BIG_TO_CACHE ||
	       status == NFS4ERR_TOOSMALL;
}

const char *nfs4_status_name(enum nfs4_status status)
{
	const struct nfs4_status_row *row = nfs4_status_find(status);

	return row ? row->name : "NFS4ERR_(unknown)";
}
