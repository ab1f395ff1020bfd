#include "cli/cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/named_files.h"
#include "cli/nearest.h"
#include "cli/report_file.h"
#include "programs/cache.h"

static bool takes_a_value(const struct command_option *option)
{
    return option->kind != OPTION_FLAG && option->kind != OPTION_HELP;
}

/* The option that text, of so many characters, names: whole, or as the beginning of this one alone.
 * NULL where there is none; *count tells of how many it is the beginning. */
static const struct command_option *find_option(const struct command *command, const char *text,
                                                size_t length, int *count)
{
    const struct command_option *found = NULL;
    *count = 0;
    for (const struct command_option *option = command->options; option->name; option++) {
        if (strncmp(option->name, text, length) != 0)
            continue;
        (*count)++;
        found = option;
        if (option->name[length] != 0)
            continue;
        *count = 1;
        return option;
    }
    return *count == 1 ? found : NULL;
}

/* ---------------------------------------------------------------- errors */

static int value_error(const struct command *command, const char *text, size_t length)
{
    int count;
    const struct command_option *option = find_option(command, text + 2, length - 2, &count);
    if (option && option->kind == OPTION_REPORT)
        return usage_error(command, "option '%.*s' needs a FILE, or - for standard output",
                           (int)length, text);
    return usage_error(command, "option '%.*s' needs a value", (int)length, text);
}

/* Where text could mean several: "option '--re' could mean --reference or --repeat". */
static int ambiguity_error(const struct command *command, const char *text, size_t length)
{
    char names[512] = "";
    for (const struct command_option *option = command->options; option->name; option++) {
        const size_t used = strlen(names);
        if (strncmp(option->name, text + 2, length - 2) == 0)
            snprintf(names + used, sizeof names - used, "%s--%s", used > 0 ? " or " : "",
                     option->name);
    }
    return usage_error(command, "option '%.*s' could mean %s", (int)length, text, names);
}

static int unknown_option_error(const struct command *command, const char *text, size_t length)
{
    const char *names[OPTIONS_MAX];
    char word[OPTIONS_MAX] = "";
    size_t count = 0;
    for (const struct command_option *option = command->options;
         option->name && count < OPTIONS_MAX; option++)
        names[count++] = option->name;
    if (length - 2 < sizeof word)
        memcpy(word, text + 2, length - 2);
    const char *nearest = nearest_word(word, names, count);
    if (!nearest)
        return usage_error(command, "no option '%.*s'", (int)length, text);
    print_notice("no option '%.*s'; did you mean '--%s'?", (int)length, text, nearest);
    return EXIT_USAGE;
}

/* What getopt_long found to be wrong: '?', or ':' where a value is missing. */
static int option_error(const struct command *command, int found, char **argv)
{
    const char *text = argv[optind - 1];
    int count;
    if (strncmp(text, "--", 2) != 0 || text[2] == 0) {
        if (found == ':')
            return usage_error(command, "option '-%c' needs a value", optopt);
        return usage_error(command, "no option '-%c'", optopt);
    }
    const size_t length = strcspn(text, "=");
    if (found == ':')
        return value_error(command, text, length);
    if (optopt != 0)
        return usage_error(command, "option '%.*s' takes no value", (int)length, text);
    (void)find_option(command, text + 2, length - 2, &count);
    return count > 1 ? ambiguity_error(command, text, length)
                     : unknown_option_error(command, text, length);
}

/* ---------------------------------------------------------------- operands */

/* Somebody may have meant what stands behind --json as the transcript. */
static int missing_file_error(const struct command *command, int argc, char **argv)
{
    const char *last = argc > 2 ? argv[argc - 2] : "";
    int count;
    const struct command_option *option =
        strncmp(last, "--", 2) == 0 ? find_option(command, last + 2, strlen(last) - 2, &count)
                                    : NULL;
    if (option && option->kind == OPTION_REPORT)
        return usage_error(command, "no FILE is named: %s writes to '%s'", last, argv[argc - 1]);
    return usage_error(command, "no FILE is named");
}

static int check_operands(const struct command *command, int argc, char **argv)
{
    const int count = argc - optind;
    switch (command->operands) {
    case OPERANDS_NONE:
        return count > 0 ? usage_error(command, "unexpected argument '%s'", argv[optind]) : GOES_ON;
    case OPERANDS_FILE:
        if (count > 1)
            return usage_error(command, "one FILE at a time, not '%s' too", argv[optind + 1]);
        return count == 0 ? missing_file_error(command, argc, argv) : GOES_ON;
    case OPERANDS_FILES: return count == 0 ? missing_file_error(command, argc, argv) : GOES_ON;
    case OPERANDS_ANY: break;
    }
    return GOES_ON;
}

/* ---------------------------------------------------------------- taking them */

/* For getopt_long, with the letters as ":d:qvh". */
static void list_options(const struct command_option *list, struct option options[OPTIONS_MAX],
                         char letters[2 * OPTIONS_MAX])
{
    int count = 0;
    *letters++ = ':';
    for (const struct command_option *option = list; option->name; option++, count++) {
        const bool takes_value = takes_a_value(option);
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

/* Whether a report's FILE is missing, for another option stands there. A file whose name begins
 * with a dash can still be had, behind "=". */
static bool file_is_missing(char **argv)
{
    const bool is_apart = optarg == argv[optind - 1];
    const bool is_option = is_apart && optarg[0] == '-' && optarg[1] != 0;
    if (optarg[0] != 0 && !is_option)
        return false;
    optind -= is_apart;
    return true;
}

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
        report_file_set(member, optarg, (uint32_t)(option - command->options));
        break;
    case OPTION_COUNT:
    case OPTION_SECONDS:
        if (!parse_count(optarg, option->most, member))
            return usage_error(command, "--%s takes %s from 1 to %" PRIu32 ", not '%s'",
                               option->name, option->kind == OPTION_COUNT ? "a number" : "seconds",
                               option->most, optarg);
        break;
    case OPTION_BYTES:
        if (!parse_size(optarg, member))
            return usage_error(command, "'%s' is no size such as 512M", optarg);
        break;
    case OPTION_NUMBER:
        if (!parse_size(optarg, member))
            return usage_error(command, "'%s' is no number such as 4T", optarg);
        break;
    case OPTION_DECIMAL:
        if (!parse_decimal(optarg, member))
            return usage_error(command, "--%s takes a number such as 12.5, not '%s'", option->name,
                               optarg);
        break;
    }
    return EXIT_VERIFIED;
}

void scan_arguments(const struct command *command, int argc, char **argv, struct scanned *scanned)
{
    struct option options[OPTIONS_MAX];
    char letters[2 * OPTIONS_MAX];
    char **copy = malloc(((size_t)argc + 1) * sizeof *copy); /* getopt changes the order */
    *scanned = (struct scanned){.opens_device = command->device == DEVICE_HERE};
    if (!copy)
        return;
    memcpy(copy, argv, ((size_t)argc + 1) * sizeof *copy);
    list_options(command->options, options, letters);
    opterr = 0;
    for (int found; (found = getopt_long(argc, copy, letters, options, NULL)) != -1;) {
        size_t at = 0;
        while (options[at].name && options[at].val != found)
            at++;
        const struct command_option *option = &command->options[at];
        if (!options[at].name)
            continue; /* take_arguments tells */
        if (option->kind == OPTION_REPORT)
            scanned->reports[at] = optarg;
        if (strcmp(option->name, "timeout") == 0)
            (void)parse_count(optarg, option->most, &scanned->timeout);
        if (option->decides_device)
            scanned->opens_device = command->device != DEVICE_HERE;
    }
    scanned->opens_device |= scanned->timeout > 0 && command->device != DEVICE_IN_CHILDREN;
    if (command->operands == OPERANDS_FILE || command->operands == OPERANDS_FILES)
        scanned->file = copy[optind];
    free(copy);
    optind = 0; /* from the start */
}

int take_timeout(const struct command *command, const struct command_option *option, void *session,
                 const char *text)
{
    uint32_t seconds; /* scan_arguments keeps it */
    (void)session;
    if (parse_count(text, option->most, &seconds))
        return EXIT_VERIFIED;
    return usage_error(command, "--%s takes seconds from 1 to %" PRIu32 ", not '%s'", option->name,
                       option->most, text);
}

/* Takes the options, and notes what files they name. */
static int take_options(const struct command *command, int argc, char **argv, void *session,
                        struct named_file *files, size_t *count)
{
    struct option options[OPTIONS_MAX];
    char letters[2 * OPTIONS_MAX];
    list_options(command->options, options, letters);
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, letters, options, NULL)) != -1;) {
        if (found == '?' || found == ':')
            return option_error(command, found, argv);
        size_t at = 0;
        while (options[at].val != found)
            at++;
        const struct command_option *option = &command->options[at];
        if (option->kind == OPTION_HELP)
            return print_help(command);
        if (option->kind == OPTION_REPORT && file_is_missing(argv))
            return option_error(command, ':', argv);
        const int code = take_value(command, option, session);
        if (code != EXIT_VERIFIED)
            return code;
        *count += named_file_take(option, optarg, &files[*count]);
    }
    return check_operands(command, argc, argv);
}

int take_arguments(const struct command *command, int argc, char **argv, void *session)
{
    struct named_file *files = calloc((size_t)argc + 3, sizeof *files);
    char *cache = cache_directory();
    size_t count = 0;
    if (!files) {
        free(cache);
        return printed(HEALCL_NO_MEMORY);
    }
    files[count++].is_written = true; /* standard output */
    (void)named_file_take(NULL, "/proc/self/exe", &files[count++]);
    if (cache)
        (void)named_file_take(NULL, cache, &files[count++]);
    int code = take_options(command, argc, argv, session, files, &count);
    for (int i = optind; code == GOES_ON && i < argc; i++)
        (void)named_file_take(NULL, argv[i], &files[count++]);
    if (code == GOES_ON)
        code = named_files_check(command, files, count);
    free(files);
    free(cache);
    return code;
}
