
#include <errno.h>
#include <limits.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/supervise.h"
#include "core/control_group.h"
#include "core/file.h"
#include "core/format.h"

const struct program *this_program;

int exit_code(enum healcl_status status)
{
    return status == HEALCL_OK          ? EXIT_VERIFIED
           : status == HEALCL_DIFFERENT ? EXIT_DIFFERENT
           : status == HEALCL_USAGE     ? EXIT_USAGE
           : status == HEALCL_REFUSED   ? EXIT_REFUSED
                                        : EXIT_DEVICE;
}

/* ---------------------------------------------------------------- printing */

enum { LINE_SIZE = 8192 };

void print_notice(const char *format, ...)
{
    char line[LINE_SIZE];
    FORMAT_INTO(line, sizeof line, format);
    text_clean(line, false);
    progress_pause();
    fprintf(stderr, "%s: %s\n", this_program->name, line);
    progress_resume();
}

const char *last_words(const struct process_result *result)
{
    static const char prefix[] = "healcl: ";
    bool ours = strncmp(result->last_line, prefix, sizeof prefix - 1) == 0;
    return result->last_line + (ours ? sizeof prefix - 1 : 0);
}

int print_failure(const char *file, const struct healcl_error *error, bool verbose)
{
    char place[256] = "";
    if (verbose && error->file)
        snprintf(place, sizeof place, " [%s:%d]", error->file, error->line);
    print_notice("%s%s%s%s", file ? file : "", file ? ": " : "", error->message, place);
    if (error->detail)
        fprintf(stderr, "%s%s", error->detail,
                *error->detail && error->detail[strlen(error->detail) - 1] == '\n' ? "" : "\n");
    if (error->status == HEALCL_NO_MEMORY)
        signals_memory_is_reported();
    return exit_code(error->status);
}

int end_error(struct healcl_error *error, bool verbose)
{
    const int code =
        error->status == HEALCL_OK ? EXIT_VERIFIED : print_failure(NULL, error, verbose);
    healcl_error_clear(error);
    return code;
}

bool is_smart_terminal(FILE *stream)
{
    const char *terminal = getenv("TERM");
    return isatty(fileno(stream)) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

struct style style_of(FILE *stream)
{
    struct style style = {.stream = stream};
    struct winsize size;
    if (!isatty(fileno(stream)))
        return style;
    style.width = 80;
    if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        style.width = size.ws_col;
    const char *plain = getenv("NO_COLOR");
    style.colour = is_smart_terminal(stream) && !(plain && *plain);
    return style;
}

const char *device_selector(const struct device_info *info, char selector[SELECTOR_SIZE])
{
    snprintf(selector, SELECTOR_SIZE, "%u:%u", info->platform_index, info->device_index);
    return selector;
}

int finish_output(int code)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    /* A user whose command closed the pipe early, such as head, needs no message. */
    if (errno != EPIPE)
        print_notice("cannot write to standard output: %s", strerror(errno ? errno : EIO));
    return code == EXIT_VERIFIED ? EXIT_USAGE : code;
}

/* ---------------------------------------------------------------- arguments */

int usage_error(const struct command *command, const char *format, ...)
{
    char line[LINE_SIZE];
    FORMAT_INTO(line, sizeof line, format);
    if (is_first_rank())
        print_notice("%s; see '%s%s%s --help'", line, this_program->name, command ? " " : "",
                     command ? command->name : "");
    return EXIT_USAGE;
}

enum { HELP_INDENT = 27, HELP_WIDTH = 79 };

static void print_paragraphs(const char *text)
{
    for (size_t length; *text; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        text_wrap(stdout, xformat("%.*s", (int)length, text), 0, 0, HELP_WIDTH);
    }
}

int print_help(const struct command *command)
{
    static const char *const operands[] = {"", " FILE", " FILE...", " [FILE...]"};
    const struct command_option *option = command->options;
    print_paragraphs(command->help);
    if (command->usage)
        printf("\nUsage: %s\n\n", command->usage);
    else
        printf("\nUsage: %s %s [OPTIONS]%s\n\n", this_program->name, command->name,
               operands[command->operands]);
    do {
        int used = option->letter ? printf("  -%c, ", option->letter) : printf("      ");
        used += printf("--%s%s%s", option->name, option->value ? " " : "",
                       option->value ? option->value : "");
        used += printf("%*s", used + 2 > HELP_INDENT ? 2 : HELP_INDENT - used, "");
        text_wrap(stdout, option->help, (size_t)used, HELP_INDENT, HELP_WIDTH);
    } while ((option++)->kind != OPTION_HELP);
    if (command->notes) {
        putchar('\n');
        print_paragraphs(command->notes);
    }
    return finish_output(EXIT_VERIFIED);
}

void words_add(struct words *words, const char *text)
{
    const char **of = xkeep(xcalloc(words->count + 2, sizeof *of));
    for (size_t i = 0; i < words->count; i++)
        of[i] = words->of[i];
    of[words->count++] = text;
    words->of = of;
}

int take_word(const struct command *command, const struct command_option *option, void *self,
              const char *text)
{
    (void)command;
    words_add((struct words *)(void *)((char *)self + option->member), text);
    return EXIT_VERIFIED;
}

/* Parses digits at the start of text. *end points after them. */
static bool parse_digits(const char *text, const char **end, uint64_t *value)
{
    char *stop;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *value = strtoull(text, &stop, 10);
    *end = stop;
    return errno == 0;
}

bool parse_size(const char *text, uint64_t *bytes)
{
    static const char suffixes[] = "KMGT";
    const char *end;
    if (!parse_digits(text, &end, bytes) || *bytes == 0)
        return false;
    if (*end == 0)
        return true;
    const char *suffix = strchr(suffixes, *end >= 'a' ? *end - 'a' + 'A' : *end);
    if (!suffix || (end[1] && strcmp(end + 1, "iB") != 0))
        return false;
    for (const char *s = suffixes; s <= suffix; s++) {
        if (*bytes > INT64_MAX / 1024)
            return false;
        *bytes *= 1024;
    }
    return true;
}

bool parse_percent(const char *text, double most, double *percent)
{
    const size_t digits = strspn(text, "0123456789.");
    char *end;
    *percent = strtod(text, &end);
    return *text != '.' && digits > 0 && end == text + digits && *percent <= most &&
           (strcmp(end, "%") == 0 || (!*end && (*percent >= 1 || *percent <= 0)));
}

bool parse_count(const char *text, uint32_t most, uint32_t *count)
{
    const char *end;
    uint64_t value;
    if (!parse_digits(text, &end, &value) || *end != 0 || value == 0 || value > most)
        return false;
    *count = (uint32_t)value;
    return true;
}

/* ---------------------------------------------------------------- limits */

int take_expand(const struct command *command, const struct command_option *option, void *self,
                const char *text)
{
    const bool is_sdk = strcmp(text, "sdk") == 0;
    (void)option;
    if (!is_sdk && strcmp(text, "spec") != 0)
        return usage_error(command, "--expand takes spec or sdk, not '%.200s'", text);
    ((struct command_job *)self)->options.expand =
        is_sdk ? HEALCL_EXPAND_SDK : HEALCL_EXPAND_SPECIFICATION;
    return EXIT_VERIFIED;
}

uint64_t host_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && page_size > 0 ? (uint64_t)pages * (uint64_t)page_size : INT64_MAX;
    uint64_t group = control_group_memory("");
    return group < bytes ? group : bytes;
}

/* ---------------------------------------------------------------- files */

const char *bundled_folder(void)
{
    /* For an installed program; in the Python package or in build/; in build/release/. */
    static const char *const places[] = {"../share/healcl/transcripts", "../transcripts",
                                         "../../transcripts"};
    char program[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length < 0 ? 0 : length] = 0;
    const char *slash = strrchr(program, '/');
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        const char *folder = xformat("%.*s/%s", (int)(slash - program), program, places[i]);
        if (access(folder, X_OK) == 0)
            return folder;
    }
    return NULL;
}

enum healcl_status bundled_find(glob_t *found, struct healcl_error *error)
{
    const char *folder = bundled_folder();
    const int code = folder ? glob(xformat("%s/*.json*", folder), 0, NULL, found) : GLOB_NOMATCH;
    if (code == GLOB_NOSPACE)
        xmalloc_fail();
    if (code != 0)
        FAIL(error, HEALCL_USAGE, "there are no bundled transcripts: name a FILE");
    return HEALCL_OK;
}

/* Returns the bundled transcript of that name where no file has it, else the name. */
static char *find_operand(char *name)
{
    const char *folder = access(name, F_OK) == 0 || strchr(name, '/') ? NULL : bundled_folder();
    char *path = folder ? xformat("%s/%s", folder, name) : name;
    return access(path, R_OK) == 0 ? path : name;
}

#define STANDARD_OUTPUT "/dev/fd/1"

/* A file or folder that the command line names, or standard output, which has no option. */
struct named_file {
    const struct command_option *option; /* NULL: an operand, or standard output */
    const char *text;
    bool is_written, is_known; /* known: neither a pipe nor a device */
    dev_t device;
    ino_t node;       /* of the file, or of the folder that would contain it */
    const char *name; /* name in the folder; "" if the file itself exists */
};

/* Hard links to a file count as the same file. */
static void find_place(struct named_file *file, const char *path)
{
    struct stat about;
    file->name = "";
    if (stat(path, &about) != 0) {
        const char *slash = strrchr(path, '/');
        file->name = slash ? slash + 1 : path;
        if (stat(xformat("%.*s.", (int)(file->name - path), path), &about) != 0)
            return;
    }
    file->is_known = S_ISREG(about.st_mode) || S_ISDIR(about.st_mode);
    file->device = about.st_dev;
    file->node = about.st_ino;
}

static struct named_file name_file(const struct command_option *option, const char *text)
{
    const bool is_output = option && option->kind == OPTION_REPORT && strcmp(text, "-") == 0;
    if (option && option->kind == OPTION_INPUT)
        text += strcspn(text, "=") + 1;
    struct named_file file = {.option = option,
                              .text = text,
                              .is_written = option && option->kind >= OPTION_NEW_FILE &&
                                            option->kind <= OPTION_REPORT};
    find_place(&file, is_output ? STANDARD_OUTPUT : text);
    file.is_known |= is_output; /* even a pipe can take only one report */
    return file;
}

static bool is_same_place(const struct named_file *a, const struct named_file *b)
{
    return a->is_known && b->is_known && a->device == b->device && a->node == b->node &&
           strcmp(a->name, b->name) == 0;
}

/* Whether commands read or write this file in such a folder. */
static bool is_of_folder(const struct named_file *file, const struct named_file *folder)
{
    static const char *const read[] = {"*.json", "examples/*.json", "*.cl",     "*.so", "*.npy",
                                       "*.bin",  "*.aocx",          "binary_*", NULL};
    static const char *const written[] = {"entry_*.npy", "results.json", "manifest.json", NULL};
    const char *const *pattern = folder->is_written ? written : read;
    bool is_found = false;
    if (!folder->option || folder->option->kind == OPTION_FILE ||
        folder->option->kind == OPTION_REPORT || folder->option->kind == OPTION_NEW_FILE)
        return false;
    for (; *pattern && !is_found; pattern++) {
        glob_t found;
        struct named_file member = {.option = NULL};
        if (glob(xformat("%s/%s", folder->text, *pattern), GLOB_NOCHECK, NULL, &found) == 0) {
            for (size_t i = 0; i < found.gl_pathc && !is_found; i++) {
                find_place(&member, found.gl_pathv[i]);
                is_found = is_same_place(file, &member);
            }
            globfree(&found);
        }
    }
    return is_found;
}

static bool is_same(const struct named_file *a, const struct named_file *b)
{
    return is_same_place(a, b) || is_of_folder(a, b) || is_of_folder(b, a);
}

/* A report on standard output takes the place of what else would stand there. */
static bool is_for_stdout(const struct named_file *file)
{
    return strcmp(file->text, "-") == 0 || strncmp(file->text, "/dev/", 5) == 0;
}

/* Returns "--json 'report.json'", "standard output" or "'digits.json.bin'". */
static const char *describe(const struct named_file *file)
{
    const char *option = file->option ? file->option->name : NULL;
    if (!option && strcmp(file->text, "-") == 0)
        return "standard output";
    return xformat("%s%s%s'%.400s'", option ? "--" : "", option ? option : "", option ? " " : "",
                   file->text);
}

static int check_pair(const struct command *command, const struct named_file *written,
                      const struct named_file *other)
{
    const bool is_first = !written->option && strcmp(written->text, "-") == 0;
    if (!is_same(written, other) ||
        (other->is_written && (other <= written || other->option == written->option ||
                               (is_first && is_for_stdout(other)))))
        return GOES_ON;
    return usage_error(command,
                       other->is_written ? "%s and %s write the same file"
                                         : "%s would overwrite the input %s",
                       describe(written), describe(other));
}

/* Refuses an output that is also read, or written twice. */
static int check_files(const struct command *command, const struct named_file *files, size_t count)
{
    int code = GOES_ON;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; files[i].is_written && j < count && code == GOES_ON; j++)
            code = check_pair(command, &files[i], &files[j]);
    return code;
}

/* Whether an existing file may contain payloads, because it begins as a .npy file, or a folder may
 * have such files. If none may, no transcript is read to find its payloads. */
static bool may_have_payloads(const struct named_file *file)
{
    const char *path = strcmp(file->text, "-") == 0 ? STANDARD_OUTPUT : file->text;
    char magic[7] = "";
    int opened;
    if (!file->is_known || *file->name || file_open_regular(path, &opened, NULL) != HEALCL_OK)
        return file->is_known && file->option && file->option->kind == OPTION_NEW_FOLDER;
    (void)!read(opened, magic, sizeof magic - 1);
    close(opened);
    return strcmp(magic, "\x93NUMPY") == 0;
}

/* Returns the path of the file with a transcript's payloads. Reads the transcript until the path is
 * known. NULL: there is none. */
static const char *find_payloads(const char *transcript)
{
    struct source source;
    struct entry_reader *reader = NULL;
    const struct entry *entry;
    const char *path = NULL;
    if (source_open(&source, transcript, NULL) != HEALCL_OK)
        return NULL;
    struct arena *arena = arena_create();
    enum healcl_status status =
        arena ? entry_reader_open(&source, arena, &reader, NULL) : HEALCL_NO_MEMORY;
    for (; status == HEALCL_OK && !source_beside(&source); status = entry ? status : HEALCL_REFUSED)
        status = entry_reader_next(reader, &entry, NULL);
    if (source_beside(&source))
        path = xformat("%s", source_beside(&source));
    entry_reader_close(reader);
    arena_free(arena);
    source_close(&source);
    return path;
}

/* ---------------------------------------------------------------- options */

/* Makes the arguments of getopt_long, with the letters as "d:qvh". */
static void list_options(const struct command_option *list, struct option options[OPTIONS_MAX],
                         char letters[2 * OPTIONS_MAX])
{
    int count = 0;
    do {
        const bool takes_value = list->kind != OPTION_FLAG && list->kind != OPTION_HELP;
        options[count] = (struct option){list->name, takes_value ? required_argument : no_argument,
                                         NULL, list->letter ? list->letter : 256 + count};
        if (list->letter)
            *letters++ = list->letter;
        if (list->letter && takes_value)
            *letters++ = ':';
        count++;
    } while ((list++)->kind != OPTION_HELP);
    options[count] = (struct option){NULL, 0, NULL, 0};
    *letters = 0;
}

static int take_value(const struct command *command, const struct command_option *option,
                      struct command_job *job)
{
    void *member = (char *)job + option->member;
    if (option->take)
        return option->take(command, option, job, optarg);
    switch (option->kind) {
    case OPTION_HELP:
    case OPTION_MANIFESTS: break;
    case OPTION_FLAG: *(bool *)member = true; break;
    case OPTION_REPORT:
        if (!*optarg || (*optarg == '-' && optarg[1]))
            return usage_error(command, "--%s takes a FILE, or - for standard output, not '%s'",
                               option->name, optarg);
        *(struct report_file *)member =
            (struct report_file){.path = optarg,
                                 .on_stdout = *optarg == '-',
                                 .is_junit = strcmp(option->name, "junit") == 0};
        break;
    case OPTION_COUNT:
        if (!parse_count(optarg, option->most, member))
            return usage_error(command, "--%s takes %s from 1 to %" PRIu32 ", not '%s'",
                               option->name,
                               strcmp(option->name, "timeout") == 0 ? "seconds" : "a number",
                               option->most, optarg);
        break;
    case OPTION_BYTES:
        if (!parse_size(optarg, member))
            return usage_error(
                command, "--%s takes a number such as 512M (K, M, G, T: powers of 1024), not '%s'",
                option->name, optarg);
        break;
    default: *(const char **)member = optarg;
    }
    return EXIT_VERIFIED;
}

/* ---------------------------------------------------------------- the command line */

/* A command line being parsed. */
struct taken {
    const struct command *command;
    struct command_job *job;
    struct named_file *files;
    size_t count;
    bool opens_device;
};

static int take_option(struct taken *taken, const struct command_option *option)
{
    const struct command *command = taken->command;
    if (option->kind == OPTION_HELP)
        return print_help(command);
    const int code = take_value(command, option, taken->job);
    if (code != EXIT_VERIFIED)
        return code;
    if (option->decides_device)
        taken->opens_device = command->device != DEVICE_HERE;
    if (option->kind >= OPTION_FILE && option->kind <= OPTION_REPORT)
        taken->files[taken->count++] = name_file(option, optarg);
    return GOES_ON;
}

static int take_operands(struct taken *taken, int argc, char **argv)
{
    const struct command *command = taken->command;
    const enum command_operands operands = command->operands;
    struct command_job *job = taken->job;
    struct words outputs = {.count = 0};
    const int count = argc - optind;
    if (operands == OPERANDS_NONE && count > 0)
        return usage_error(command, "unexpected argument '%s'", argv[optind]);
    if (operands == OPERANDS_FILE && count > 1)
        return usage_error(command, "only one FILE is allowed, not '%s' too", argv[optind + 1]);
    if ((operands == OPERANDS_FILE || operands == OPERANDS_FILES) && count == 0)
        return usage_error(command, "no FILE is named");
    bool may_replace = false;
    for (size_t i = 0; i < taken->count; i++)
        may_replace |= taken->files[i].is_written && may_have_payloads(&taken->files[i]);
    for (int i = optind; i < argc; i++) {
        argv[i] = find_operand(argv[i]);
        taken->files[taken->count++] = name_file(NULL, argv[i]);
        const char *payloads = may_replace ? find_payloads(argv[i]) : NULL;
        if (payloads)
            taken->files[taken->count++] = name_file(NULL, payloads);
    }
    job->arguments = argv + 1;
    job->argument_count = (size_t)argc - 1;
    job->files = argv + optind;
    job->file_count = (size_t)count;
    job->file = operands == OPERANDS_FILE ? argv[optind] : NULL;
    if (command->steps.outputs)
        command->steps.outputs(job, &outputs);
    for (size_t i = 0; i < outputs.count; i++) {
        taken->files[taken->count] = name_file(NULL, outputs.of[i]);
        taken->files[taken->count++].is_written = true;
    }
    return check_files(command, taken->files, taken->count);
}

/* getopt_long prints its own errors. */
static int take_all(struct taken *taken, int argc, char **argv)
{
    struct option options[OPTIONS_MAX];
    char letters[2 * OPTIONS_MAX];
    list_options(taken->command->options, options, letters);
    opterr = is_first_rank();
    for (int found; (found = getopt_long(argc, argv, letters, options, NULL)) != -1;) {
        size_t at = 0;
        if (found == '?')
            return EXIT_USAGE;
        while (options[at].val != found)
            at++;
        const int code = take_option(taken, &taken->command->options[at]);
        if (code != GOES_ON)
            return code;
    }
    return take_operands(taken, argc, argv);
}

/* Loads the folders of --ops and --trust. Their native code runs in the child process. */
static int load_operations(const struct taken *taken)
{
    static struct healcl_operations *loaded; /* lives as long as the process */
    struct healcl_error error = {.status = HEALCL_OK};
    enum healcl_status status = HEALCL_OK;
    for (size_t i = 0; i < taken->count && status == HEALCL_OK; i++) {
        const struct named_file *file = &taken->files[i];
        if (file->option && file->option->kind == OPTION_MANIFESTS)
            status = (strcmp(file->option->name, "trust") == 0
                          ? healcl_operations_load_trusted
                          : healcl_operations_load)(file->text, &loaded, &error);
    }
    taken->job->options.operations = loaded;
    return status == HEALCL_OK ? GOES_ON : end_error(&error, false);
}

int take_arguments(const struct command *command, int argc, char **argv, struct command_job *job)
{
    struct taken taken = {.command = command,
                          .job = job,
                          .files = xcalloc(2 * (size_t)argc + OUTPUTS_MAX, sizeof *taken.files),
                          .opens_device = command->device == DEVICE_HERE};
    taken.files[taken.count] = (struct named_file){.text = "-", .is_written = true};
    find_place(&taken.files[taken.count++], STANDARD_OUTPUT);
    argv[0] = (char *)(uintptr_t)this_program->name; /* messages of getopt_long begin like this */
    int code = take_all(&taken, argc, argv);
    if (code == GOES_ON)
        supervise(command, job, taken.opens_device);
    if (code == GOES_ON)
        code = load_operations(&taken);
    free(taken.files);
    return code;
}
