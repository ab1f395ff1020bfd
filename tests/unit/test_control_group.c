/* Limits of control groups, as files that stand for those of the system. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/control_group.h"
#include "helper_folder.h"

/* Each is a path and what the file holds; NULL ends them. */
static void expect(uint64_t limit, const char *const files[])
{
    char root[] = "/tmp/healcl-test-XXXXXX", path[128], made[16][128];
    size_t count = 0;
    assert_non_null(mkdtemp(root));
    for (size_t i = 0; files[i]; i += 2) {
        snprintf(path, sizeof path, "%s%s", root, files[i]);
        for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
            *at = 0;
            if (mkdir(path, 0700) == 0)
                strcpy(made[count++], path);
        }
        write_file(root, files[i], files[i + 1]);
    }
    assert_int_equal(control_group_memory(root), limit);
    for (size_t i = 0; files[i]; i += 2) {
        snprintf(path, sizeof path, "%s%s", root, files[i]);
        assert_int_equal(unlink(path), 0);
    }
    while (count > 0)
        assert_int_equal(rmdir(made[--count]), 0);
    assert_int_equal(rmdir(root), 0);
}

#define GROUP "/proc/self/cgroup"
#define MOUNTS "/proc/self/mountinfo"
#define V2(from)                                             \
    "25 1 0:22 / /sys rw - sysfs sysfs rw\n30 25 0:26 " from \
    " /cg rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
#define V1(from)                                                           \
    "33 25 0:27 " from " /cpu rw - cgroup cgroup rw,cpu\n35 25 0:32 " from \
    " /m rw shared:3 - cgroup none rw,memory\n"

static void finds_the_least_limit(void **state)
{
    (void)state;
    expect(UINT64_MAX, (const char *const[]){NULL});
    /* The group's own, one around it, and the one of a mount's top. */
    expect(200, (const char *const[]){MOUNTS, V2("/"), GROUP, "0::/a.slice/b\n", "/cg/memory.max",
                                      "900\n", "/cg/a.slice/memory.max", "max\n",
                                      "/cg/a.slice/b/memory.max", "200\n", NULL});
    expect(100, (const char *const[]){MOUNTS, V2("/"), GROUP, "0::/a/b/c\n", "/cg/a/memory.max",
                                      "100\n", "/cg/a/b/memory.max", "200\n",
                                      "/cg/a/b/c/memory.max", "max\n", NULL});
    expect(300, (const char *const[]){MOUNTS, V2("/"), GROUP, "0::/\n", "/cg/memory.max", "300\n",
                                      NULL});
    /* Beside others of version 1, in the hierarchy with the memory. */
    expect(400, (const char *const[]){MOUNTS, V1("/") V2("/"), GROUP,
                                      "9:name=systemd:/x\n4:cpu,memory:/s/job_1\n2:cpu:/y\n0::/z\n",
                                      "/m/memory.limit_in_bytes", "9223372036854771712\n",
                                      "/m/s/memory.limit_in_bytes", "400\n",
                                      "/m/s/job_1/memory.limit_in_bytes", "9223372036854771712\n",
                                      "/cpu/s/job_1/memory.limit_in_bytes", "7\n", NULL});
    /* A container sees a part of the hierarchy, or one that the group is not in. */
    expect(500, (const char *const[]){MOUNTS, V1("/docker/5"), GROUP, "4:memory:/docker/5/in\n",
                                      "/m/in/memory.limit_in_bytes", "500\n",
                                      "/m/docker/5/in/memory.limit_in_bytes", "7\n", NULL});
    expect(600, (const char *const[]){MOUNTS, V2("/docker/5"), GROUP, "0::/docker/55\n",
                                      "/cg/memory.max", "600\n", "/cg/docker/55/memory.max", "7\n",
                                      "/cg/5/memory.max", "7\n", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds_the_least_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
