/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A name is resolved, its addresses are tried one after the other, as a mount does it
 * (mount_retry.c), until one answers. One timer bounds all of it; SIGINT ends it.
 */
#include "probe.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cmd.h"
#include "host.h"
#include "log.h"
#include "opttable.h"
#include "optval.h"
#include "probe_conn.h"
#include "probe_print.h"

struct probe {
	struct probe_args args;
	struct reactor *r;
	struct reactor_fd signals;
	int signal_fd;
	struct reactor_timer deadline;
	/* the thread's, until `named` */
	pthread_t thread;
	struct reactor_msg msg;
	struct addrs_list list;
	struct sockaddr_storage src;
	int err;
	char text[300];
	/* main's */
	bool named; /* the thread has ended */
	bool time_is_up, interrupted;
	unsigned int at;
	struct probe_conn *conn; /* of list.addr[at]; NULL: p->text says why there is none */
};

/* ---- what was asked for ---- */

static void help(FILE *to)
{
	fputs("usage: rpcrdmafs probe [-o OPTIONS] [-t SECONDS] [--json] SERVER[:PORT]\n"
	      "\n"
	      "Does a server answer? Connects as a mount would, asks NFS for nothing (a NULL\n"
	      "call), mounts nothing, and needs neither root nor FUSE. Says what the connection\n"
	      "is, and what the server grants; or which step failed, and what to check.\n"
	      "\n"
	      "  SERVER      name, or address (IPv6 and a port: [ADDRESS]:PORT); or a source\n"
	      "  -o OPTIONS  as those of a mount; fabric=, port=, proto=, srcaddr=, memreg=,\n"
	      "              credits=, inline= and ack_timeout= matter here\n"
	      "  -t SECONDS  it ends after so long, in any case; default: 30\n"
	      "  --json      for programs\n"
	      "  -h          this help\n",
		to);
}

static int take_server(struct probe_args *a, const char *server, char *fault, size_t len)
{
	uint16_t port = a->opt.port;
	int err = source_parse_server(&a->opt, server, fault, len);

	if ((a->opt.given & 1ull << ID_PORT) != 0)
		a->opt.port = port; /* as the one that an option of a mount names */
	return err;
}

int probe_parse(struct probe_args *ret, int argc, char **argv, options_say_fn warn, void *ctx,
	char *fault, size_t len)
{
	static const struct option longs[] = {
		{"help", no_argument, NULL, 'h'}, {"json", no_argument, NULL, 'j'}, {0}};
	struct options_seen *seen = options_seen_new();
	uint64_t seconds = PROBE_SECONDS;
	int c, err = seen == NULL ? -EINVAL : 0;

	*ret = (struct probe_args){.json = false};
	options_default(&ret->opt);
	snprintf(fault, len, "%s", seen == NULL ? "out of memory" : "");
	optind = 0;
	while (err == 0 && (c = getopt_long(argc, argv, "o:t:h", longs, NULL)) != -1) {
		if (c == 'o')
			err = options_apply(&ret->opt, seen, optarg, warn, ctx, fault, len);
		else if (c == 't')
			err = optval_uint(optarg, 1, PROBE_SECONDS_MAX, &seconds) ? 0 : -EINVAL;
		else if (c == 'j')
			ret->json = true;
		else if (c == 'h')
			ret->help = true;
		else
			err = -EINVAL;
	}
	ret->seconds = (unsigned int)seconds;
	options_seen_free(seen);
	if (err != 0 || ret->help)
		return err != 0 ? -EINVAL : 0;
	if (argc - optind != 1)
		return -EINVAL;
	return take_server(ret, argv[optind], fault, len);
}

/* ---- addresses ---- */

static void connect_next(struct probe *p);

static void say_failure(const struct probe *p, bool again)
{
	const struct nfs4_failure *f = probe_conn_failure(p->conn);
	char text[600];

	snprintf(text, sizeof(text), "%s at %s: %s: %s%s", p->args.opt.host,
		probe_conn_found(p->conn)->peer, f->step, f->text,
		again ? ": trying another address" : "");
	(void)cmd_fail("probe", text);
}

/* The connection has come to its end, whichever. */
static void conn_over(struct probe *p)
{
	const struct nfs4_failure *f = probe_conn_failure(p->conn);

	if (f->err == 0 || p->time_is_up || p->interrupted || !host_may_be_elsewhere(f->step) ||
		p->at + 1 == p->list.cnt) {
		reactor_stop(p->r);
		return;
	}
	say_failure(p, true);
	probe_conn_free(p->conn);
	p->conn = NULL;
	p->at++;
	connect_next(p);
}

static void conn_done(void *ctx)
{
	conn_over(ctx);
}

static void connect_next(struct probe *p)
{
	const struct sockaddr *src =
		p->src.ss_family != AF_UNSPEC ? (const struct sockaddr *)&p->src : NULL;
	uint64_t now = reactor_now(p->r), end = p->deadline.deadline_ns;

	p->conn = probe_conn_new(
		p->r, &p->args.opt.nfs.rdma, end > now ? end - now : 0, conn_done, p);
	if (p->conn == NULL) {
		snprintf(p->text, sizeof(p->text), "set-up: %s", strerror(errno));
		reactor_stop(p->r);
		return;
	}
	if (!probe_conn_start(p->conn, src, (const struct sockaddr *)&p->list.addr[p->at]))
		conn_over(p);
}

/* ---- the name ---- */

static void named(struct reactor_msg *msg)
{
	struct probe *p = container_of(msg, struct probe, msg);

	p->named = true;
	pthread_join(p->thread, NULL);
	/* It may come in the turn that is the last one. */
	if (p->err != 0 || p->time_is_up || p->interrupted)
		reactor_stop(p->r);
	else
		connect_next(p);
}

static void *name_main(void *arg)
{
	struct probe *p = arg;

	p->err = host_addresses(&p->args.opt, &p->list, &p->src, p->text, sizeof(p->text));
	reactor_post(p->r, &p->msg);
	return NULL;
}

/* ---- the end ---- */

static void on_deadline(struct reactor_timer *t)
{
	struct probe *p = container_of(t, struct probe, deadline);

	p->time_is_up = true;
	if (p->conn != NULL)
		probe_conn_time_is_up(p->conn, p->args.seconds);
	else
		reactor_stop(p->r);
}

static void on_signal(struct reactor_fd *src, uint32_t events)
{
	struct probe *p = container_of(src, struct probe, signals);

	reactor_fd_del(src); /* it stays ready */
	p->interrupted = true;
	if (p->conn != NULL)
		probe_conn_interrupt(p->conn);
	else
		reactor_stop(p->r);
}

static int catch_signals(struct probe *p)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	p->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return p->signal_fd < 0
		       ? -errno
		       : reactor_fd_add(p->r, &p->signals, p->signal_fd, EPOLLIN, on_signal);
}

static int start(struct probe *p)
{
	int err;

	p->r = reactor_new();
	if (p->r == NULL)
		return -errno;
	err = catch_signals(p);
	if (err != 0)
		return err;
	reactor_timer_init(&p->deadline, on_deadline);
	reactor_timer_in(p->r, &p->deadline, p->args.seconds * NSEC_PER_SEC);
	p->msg.run = named;
	return -pthread_create(&p->thread, NULL, name_main, p);
}

/* Says what came of it. Returns: the exit status. */
static int tell(const struct probe *p)
{
	const char *host = p->args.opt.host;
	char text[400];

	if (p->interrupted) {
		snprintf(text, sizeof(text), "%s: interrupted", host);
		return cmd_fail("probe", text);
	}
	if (!p->named || (p->conn == NULL && p->text[0] == '\0')) {
		snprintf(text, sizeof(text),
			"resolve: %s: no answer for %u s: check the name and the DNS", host,
			p->args.seconds);
		return cmd_fail("probe", text);
	}
	if (p->conn == NULL)
		return cmd_fail("probe", p->text);
	probe_print(stdout, p->args.opt.source, probe_conn_found(p->conn), p->args.json);
	if (fflush(stdout) != 0)
		return 1;
	if (probe_conn_failure(p->conn)->err == 0)
		return 0;
	say_failure(p, false);
	return 1;
}

static void fini(struct probe *p)
{
	probe_conn_free(p->conn);
	if (p->r != NULL) {
		reactor_timer_cancel(p->r, &p->deadline);
		reactor_fd_del(&p->signals);
		reactor_free(p->r);
	}
	if (p->signal_fd >= 0)
		close(p->signal_fd);
	options_fini(&p->args.opt);
}

static int run(struct probe *p)
{
	int err = start(p), status;
	char text[200];

	if (err != 0) {
		snprintf(text, sizeof(text), "set-up: %s", strerror(-err));
		status = cmd_fail("probe", text);
		fini(p);
		return status;
	}
	reactor_run(p->r);
	status = tell(p);
	if (p->named)
		fini(p);
	else
		pthread_detach(p->thread); /* the process ends, and the resolver with it */
	return status;
}

static void say_warning(void *ctx, const char *line)
{
	log_warn("%s", line);
}

bool probe_is_asked(int argc, char **argv, int *ret_status)
{
	static struct probe probe; /* a resolver may hang on it for as long as the process lives */
	struct probe *p = &probe;
	char fault[400];
	int err;

	if (argc < 2 || strcmp(argv[1], "probe") != 0)
		return false;
	*p = (struct probe){.signal_fd = -1};
	log_set_level(LOG_LVL_WARN);
	err = probe_parse(&p->args, argc - 1, argv + 1, say_warning, NULL, fault, sizeof(fault));
	if (err == 0 && !p->args.help) {
		*ret_status = run(p);
		return true;
	}
	if (err == 0)
		help(stdout);
	else if (*fault != '\0')
		(void)cmd_fail("probe", fault);
	else
		help(stderr);
	*ret_status = err == 0 ? 0 : 2;
	fini(p);
	return true;
}
