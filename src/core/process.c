#include "core/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

#include "core/clock.h"

/* ---------------------------------------------------------------- verdicts */

/* Words are bytes. An exit code has no mark, or LAST_MARK. The number of a report has REPORT_MARK.
 * Each letter of a kernel's name has KERNEL_MARK, and a 0 letter begins a name. */
enum { CODES = 16, LAST_MARK = 0x20, REPORT_MARK = 0x40, STATUS_MARK = 0x40, KERNEL_MARK = 0x80 };

static int verdict_file = -1;

static void process_say(unsigned word)
{
    const unsigned char byte = (unsigned char)word;
    if (verdict_file >= 0)
        (void)!write(verdict_file, &byte, 1);
}

void verdict_to(int pipe)
{
    verdict_file = pipe;
}

bool verdict_is_asked(void)
{
    return verdict_file >= 0;
}

void verdict_report_file(uint32_t i)
{
    process_say(REPORT_MARK | i);
}

void verdict_kernel(const char *name)
{
    static char last[sizeof((struct verdict *)NULL)->kernel];
    if (strncmp(name, last, sizeof last - 1) == 0)
        return;
    snprintf(last, sizeof last, "%s", name);
    process_say(KERNEL_MARK);
    for (const char *c = last; *c; c++)
        process_say(KERNEL_MARK | (unsigned char)*c);
}

int verdict_report(int code)
{
    process_say((unsigned)code);
    return verdict_file >= 0 ? STATUS_MARK | code : code;
}

void verdict_report_last(int code)
{
    process_say(LAST_MARK | (unsigned)code);
}

/* Reads what has been reported from the other end of the pipe, which must not block. */
static void verdict_read(int pipe, struct verdict *verdict)
{
    unsigned char word;
    while (read(pipe, &word, 1) == 1) {
        if (word & KERNEL_MARK) {
            const size_t length = word == KERNEL_MARK ? 0 : strlen(verdict->kernel);
            if (length < sizeof verdict->kernel - 1)
                memcpy(verdict->kernel + length, (char[2]){(char)(word & ~KERNEL_MARK)}, 2);
            continue;
        }
        if (word & REPORT_MARK) {
            verdict->reports |= UINT64_C(1) << (word & (REPORT_MARK - 1));
            continue;
        }
        verdict->is_reported = true;
        verdict->is_last = word & LAST_MARK;
        verdict->code = word % CODES;
    }
}

/* Whether a process with this status, from waitpid, has ended with the code that it reported. */
static bool verdict_holds(const struct verdict *verdict, int status)
{
    return verdict->is_last || (verdict->is_reported && WIFEXITED(status) &&
                                WEXITSTATUS(status) == (STATUS_MARK | verdict->code));
}

/* ---------------------------------------------------------------- processes */

enum {
    FILE_DESCRIPTOR = 3, /* PROCESS_FILE */
    HIGH_DESCRIPTOR = 10,
    TAIL_SIZE = 4096,    /* of standard error that is kept */
    LOOK_MS = 250,       /* between two looks for what nothing wakes this process for */
    SECOND = 1000000000, /* nanoseconds */
    CANNOT_START = 127,
    END_SECONDS = 30,      /* for a child to end after it has reported its exit code */
    INTERRUPT_SECONDS = 5, /* the same after a signal that was passed on */
    KILL_SECONDS = 2,      /* the same after it was killed: a device may hold it in the kernel */
};

/* ---------------------------------------------------------------- signals to this program */

static const int interrupts[] = {SIGINT, SIGTERM, SIGHUP};

enum { INTERRUPT_COUNT = sizeof interrupts / sizeof *interrupts };

static volatile sig_atomic_t interrupted; /* the signal */

static void on_interrupt(int signal)
{
    interrupted = signal;
}

static void catch_interrupts(struct sigaction before[INTERRUPT_COUNT])
{
    struct sigaction action = {.sa_handler = on_interrupt};
    sigemptyset(&action.sa_mask);
    interrupted = 0;
    for (size_t i = 0; i < INTERRUPT_COUNT; i++) {
        sigaction(interrupts[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) /* as under nohup */
            sigaction(interrupts[i], &action, NULL);
    }
}

static void restore_interrupts(const struct sigaction before[INTERRUPT_COUNT])
{
    for (size_t i = 0; i < INTERRUPT_COUNT; i++)
        sigaction(interrupts[i], &before[i], NULL);
    if (interrupted) /* too late to be passed on */
        (void)raise(interrupted);
}

/* ---------------------------------------------------------------- the child */

struct child {
    pid_t id;
    int data, errors; /* ends of pipes to read from; -1: closed */
    int words;        /* the same, for its verdict */
    bool has_words;   /* its end of that pipe is open */
    int interrupt;    /* a signal that this process has got, or 0 */
    char tail[TAIL_SIZE];
    size_t tail_size;
    size_t capacity; /* of the result's text */
};

static void exec_self(const char *const *arguments)
{
    char *const *argv = (char *const *)(uintptr_t)arguments;
    execv("/proc/self/exe", argv);
#ifdef __linux__
    execv((const char *)getauxval(AT_EXECFN), argv); /* /proc is not mounted */
#endif
    static const char message[] = "healcl cannot start itself: /proc/self/exe\n";
    (void)!write(STDERR_FILENO, message, sizeof message - 1);
}

/* Makes a child end with its parent. */
static void follow_parent(pid_t parent)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent)
        _exit(CANNOT_START);
}

/* Runs between fork and exec. Only functions that are safe beside other threads are allowed. */
static _Noreturn void become(const struct process_task *task, int data, int errors, int words,
                             pid_t parent)
{
    setpgid(0, 0);
    follow_parent(parent);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    signal(SIGPIPE, SIG_DFL);
    /* No descriptor may overwrite another one that is still needed. */
    data = fcntl(data, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);
    words = fcntl(words, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);
    bool ready = nothing >= 0 && dup2(errors, STDERR_FILENO) >= 0 &&
                 dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDOUT_FILENO) >= 0;
    if (ready && task->function) {
        verdict_to(words);
        exit(verdict_report(task->function(data)));
    }
    if (ready && task->arguments && dup2(data, FILE_DESCRIPTOR) >= 0 &&
        dup2(words, PROCESS_VERDICT_FILE) >= 0)
        exec_self(task->arguments);
    _exit(CANNOT_START);
}

static void *map_shared(int descriptor, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void *process_shared(size_t bytes)
{
    struct stat about;
    bool is_there = fstat(FILE_DESCRIPTOR, &about) == 0 && (size_t)about.st_size >= bytes;
    return is_there ? map_shared(FILE_DESCRIPTOR, bytes) : NULL;
}

size_t process_start_beside(const char *const *arguments, size_t count, size_t bytes, void **shared,
                            int *processes)
{
    const pid_t parent = getpid();
    size_t started = 0;
    FILE *file = tmpfile();
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    *shared = file && nothing >= 0 && ftruncate(fileno(file), (off_t)bytes) == 0
                  ? map_shared(fileno(file), bytes)
                  : NULL;
    fflush(NULL);
    while (*shared && started < count) {
        const pid_t process = fork();
        if (process == 0)
            become(&(const struct process_task){.arguments = arguments}, fileno(file), nothing,
                   nothing, parent);
        if (process < 0)
            break;
        processes[started++] = (int)process;
    }
    if (nothing >= 0)
        close(nothing);
    if (file)
        fclose(file);
    return started;
}

bool process_has_ended(int process)
{
    siginfo_t about = {.si_pid = 0};
    return waitid(P_PID, (id_t)process, &about, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           about.si_pid != 0;
}

void process_stop(int process)
{
    if (process <= 0)
        return;
    (void)kill((pid_t)process, SIGKILL);
    while (waitpid((pid_t)process, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* Makes a pipe that started programs do not inherit, with a read end that does not block. Returns
 * false, with errno set, if it fails. */
static bool process_pipe(int pair[2])
{
    if (pipe(pair) != 0)
        return false;
    fcntl(pair[0], F_SETFD, FD_CLOEXEC);
    fcntl(pair[1], F_SETFD, FD_CLOEXEC);
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    return true;
}

/* Returns in the caller's child too, whose id is 0. */
static enum healcl_status process_start_task(const struct process_task *task, struct child *child,
                                             struct healcl_error *error)
{
    const int needed = task->is_callers ? 1 : 3;
    int pipes[3][2], made = 0; /* words, data, errors */
    while (made < needed && process_pipe(pipes[made]))
        made++;
    int code = errno;
    pid_t parent = getpid();
    fflush(NULL);
    if (made == needed) {
        child->id = fork();
        code = errno;
    }
    if (child->id == 0 && !task->is_callers)
        become(task, pipes[1][1], pipes[2][1], pipes[0][1], parent);
    if (child->id == 0) {
        follow_parent(parent);
        close(pipes[0][0]);
        verdict_to(pipes[0][1]);
        return HEALCL_OK;
    }
    if (child->id < 0) {
        for (int i = 0; i < made; i++)
            (void)close(pipes[i][0]), (void)close(pipes[i][1]);
        FAIL(error, HEALCL_DEVICE, "cannot start a process: %s", strerror(code));
    }
    for (int i = 0; i < made; i++)
        close(pipes[i][1]);
    child->words = pipes[0][0];
    child->has_words = true;
    if (task->is_callers)
        return HEALCL_OK;
    setpgid(child->id, child->id); /* also here: it may be killed before its own call */
    child->data = pipes[1][0];
    child->errors = pipes[2][0];
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- what it writes */

/* Both read all available bytes; false at the end. */
static bool read_errors(struct child *child)
{
    char *tail = child->tail;
    if (child->tail_size == TAIL_SIZE) { /* drops the older half */
        memcpy(tail, tail + TAIL_SIZE / 2, TAIL_SIZE / 2);
        child->tail_size = TAIL_SIZE / 2;
    }
    ssize_t count = read(child->errors, tail + child->tail_size, TAIL_SIZE - child->tail_size);
    if (count > 0)
        child->tail_size += (size_t)count;
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

static enum healcl_status read_data(struct child *child, struct process_result *result, bool *more,
                                    struct healcl_error *error)
{
    enum { LEAST_ROOM = 64 * 1024 };
    if (child->capacity - result->size < LEAST_ROOM) {
        size_t capacity = 2 * (child->capacity + LEAST_ROOM);
        char *text = realloc(result->text, capacity);
        NEED_MEMORY(text, error);
        result->text = text;
        child->capacity = capacity;
    }
    ssize_t count =
        read(child->data, result->text + result->size, child->capacity - result->size - 1);
    if (count > 0)
        result->size += (size_t)count;
    result->text[result->size] = 0;
    *more = count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
    return HEALCL_OK;
}

/* Waits for output or words, at most so long, and reads output. */
static enum healcl_status read_some(struct child *child, struct process_result *result,
                                    int milliseconds, struct healcl_error *error)
{
    struct pollfd files[] = {{.fd = child->data, .events = POLLIN},
                             {.fd = child->errors, .events = POLLIN},
                             {.fd = child->has_words ? child->words : -1, .events = POLLIN}};
    if (poll(files, 3, milliseconds) <= 0)
        return HEALCL_OK;
    child->has_words &= !(files[2].revents & (POLLHUP | POLLERR));
    if (files[0].revents) {
        bool more = false;
        TRY(read_data(child, result, &more, error));
        if (!more) {
            close(child->data);
            child->data = -1;
        }
    }
    if (files[1].revents && !read_errors(child)) {
        close(child->errors);
        child->errors = -1;
    }
    return HEALCL_OK;
}

/* The last line that is not blank. */
static void note_last_line(const struct child *child, char line[PROCESS_LINE_SIZE])
{
    size_t end = child->tail_size;
    while (end > 0 && (unsigned char)child->tail[end - 1] <= ' ')
        end--;
    size_t begin = end;
    while (begin > 0 && child->tail[begin - 1] != '\n')
        begin--;
    size_t length = end - begin < PROCESS_LINE_SIZE ? end - begin : PROCESS_LINE_SIZE - 1;
    memcpy(line, child->tail + begin, length);
    line[length] = 0;
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
}

/* ---------------------------------------------------------------- waiting */

static bool has_ended(const struct child *child, int *status, struct rusage *usage)
{
    pid_t ended;
    do
        ended = wait4(child->id, status, WNOHANG, usage);
    while (ended < 0 && errno == EINTR);
    return ended != 0;
}

static void sooner(uint64_t *deadline, uint64_t seconds)
{
    const uint64_t end = monotonic_nanoseconds() + seconds * SECOND;
    *deadline = end < *deadline ? end : *deadline;
}

/* Passes a signal on to the caller's child. Others are ended at once. */
static void take_interrupt(struct child *child, bool is_callers, uint64_t *deadline)
{
    if (!interrupted)
        return;
    child->interrupt = interrupted;
    interrupted = 0;
    if (is_callers)
        (void)kill(child->id, child->interrupt);
    sooner(deadline, is_callers ? INTERRUPT_SECONDS : 0);
}

/* Kills the child, and processes that others left behind. */
static void end_child(const struct child *child, bool is_callers, bool ended, int *status,
                      struct rusage *usage)
{
    uint64_t deadline = UINT64_MAX;
    if (!is_callers || !ended)
        (void)kill(is_callers ? child->id : -child->id, SIGKILL);
    for (sooner(&deadline, KILL_SECONDS); !ended && monotonic_nanoseconds() < deadline;) {
        (void)poll(NULL, 0, 1);
        ended = has_ended(child, status, usage);
    }
}

/* Reads until the child ends or must be ended. Sets result->end to the reason. seconds: 0: no
 * limit. */
static enum healcl_status process_follow(const struct process_task *task, struct child *child,
                                         uint32_t seconds, struct process_result *result,
                                         int *status, struct rusage *usage,
                                         struct healcl_error *error)
{
    bool ended = false;
    enum healcl_status reading = HEALCL_OK;
    uint64_t deadline = UINT64_MAX;
    if (seconds > 0)
        sooner(&deadline, seconds);
    while (!ended && reading == HEALCL_OK && monotonic_nanoseconds() < deadline) {
        if (task->looking)
            task->looking();
        /* A process that closes all is about to end, so it is checked more often. */
        const bool open = child->data >= 0 || child->errors >= 0 || child->has_words;
        reading = read_some(child, result, open ? LOOK_MS : 1, error);
        ended = has_ended(child, status, usage);
        const bool was_reported = result->verdict.is_reported;
        verdict_read(child->words, &result->verdict);
        if (result->verdict.is_reported && !was_reported)
            sooner(&deadline, END_SECONDS);
        take_interrupt(child, task->is_callers, &deadline);
    }
    result->end = child->interrupt ? PROCESS_INTERRUPTED
                  : ended          ? PROCESS_EXITED
                                   : PROCESS_TIMED_OUT;
    end_child(child, task->is_callers, ended, status, usage);
    /* The child may have written more before it ended. */
    size_t before;
    do {
        before = result->size + child->tail_size;
        if (reading == HEALCL_OK)
            reading = read_some(child, result, 0, error);
    } while (reading == HEALCL_OK && result->size + child->tail_size > before);
    return reading;
}

enum healcl_status process_run(const struct process_task *task, uint32_t seconds,
                               struct process_result *result, struct healcl_error *error)
{
    *result = (struct process_result){.end = PROCESS_EXITED};
    struct sigaction before[INTERRUPT_COUNT];
    struct child child = {.id = -1, .data = -1, .errors = -1, .words = -1};
    struct rusage usage = {.ru_maxrss = 0};
    int status = 0;
    catch_interrupts(before);
    uint64_t begin = monotonic_nanoseconds();
    enum healcl_status outcome = process_start_task(task, &child, error);
    result->is_child = child.id == 0;
    if (outcome == HEALCL_OK && !result->is_child) {
        outcome = process_follow(task, &child, seconds, result, &status, &usage, error);
        result->nanoseconds = monotonic_nanoseconds() - begin;
        result->bytes_peak = (uint64_t)usage.ru_maxrss * 1024;
        result->is_own = result->end == PROCESS_EXITED && verdict_holds(&result->verdict, status);
        if (result->end == PROCESS_EXITED && !result->is_own && WIFSIGNALED(status))
            result->end = PROCESS_KILLED;
        result->code = result->end == PROCESS_INTERRUPTED ? child.interrupt
                       : result->is_own                   ? result->verdict.code
                       : WIFSIGNALED(status)              ? WTERMSIG(status)
                                                          : WEXITSTATUS(status);
        note_last_line(&child, result->last_line);
    }
    const int files[] = {child.data, child.errors, child.words};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i] >= 0)
            close(files[i]);
    restore_interrupts(before);
    return outcome;
}

void process_result_release(struct process_result *result)
{
    free(result->text);
    result->text = NULL;
    result->size = 0;
}

const char *process_signal_name(int signal, char text[PROCESS_SIGNAL_SIZE])
{
    static const struct {
        int signal;
        const char *name;
    } names[] = {{SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
                 {SIGILL, "SIGILL"},   {SIGINT, "SIGINT"},   {SIGKILL, "SIGKILL"},
                 {SIGPIPE, "SIGPIPE"}, {SIGQUIT, "SIGQUIT"}, {SIGSEGV, "SIGSEGV"},
                 {SIGSYS, "SIGSYS"},   {SIGTERM, "SIGTERM"}, {SIGTRAP, "SIGTRAP"},
                 {SIGHUP, "SIGHUP"},   {SIGXCPU, "SIGXCPU"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].signal == signal)
            return names[i].name;
    snprintf(text, PROCESS_SIGNAL_SIZE, "signal %d", signal);
    return text;
}
