/* healcl: the command line. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/compile_ahead.h"
#include "cli/nearest.h"
#include "cli/signals.h"

static const struct command *const commands[] = {
    &command_run,      &command_compare,    &command_inspect, &command_devices, &command_check,
    &command_diagnose, &command_ops,        &command_bench,   &command_tune,    &command_compile,
    &command_version,  &command_completion, &command_manual};

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

const char program_summary[] =
    "Runs HEAL transcripts on OpenCL devices and verifies every result.\n";

const char program_exit_codes[] =
    "Exit codes: 0 all verified, 1 a result differs, 2 wrong usage, 3 the transcript is\n"
    "refused, 4 the device or OpenCL failed, 5 slower than --fail-slower allows.\n";

static int print_overview(void)
{
    printf("%s\nUsage: healcl COMMAND [OPTIONS] [FILE]\n\n", program_summary);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (commands[i]->summary)
            printf("  %-9s %s\n", commands[i]->name, commands[i]->summary);
    printf("\n  healcl COMMAND --help tells of a command's options.\n\n%s", program_exit_codes);
    return finish_output(EXIT_VERIFIED);
}

const struct command *command_at(size_t index)
{
    return index < COMMAND_COUNT ? commands[index] : NULL;
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int no_command(const char *name)
{
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i]->name;
    const char *nearest = nearest_word(name, names, COMMAND_COUNT);
    if (!nearest)
        return usage_error(NULL, "no command '%s'", name);
    print_notice("no command '%s'; did you mean '%s'?", name, nearest);
    return EXIT_USAGE;
}

/* "--help", "--version" and their letters; others are mistakes. */
static int run_option(const char *name, int argc, char **argv)
{
    static const char *const words[] = {"help", "version"};
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return print_overview();
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        return command_version.run(&command_version, argc, argv);
    const char *nearest = name[1] == '-' ? nearest_word(name + 2, words, 2) : NULL;
    if (!nearest)
        return usage_error(NULL, "no option '%s'", name);
    print_notice("no option '%s'; did you mean '--%s'?", name, nearest);
    return EXIT_USAGE;
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
    if (name[0] == '-')
        return run_option(name, argc - 1, argv + 1);
    if (strcmp(name, "help") == 0 && argc < 3)
        return print_overview();
    if (strcmp(name, "help") == 0) {
        const struct command *topic = find_command(argv[2]);
        return topic ? print_help(topic) : no_command(argv[2]);
    }
    if (strcmp(name, COMPILE_AHEAD) == 0)
        return compile_ahead_run(argc - 1, argv + 1);
    const struct command *command = find_command(name);
    return command ? command->run(command, argc - 1, argv + 1) : no_command(name);
}
