/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "options.h"

static struct options o;
static struct options_seen *seen;
static char fault[400];
static char warning[400];
static unsigned int warnings;

static void setup(void)
{
	options_default(&o);
	seen = options_seen_new();
	cr_assert_not_null(seen);
	warnings = 0;
}

static void teardown(void)
{
	options_seen_free(seen);
	options_fini(&o);
}

TestSuite(options, .init = setup, .fini = teardown);

static void warn(void *ctx, const char *line)
{
	snprintf(warning, sizeof(warning), "%s", line);
	warnings++;
}

static int apply(const char *string)
{
	return options_apply(&o, seen, string, warn, NULL, fault, sizeof(fault));
}

static void refused(const char *string, const char *says)
{
	fault[0] = '\0';
	cr_assert_eq(apply(string), -EINVAL, "\"%s\" was taken", string);
	cr_assert(strstr(fault, says) != NULL, "%s: \"%s\" does not name %s", string, fault, says);
}

Test(options, defaults_are_those_of_nfs5)
{
	cr_assert(o.nfs.hard);
	cr_assert_eq(o.nfs.minor_max, 2);
	cr_assert_eq(o.nfs.minor_min, 1);
	cr_assert_eq(o.port, 20049);
	cr_assert_eq(o.fs.acregmin_s, 3);
	cr_assert_eq(o.fs.acregmax_s, 60);
	cr_assert_eq(o.fs.acdirmin_s, 30);
	cr_assert_eq(o.fs.acdirmax_s, 60);
	cr_assert(o.fs.cto);
	cr_assert_not(o.fs.read_only);
	cr_assert_eq(o.nconnect, 1);
	cr_assert_eq(options_finish(&o, fault, sizeof(fault)), 0);
}

Test(options, metadata_has_a_lane_of_its_own_only_if_asked_for)
{
	cr_assert_not(o.fs.metalane);
	cr_assert_eq(apply("nconnect=4,metalane"), 0, "%s", fault);
	cr_assert(o.fs.metalane);
	cr_assert_eq(o.nconnect, 4);
	refused("nometalane", "nometalane");
}

Test(options, the_kernels_option_string_is_taken)
{
	cr_assert_eq(apply("rw,relatime,vers=4.1,rsize=65536,wsize=131072,hard,proto=rdma,"
			   "port=20050,timeo=600,retrans=2,sec=sys,local_lock=none"),
		0, "%s", fault);
	cr_assert_eq(warnings, 0);
	cr_assert_eq(o.nfs.minor_max, 1);
	cr_assert_eq(o.nfs.minor_min, 1);
	cr_assert_eq(o.port, 20050);
	cr_assert_eq(o.nfs.rdma.timeo_ns, 60 * NSEC_PER_SEC);
	cr_assert_eq(o.nfs.rdma.retrans, 2);
	cr_assert_eq(options_finish(&o, fault, sizeof(fault)), 0);
	cr_assert_eq(o.nfs.rsize, 65536);
	cr_assert_eq(o.nfs.wsize, 131072);
}

Test(options, sizes_are_rounded_as_nfs5_says)
{
	cr_assert_eq(apply("rsize=5000,wsize=1"), 0);
	cr_assert_eq(options_finish(&o, fault, sizeof(fault)), 0);
	cr_assert_eq(o.nfs.rsize, 4096);
	cr_assert_eq(o.nfs.wsize, 4096);
}

Test(options, sizes_past_a_mebibyte_are_a_mebibyte)
{
	cr_assert_eq(apply("rsize=4294967295"), 0);
	cr_assert_eq(options_finish(&o, fault, sizeof(fault)), 0);
	cr_assert_eq(o.nfs.rsize, 1u << 20);
}

Test(options, soft_and_softerr_differ_in_their_errno)
{
	cr_assert_eq(apply("soft"), 0);
	cr_assert_not(o.nfs.hard);
	cr_assert_eq(o.nfs.timeout_errno, EIO);
	options_seen_free(seen);
	seen = options_seen_new();
	cr_assert_eq(apply("softerr"), 0);
	cr_assert_not(o.nfs.hard);
	cr_assert_eq(o.nfs.timeout_errno, ETIMEDOUT);
}

Test(options, actimeo_sets_all_four_times)
{
	cr_assert_eq(apply("actimeo=7"), 0);
	cr_assert_eq(o.fs.acregmin_s, 7);
	cr_assert_eq(o.fs.acregmax_s, 7);
	cr_assert_eq(o.fs.acdirmin_s, 7);
	cr_assert_eq(o.fs.acdirmax_s, 7);
}

Test(options, noac_makes_writes_synchronous)
{
	cr_assert_eq(apply("noac"), 0);
	cr_assert_eq(options_finish(&o, fault, sizeof(fault)), 0);
	cr_assert(o.fs.noac);
	cr_assert(o.fs.sync);
}

Test(options, delegations_are_asked_for_unless_told_otherwise)
{
	cr_assert(o.fs.delegation);
	cr_assert_eq(apply("nodelegation"), 0);
	cr_assert_not(o.fs.delegation);
	cr_assert_neq(apply("delegation"), 0, "they contradict each other");
}

Test(options, write_says_when_a_write_is_answered)
{
	cr_assert_eq(o.fs.write, FS_WRITE_LAZY);
	cr_assert_eq(o.fs.dirty, 8u << 20);
	cr_assert_eq(apply("write=wait,dirty=3"), 0, "%s", fault);
	cr_assert_eq(o.fs.write, FS_WRITE_WAIT);
	cr_assert_eq(o.fs.dirty, 3u << 20);
	refused("write=later", "write=later");
	refused("dirty=1025", "dirty=1025");
}

Test(options, a_mount_outlives_its_daemon_only_if_asked_for)
{
	cr_assert_eq(o.keep, OPTIONS_KEEP_NO);
	cr_assert_eq(apply("keep=process"), 0, "%s", fault);
	cr_assert_eq(o.keep, OPTIONS_KEEP_PROCESS);
	refused("keep=no", "keep");
	refused("keep=yes", "keep=yes");
	refused("keep", "keep");
}

Test(options, the_service_manager_may_keep_it)
{
	cr_assert_eq(apply("keep=systemd"), 0, "%s", fault);
	cr_assert_eq(o.keep, OPTIONS_KEEP_SYSTEMD);
}

Test(options, or_a_process_if_it_does_not_offer_that)
{
	cr_assert_eq(apply("keep=auto"), 0, "%s", fault);
	cr_assert_eq(o.keep, OPTIONS_KEEP_AUTO);
}

Test(options, or_that_without_data)
{
	cr_assert_eq(apply("keep=tables"), 0, "%s", fault);
	cr_assert_eq(o.keep, OPTIONS_KEEP_TABLES);
}

Test(options, no_is_what_it_is_without)
{
	cr_assert_eq(apply("keep=no"), 0, "%s", fault);
	cr_assert_eq(o.keep, OPTIONS_KEEP_NO);
}

Test(options, nothing_is_read_ahead_unless_asked_for)
{
	cr_assert_eq(o.fs.readahead, 0);
	cr_assert_eq(apply("readahead=8"), 0, "%s", fault);
	cr_assert_eq(o.fs.readahead, 8u << 20);
}

Test(options, a_capture_has_a_file_and_a_limit)
{
	cr_assert_null(o.capture);
	cr_assert_eq(apply("capture=/tmp/a.pcapng"), 0);
	cr_assert_str_eq(o.capture, "/tmp/a.pcapng");
	cr_assert_null(o.clientaddr);
	cr_assert_eq(o.capture_limits.max_bytes, 64u << 20);
	cr_assert_not(o.capture_limits.data);
	cr_assert_eq(apply("capture_size=3,capture_data"), 0);
	cr_assert_eq(o.capture_limits.max_bytes, 3u << 20);
	cr_assert(o.capture_limits.data);
	cr_assert_eq(options_finish(&o, fault, sizeof(fault)), 0);
	refused("capture=", "capture");
	refused("capture_size=0", "capture_size");
}

Test(options, clientid_is_short_and_printable)
{
	char text[] =
		"clientid=................................................................"
		"........................................................................."
		"...............................................................................";

	cr_assert_null(o.clientid);
	cr_assert_eq(apply("clientid=pod 7,capture=/tmp/a"), 0);
	cr_assert_str_eq(o.clientid, "pod 7");
	cr_assert_str_eq(o.capture, "/tmp/a");
	cr_assert_null(o.clientaddr);
	refused("clientid", "clientid");
	refused("clientid=", "clientid");
	refused("clientid=a\tb", "clientid");
	refused("clientid=\xc3\xa4", "clientid");
	cr_assert_geq(strlen(text), strlen("clientid=") + OPTIONS_CLIENTID_MAX + 1);
	refused(text, "clientid");
	text[strlen("clientid=") + OPTIONS_CLIENTID_MAX] = '\0';
	cr_assert_eq(apply(text), 0, "%s", fault);
}

Test(options, what_a_capture_contains_means_nothing_without_one)
{
	cr_assert_eq(apply("capture_data"), 0);
	cr_assert_eq(options_finish(&o, fault, sizeof(fault)), -EINVAL);
	cr_assert_not_null(strstr(fault, "capture=FILE"));
}

Test(options, a_type_of_service_leaves_ecn_alone)
{
	cr_assert_eq(apply("tos=107"), 0, "%s", fault);
	cr_assert_eq(o.nfs.rdma.tos, 104);
	refused("tos=256", "tos");
}

Test(options, words_set_what_they_say)
{
	cr_assert_eq(apply("ro,nocto,lookupcache=pos,nordirplus,local_lock=flock,memreg=static,"
			   "fabric=soft,"
			   "sec=none,nconnect=4,allow_other,stats,proto=rdma6"),
		0, "%s", fault);
	cr_assert(o.fs.read_only);
	cr_assert_not(o.fs.cto);
	cr_assert_eq(o.fs.lookupcache, FS_LOOKUPCACHE_POSITIVE);
	cr_assert_not(o.fs.rdirplus);
	cr_assert_eq(o.fs.local_lock, FS_LOCAL_FLOCK);
	cr_assert_eq(o.nfs.rdma.memreg, RPCRDMA_MEMREG_STATIC);
	cr_assert_eq(o.nfs.rdma.fabric, RPCRDMA_FABRIC_SOFT);
	cr_assert_eq(o.nfs.flavor, RPC_AUTH_NONE);
	cr_assert_eq(o.nconnect, 4);
	cr_assert(o.fs.allow_other);
	cr_assert(o.stats);
	cr_assert_eq(o.family, AF_INET6);
}

Test(options, who_judges_a_mount_that_is_handed_over_is_not_said_here)
{
	cr_assert_eq(apply("default_permissions"), 0, "%s", fault);
	cr_assert(o.fs.default_permissions);
	cr_assert_eq(options_finish(&o, fault, sizeof(fault)), 0);
	o.mountpoint = strdup("/dev/fd/3");
	cr_assert_eq(options_finish(&o, fault, sizeof(fault)), -EINVAL);
	cr_assert_not_null(strstr(fault, "default_permissions"));
}

static void trusts(bool root, const char *mountpoint, const char *string, const char *refusal)
{
	teardown();
	setup();
	o.by_root = root;
	o.mountpoint = strdup(mountpoint);
	fault[0] = '\0';
	cr_expect_eq(apply(string), 0, "%s", fault);
	cr_expect_eq(options_finish(&o, fault, sizeof(fault)), refusal ? -EINVAL : 0, "%s: %s",
		string, fault);
	cr_expect(!refusal || strstr(fault, refusal), "%s: %s", string, fault);
}

Test(options, devices_and_programs_of_the_server_are_trusted_by_root_only)
{
	trusts(true, "/mnt", "dev,suid,allow_other", NULL);
	trusts(true, "/mnt", "dev,suid,default_permissions,allow_other", NULL);
	trusts(false, "/mnt", "nodev,nosuid", NULL);
	trusts(false, "/mnt", "dev,nodev,suid,nosuid", NULL);
	trusts(false, "/mnt", "dev", "option dev: only root");
	trusts(false, "/mnt", "nodev,dev", "option dev: only root");
	trusts(false, "/mnt", "nodev,suid", "option suid: only root");
	trusts(true, "/dev/fd/3", "dev", "option dev: of a mount that is handed over");
	trusts(true, "/dev/fd/3", "suid", "option suid: of a mount that is handed over");
	trusts(true, "/dev/fd/3", "nodev,nosuid", NULL);
}

Test(options, what_the_kernel_does_is_passed_on)
{
	cr_assert_eq(apply("nosuid,nodev"), 0);
	cr_assert_eq(apply("noatime"), 0);
	cr_assert_str_eq(o.vfs_opts, "nosuid,nodev,noatime");
}

Test(options, what_is_for_fstab_and_systemd_is_silent)
{
	cr_assert_eq(apply("defaults,_netdev,nofail,noauto,user,x-systemd.automount,"
			   "x-systemd.idle-timeout=60,,intr"),
		0, "%s", fault);
	cr_assert_eq(warnings, 0);
}

Test(options, what_has_no_meaning_here_warns_and_is_named)
{
	cr_assert_eq(apply("noresvport"), 0);
	cr_assert_eq(warnings, 1);
	cr_assert(strstr(warning, "noresvport") != NULL);
}

Test(options, unknown_ones_are_named)
{
	refused("rw,frobnicate", "frobnicate");
	refused("frobnicate=7", "frobnicate=7");
}

Test(options, wrong_values_are_named)
{
	refused("port=0", "port=0");
	refused("port=65536", "port=65536");
	refused("port", "port");
	refused("timeo=x", "timeo=x");
	refused("ro=1", "ro");
	refused("vers=3", "4.1 and 4.2");
	refused("vers=4.0", "4.1 and 4.2");
	refused("proto=tcp", "proto=tcp");
	refused("sec=krb5", "sec=krb5");
	refused("lookupcache=some", "lookupcache=some");
	refused("nconnect=17", "nconnect=17");
	refused("tcp", "tcp");
	refused("v3", "v3");
}

Test(options, contradictions_name_both)
{
	refused("soft,hard", "soft");
	cr_assert(strstr(fault, "hard") != NULL);
}

Test(options, contradictions_are_found_over_several_strings)
{
	cr_assert_eq(apply("rsize=4096"), 0);
	refused("rsize=8192", "rsize");
}

Test(options, the_same_twice_is_no_contradiction)
{
	cr_assert_eq(apply("hard,hard,vers=4.2,nfsvers=4.2,v4.2"), 0, "%s", fault);
}

Test(options, related_options_contradict_too)
{
	static const char *const bad[] = {"vers=4.1,minorversion=2", "noac,actimeo=5",
		"nolock,local_lock=flock", "actimeo=5,acregmin=3", "noac,async", "ro,rw",
		"cto,nocto", "timeo=5,timeo=6"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		teardown();
		setup();
		refused(bad[i], "contradicts");
	}
}

Test(options, a_version_and_its_minor_may_agree)
{
	cr_assert_eq(apply("vers=4,minorversion=1"), 0, "%s", fault);
	cr_assert_eq(o.nfs.minor_max, 1);
}

Test(options, a_smallest_time_above_the_largest_is_refused)
{
	cr_assert_eq(apply("acregmin=61"), 0);
	cr_assert_eq(options_finish(&o, fault, sizeof(fault)), -EINVAL);
	cr_assert(strstr(fault, "acregmin=61") != NULL);
}
