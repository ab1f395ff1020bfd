/* Fuzzes the reading of vendors' manifests, expressions included. Sources that they name are those
 * of examples/extensions. */
#include "fuzz.h"

#include "vendor/vendor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct healcl_error error = {.status = HEALCL_OK};
    struct vendor_operations *handle = NULL;
    char *text = text_of(data, size);
    EXPECT(vendor_operations_create(&handle, &error) == HEALCL_OK);
    enum healcl_status status =
        manifest_read(handle, VENDOR_FOLDER, VENDOR_FOLDER "/m.json", text, size, false, &error);
    EXPECT(status == HEALCL_OK || error.message[0] != 0);
    healcl_error_clear(&error);
    free(text);
    healcl_operations_free((struct healcl_operations *)handle);
    return 0;
}
