/* Fuzzes tunings as texts: what is written of one that was read reads as the same. */
#include "fuzz.h"

#include "opencl/device.h"

static void check_tuning(const char *text)
{
    const struct device_info info = {
        .type = CL_DEVICE_TYPE_GPU, .max_work_group_size = 1024, .max_parameter_bytes = 1024};
    struct device_tuning tuning = tuning_default(&info), again = tuning;
    struct healcl_error error = {.detail = NULL};
    char written[TUNING_TEXT_SIZE];
    enum healcl_status status = tuning_parse(&tuning, text, "a text", &info, &error);
    EXPECT(status == HEALCL_OK || (status == HEALCL_USAGE && error.message[0]));
    if (status == HEALCL_OK) {
        tuning_format(&tuning, written);
        EXPECT(tuning_parse(&again, written, "what was written", &info, &error) == HEALCL_OK);
        EXPECT(memcmp(&tuning, &again, sizeof tuning) == 0);
    }
    healcl_error_clear(&error);
    uint32_t specificity;
    status = tuning_file_read("a.json", text, &info, &tuning, &specificity, &error);
    EXPECT(status == HEALCL_OK || (status == HEALCL_REFUSED && error.message[0]));
    healcl_error_clear(&error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = text_of(data, size);
    check_tuning(text);
    free(text);
    return 0;
}
