/* SPDX-License-Identifier: BSD-3-Clause */
/* A service manager is a datagram socket; lanes are two that answer or do not. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "reactor.h"
#include "service.h"

struct lane {
	bool hangs, owes;
	unsigned int pings;
};

void lane_ping(struct lane *l)
{
	l->pings++;
	l->owes = l->hangs;
}

bool lane_answered(const struct lane *l)
{
	return !l->owes;
}

static struct lane lanes[2];
static struct lane *const lane_list[] = {&lanes[0], &lanes[1]};
static unsigned int lane_cnt = 2;
static int manager;
static struct reactor *reactor;

static void setup(void)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	char name[64];

	/* In the abstract name space: nothing to remove. */
	snprintf(name, sizeof(name), "@rpcrdmafs-test-%d", (int)getpid());
	memcpy(sa.sun_path, name, strlen(name));
	sa.sun_path[0] = '\0';
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	cr_assert(manager >= 0);
	cr_assert_eq(bind(manager, (struct sockaddr *)&sa,
			     (socklen_t)(sizeof(sa.sun_family) + strlen(name))),
		0);
	setenv("NOTIFY_SOCKET", name, 1);
	memset(lanes, 0, sizeof(lanes));
	reactor = reactor_new_virtual();
	cr_assert_not_null(reactor);
}

static void teardown(void)
{
	reactor_free(reactor);
	close(manager);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

/* The next message, or "". */
static const char *heard(void)
{
	static char text[2048];
	ssize_t n = recv(manager, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static unsigned int signs_of_life(void)
{
	unsigned int cnt = 0;
	const char *text;

	while (*(text = heard()) != '\0')
		cnt += strstr(text, "WATCHDOG=1") != NULL;
	return cnt;
}

static void run_ms(unsigned int ms)
{
	uint64_t end = reactor_now(reactor) + ms * 1000000ull;

	while (reactor_now(reactor) < end)
		(void)reactor_turn(reactor, end - reactor_now(reactor));
}

TestSuite(service, .init = setup, .fini = teardown);

Test(service, ready_names_the_process_and_the_mount)
{
	char want[100];

	service_ready("server:/export", "/mnt");
	snprintf(want, sizeof(want), "READY=1\nMAINPID=%d\nSTATUS=server:/export mounted on /mnt",
		(int)getpid());
	cr_assert_str_eq(heard(), want);
}

Test(service, status_and_stopping_are_a_message_each)
{
	service_status("%d left", 3);
	service_stopping();
	cr_assert_str_eq(heard(), "STATUS=3 left");
	cr_assert_str_eq(heard(), "STOPPING=1");
	cr_assert_str_eq(heard(), "");
}

Test(service, nothing_happens_without_a_manager)
{
	struct watchdog w = {0};

	unsetenv("NOTIFY_SOCKET");
	service_ready("server:/", "/mnt");
	service_watchdog_start(&w, reactor, lane_list, &lane_cnt);
	run_ms(20);
	service_watchdog_stop(&w);
	cr_assert_str_eq(heard(), "");
	cr_assert_eq(lanes[0].pings, 0);
}

/* Names are looked up before the reactor runs, and that may take its time. */
Test(service, the_first_sign_of_life_is_at_once)
{
	struct watchdog w = {0};

	setenv("WATCHDOG_USEC", "60000000", 1);
	service_watchdog_start(&w, reactor, lane_list, &lane_cnt);
	cr_assert_eq(signs_of_life(), 1);
	service_watchdog_stop(&w);
}

Test(service, no_watchdog_unless_the_unit_has_one)
{
	struct watchdog w = {0};

	service_watchdog_start(&w, reactor, lane_list, &lane_cnt);
	run_ms(30);
	cr_assert_eq(signs_of_life(), 0);
	service_watchdog_stop(&w);
}

Test(service, two_signs_of_life_in_the_watchdogs_time)
{
	struct watchdog w = {0};

	setenv("WATCHDOG_USEC", "300000", 1);
	service_watchdog_start(&w, reactor, lane_list, &lane_cnt);
	run_ms(599);
	cr_assert_geq(lanes[0].pings, 4);
	cr_assert_geq(lanes[1].pings, 4);
	cr_assert_eq(signs_of_life(), lanes[0].pings, "one each");
	service_watchdog_stop(&w);
	run_ms(250);
	cr_assert_eq(signs_of_life(), 0, "after its end");
}

Test(service, a_lane_that_hangs_ends_the_signs_of_life)
{
	struct watchdog w = {0};

	setenv("WATCHDOG_USEC", "90000", 1);
	lanes[1].hangs = true;
	service_watchdog_start(&w, reactor, lane_list, &lane_cnt);
	run_ms(300);
	cr_assert_eq(signs_of_life(), 1, "that before it was asked");
	lanes[1].owes = lanes[1].hangs = false;
	run_ms(100);
	cr_assert_gt(signs_of_life(), 0, "it runs again");
	service_watchdog_stop(&w);
}
