/* What this program is made of: `healcl version`. */
#include <xxhash.h>
#include <zip.h>
#include <zlib.h>
#include <zstd.h>

#include "cli/report.h"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

const char healcl_compiler[] = COMPILER;

/* Versions of libraries are those of what is loaded now, not of the headers. */
void report_version(const struct style *style)
{
    const unsigned hash = XXH_versionNumber();
    fprintf(style->stream, "healcl %s\n", healcl_version());
    report_label(style, "commit", "%s", *healcl_commit() ? healcl_commit() : "unknown");
    report_label(style, "OpenCL", "%d.%d", CL_TARGET_OPENCL_VERSION / 100,
                 CL_TARGET_OPENCL_VERSION / 10 % 10);
    report_label(style, "cJSON", "%s", cJSON_Version());
    report_label(style, "zlib", "%s", zlibVersion());
    report_label(style, "zstd", "%s", ZSTD_versionString());
    report_label(style, "libzip", "%s", zip_libzip_version());
    report_label(style, "xxHash", "%u.%u.%u", hash / 10000, hash / 100 % 100, hash % 100);
    report_label(style, "compiler", "%s", healcl_compiler);
}
