#include "transcript/base64.h"

#include <string.h>

#include "core/copy.h"
#include "transcript/base64_vector.h"

/* ---------------------------------------------------------------- tables */

#define VALUE(c)                                                \
    (unsigned char)((c) >= 'A' && (c) <= 'Z'   ? (c) - 'A'      \
                    : (c) >= 'a' && (c) <= 'z' ? (c) - 'a' + 26 \
                    : (c) >= '0' && (c) <= '9' ? (c) - '0' + 52 \
                    : (c) == '+'               ? 62             \
                    : (c) == '/'               ? 63             \
                                               : BASE64_BAD)
#define VALUES_4(c) VALUE(c), VALUE((c) + 1), VALUE((c) + 2), VALUE((c) + 3)
#define VALUES_16(c) VALUES_4(c), VALUES_4((c) + 4), VALUES_4((c) + 8), VALUES_4((c) + 12)
#define VALUES_64(c) VALUES_16(c), VALUES_16((c) + 16), VALUES_16((c) + 32), VALUES_16((c) + 48)

const unsigned char base64_values[256] = {VALUES_64(0), VALUES_64(64), VALUES_64(128),
                                          VALUES_64(192)};

/* ---------------------------------------------------------------- checking */

size_t base64_good(const char *text, size_t length)
{
    const struct base64_vector *vector = base64_vector();
    const unsigned char *c = (const unsigned char *)text;
    size_t i = vector ? vector->good(text, length) : 0;
    while (i < length && base64_values[c[i]] < BASE64_BAD)
        i++;
    return i;
}

static enum healcl_status refuse_character(char character, uint64_t place,
                                           struct healcl_error *error)
{
    unsigned char c = (unsigned char)character;
    if (c == '=')
        REFUSE(error, "base64: padding '=' at %" PRIu64 " is not at the end", place);
    if (c >= ' ' && c < 0x7f)
        REFUSE(error, "base64: character '%c' at %" PRIu64 " is not in the alphabet", c, place);
    REFUSE(error, "base64: character 0x%02x at %" PRIu64 " is not in the alphabet", c, place);
}

enum healcl_status base64_check(const char *text, size_t length, size_t good, uint64_t *decoded,
                                struct healcl_error *error)
{
    const bool is_padded = length > 1 && text[length - 1] == '=';
    const size_t padding = !is_padded ? 0 : text[length - 2] != '=' ? 1 : 2;
    if (good < length - padding)
        return refuse_character(text[good], good, error);
    if (length % 4 != 0)
        REFUSE(error, "base64: length %zu is not a multiple of 4", length);
    *decoded = (uint64_t)length / 4 * 3 - padding;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- JSON escapes */

/* The character for an escape at text, or '\\' if base64 cannot contain it. Advances past the
 * escape. */
static char take_escape(const char *text, size_t left, size_t *at)
{
    unsigned code = 0;
    const bool is_code = left >= 6 && text[1] == 'u';
    *at += is_code ? 6 : left < 2 ? left : 2;
    if (!is_code)
        return left > 1 && text[1] == '/' ? '/' : '\\';
    for (size_t i = 2; i < 6; i++)
        code = code * 16 + (unsigned)(text[i] <= '9' ? text[i] - '0' : (text[i] | 0x20) - 'a' + 10);
    return code < 0x80 ? (char)code : '\\';
}

size_t base64_unescape(const char *text, size_t length, size_t *at, char *characters, size_t count)
{
    size_t done = 0;
    while (done < count && *at < length) {
        const size_t most = count - done < length - *at ? count - done : length - *at;
        const char *next = text + *at, *escape = memchr(next, '\\', most);
        const size_t plain = escape ? (size_t)(escape - next) : most;
        memcpy(characters + done, next, plain);
        done += plain;
        *at += plain;
        if (escape)
            characters[done++] = take_escape(escape, length - *at, at);
    }
    return done;
}

enum healcl_status base64_check_escaped(const char *text, size_t length, size_t *blocks,
                                        uint64_t *characters, uint64_t *decoded,
                                        struct healcl_error *error)
{
    char block[BASE64_BLOCK];
    size_t padding = 0;
    *characters = 0;
    for (size_t at = 0, begin = 0, count; at < length; begin = at, *characters += count) {
        *blocks++ = at;
        count = base64_unescape(text, length, &at, block, sizeof block);
        const size_t good = base64_good(block, count);
        padding = count - good;
        if (padding == 0 || (at == length && count > 1 && padding <= 2 && block[good] == '=' &&
                             block[count - 1] == '='))
            continue;
        const char bad = block[good];
        (void)base64_unescape(text, length, &begin, block, good);
        if (text[begin] == '\\' && bad != '=')
            REFUSE(error, "base64: the JSON escape at %zu is not a character of the alphabet",
                   begin);
        return refuse_character(bad, begin, error);
    }
    if (*characters % 4 != 0)
        REFUSE(error, "base64: length %" PRIu64 " is not a multiple of 4", *characters);
    *decoded = *characters / 4 * 3 - padding;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- decoding */

/* Decodes groups up to the first invalid one, and returns their number. */
static size_t decode_plain(const char *text, size_t groups, unsigned char *bytes)
{
    const unsigned char *c = (const unsigned char *)text;
    size_t done = 0;
    for (; done < groups; done++, c += 4, bytes += 3) {
        const uint32_t v0 = base64_values[c[0]], v1 = base64_values[c[1]];
        const uint32_t v2 = base64_values[c[2]], v3 = base64_values[c[3]];
        if ((v0 | v1 | v2 | v3) >= BASE64_BAD)
            break;
        bytes[0] = (unsigned char)(v0 << 2 | v1 >> 4);
        bytes[1] = (unsigned char)(v1 << 4 | v2 >> 2);
        bytes[2] = (unsigned char)(v2 << 6 | v3);
    }
    return done;
}

bool base64_decode(const char *text, size_t groups, bool is_end, unsigned char *bytes)
{
    const struct base64_vector *vector = base64_vector();
    const bool is_past = groups * 3 >= COPY_PAST_BYTES;
    size_t done = 0;
    /* Decodes up to an aligned position of bytes, or up to an invalid group. Vector code stores
     * nothing for a block with an invalid group, so alignment does not matter then. */
    for (; is_past && done < BASE64_ALIGNMENT; done++)
        if ((uintptr_t)(bytes + done * 3) % BASE64_ALIGNMENT == 0 ||
            decode_plain(text + done * 4, 1, bytes + done * 3) == 0)
            break;
    if (vector)
        done += vector->decode(text + done * 4, groups - done, is_past, bytes + done * 3);
    done += decode_plain(text + done * 4, groups - done, bytes + done * 3);
    if (!is_end || groups - done != 1)
        return done == groups;
    char last[4];
    memcpy(last, text + done * 4, sizeof last);
    for (size_t i = 3; i >= 2 && last[i] == '='; i--)
        last[i] = 'A';
    return decode_plain(last, 1, bytes + done * 3) == 1;
}

/* ---------------------------------------------------------------- encoding */

size_t base64_length(size_t count)
{
    return (count + 2) / 3 * 4;
}

void base64_encode(const unsigned char *bytes, size_t count, char *text)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < count; i += 3) {
        size_t left = count - i;
        uint32_t group = (uint32_t)bytes[i] << 16;
        group |= left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
        group |= left > 2 ? (uint32_t)bytes[i + 2] : 0;
        *text++ = alphabet[group >> 18];
        *text++ = alphabet[group >> 12 & 63];
        *text++ = left > 1 ? alphabet[group >> 6 & 63] : '=';
        *text++ = left > 2 ? alphabet[group & 63] : '=';
    }
    *text = 0;
}
