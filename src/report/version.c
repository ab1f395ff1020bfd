/* What this program is made of: `healcl version`. */
#include <xxhash.h>
#include <zip.h>
#include <zlib.h>
#include <zstd.h>

#include "report/members.h"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

const char healcl_compiler[] = COMPILER;

enum { LIBRARIES = 5, VERSION_SIZE = 32 };

struct library {
    const char *name;
    char version[VERSION_SIZE]; /* of what is loaded now, not of the headers */
};

static void list_libraries(struct library libraries[LIBRARIES])
{
    const unsigned hash = XXH_versionNumber();
    const char *const versions[] = {cJSON_Version(), zlibVersion(), ZSTD_versionString(),
                                    zip_libzip_version()};
    static const char *const names[LIBRARIES] = {"cJSON", "zlib", "zstd", "libzip", "xxHash"};
    for (size_t i = 0; i < LIBRARIES; i++)
        libraries[i].name = names[i];
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        snprintf(libraries[i].version, VERSION_SIZE, "%s", versions[i]);
    snprintf(libraries[LIBRARIES - 1].version, VERSION_SIZE, "%u.%u.%u", hash / 10000,
             hash / 100 % 100, hash % 100);
}

/* "1.2": what healcl needs of a device. */
static void opencl_version(char text[VERSION_SIZE])
{
    snprintf(text, VERSION_SIZE, "%d.%d", CL_TARGET_OPENCL_VERSION / 100,
             CL_TARGET_OPENCL_VERSION / 10 % 10);
}

void report_version(const struct style *style)
{
    struct library libraries[LIBRARIES];
    char opencl[VERSION_SIZE];
    list_libraries(libraries);
    opencl_version(opencl);
    fprintf(style->stream, "healcl %s\n", healcl_version());
    report_label(style, "commit", "%s", *healcl_commit() ? healcl_commit() : "unknown");
    report_label(style, "OpenCL", "%s", opencl);
    for (size_t i = 0; i < LIBRARIES; i++)
        report_label(style, libraries[i].name, "%s", libraries[i].version);
    report_label(style, "compiler", "%s", healcl_compiler);
}

enum healcl_status report_version_json(FILE *stream)
{
    struct library libraries[LIBRARIES];
    char opencl[VERSION_SIZE];
    struct json json;
    list_libraries(libraries);
    opencl_version(opencl);
    json_begin(&json, healcl_version());
    json_string(&json, json.top, "commit", healcl_commit());
    json_string(&json, json.top, "opencl", opencl);
    cJSON *object = json_object(&json, json.top, "libraries");
    for (size_t i = 0; i < LIBRARIES; i++)
        json_string(&json, object, libraries[i].name, libraries[i].version);
    json_string(&json, json.top, "compiler", healcl_compiler);
    return json_print(&json, stream);
}
