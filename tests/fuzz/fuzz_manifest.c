/*
 * Fuzzes the reading of vendors' manifests, expressions included. Sources that they name are those
 * of the current folder, as of examples/vendor, where its manifests are a corpus to begin with.
 *
 * With libFuzzer (clang), from the project's root, OBJECTS being src/core, src/ops, src/plan,
 * src/transcript and src/vendor:
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined ... fuzz_manifest.c OBJECTS -lcjson -lxxhash
 *         -lz -lzstd
 */
#include "fuzz.h"

#include "vendor/vendor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct healcl_error error = {.status = HEALCL_OK};
    struct vendor_operations *handle = NULL;
    char *text = malloc(size + 1);
    EXPECT(text && vendor_operations_create(&handle, &error) == HEALCL_OK);
    memcpy(text, data, size);
    text[size] = 0; /* as of a file that has been read */
    enum healcl_status status = manifest_read(handle, ".", "./m.json", text, size, false, &error);
    EXPECT(status == HEALCL_OK || error.message[0] != 0);
    healcl_error_clear(&error);
    free(text);
    healcl_operations_free((struct healcl_operations *)handle);
    return 0;
}
