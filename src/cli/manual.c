/* healcl manual: the page of the program for man, out of what the commands' --help prints. */
#include <ctype.h>
#include <string.h>

#include "cli/cli.h"

/* Text that is no request of roff, in a line of its own. */
static void put_line(const char *text, size_t size)
{
    if (size > 0 && (*text == '.' || *text == '\''))
        fputs("\\&", stdout);
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '-' || text[i] == '\\')
            putchar('\\');
        putchar(text[i] == '\\' ? 'e' : text[i]);
    }
    putchar('\n');
}

/* "  -d, --device SEL  the device": what stands before two blanks is a heading of the rest. */
static void put_option(const char *text, size_t size)
{
    size_t end = 0;
    while (end < size && strncmp(text + end, "  ", 2) != 0)
        end++;
    fputs(".TP\n.B ", stdout);
    put_line(text, end);
    end += strspn(text + end, " ");
    put_line(text + end, size - end);
}

static void put_help(const char *help)
{
    static const char usage[] = "Usage: ";
    while (*help) {
        size_t size = strcspn(help, "\n");
        const char *next = help + size + (help[size] == '\n');
        const size_t blanks = strspn(help, " ");
        help += blanks;
        size -= blanks;
        if (size == 0) {
            puts(".PP");
        } else if (blanks > 0 && *help == '-') {
            put_option(help, size);
        } else if (strncmp(help, usage, sizeof usage - 1) == 0) {
            fputs(".B ", stdout);
            put_line(help + sizeof usage - 1, size - (sizeof usage - 1));
        } else {
            put_line(help, size);
        }
        help = next;
    }
}

static void put_manual(void)
{
    fputs(".TH ", stdout);
    for (const char *c = this_program.name; *c; c++)
        putchar(toupper((unsigned char)*c));
    printf(" 1 \"\" \"healcl %s\" \"User commands\"\n", healcl_version());
    printf(".SH NAME\n%s \\- %s\n"
           ".SH SYNOPSIS\n.B %s\n.I COMMAND\n[\\fIOPTIONS\\fR] [\\fIFILE\\fR]\n"
           ".SH DESCRIPTION\n",
           this_program.name, this_program.title, this_program.name);
    put_help(this_program.summary);
    puts(".SH COMMANDS");
    for (size_t i = 0; command_at(i); i++) {
        const struct command *command = command_at(i);
        if (!command->summary)
            continue;
        printf(".SS %s %s\n", this_program.name, command->name);
        put_help(command->help);
        if (command->more_help)
            put_help(command->more_help);
    }
    puts(".SH EXIT STATUS");
    put_help(this_program.exit_codes);
    puts(
        ".SH ENVIRONMENT\nHEALCL_DEVICE is the device where none is named, HEALCL_CACHE_DIR where\n"
        "binaries of kernels and choices of\n.B healcl tune\nare kept; docs/PORTING.md lists "
        "others.\n"
        ".SH SEE ALSO\n.BR healcl (3),\nand the pages that are named here as docs/...");
}

static const struct command_option options[] = {END_OF_OPTIONS};

static int run(const struct command *command, int argc, char **argv)
{
    const int code = take_arguments(command, argc, argv, NULL);
    if (code != GOES_ON)
        return code;
    put_manual();
    return finish_output(EXIT_VERIFIED);
}

const struct command command_manual = {
    .name = "manual",
    .help = "Prints this program's page for man; installing it puts that where man looks.\n"
            "\n"
            "Usage: healcl manual\n"
            "\n"
            "  -h, --help  this text\n",
    .options = options,
    .run = run,
};
