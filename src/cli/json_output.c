#include "cli/json_output.h"

#include <string.h>

#include "cli/cli.h"

void json_output_set(struct json_output *output, const char *path)
{
    output->path = path;
    output->on_stdout = strcmp(path, "-") == 0;
}

enum healcl_status json_output_open(struct json_output *output, struct healcl_error *error)
{
    if (!output->path || output->on_stdout)
        return HEALCL_OK;
    return new_file_open(&output->file, output->path, error);
}

FILE *json_output_stream(const struct json_output *output)
{
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
    new_file_discard(&output->file);
}
