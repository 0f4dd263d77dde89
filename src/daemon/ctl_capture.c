/* SPDX-License-Identifier: BSD-3-Clause */
/* capture on the control socket: start into a file that came along, state, stop. */
#include "ctl_cmds.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"
#include "mount_int.h"
#include "optval.h"

#define MIB_MAX 1048576u

static int refuse(FILE *out, int err, const char *why)
{
	fputs(why, out);
	return err;
}

/*
 * Without a question to the file system: it may be this mount, whose server may be dead, and
 * this is the thread that runs its timers. To wait for whoever reads a pipe is no better.
 */
static bool is_regular(int fd)
{
	struct statx st;

	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 &&
	       S_ISREG(st.stx_mode);
}

static int start(struct mount *m, char **argv, int fd, FILE *out)
{
	struct capture_limits limits = {.data = strcmp(argv[3], "data") == 0};
	uint64_t mib;
	int own, err;

	if (!optval_uint(argv[2], 1, MIB_MAX, &mib) ||
		(!limits.data && strcmp(argv[3], "messages") != 0))
		return refuse(out, -EINVAL, "capture start MIB messages|data is wanted");
	if (fd < 0 || !is_regular(fd))
		return refuse(out, -EINVAL, "a regular file has to come with it");
	limits.max_bytes = mib << 20;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	err = own < 0 ? -errno : capture_start(m->capture, own, &limits);
	if (err != 0 && own >= 0)
		close(own);
	if (err == -EBUSY)
		return refuse(
			out, err, "a capture is running already: rpcrdmafs capture MOUNT stop");
	return err != 0 ? refuse(out, err, strerror(-err)) : 0;
}

static void say_state(struct mount *m, FILE *out)
{
	static const char *const ends[] = {
		[CAPTURE_RUNNING] = "running",
		[CAPTURE_NEVER] = "never started",
		[CAPTURE_STOPPED] = "stopped",
		[CAPTURE_FULL] = "full",
		[CAPTURE_FAILED] = "failed",
	};
	struct capture_state st;

	capture_state(m->capture, &st);
	fprintf(out, "%s%s%s: %" PRIu64 " frames, %" PRIu64 " bytes, %" PRIu64 " dropped\n",
		ends[st.end], st.err ? ", " : "", st.err ? strerror(-st.err) : "", st.frames,
		st.bytes, st.dropped);
}

/* capture start MIB messages|data; capture state; capture stop */
int ctl_capture_run(void *ctx, int argc, char **argv, int fd, FILE *out)
{
	struct mount *m = ctx;
	int err = 0;

	if (argc == 4 && strcmp(argv[1], "start") == 0)
		return start(m, argv, fd, out);
	if (argc != 2 || (strcmp(argv[1], "state") != 0 && strcmp(argv[1], "stop") != 0))
		return refuse(out, -EINVAL, "capture knows start, state and stop");
	if (strcmp(argv[1], "stop") == 0)
		err = capture_stop(m->capture);
	if (err != 0)
		return refuse(out, err, strerror(-err));
	say_state(m, out);
	return 0;
}
