/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The independent witness: what another implementation (libnfs, over TCP) sees
 * on the server. Walks a directory of an export and prints one line for each
 * entry, in the form that `tree_sums` in guest.sh makes on the server's own
 * file system, so that the two can be sorted and compared:
 *
 *   <sha256>  ./path        a regular file
 *   -> target  ./path       a symbolic link
 *   dir  ./path             a directory below the first
 *   other  ./path           anything else
 *
 *   witness SERVER /PATH
 *
 * Exit status: 1 if something could not be read, 3 if libnfs cannot mount at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw-nfs4.h>

#define READ_MAX (1024 * 1024)

/* ---- SHA-256 (FIPS 180-4); here because a program on this path should need no library more ----
 */

struct sha256 {
	uint32_t h[8];
	uint64_t len;
	uint8_t block[64];
};

static const uint32_t sha_k[64] = {
	0x428a2f98,
	0x71374491,
	0xb5c0fbcf,
	0xe9b5dba5,
	0x3956c25b,
	0x59f111f1,
	0x923f82a4,
	0xab1c5ed5,
	0xd807aa98,
	0x12835b01,
	0x243185be,
	0x550c7dc3,
	0x72be5d74,
	0x80deb1fe,
	0x9bdc06a7,
	0xc19bf174,
	0xe49b69c1,
	0xefbe4786,
	0x0fc19dc6,
	0x240ca1cc,
	0x2de92c6f,
	0x4a7484aa,
	0x5cb0a9dc,
	0x76f988da,
	0x983e5152,
	0xa831c66d,
	0xb00327c8,
	0xbf597fc7,
	0xc6e00bf3,
	0xd5a79147,
	0x06ca6351,
	0x14292967,
	0x27b70a85,
	0x2e1b2138,
	0x4d2c6dfc,
	0x53380d13,
	0x650a7354,
	0x766a0abb,
	0x81c2c92e,
	0x92722c85,
	0xa2bfe8a1,
	0xa81a664b,
	0xc24b8b70,
	0xc76c51a3,
	0xd192e819,
	0xd6990624,
	0xf40e3585,
	0x106aa070,
	0x19a4c116,
	0x1e376c08,
	0x2748774c,
	0x34b0bcb5,
	0x391c0cb3,
	0x4ed8aa4a,
	0x5b9cca4f,
	0x682e6ff3,
	0x748f82ee,
	0x78a5636f,
	0x84c87814,
	0x8cc70208,
	0x90befffa,
	0xa4506ceb,
	0xbef9a3f7,
	0xc67178f2,
};

static uint32_t ror(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static void sha_block(uint32_t h[8], const uint8_t *p)
{
	uint32_t w[64], v[8];

	for (int i = 0; i < 16; i++, p += 4)
		w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + (ror(a, 7) ^ ror(a, 18) ^ a >> 3) + w[i - 7] +
		       (ror(b, 17) ^ ror(b, 19) ^ b >> 10);
	}
	memcpy(v, h, sizeof(v));
	for (int i = 0; i < 64; i++) {
		uint32_t e = v[4], a = v[0];
		uint32_t t1 = v[7] + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) +
			      ((e & v[5]) ^ (~e & v[6])) + sha_k[i] + w[i];
		uint32_t t2 = (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22)) +
			      ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof(*v));
		v[4] += t1;
		v[0] = t1 + t2;
	}
	for (int i = 0; i < 8; i++)
		h[i] += v[i];
}

static void sha_init(struct sha256 *s)
{
	static const uint32_t h0[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
		0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

	memcpy(s->h, h0, sizeof(h0));
	s->len = 0;
}

static void sha_add(struct sha256 *s, const uint8_t *p, size_t n)
{
	size_t have = s->len % 64;

	s->len += n;
	if (have) {
		size_t take = n < 64 - have ? n : 64 - have;

		memcpy(s->block + have, p, take);
		p += take;
		n -= take;
		if (have + take < 64)
			return;
		sha_block(s->h, s->block);
	}
	for (; n >= 64; p += 64, n -= 64)
		sha_block(s->h, p);
	memcpy(s->block, p, n);
}

static void sha_end(struct sha256 *s, char hex[65])
{
	static const uint8_t pad[72] = {0x80};
	uint64_t bits = s->len * 8;
	uint8_t tail[8];

	for (int i = 0; i < 8; i++)
		tail[i] = (uint8_t)(bits >> (56 - 8 * i));
	sha_add(s, pad, 1 + (119 - s->len % 64) % 64);
	sha_add(s, tail, 8);
	for (int i = 0; i < 8; i++)
		snprintf(hex + 8 * i, 9, "%08x", s->h[i]);
}

/* ---- the walk ---- */

static struct nfs_context *nfs;
static uint8_t buf[READ_MAX];

static bool fail(const char *what, const char *path)
{
	fprintf(stderr, "witness: %s %s: %s\n", what, path, nfs_get_error(nfs));
	return false;
}

static bool show_file(const char *path, const char *shown)
{
	struct nfsfh *fh;
	struct sha256 sha;
	char hex[65];
	int n;

	if (nfs_open(nfs, path, O_RDONLY, &fh) < 0)
		return fail("open", path);
	sha_init(&sha);
	while ((n = nfs_read(nfs, fh, sizeof(buf), buf)) > 0)
		sha_add(&sha, buf, (size_t)n);
	if (n < 0)
		fail("read", path);
	nfs_close(nfs, fh);
	if (n < 0)
		return false;
	sha_end(&sha, hex);
	printf("%s  %s\n", hex, shown);
	return true;
}

/* `size` is the target's length: libnfs 4.0 does not always end the target where it ends. */
static bool show_link(const char *path, const char *shown, uint64_t size)
{
	char target[4097] = "";

	if (nfs_readlink(nfs, path, target, sizeof(target) - 1) < 0)
		return fail("readlink", path);
	if (size < sizeof(target))
		target[size] = '\0';
	printf("-> %s  %s\n", target, shown);
	return true;
}

static bool walk(const char *path, const char *shown);

static bool show(const char *path, const char *shown)
{
	struct nfs_stat_64 st;

	if (nfs_lstat64(nfs, path, &st) < 0)
		return fail("lstat", path);
	switch (st.nfs_mode & S_IFMT) {
	case S_IFREG:
		return show_file(path, shown);
	case S_IFLNK:
		return show_link(path, shown, st.nfs_size);
	case S_IFDIR:
		printf("dir  %s\n", shown);
		return walk(path, shown);
	default:
		printf("other  %s\n", shown);
		return true;
	}
}

static bool walk(const char *path, const char *shown)
{
	struct nfsdir *dir;
	struct nfsdirent *ent;
	bool ok = true;

	if (nfs_opendir(nfs, path, &dir) < 0)
		return fail("opendir", path);
	while ((ent = nfs_readdir(nfs, dir)) != NULL) {
		char *sub, *sub_shown;

		if (!strcmp(ent->name, ".") || !strcmp(ent->name, ".."))
			continue;
		if (asprintf(&sub, "%s/%s", strcmp(path, "/") ? path : "", ent->name) < 0 ||
			asprintf(&sub_shown, "%s/%s", shown, ent->name) < 0)
			abort();
		ok = show(sub, sub_shown) && ok;
		free(sub);
		free(sub_shown);
	}
	nfs_closedir(nfs, dir);
	return ok;
}

int main(int argc, char **argv)
{
	bool ok;

	if (argc != 3) {
		fprintf(stderr, "usage: witness SERVER /PATH\n");
		return 2;
	}
	nfs = nfs_init_context();
	if (!nfs)
		return 1;
	nfs_set_version(nfs, NFS_V4);
	/* The root is mounted and the path walked to: a pseudo file system's
	 * directories cannot all be mounted by name. */
	if (nfs_mount(nfs, argv[1], "/") < 0) {
		fail("mount", argv[1]);
		return 3;
	}
	ok = walk(argv[2], ".");
	nfs_destroy_context(nfs);
	return ok && fflush(stdout) == 0 ? 0 : 1;
}
