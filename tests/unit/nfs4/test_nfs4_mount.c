/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "nfs4_session_int.h"

/* The components with '|' between them. */
static void walk(const char *path, const char *want)
{
	char got[256] = "";
	struct nfs4_str name;

	while (nfs4_mount_path_next(&path, &name))
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%.*s", *got ? "|" : "",
			(int)name.len, name.p);
	cr_assert_str_eq(got, want);
	cr_assert_eq(*path, '\0');
}

Test(nfs4_mount, path_is_walked_by_component)
{
	walk("/export/a", "export|a");
	walk("export", "export");
	walk("/", "");
	walk("", "");
}

Test(nfs4_mount, empty_components_and_dots_do_not_count)
{
	walk("//export///a/", "export|a");
	walk("/./export/./.", "export");
	walk("/...", "...");
	walk("/.a/..b", ".a|..b");
}

Test(nfs4_mount, io_size_is_the_smallest_of_all_limits)
{
	cr_assert_eq(nfs4_fs_io_size(0, 1 << 20, 1 << 20, (1 << 20) + 4096), 1 << 20);
	cr_assert_eq(nfs4_fs_io_size(65536, 1 << 20, 1 << 20, 1 << 21), 65536);
	cr_assert_eq(nfs4_fs_io_size(0, 131072, 1 << 20, 1 << 21), 131072);
	cr_assert_eq(nfs4_fs_io_size(0, 1 << 20, 524288, 1 << 21), 524288);
}

Test(nfs4_mount, io_size_leaves_room_for_the_rest_of_the_message)
{
	cr_assert_eq(nfs4_fs_io_size(0, 1 << 20, 1 << 20, 1 << 20), (1 << 20) - 4096);
	cr_assert_eq(nfs4_fs_io_size(0, 1 << 20, 1 << 20, 65536 + 1024), 65536);
	cr_assert_eq(nfs4_fs_io_size(0, 1 << 20, 1 << 20, 65536 + 1023), 61440);
}

Test(nfs4_mount, io_size_is_whole_pages_where_the_server_allows)
{
	cr_assert_eq(nfs4_fs_io_size(10000, 1 << 20, 1 << 20, 1 << 21), 8192);
	cr_assert_eq(nfs4_fs_io_size(0, 1 << 20, 5000, 1 << 21), 4096);
	cr_assert_eq(nfs4_fs_io_size(0, 1 << 20, 1000, 1 << 21), 1000);
	cr_assert_eq(
		nfs4_fs_io_size(0, 1 << 20, 0, 1 << 21), 1 << 20, "0: the server said nothing");
}
