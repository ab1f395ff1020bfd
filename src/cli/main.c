/* healcl: the command line. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/signals.h"

static const struct command *const commands[] = {
    &command_run,      &command_compare, &command_inspect, &command_devices, &command_check,
    &command_diagnose, &command_ops,     &command_bench,   &command_tune};

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

static int print_overview(void)
{
    printf("Runs HEAL transcripts on OpenCL devices and verifies every result.\n\n"
           "Usage: healcl COMMAND [OPTIONS] [FILE]\n\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-9s %s\n", commands[i]->name, commands[i]->summary);
    printf("\n"
           "  healcl COMMAND --help tells of a command's options, healcl --version the version.\n\n"
           "Exit codes: 0 all verified, 1 a result differs, 2 wrong usage, 3 the transcript is\n"
           "refused, 4 the device or OpenCL failed.\n");
    return finish_output(EXIT_VERIFIED);
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

/* Without this a file could become standard output, and what is printed would end up in it. What
 * stands in for a closed stream cannot be written to, so that it is noticed. */
static void occupy_standard_streams(void)
{
    for (int stream = 0; stream <= 2; stream++)
        if (fcntl(stream, F_GETFD) < 0)
            (void)!open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    occupy_standard_streams();
    signals_init();
    if (argc < 2)
        return usage_error(NULL, "no command is given");
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return print_overview();
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("healcl %s\n", healcl_version());
        return finish_output(EXIT_VERIFIED);
    }
    if (strcmp(name, "help") == 0 && argc < 3)
        return print_overview();
    if (strcmp(name, "help") == 0) {
        const struct command *topic = find_command(argv[2]);
        return topic ? print_help(topic) : usage_error(NULL, "unknown command '%s'", argv[2]);
    }
    const struct command *command = find_command(name);
    if (!command)
        return usage_error(NULL, "unknown %s '%s'", name[0] == '-' ? "option" : "command", name);
    return command->run(command, argc - 1, argv + 1);
}
