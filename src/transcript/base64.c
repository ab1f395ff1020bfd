#include "transcript/base64.h"

#include <inttypes.h>

/* ---------------------------------------------------------------- checking */

/* 0 for a character of the alphabet, 1 for any other. Without branches, for vector code. */
static inline unsigned char is_bad(unsigned char c)
{
    unsigned char letter = (unsigned char)((c | 0x20) - 'a');
    unsigned char digit = (unsigned char)(c - '/'); /* '/' lies right before '0' */
    return (unsigned char)!((letter < 26) | (digit < 11) | (c == '+'));
}

/* The index of the first character outside of the alphabet ('=' included), or length. */
static size_t find_bad(const char *text, size_t length)
{
    enum { BLOCK = 128 }; /* a constant trip count: GCC makes vector code of it at -O2 too */
    const unsigned char *c = (const unsigned char *)text;
    size_t i = 0;
    for (; length - i >= BLOCK; i += BLOCK) {
        unsigned char bad = 0;
        for (size_t j = 0; j < BLOCK; j++)
            bad |= is_bad(c[i + j]);
        if (bad)
            break;
    }
    while (i < length && !is_bad(c[i]))
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

enum healcl_status base64_check(const char *text, size_t length, uint64_t *decoded,
                                struct healcl_error *error)
{
    const bool is_padded = length > 1 && text[length - 1] == '=';
    const size_t padding = !is_padded ? 0 : text[length - 2] != '=' ? 1 : 2;
    const size_t bad = find_bad(text, length - padding);
    if (bad < length - padding)
        return refuse_character(text[bad], bad, error);
    if (length % 4 != 0)
        REFUSE(error, "base64: length %zu is not a multiple of 4", length);
    *decoded = (uint64_t)length / 4 * 3 - padding;
    return HEALCL_OK;
}

/* ---------------------------------------------------------------- decoding */

/* The six bits of a character; 0 for one outside of the alphabet. */
#define BITS(c)                                             \
    ((uint32_t)((c) >= 'A' && (c) <= 'Z'   ? (c) - 'A'      \
                : (c) >= 'a' && (c) <= 'z' ? (c) - 'a' + 26 \
                : (c) >= '0' && (c) <= '9' ? (c) - '0' + 52 \
                : (c) == '+'               ? 62             \
                : (c) == '/'               ? 63             \
                                           : 0))

/* Bits that each of a group's four characters adds to its three bytes, the first byte lowest. */
#define FIRST(c) (BITS(c) << 2)
#define SECOND(c) (BITS(c) >> 4 | (BITS(c) & 15) << 12)
#define THIRD(c) ((BITS(c) >> 2) << 8 | (BITS(c) & 3) << 22)
#define FOURTH(c) (BITS(c) << 16)

#define ENTRIES_4(f, c) f(c), f((c) + 1), f((c) + 2), f((c) + 3)
#define ENTRIES_16(f, c) \
    ENTRIES_4(f, c), ENTRIES_4(f, (c) + 4), ENTRIES_4(f, (c) + 8), ENTRIES_4(f, (c) + 12)
#define ENTRIES_64(f, c) \
    ENTRIES_16(f, c), ENTRIES_16(f, (c) + 16), ENTRIES_16(f, (c) + 32), ENTRIES_16(f, (c) + 48)
#define ENTRIES_256(f) ENTRIES_64(f, 0), ENTRIES_64(f, 64), ENTRIES_64(f, 128), ENTRIES_64(f, 192)

static const uint32_t first_bits[256] = {ENTRIES_256(FIRST)};
static const uint32_t second_bits[256] = {ENTRIES_256(SECOND)};
static const uint32_t third_bits[256] = {ENTRIES_256(THIRD)};
static const uint32_t fourth_bits[256] = {ENTRIES_256(FOURTH)};

static inline uint32_t group_bits(const unsigned char *c)
{
    return first_bits[c[0]] | second_bits[c[1]] | third_bits[c[2]] | fourth_bits[c[3]];
}

/* Compilers make one plain store of it on a little-endian host. */
static inline void store_little_endian_32(unsigned char *bytes, uint32_t value)
{
    bytes[0] = (unsigned char)value;
    bytes[1] = (unsigned char)(value >> 8);
    bytes[2] = (unsigned char)(value >> 16);
    bytes[3] = (unsigned char)(value >> 24);
}

void base64_decode(const char *text, size_t groups, unsigned char *bytes)
{
    const unsigned char *c = (const unsigned char *)text;
    /* Each store but the last writes a fourth byte, 0, which the next one overwrites. */
    for (; groups > 4; groups -= 4, c += 16, bytes += 12) {
        uint32_t a = group_bits(c), b = group_bits(c + 4);
        uint32_t d = group_bits(c + 8), e = group_bits(c + 12);
        store_little_endian_32(bytes, a);
        store_little_endian_32(bytes + 3, b);
        store_little_endian_32(bytes + 6, d);
        store_little_endian_32(bytes + 9, e);
    }
    for (; groups > 0; groups--, c += 4, bytes += 3) {
        uint32_t bits = group_bits(c);
        bytes[0] = (unsigned char)bits;
        bytes[1] = (unsigned char)(bits >> 8);
        bytes[2] = (unsigned char)(bits >> 16);
    }
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
