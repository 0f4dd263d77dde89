/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The whole program (src/main.c, lanes, threads, /dev/fuse, real time) with the
 * simulated fabric and server instead of src/verbs: real mounts without RDMA.
 *
 *   FUSE_SIM="command; command ..." FUSE_SIM_CTL=FIFO FUSE_SIM_SAID=FIFO \
 *       fuse_sim [rpcrdmafs' own arguments] 127.0.0.1:/ MOUNTPOINT
 *
 * FUSE_SIM's commands are run before the program starts. With -f, commands are
 * also read from FUSE_SIM_CTL, one a line, and answered on FUSE_SIM_SAID, one
 * line each. Commands (numbers are decimal):
 *
 *   credits N       grants N credits
 *   static          the device has no memory windows
 *   latency US      from the request to the reply
 *   delegs MASK     what OPENs are given: 1 READ, 2 WRITE delegations (3)
 *   recall          all that are held
 *   cuts N          the connection breaks about every N replies; 0: not any more
 *   cut             it breaks now
 *   silent 0|1      requests are executed and never answered, health checks neither
 *   gone 0|1        nothing answers at all: connections break, none is made
 *   delay N         every Nth call is answered with NFS4ERR_DELAY; 0: none
 *   close N         the connection ends after every Nth WRITE, which is not answered; 0: none
 *   hold OP, release   calls with NFS operation OP (0: all) wait for the release
 *   hostile wire|body N, hostile off N   every Nth reply is garbage: message, or RPC reply
 *   restart LOSE    it answers what it did and restarts; LOSE 1: what was not committed is lost
 *                   (without cuts: of what a cut left without an answer it would know nothing)
 *   grace MS        it restarts, loses nothing, and has so long a grace period; 0: it ends now
 *   state           clients= sessions= opens= delegs= conns= held= calls= conns_made= failures=
 *   ops NUMBER...   how often these NFS operations were asked for
 *   crowd N         /crowd has N files, which are made up (and take no memory here)
 *   small N, grow I    /small0 to N-1 are there, 3000 bytes each; another client appends to /smallI
 *   change I        another client writes over its first bytes
 *   join I, cutoff I   it appends a line where the file ends now; it truncates it to 10 bytes
 *   longest         filehandles of 128 bytes
 *   memory          allocated= bytes
 *   leave           state may be left on the server at the end
 *   unjudged        a client that was lied to may do what it must not
 *
 * The server is at 127.0.0.1 alone. The name `two` stands for 127.0.0.9 and then 127.0.0.1; of
 * `never` no name server tells anything; `term` is 127.0.0.1, and SIGTERM comes with it.
 *
 * Exit status: the program's; 90 if that is 0 and the judge found something or
 * anything is left: a client ID, a session, an open, a key, a fabric object.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fab_sim.h"
#include "nfs4_prot.h"
#include "nfsd_sim.h"
#include "rpcrdma.h"
#include "thread.h"

#define STATUS_JUDGED 90

int rpcrdmafs_main(int argc, char **argv);
void __wrap_rpcrdma_conf_default(struct rpcrdma_conf *conf);
void __real_rpcrdma_conf_default(struct rpcrdma_conf *conf);

int __wrap_getaddrinfo(
	const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res);
int __real_getaddrinfo(
	const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res);

int __wrap_getaddrinfo(
	const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res)
{
	bool two = strcmp(node, "two") == 0;
	int err;

	while (strcmp(node, "never") == 0)
		pause();
	if (strcmp(node, "term") == 0) {
		err = __real_getaddrinfo("127.0.0.1", service, hints, res);
		kill(getpid(), SIGTERM);
		return err;
	}
	err = __real_getaddrinfo(two ? "127.0.0.9" : node, service, hints, res);
	/* As one list it is freed, too. */
	if (err == 0 && two)
		err = __real_getaddrinfo("127.0.0.1", service, hints, &(*res)->ai_next);
	return err;
}

/* So that many cuts a second are possible. */
void __wrap_rpcrdma_conf_default(struct rpcrdma_conf *conf)
{
	__real_rpcrdma_conf_default(conf);
	conf->backoff_min_ns = NSEC_PER_MSEC;
	conf->backoff_max_ns = NSEC_PER_SEC;
	conf->connect_timeout_ns = 2 * NSEC_PER_SEC;
}

static struct nfsd_sim *sim;
static bool may_leave, unjudged;

/* What spoils replies; under the server's lock. */
static struct {
	_Atomic unsigned int cut_every, hostile_every;
	unsigned int delay_every, close_every;
	unsigned int since_cut, since_hostile;
	uint64_t rng;
} spoil = {.rng = 88172645463325252ull};

static uint32_t rnd(uint32_t below)
{
	spoil.rng ^= spoil.rng << 13;
	spoil.rng ^= spoil.rng >> 7;
	spoil.rng ^= spoil.rng << 17;
	return (uint32_t)(spoil.rng >> 11) % below;
}

/* ---- misbehaviour ---- */

/* The cut comes at any of the fabric calls that follow: before, between and after requests. */
static void count_for_cut(void)
{
	unsigned int every = spoil.cut_every;

	if (every == 0 || ++spoil.since_cut < every)
		return;
	spoil.since_cut = rnd(every);
	fab_sim_cut_after(1 + rnd(8));
}

static bool is_hostile_turn(void)
{
	unsigned int every = spoil.hostile_every;

	if (every == 0 || ++spoil.since_hostile < every)
		return false;
	spoil.since_hostile = 0;
	return true;
}

static void scramble(uint8_t *p, uint32_t len, unsigned int bytes)
{
	for (unsigned int i = 0; len > 0 && i < bytes; i++)
		p[rnd(len)] ^= (uint8_t)(1 + rnd(255));
}

static void garble(struct nfsd_sim_out *out)
{
	switch (rnd(4)) {
	case 0:
		out->len = rnd(out->len + 1);
		break;
	case 1:
		scramble(out->msg, out->len, 1 + rnd(4));
		break;
	case 2: /* header only: chunk lists, XID, credits */
		scramble(out->msg, out->body_off < out->len ? out->body_off : out->len, 1);
		break;
	default:
		out->len = rnd(1024);
		for (uint32_t i = 0; i < out->len; i++)
			out->msg[i] = (uint8_t)rnd(256);
		break;
	}
}

static void on_message(void *ctx, struct nfsd_sim_out *out)
{
	count_for_cut();
	if (ctx != NULL && is_hostile_turn())
		garble(out);
}

static void on_body(void *ctx, struct nfsd_sim_out *out)
{
	if (!is_hostile_turn())
		return;
	if (rnd(3) == 0)
		out->len = rnd(out->len + 1);
	else
		scramble(out->msg, out->len, 1 + rnd(4));
}

static void rule(enum nfsd_sim_act act, uint32_t op, void (*mutate)(void *, struct nfsd_sim_out *),
	void *ctx, bool hostile)
{
	const struct nfsd_sim_rule r = {
		.act = act,
		.op = op,
		.mutate = mutate,
		.ctx = ctx,
		.hostile = hostile,
	};

	nfsd_sim_rule(sim, &r);
}

static void rule_every(enum nfsd_sim_act act, uint32_t op, uint64_t arg, unsigned int every)
{
	const struct nfsd_sim_rule r = {.act = act, .op = op, .arg = arg, .every = every};

	if (every > 0)
		nfsd_sim_rule(sim, &r);
}

static void rules_reset(void)
{
	nfsd_sim_rules_clear(sim);
	rule(NFSD_SIM_MUTATE, 0, on_message, NULL, false);
	rule_every(NFSD_SIM_STATUS, 0, NFS4ERR_DELAY, spoil.delay_every);
	rule_every(NFSD_SIM_CUT_AFTER, OP_WRITE, 0, spoil.close_every);
}

static void set_every(unsigned int *every, unsigned int num)
{
	*every = num;
	rules_reset();
}

static void set_hostile(const char *how, unsigned int every)
{
	struct nfsd_sim_conf *conf = nfsd_sim_conf(sim);

	rules_reset();
	spoil.hostile_every = 0;
	if (strcmp(how, "off") == 0)
		return;
	/* What a client does that was lied to is not its fault. */
	conf->tolerant_seq = conf->tolerant_state = conf->allow_toosmall = true;
	spoil.hostile_every = every;
	if (strcmp(how, "wire") == 0)
		rule(NFSD_SIM_MUTATE, 0, on_message, sim, true);
	else
		rule(NFSD_SIM_MUTATE_BODY, 0, on_body, NULL, true);
}

static void set_silent(bool on)
{
	rules_reset();
	if (on)
		rule(NFSD_SIM_LOSE, 0, NULL, NULL, false);
}

static void set_gone(bool on)
{
	fab_sim_conf()->connect_silent = on;
	if (on)
		fab_sim_break_all(-ETIMEDOUT);
}

/*
 * It answers before what it did: a program whose unlink(2) was done, and is asked for again after
 * a restart, hears ENOENT, and that is nobody's fault.
 */
static void restart(uint64_t grace_ns, bool lose)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	nfsd_sim_pause(sim);
	for (unsigned int i = 0; i < 5000; i++) {
		if (nfsd_sim_answering(sim) == 0 && fab_sim_undelivered() == 0)
			break;
		nanosleep(&ms, NULL);
	}
	nfsd_sim_restart(sim, grace_ns, lose);
}

/* ---- commands ---- */

static void say_state(char *said, size_t len)
{
	struct nfsd_sim_stats st = nfsd_sim_stats(sim);

	snprintf(said, len,
		"clients=%u sessions=%u opens=%u delegs=%u conns=%u held=%u calls=%llu "
		"conns_made=%llu failures=%u",
		nfsd_sim_live_clients(sim), nfsd_sim_live_sessions(sim), nfsd_sim_live_opens(sim),
		nfsd_sim_live_delegs(sim), nfsd_sim_live_conns(sim), nfsd_sim_held(sim),
		(unsigned long long)st.calls, (unsigned long long)st.connections,
		fab_sim_failures());
}

static void say_ops(char *said, size_t len, char *numbers)
{
	struct nfsd_sim_stats st = nfsd_sim_stats(sim);
	size_t at = 0;
	char *word;

	while ((word = strsep(&numbers, " ")) != NULL && at < len) {
		unsigned int op = (unsigned int)strtoul(word, NULL, 10);

		if (op < 80)
			at += (size_t)snprintf(said + at, len - at, "%u=%llu ", op,
				(unsigned long long)st.ops[op]);
	}
}

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define HAS_ASAN
#endif
#endif

#if defined(HAS_ASAN) || defined(__SANITIZE_ADDRESS__)
size_t __sanitizer_get_current_allocated_bytes(void);

static size_t allocated(void)
{
	return __sanitizer_get_current_allocated_bytes();
}
#else
static size_t allocated(void)
{
	struct mallinfo2 mi = mallinfo2();

	return mi.uordblks + mi.hblkhd;
}
#endif

/* Files of SMALL bytes that no client has made: small0, small1... */
#define SMALL 3000u

static void make_small(unsigned int cnt)
{
	char name[32], text[SMALL];

	for (unsigned int i = 0; i < cnt; i++) {
		snprintf(name, sizeof(name), "/small%u", i);
		memset(text, 'a' + (int)(i % 26), sizeof(text));
		nfsd_sim_mknod(sim, name, NFSD_SIM_REG, 0644, text, sizeof(text));
	}
}

/* Another client writes a line behind its end. */
static bool grow_small(unsigned int i)
{
	char name[32];

	snprintf(name, sizeof(name), "/small%u", i);
	return nfsd_sim_poke(sim, name, SMALL, "more\n", 5);
}

static bool change_small(unsigned int i)
{
	char name[32];

	snprintf(name, sizeof(name), "/small%u", i);
	return nfsd_sim_poke(sim, name, 0, "CHANGED", 7);
}

static bool join_small(unsigned int i)
{
	char name[32];
	int64_t size;

	snprintf(name, sizeof(name), "/small%u", i);
	size = nfsd_sim_peek(sim, name, 0, NULL, 0);
	return size >= 0 && nfsd_sim_poke(sim, name, (uint64_t)size, "theirs\n", 7);
}

static bool cut_small(unsigned int i)
{
	char name[32];

	snprintf(name, sizeof(name), "/small%u", i);
	return nfsd_sim_resize(sim, name, 10);
}

/* Settings that are there before the program starts. */
static bool run_setting(const char *name, unsigned int num)
{
	if (strcmp(name, "credits") == 0)
		nfsd_sim_conf(sim)->credits = num;
	else if (strcmp(name, "static") == 0)
		fab_sim_conf()->caps.mw2b = false;
	else if (strcmp(name, "latency") == 0)
		nfsd_sim_conf(sim)->latency_ns = num * NSEC_PER_USEC;
	else if (strcmp(name, "delegs") == 0)
		nfsd_sim_conf(sim)->delegs = num;
	else if (strcmp(name, "crowd") == 0 &&
		 nfsd_sim_mknod(sim, "/crowd", NFSD_SIM_DIR, 0755, NULL, 0))
		nfsd_sim_crowd(sim, "/crowd", num);
	else if (strcmp(name, "small") == 0)
		make_small(num);
	else if (strcmp(name, "longest") == 0)
		nfsd_sim_conf(sim)->longest = true;
	else if (strcmp(name, "leave") == 0)
		may_leave = true;
	else if (strcmp(name, "unjudged") == 0)
		unjudged = true;
	else
		return false;
	return true;
}

static bool run_event(const char *name, unsigned int num)
{
	if (strcmp(name, "cuts") == 0)
		spoil.cut_every = num;
	else if (strcmp(name, "cut") == 0)
		fab_sim_break_all(-ECONNRESET);
	else if (strcmp(name, "delay") == 0)
		set_every(&spoil.delay_every, num);
	else if (strcmp(name, "close") == 0)
		set_every(&spoil.close_every, num);
	else if (strcmp(name, "silent") == 0)
		set_silent(num != 0);
	else if (strcmp(name, "gone") == 0)
		set_gone(num != 0);
	else if (strcmp(name, "hold") == 0)
		rule(NFSD_SIM_HOLD, num, NULL, NULL, false);
	else if (strcmp(name, "recall") == 0)
		nfsd_sim_recall(sim, NULL);
	else if (strcmp(name, "restart") == 0)
		restart(0, num != 0);
	else if (strcmp(name, "grace") == 0 && num == 0)
		nfsd_sim_end_grace(sim);
	else if (strcmp(name, "grace") == 0)
		restart(num * NSEC_PER_MSEC, false);
	else if (strcmp(name, "grow") == 0)
		return grow_small(num);
	else if (strcmp(name, "change") == 0)
		return change_small(num);
	else if (strcmp(name, "join") == 0)
		return join_small(num);
	else if (strcmp(name, "cutoff") == 0)
		return cut_small(num);
	else
		return false;
	return true;
}

static void run_command(char *line, char *said, size_t len)
{
	char *rest = line + strspn(line, " \n");
	char *name = strsep(&rest, " ");
	unsigned int num = rest != NULL ? (unsigned int)strtoul(rest, NULL, 10) : 0;

	snprintf(said, len, "ok");
	if (run_setting(name, num) || run_event(name, num))
		return;
	if (strcmp(name, "release") == 0) {
		rules_reset();
		nfsd_sim_release_all(sim);
	} else if (strcmp(name, "hostile") == 0 && rest != NULL) {
		const char *how = strsep(&rest, " ");

		set_hostile(how, rest != NULL ? (unsigned int)strtoul(rest, NULL, 10) : 1);
	} else if (strcmp(name, "state") == 0) {
		say_state(said, len);
	} else if (strcmp(name, "ops") == 0 && rest != NULL) {
		say_ops(said, len, rest);
	} else if (strcmp(name, "memory") == 0) {
		snprintf(said, len, "allocated=%zu", allocated());
	} else {
		snprintf(said, len, "what is `%s`?", name);
	}
}

static void *ctl_main(void *arg)
{
	FILE *ctl = fopen(getenv("FUSE_SIM_CTL"), "r+e"),
	     *to = fopen(getenv("FUSE_SIM_SAID"), "r+e");
	char *line = NULL, said[512];
	size_t cap = 0;

	while (ctl != NULL && to != NULL && getline(&line, &cap, ctl) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (strcmp(line, "end") == 0)
			break;
		run_command(line, said, sizeof(said));
		fprintf(to, "%s\n", said);
		fflush(to);
	}
	free(line);
	if (ctl != NULL)
		fclose(ctl);
	if (to != NULL)
		fclose(to);
	return NULL;
}

static void ctl_end(pthread_t thread)
{
	int fd = open(getenv("FUSE_SIM_CTL"), O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "end\n", 4) != 4)
		abort();
	close(fd);
	pthread_join(thread, NULL);
}

static void run_settings(const char *text)
{
	char *copy = strdup(text), *rest = copy, *line, said[512];

	while ((line = strsep(&rest, ";")) != NULL) {
		if (line[strspn(line, " \n")] == '\0')
			continue;
		run_command(line, said, sizeof(said));
		if (strcmp(said, "ok") != 0) {
			fprintf(stderr, "fuse_sim: %s\n", said);
			exit(2);
		}
	}
	free(copy);
}

/* ---- the end ---- */

static int judge(int status)
{
	char said[512];
	bool left = nfsd_sim_live_clients(sim) || nfsd_sim_live_sessions(sim) ||
		    nfsd_sim_live_opens(sim) || nfsd_sim_live_delegs(sim) ||
		    nfsd_sim_live_conns(sim);
	unsigned int keys = fab_sim_live_keys(), objects = fab_sim_live_objects();

	say_state(said, sizeof(said));
	fprintf(stderr, "fuse_sim: at the end: %s keys=%u objects=%u\n", said, keys, objects);
	left = left && !may_leave;
	if (status == 0 && ((fab_sim_failures() && !unjudged) || keys || objects || left))
		status = STATUS_JUDGED;
	return status;
}

int main(int argc, char **argv)
{
	const struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_port = htons(20049),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const char *settings = getenv("FUSE_SIM");
	struct nfsd_sim_conf conf;
	pthread_t ctl;
	bool has_ctl;
	int status;

	nfsd_sim_conf_default(&conf);
	conf.delegs = NFSD_SIM_DELEG_READ | NFSD_SIM_DELEG_WRITE;
	sim = nfsd_sim_new(&conf, (const struct sockaddr *)&at);
	rules_reset();
	if (settings != NULL)
		run_settings(settings);
	has_ctl = getenv("FUSE_SIM_CTL") != NULL && getenv("FUSE_SIM_SAID") != NULL;
	if (has_ctl && thread_start(&ctl, ctl_main, NULL) != 0)
		return 2;
	status = rpcrdmafs_main(argc, argv);
	if (has_ctl)
		ctl_end(ctl);
	status = judge(status);
	nfsd_sim_free(sim);
	return status;
}
