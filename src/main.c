/* SPDX-License-Identifier: BSD-3-Clause */
/* The program does what was asked: a mount, a change of one, a command (cmd.h), a probe, help. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "background.h"
#include "cmd.h"
#include "keeper.h"
#include "log.h"
#include "log_thread.h"
#include "mount.h"
#include "notifier.h"
#include "options.h"
#include "optset.h"
#include "probe.h"
#include "remount.h"

static void say_warning(void *ctx, const char *line)
{
	log_warn("%s", line);
}

/* A mount, or what was asked for beside it. */
static int run(struct handover *handover, int argc, char **argv)
{
	struct options opt;
	char fault[400];
	int status;

	options_default(&opt);
	opt.helper = argc > 0 && mounthelper_called(argv[0]);
	if (handover != NULL && handover->set != NULL && optset_take(&opt, handover->set) != 0) {
		log_err("out of memory");
		handover_give_back(handover);
		return MOUNT_EX_SYSERR;
	}
	if ((opt.helper ? mounthelper_parse : cmdline_parse)(
		    &opt, argc, argv, say_warning, NULL, fault, sizeof(fault)) != 0) {
		log_err("%s", fault);
		options_fini(&opt);
		if (handover != NULL) {
			snprintf(handover->why, sizeof(handover->why), "%s", fault);
			handover_give_back(handover); /* which took these options */
		}
		return MOUNT_EX_USAGE;
	}
	if (opt.help || opt.version) {
		if (opt.help)
			cmdline_help();
		else
			puts("rpcrdmafs " RPCRDMAFS_VERSION);
		options_fini(&opt);
		return 0;
	}
	if (opt.remount) {
		status = remount_run(&opt);
		options_fini(&opt);
		return status;
	}
	if (opt.fake) {
		options_fini(&opt);
		return 0;
	}
	if (handover != NULL && !opt.foreground)
		log_to_syslog("rpcrdmafs"); /* as it did */
	else if (opt.debug)
		log_set_level(LOG_LVL_DEBUG);
	else if (!opt.foreground && !opt.verbose)
		log_set_level(LOG_LVL_WARN); /* a mount that works says nothing, one that fails one
						line */
	if (!opt.foreground && handover == NULL && background_start() != 0) {
		log_err("cannot fork: %s", strerror(errno));
		options_fini(&opt);
		return opt.helper ? MOUNT_EX_SYSERR : MOUNT_EX_USAGE;
	}
	status = mount_retry_run(&opt, handover);
	options_fini(&opt);
	return status;
}

int main(int argc, char **argv)
{
	struct handover *handover;
	int status, err;

	signal(SIGXFSZ, SIG_IGN); /* beyond RLIMIT_FSIZE a write fails, and no mount ends */
	if (keeper_is_asked(argc, argv, &status) || notifier_is_asked(argc, argv, &status))
		return status;
	if (argc == 2 && handover_is_asked(argv[1], &status))
		return status;
	if (cmd_run(argc, argv, &status) || probe_is_asked(argc, argv, &status))
		return status;
	handover = handover_take();
	err = handover == NULL ? errno : 0;
	/* Programs use that mount already: nothing that is said here may hold them up. */
	if (handover != NULL || err != 0)
		(void)log_thread_start();
	if (err == 0) {
		status = run(handover, argc, argv);
	} else {
		log_err("what the program before left is of no use: %s", strerror(err));
		status = MOUNT_EX_USAGE;
	}
	(void)log_thread_stop(LOG_THREAD_WAIT_NS); /* nobody is left to be told */
	return status;
}
