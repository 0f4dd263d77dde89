/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "optset.h"

static struct options now;
static char fault[400];

static void say(void *ctx, const char *line)
{
}

/* The options of a mount that was made with `given`, and where `set` was set since. 0 or -EINVAL.
 */
static int parse(struct options *o, const char *given, const char *set)
{
	char name[] = "rpcrdmafs", dash_o[] = "-o", source[] = "srv:/exp", where[] = "/mnt";
	char *copy = strdup(given), *argv[] = {name, dash_o, copy, source, where, NULL};
	int err;

	options_default(o);
	if (set != NULL)
		cr_assert_eq(optset_take(o, set), 0);
	err = cmdline_parse(o, 5, argv, say, NULL, fault, sizeof(fault));
	free(copy);
	return err;
}

static void set_up(void)
{
	cr_assert_eq(parse(&now, "soft,timeo=300,nconnect=2,acregmin=5,keep=process,ro", NULL), 0);
}

static void tear_down(void)
{
	options_fini(&now);
}

TestSuite(optset, .init = set_up, .fini = tear_down);

Test(optset, what_can_be_changed)
{
	static const char *const lists[] = {"hard", "hard,,write=wait", "write=eager",
		"timeo=5,retrans=7", "nconnect=16,metalane", "keep=no", "actimeo=7", "acregmax=5",
		"rsize=65536,buffers=8"};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		cr_assert_eq(optset_check(&now, lists[i], fault, sizeof(fault)), 0, "%s", fault);
	cr_assert_not(now.nfs.hard, "nothing has changed");
	cr_assert_eq(now.nconnect, 2);
}

Test(optset, what_cannot_is_named)
{
	static const struct {
		const char *list, *says;
	} wrong[] = {
		{"", "which option?"},
		{"hard,nonsense=1", "unknown option nonsense=1"},
		{"noexec", "mount -o remount,noexec"},
		{"rw", "mount -o remount,rw"},
		{"vers=4.1", "option vers=4.1 cannot be changed"},
		{"noac", "option noac cannot be changed"},
		{"sec=none", "option sec=none cannot be changed"},
		{"clientid=me", "option clientid=me cannot be changed"},
		{"nolock", "option nolock cannot be changed"},
		{"norplus", "unknown option norplus"},
		{"intr", "option intr has no meaning"},
		{"acl", "option acl has no meaning"},
		{"tcp", "option tcp: only proto=rdma"},
		{"nconnect=17", "option nconnect=17: a number from 1 to 16"},
		{"nconnect", "option nconnect needs a value"},
		{"hard,soft", "contradicts"},
		{"acregmin=70", "acregmin=70 is larger than acregmax=60"},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cr_assert_eq(optset_check(&now, wrong[i].list, fault, sizeof(fault)), -EINVAL, "%s",
			wrong[i].list);
		cr_assert_not_null(strstr(fault, wrong[i].says), "%s: %s", wrong[i].list, fault);
	}
}

static void joins(const char *before, const char *list, const char *want)
{
	char *joined = optset_join(before, list);

	cr_assert_str_eq(joined, want);
	free(joined);
}

Test(optset, the_later_of_a_kind_counts)
{
	joins(NULL, "soft", "soft");
	joins("soft", "hard", "hard");
	joins("soft,timeo=5", "retrans=3", "soft,timeo=5,retrans=3");
	joins("soft,timeo=5,write=lazy", "timeo=6", "soft,write=lazy,timeo=6");
	joins("acregmin=1,soft,acdirmax=9", "actimeo=3", "soft,actimeo=3");
}

Test(optset, it_stands_in_place_of_what_was_given)
{
	struct options o;

	cr_assert_eq(parse(&o, "soft,timeo=300,acregmin=5,ro,keep=process",
			     "hard,actimeo=9,keep=no,nconnect=3"),
		0, "%s", fault);
	cr_assert(o.nfs.hard);
	cr_assert_eq(o.fs.acregmin_s, 9);
	cr_assert_eq(o.nconnect, 3);
	cr_assert_eq(o.keep, OPTIONS_KEEP_NO);
	cr_assert(o.fs.delegation, "which keep=process had ruled out");
	cr_assert_eq(o.nfs.rdma.timeo_ns, 30 * NSEC_PER_SEC);
	cr_assert(o.fs.read_only);
	options_fini(&o);
	cr_assert_eq(parse(&o, "actimeo=9", "acregmin=5"), -EINVAL, "as if both were given");
	options_fini(&o);
}

Test(optset, mount8_hands_it_on_as_well)
{
	char name[] = "mount.rpcrdmafs", source[] = "srv:/exp", where[] = "/mnt", dash_o[] = "-o",
	     given[] = "rw,soft";
	char *argv[] = {name, source, where, dash_o, given, NULL};
	struct options o;

	options_default(&o);
	cr_assert_eq(optset_take(&o, "hard"), 0);
	cr_assert_eq(mounthelper_parse(&o, 5, argv, say, NULL, fault, sizeof(fault)), 0);
	cr_assert(o.nfs.hard);
	options_fini(&o);
}
