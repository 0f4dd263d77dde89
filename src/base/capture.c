/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The buffer between lanes and the file, and the thread that empties it. The
 * lock is held to copy a batch in, never while the file is written.
 */
#include "capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "pcapng.h"
#include "reactor.h"
#include "thread.h"

#define RING_MESSAGES (4u << 20)  /* bytes of memory while capturing */
#define RING_DATA     (32u << 20) /* ... contents of files as well */
#define WAKE_EVERY_MS 100

static uint64_t real_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

struct capture *capture_new(void)
{
	struct capture *c = calloc(1, sizeof(*c));
	pthread_condattr_t attr;

	if (c == NULL)
		return NULL;
	mutex_init(&c->lock, MUTEX_CAPTURE);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->work, &attr);
	pthread_condattr_destroy(&attr);
	c->st.end = CAPTURE_NEVER;
	c->fd = -1;
	return c;
}

void capture_free(struct capture *c)
{
	if (c == NULL)
		return;
	(void)capture_stop(c);
	pthread_cond_destroy(&c->work);
	mutex_destroy(&c->lock);
	free(c);
}

int capture_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

/* ---- the buffer; with the lock ---- */

static void ring_put(struct capture *c, const uint8_t *p, size_t len)
{
	size_t first = c->size - c->head < len ? c->size - c->head : len;

	memcpy(c->ring + c->head, p, first);
	memcpy(c->ring, p + first, len - first);
	c->head = (c->head + len) % c->size;
	c->used += len;
	c->st.bytes += len;
}

static void end_with(struct capture *c, enum capture_end end, int err)
{
	if (c->ending)
		return;
	atomic_store_explicit(&c->on, false, memory_order_relaxed);
	c->ending = true;
	c->st.end = end;
	c->st.err = err;
	pthread_cond_signal(&c->work);
}

/* Room for the statistics at the end is kept. Returns: the batch is in. */
static bool take(struct capture *c, const struct capture_batch *b)
{
	if (c->st.bytes + b->len + PCAPNG_STATS_LEN > c->st.max_bytes) {
		end_with(c, CAPTURE_FULL, 0);
		return false;
	}
	if (c->used + b->len + PCAPNG_STATS_LEN > c->size) {
		c->st.dropped += b->frames;
		return false;
	}
	ring_put(c, b->mem, b->len);
	c->st.frames += b->frames;
	if (c->used > c->size / 4)
		pthread_cond_signal(&c->work);
	return true;
}

/* ---- batches ---- */

void capture_batch_begin(struct capture_batch *b)
{
	b->len = 0;
	b->frames = 0;
	b->cut = false;
	b->ns = real_ns();
}

static void flush(struct capture *c, struct capture_batch *b)
{
	if (b->frames > 0) {
		mutex_lock(&c->lock);
		if (c->st.end == CAPTURE_RUNNING) {
			if (b->cut)
				c->st.dropped += b->frames;
			else
				b->cut = !take(c, b);
		}
		mutex_unlock(&c->lock);
	}
	b->len = 0;
	b->frames = 0;
}

uint8_t *capture_batch_frame(struct capture *c, struct capture_batch *b)
{
	if (b->len + PCAPNG_PACKET_EXTRA + CAPTURE_FRAME_MAX > sizeof(b->mem))
		flush(c, b);
	return b->mem + b->len + PCAPNG_PACKET_HEAD;
}

void capture_batch_add(struct capture_batch *b, size_t len, size_t whole)
{
	b->len += pcapng_packet(b->mem + b->len, b->ns, len, whole);
	b->frames++;
}

void capture_batch_end(struct capture *c, struct capture_batch *b)
{
	flush(c, b);
}

/* ---- the thread ---- */

static int write_all(int fd, const uint8_t *p, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static void wait_for_work(struct capture *c) MUTEX_REQUIRES(&c->lock);
static void write_some(struct capture *c) MUTEX_REQUIRES(&c->lock);
static void write_stats(struct capture *c) MUTEX_REQUIRES(&c->lock);

static void wait_for_work(struct capture *c)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += WAKE_EVERY_MS * 1000000L;
	if (ts.tv_nsec >= 1000000000L) {
		ts.tv_nsec -= 1000000000L;
		ts.tv_sec++;
	}
	mutex_wait_until(&c->lock, &c->work, &ts);
}

/* The buffer's oldest bytes, without the lock while they are written: nobody else takes them. */
static void write_some(struct capture *c)
{
	size_t tail = (c->head + c->size - c->used) % c->size;
	size_t len = c->size - tail < c->used ? c->size - tail : c->used;
	int err;

	mutex_unlock(&c->lock);
	mutex_assert_none();
	err = write_all(c->fd, c->ring + tail, len);
	mutex_lock(&c->lock);
	c->used -= len;
	if (err == 0)
		return;
	c->used = 0; /* a hole would make all that follows unreadable */
	if (c->ending) {
		c->st.end = CAPTURE_FAILED;
		c->st.err = err;
	} else {
		end_with(c, CAPTURE_FAILED, err);
	}
}

static void say(const struct capture_state *st)
{
	char lost[64] = "";

	if (st->dropped > 0)
		snprintf(lost, sizeof(lost), ", %llu dropped", (unsigned long long)st->dropped);
	if (st->end == CAPTURE_FAILED)
		log_err("the capture ended: %s", strerror(-st->err));
	else if (st->end == CAPTURE_FULL)
		log_warn("the capture ended: it has the %llu MiB that it may have (%llu frames%s)",
			(unsigned long long)(st->max_bytes >> 20), (unsigned long long)st->frames,
			lost);
	else
		log_info("captured %llu frames%s", (unsigned long long)st->frames, lost);
}

static void write_stats(struct capture *c)
{
	uint8_t block[PCAPNG_STATS_LEN];
	struct pcapng_stats stats = {.start_ns = c->first_ns,
		.end_ns = real_ns(),
		.received = c->st.frames + c->st.dropped,
		.dropped = c->st.dropped};

	ring_put(c, block, pcapng_stats(block, &stats));
	write_some(c);
	while (c->used > 0)
		write_some(c);
}

static void *capture_main(void *arg)
{
	struct capture *c = arg;
	struct capture_state st;

	pthread_setname_np(pthread_self(), "capture");
	mutex_lock(&c->lock);
	for (;;) {
		if (c->used <= c->size / 4 && !c->ending)
			wait_for_work(c);
		if (c->used > 0)
			write_some(c);
		else if (c->ending)
			break;
	}
	if (c->st.end != CAPTURE_FAILED)
		write_stats(c);
	if (close(c->fd) != 0 && c->st.end != CAPTURE_FAILED) {
		c->st.end = CAPTURE_FAILED;
		c->st.err = -errno;
	}
	c->fd = -1;
	free(c->ring);
	c->ring = NULL;
	st = c->st;
	mutex_unlock(&c->lock);
	say(&st);
	return NULL;
}

/* ---- main ---- */

static void join(struct capture *c)
{
	if (c->has_thread)
		pthread_join(c->thread, NULL);
	c->has_thread = false;
}

static int begin(struct capture *c, int fd, const struct capture_limits *limits)
{
	size_t size = limits->data ? RING_DATA : RING_MESSAGES;
	uint8_t head[PCAPNG_HEAD_MAX];
	int err;

	c->ring = malloc(size);
	if (c->ring == NULL)
		return -ENOMEM;
	c->size = size;
	c->head = c->used = 0;
	c->ending = false;
	c->fd = fd;
	c->st = (struct capture_state){
		.end = CAPTURE_RUNNING, .data = limits->data, .max_bytes = limits->max_bytes};
	c->first_ns = real_ns();
	ring_put(c, head, pcapng_head(head));
	err = thread_start(&c->thread, capture_main, c);
	if (err != 0) {
		free(c->ring);
		c->ring = NULL;
		c->fd = -1;
		c->st.end = CAPTURE_FAILED;
		c->st.err = err;
		return err;
	}
	c->has_thread = true;
	atomic_store_explicit(&c->data, limits->data, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->run, 1, memory_order_relaxed);
	atomic_store_explicit(&c->on, true, memory_order_relaxed);
	return 0;
}

int capture_start(struct capture *c, int fd, const struct capture_limits *limits)
{
	bool running;
	int err;

	if (limits->max_bytes < CAPTURE_MIN_BYTES)
		return -EINVAL;
	mutex_lock(&c->lock);
	running = c->st.end == CAPTURE_RUNNING;
	mutex_unlock(&c->lock);
	if (running)
		return -EBUSY;
	join(c); /* one that ended by itself */
	mutex_lock(&c->lock);
	err = begin(c, fd, limits);
	mutex_unlock(&c->lock);
	return err;
}

int capture_stop(struct capture *c)
{
	if (!c->has_thread)
		return 0;
	mutex_lock(&c->lock);
	end_with(c, CAPTURE_STOPPED, 0);
	mutex_unlock(&c->lock);
	join(c);
	return c->st.end == CAPTURE_FAILED ? c->st.err : 0;
}

void capture_state(struct capture *c, struct capture_state *ret)
{
	mutex_lock(&c->lock);
	*ret = c->st;
	mutex_unlock(&c->lock);
}
