#include "cli/command_job.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---------------------------------------------------------------- reports */

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
    if (output->is_junit) {
        write_junit(file, error, stream);
    } else {
        cJSON *document = json_report();
        JSON_ADD(document, JSON_IF(file, STRING("transcript", file)));
        report_add_error(document, error, is_of_driver);
        json_write(document, stream);
    }
    (void)report_file_end(output, EXIT_DEVICE, verbose);
}

/* Prints the error of a command, and writes it to its reports. Returns the exit code. */
static int report_error(struct command_job *job, const struct healcl_error *error)
{
    /* The message about an unreadable file already names it. */
    int code = print_failure(error->status == HEALCL_USAGE ? NULL : job->file, error, job->verbose);
    report_file_error(&job->json, job->file, error, job->is_of_driver, job->verbose);
    report_file_error(&job->junit, job->file, error, job->is_of_driver, job->verbose);
    return code;
}

void report_file_discard(struct report_file *output)
{
    turn_stdout_back(output);
    new_file_discard(&output->file);
}

/* ---------------------------------------------------------------- jobs */

/* Prints warnings of the driver, and of compilers about vendors' sources. device may be NULL. */
static void warn_of_device(const struct healcl_device *device)
{
    const char *warning;
    for (size_t i = 0; device && (warning = device_warning(device, i)); i++)
        print_notice("warning: %s", warning);
    if (device && device->programs->warnings)
        fprintf(stderr, "%s: warning: messages of the compiler about manifests' sources:\n%s",
                this_program->name, device->programs->warnings);
}

int job_report(const struct command *command, void *self)
{
    struct command_job *job = self;
    const struct command_steps *steps = &command->steps;
    const struct style style = style_of(stdout);
    cJSON *document = steps->report ? steps->report(self) : NULL;
    int code = EXIT_VERIFIED;
    if (!job->quiet && !job->json.on_stdout && !job->junit.on_stdout)
        steps->print(self, document, &style);
    FILE *stream = report_file_stream(&job->junit);
    if (stream) {
        steps->junit(self, document, stream);
        code = report_file_end(&job->junit, code, job->verbose);
    }
    stream = report_file_stream(&job->json);
    if (stream) {
        json_print(document, stream);
        code = report_file_end(&job->json, code, job->verbose);
    }
    cJSON_Delete(document);
    return code;
}

/* Checks that a file can be written, before the work that fills it. */
static enum healcl_status check_new_file(const char *path, struct healcl_error *error)
{
    struct new_file file;
    struct stat about;
    if (!path || (stat(path, &about) == 0 && !S_ISREG(about.st_mode)))
        return HEALCL_OK;
    TRY(new_file_open(&file, path, error));
    new_file_discard(&file);
    return HEALCL_OK;
}

int job_run(const struct command *command, void *self)
{
    const struct command_steps *steps = &command->steps;
    struct command_job *job = self;
    struct healcl_error error = {.status = HEALCL_OK};
    progress_start(!job->quiet);
    enum healcl_status status = report_file_open(&job->json, &error);
    THEN(status, report_file_open(&job->junit, &error));
    for (const struct command_option *option = command->options;
         status == HEALCL_OK && option->kind != OPTION_HELP; option++)
        if (option->kind == OPTION_NEW_FILE)
            status = check_new_file(
                *(const char *const *)(const void *)((const char *)self + option->member), &error);
    if (status == HEALCL_OK && steps->work)
        status = steps->work(self, &error);
    progress_end();
    warn_of_device(job->device);
    int code = status == HEALCL_OK ? job_report(command, self) : report_error(job, &error);
    code = finish_output(code);
    if (steps->conclude)
        code = steps->conclude(self, code);
    healcl_error_clear(&error);
    healcl_device_close(job->device);
    report_file_discard(&job->json);
    report_file_discard(&job->junit);
    return code;
}
