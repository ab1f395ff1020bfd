/* Files of devices: their names, what they hold, and what of it stays. */
#include <stdlib.h>
#include <unistd.h>

#include "compare/compare.h"
#include "core/json_tree.h"
#include "test_transcript_common.h"

static struct healcl_error error;
static char folder[] = "/tmp/healcl_test_XXXXXX";

static struct compare_device *begin(struct comparison *comparison, const char *vendor,
                                    const char *name)
{
    static struct compare_transcript transcript = {
        .file = "/home/somebody/t.json", .bytes = 3, .digest = "0123456789abcdef"};
    struct compare_device *device;
    expect_ok(comparison_init(comparison, &error), &error);
    comparison->origin.date = "2026-01-31T12:00:00Z";
    comparison->origin.healcl = "1";
    comparison->origin.commit = "0123456789ab";
    comparison->transcripts = &transcript;
    comparison->transcript_count = 1;
    comparison->repeat = 3;
    expect_ok(comparison_add_device(comparison, &device, &error), &error);
    device->selector = "0:0";
    device->vendor = vendor;
    device->name = name;
    return device;
}

static void end(struct comparison *comparison, enum healcl_status expected)
{
    compare_conclude(comparison);
    assert_int_equal(compare_write_results(comparison, folder, &error), expected);
    comparison_release(comparison);
}

/* A file of the folder; to be freed with cJSON_Delete. */
static cJSON *read_back(const char *name)
{
    char path[128], *text = NULL;
    cJSON *tree = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    expect_ok(compare_read_file(path, &text, &error), &error);
    assert_null(strstr(text, "somebody"));
    expect_ok(json_tree_read(text, strlen(text), 1000, &tree, NULL, &error), &error);
    assert_non_null(tree);
    free(text);
    return tree;
}

static double number_at(const cJSON *tree, const char *part, const char *key)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetObjectItem(tree, part), key));
}

static const char *text_at(const cJSON *tree, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItem(tree, key));
}

static void write_runs(uint64_t nanoseconds, bool emulator)
{
    struct comparison comparison;
    struct compare_run *run;
    begin(&comparison, "Maker(R) Corp.", "Chip(TM) 9000 / X")->emulator = emulator;
    expect_ok(comparison_add_run(&comparison, 0, 0, &run, &error), &error);
    run->outcome = COMPARE_VERIFIED;
    run->results = run->compared = 2;
    run->times[COMPARE_WHOLE] = run->times[COMPARE_STEADY] =
        (struct compare_samples){&nanoseconds, 1};
    run->operations = comparison_alloc(&comparison, sizeof *run->operations);
    assert_non_null(run->operations);
    *run->operations = (struct compare_part){.name = "ntt", .fallbacks = 4, .fallback_reason = ""};
    run->operation_count = 1;
    end(&comparison, HEALCL_OK);
}

static void keeps_what_the_other_command_wrote(void **state)
{
    (void)state;
    static const char file[] = "maker-corp-chip-9000-x.json";
    struct comparison comparison;
    write_runs(1000, false);
    cJSON *tree = read_back(file);
    const cJSON *runs = cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "compare"), "runs");
    const cJSON *run = cJSON_GetArrayItem(runs, 0);
    assert_string_equal(text_at(tree, "level"), "ran");
    assert_string_equal(text_at(tree, "title"), "Chip 9000 / X");
    assert_string_equal(text_at(cJSON_GetObjectItem(tree, "compare"), "commit"), "0123456789ab");
    assert_string_equal(text_at(run, "transcript"), "t.json");
    assert_string_equal(text_at(run, "outcome"), "verified");
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(run, "median_ns")) == 1000);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(run, "steady_ns")) == 1000);
    assert_null(cJSON_GetObjectItem(run, "compute_ns"));
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(run, "fallbacks")) == 4);
    assert_null(cJSON_GetObjectItem(tree, "check"));
    cJSON_Delete(tree);

    begin(&comparison, "Maker(R) Corp.", "Chip(TM) 9000 / X")->check =
        (struct compare_check){.done = true, .verified = true, .calls = 7, .message = ""};
    end(&comparison, HEALCL_OK);
    tree = read_back(file);
    assert_true(number_at(tree, "check", "calls") == 7);
    assert_non_null(cJSON_GetObjectItem(tree, "compare"));
    cJSON_Delete(tree);

    write_runs(2000, true);
    tree = read_back(file);
    assert_string_equal(text_at(tree, "level"), "emulated");
    assert_true(number_at(tree, "check", "calls") == 7);
    runs = cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "compare"), "runs");
    assert_int_equal(cJSON_GetArraySize(runs), 1);
    run = cJSON_GetArrayItem(runs, 0);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(run, "median_ns")) == 2000);
    cJSON_Delete(tree);
}

/* Another device whose name has the same letters, and a file that is none. */
static void leaves_files_of_others_alone(void **state)
{
    (void)state;
    struct comparison comparison;
    write_runs(1000, false);
    begin(&comparison, "Maker Corp.", "chip 9000 x");
    end(&comparison, HEALCL_USAGE);
    assert_non_null(strstr(error.message, "has no results of chip 9000 x"));
    healcl_error_clear(&error);
    cJSON *tree = read_back("maker-corp-chip-9000-x.json");
    assert_non_null(cJSON_GetObjectItem(tree, "compare"));
    cJSON_Delete(tree);
    char path[128];
    snprintf(path, sizeof path, "%s/unknown-d.json", folder);
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    fputs("no JSON", stream);
    fclose(stream);
    begin(&comparison, "", "d");
    end(&comparison, HEALCL_USAGE);
    healcl_error_clear(&error);
}

static void names_are_harmless(void **state)
{
    (void)state;
    static const struct {
        const char *vendor, *name, *file;
    } cases[] = {{"../..", "/../etc/passwd", "etc-passwd.json"},
                 {"///", "...", "unknown.json"},
                 {"A\"B", "C\x1b[2J\n", "a-b-c-2j.json"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct comparison comparison;
        begin(&comparison, cases[i].vendor, cases[i].name);
        end(&comparison, HEALCL_OK);
        cJSON_Delete(read_back(cases[i].file));
    }
    assert_int_equal(compare_make_results("/dev/null", &error), HEALCL_USAGE);
    healcl_error_clear(&error);
    assert_int_equal(compare_make_results("/nowhere/at/all", &error), HEALCL_USAGE);
    healcl_error_clear(&error);
    expect_ok(compare_make_results(folder, &error), &error);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_the_other_command_wrote),
        cmocka_unit_test(leaves_files_of_others_alone),
        cmocka_unit_test(names_are_harmless),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
