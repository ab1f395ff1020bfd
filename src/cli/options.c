#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/report_file.h"
#include "cli/supervise.h"
#include "tools/xmalloc.h"

/* ---------------------------------------------------------------- files */

#define STANDARD_OUTPUT "/dev/fd/1"

/* A file or folder that the command line names, or standard output, which has no option. */
struct named_file {
    const struct command_option *option; /* NULL: an operand, or standard output */
    const char *text;
    char *path; /* without links; NULL for a pipe or a device */
    bool is_written;
};

/* The path of a regular file, of a folder, or of what may become one. NULL for others. */
static char *find_path(const char *path)
{
    struct stat about;
    if (stat(path, &about) == 0)
        return S_ISREG(about.st_mode) || S_ISDIR(about.st_mode) ? realpath(path, NULL) : NULL;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *folder = xasprintf("%.*s.", (int)(name - path), path);
    char *resolved = realpath(folder, NULL);
    char *whole = resolved ? xasprintf("%s/%s", resolved, name) : NULL;
    free(resolved);
    free(folder);
    return whole;
}

static bool is_written_by(const struct command_option *option)
{
    return option && (option->kind == OPTION_REPORT || option->kind == OPTION_NEW_FILE ||
                      option->kind == OPTION_NEW_FOLDER);
}

static struct named_file name_file(const struct command_option *option, const char *text)
{
    const bool is_output = option && option->kind == OPTION_REPORT && strcmp(text, "-") == 0;
    if (option && option->kind == OPTION_INPUT)
        text += strcspn(text, "=") + 1;
    char *path = find_path(is_output ? STANDARD_OUTPUT : text);
    if (!path && is_output) /* a pipe, which takes one report all the same */
        path = xstrdup(text);
    return (struct named_file){option, text, path, is_written_by(option)};
}

/* Hard links are one file. */
static bool is_same_path(const char *a, const char *b)
{
    struct stat one, other;
    if (stat(a, &one) == 0 && stat(b, &other) == 0)
        return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
    return strcmp(a, b) == 0;
}

/* Whether commands read the file from such a folder, or write it there. */
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
        char *path = xasprintf("%s/%s", folder->path, *pattern);
        if (glob(path, GLOB_NOCHECK, NULL, &found) == 0) {
            for (size_t i = 0; i < found.gl_pathc; i++)
                is_found |= is_same_path(file->path, found.gl_pathv[i]);
            globfree(&found);
        }
        free(path);
    }
    return is_found;
}

static bool is_same(const struct named_file *a, const struct named_file *b)
{
    return a->path && b->path &&
           (is_same_path(a->path, b->path) || is_of_folder(a, b) || is_of_folder(b, a));
}

/* A report on standard output takes the place of what else would stand there. */
static bool is_for_stdout(const struct named_file *file)
{
    return strcmp(file->text, "-") == 0 || strncmp(file->text, "/dev/", 5) == 0;
}

static int check_pair(const struct command *command, const struct named_file *written,
                      const struct named_file *other)
{
    const char *dashes = written->option ? "--" : "";
    const char *name = written->option ? written->option->name : "standard output";
    const bool is_folder = !written->option || written->option->kind == OPTION_NEW_FOLDER;
    if (!other->is_written && is_same(written, other))
        return usage_error(command, "%s%s writes over the input '%.400s'", dashes, name,
                           is_folder ? other->text : written->text);
    if (!other->is_written || other <= written || !is_same(other, written) ||
        other->option == written->option || (!written->option && is_for_stdout(other)))
        return GOES_ON;
    return usage_error(command, "%s%s and --%s both write '%.400s'", dashes, name,
                       other->option->name, is_folder ? other->text : written->text);
}

/* Refuses to replace what is read, or to write a file twice. */
static int check_files(const struct command *command, const struct named_file *files, size_t count)
{
    int code = GOES_ON;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; files[i].is_written && j < count && code == GOES_ON; j++)
            code = check_pair(command, &files[i], &files[j]);
    return code;
}

/* ---------------------------------------------------------------- options */

/* For getopt_long, with the letters as "d:qvh". */
static void list_options(const struct command_option *list, struct option options[OPTIONS_MAX],
                         char letters[2 * OPTIONS_MAX])
{
    int count = 0;
    for (const struct command_option *option = list; option->name; option++, count++) {
        const bool takes_value = option->kind != OPTION_FLAG && option->kind != OPTION_HELP;
        options[count] =
            (struct option){option->name, takes_value ? required_argument : no_argument, NULL,
                            option->letter ? option->letter : 256 + count};
        if (option->letter)
            *letters++ = option->letter;
        if (option->letter && takes_value)
            *letters++ = ':';
    }
    options[count] = (struct option){NULL, 0, NULL, 0};
    *letters = 0;
}

static uint32_t timeout; /* seconds; 0: none */

static int take_value(const struct command *command, const struct command_option *option,
                      void *session)
{
    void *member = (char *)session + option->member;
    if (option->take)
        return option->take(command, option, session, optarg);
    switch (option->kind) {
    case OPTION_HELP: break;
    case OPTION_FLAG: *(bool *)member = true; break;
    case OPTION_DEVICE:
    case OPTION_WORD:
    case OPTION_FILE:
    case OPTION_FOLDER:
    case OPTION_NEW_FILE:
    case OPTION_NEW_FOLDER:
    case OPTION_INPUT: *(const char **)member = optarg; break;
    case OPTION_REPORT:
        if (!*optarg || (*optarg == '-' && optarg[1]))
            return usage_error(command, "--%s takes a FILE, or - for standard output, not '%s'",
                               option->name, optarg);
        report_file_set(member, optarg, strcmp(option->name, "junit") == 0);
        break;
    case OPTION_TIMEOUT:
    case OPTION_COUNT:
    case OPTION_SECONDS:
        if (option->kind == OPTION_TIMEOUT)
            member = &timeout;
        if (!parse_count(optarg, option->most, member))
            return usage_error(command, "--%s takes a number from 1 to %" PRIu32 ", not '%s'",
                               option->name, option->most, optarg);
        if (option->kind == OPTION_SECONDS)
            memcpy(&timeout, member, sizeof timeout);
        break;
    case OPTION_BYTES:
    case OPTION_NUMBER:
        if (!parse_size(optarg, member))
            return usage_error(command, "'%s' is no number such as 512M", optarg);
        break;
    }
    return EXIT_VERIFIED;
}

/* ---------------------------------------------------------------- the command line */

/* A command line that is taken. */
struct taken {
    const struct command *command;
    void *session;
    struct named_file *files;
    size_t count;
    struct supervision supervision;
};

static int take_option(struct taken *taken, const struct command_option *option)
{
    const struct command *command = taken->command;
    struct supervision *supervision = &taken->supervision;
    if (option->kind == OPTION_HELP)
        return print_help(command);
    const int code = option->take == take_operations ? EXIT_VERIFIED
                                                     : take_value(command, option, taken->session);
    if (code != EXIT_VERIFIED)
        return code;
    if (option->decides_device)
        supervision->opens_device = command->device != DEVICE_HERE;
    if (option->kind == OPTION_REPORT && supervision->report_count < REPORTS_MAX) {
        struct report_file *report = (void *)((char *)taken->session + option->member);
        report->number = (uint32_t)supervision->report_count;
        supervision->reports[supervision->report_count++] = report;
    }
    if (is_written_by(option) || option->kind == OPTION_FILE || option->kind == OPTION_FOLDER ||
        option->kind == OPTION_INPUT)
        taken->files[taken->count++] = name_file(option, optarg);
    return GOES_ON;
}

static int take_operands(struct taken *taken, int argc, char **argv)
{
    const struct command *command = taken->command;
    const enum command_operands operands = command->operands;
    const int count = argc - optind;
    if (operands == OPERANDS_NONE && count > 0)
        return usage_error(command, "unexpected argument '%s'", argv[optind]);
    if (operands == OPERANDS_FILE && count > 1)
        return usage_error(command, "one FILE at a time, not '%s' too", argv[optind + 1]);
    if ((operands == OPERANDS_FILE || operands == OPERANDS_FILES) && count == 0)
        return usage_error(command, "no FILE is named");
    for (int i = optind; i < argc; i++)
        taken->files[taken->count++] = name_file(NULL, argv[i]);
    taken->supervision.file = operands == OPERANDS_ANY ? NULL : argv[optind];
    return check_files(command, taken->files, taken->count);
}

/* getopt_long says itself what is wrong with the words. */
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

/* Loads the folders of --ops and --trust, whose native code runs in the child. */
static int load_operations(const struct taken *taken)
{
    int code = EXIT_VERIFIED;
    for (size_t i = 0; i < taken->count && code == EXIT_VERIFIED; i++) {
        const struct named_file *file = &taken->files[i];
        if (file->option && file->option->take == take_operations)
            code = take_operations(taken->command, file->option, taken->session, file->text);
    }
    return code == EXIT_VERIFIED ? GOES_ON : code;
}

int take_arguments(const struct command *command, int argc, char **argv, void *session)
{
    struct taken taken = {.command = command,
                          .session = session,
                          .files = xcalloc((size_t)argc + 1, sizeof *taken.files),
                          .supervision.opens_device = command->device == DEVICE_HERE};
    taken.files[taken.count++] =
        (struct named_file){.text = "-", .path = find_path(STANDARD_OUTPUT), .is_written = true};
    char *const name = argv[0];
    argv[0] = (char *)(uintptr_t)this_program->name; /* as messages of getopt_long begin */
    int code = take_all(&taken, argc, argv);
    argv[0] = name; /* a part of the command that compare tells */
    taken.supervision.timeout = timeout;
    if (code == GOES_ON)
        supervise(command, &taken.supervision);
    if (code == GOES_ON)
        code = load_operations(&taken);
    for (size_t i = 0; i < taken.count; i++)
        free(taken.files[i].path);
    free(taken.files);
    return code;
}
