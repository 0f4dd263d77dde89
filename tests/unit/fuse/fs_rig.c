/* SPDX-License-Identifier: BSD-3-Clause */
#include "fs_deleg.h"
#include "fs_rig.h"
#include "fs_inode.h"
#include "fs_notify.h"
#include "fs_session.h"
#include "tables.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define HANG_MS 60000

struct rig rig;
bool rig_delegation;
uint32_t rig_minor = FUSE_KERNEL_MINOR_VERSION;
enum fs_write rig_write_mode;

static void on_report(void *ctx, enum fs_lane_event event)
{
	rig.exited |= event == FS_LANE_EXITED;
	rig.idle |= event == FS_LANE_ENDED;
	rig.caught_up += event == FS_LANE_CAUGHT_UP;
}

/* The kernel takes no answer to what it has not asked, and no other one to what was answered. */
static bool take_asked(uint64_t unique)
{
	bool is;

	if (unique == 0 || unique >= RIG_ASKED)
		return false;
	is = rig.asked[unique];
	rig.asked[unique] = false;
	return is;
}

static ssize_t rig_writev(int fd, struct iovec *iov, int cnt, void *userdata)
{
	if (rig.kernel_waits)
		rig.kernel_waits(iov, cnt);
	return fs_custom_io.writev(fd, iov, cnt, userdata);
}

ssize_t __real_writev(int fd, const struct iovec *iov, int cnt);
ssize_t __wrap_writev(int fd, const struct iovec *iov, int cnt);

ssize_t __wrap_writev(int fd, const struct iovec *iov, int cnt)
{
	const struct fuse_out_header *h = iov[0].iov_base;
	ssize_t n;

	if (!rig.fs || fd != rig.fs->fd)
		return __real_writev(fd, iov, cnt);
	rig.pieces = cnt;
	if (!rig_keep)
		return __real_writev(fd, iov, cnt);
	rig_step();
	if (h->unique != 0 && !take_asked(h->unique)) {
		errno = ENOENT;
		return -1;
	}
	n = __real_writev(fd, iov, cnt);
	rig_step();
	return n;
}

ssize_t __real_write(int fd, const void *p, size_t len);
ssize_t __wrap_write(int fd, const void *p, size_t len);

ssize_t __wrap_write(int fd, const void *p, size_t len)
{
	const struct iovec iov = {(void *)p, len};
	const struct fuse_out_header *h = p;

	/* An answer to an interrupt, by the process that takes over. */
	if (rig_keep && len == sizeof(*h) && (h->unique & 1) && rig.fs->fd < 0) {
		rig_step();
		errno = ENOENT;
		return h->unique < RIG_ASKED && rig.asked[h->unique - 1] ? (ssize_t)len : -1;
	}
	return rig.fs && fd == rig.fs->fd ? __wrap_writev(fd, &iov, 1) : __real_write(fd, p, len);
}

static void make_session(void)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_custom_io io = fs_custom_io;
	int sp[2], big = 1 << 20;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sp), 0);
	for (int i = 0; i < 2; i++)
		setsockopt(sp[i], SOL_SOCKET, SO_SNDBUF, &big, sizeof(big));
	fuse_opt_add_arg(&args, "rig");
	cr_assert_eq(fs_session_init_new(rig.fs), 0);
	rig.fs->se = fuse_session_new(&args, &fs_ops, sizeof(fs_ops), rig.fs);
	cr_assert_not_null(rig.fs->se);
	fuse_opt_free_args(&args);
	io.writev = rig_writev;
	rig.fs->fd = sp[0];
	rig.peer = sp[1];
	cr_assert_eq(fuse_session_custom_io(rig.fs->se, &io, sp[0]), 0);
}

static void do_init(void)
{
	struct fuse_init_in in = {
		.major = FUSE_KERNEL_VERSION,
		.minor = rig_minor,
		.max_readahead = 131072,
		.flags = 0x3fffffff,
	};
	struct fuse_buf buf = {0};
	struct rig_reply re;

	rig_send(FUSE_INIT, 0, &in, sizeof(in), NULL, 0);
	cr_assert_gt(fuse_session_receive_buf(rig.fs->se, &buf), 0);
	fuse_session_process_buf(rig.fs->se, &buf);
	free(buf.mem);
	cr_assert(rig_reply(&re, 1000));
	cr_assert_eq(re.h.error, 0);
	cr_assert_eq(re.len, sizeof(rig.init));
	memcpy(&rig.init, re.body, sizeof(rig.init));
	fcntl(rig.fs->fd, F_SETFL, O_NONBLOCK);
}

/* The bound is for one that hangs. */
static void wait_for_threads(void)
{
	for (int i = 0; i < HANG_MS * 10 && !rig.hangs && fs_notify_busy(rig.fs); i++)
		usleep(100);
}

unsigned int rig_kill_at, rig_kill_again;

/* The thread that runs the daemon while rig_kill_at is set. */
static struct {
	sem_t over;
	bool turned, killed;
	unsigned int steps;
} daemon_thread;
static _Thread_local bool is_daemon;

/* Of its other threads nobody knows when they come. */
void rig_step(void)
{
	if (!is_daemon || ++daemon_thread.steps < rig_kill_at)
		return;
	daemon_thread.killed = true;
	sem_post(&daemon_thread.over);
	for (;;) /* with all that it holds */
		pause();
}

static void *run_turn(void *arg)
{
	is_daemon = true;
	daemon_thread.turned = reactor_turn(rig.fake.r, NSEC_PER_MSEC);
	sem_post(&daemon_thread.over);
	return NULL;
}

static bool turn_or_be_killed(void)
{
	pthread_t thread;

	sem_init(&daemon_thread.over, 0, 0);
	cr_assert_eq(pthread_create(&thread, NULL, run_turn, NULL), 0);
	while (sem_wait(&daemon_thread.over))
		;
	if (!daemon_thread.killed) {
		pthread_join(thread, NULL);
		return daemon_thread.turned;
	}
	rig_kill_at = rig_kill_again;
	rig_kill_again = daemon_thread.steps = 0;
	rig.kills++;
	rig_crash();
	daemon_thread.killed = false;
	return true;
}

bool rig_turn(void)
{
	wait_for_threads();
	return rig_kill_at ? turn_or_be_killed() : reactor_turn(rig.fake.r, NSEC_PER_MSEC);
}

/* ---- what the daemon writes down: steps at which it can be killed ---- */

void __real_live_put(
	struct live *l, live_ref *ref, const struct live_key *key, struct tables_out *t);
void __real_live_drop(struct live *l, live_ref *ref);
void __real_live_count(struct live *l, live_ref ref, uint64_t value);
void __real_live_put_pieces(struct live *l, live_ref *ref, const struct live_key *key,
	uint16_t type, uint16_t field, const void *p, size_t len);
void __real_live_raw_place(struct live *l, live_ref ref, uint64_t place);
void __wrap_live_put_pieces(struct live *l, live_ref *ref, const struct live_key *key,
	uint16_t type, uint16_t field, const void *p, size_t len);
void __wrap_live_raw_place(struct live *l, live_ref ref, uint64_t place);
void __wrap_live_put(
	struct live *l, live_ref *ref, const struct live_key *key, struct tables_out *t);
void __wrap_live_drop(struct live *l, live_ref *ref);
void __wrap_live_count(struct live *l, live_ref ref, uint64_t value);

void __wrap_live_put(
	struct live *l, live_ref *ref, const struct live_key *key, struct tables_out *t)
{
	rig_step();
	__real_live_put(l, ref, key, t);
	rig_step();
}

void __wrap_live_put_pieces(struct live *l, live_ref *ref, const struct live_key *key,
	uint16_t type, uint16_t field, const void *p, size_t len)
{
	rig_step();
	rig.copied += len;
	__real_live_put_pieces(l, ref, key, type, field, p, len);
	rig_step();
}

void __wrap_live_raw_place(struct live *l, live_ref ref, uint64_t place)
{
	rig_step();
	__real_live_raw_place(l, ref, place);
	rig_step();
}

void __wrap_live_drop(struct live *l, live_ref *ref)
{
	rig_step();
	__real_live_drop(l, ref);
	rig_step();
}

void __wrap_live_count(struct live *l, live_ref ref, uint64_t value)
{
	rig_step();
	__real_live_count(l, ref, value);
	rig_step();
}

bool rig_keep, rig_tables_only;

static void keep(void)
{
	if (!rig_keep)
		return;
	rig.live = live_new();
	cr_assert_not_null(rig.live);
	cr_assert_eq(fs_handover_live(rig.fs, rig.live, !rig_tables_only), 0);
}

void rig_up(const struct fs_conf *conf)
{
	struct fs_conf c = {
		.source = "server:/export",
		.mountpoint = "/nowhere",
		.acregmin_s = 3,
		.acregmax_s = 60,
		.acdirmin_s = 30,
		.acdirmax_s = 60,
		.cto = true,
		.rdirplus = true,
		.delegation = rig_delegation,
		.write = rig_write_mode,
		.dirty = 1u << 20,
	};

	memset(&rig, 0, sizeof(rig));
	rig.uid = 1000;
	fake_init(&rig.fake, reactor_new_virtual());
	rig.conf = conf ? *conf : c;
	rig.fs = fs_new(&rig.conf, NULL);
	cr_assert_not_null(rig.fs);
	keep();
	cr_assert_eq(fs_set_root(rig.fs), 0);
	rig.lane = fs_lane_new(rig.fs, rig.fake.r, NULL, 16, on_report, NULL, &rig.stats);
	cr_assert_not_null(rig.lane);
	make_session();
	do_init();
	fs_handover_live_mounted(rig.fs);
	cr_assert_eq(fs_notify_start(rig.fs), 0);
	cr_assert_eq(fs_lane_start(rig.lane), 0);
}

/* Processes before this one: nothing of theirs runs any more, and nobody frees it. */
static struct {
	struct fs *fs;
	struct fs_lane *lane;
	struct reactor *r;
	struct live *live;
} before[40];

int rig_write_tables(void)
{
	int fd = memfd_create("tables", MFD_CLOEXEC);
	struct tables_out t;

	tables_begin(&t, fd);
	fs_handover_put(rig.fs, &t);
	cr_assert_eq(tables_end(&t), 0);
	return fd;
}

void rig_pause(void)
{
	fs_lane_pause(rig.lane);
	for (int i = 0; i < 1000 && !fs_lane_pause_is_quiet(rig.lane); i++)
		rig_turn();
	cr_assert(fs_lane_pause_is_quiet(rig.lane));
}

static void take_over(int tables, bool in_order)
{
	struct tables_in in;
	char text[200];
	unsigned int i = 0;
	int device = in_order ? -1 : rig.fs->fd;

	while (before[i].fs)
		i++;
	before[i].fs = rig.fs;
	before[i].lane = rig.lane;
	before[i].r = rig.fake.r;
	before[i].live = rig.live;
	if (!daemon_thread.killed) /* else they may wait for what it holds */
		fs_notify_stop(rig.fs);
	fake_new_reactor(&rig.fake, reactor_new_virtual());
	cr_assert_eq(tables_open(&in, tables), 0);
	rig.fs = fs_new(&rig.conf, NULL);
	cr_assert_not_null(rig.fs);
	keep();
	if (!in_order)
		cr_assert_eq(fs_handover_before(rig.fs, live_fd(before[i].live), device), 0);
	cr_assert_eq(fs_handover_get(rig.fs, &in, in_order, reactor_now(rig.fake.r)), 0);
	cr_assert_eq(fs_set_root(rig.fs), 0);
	rig.lane = fs_lane_new(rig.fs, rig.fake.r, NULL, 16, on_report, NULL, &rig.stats);
	cr_assert_not_null(rig.lane);
	cr_assert_eq(fs_handover_mount(rig.fs, device, text, sizeof(text)), 0, "%s", text);
	fs_handover_live_mounted(rig.fs);
	cr_assert_eq(fs_lane_start(rig.lane), 0);
	tables_close(&in);
	close(tables);
}

void rig_take_over(int tables)
{
	take_over(tables, true);
}

void rig_crash(void)
{
	int fd = memfd_create("tables", MFD_CLOEXEC);
	struct tables_out t;

	tables_begin(&t, fd);
	cr_assert_eq(live_tables(live_fd(rig.live), &t), 0);
	cr_assert_eq(tables_end(&t), 0);
	take_over(fd, false);
}

void rig_cannot_take_over(int tables, size_t data_size)
{
	struct fs *fs = fs_new(&rig.conf, NULL);
	struct tables_in in;
	char text[200];

	cr_assert_eq(tables_open(&in, tables), 0);
	cr_assert_eq(fs_handover_get(fs, &in, true, 0), 0);
	if (data_size) {
		cr_assert_eq(fs_set_root(fs), 0);
		fs->data_size = data_size;
		cr_assert_eq(fs_handover_mount(fs, -1, text, sizeof(text)), -EPROTO);
	}
	fs_free(fs);
	tables_close(&in);
	close(tables);
}

void rig_hand_over(void)
{
	rig_pause();
	cr_assert_null(fs_handover_obstacle(rig.fs));
	rig_take_over(rig_write_tables());
}

void rig_down(void)
{
	if (!rig.idle) {
		fs_lane_stop(rig.lane);
		for (int i = 0; i < 1000 && !rig.idle; i++)
			rig_turn();
	}
	cr_expect(rig.idle, "the lane never became idle");
	cr_expect_eq(rig.fake.calls, 0);
	cr_expect_eq(rig.fake.bufs, 0);
	cr_expect_eq(rig.fake.opens, 0, "%u files left open on the server", rig.fake.opens);
	for (unsigned int i = 0; i < FAKE_FILES; i++)
		cr_expect(!rig.fake.files[i].granted, "a delegation is left");
	cr_expect_eq(rig.fs->delegs->cnt, 0);
	fs_lane_free(rig.lane);
	rig.lane = NULL;
	close(rig.peer);
	reactor_timer_cancel(rig.fake.r, &rig.fake.timer);
	reactor_timer_cancel(rig.fake.r, &rig.fake.unblock);
	reactor_free(rig.fake.r);
	fs_free(rig.fs);
	fake_buf_memory(&(const struct slab_memory){.get = NULL});
	live_free(rig.live);
	rig_keep = rig_tables_only = false;
}

fuse_ino_t rig_ino(struct fake_file *f)
{
	struct nfs4_fh fh = {.len = 1, .data = {(uint8_t)(f - rig.fake.files)}};
	struct fs_inode *in = fs_inode_lookup(rig.fs, &fh, &f->attr, 1);

	fs_inode_put(rig.fs, in);
	return fs_inode_ino(rig.fs, in);
}

struct fs_inode *rig_inode(fuse_ino_t nodeid)
{
	struct fs_inode *in = fs_inode_get(rig.fs, nodeid);

	cr_assert_not_null(in);
	fs_inode_put(rig.fs, in);
	return in;
}

struct fs_file *rig_file(uint64_t handle)
{
	struct fs_file *f = fs_handle_of(&rig.fs->file_handles, handle);

	cr_assert_not_null(f);
	return f;
}

static uint64_t send_as(
	struct fuse_in_header h, const void *arg, size_t arg_len, const void *more, size_t more_len)
{
	struct iovec iov[3] = {
		{&h, sizeof(h)},
		{(void *)(uintptr_t)arg, arg_len},
		{(void *)(uintptr_t)more, more_len},
	};

	h.len = (uint32_t)(sizeof(h) + arg_len + more_len);
	h.unique = rig.unique += 2;
	if (h.unique < RIG_ASKED)
		rig.asked[h.unique] = true;
	cr_assert_eq(writev(rig.peer, iov, 3), (ssize_t)h.len);
	return h.unique;
}

uint64_t rig_send(uint32_t opcode, uint64_t nodeid, const void *arg, size_t arg_len,
	const void *more, size_t more_len)
{
	struct fuse_in_header h = {.opcode = opcode,
		.nodeid = nodeid,
		.uid = rig.uid,
		.gid = 1001,
		.pid = (uint32_t)getpid()};

	return send_as(h, arg, arg_len, more, more_len);
}

uint64_t rig_send_of(pid_t pid, uint32_t opcode, uint64_t nodeid, const void *arg, size_t arg_len)
{
	struct fuse_in_header h = {.opcode = opcode,
		.nodeid = nodeid,
		.uid = geteuid() + rig.stranger,
		.gid = getegid(),
		.pid = (uint32_t)pid};

	return send_as(h, arg, arg_len, NULL, 0);
}

bool rig_reply(struct rig_reply *re, unsigned int wait_ms)
{
	struct iovec iov[2] = {{&re->h, sizeof(re->h)}, {re->body, sizeof(re->body)}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	for (unsigned int i = 0; i <= wait_ms; i++) {
		ssize_t n = recvmsg(rig.peer, &msg, MSG_DONTWAIT);

		if (n >= (ssize_t)sizeof(re->h) && rig_keep && re->h.unique == 0)
			continue; /* a notice */
		if (n >= (ssize_t)sizeof(re->h)) {
			re->len = (size_t)n - sizeof(re->h);
			return true;
		}
		rig_turn();
	}
	return false;
}

int rig_call(struct rig_reply *re, uint32_t opcode, uint64_t nodeid, const void *arg,
	size_t arg_len, const void *more, size_t more_len)
{
	uint64_t unique = rig_send(opcode, nodeid, arg, arg_len, more, more_len);

	cr_assert(rig_reply(re, 3000), "no reply to operation %u", opcode);
	cr_assert_eq(re->h.unique, unique, "it is of %llx", (unsigned long long)re->h.unique);
	return -re->h.error;
}

void rig_settle(void)
{
	for (int i = 0; i < 20; i++)
		rig_turn();
}

void rig_run_for(uint64_t ns)
{
	uint64_t end_ns = reactor_now(rig.fake.r) + ns;

	while (reactor_now(rig.fake.r) < end_ns)
		rig_turn();
}

int rig_open(fuse_ino_t ino, int flags, struct fuse_open_out *out)
{
	struct fuse_open_in in = {.flags = (uint32_t)flags};
	struct rig_reply re;
	int err = rig_call(&re, FUSE_OPEN, ino, &in, sizeof(in), NULL, 0);

	if (!err)
		memcpy(out, re.body, sizeof(*out));
	return err;
}

int rig_create(
	const char *name, int flags, mode_t mode, struct fuse_open_out *out, fuse_ino_t *ret_ino)
{
	struct fuse_create_in in = {.flags = (uint32_t)flags, .mode = S_IFREG | mode, .umask = 022};
	struct fuse_entry_out e;
	struct rig_reply re;
	int err = rig_call(&re, FUSE_CREATE, FUSE_ROOT_ID, &in, sizeof(in), name, strlen(name) + 1);

	if (err)
		return err;
	memcpy(&e, re.body, sizeof(e));
	memcpy(out, re.body + sizeof(e), sizeof(*out));
	*ret_ino = e.nodeid;
	return 0;
}

int rig_write(fuse_ino_t ino, uint64_t fh, uint64_t off, const void *data, uint32_t len, int flags)
{
	struct fuse_write_in in = {.fh = fh, .offset = off, .size = len, .flags = (uint32_t)flags};
	struct rig_reply re;
	struct fuse_write_out out;
	int err = rig_call(&re, FUSE_WRITE, ino, &in, sizeof(in), data, len);

	if (err)
		return -err;
	memcpy(&out, re.body, sizeof(out));
	return (int)out.size;
}

int rig_read(struct rig_reply *re, fuse_ino_t ino, uint64_t fh, uint64_t off, uint32_t len)
{
	struct fuse_read_in in = {.fh = fh, .offset = off, .size = len};
	int err = rig_call(re, FUSE_READ, ino, &in, sizeof(in), NULL, 0);

	return err ? -err : (int)re->len;
}

int rig_flush(fuse_ino_t ino, uint64_t fh)
{
	struct fuse_flush_in in = {.fh = fh};
	struct rig_reply re;

	return rig_call(&re, FUSE_FLUSH, ino, &in, sizeof(in), NULL, 0);
}

int rig_fsync(fuse_ino_t ino, uint64_t fh)
{
	struct fuse_fsync_in in = {.fh = fh};
	struct rig_reply re;

	return rig_call(&re, FUSE_FSYNC, ino, &in, sizeof(in), NULL, 0);
}

int rig_release(fuse_ino_t ino, uint64_t fh)
{
	struct fuse_release_in in = {.fh = fh};
	struct rig_reply re;

	return rig_call(&re, FUSE_RELEASE, ino, &in, sizeof(in), NULL, 0);
}

int rig_getattr(fuse_ino_t ino, struct fuse_attr_out *out)
{
	struct fuse_getattr_in in = {0};
	struct rig_reply re;
	int err = rig_call(&re, FUSE_GETATTR, ino, &in, sizeof(in), NULL, 0);

	if (!err)
		memcpy(out, re.body, sizeof(*out));
	return err;
}
