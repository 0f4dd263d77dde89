/* SPDX-License-Identifier: BSD-3-Clause */
/* Machines with and without a device, as folders. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "verbs_int.h"

static char root[] = "/tmp/verbs_probe.XXXXXX";
static char why[200];

static int gone(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static void start(void)
{
	cr_assert_not_null(mkdtemp(root));
	verbs_probe_root = root;
}

static void stop(void)
{
	nftw(root, gone, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(verbs_probe, .init = start, .fini = stop);

static const char *at(const char *path)
{
	static char full[128];

	snprintf(full, sizeof(full), "%s%s", root, path);
	return full;
}

static void has(const char *path)
{
	cr_assert_eq(mkdir(at(path), 0700), 0, "%s", path);
}

/* As it is where ib_core is loaded. */
static void has_class(void)
{
	has("/sys");
	has("/sys/class");
	has("/sys/class/infiniband");
}

static void has_device(void)
{
	has_class();
	has("/sys/class/infiniband/rxe0");
}

static void has_rdma_ucm(void)
{
	has("/sys/class/misc");
	has("/sys/class/misc/rdma_cm");
}

Test(verbs_probe, without_sysfs_it_is_not_known)
{
	cr_assert_eq(verbs_probe(why, sizeof(why)), 0);
	has("/sys");
	cr_assert_eq(verbs_probe(why, sizeof(why)), 0);
}

Test(verbs_probe, without_the_class_there_is_no_device)
{
	has("/sys");
	has("/sys/class");
	cr_assert_eq(verbs_probe(why, sizeof(why)), -ENODEV);
	cr_assert_str_eq(why, "");
}

Test(verbs_probe, a_class_that_is_empty_has_no_device)
{
	has_class();
	has_rdma_ucm();
	cr_assert_eq(verbs_probe(why, sizeof(why)), -ENODEV);
	cr_assert_str_eq(why, "");
}

/* librdmacm asks the kernel for it, and the node is made meanwhile. */
Test(verbs_probe, the_module_may_be_loaded_later)
{
	has_device();
	cr_assert_eq(verbs_probe(why, sizeof(why)), 0);
}

Test(verbs_probe, a_container_without_the_node_has_no_device)
{
	has_device();
	has_rdma_ucm();
	cr_assert_eq(verbs_probe(why, sizeof(why)), -ENODEV);
	cr_assert_str_eq(why, "/dev/infiniband/rdma_cm: No such file or directory");
}

/* Root may open any file: this is one that nobody can open. */
Test(verbs_probe, a_node_that_cannot_be_opened_is_no_device)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	has_device();
	has_rdma_ucm();
	has("/dev");
	has("/dev/infiniband");
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/dev/infiniband/rdma_cm", root);
	cr_assert_eq(bind(fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	cr_assert_eq(verbs_probe(why, sizeof(why)), -ENODEV);
	cr_assert_str_eq(why, "/dev/infiniband/rdma_cm: No such device or address");
	close(fd);
}

Test(verbs_probe, a_node_that_can_be_opened_is_for_librdmacm)
{
	has_device();
	has_rdma_ucm();
	has("/dev");
	has("/dev/infiniband");
	close(open(at("/dev/infiniband/rdma_cm"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	cr_assert_eq(verbs_probe(why, sizeof(why)), 0);
	cr_assert_str_eq(why, "");
}
