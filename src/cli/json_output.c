#include "cli/json_output.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

void json_output_set(struct json_output *output, const char *path)
{
    output->path = path;
    output->on_stdout = strcmp(path, "-") == 0;
}

static void turn_stdout_away(struct json_output *output)
{
    fflush(stdout);
    int kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (kept >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
        output->kept_stdout = kept;
    else if (kept >= 0)
        close(kept);
}

static void turn_stdout_back(struct json_output *output)
{
    if (output->kept_stdout == 0)
        return;
    fflush(stdout);
    dup2(output->kept_stdout, STDOUT_FILENO);
    close(output->kept_stdout);
    output->kept_stdout = 0;
}

enum healcl_status json_output_open(struct json_output *output, struct healcl_error *error)
{
    if (output->on_stdout)
        turn_stdout_away(output);
    else if (output->path)
        return new_file_open(&output->file, output->path, error);
    return HEALCL_OK;
}

FILE *json_output_stream(struct json_output *output)
{
    turn_stdout_back(output);
    return output->on_stdout ? stdout : output->file.stream;
}

int json_output_end(struct json_output *output, enum healcl_status written, bool verbose)
{
    int code = printed(written);
    if (output->on_stdout || code != EXIT_VERIFIED)
        return code;
    struct healcl_error error = {.status = HEALCL_OK};
    if (new_file_commit(&output->file, &error) != HEALCL_OK)
        code = print_error(NULL, &error, verbose);
    healcl_error_clear(&error);
    return code;
}

int json_output_error(struct json_output *output, const char *file,
                      const struct healcl_error *error, bool verbose)
{
    /* Where a file cannot be read the message names it itself. */
    int code = print_error(error->status == HEALCL_USAGE ? NULL : file, error, verbose);
    FILE *stream = json_output_stream(output);
    if (stream)
        (void)json_output_end(output, report_error_json(file, error, stream), verbose);
    return code;
}

void json_output_discard(struct json_output *output)
{
    turn_stdout_back(output);
    new_file_discard(&output->file);
}
