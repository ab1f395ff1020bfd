#include "cli/options.h"

#include <string.h>

#include "cli/nearest.h"

enum { OPTIONS_MAX = 64 };

enum option_value option_value_of(const char *name)
{
    static const struct {
        const char *name;
        enum option_value value;
    } known[] = {
        {"device", VALUE_DEVICE}, {"json", VALUE_REPORT}, {"junit", VALUE_REPORT},
        {"csv", VALUE_REPORT},    {"html", VALUE_REPORT}, {"markdown", VALUE_REPORT},
        {"trace", VALUE_FILE},    {"output", VALUE_FILE}, {"baseline", VALUE_FILE},
        {"dump", VALUE_FOLDER},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].value;
    return VALUE_OTHER;
}

static bool takes_report(const struct option *option)
{
    return option->has_arg == required_argument && option_value_of(option->name) == VALUE_REPORT;
}

/* The option that text, of so many characters, names: whole, or as the beginning of this one alone.
 * NULL where there is none; *count tells of how many it is the beginning. */
static const struct option *find_option(const struct command *command, const char *text,
                                        size_t length, int *count)
{
    const struct option *found = NULL;
    *count = 0;
    for (const struct option *option = command->options; option->name; option++) {
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

/* ---------------------------------------------------------------- getopt */

/* ":d:qvh" */
static void list_letters(const struct option *option, char letters[3 * OPTIONS_MAX])
{
    *letters++ = ':';
    for (int i = 1; option->name && i < OPTIONS_MAX; i++, option++) {
        if (option->val >= 256)
            continue;
        *letters++ = (char)option->val;
        if (option->has_arg == required_argument)
            *letters++ = ':';
    }
    *letters = 0;
}

int next_option(const struct command *command, int argc, char **argv)
{
    char letters[3 * OPTIONS_MAX];
    int index = -1;
    list_letters(command->options, letters);
    opterr = 0;
    const int found = getopt_long(argc, argv, letters, command->options, &index);
    if (index < 0 || found == '?' || found == ':' || !takes_report(&command->options[index]))
        return found;
    /* A file whose name begins with a dash can still be had, behind "=". */
    const bool is_apart = optarg == argv[optind - 1];
    const bool is_option = is_apart && optarg[0] == '-' && optarg[1] != 0;
    if (optarg[0] != 0 && !is_option)
        return found;
    optind -= is_apart;
    return ':';
}

/* ---------------------------------------------------------------- errors */

static int value_error(const struct command *command, const char *text, size_t length)
{
    int count;
    const struct option *option = find_option(command, text + 2, length - 2, &count);
    if (option && takes_report(option))
        return usage_error(command, "option '%.*s' needs a FILE, or - for standard output",
                           (int)length, text);
    return usage_error(command, "option '%.*s' needs a value", (int)length, text);
}

/* Where text could mean several: "option '--re' could mean --reference or --repeat". */
static int ambiguity_error(const struct command *command, const char *text, size_t length)
{
    char names[512] = "";
    for (const struct option *option = command->options; option->name; option++) {
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
    for (const struct option *option = command->options; option->name && count < OPTIONS_MAX;
         option++)
        names[count++] = option->name;
    if (length - 2 < sizeof word)
        memcpy(word, text + 2, length - 2);
    const char *nearest = nearest_word(word, names, count);
    if (!nearest)
        return usage_error(command, "no option '%.*s'", (int)length, text);
    print_notice("no option '%.*s'; did you mean '--%s'?", (int)length, text, nearest);
    return EXIT_USAGE;
}

int option_error(const struct command *command, int found, char **argv)
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
    const struct option *option = strncmp(last, "--", 2) == 0
                                      ? find_option(command, last + 2, strlen(last) - 2, &count)
                                      : NULL;
    if (option && takes_report(option))
        return usage_error(command, "no FILE is named: %s writes to '%s'", last, argv[argc - 1]);
    return usage_error(command, "no FILE is named");
}

int one_file(const struct command *command, int argc, char **argv, const char **file)
{
    if (optind == argc)
        return missing_file_error(command, argc, argv);
    if (optind + 1 < argc)
        return usage_error(command, "one FILE at a time, not '%s' too", argv[optind + 1]);
    *file = argv[optind];
    return EXIT_VERIFIED;
}

int some_files(const struct command *command, int argc, char **argv)
{
    return optind < argc ? EXIT_VERIFIED : missing_file_error(command, argc, argv);
}

int no_file(const struct command *command, int argc, char **argv)
{
    if (optind < argc)
        return usage_error(command, "unexpected argument '%s'", argv[optind]);
    return EXIT_VERIFIED;
}
