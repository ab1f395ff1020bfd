#include "cli/command_job.h"

const struct operation_table *job_table(const struct command_job *job)
{
    return job->limits.operations ? job->limits.operations->table : NULL;
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
    return report_file_json(&job->json, document, code, job->verbose);
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
    if (status == HEALCL_OK && steps->work)
        status = steps->work(self, &error);
    progress_end(&job->progress);
    warn_of_device(job->device);
    warn_of_builds(job->device);
    int code = status == HEALCL_OK ? job_report(command, self)
                                   : report_files_error(&job->json, &job->junit, job->file, &error,
                                                        false, job->verbose);
    code = finish_output(code);
    if (steps->conclude)
        code = steps->conclude(self, code);
    healcl_error_clear(&error);
    healcl_device_close(job->device);
    report_file_discard(&job->json);
    report_file_discard(&job->junit);
    return code;
}
