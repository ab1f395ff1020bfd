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
#define V1 "/sys/fs/cgroup/memory"
#define V2 "/sys/fs/cgroup"

static void finds_the_least_limit(void **state)
{
    (void)state;
    expect(UINT64_MAX, (const char *const[]){NULL});
    /* The group's own, one around it, and the uppermost one. */
    expect(200, (const char *const[]){GROUP, "0::/a.slice/b\n", V2 "/memory.max", "900\n",
                                      V2 "/a.slice/memory.max", "max\n", V2 "/a.slice/b/memory.max",
                                      "200\n", NULL});
    expect(100, (const char *const[]){GROUP, "0::/a/b/c\n", V2 "/a/memory.max", "100\n",
                                      V2 "/a/b/memory.max", "200\n", V2 "/a/b/c/memory.max",
                                      "max\n", NULL});
    expect(300, (const char *const[]){GROUP, "0::/\n", V2 "/memory.max", "300\n", NULL});
    /* Beside others of version 1, in the hierarchy with the memory. */
    expect(400, (const char *const[]){
                    GROUP, "9:name=systemd:/x\n4:cpu,memory:/s/job_1\n2:cpu:/y\n0::/z\n",
                    V1 "/memory.limit_in_bytes", "9223372036854771712\n",
                    V1 "/s/memory.limit_in_bytes", "400\n", V1 "/s/job_1/memory.limit_in_bytes",
                    "9223372036854771712\n", V1 "/y/memory.limit_in_bytes", "7\n", NULL});
    /* A container does not see its group by that name. */
    expect(600, (const char *const[]){GROUP, "0::/docker/55\n", V2 "/memory.max", "600\n",
                                      V2 "/55/memory.max", "7\n", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds_the_least_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
