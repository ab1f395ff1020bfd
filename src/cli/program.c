/* Runs a program's command line. main.c lists the commands. */
#include <cJSON.h>
#include <fcntl.h>
#include <xxhash.h>
#include <zip.h>
#include <zlib.h>
#include <zstd.h>

#include "cli/supervise.h"

static int print_overview(void)
{
    printf("%s\nUsage: %s COMMAND [OPTIONS] [FILE]\n\n", this_program->summary, this_program->name);
    for (size_t i = 0; i < this_program->command_count; i++)
        printf("  %-9s %s\n", this_program->commands[i]->name, this_program->commands[i]->summary);
    printf("  %-9s print the version of %s and of its libraries\n", "version", this_program->name);
    printf("\n'%s COMMAND --help' lists the options of a command.\n\n%s", this_program->name,
           this_program->exit_codes);
    return finish_output(EXIT_VERIFIED);
}

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

const char healcl_compiler[] = COMPILER;

/* Library versions are those of the loaded libraries, not of the headers. */
static int print_version(void)
{
    const struct style output = style_of(stdout), *style = &output;
    const unsigned hash = XXH_versionNumber();
    fprintf(style->stream, "healcl %s\n", healcl_version());
    report_label(style, "commit", "%s", *healcl_commit() ? healcl_commit() : "unknown");
    report_label(style, "OpenCL", "%d.%d", CL_TARGET_OPENCL_VERSION / 100,
                 CL_TARGET_OPENCL_VERSION / 10 % 10);
    report_label(style, "cJSON", "%s", cJSON_Version());
    report_label(style, "zlib", "%s", zlibVersion());
    report_label(style, "zstd", "%s", ZSTD_versionString());
    report_label(style, "libzip", "%s", zip_libzip_version());
    report_label(style, "xxHash", "%u.%u.%u", hash / 10000, hash / 100 % 100, hash % 100);
    report_label(style, "compiler", "%s", healcl_compiler);
    return finish_output(EXIT_VERIFIED);
}

/* Whether two words differ by at most `most` letters that were added, left out, changed or
 * swapped. */
static bool is_near(const char *a, const char *b, int edits)
{
    while (*a && *a == *b)
        a++, b++;
    return !*a ? (int)strlen(b) <= edits
               : edits > 0 &&
                     (is_near(a + 1, b, edits - 1) ||
                      (*b && (is_near(a, b + 1, edits - 1) || is_near(a + 1, b + 1, edits - 1) ||
                              (a[0] == b[1] && a[1] == b[0] && is_near(a + 2, b + 2, edits - 1)))));
}

/* Finds the command for a word with one or two wrong letters, or for the beginning of a name; or
 * NULL. */
static const char *nearest_command(const char *misspelt)
{
    const size_t length = strlen(misspelt);
    for (int edits = 0; edits <= 2; edits++) /* 0: a beginning of the name */
        for (size_t i = 0; i < this_program->command_count && length > 1; i++) {
            const char *name = this_program->commands[i]->name;
            if (edits == 0 ? strncmp(misspelt, name, length) == 0
                           : edits * 2 < (int)length && is_near(misspelt, name, edits))
                return name;
        }
    return NULL;
}

/* Returns NULL, and reports it, if there is no such command. */
static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < this_program->command_count; i++)
        if (strcmp(this_program->commands[i]->name, name) == 0)
            return this_program->commands[i];
    const char *near = nearest_command(name);
    (void)usage_error(NULL, "unknown %s '%s'%s%s%s", *name == '-' ? "option" : "command", name,
                      near ? ", did you mean '" : "", near ? near : "", near ? "'" : "");
    return NULL;
}

/* Opens closed standard streams. Otherwise a file could get the number of standard output, and
 * printed text would go into it. The substitutes cannot be written, so that errors are noticed. */
static void occupy_standard_streams(void)
{
    for (int stream = 0; stream <= 2; stream++)
        if (fcntl(stream, F_GETFD) < 0)
            (void)!open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);
}

static int run_command(const struct command *command, int argc, char **argv)
{
    struct command_job *job = xcalloc(1, command->size);
    int code = take_arguments(command, argc, argv, job);
    if (code == GOES_ON && command->steps.prepare)
        code = command->steps.prepare(command, job);
    if (code == GOES_ON)
        code = (command->run ? command->run : job_run)(command, job);
    if (command->steps.release)
        command->steps.release(job);
    free(job);
    if (command->device == DEVICE_IN_CHILDREN && !is_one_process() && !verdict_is_asked())
        end_at_once(code);
    return verdict_report(code);
}

int program_run(const struct program *program, int argc, char **argv)
{
    this_program = program;
    occupy_standard_streams();
    signals_init();
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = xmalloc, .free_fn = free});
    /* A parent that started this process under PROCESS_NAME reads the exit code from the pipe:
     * core/process.h. */
    if (argc > 1 && strcmp(argv[1], PROCESS_CHILD) == 0 &&
        fcntl(PROCESS_VERDICT_FILE, F_SETFD, FD_CLOEXEC) == 0) {
        verdict_to(PROCESS_VERDICT_FILE);
        argc--, argv++;
    }
    if (argc < 2)
        return usage_error(NULL, "no command is given");
    const char *name = argv[1];
    const bool is_help = strcmp(name, "help") == 0;
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || (is_help && argc < 3))
        return print_overview();
    if (strcmp(name, COMPILE_AHEAD) == 0)
        return compile_ahead_run(argc - 1, argv + 1);
    if (strcmp(name, "version") == 0 || strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        return print_version();
    const struct command *command = find_command(is_help ? argv[2] : name);
    if (!command)
        return EXIT_USAGE;
    return is_help ? print_help(command) : run_command(command, argc - 1, argv + 1);
}
