/* healcl-mpi serve */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/requests.h"
#include "core/array.h"
#include "core/file.h"
#include "mpi/commands.h"
#include "mpi/server.h"

enum { INPUTS_MAX = 64 };

/* One `healcl-mpi serve`. */
struct serve_command {
    struct opening opening;
    bool resume;
    uint32_t sessions, batch;
    const char *folder;
    const char *entries[INPUTS_MAX]; /* "ENTRY=PLACE" */
    const char *places[INPUTS_MAX];  /* what stands behind '=' */
    size_t input_count;

    struct ranks ranks;
    struct request_list list;
    size_t inputs[INPUTS_MAX];
    struct server server;
    struct serve_facts facts; /* of rank 0 */
};

/* ---------------------------------------------------------------- opening */

static enum healcl_status find_inputs(struct serve_command *self, struct healcl_error *error)
{
    for (size_t i = 0; i < self->input_count; i++) {
        const int length = (int)(self->places[i] - self->entries[i]) - 1;
        TRY(find_input(self->opening.transcript, "input", self->entries[i], (size_t)length,
                       &self->inputs[i], error));
        for (size_t other = 0; other < i; other++)
            if (self->inputs[other] == self->inputs[i])
                FAIL(error, HEALCL_USAGE, "--input: entry %.*s is named twice",
                     length < 100 ? length : 100, self->entries[i]);
    }
    return HEALCL_OK;
}

static enum healcl_status make_folder(const struct serve_command *self, struct healcl_error *error)
{
    struct stat folder;
    if (mkdir(self->folder, 0777) != 0 && errno != EEXIST)
        FAIL_FILE(error, "cannot make " PATH_FORMAT ": %s", self->folder, strerror(errno));
    if (stat(self->folder, &folder) != 0 || !S_ISDIR(folder.st_mode))
        FAIL_FILE(error, PATH_FORMAT " is no folder", self->folder);
    return HEALCL_OK;
}

/* Results would replace inputs that lists name in their folder. */
static enum healcl_status check_list(const struct serve_command *self, struct healcl_error *error)
{
    const struct request_list *list = &self->list;
    char result[PATH_MAX];
    struct stat read, written;
    for (size_t i = 0; i < list->count * list->inputs; i++) {
        const char *path = request_path(list, i / list->inputs, i % list->inputs);
        const char *slash = strrchr(path, '/');
        (void)snprintf(result, sizeof result, "%s/%s", self->folder, slash ? slash + 1 : path);
        if (stat(result, &written) == 0 && stat(path, &read) == 0 &&
            read.st_dev == written.st_dev && read.st_ino == written.st_ino)
            FAIL(error, HEALCL_USAGE, "--results writes over the input " PATH_FORMAT, path);
    }
    return HEALCL_OK;
}

/* What rank 0 alone does. */
static int begin(struct serve_command *self)
{
    struct healcl_error error = {.status = HEALCL_OK};
    enum healcl_status status = make_folder(self, &error);
    if (status == HEALCL_OK)
        status = request_list_read(&self->list, self->places, self->input_count, &error);
    if (status == HEALCL_OK)
        status = check_list(self, &error);
    const int code = status == HEALCL_OK ? GOES_ON : print_error(NULL, &error, false);
    healcl_error_clear(&error);
    return code;
}

static enum healcl_status begin_server(struct serve_command *self, struct healcl_error *error)
{
    struct server *server = &self->server;
    TRY(request_list_share(&self->list, &self->ranks, error));
    TRY(journal_open(&server->journal, self->folder, self->ranks.rank, error));
    if (self->resume)
        TRY(journal_read(&server->journal, self->folder, error));
    return HEALCL_OK;
}

/* Returns GOES_ON or the exit code of all. */
static int serve(struct serve_command *self)
{
    struct server *server = &self->server;
    struct healcl_error error = {.status = HEALCL_OK};
    *server = (struct server){
        .ranks = &self->ranks,
        .opening = &self->opening,
        .list = &self->list,
        .inputs = self->inputs,
        .folder = self->folder,
        .sessions = self->sessions,
        .batch = self->batch,
        .resume = self->resume,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .journal = {.file = -1},
    };
    snprintf(server->served.host, sizeof server->served.host, "%s", self->ranks.host);
    snprintf(server->served.device, sizeof server->served.device, "%s",
             opening_device(&self->opening));
    int code = ranks_agree(&self->ranks, find_inputs(self, &error), NULL, &error);
    if (code == GOES_ON)
        code = ranks_agree(&self->ranks, begin_server(self, &error), NULL, &error);
    return code == GOES_ON ? server_run(server) : code;
}

/* ---------------------------------------------------------------- the report */

/* The texts of failures become facts of their own. They live as long as text. */
static void find_failures(struct serve_facts *facts, const char *text, const uint64_t *sizes)
{
    size_t room = 0;
    for (int rank = 0; rank < facts->rank_count; rank++)
        room += facts->ranks[rank].failed;
    facts->failures = calloc(room + 1, sizeof *facts->failures);
    for (int rank = 0; facts->failures && rank < facts->rank_count; rank++)
        for (const char *end = text + sizes[rank]; text < end;) {
            const char *message = text + strlen(text) + 1;
            facts->failures[facts->failure_count++] = (struct failure){rank, text, message};
            text = message + strlen(message) + 1;
        }
}

static int print_reports(struct serve_command *self)
{
    const struct style style = style_of(stdout);
    cJSON *document = report_serve(&self->facts);
    if (!self->opening.quiet && !self->opening.json.on_stdout)
        report_serve_text(document, &style);
    int code = finish_output(report_file_json(&self->opening.json, document, EXIT_VERIFIED, false));
    for (int rank = 0; rank < self->facts.rank_count; rank++)
        if (code == EXIT_VERIFIED && self->facts.ranks[rank].failed > 0)
            code = EXIT_REFUSED;
    return code;
}

/* All ranks call this. Returns the exit code, which is the same at all of them. */
static int report(struct serve_command *self)
{
    struct server *server = &self->server;
    struct ranks *ranks = &self->ranks;
    size_t sizes[3] = {sizeof server->served, server->served.requests * sizeof *server->nanoseconds,
                       server->failures.size};
    uint64_t *of_failures = NULL;
    server->served.rank = ranks->rank;
    server->served.latencies = latencies_of(server->nanoseconds, server->served.requests);
    self->facts = (struct serve_facts){
        .file = self->opening.file, .folder = self->folder, .rank_count = ranks->count};
    ranks_meet(ranks);
    self->facts.ranks = ranks_gather(ranks, &server->served, sizes[0], NULL);
    self->facts.nanoseconds = ranks_gather(ranks, server->nanoseconds, sizes[1], NULL);
    char *failures = ranks_gather(ranks, server->failures.data, sizes[2], &of_failures);
    int code = EXIT_VERIFIED;
    if (ranks->rank == 0) {
        find_failures(&self->facts, failures, of_failures);
        code = print_reports(self);
    }
    free(self->facts.ranks);
    free(self->facts.nanoseconds);
    free(self->facts.failures);
    free(failures);
    free(of_failures);
    return ranks_first(ranks, code);
}

/* ---------------------------------------------------------------- options */

static int take_input(const struct command *command, const struct command_option *option,
                      void *memory, const char *text)
{
    struct serve_command *self = memory;
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return usage_error(command, "--%s takes ENTRY=DIR or ENTRY=LIST, not '%.200s'",
                           option->name, text);
    if (self->input_count == INPUTS_MAX)
        return usage_error(command, "--%s: %d inputs at most", option->name, INPUTS_MAX);
    self->entries[self->input_count] = text;
    self->places[self->input_count++] = equals + 1;
    return EXIT_VERIFIED;
}

static int check_options(const struct command *command, const void *memory)
{
    const struct serve_command *self = memory;
    if (self->input_count == 0)
        return usage_error(command, "--input is missing");
    if (!self->folder)
        return usage_error(command, "--results is missing");
    return GOES_ON;
}

static const struct command_option options[] = {
    {"input", 'i', OPTION_INPUT, .member = 0, .take = take_input},
    {"results", 0, OPTION_NEW_FOLDER, KEPT_IN(struct serve_command, folder)},
    {"resume", 0, OPTION_FLAG, KEPT_IN(struct serve_command, resume)},
    {"sessions", 0, OPTION_COUNT, KEPT_IN(struct serve_command, sessions), .most = SESSIONS_MAX},
    {"batch", 0, OPTION_COUNT, KEPT_IN(struct serve_command, batch), .most = BATCH_MAX},
    OPENING_OPTIONS(struct serve_command, opening),
    END_OF_OPTIONS,
};

static int run(const struct command *command, int argc, char **argv)
{
    static struct serve_command self = {.sessions = 2,
                                        .batch = 1}; /* threads that hang at the end use it, too */
    int code = opening_take(&self.opening, &self.ranks, command, argc, argv, &self, check_options);
    if (code == GOES_ON)
        code = ranks_first(&self.ranks, self.ranks.rank == 0 ? begin(&self) : GOES_ON);
    if (code == GOES_ON)
        code = opening_open(&self.opening, &self.ranks);
    if (code == GOES_ON) {
        code = serve(&self);
        if (code == GOES_ON)
            code = report(&self);
        server_release(&self.server);
    }
    request_list_release(&self.list);
    opening_release(&self.opening);
    ranks_end(&self.ranks);
    return code;
}

const struct command command_serve = {
    .name = "serve",
    .summary = "run many requests of a transcript, each on the next free device",
    .help =
        "Runs a transcript once for each request, on all devices: a request is a file NAME.npy "
        "for\n"
        "each live input, and its result becomes NAME.npy in another folder.\n"
        "\n"
        "Usage: mpirun -n RANKS healcl-mpi serve --input ENTRY=DIR|LIST --results DIR\n"
        "                                        [OPTIONS] FILE\n"
        "\n"
        "  -i, --input ENTRY=DIR|LIST\n"
        "                           an upload by its entry, or its tensor's name, as healcl run\n"
        "                           takes it, and where its tensors are: all files *.npy of a\n"
        "                           folder but hidden ones, or those whose paths are the lines\n"
        "                           of a file; repeatable\n"
        "      --results DIR        where results go: NAME.npy, or NAME.ENTRY.npy where the\n"
        "                           transcript has several; a file is there once it is whole\n"
        "      --resume             leave out requests whose results are there, made from the\n"
        "                           same inputs and the same transcript\n"
        "      --sessions N         requests that each rank has in hand, 2 by default: one "
        "uploads\n"
        "                           while another one computes, and each keeps keys and weights\n"
        "      --batch B            requests that run as one, 1 by default: keys and weights are\n"
        "                           read once for all; fewer where memory has no "
        "room\n" OPENING_HELP "  -h, --help               this text\n"
        "\n",
    .more_help =
        "Ranks take requests one by one, so that faster devices take more. All ranks see the same\n"
        "files (docs/SCALE.md). A request that its data make refuse is told, and the others go "
        "on.\n"
        "Where a device fails, or a rank has another healcl, transcript or plan than rank 0, all\n"
        "ranks end, and one line names rank and host.\n"
        "\n"
        "Exit codes: 0 all is done; 2 wrong usage; 3 the transcript or a request is refused, or\n"
        "ranks are not alike; 4 a device or OpenCL failed, or memory ran out.\n",
    .options = options,
    .operands = OPERANDS_FILE,
    .device = DEVICE_HERE,
    .run = run,
};
