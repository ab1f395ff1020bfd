/* Passes make of each sequence what its row says, and a device and the reference agree on it. */
#include "check/sequence.h"
#include "helper_one_device.h"

static void is_made_and_right(void **state)
{
    (void)state;
    struct sequence_check check = {.made = 0};
    for (size_t i = 0; sequence_at(i, &check.sequence); i++) {
        char call[SEQUENCE_CALL_SIZE];
        sequence_check(device, true, &check);
        if (check.why.status != HEALCL_OK || check.counts.passed != check.counts.calls)
            fail_msg("%s, %s: %s", check.sequence.name, sequence_call_text(&check.call, call),
                     check.why.message);
        if (check.made == 0)
            fail_msg("%s: no pass has made a step of its kind", check.sequence.name);
        check = (struct sequence_check){.made = 0};
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_made_and_right)};
    return cmocka_run_group_tests(tests, open_device, close_device);
}
