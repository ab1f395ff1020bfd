#include "cli/command_job.h"

#include <sys/stat.h>

/* Prints a warning if the driver does not report the arguments of manifests' kernels. */
static void warn_of_device(const struct healcl_device *device)
{
    const char *warning;
    for (size_t i = 0; device && (warning = device_warning(device, i)); i++)
        print_notice("warning: %s", warning);
}

/* Prints warnings of compilers about vendors' sources. */
static void warn_of_builds(const struct healcl_device *device)
{
    if (!device || !device->programs->warnings)
        return;
    print_notice("warning: the compiler says of manifests' sources:");
    fputs(device->programs->warnings, stderr);
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
    progress_start(&job->progress, !job->quiet);
    enum healcl_status status = report_file_open(&job->json, &error);
    if (status == HEALCL_OK)
        status = report_file_open(&job->junit, &error);
    for (const struct command_option *option = command->options;
         status == HEALCL_OK && option->kind != OPTION_HELP; option++)
        if (option->kind == OPTION_NEW_FILE)
            status = check_new_file(
                *(const char *const *)(const void *)((const char *)self + option->member), &error);
    if (status == HEALCL_OK && steps->work)
        status = steps->work(self, &error);
    progress_end(&job->progress);
    warn_of_device(job->device);
    warn_of_builds(job->device);
    int code = status == HEALCL_OK ? job_report(command, self)
                                   : report_files_error(&job->json, &job->junit, job->file, &error,
                                                        job->is_of_driver, job->verbose);
    code = finish_output(code);
    if (steps->conclude)
        code = steps->conclude(self, code);
    healcl_error_clear(&error);
    healcl_device_close(job->device);
    report_file_discard(&job->json);
    report_file_discard(&job->junit);
    return code;
}
