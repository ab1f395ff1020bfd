/* Fuzzes tunings, and choices among kernels of manifests, as texts: what is written of one that was
 * read reads as the same. */
#include "fuzz.h"

#include "programs/tuning_kept.h"

static void check_tuning(const char *text)
{
    const struct device_info info = {.type = CL_DEVICE_TYPE_GPU, .max_work_group_size = 1024};
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
}

static void check_choices(const char *text)
{
    struct kernel_choices choices, again;
    char written[KERNEL_CHOICES_SIZE];
    if (!kernel_choices_parse(&choices, text)) {
        EXPECT(choices.count == 0);
        return;
    }
    EXPECT(choices.count <= KERNEL_CHOICES_MAX);
    kernel_choices_format(&choices, written);
    EXPECT(kernel_choices_parse(&again, written) && again.count == choices.count);
    for (size_t i = 0; i < again.count; i++) {
        EXPECT(again.items[i].of == choices.items[i].of);
        EXPECT(again.items[i].choice == choices.items[i].choice);
        EXPECT(kernel_choices_find(&choices, again.items[i].of) == again.items[i].choice);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = text_of(data, size);
    check_tuning(text);
    check_choices(text);
    free(text);
    return 0;
}
