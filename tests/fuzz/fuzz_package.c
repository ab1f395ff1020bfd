/*
 * Fuzzes the reading of packages behind their seal: the zip, and the manifest by itself, which a
 * fuzzer would not find in what is packed.
 *
 * With libFuzzer (clang), from the project's root, OBJECTS being src/core and src/package:
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined ... fuzz_package.c OBJECTS -lcjson -lzip
 * -lxxhash
 */
#include "fuzz.h"

#include "package/package.h"

static void check(enum healcl_status status, struct package *package, struct healcl_error *error)
{
    EXPECT(status == HEALCL_OK || (status == HEALCL_REFUSED && error->message[0] != 0));
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
    check(package_read_zip(data, size, &package, &error), package, &error);
    package_free(package);
    package = calloc(1, sizeof *package);
    char *text = malloc(size + 1); /* as long as it is with its 0, for the sanitizer */
    EXPECT(package && text);
    memcpy(text, data, size);
    text[size] = 0;
    check(package_read_manifest(package, text, size, &error), package, &error);
    free(text);
    package_free(package);
    return 0;
}
