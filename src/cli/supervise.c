#include "cli/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "cli/text.h"
#include "core/clock.h"
#include "core/process.h"
#include "core/registry.h"
#include "tools/xmalloc.h"

/* ---------------------------------------------------------------- signals */

static pid_t process;    /* a child that a driver forks must not remove files of ours */
static sigset_t awaited; /* the interrupts that end this process, and SIGCHLD */
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

void signals_init(void)
{
    static const int interrupts[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = end_by_signal, .sa_flags = SA_NODEFER}, before;
    process = getpid();
    xmalloc_failed = end_without_memory;
    clears_line = is_smart_terminal(stderr);
    sigemptyset(&action.sa_mask);
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    for (size_t i = 0; i < sizeof interrupts / sizeof *interrupts; i++)
        if (sigaction(interrupts[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
            sigaction(interrupts[i], &action, NULL);
            sigaddset(&awaited, interrupts[i]);
        }
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

enum {
    SECOND = 1000000000, /* nanoseconds */
    LOOK = SECOND / 4,   /* between two looks for its verdict, until which nothing has to be done */
    PATIENCE_SECONDS = 10, /* without HEALCL_PROGRESS_SECONDS */
    EXIT_SECONDS = 30,     /* that it may take to end once it has said its exit code */
    INTERRUPT_SECONDS = 5, /* the same, interrupted */
    KILL_SECONDS = 2,      /* the same, killed: a device may hold it in the kernel */
};

struct watch {
    pid_t child;
    int words; /* where it says its exit code */
    struct verdict verdict;
    bool has_ended, was_killed; /* by us */
    int status;                 /* as of waitpid */
    int interrupt;              /* a signal that this process has got, or 0 */
    uint32_t patience;          /* seconds until a call that does not return is told; 0: never */
};

static void sooner(uint64_t *deadline, uint64_t seconds)
{
    const uint64_t end = monotonic_nanoseconds() + seconds * SECOND;
    *deadline = end < *deadline ? end : *deadline;
}

/* Looks for its end and for its words, and waits a while for a signal. */
static void look(struct watch *watch, uint64_t *deadline)
{
    const bool was_reported = watch->verdict.is_reported;
    struct timespec rest = {.tv_nsec = LOOK};
    watch->has_ended = waitpid(watch->child, &watch->status, WNOHANG) == watch->child;
    verdict_read(watch->words, &watch->verdict);
    if (watch->verdict.is_reported && !was_reported)
        sooner(deadline, EXIT_SECONDS);
    const uint64_t now = monotonic_nanoseconds();
    if (watch->has_ended || now >= *deadline)
        return;
    if (*deadline - now < LOOK)
        rest.tv_nsec = (long)(*deadline - now);
    const int number = sigtimedwait(&awaited, NULL, &rest);
    if (number > 0 && number != SIGCHLD) {
        watch->interrupt = number;
        (void)kill(watch->child, number);
        sooner(deadline, INTERRUPT_SECONDS);
    }
}

/* seconds: 0: no limit */
static void wait_for_end(struct watch *watch, uint32_t seconds)
{
    uint64_t deadline = UINT64_MAX;
    if (seconds > 0)
        sooner(&deadline, seconds);
    while (!watch->has_ended && monotonic_nanoseconds() < deadline) {
        char call[WAITING_SIZE];
        if (watch->patience > 0 && waiting_for(watch->patience * UINT64_C(1000000000), call)) {
            print_notice("%s has not returned for %" PRIu32 " s; --timeout S limits the time", call,
                         watch->patience);
            watch->patience = 0;
        }
        look(watch, &deadline);
    }
}

/* ---------------------------------------------------------------- telling */

/* Says in one line what happened. */
static void describe(const struct watch *watch, uint32_t seconds, struct healcl_error *error)
{
    const char *when = watch->verdict.is_reported ? " after all work was done" : "";
    char name[PROCESS_SIGNAL_SIZE];
    const int number = WIFSIGNALED(watch->status) ? WTERMSIG(watch->status) : 0;
    if (watch->was_killed && watch->verdict.is_reported)
        (void)ERROR(error, HEALCL_DEVICE, "a driver did not let the process end%s", when);
    else if (watch->was_killed)
        (void)ERROR(error, HEALCL_DEVICE, "not finished within %" PRIu32 " s (--timeout)", seconds);
    else if (number == SIGKILL)
        (void)ERROR(error, HEALCL_DEVICE,
                    "the process was killed%s: SIGKILL, perhaps because memory ran out", when);
    else if (number)
        (void)ERROR(error, HEALCL_DEVICE, "crashed in a driver, or in healcl%s: %s%s", when,
                    process_signal_name(number, name), opencl_missing());
    else
        (void)ERROR(error, HEALCL_DEVICE, "%s ended the process%s: exit code %d%s",
                    this_program->ended_by, when, WEXITSTATUS(watch->status), opencl_missing());
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

static int conclude(const struct watch *watch, struct command_job *job)
{
    struct healcl_error why = {.status = HEALCL_OK};
    struct report_file *const reports[] = {&job->json, &job->junit};
    temporary_remove_all();
    describe(watch, job->timeout, &why);
    if (*watch->verdict.kernel && !watch->verdict.is_reported) {
        error_prefix(&why, "while %s was checked: ", watch->verdict.kernel);
        why.status = HEALCL_DIFFERENT; /* it is to blame */
    }
    clear_line();
    const int code = print_failure(NULL, &why, false);
    for (size_t i = 0; i < 2 && !watch->verdict.is_reported; i++)
        if (reports[i]->path && !(watch->verdict.reports >> reports[i]->is_junit & 1))
            write_report(reports[i], job->file, &why);
    healcl_error_clear(&why);
    return code;
}

/* ---------------------------------------------------------------- forking */

static void become_child(const int pipes[2], pid_t parent, const sigset_t *before)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_DEVICE);
#else
    (void)parent;
#endif
    close(pipes[0]);
    verdict_to(pipes[1]);
    process = getpid();
    sigprocmask(SIG_SETMASK, before, NULL);
}

/* Whether what has ended the child was a trial (registry.h): then another child begins behind it.
 */
static bool ends_a_trial(const struct watch *watch)
{
    const bool is_killed = WIFSIGNALED(watch->status) && WTERMSIG(watch->status) == SIGKILL;
    if (!trial_end(watch->has_ended && !watch->was_killed && !is_killed &&
                   !watch->verdict.is_reported) ||
        this_program->starts_once)
        return false;
    temporary_remove_all();
    return true;
}

enum { AGAIN = -1 };

static int watch_child(struct watch *watch, struct command_job *job)
{
    wait_for_end(watch, job->timeout);
    if (!watch->has_ended) {
        watch->was_killed = true;
        (void)kill(watch->child, SIGKILL);
        wait_for_end(watch, KILL_SECONDS);
    }
    const int number = WIFSIGNALED(watch->status) ? WTERMSIG(watch->status) : 0;
    if (!watch->interrupt && number && sigismember(&awaited, number) == 1)
        watch->interrupt = number;
    if (watch->interrupt)
        end_by_signal(watch->interrupt);
    if (ends_a_trial(watch))
        return AGAIN;
    return watch->has_ended && verdict_holds(&watch->verdict, watch->status) ? watch->verdict.code
                                                                             : conclude(watch, job);
}

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

void supervise(const struct command *command, struct command_job *job, bool opens_device)
{
    const bool is_limited = job->timeout > 0 && command->device != DEVICE_IN_CHILDREN;
    if (!(opens_device || is_limited) || is_one_process() || verdict_is_asked())
        return;
    struct watch watch = {.child = -1, .patience = PATIENCE_SECONDS};
    const char *patience = getenv("HEALCL_PROGRESS_SECONDS");
    if (patience && *patience && !parse_count(patience, UINT32_MAX, &watch.patience))
        watch.patience = 0;
    int pipes[2] = {-1, -1}, code = AGAIN;
    sigset_t before;
    sigprocmask(SIG_BLOCK, &awaited, &before);
    const pid_t parent = getpid();
    const struct watch new_watch = watch;
    const bool can_fork = registry_share();
    while (code == AGAIN) {
        watch = new_watch;
        if (can_fork && process_pipe(pipes))
            watch.child = fork();
        if (watch.child < 0) {
            print_notice("cannot start a process: %s", strerror(errno));
            end_at_once(EXIT_DEVICE);
        }
        if (watch.child == 0) {
            become_child(pipes, parent, &before);
            return;
        }
        close(pipes[1]);
        watch.words = pipes[0];
        code = watch_child(&watch, job);
        close(pipes[0]);
    }
    end_at_once(code);
}
