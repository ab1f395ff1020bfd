#include "core/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "core/clock.h"

enum {
    FILE_DESCRIPTOR = 3, /* PROCESS_FILE */
    TAIL_SIZE = 4096,    /* of standard error that is kept */
    LOOK_MS = 50,        /* between two looks for signals and for the end */
    SECOND = 1000000000, /* nanoseconds */
    CANNOT_START = 127,
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
}

/* ---------------------------------------------------------------- the child */

struct child {
    pid_t id;
    int data, errors; /* ends of pipes to read from; -1: closed */
    char tail[TAIL_SIZE];
    size_t tail_size;
    size_t capacity; /* of the result's text */
};

/* Between fork and exec: only what is safe there beside other threads. */
static _Noreturn void become(const char *const *arguments, int data, int errors, pid_t parent)
{
    setpgid(0, 0);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent)
        _exit(CANNOT_START);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    signal(SIGPIPE, SIG_DFL);
    bool ready = nothing >= 0 && dup2(errors, STDERR_FILENO) >= 0 &&
                 dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDOUT_FILENO) >= 0;
    /* A pipe that is number 3 already would lose its descriptor at exec. */
    if (ready && data == FILE_DESCRIPTOR)
        ready = fcntl(data, F_SETFD, 0) >= 0;
    else if (ready)
        ready = dup2(data, FILE_DESCRIPTOR) >= 0;
    if (ready)
        execv("/proc/self/exe", (char *const *)(uintptr_t)arguments);
    static const char message[] = "healcl cannot start itself: /proc/self/exe\n";
    (void)!write(STDERR_FILENO, message, sizeof message - 1);
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

int process_start_beside(const char *const *arguments, size_t bytes, void **shared)
{
    const pid_t parent = getpid();
    pid_t process = -1;
    FILE *file = tmpfile();
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    *shared = file && nothing >= 0 && ftruncate(fileno(file), (off_t)bytes) == 0
                  ? map_shared(fileno(file), bytes)
                  : NULL;
    fflush(NULL);
    if (*shared)
        process = fork();
    if (process == 0)
        become(arguments, fileno(file), nothing, parent);
    if (nothing >= 0)
        close(nothing);
    if (file)
        fclose(file);
    return process > 0 ? (int)process : 0;
}

void process_stop(int process)
{
    if (process <= 0)
        return;
    (void)kill((pid_t)process, SIGKILL);
    while (waitpid((pid_t)process, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static void close_pair(const int pair[2])
{
    close(pair[0]);
    close(pair[1]);
}

static bool make_pipe(int pair[2])
{
    if (pipe(pair) != 0)
        return false;
    fcntl(pair[0], F_SETFD, FD_CLOEXEC);
    fcntl(pair[1], F_SETFD, FD_CLOEXEC);
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    return true;
}

static enum healcl_status start(const char *const *arguments, struct child *child,
                                struct healcl_error *error)
{
    int data[2], errors[2];
    if (!make_pipe(data))
        FAIL(error, HEALCL_DEVICE, "cannot make a pipe: %s", strerror(errno));
    if (!make_pipe(errors)) {
        close_pair(data);
        FAIL(error, HEALCL_DEVICE, "cannot make a pipe: %s", strerror(errno));
    }
    pid_t parent = getpid();
    fflush(NULL);
    child->id = fork();
    if (child->id == 0)
        become(arguments, data[1], errors[1], parent);
    int code = errno;
    if (child->id < 0) {
        close_pair(data);
        close_pair(errors);
        FAIL(error, HEALCL_DEVICE, "cannot start a process: %s", strerror(code));
    }
    setpgid(child->id, child->id); /* here too: it may be killed before it gets there */
    close(data[1]);
    close(errors[1]);
    child->data = data[0];
    child->errors = errors[0];
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- what it writes */

/* Both read what there is; false at the end. */
static bool read_errors(struct child *child)
{
    char *tail = child->tail;
    if (child->tail_size == TAIL_SIZE) { /* the older half goes */
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
        if (!text)
            NO_MEMORY(error);
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

/* Waits for something to read, LOOK_MS at the longest, and reads it. */
static enum healcl_status read_some(struct child *child, struct process_result *result,
                                    int milliseconds, struct healcl_error *error)
{
    struct pollfd files[] = {{.fd = child->data, .events = POLLIN},
                             {.fd = child->errors, .events = POLLIN}};
    if (poll(files, 2, milliseconds) <= 0)
        return HEALCL_OK;
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

static bool has_ended(const struct child *child, bool wait, int *status, struct rusage *usage)
{
    pid_t ended;
    do
        ended = wait4(child->id, status, wait ? 0 : WNOHANG, usage);
    while (ended < 0 && errno == EINTR);
    return ended != 0;
}

/* Reads until the child ends, or has to. *killed is how process_result.end says why. */
static enum healcl_status follow(struct child *child, uint64_t deadline,
                                 struct process_result *result, int *status, struct rusage *usage,
                                 struct healcl_error *error)
{
    bool ended = false;
    enum healcl_status reading = HEALCL_OK;
    while (!ended && reading == HEALCL_OK && !interrupted && monotonic_nanoseconds() < deadline) {
        /* A process that closes both is about to end: no need to look for it slowly. */
        bool open = child->data >= 0 || child->errors >= 0;
        reading = read_some(child, result, open ? LOOK_MS : 1, error);
        ended = has_ended(child, false, status, usage);
    }
    result->end = ended ? PROCESS_EXITED : interrupted ? PROCESS_INTERRUPTED : PROCESS_TIMED_OUT;
    kill(-child->id, SIGKILL); /* it, or what it started and left behind */
    if (!ended)
        has_ended(child, true, status, usage);
    /* What it wrote at last. */
    size_t before;
    do {
        before = result->size + child->tail_size;
        if (reading == HEALCL_OK)
            reading = read_some(child, result, 0, error);
    } while (reading == HEALCL_OK && result->size + child->tail_size > before);
    return reading;
}

enum healcl_status process_run(const char *const *arguments, uint32_t seconds,
                               struct process_result *result, struct healcl_error *error)
{
    *result = (struct process_result){.end = PROCESS_EXITED};
    struct sigaction before[INTERRUPT_COUNT];
    struct child child = {.data = -1, .errors = -1};
    struct rusage usage = {.ru_maxrss = 0};
    int status = 0;
    catch_interrupts(before);
    uint64_t begin = monotonic_nanoseconds();
    enum healcl_status outcome = start(arguments, &child, error);
    if (outcome == HEALCL_OK) {
        uint64_t deadline = begin + (uint64_t)seconds * SECOND;
        outcome = follow(&child, deadline, result, &status, &usage, error);
        result->nanoseconds = monotonic_nanoseconds() - begin;
        result->bytes_peak = (uint64_t)usage.ru_maxrss * 1024;
        if (result->end == PROCESS_EXITED && WIFSIGNALED(status))
            result->end = PROCESS_KILLED;
        result->code = result->end == PROCESS_INTERRUPTED ? interrupted
                       : WIFSIGNALED(status)              ? WTERMSIG(status)
                                                          : WEXITSTATUS(status);
        note_last_line(&child, result->last_line);
    }
    if (child.data >= 0)
        close(child.data);
    if (child.errors >= 0)
        close(child.errors);
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
