/*
 * Fuzzes the reading of packages behind their seal: the zip, and the manifest by itself, which a
 * fuzzer would not find in what is packed.
 */
#include "fuzz.h"

#include "package/package.h"

static void check(enum healcl_status status, const struct package *package,
                  struct healcl_error *error)
{
    expect_told(status, error);
    if (status == HEALCL_OK) {
        char *manifest = package_manifest(package);
        EXPECT(manifest && package->program_count > 0 && package->image_count > 0);
        for (size_t i = 0; i < package->program_count; i++)
            EXPECT(package->programs[i].image < package->image_count);
        free(manifest);
    }
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
