/* What a program of commands does with its command line; the program itself is in main.c. */
#include <cJSON.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check/xmalloc.h"
#include "cli/cli.h"
#include "cli/compile_ahead.h"
#include "cli/nearest.h"
#include "cli/signals.h"
#include "cli/supervise.h"
#include "core/verdict.h"

enum { COMMANDS_MAX = 32 };

static int print_overview(void)
{
    printf("%s\nUsage: %s COMMAND [OPTIONS] [FILE]\n\n", this_program.summary, this_program.name);
    for (size_t i = 0; command_at(i); i++)
        if (command_at(i)->summary)
            printf("  %-9s %s\n", command_at(i)->name, command_at(i)->summary);
    printf("\n  %s COMMAND --help tells of a command's options.\n\n%s", this_program.name,
           this_program.exit_codes);
    return finish_output(EXIT_VERIFIED);
}

const struct command *command_at(size_t index)
{
    return index < this_program.command_count ? this_program.commands[index] : NULL;
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; command_at(i); i++)
        if (strcmp(command_at(i)->name, name) == 0)
            return command_at(i);
    return NULL;
}

static int no_command(const char *name)
{
    const char *names[COMMANDS_MAX];
    size_t count = 0;
    for (; command_at(count) && count < COMMANDS_MAX; count++)
        names[count] = command_at(count)->name;
    const char *nearest = nearest_word(name, names, count);
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

/* What is loaded beside healcl has no say in how this process ends: no driver has run here. */
static _Noreturn void end_at_once(int code)
{
    fflush(NULL);
    _exit(code);
}

/* By that name the parent hears of the exit code: core/process.h. */
static int run_command(const struct command *command, int argc, char **argv, const char *name)
{
    if (strcmp(name, PROCESS_NAME) == 0 && fcntl(PROCESS_VERDICT_FILE, F_SETFD, FD_CLOEXEC) == 0) {
        verdict_to(PROCESS_VERDICT_FILE);
        return verdict_tell(command->run(command, argc, argv));
    }
    int code = supervise(command, argc, argv);
    if (code != GOES_ON)
        end_at_once(code);
    code = command->run(command, argc, argv);
    if (command->device == DEVICE_IN_CHILDREN && !is_one_process() && !verdict_is_asked())
        end_at_once(code);
    return verdict_tell(code);
}

int program_run(int argc, char **argv)
{
    occupy_standard_streams();
    signals_init();
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = xmalloc, .free_fn = free});
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
    return command ? run_command(command, argc - 1, argv + 1, argv[0]) : no_command(name);
}
