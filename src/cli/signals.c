#include "cli/supervise.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/text.h"
#include "core/registry.h"
#include "core/verdict.h"
#include "tools/xmalloc.h"

static pid_t process; /* a child that a driver forks must not remove files of ours */
static bool clears_line, memory_is_told;
static struct sigaction bus_before;

static void remove_files(void)
{
    if (getpid() == process)
        temporary_remove_all();
}

static void end_by(int number)
{
    remove_files();
    signal(number, SIG_DFL);
    raise(number);
}

static void write_text(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

void signals_clear_line(void)
{
    if (clears_line)
        write_text("\r\x1b[K");
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
    signals_clear_line();
    write_text(this_program->name);
    write_text(": '");
    write_text(clean);
    write_text("': lost while it was read: the file was cut, or its disk failed\n");
    _exit(verdict_tell(EXIT_REFUSED));
}

/* As a signal ends it: what memory held is lost, and callers cannot go on. */
static _Noreturn void end_without_memory(void)
{
    remove_files();
    signals_clear_line();
    if (!memory_is_told) {
        write_text(this_program->name);
        write_text(": out of memory\n");
    }
    _exit(verdict_tell(EXIT_DEVICE));
}

void signals_memory_is_told(void)
{
    memory_is_told = true;
}

void signals_forked(void)
{
    process = getpid();
}

void signals_init(void)
{
    static const int interrupts[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = end_by, .sa_flags = SA_NODEFER}, before;
    process = getpid();
    xmalloc_failed = end_without_memory;
    clears_line = is_smart_terminal(stderr);
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof interrupts / sizeof *interrupts; i++)
        if (sigaction(interrupts[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(interrupts[i], &action, NULL);
    action = (struct sigaction){.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &bus_before);
    /* A reader that goes away must not end a run in the middle: finish_output notices it. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    /* Whoever started this may ignore its children, but how ours end is to be known. */
    signal(SIGCHLD, SIG_DFL);
}
