#include "cli/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

/* ---------------------------------------------------------------- signals */

static pid_t process; /* a child that a driver forks must not remove files of ours */
static bool clears_line, memory_is_reported;
static struct sigaction bus_before;

static void remove_files(void)
{
    if (getpid() == process)
        temporary_remove_all();
}

/* Ends this process as the signal would have without a handler. */
static void end_by_signal(int number)
{
    sigset_t only;
    remove_files();
    sigemptyset(&only);
    sigaddset(&only, number);
    signal(number, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    raise(number);
    _exit(128 + number); /* the kernel keeps such signals from the first process of a container */
}

/* Writes a line that begins with the program's name. Async-signal-safe, as others below. */
static void write_line(const char *begin, const char *middle, const char *end)
{
    const char *const texts[] = {this_program->name, begin, middle, end};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        (void)!write(STDERR_FILENO, texts[i], strlen(texts[i]));
}

/* Takes away what progress of a process that is gone may have left on the terminal. */
static void clear_line(void)
{
    if (clears_line)
        (void)!write(STDERR_FILENO, "\r\x1b[K", 4);
}

static void on_bus_error(int number, siginfo_t *about, void *context)
{
    const char *path = mapping_path(about->si_addr);
    (void)context;
    if (!path) {
        sigaction(number, &bus_before, NULL); /* the access is made again */
        return;
    }
    char clean[512] = "";
    memcpy(clean, path, strnlen(path, sizeof clean - 1));
    text_clean(clean, false);
    remove_files();
    clear_line();
    write_line(": '", clean,
               "': lost while it was read: the file was truncated, or its disk failed\n");
    _exit(verdict_report(EXIT_REFUSED));
}

/* As a signal ends it: what memory held is lost, and callers cannot go on. */
static _Noreturn void end_without_memory(void)
{
    remove_files();
    clear_line();
    if (!memory_is_reported)
        write_line(": ", "out of memory", "\n");
    _exit(verdict_report(EXIT_DEVICE));
}

void signals_memory_is_reported(void)
{
    memory_is_reported = true;
}

static bool is_interrupt(int number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP;
}

void signals_init(void)
{
    struct sigaction action = {.sa_handler = end_by_signal, .sa_flags = SA_NODEFER}, before;
    process = getpid();
    xmalloc_failed = end_without_memory;
    clears_line = is_smart_terminal(stderr);
    sigemptyset(&action.sa_mask);
    for (int number = 1; number <= SIGTERM; number++)
        if (is_interrupt(number) && sigaction(number, NULL, &before) == 0 &&
            before.sa_handler != SIG_IGN)
            sigaction(number, &action, NULL);
    action = (struct sigaction){.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &bus_before);
    /* A reader that goes away must not end a run in the middle: finish_output notices it. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    /* Whoever started this may ignore its children, but how ours end is to be known. */
    signal(SIGCHLD, SIG_DFL);
}

/* ---------------------------------------------------------------- waiting for the child */

/* Seconds until a call that does not return is reported; 0: never. */
static uint32_t patience = 10;

static void look_for_calls(void)
{
    char call[WAITING_SIZE];
    if (patience == 0 || !waiting_for(patience * UINT64_C(1000000000), call))
        return;
    print_notice("%s has not returned for %" PRIu32 " s; --timeout S limits the time", call,
                 patience);
    patience = 0;
}

/* ---------------------------------------------------------------- telling */

/* Says in one line what happened. */
static void describe(const struct process_result *child, uint32_t seconds,
                     struct healcl_error *error)
{
    const char *when = child->verdict.is_reported ? " after all work was done" : "";
    char name[PROCESS_SIGNAL_SIZE];
    if (child->end == PROCESS_TIMED_OUT && child->verdict.is_reported)
        (void)ERROR(error, HEALCL_DEVICE, "a driver did not let the process end%s", when);
    else if (child->end == PROCESS_TIMED_OUT)
        (void)ERROR(error, HEALCL_DEVICE, "not finished within %" PRIu32 " s (--timeout)", seconds);
    else if (child->end == PROCESS_KILLED && child->code == SIGKILL)
        (void)ERROR(error, HEALCL_DEVICE,
                    "the process was killed%s: SIGKILL, perhaps because memory ran out", when);
    else if (child->end == PROCESS_KILLED)
        (void)ERROR(error, HEALCL_DEVICE, "crashed in a driver, or in healcl%s: %s%s", when,
                    process_signal_name(child->code, name), opencl_missing());
    else
        (void)ERROR(error, HEALCL_DEVICE, "%s ended the process%s: exit code %d%s",
                    this_program->ended_by, when, child->code, opencl_missing());
}

/* Whether it would take forever to open it: a pipe with a name that nobody reads any more. */
static bool is_left(const char *path)
{
    struct stat about;
    if (stat(path, &about) != 0 || !S_ISFIFO(about.st_mode))
        return false;
    const int file = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (file >= 0)
        close(file);
    return file < 0;
}

/* Launchers of MPI tell before MPI does. */
bool is_first_rank(void)
{
    static const char *const variables[] = {"PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};
    const char *rank = NULL;
    for (size_t i = 0; !rank && i < sizeof variables / sizeof *variables; i++)
        rank = getenv(variables[i]);
    return !rank || strcmp(rank, "0") == 0;
}

/* The first of several ranks alone has standard output. */
static void write_report(struct report_file *report, const char *file,
                         const struct healcl_error *why)
{
    if (report->on_stdout ? !is_first_rank()
                          : is_left(report->path) || report_file_begin(report) != 0)
        return;
    report_file_error(report, file, why, true, false);
    (void)finish_output(EXIT_VERIFIED);
    report_file_discard(report);
}

static int conclude(const struct process_result *child, struct command_job *job)
{
    struct healcl_error why = {.status = HEALCL_OK};
    struct report_file *const reports[] = {&job->json, &job->junit};
    temporary_remove_all();
    describe(child, job->timeout, &why);
    if (*child->verdict.kernel && !child->verdict.is_reported) {
        error_prefix(&why, "while %s was checked: ", child->verdict.kernel);
        why.status = HEALCL_DIFFERENT; /* it is to blame */
    }
    clear_line();
    const int code = print_failure(NULL, &why, false);
    for (size_t i = 0; i < 2 && !child->verdict.is_reported; i++)
        if (reports[i]->path && !(child->verdict.reports >> reports[i]->is_junit & 1))
            write_report(reports[i], job->file, &why);
    healcl_error_clear(&why);
    return code;
}

/* ---------------------------------------------------------------- forking */

_Noreturn void end_at_once(int code)
{
    fflush(NULL);
    _exit(code);
}

bool is_one_process(void)
{
    const char *wanted = getenv("HEALCL_ONE_PROCESS");
    return wanted && *wanted;
}

/* Whether what has ended the child was a trial (registry.h): then another child begins behind it.
 */
static bool ends_a_trial(const struct process_result *child)
{
    const bool is_killed = child->end == PROCESS_KILLED && child->code == SIGKILL;
    if (!trial_end(child->end <= PROCESS_KILLED && !is_killed && !child->verdict.is_reported) ||
        this_program->starts_once)
        return false;
    temporary_remove_all();
    return true;
}

void supervise(const struct command *command, struct command_job *job, bool opens_device)
{
    const bool is_limited = job->timeout > 0 && command->device != DEVICE_IN_CHILDREN;
    if (!(opens_device || is_limited) || is_one_process() || verdict_is_asked())
        return;
    const char *given = getenv("HEALCL_PROGRESS_SECONDS");
    if (given && *given && !parse_count(given, UINT32_MAX, &patience))
        patience = 0;
    struct healcl_error error = {.status = HEALCL_OK};
    const struct process_task task = {.is_callers = true, .looking = look_for_calls};
    struct process_result child;
    if (!registry_share())
        xmalloc_fail();
    do {
        if (process_run(&task, job->timeout, &child, &error) != HEALCL_OK)
            end_at_once(end_error(&error, false));
        if (child.is_child) {
            process = getpid();
            return;
        }
        if (child.end == PROCESS_INTERRUPTED ||
            (child.end == PROCESS_KILLED && is_interrupt(child.code)))
            end_by_signal(child.code);
    } while (ends_a_trial(&child));
    end_at_once(child.is_own ? child.code : conclude(&child, job));
}
