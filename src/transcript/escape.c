#include "transcript/escape.h"

#include <string.h>

enum { NOT_ASCII = 0xff };

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The character that "\uXXXX" stands for; digits: those four characters. */
static int resolve_code(const char *digits)
{
    int code = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(digits[i]);
        if (digit < 0)
            return NOT_ASCII;
        code = code * 16 + digit;
    }
    return code < 0x80 ? code : NOT_ASCII;
}

/* The character of the escape at text, which holds left >= 1 bytes; sets its length in bytes. */
static int resolve_one(const char *text, size_t left, size_t *length)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    *length = left < 2 ? left : 2;
    if (left < 2)
        return NOT_ASCII;
    if (text[1] == 'u') {
        *length = left < 6 ? left : 6;
        return left < 6 ? NOT_ASCII : resolve_code(text + 2);
    }
    const char *letter = text[1] != 0 ? strchr(letters, text[1]) : NULL;
    return letter ? meanings[letter - letters] : NOT_ASCII;
}

size_t escape_resolve(const char **text, size_t *left, char *characters, size_t capacity)
{
    const char *next = *text;
    const char *end = next + *left;
    size_t count = 0;
    while (count < capacity && next < end) {
        size_t run = (size_t)(end - next);
        if (run > capacity - count)
            run = capacity - count;
        const char *backslash = memchr(next, '\\', run);
        if (backslash)
            run = (size_t)(backslash - next);
        memcpy(characters + count, next, run);
        count += run;
        next += run;
        if (!backslash)
            continue;
        size_t length;
        characters[count++] = (char)resolve_one(next, (size_t)(end - next), &length);
        next += length;
    }
    *text = next;
    *left = (size_t)(end - next);
    return count;
}
