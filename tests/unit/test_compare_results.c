/* Files of devices: their names, what they hold, and what of it stays. */
#include <stdlib.h>
#include <unistd.h>

#include "cli/comparison.h"
#include "test_transcript_common.h"

static struct healcl_error error;
static char folder[] = "/tmp/healcl_test_XXXXXX";

static cJSON *begin(struct comparison *comparison, const char *vendor, const char *name)
{
    comparison_init(comparison, 0);
    compare_put_text(comparison->top, "commit", "0123456789ab");
    cJSON_AddItemToArray(comparison->transcripts,
                         cJSON_Parse("{\"file\": \"/home/somebody/t.json\", \"bytes\": 3, "
                                     "\"digest\": \"0123456789abcdef\"}"));
    cJSON *device = compare_add_device(comparison, NULL);
    compare_put_text(device, "index", "0:0");
    compare_put_text(device, "vendor", vendor);
    compare_put_text(device, "name", name);
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
    char path[128];
    cJSON *tree = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    expect_ok(compare_read_file(path, &tree, &error), &error);
    assert_non_null(tree);
    char *text = cJSON_Print(tree);
    assert_null(strstr(text, "somebody"));
    cJSON_free(text);
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

static void write_runs(int nanoseconds, bool emulator)
{
    struct comparison comparison;
    char text[256];
    const struct process_result process = {.end = PROCESS_EXITED, .is_own = true, .text = text};
    compare_put(begin(&comparison, "Maker(R) Corp.", "Chip(TM) 9000 / X"), "emulator",
                cJSON_CreateBool(emulator));
    snprintf(
        text, sizeof text,
        "{\"verified\": true, \"results\": {\"total\": 2, \"compared\": 2}, \"runs_ns\": [%d], "
        "\"steady\": {\"requests_ns\": [%d]}, \"fallbacks\": 4}",
        nanoseconds, nanoseconds);
    compare_take_run(&comparison, compare_add_run(&comparison, 0, 0), &process);
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
    assert_string_equal(text_at(run, "outcome"), "verified");
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(run, "median_ns")) == 1000);
    assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(run, "fallbacks")) == 4);
    cJSON_Delete(tree);

    compare_put_number(begin(&comparison, "Maker(R) Corp.", "Chip(TM) 9000 / X"), "check.calls", 7);
    end(&comparison, HEALCL_OK);
    tree = read_back(file);
    assert_true(number_at(tree, "check", "calls") == 7);
    assert_non_null(cJSON_GetObjectItem(tree, "compare"));
    cJSON_Delete(tree);

    write_runs(2000, true);
    tree = read_back(file);
    assert_string_equal(text_at(tree, "level"), "emulated");
    assert_true(number_at(tree, "check", "calls") == 7);
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
