/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of an endpoint of src/roce, natively: bytes that the peer writes to it and reads from it
 * for each second of a processor, and the processor's time of an operation of 4 KiB.
 *
 *   roce_wire [-6] [-m] [-l N] [MIB [OPERATIONS]]
 *
 * Two network namespaces with a veth pair between them, MTU 4200: the endpoint in the one, in the
 * other its peer (roce_wire_peer.c), which shares no code with src/roce, and looks at each packet
 * that it gets: the sequence number, the ICRC, each byte. Needs root, or user namespaces.
 *
 *   -6      IPv6
 *   -m      then as many operations that are mixed: Sends, Writes and Reads of any length, with
 *           each pad, of several packets; now and then one of the two has no receive (RNR NAK)
 *   -l N    of 1000 packets N are lost each way, and as many meet congestion (ECN): the endpoint
 *           must have noticed all of it, from 10 on
 *
 * ROCE_WIRE_WATCH in the environment: a command that is run in the endpoint's namespace before
 * anything is sent (wire_tshark).
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fab_impl.h"
#include "reactor.h"
#include "roce_wire_peer.h"

#define ADD_ADDR "ip addr add %s/%s dev %s"
#define DEPTH    16u
#define SLOT     (4 * MTU) /* a message of a mixed lot, or what is written, and more */
#define GUARD    4u        /* bytes before and behind that, which stay as they are */
#define BAD      10u       /* of 1000 packets: with 8 MiB and 1000 operations, and more */

/* Meson takes 77 for a test that cannot be done here. */
#define SKIP(...)                                                                                  \
	do {                                                                                       \
		fprintf(stderr, "roce_wire: " __VA_ARGS__);                                        \
		fputc('\n', stderr);                                                               \
		exit(77);                                                                          \
	} while (0)

static struct wire wire = {.ep_addr = "10.9.0.1", .peer_addr = "10.9.0.2"};

static double seconds(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Of all processors, since boot. */
static double softirq_seconds(void)
{
	unsigned long long v[7] = {0};
	FILE *f = fopen("/proc/stat", "re");

	if (!f || fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3],
			  &v[4], &v[5], &v[6]) != 7)
		DIE("/proc/stat: %s", strerror(errno));
	fclose(f);
	return (double)v[6] / (double)sysconf(_SC_CLK_TCK);
}

/* ---- the endpoint ---- */

static struct reactor *r;
static struct fab_ep *ep;
static struct fab_mr *mr, *send_mr;
static struct fab_mw *mws[DEPTH];
static uint8_t *mem, *calls; /* CHUNKS chunks; DEPTH calls and twice as many replies */
static uint32_t room = CALL; /* of each of these: SLOT, where some are of any length */
static bool up, finished;
static enum what now;
static uint64_t ops_left, ops_sent;
static uint64_t number_of[DEPTH]; /* of the mixed operation in this slot */
static unsigned int receives;     /* that are posted */
static struct stats stats;

/* Of a mixed operation, in the chunks. */
static uint64_t target(unsigned int slot)
{
	return slot * (uint64_t)SLOT + GUARD + number_of[slot] % 4;
}

/* Other bytes are there until they are written. */
static void spoil(unsigned int slot)
{
	uint64_t at = target(slot) - GUARD;

	for (uint64_t i = 0; i < mixed_len(number_of[slot], WRITTEN) + 2 * GUARD; i++)
		mem[at + i] = (uint8_t)~byte_at(at + i);
}

static void call(unsigned int slot)
{
	struct ask *a = (struct ask *)(calls + slot * room);
	struct fab_bind bind = {.mw = mws[slot],
		.mr = mr,
		.addr = mem + slot * OP_LEN,
		.len = OP_LEN,
		.access = FAB_REMOTE_WRITE};
	struct fab_sge sge = {a, CALL, send_mr};

	number_of[slot] = ops_sent++;
	if (now == MIXED) {
		spoil(slot);
		bind.addr = mem + target(slot);
		bind.len = mixed_len(number_of[slot], WRITTEN);
		sge.len = (uint32_t)sizeof(*a) + mixed_len(number_of[slot], CALLED);
	}
	*a = (struct ask){.what = (uint8_t)now,
		.rkey = roce_impl.mw_next_rkey(mws[slot]),
		.addr = (uintptr_t)bind.addr,
		.bytes = now == MIXED ? number_of[slot] : OP_LEN,
		.off = target(slot),
		.mr = roce_impl.mr_rkey(mr),
		.chunks = (uintptr_t)mem};
	for (uint32_t i = 0; now == MIXED && i < sge.len - sizeof(*a); i++)
		((uint8_t *)(a + 1))[i] = byte_at(i);
	if (roce_impl.post_send(ep, &sge, 1, &bind, 1, slot))
		DIE("post_send failed");
}

static uint8_t *reply_at(uint64_t cookie)
{
	return calls + (DEPTH + cookie) * room;
}

static void post_recv(uint64_t cookie)
{
	if (roce_impl.post_recv(ep, reply_at(cookie), room, send_mr, cookie))
		DIE("post_recv failed");
	receives++;
}

static void post_receives(void)
{
	for (uint64_t i = 0; i < 2 * DEPTH; i++)
		post_recv(i);
}

/* The reply is as it must be, and what was written; nothing else was. */
static void check_mixed(unsigned int slot, const uint8_t *reply, uint32_t len)
{
	uint64_t at = target(slot), end = at + mixed_len(number_of[slot], WRITTEN);

	if (len != mixed_len(number_of[slot], REPLIED))
		DIE("a reply of %u bytes", len);
	for (uint32_t i = 0; i < len; i++)
		if (reply[i] != byte_at(i))
			DIE("byte %u of a reply is wrong", i);
	for (uint64_t i = at - GUARD; i < end + GUARD; i++)
		if ((mem[i] == byte_at(i)) != (i >= at && i < end))
			DIE("byte %lld of a Write of %llu is wrong", (long long)(i - at),
				(unsigned long long)(end - at));
}

static void on_event(void *ctx, const struct fab_event *ev)
{
	const struct fab_qp_conf qp = {
		.send_wr = 4 * DEPTH, .recv_wr = 4 * DEPTH, .max_send_sge = 4};

	switch (ev->type) {
	case FAB_EV_RESOLVED:
		if (roce_impl.ep_setup(ep, &qp) || roce_impl.ep_connect(ep, NULL, 0))
			DIE("no connection");
		break;
	case FAB_EV_ESTABLISHED:
		up = true;
		break;
	case FAB_EV_FAILED:
	case FAB_EV_DOWN:
		DIE("the connection is lost: %s %s", strerror(-ev->err), roce_impl.ep_why(ep));
	case FAB_EV_DRAINED:
		up = false;
		break;
	}
}

static void on_sent(void *ctx, uint64_t cookie, enum fab_status status)
{
}

static void on_received(
	void *ctx, uint64_t cookie, uint32_t len, uint32_t inv, enum fab_status status)
{
	if (status != FAB_OK)
		return;
	receives--;
	if (now != MIXED)
		post_recv(cookie);
	if (inv == 0) {
		finished = true;
		return;
	}
	for (unsigned int i = 0; i < DEPTH; i++) {
		if (roce_impl.mw_rkey(mws[i]) != inv)
			continue;
		if (now == MIXED)
			check_mixed(i, reply_at(cookie), len);
		if (--ops_left == 0)
			finished = true;
		else if (ops_left >= DEPTH)
			call(i);
		return;
	}
	DIE("a window that is none");
}

static const struct fab_ep_ops ops = {.event = on_event, .sent = on_sent, .received = on_received};

static void connect_ep(void)
{
	struct sockaddr_storage in;

	wire_addr(&wire, &in, wire.peer_addr, 20049);
	if (roce_impl.ep_resolve(ep, NULL, (struct sockaddr *)&in))
		DIE("no way to the peer");
	while (!up)
		reactor_turn(r, NSEC_PER_SEC);
	post_receives();
}

static void measure(const char *name, enum what what, uint64_t amount)
{
	struct ask *a = (struct ask *)calls;
	const struct fab_sge sge = {a, CALL, send_mr};
	double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
	double softirq = softirq_seconds();

	finished = false;
	now = what;
	reactor_turn(r, 0); /* its timers go by the time of the last turn */
	*a = (struct ask){.what = (uint8_t)what,
		.rkey = roce_impl.mr_rkey(mr),
		.addr = (uintptr_t)mem,
		.bytes = amount};
	ops_left = amount;
	for (unsigned int i = 0; i < DEPTH && what == OPERATION; i++)
		call(i);
	if (what != OPERATION && roce_impl.post_send(ep, &sge, 1, NULL, 0, 99))
		DIE("post_send failed");
	while (!finished)
		reactor_turn(r, NSEC_PER_SEC);
	wall = seconds(CLOCK_MONOTONIC) - wall;
	cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
	softirq = softirq_seconds() - softirq;
	if (what == OPERATION)
		printf("%-6s %8.2f us of a processor each, %6.0f/s; softirq of all %5.2f us each\n",
			name, cpu * 1e6 / (double)amount, (double)amount / wall,
			softirq * 1e6 / (double)amount);
	else
		printf("%-6s %8.2f GB/s for each processor, %5.2f GB/s; softirq of all %4.0f %% of "
		       "the time\n",
			name, (double)amount / 1e9 / cpu, (double)amount / 1e9 / wall,
			100 * softirq / wall);
}

/* Receives are posted anew when all are used up, and the peer was told so. */
static void mix(uint64_t amount)
{
	uint64_t told = 0;

	finished = false;
	now = MIXED;
	ops_left = amount;
	ops_sent = 0;
	reactor_turn(r, 0);
	for (unsigned int i = 0; i < DEPTH; i++)
		call(i);
	while (!finished) {
		reactor_turn(r, NSEC_PER_SEC);
		if (receives > 0 || stats.rnr_naks_sent == told)
			continue;
		told = stats.rnr_naks_sent;
		post_receives();
	}
	printf("mixed  %llu operations; RNR NAKs %llu, sent %llu\n", (unsigned long long)amount,
		(unsigned long long)stats.rnr_naks, (unsigned long long)stats.rnr_naks_sent);
	if (amount >= 8 * DEPTH && (stats.rnr_naks == 0 || stats.rnr_naks_sent == 0))
		DIE("there was always a receive");
}

static void run(const char *cmd)
{
	if (system(cmd))
		DIE("%s failed", cmd);
}

/* The peer, in a namespace of its own, behind the wire that it is given. */
static pid_t start_peer(int sync)
{
	pid_t pid = fork();
	char cmd[256], c = 0;

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNET) || write(sync, &c, 1) != 1 || read(sync, &c, 1) != 1)
		DIE("no namespace of the peer");
	snprintf(cmd, sizeof(cmd), "ip link set lo up && ip link set w1 up && " ADD_ADDR,
		wire.peer_addr, wire.v6 ? "64 nodad" : "24", "w1");
	run(cmd);
	if (write(sync, &c, 1) != 1)
		exit(1);
	peer_run(&wire);
}

static pid_t peer_pid;

/* It has said why. */
static void on_child(int sig)
{
	(void)sig;
	if (waitpid(peer_pid, NULL, WNOHANG) == peer_pid)
		_exit(1);
}

/* Two namespaces, the wire, and the peer, which listens. */
static void make_wire(void)
{
	char cmd[256];
	int sync[2];

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		SKIP("no namespace of the network: %s", strerror(errno));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sync))
		DIE("socketpair: %s", strerror(errno));
	peer_pid = start_peer(sync[1]);
	close(sync[1]);
	if (peer_pid < 0 || read(sync[0], cmd, 1) != 1)
		DIE("no peer");
	snprintf(cmd, sizeof(cmd),
		"ip link set lo up && ip link add w0 mtu 4200 type veth peer name w1 mtu 4200 "
		"netns %d && ip link set w0 up && " ADD_ADDR,
		(int)peer_pid, wire.ep_addr, wire.v6 ? "64 nodad" : "24", "w0");
	run(cmd);
	if (getenv("ROCE_WIRE_WATCH"))
		run(getenv("ROCE_WIRE_WATCH"));
	if (write(sync[0], cmd, 1) != 1 || read(sync[0], cmd, 1) != 1)
		DIE("no peer");
	close(sync[0]);
	signal(SIGCHLD, on_child);
	on_child(SIGCHLD); /* of before */
}

static void make_endpoint(void)
{
	static const struct fab_conf conf = {.kind = FAB_SOFT,
		.connect_timeout_ns = 10 * NSEC_PER_SEC,
		.retry_count = 6,
		.stats = &stats};

	mem = mmap(
		NULL, CHUNKS * CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	calls = calloc(4 * DEPTH, room);
	r = reactor_new();
	ep = r ? roce_impl.ep_new(r, &conf, &ops, NULL) : NULL;
	if (mem == MAP_FAILED || !calls || !ep)
		DIE("no memory");
	for (size_t i = 0; i < CHUNKS * CHUNK; i++)
		mem[i] = byte_at(i);
	mr = roce_impl.mr_reg(ep, mem, CHUNKS * CHUNK, FAB_REMOTE_READ | FAB_REMOTE_WRITE, true);
	send_mr = roce_impl.mr_reg(ep, calls, 4 * DEPTH * room, FAB_LOCAL, false);
	connect_ep();
	for (unsigned int i = 0; i < DEPTH; i++)
		mws[i] = roce_impl.mw_alloc(ep);
}

/* On a bad wire all of this is so likely that its absence is a mistake. */
static void tell_stats(void)
{
	printf("# packets early %llu, twice %llu, sent again %llu; NAKs %llu, CNPs %llu, sent "
	       "%llu\n",
		(unsigned long long)stats.packets_early, (unsigned long long)stats.packets_twice,
		(unsigned long long)stats.packets_resent, (unsigned long long)stats.naks_sent,
		(unsigned long long)stats.cnps, (unsigned long long)stats.cnps_sent);
	if (wire.lossy >= BAD && (stats.packets_early == 0 || stats.packets_twice == 0 ||
					 stats.packets_resent == 0 || stats.naks_sent == 0 ||
					 stats.cnps == 0 || stats.cnps_sent == 0))
		DIE("the endpoint did not notice how bad the wire is");
	if (stats.bad_icrc > 0)
		DIE("%llu wrong ICRCs", (unsigned long long)stats.bad_icrc);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 10);

	if (end == text || *end != '\0')
		DIE("%s is no number", text);
	return n;
}

int main(int argc, char **argv)
{
	uint64_t mib, ops_cnt;
	int c;

	while ((c = getopt(argc, argv, "6ml:")) != -1) {
		if (c == '6')
			wire = (struct wire){.v6 = true,
				.ep_addr = "fd09::1",
				.peer_addr = "fd09::2",
				.lossy = wire.lossy};
		else if (c == 'm')
			room = SLOT;
		else if (c == 'l' && number(optarg) < 500)
			wire.lossy = (unsigned int)number(optarg);
		else
			DIE("roce_wire [-6] [-m] [-l N] [MIB [OPERATIONS]]");
	}
	mib = optind < argc ? number(argv[optind]) : 512;
	ops_cnt = optind + 1 < argc ? number(argv[optind + 1]) : 50000;
	if (mib == 0 || ops_cnt < 2 * DEPTH)
		DIE("too few of them");
	make_wire();
	make_endpoint();
	measure("write", WRITE_TO_ME, mib << 20);
	for (size_t i = 0; i < CHUNKS * CHUNK && i < mib << 20; i++)
		if (mem[i] != byte_at(i))
			DIE("wrong bytes");
	measure("read", READ_FROM_ME, mib << 20);
	measure("4 KiB", OPERATION, ops_cnt);
	if (room == SLOT)
		mix(ops_cnt);
	tell_stats();
	signal(SIGCHLD, SIG_DFL);
	kill(peer_pid, SIGKILL);
	waitpid(peer_pid, NULL, 0);
	return 0;
}
