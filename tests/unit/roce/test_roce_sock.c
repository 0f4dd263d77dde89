/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors of the kernel when packets are sent, and what an endpoint makes of them. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <net/route.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/sock_diag.h>

#include "log.h"
#include "roce_box.h"
#include "roce_rig.h"

#define LONG  12u /* packets of a Read */
#define PORTS 32u
#define PORT  41000u

/* ---- the kernel's calls, but for what a test says ---- */

static int err_of_all;   /* sends, from now on */
static int err_of_train; /* of sends that have one */
static unsigned int errs_of_train = UINT32_MAX;
static bool no_port, no_name, no_connect;
static int unconnected = -1;     /* the socket that could not be */
static unsigned int first_come;  /* so many packets, before a socket is connected; then none is */
static unsigned int read_closed; /* calls that receive from a descriptor that is closed */
static unsigned int handed_over;
static uint32_t numbers;       /* random ones count up from here; 0: they are random */
static uid_t user = (uid_t)-1; /* all processes are of this one; -1: they are of their own */

static unsigned int refused; /* sends with a train */
static int last_fd = -1, refused_fd = -1, awaited_fd = -1;

static bool has_train(const struct mmsghdr *msgs, unsigned int cnt)
{
	for (unsigned int i = 0; i < cnt; i++)
		if (msgs[i].msg_hdr.msg_controllen > 0)
			return true;
	return false;
}

int sendmmsg(int fd, struct mmsghdr *msgs, unsigned int cnt, int flags)
{
	bool train = has_train(msgs, cnt);

	last_fd = fd;
	if (train && err_of_train != 0 && errs_of_train-- > 0) {
		refused++;
		refused_fd = fd;
	} else if (err_of_all == 0) {
		return (int)syscall(SYS_sendmmsg, fd, msgs, cnt, flags);
	}
	errno = err_of_all ? err_of_all : err_of_train;
	return -1;
}

int epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *ev)
{
	if (err_of_train != EAGAIN || op != EPOLL_CTL_ADD || !(ev->events & EPOLLOUT))
		return (int)syscall(SYS_epoll_ctl, epoll_fd, op, fd, ev);
	awaited_fd = fd;
	return 0;
}

int poll(struct pollfd *fds, nfds_t cnt, int ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000l};

	if (err_of_train == EAGAIN)
		return 0;
	return (int)syscall(SYS_ppoll, fds, cnt, ms < 0 ? NULL : &ts, NULL, 0);
}

int bind(int fd, const struct sockaddr *sa, socklen_t sa_len)
{
	if (!no_port && !(no_name && sa->sa_family == AF_UNIX))
		return (int)syscall(SYS_bind, fd, sa, sa_len);
	errno = no_port ? EMFILE : EADDRINUSE;
	return -1;
}

uid_t geteuid(void)
{
	return user == (uid_t)-1 ? (uid_t)syscall(SYS_geteuid) : user;
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	ssize_t n = syscall(SYS_recvmsg, fd, m, flags);
	struct cmsghdr *c = n > 0 && user != (uid_t)-1 ? CMSG_FIRSTHDR(m) : NULL;
	struct ucred cred;

	if (c && c->cmsg_type == SCM_CREDENTIALS) {
		memcpy(&cred, CMSG_DATA(c), sizeof(cred));
		cred.uid = user;
		memcpy(CMSG_DATA(c), &cred, sizeof(cred));
	}
	return n;
}

static unsigned int handed_over; /* tries */

static unsigned int connects; /* to an address of IP */

int connect(int fd, const struct sockaddr *sa, socklen_t sa_len)
{
	struct peer_out o = rig_odd();

	connects += sa->sa_family == AF_INET;
	if (!no_connect) {
		no_connect = first_come > 0;
		for (; first_come > 0; first_come--, o.psn++)
			peer_send(&peer, &o);
		return (int)syscall(SYS_connect, fd, sa, sa_len);
	}
	unconnected = fd;
	errno = ENETUNREACH;
	return -1;
}

int recvmmsg(int fd, struct mmsghdr *msgs, unsigned int cnt, int flags, struct timespec *ts)
{
	int n = (int)syscall(SYS_recvmmsg, fd, msgs, cnt, flags, ts);

	read_closed += n < 0 && errno == EBADF;
	return n;
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	const struct sockaddr_un *sun = m->msg_name;

	handed_over += sun && sun->sun_family == AF_UNIX &&
		       memcmp(sun->sun_path + 1, "rpcrdmafs roce", 14) == 0;
	return syscall(SYS_sendmsg, fd, m, flags);
}

ssize_t getrandom(void *buf, size_t n, unsigned int flags)
{
	if (numbers == 0 || n != sizeof(numbers))
		return syscall(SYS_getrandom, buf, n, flags);
	memcpy(buf, &numbers, n);
	numbers += 0x10001;
	return (ssize_t)n;
}

/* ---- long answers of Reads ---- */

TestSuite(roce_train, .init = rig_set_up, .fini = rig_tear_down);

static void asks_long(void)
{
	rig_asks_read(peer.psn, rig_window(1000, LONG * MTU, FAB_REMOTE_READ), 1000, LONG * MTU);
}

static void reads(uint32_t from)
{
	for (uint32_t i = from; i < LONG; i++)
		rig_reads(i == 0          ? 0x0d
			  : i + 1 == LONG ? 0x0f
					  : 0x0e,
			peer.psn + i, 1000 + i * MTU, MTU);
}

static void is_refused(unsigned int times)
{
	for (int i = 0; i < 20000 && refused < times; i++)
		rig_turn();
	rig_turns();
	cr_assert_eq(refused, times);
}

/* Of the two sockets that packets go out by, it is the one that is full. */
Test(roce_train, the_socket_that_is_full_is_waited_for)
{
	err_of_train = EAGAIN;
	asks_long();
	is_refused(1);
	cr_assert_eq(awaited_fd, refused_fd);
	cr_assert_eq(roce_of(ep)->resp.pace.sent, 0, "it is no part of the rate");
	cr_assert_eq(roce_of(ep)->resp.pace.before, 0);
	/* Whatever comes meanwhile, nothing is put together for nothing. */
	peer_notify(&peer);
	rig_asks_read(peer.psn + LONG, roce_of(ep)->resp.reads[0].rkey, 1000, 10);
	for (int i = 0; i < 20000 && roce_of(ep)->resp.read_cnt < 2; i++)
		rig_turn();
	is_refused(1);
	/* There is room, and something comes. */
	err_of_train = 0;
	roce_of(ep)->resp.pace.limit = 0;
	peer_ack(&peer, 0x1f, OURS);
	reads(0);
	rig_reads(0x10, peer.psn + LONG, 1000, 10);
}

Test(roce_train, what_has_nothing_to_do_with_it_is_a_loss)
{
	err_of_train = ENETUNREACH;
	errs_of_train = 2; /* the first packet, those that are one datagram */
	asks_long();
	rig_reads(0x0f, peer.psn + LONG - 1, 1000 + (LONG - 1) * MTU, MTU);
	cr_assert_eq(refused, 2);
	cr_assert_neq(roce_of(ep)->tx.trains.state, ROCE_TRAINS_OFF);
}

Test(roce_train, a_kernel_that_does_not_cut_is_done_without)
{
	err_of_train = EINVAL;
	asks_long();
	rig_reads(
		0x0e, peer.psn + 1, 1000 + MTU, MTU); /* who knows what was wrong with the first */
	reads(2);
	cr_assert_eq(roce_of(ep)->tx.trains.state, ROCE_TRAINS_OFF);
}

Test(roce_train, without_another_socket_nothing_is_lost)
{
	asks_long();
	no_port = true;
	reads(0);
	cr_assert_eq(roce_of(ep)->tx.trains.state, ROCE_TRAINS_OFF);
}

/* ---- connecting ---- */

TestSuite(roce_sock, .init = rig_make, .fini = rig_tear_down);

static void time_is_up(void)
{
	reactor_timer_in(r, &roce_of(ep)->timer, 0);
	rig_sees("RF");
}

/* Of another process, that is stopped: it reads nothing. */
static int stopped(void)
{
	struct sockaddr_storage local, remote;
	int one = 1, fd;

	peer_addrs(&local, &remote);
	((struct sockaddr_in *)&local)->sin_port = htons(ROCE_PORT);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&local, sizeof(struct sockaddr_in)), 0);
	return fd;
}

Test(roce_sock, a_mount_that_is_stopped_keeps_no_other_from_connecting)
{
	int before, after;

	rig_resolve();
	before = stopped();
	cr_assert_eq(roce_impl.ep_connect(ep, "private", 7), 0);
	peer_take_req(&peer, rig_turn);
	after = stopped();
	peer_send_rep(&peer, OURS, "answer", 6); /* that one has it: it is lost */
	rig_turns();
	cr_assert_str_eq(seen, "R");
	peer_take_req(&peer, rig_turn);
	peer_send_rep(&peer, OURS, "answer", 6);
	rig_sees("RE");
	close(before);
	close(after);
}

static unsigned int descriptors(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

Test(roce_sock, each_request_has_a_socket_and_there_are_no_more)
{
	unsigned int n;

	rig_resolve();
	cr_assert_eq(roce_impl.ep_connect(ep, "private", 7), 0);
	rig_turns();
	n = descriptors();
	for (int i = 0; i < 5; i++) {
		peer_take_req(&peer, rig_turn);
		reactor_timer_in(r, &roce_of(ep)->conn.timer, 0);
	}
	rig_turns();
	cr_assert_eq(descriptors(), n);
	no_port = true;
	reactor_timer_in(r, &roce_of(ep)->conn.timer, 0);
	rig_turns();
	no_port = false;
	cr_assert_eq(descriptors(), n);
	peer_send_rep(&peer, OURS, "answer", 6);
	rig_sees("RE");
}

Test(roce_sock, what_came_before_a_request_is_handed_over)
{
	struct fab_ep *one, *two;
	uint32_t qpn;

	rig_resolve();
	cr_assert_eq(roce_impl.ep_connect(ep, "private", 7), 0);
	peer_take_req(&peer, rig_turn);
	qpn = peer.qpn;
	one = ep;
	two = ep = roce_impl.ep_new(r, &rig_conf, &rig_ops, NULL);
	mr = NULL;
	rig_resolve();
	memset(seen, 0, sizeof(seen));
	/* It comes to the socket of the second one ... */
	peer_send_rep(&peer, OURS, "answer", 6);
	/* ... which has another one by now. */
	cr_assert_eq(roce_impl.ep_connect(two, "private", 7), 0);
	rig_sees("E");
	cr_assert_eq(roce_of(one)->state, ROCE_UP);
	cr_assert_eq(roce_of(one)->qpn, qpn);
	memset(seen, 0, sizeof(seen));
	roce_impl.ep_disconnect(two);
	rig_sees(".");
	roce_impl.ep_free(two);
	ep = one;
}

Test(roce_sock, what_comes_between_two_connections_is_handed_over)
{
	struct fab_ep *one = ep, *two;

	rig_resolve();
	cr_assert_eq(roce_impl.ep_connect(one, "private", 7), 0);
	peer_take_req(&peer, rig_turn);
	two = ep = roce_impl.ep_new(r, &rig_conf, &rig_ops, NULL);
	mr = NULL;
	rig_resolve();
	memset(seen, 0, sizeof(seen));
	roce_impl.ep_disconnect(two);
	rig_sees(".");
	memset(seen, 0, sizeof(seen));
	peer_send_rep(&peer, OURS, "answer", 6); /* to the second one's socket */
	rig_sees("E");
	cr_assert_eq(roce_of(one)->state, ROCE_UP);
	roce_impl.ep_free(two);
	ep = one;
}

/* Of the two that wait to be read the second one has an answer for another mount. */
Test(roce_sock, what_came_before_a_refusal_was_read_is_handed_over)
{
	struct peer_out o = rig_odd();
	uint8_t rej[232] = {0};
	struct fab_ep *one, *two;
	struct peer of_one;

	rig_resolve();
	cr_assert_eq(roce_impl.ep_connect(ep, "private", 7), 0);
	peer_take_req(&peer, rig_turn);
	of_one = peer;
	one = ep;
	two = ep = roce_impl.ep_new(r, &rig_conf, &rig_ops, NULL);
	mr = NULL;
	rig_resolve();
	memset(seen, 0, sizeof(seen));
	cr_assert_eq(roce_impl.ep_connect(two, "private", 7), 0);
	rig_turns();
	peer_take_req(&peer, rig_turn);
	memcpy(rej + 4, peer.req, 4);
	rej[11] = 26;
	peer_send_mad(&peer, 0x12, rej);
	for (int i = 0; i < 7; i++) /* as many as are read at once, or more */
		peer_send(&peer, &o);
	roce_sock_renew(roce_of(two));
	peer = of_one;
	peer_send_rep(&peer, OURS, "answer", 6);
	rig_sees("E");
	cr_assert_eq(roce_of(one)->state, ROCE_UP);
	cr_assert_eq(roce_of(two)->mtu, MTU / 2);
	cr_assert_eq(read_closed, 0);
	memset(seen, 0, sizeof(seen));
	roce_impl.ep_disconnect(two);
	rig_sees(".");
	roce_impl.ep_free(two);
	ep = one;
}

/* There is no socket at the port: the kernel says so, also of the only request. */
Test(roce_sock, a_machine_without_roce_says_so)
{
	struct pollfd p;

	rig_resolve();
	peer_free(&peer);
	cr_assert_eq(roce_impl.ep_connect(ep, NULL, 0), 0);
	p = (struct pollfd){.fd = last_fd};
	cr_assert_eq(poll(&p, 1, 60000), 1);
	cr_assert_eq(roce_of(ep)->conn.tries, 1);
	time_is_up();
	cr_assert_eq(last.err, -ECONNREFUSED);
	cr_assert_not_null(strstr(roce_impl.ep_why(ep), "nothing at UDP port 4791"), "%s",
		roce_impl.ep_why(ep));
	peer_new(&peer);
}

/* An error that the kernel heard of one would come in place of the next one's sending. */
Test(roce_sock, after_a_request_that_nobody_took_the_next_one_goes_out)
{
	rig_resolve();
	peer_free(&peer);
	cr_assert_eq(roce_impl.ep_connect(ep, NULL, 0), 0);
	peer_new(&peer);
	peer_take_req(&peer, rig_turn);
	cr_assert_eq(roce_of(ep)->conn.tries, 2);
	time_is_up();
	cr_assert_eq(last.err, -ETIMEDOUT, "somebody is there by now");
	cr_assert_not_null(strstr(roce_impl.ep_why(ep), "firewall"), "%s", roce_impl.ep_why(ep));
}

/* An error that may pass is tried again by whoever waits for the server (retry=). */
Test(roce_sock, what_keeps_requests_here_is_told)
{
	static const struct {
		int err;
		const char *says;
	} errs[] = {{EPERM, "a packet filter of this machine"}, {EACCES, "Permission denied"},
		{ENETUNREACH, "Network is"}, {EHOSTUNREACH, "No route"}};

	for (size_t i = 0; i < sizeof(errs) / sizeof(errs[0]); i++) {
		rig_resolve();
		err_of_all = errs[i].err;
		cr_assert_eq(roce_impl.ep_connect(ep, NULL, 0), 0);
		time_is_up();
		cr_assert_eq(last.err, -EHOSTUNREACH, "%s", strerror(errs[i].err));
		cr_assert_not_null(
			strstr(roce_impl.ep_why(ep), errs[i].says), "%s", roce_impl.ep_why(ep));
		err_of_all = 0;
	}
}

Test(roce_sock, a_late_answer_of_the_connection_before_is_none)
{
	uint8_t drep[232] = {0};

	rig_connect(OURS);
	memcpy(drep + 4, peer.req, 4);
	roce_impl.ep_disconnect(ep);
	rig_sees(".");
	peer_next_mad(&peer, 0x15, (uint8_t[232]){0}, rig_turn);
	rig_resolve();
	cr_assert_eq(roce_impl.ep_connect(ep, NULL, 0), 0);
	peer_take_req(&peer, rig_turn);
	peer_send_mad(&peer, 0x16, drep);
	for (int i = 0; i < 20000 && roce_of(ep)->conn.dreq_tries > 0; i++)
		rig_turn();
	cr_assert_eq(roce_of(ep)->conn.dreq_tries, 0, "it is heard");
	time_is_up();
	cr_assert_not_null(strstr(roce_impl.ep_why(ep), "firewall"), "%s", roce_impl.ep_why(ep));
}

/* Others may let their port be shared, and would not get their packets. */
Test(roce_sock, its_port_is_nobody_elses)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	int one = 1, others[PORTS - 1];

	if (!peer_ports(PORT, PORT + PORTS - 1))
		cr_skip_test("no network of its own");
	for (unsigned int i = 0; i < PORTS - 1; i++) {
		in.sin_port = htons((uint16_t)(PORT + i));
		others[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		cr_assert_eq(setsockopt(others[i], SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
		cr_assert_eq(bind(others[i], (struct sockaddr *)&in, sizeof(in)), 0);
	}
	rig_resolve();
	cr_assert_eq(roce_sock_port(roce_of(ep)), PORT + PORTS - 1);
	for (unsigned int i = 0; i < PORTS - 1; i++)
		close(others[i]);
}

/* Trains have it too: it is let be shared while their socket gets it, and no longer. */
Test(roce_sock, nobody_elses_becomes_its_port)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	int one = 1, other = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	rig_connect(OURS);
	for (int turn = 0; turn < 2; turn++) {
		in.sin_port = htons(roce_sock_port(roce_of(ep)));
		cr_assert_neq(in.sin_port, 0);
		cr_assert_eq(bind(other, (struct sockaddr *)&in, sizeof(in)), -1);
		cr_assert_eq(errno, EADDRINUSE);
		if (turn == 0) {
			asks_long();
			reads(0);
			cr_assert_eq(roce_of(ep)->tx.trains.state, ROCE_TRAINS_TRIED);
		}
	}
	close(other);
}

/* Bytes of memory that a socket has for what came. */
static uint32_t kept(int fd)
{
	uint32_t info[SK_MEMINFO_VARS];
	socklen_t n = sizeof(info);

	cr_assert_eq(getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &n), 0, "%s", strerror(errno));
	return info[SK_MEMINFO_RMEM_ALLOC];
}

static void send_to(int fd)
{
	struct sockaddr_storage to;
	socklen_t n = sizeof(to);
	uint8_t byte = 1;

	cr_assert_eq(getsockname(fd, (struct sockaddr *)&to, &n), 0);
	cr_assert_eq(sendto(peer.fd, &byte, 1, 0, (struct sockaddr *)&to, n), 1);
}

/* Nobody reads it: it would be there until the connection has another port. */
Test(roce_sock, what_comes_to_the_port_that_it_sends_from_is_not_kept)
{
	int out;

	rig_connect(OURS);
	out = last_fd;
	send_to(out);
	cr_assert_eq(kept(out), 0);
	asks_long();
	reads(0);
	cr_assert_neq(last_fd, out, "trains have another one");
	send_to(last_fd);
	cr_assert_eq(kept(out), 0);
	cr_assert_eq(kept(last_fd), 0);
}

/* ---- what is forged ---- */

/* That a packet from that port of ours to the peer was too long for the path. */
static void says_too_long(int icmp, uint16_t port, uint16_t mtu)
{
	const struct sockaddr_in *ours = (const struct sockaddr_in *)&roce_of(ep)->local;
	const struct sockaddr_in *theirs = (const struct sockaddr_in *)&roce_of(ep)->remote;
	uint8_t m[8 + 20 + 8] = {
		3, 4, [8] = 0x45, [8 + 6] = 0x40, [8 + 8] = 64, 17}; /* unreachable: DF */
	uint32_t sum = 0;

	m[6] = (uint8_t)(mtu >> 8);
	m[7] = (uint8_t)mtu;
	m[8 + 2] = 4;
	memcpy(m + 8 + 12, &ours->sin_addr, 4);
	memcpy(m + 8 + 16, &theirs->sin_addr, 4);
	m[28] = (uint8_t)(port >> 8);
	m[29] = (uint8_t)port;
	m[30] = 4791 >> 8;
	m[31] = 4791 & 0xff;
	m[32] = 3;
	for (size_t i = 0; i < sizeof(m); i += 2)
		sum += (uint32_t)m[i] << 8 | m[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~(sum + (sum >> 16));
	m[2] = (uint8_t)(sum >> 8);
	m[3] = (uint8_t)sum;
	cr_assert_eq(sendto(icmp, m, sizeof(m), 0, (const struct sockaddr *)ours, sizeof(*ours)),
		(ssize_t)sizeof(m), "%s", strerror(errno));
}

static unsigned int mtu_to_peer(void)
{
	struct sockaddr_storage local;
	unsigned int mtu;

	cr_assert_eq(roce_sock_route((struct sockaddr *)&roce_of(ep)->local,
			     (struct sockaddr *)&roce_of(ep)->remote, &local, &mtu),
		0);
	return mtu;
}

/* Whoever sends that need not guess a port: 4791 is known, but nothing is sent from it. */
Test(roce_sock, of_a_path_the_port_that_packets_come_from_is_believed)
{
	int icmp;

	if (!peer_path_mtu(9000))
		cr_skip_test("no network of its own");
	icmp = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	cr_assert_geq(icmp, 0, "%s", strerror(errno));
	rig_connect(OURS);
	/* `in` and `rc`. */
	rig_post(0, 100, 1);
	rig_sends(0x04, OURS, 0, 100);
	peer_ack(&peer, 0x1f, OURS);
	rig_sees("s");
	says_too_long(icmp, 4791, 1500);
	cr_assert_eq(mtu_to_peer(), 9000);
	says_too_long(icmp, roce_sock_port(roce_of(ep)), 1500);
	cr_assert_eq(mtu_to_peer(), 1500, "it is understood");
	close(icmp);
}

static void set_up_v6(void)
{
	if (!peer_network6(false))
		cr_skip_test("there may be no network of its own, or none of IPv6");
	rig_make();
}

TestSuite(roce_forged, .init = set_up_v6, .fini = rig_tear_down);

/* The socket of UDP port 4791 that is not the peer's. */
static int port_4791(void)
{
	struct sockaddr_in6 in6;

	for (int fd = 0; fd < 1000; fd++) {
		socklen_t n = sizeof(in6);

		memset(&in6, 0, sizeof(in6));
		if (fd != peer.fd && !getsockname(fd, (struct sockaddr *)&in6, &n) &&
			in6.sin6_family == AF_INET6 && in6.sin6_port == htons(4791))
			return fd;
	}
	return -1;
}

/* An ordinary user may send from an address that is not this machine's, to this machine. */
Test(roce_forged, what_users_here_send_in_the_peers_name_does_not_come)
{
	struct sockaddr_in6 server = {.sin6_family = AF_INET6}, to;
	struct in6_rtmsg route = {.rtmsg_dst_len = 128,
		.rtmsg_metric = 1,
		.rtmsg_flags = RTF_UP | RTF_HOST,
		.rtmsg_ifindex = 1};
	struct sockaddr_storage ours, here;
	socklen_t n = sizeof(to);
	int one = 1, in, forger = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(inet_pton(AF_INET6, "fd00::99", &server.sin6_addr), 1);
	route.rtmsg_dst = server.sin6_addr;
	cr_assert_eq(ioctl(forger, SIOCADDRT, &route), 0, "%s", strerror(errno));
	cr_assert_eq(setsockopt(forger, IPPROTO_IPV6, IPV6_FREEBIND, &one, sizeof(one)), 0);
	cr_assert_eq(bind(forger, (struct sockaddr *)&server, sizeof(server)), 0);
	peer_addrs(&ours, &here);
	cr_assert_eq(
		roce_impl.ep_resolve(ep, (struct sockaddr *)&ours, (struct sockaddr *)&server), 0);
	in = port_4791();
	cr_assert_geq(in, 0);
	cr_assert_eq(getsockname(in, (struct sockaddr *)&to, &n), 0);
	cr_assert_eq(sendto(forger, &one, sizeof(one), 0, (struct sockaddr *)&to, n), sizeof(one));
	cr_assert_eq(kept(in), 0);
	cr_assert_eq(setsockopt(in, SOL_SOCKET, SO_DETACH_FILTER, &one, sizeof(one)), 0);
	cr_assert_eq(sendto(forger, &one, sizeof(one), 0, (struct sockaddr *)&to, n), sizeof(one));
	cr_assert_gt(kept(in), 0, "the kernel lets them");
	close(forger);
}

/* ---- the peer's port ---- */

/* The label of a connection that begins with the same random numbers as all others here. */
static uint32_t label_of_next(struct fab_ep **ret)
{
	ep = *ret = roce_impl.ep_new(r, &rig_conf, &rig_ops, NULL);
	mr = NULL;
	rig_resolve();
	numbers = 0x12345678;
	cr_assert_eq(roce_impl.ep_connect(ep, "private", 7), 0);
	numbers = 0;
	peer_take_req(&peer, rig_turn);
	return (uint32_t)peer.req[88] << 12 | peer.req[89] << 4 | peer.req[90] >> 4;
}

/* As Linux does it, and adapters. */
static uint16_t port_of(uint32_t label)
{
	return (uint16_t)(0xc000 | ((label ^ label >> 14) & 0x3fff));
}

static void is_over(struct fab_ep *e)
{
	ep = e;
	memset(seen, 0, sizeof(seen));
	roce_impl.ep_disconnect(e);
	rig_sees(".");
	roce_impl.ep_free(e);
}

Test(roce_sock, each_connection_has_a_port_of_the_peer_for_itself)
{
	struct fab_ep *first = ep, *eps[3];
	uint32_t labels[3];

	for (int i = 0; i < 2; i++)
		labels[i] = label_of_next(&eps[i]);
	cr_assert_neq(labels[0], 0);
	cr_assert_neq(port_of(labels[0]), port_of(labels[1]));
	is_over(eps[0]);
	labels[2] = label_of_next(&eps[2]);
	cr_assert_eq(labels[2], labels[0], "nobody has it any more");
	is_over(eps[1]);
	is_over(eps[2]);
	ep = first;
}

Test(roce_sock, without_one_it_is_connected_all_the_same)
{
	rig_resolve();
	no_name = true;
	cr_assert_eq(roce_impl.ep_connect(ep, "private", 7), 0);
	peer_accept(&peer, OURS, "answer", 6, rig_turn);
	rig_sees("RE");
	no_name = false;
}

/* Not connected it would have what others are sent, and be taken for ours alone. */
Test(roce_sock, one_that_cannot_be_connected_is_closed)
{
	rig_resolve();
	cr_assert_eq(roce_impl.ep_connect(ep, NULL, 0), 0);
	no_connect = true;
	peer_accept(&peer, OURS, NULL, 0, rig_turn);
	rig_sees("RE");
	cr_assert_geq(unconnected, 0);
	cr_assert_eq(fcntl(unconnected, F_GETFD), -1);
	rig_post(0, 100, 1);
	rig_sends(0x04, OURS, 0, 100);
	peer_ack(&peer, 0x1f, OURS);
	rig_sees("REs");
}

/* Some adapters have a port for them that is no queue pair's. */
Test(roce_sock, a_notification_of_congestion_is_no_sign_of_another_port)
{
	uint8_t aeth[4] = {0x1f};
	struct peer_out ack;

	rig_connect(OURS);
	rig_post(0, 100, 1);
	rig_sends(0x04, OURS, 0, 100);
	peer_ack(&peer, 0x1f, OURS);
	rig_sees("s");
	connects = 0;
	peer_notify_from(&peer, 36049);
	rig_turns();
	cr_assert_eq(stats.cnps, 1, "it was heard");
	cr_assert_eq(connects, 0);
	/* A packet of the queue pair is one. */
	rig_post(0, 100, 2);
	rig_sends(0x04, OURS + 1, 0, 100);
	ack = (struct peer_out){
		.op = 0x11, .qpn = peer.qpn, .psn = OURS + 1, .ext = aeth, .ext_len = 4};
	peer_send_from(&peer, NULL, 36049, &ack);
	rig_sees("ss");
	cr_assert_eq(connects, 1);
}

/* While it is read: these came before it was to be connected elsewhere. */
Test(roce_sock, one_that_is_closed_is_read_no_more)
{
	rig_resolve();
	for (uint64_t i = 0; i < RECVS; i++)
		rig_receive(0, 100, i);
	cr_assert_eq(roce_impl.ep_connect(ep, NULL, 0), 0);
	first_come = 8;
	peer_accept(&peer, OURS, NULL, 0, rig_turn);
	rig_sees("RErrrrrrr");
	rig_turns();
	cr_assert_geq(unconnected, 0);
	cr_assert_eq(fcntl(unconnected, F_GETFD), -1);
	cr_assert_eq(read_closed, 0);
}

/* A flood of packets for nobody is to cost next to nothing. */
Test(roce_sock, of_strangers_packets_few_are_looked_at)
{
	struct peer_out o;

	rig_connect(OURS);
	o = rig_odd();
	o.qpn ^= 0x5555;
	for (int i = 0; i < 20; i++)
		peer_send(&peer, &o);
	reactor_turn(r, 0);
	rig_turns();
	cr_assert_gt(handed_over, 0);
	cr_assert_lt(handed_over, 20, "%u", handed_over);
	rig_none();
	cr_assert_str_eq(seen, "");
}

/* ---- the box ---- */

/* In a user namespace all that have no number there seem to be one. */
Test(roce_sock, users_without_a_number_are_not_ours)
{
	static const struct {
		uid_t uid;
		bool trusted;
	} users[] = {{0, true}, {1000, true}, {65534, false}};
	const struct roce_rx_about about = {.from = &(struct sockaddr_storage){0}};
	uint8_t bytes[ROCE_PACKET_MAX];
	struct sockaddr_storage from;
	struct roce_rx_about got;
	uint32_t number;
	int box = roce_box_open(&number);

	cr_assert_geq(box, 0);
	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		user = users[i].uid;
		roce_box_send(-1, number, (const uint8_t *)"hello", 5, &about);
		cr_assert_eq(roce_box_recv(box, bytes, &from, &got), 5);
		cr_assert_eq(got.trusted, users[i].trusted, "%u", users[i].uid);
	}
	user = (uid_t)-1;
	close(box);
}

static char said[512];

static void keep_line(void *ctx, enum log_level level, const char *line)
{
	if (level == LOG_LVL_WARN)
		snprintf(said, sizeof(said), "%s", line);
}

/* Two users' connections to a server that has one port for all: the kernel gives all to one. */
Test(roce_sock, of_another_user_a_packet_is_not_taken)
{
	struct peer_out o;

	log_set_sink(keep_line, NULL);
	rig_connect(OURS);
	rig_receive(0, 100, 1);
	o = rig_odd();
	user = 65534;
	peer_hand_over(&o, peer.qpn, 0);
	rig_none();
	cr_assert_str_eq(seen, "");
	cr_assert_not_null(strstr(said, "a process of another user gets packets"), "%s", said);
	user = 1000;
	peer_hand_over(&o, peer.qpn, 0);
	rig_answers(0x1f, peer.psn);
	rig_sees("r");
	log_set_sink(NULL, NULL);
}
