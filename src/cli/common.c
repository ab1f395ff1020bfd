#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/supervise.h"
#include "cli/text.h"
#include "core/control_group.h"
#include "opencl/programs.h"

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

__attribute__((format(printf, 2, 0))) static void format_line(char line[LINE_SIZE],
                                                              const char *format, va_list arguments)
{
    vsnprintf(line, LINE_SIZE, format, arguments);
    text_clean(line, false);
}

void print_notice(const char *format, ...)
{
    char line[LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    format_line(line, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: %s\n", this_program->name, line);
}

const char *last_words(const struct process_result *result)
{
    static const char prefix[] = "healcl: ";
    bool ours = strncmp(result->last_line, prefix, sizeof prefix - 1) == 0;
    return result->last_line + (ours ? sizeof prefix - 1 : 0);
}

int print_error(const char *file, const struct healcl_error *error, bool verbose)
{
    char place[256] = "";
    if (verbose && error->file)
        snprintf(place, sizeof place, " [%s:%d]", error->file, error->line);
    print_notice("%s%s%s%s", file ? file : "", file ? ": " : "", error->message, place);
    if (error->detail)
        fprintf(stderr, "%s%s", error->detail,
                *error->detail && error->detail[strlen(error->detail) - 1] == '\n' ? "" : "\n");
    if (error->status == HEALCL_NO_MEMORY)
        signals_memory_is_told();
    return exit_code(error->status);
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

int finish_output(int code)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    /* Whoever closed a pipe early, as head does, knows why. */
    if (errno != EPIPE)
        print_notice("cannot write to standard output: %s", strerror(errno ? errno : EIO));
    return code == EXIT_VERIFIED ? EXIT_USAGE : code;
}

/* ---------------------------------------------------------------- arguments */

int usage_error(const struct command *command, const char *format, ...)
{
    char line[LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    format_line(line, format, arguments);
    va_end(arguments);
    if (is_first_rank())
        print_notice("%s; see '%s%s%s --help'", line, this_program->name, command ? " " : "",
                     command ? command->name : "");
    return EXIT_USAGE;
}

int print_help(const struct command *command)
{
    enum { INDENT = 27, WIDTH = 84 };
    fputs(command->help, stdout);
    for (const struct command_option *option = command->options; option->name; option++) {
        int used = option->letter ? printf("  -%c, ", option->letter) : printf("      ");
        used += printf("--%s%s%s", option->name, option->value ? " " : "",
                       option->value ? option->value : "");
        used += printf("%*s", used + 2 > INDENT ? 2 : INDENT - used, "");
        text_wrap(stdout, option->help, (size_t)used, INDENT, WIDTH);
    }
    if (command->notes)
        fputs(command->notes, stdout);
    return finish_output(EXIT_VERIFIED);
}

/* Digits at the start of text; *end is behind them. */
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
    if (!suffix || end[1] != 0)
        return false;
    for (const char *s = suffixes; s <= suffix; s++) {
        if (*bytes > INT64_MAX / 1024)
            return false;
        *bytes *= 1024;
    }
    return true;
}

bool parse_decimal(const char *text, double *number)
{
    char *end;
    if (*text < '0' || *text > '9' || text[strspn(text, "0123456789.")] != 0)
        return false;
    *number = strtod(text, &end);
    return *end == 0 && *number <= 1e6;
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

void warn_of_device(const struct healcl_device *device)
{
    const char *warning;
    for (size_t i = 0; device && (warning = device_warning(device, i)); i++)
        print_notice("warning: %s", warning);
}

void warn_of_builds(const struct healcl_device *device)
{
    if (!device || !device->programs->warnings)
        return;
    print_notice("warning: the compiler says of manifests' sources:");
    fputs(device->programs->warnings, stderr);
}

bool is_trust(const struct command_option *option)
{
    return strcmp(option->name, "trust") == 0;
}

int take_operations(const struct command *command, const struct command_option *option,
                    void *session, const char *text)
{
    (void)command;
    static struct healcl_operations *loaded; /* lives as long as the process, as signals do */
    struct healcl_error error = {.status = HEALCL_OK};
    enum healcl_status status = is_trust(option)
                                    ? healcl_operations_load_trusted(text, &loaded, &error)
                                    : healcl_operations_load(text, &loaded, &error);
    memcpy((char *)session + option->member, &loaded, sizeof loaded);
    const int code = status == HEALCL_OK ? EXIT_VERIFIED : print_error(NULL, &error, false);
    healcl_error_clear(&error);
    return code;
}

/* ---------------------------------------------------------------- limits */

int take_expand(const struct command *command, const struct command_option *option, void *self,
                const char *text)
{
    const bool is_sdk = strcmp(text, "sdk") == 0;
    const enum healcl_expand expand = is_sdk ? HEALCL_EXPAND_SDK : HEALCL_EXPAND_SPECIFICATION;
    if (!is_sdk && strcmp(text, "spec") != 0)
        return usage_error(command, "--expand takes spec or sdk, not '%.200s'", text);
    memcpy((char *)self + option->member, &expand, sizeof expand);
    return EXIT_VERIFIED;
}

uint64_t host_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && page_size > 0 ? (uint64_t)pages * (uint64_t)page_size : INT64_MAX;
    uint64_t group = control_group_memory("");
    return group < bytes ? group : bytes;
}
