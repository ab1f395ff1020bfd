/*
 * Fuzzes the reading of packages: the zip, and the manifest by itself, which a
 * fuzzer would not find in what is packed.
 */
#include "fuzz.h"

#include "opencl/package.h"

static void check(enum healcl_status status, const struct package *package,
                  struct healcl_error *error)
{
    expect_told(status, error);
    if (status == HEALCL_OK)
        EXPECT(package_text(package, "tuning") && package_text(package, "choices") &&
               package_entry(package, "device", "driver"));
    healcl_error_clear(error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct healcl_error error = {.status = HEALCL_OK};
    struct package *package = NULL;
    enum healcl_status status = package_read_zip(data, size, &package, &error);
    check(status, package, &error);
    package_free(package);
    package = calloc(1, sizeof *package);
    char *text = text_of(data, size);
    EXPECT(package);
    status = package_read_manifest(package, text, size, &error);
    check(status, package, &error);
    free(text);
    package_free(package);
    return 0;
}
