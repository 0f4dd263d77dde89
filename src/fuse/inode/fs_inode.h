/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inode table: nodeid <-> filehandle, lookup counts.
 *
 * Context: any lane.
 */
#ifndef RPCRDMAFS_FS_INODE_H
#define RPCRDMAFS_FS_INODE_H

#include "fs_fs.h"

#include <string.h>

/*
 * A nodeid has two forms, with this and without (fs_special.h): to the kernel two inodes, here the
 * same one. Its lookups are counted together.
 */
#define FS_INO_SHADOW (1ull << 32)

struct MUTEX_CAPABILITY fs_table;

/*
 * The kernel holds a nodeid of it, the number of its slot (fs_slot.h). There may be millions: at
 * most 512 bytes each, the longest filehandle and the table included; its name in fs_dentry.h comes
 * to that.
 */
struct fs_inode {
	struct mutex lock;      /* everything below `refs` */
	uint64_t nlookup;       /* the kernel's references; table lock */
	uint32_t refs;          /* open files, operations by nodeid; table lock */
	_Atomic uint32_t noted; /* where its name was noted last (fs_dentry.h); no lock */
	uint32_t slot;          /* for ever: the nodeid ... */
	uint32_t generation;    /* ... and what no other inode of that nodeid has */
	live_ref live_ref;      /* fs_live.h; table lock */
	uint8_t fh_len;
	bool unhashed;         /* table lock: the filehandle names another file, or none, now */
	uint8_t nfs_names;     /* links that the server counts, but no program made: .nfs... */
	bool attr_known : 1;   /* attr holds all that a stat needs */
	bool silly : 1;        /* renamed to .nfs... on unlink while open */
	bool removed : 1;      /* a directory: maybe by us, while it was open (fs_place.h) */
	bool opened : 1;       /* was open once: the kernel may hold pages of it */
	bool live_old : 1;     /* its record is not as it is: fs_live_inode() */
	uint32_t opens;        /* open files */
	uint32_t inval_want;   /* changes by others that make the kernel's pages stale */
	struct nfs4_attr attr; /* the newest attributes seen */
	uint64_t attr_ns;      /* when they arrived (reactor_now) */
	uint32_t attr_to_ms;   /* start of the period after which attr_to_s may double; it wraps */
	uint32_t attr_to_s;    /* how long they are good: doubles while nothing changes */
	uint32_t inval_done;   /* how many of inval_want the kernel was told */
	/* Counts of operations, of which a mount has at most some thousands */
	uint16_t deleg_bars;  /* on their way, beside which no delegation is taken */
	uint16_t opening;     /* files whose OPEN is on its way */
	uint64_t data_change; /* change attribute the kernel's cached pages belong to; 0: none */
	uint64_t told_change; /* change attribute of the attributes the kernel holds; 0: none */
	uint64_t attr_seq; /* of our last change: a reply from before it must not overwrite attrs */
	union {
		uint64_t write_seq; /* a file: counts UNSTABLE writes: what a COMMIT covers */
		struct {            /* a directory: its name, and fs->moves then (fs_place.h) */
			uint32_t place, place_moves;
		};
	};
	struct fs_unstable
		*unstable;       /* data the server may lose (fs_unstable.h); NULL: never written */
	struct list open_files;  /* of fs_file */
	struct fs_share *shares; /* by `next` (fs_share.h) */
	struct fs_deleg *deleg;  /* the server's promise (fs_deleg.h); NULL: none */
	struct fs_silly *silly_name; /* parent and name of the .nfs file */
	union {
		uint32_t writers; /* a file: open for writing, or on their way to be */
		uint32_t sillies; /* a directory: .nfs files in it */
	};
	_Atomic uint16_t
		facts; /* its file system (fs_facts.h): 1 + nfs4_fs.nr; 0: not known; no lock */
	/* Is there any? Read without a lock: most files that are read have none. */
	_Atomic bool is_unstable;     /* memory of unstable data (fs_unstable.h) */
	_Atomic bool is_written_back; /* a writeback (fs_writeback.h) */
	/* Owners of locks on the server (fs_lock.h), by `next`; fs->locks_lock */
	struct fs_lockowner *_Atomic lockowners;
	struct fs_dentries *dentries; /* of a directory: what the kernel may walk (fs_dentry.h) */
	uint8_t fh[];                 /* fh_len bytes */
};

int fs_inode_table_new(struct fs *fs);
void fs_inode_table_free(struct fs *fs); /* forgets everything */
/* Short: for fs->files and the table itself. */
void fs_inode_table_lock(struct fs *fs) MUTEX_ACQUIRES(fs->table);
void fs_inode_table_unlock(struct fs *fs) MUTEX_RELEASES(fs->table);
/*
 * fs_inode_lookup - the inode of a filehandle, made if new
 *
 * The same filehandle is the same inode; another fileid, fsid or type under it makes it stale.
 * attr is compared only (may be NULL): fs_attr_update() notes it. nlookup: references for the
 * kernel to add (0 or 1). The returned inode has one `refs` more: fs_inode_put(), or hand it to
 * the op (op->inode2). NULL: out of memory or no filehandle.
 */
struct fs_inode *fs_inode_lookup(struct fs *fs, const struct nfs4_fh *fh,
	const struct nfs4_attr *attr, unsigned int nlookup);
/* So many are about to be put back: their table need not grow meanwhile. */
void fs_inode_put_back_room(struct fs *fs, size_t cnt);
/*
 * fs_inode_put_back - one that another process had, with its nodeid (fs_tables.h)
 *
 * Nothing is looked up before fs_inode_put_back_all(). It has no `refs`. NULL: out of memory, or
 * its nodeid is in use.
 */
struct fs_inode *fs_inode_put_back(struct fs *fs, uint64_t slot, uint32_t generation,
	const struct nfs4_fh *fh, uint64_t nlookup);
/* generation: of the inode that was made last there. */
void fs_inode_put_back_all(struct fs *fs, uint32_t generation);
/* Calls fn with each inode, in the order of their slots; table lock held. */
void fs_inode_each(struct fs *fs, void (*fn)(void *ctx, struct fs_inode *in), void *ctx);
/* Of the inode that was made last. */
uint32_t fs_inode_generation(const struct fs *fs);
/* Only if it exists (unlink and rename: is the victim open?); takes a reference. */
struct fs_inode *fs_inode_find(struct fs *fs, const struct nfs4_fh *fh);
/* By nodeid; takes a reference. WIRE: NULL: it is none, or forgotten: ESTALE. */
struct fs_inode *fs_inode_get(struct fs *fs, fuse_ino_t ino);
struct fs_inode *fs_inode_ref(struct fs *fs, struct fs_inode *in);
/* The same with the table lock held. */
static inline struct fs_inode *fs_inode_ref_locked(struct fs_inode *in)
{
	in->refs++;
	return in;
}
/* NULL is accepted. */
void fs_inode_put(struct fs *fs, struct fs_inode *in);
/* The same with the table lock held, which is given up. NULL is not accepted. */
void fs_inode_put_unlock(struct fs *fs, struct fs_inode *in) MUTEX_RELEASES(fs->table);
void fs_inode_forget(struct fs *fs, fuse_ino_t ino, uint64_t nlookup);
/* Does the kernel hold it no more? */
bool fs_inode_is_forgotten(struct fs *fs, struct fs_inode *in);
/* The nodeid, without FS_INO_SHADOW. Of the inode that was made first, the root, it is
 * FUSE_ROOT_ID. */
static inline fuse_ino_t fs_inode_ino(const struct fs *fs, const struct fs_inode *in)
{
	return in->slot;
}
static inline void fs_inode_fh(const struct fs_inode *in, struct nfs4_fh *ret_fh)
{
	ret_fh->len = in->fh_len;
	memcpy(ret_fh->data, in->fh, in->fh_len);
}
uint64_t fs_inode_fileid(struct fs_inode *in);
/* No lookup by filehandle finds it any more; the kernel's references stay. */
void fs_inode_unhash(struct fs *fs, struct fs_inode *in);

#endif
