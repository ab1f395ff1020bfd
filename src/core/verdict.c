#include "core/verdict.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Words are bytes. An exit code has no mark, or LAST_MARK. The number of a report has REPORT_MARK.
 * Each letter of a kernel's name has KERNEL_MARK, and a 0 letter begins a name. */
enum { CODES = 16, LAST_MARK = 0x20, REPORT_MARK = 0x40, STATUS_MARK = 0x40, KERNEL_MARK = 0x80 };

static int file = -1;

static void say(unsigned word)
{
    const unsigned char byte = (unsigned char)word;
    if (file >= 0)
        (void)!write(file, &byte, 1);
}

void verdict_to(int pipe)
{
    file = pipe;
}

bool verdict_is_asked(void)
{
    return file >= 0;
}

void verdict_report_file(uint32_t i)
{
    say(REPORT_MARK | i);
}

void verdict_kernel(const char *name)
{
    static char last[sizeof((struct verdict *)NULL)->kernel];
    if (strncmp(name, last, sizeof last - 1) == 0)
        return;
    snprintf(last, sizeof last, "%s", name);
    say(KERNEL_MARK);
    for (const char *c = last; *c; c++)
        say(KERNEL_MARK | (unsigned char)*c);
}

int verdict_report(int code)
{
    say((unsigned)code);
    return file >= 0 ? STATUS_MARK | code : code;
}

void verdict_report_last(int code)
{
    say(LAST_MARK | (unsigned)code);
}

void verdict_read(int pipe, struct verdict *verdict)
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

bool verdict_holds(const struct verdict *verdict, int status)
{
    return verdict->is_last || (verdict->is_reported && WIFEXITED(status) &&
                                WEXITSTATUS(status) == (STATUS_MARK | verdict->code));
}
