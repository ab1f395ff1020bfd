/* Fuzzes the scanner alone: each entry that it rewrites is JSON, and no longer than it may be. */
#include "fuzz.h"

#include <cjson/cJSON.h>

#include "transcript/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source source = {.text = (const char *)data, .length = size};
    struct healcl_error error = {.detail = NULL};
    struct scanner scanner;
    const char *text = NULL;
    size_t length, entries = 0;
    scanner_init(&scanner, &source);
    for (;; entries++) {
        enum healcl_status status = scanner_next(&scanner, &text, &length, &error);
        expect_told(status, &error);
        if (status != HEALCL_OK || !text)
            break;
        EXPECT(strlen(text) == length && length <= SCAN_TEXT_MAX);
        cJSON *tree = cJSON_ParseWithOpts(text, NULL, true);
        EXPECT(tree);
        cJSON_Delete(tree);
    }
    EXPECT(entries <= size && scanner.at <= size);
    scanner_release(&scanner);
    healcl_error_clear(&error);
    return 0;
}
