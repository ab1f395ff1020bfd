#include "cli/report_file.h"

#include <fcntl.h>
#include <unistd.h>

#include "core/verdict.h"

static void turn_stdout_away(struct report_file *output)
{
    fflush(stdout);
    int kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (kept >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
        output->kept_stdout = kept;
    else if (kept >= 0)
        close(kept);
}

static void turn_stdout_back(struct report_file *output)
{
    if (output->kept_stdout == 0)
        return;
    fflush(stdout);
    dup2(output->kept_stdout, STDOUT_FILENO);
    close(output->kept_stdout);
    output->kept_stdout = 0;
}

enum healcl_status report_file_open(struct report_file *output, struct healcl_error *error)
{
    if (output->on_stdout)
        turn_stdout_away(output);
    else if (output->path)
        return new_file_open(&output->file, output->path, error);
    return HEALCL_OK;
}

int report_file_begin(struct report_file *output)
{
    struct healcl_error error = {.status = HEALCL_OK};
    (void)report_file_open(output, &error);
    return end_error(&error, false);
}

FILE *report_file_stream(struct report_file *output)
{
    turn_stdout_back(output);
    return output->on_stdout ? stdout : output->file.stream;
}

int report_file_end(struct report_file *output, int code, bool verbose)
{
    struct healcl_error error = {.status = HEALCL_OK};
    if (!output->on_stdout)
        (void)new_file_commit(&output->file, &error);
    const int end = end_error(&error, verbose);
    if (end == EXIT_VERIFIED)
        verdict_report_file(output->is_junit);
    return code == EXIT_VERIFIED ? end : code;
}

static void write_json(const char *file, const struct healcl_error *error, bool is_of_driver,
                       FILE *stream)
{
    cJSON *document = json_report();
    if (file)
        json_add_string(document, "transcript", file);
    report_add_error(document, error, is_of_driver);
    json_write(document, stream);
}

static void write_junit(const char *file, const struct healcl_error *error, FILE *stream)
{
    struct junit junit;
    junit_init(&junit, "healcl");
    junit_suite(&junit, file ? file : "healcl");
    junit_case(&junit, healcl_status_name(error->status), 0);
    junit_outcome(&junit, error->status == HEALCL_DIFFERENT ? JUNIT_FAILURE : JUNIT_ERROR,
                  healcl_status_name(error->status), error->message);
    if (error->detail)
        junit_line(&junit, error->detail);
    junit_print(&junit, stream);
}

void report_file_error(struct report_file *output, const char *file,
                       const struct healcl_error *error, bool is_of_driver, bool verbose)
{
    FILE *stream = report_file_stream(output);
    if (!stream)
        return;
    if (output->is_junit)
        write_junit(file, error, stream);
    else
        write_json(file, error, is_of_driver, stream);
    (void)report_file_end(output, EXIT_DEVICE, verbose);
}

int report_files_error(struct report_file *json, struct report_file *junit, const char *file,
                       const struct healcl_error *error, bool is_of_driver, bool verbose)
{
    /* The message about an unreadable file already names it. */
    int code = print_failure(error->status == HEALCL_USAGE ? NULL : file, error, verbose);
    report_file_error(json, file, error, is_of_driver, verbose);
    report_file_error(junit, file, error, is_of_driver, verbose);
    return code;
}

void report_file_discard(struct report_file *output)
{
    turn_stdout_back(output);
    new_file_discard(&output->file);
}
