/* SPDX-License-Identifier: BSD-3-Clause */
#include "mnt.h"

#include <criterion/hooks.h>
#include <dirent.h>
#include <grp.h>
#include <sys/wait.h>

#define MNT "/mnt-test"

static char folder[NAME_MAX + 1];

static const char *env(const char *name, const char *other)
{
	const char *v = getenv(name);

	return v != NULL && *v != '\0' ? v : other;
}

static const char *export_dir(void)
{
	return env("EXPORT_DIR", "/export");
}

/* ---- the mount, by the runner's process ---- */

static int run(const char *cmd)
{
	int rc = system(cmd);

	if (rc != 0)
		fprintf(stderr, "# status %d: %s\n", rc, cmd);
	return rc;
}

static bool kernel_client(void)
{
	return strcmp(env("CLIENT", ""), "kernel") == 0;
}

ReportHook(PRE_ALL)(struct criterion_test_set *tests)
{
	char cmd[2048];

	if (kernel_client())
		snprintf(cmd, sizeof(cmd),
			"mkdir -p %s && modprobe -a rpcrdma nfsv4 && mount -t nfs -o "
			"vers=4.2,proto=rdma,port=20049,nosharecache,retry=0,%s %s:/ %s",
			MNT, env("MNT_OPTS", "acdirmin=2,acdirmax=4"), env("SERVER", "10.77.0.1"),
			MNT);
	else /* In RAM: unprivileged users and the page cache like that better than 9p. */
		snprintf(cmd, sizeof(cmd),
			"mkdir -p /run/bin %s && cp %s/src/rpcrdmafs /run/bin/rpcrdmafs-test && "
			"ulimit -l unlimited && %s /run/bin/rpcrdmafs-test "
			"-o allow_other,fabric=%s,%s %s:/ %s",
			MNT, env("BUILD_DIR", "build"), env("MNT_WRAP", ""), env("FABRIC", "auto"),
			env("MNT_OPTS", "acdirmin=2,acdirmax=4"), env("SERVER", "10.77.0.1"), MNT);
	/* Nothing can be tested: say it once. */
	if (run(cmd) != 0)
		_exit(1);
}

ReportHook(POST_ALL)(struct criterion_global_stats *stats)
{
	if (kernel_client()) {
		run("umount " MNT);
		return;
	}
	run("fusermount3 -u " MNT);
	/* The daemon is still ending its session: what comes next may look for leftovers. */
	run("for i in $(seq 100); do pgrep -f rpcrdmafs-tes[t] >/dev/null || exit 0; sleep 0.1; "
	    "done; echo 'the daemon did not end'; exit 1");
}

/* ---- paths ---- */

static const char *path_in(const char *dir, const char *sub, const char *name)
{
	static char paths[32][PATH_MAX];
	static unsigned int next;
	char *p = paths[next++ % 32];

	snprintf(
		p, PATH_MAX, "%s/%s%s%s", dir, sub, *sub != '\0' && *name != '\0' ? "/" : "", name);
	return p;
}

const char *c(const char *name)
{
	return path_in(MNT, folder, name);
}

const char *s(const char *name)
{
	return path_in(export_dir(), folder, name);
}

const char *mnt_root(const char *path)
{
	return path_in(MNT, "", path);
}

void mnt_setup(void)
{
	static char template[PATH_MAX];
	struct stat root, above;

	WORKS(stat(MNT, &root));
	WORKS(stat("/", &above));
	cr_assert(root.st_dev != above.st_dev, "not mounted");
	umask(022);
	snprintf(template, sizeof(template), "%s/t.XXXXXX", export_dir());
	cr_assert(mkdtemp(template), "%s: %s", template, strerror(errno));
	WORKS(chmod(template, 0777));
	snprintf(folder, sizeof(folder), "%s", strrchr(template, '/') + 1);
}

/* ---- contents ---- */

long works(long result, const char *call, int line)
{
	cr_assert(result != -1, "line %d: %s: %s", line, call, strerror(errno));
	return result;
}

static uint8_t pattern(uint64_t pos)
{
	uint64_t x = (pos >> 3) * 0x9e3779b97f4a7c15ull;

	x ^= x >> 31;
	return (uint8_t)(x >> (8 * (pos & 7)));
}

void fill(void *buf, size_t len, uint64_t pos)
{
	uint8_t *p = buf;

	for (size_t i = 0; i < len; i++)
		p[i] = pattern(pos + i);
}

size_t fill_check(const void *buf, size_t len, uint64_t pos)
{
	const uint8_t *p = buf;
	size_t i = 0;

	while (i < len && p[i] == pattern(pos + i))
		i++;
	return i;
}

void write_all(int fd, const void *buf, size_t len, off_t off)
{
	const char *p = buf;

	while (len > 0) {
		ssize_t n = pwrite(fd, p, len, off);

		cr_assert(n > 0, "write at %lld: %s", (long long)off, strerror(errno));
		p += n;
		off += n;
		len -= (size_t)n;
	}
}

void read_all(int fd, void *buf, size_t len, off_t off)
{
	char *p = buf;

	while (len > 0) {
		ssize_t n = pread(fd, p, len, off);

		cr_assert(n >= 0, "read at %lld: %s", (long long)off, strerror(errno));
		cr_assert(n > 0, "end of file at %lld", (long long)off);
		p += n;
		off += n;
		len -= (size_t)n;
	}
}

void put_pattern(const char *path, size_t len)
{
	int fd = WORKS(open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644));
	char *buf = malloc(len + 1);

	fill(buf, len, 0);
	write_all(fd, buf, len, 0);
	free(buf);
	WORKS(close(fd));
}

void want_pattern(const char *path, size_t len)
{
	int fd = WORKS(open(path, O_RDONLY));
	char *buf = malloc(len + 1);
	size_t good;

	read_all(fd, buf, len, 0);
	cr_assert(pread(fd, buf + len, 1, (off_t)len) == 0, "%s is longer than %zu", path, len);
	good = fill_check(buf, len, 0);
	cr_assert(good == len, "%s: wrong byte at %zu of %zu", path, good, len);
	free(buf);
	WORKS(close(fd));
}

void put_text(const char *path, const char *text)
{
	int fd = WORKS(open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644));

	write_all(fd, text, strlen(text), 0);
	WORKS(close(fd));
}

void want_text(const char *path, const char *text)
{
	int fd = WORKS(open(path, O_RDONLY));
	char buf[256];
	ssize_t n = WORKS(read(fd, buf, sizeof(buf) - 1));

	buf[n] = '\0';
	cr_assert(strcmp(buf, text) == 0, "%s: '%s', not '%s'", path, buf, text);
	WORKS(close(fd));
}

struct stat stat_of(const char *path)
{
	struct stat st;

	WORKS(lstat(path, &st));
	return st;
}

static int count(const char *path, const char *prefix)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int n = 0;

	cr_assert(d, "%s: %s", path, strerror(errno));
	while ((errno = 0, e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
	}
	cr_assert(errno == 0, "%s: %s", path, strerror(errno));
	closedir(d);
	return n;
}

int count_entries(const char *path)
{
	return count(path, "");
}

int count_silly(void)
{
	return count(s(""), ".nfs");
}

void as_user(uid_t uid, gid_t gid, bool (*fn)(void))
{
	pid_t pid = WORKS(fork());
	int status;

	if (pid == 0) {
		if (setgroups(0, NULL) != 0 || setresgid(gid, gid, gid) != 0 ||
			setresuid(uid, uid, uid) != 0)
			_exit(2);
		_exit(fn() ? 0 : 1);
	}
	WORKS(waitpid(pid, &status, 0));
	cr_assert(status == 0, "as user %u: status 0x%x", uid, status);
}
