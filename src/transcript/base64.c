#include "transcript/base64.h"

#include <inttypes.h>
#include <string.h>

#include "core/copy.h"
#include "transcript/base64_vector.h"

/* ---------------------------------------------------------------- tables */

/* The six bits of a character; 64 for one outside of the alphabet. */
#define BITS(c)                                             \
    ((uint32_t)((c) >= 'A' && (c) <= 'Z'   ? (c) - 'A'      \
                : (c) >= 'a' && (c) <= 'z' ? (c) - 'a' + 26 \
                : (c) >= '0' && (c) <= '9' ? (c) - '0' + 52 \
                : (c) == '+'               ? 62             \
                : (c) == '/'               ? 63             \
                                           : 64))
#define VALUE(c) (BITS(c) | (BITS(c) & 64) << 1)

/* Bits that each of a group's four characters adds to its three bytes, the first byte lowest; and
 * BAD where it is outside of the alphabet. */
#define BAD (UINT32_C(1) << 31)
#define BAD_IF(c) ((BITS(c) & 64) << 25)
#define FIRST(c) (BITS(c) << 2 | BAD_IF(c))
#define SECOND(c) (BITS(c) >> 4 | (BITS(c) & 15) << 12 | BAD_IF(c))
#define THIRD(c) ((BITS(c) >> 2) << 8 | (BITS(c) & 3) << 22 | BAD_IF(c))
#define FOURTH(c) (BITS(c) << 16 | BAD_IF(c))

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

const unsigned char base64_values[128] = {ENTRIES_64(VALUE, 0), ENTRIES_64(VALUE, 64)};

/* The fastest vector code that the processor has; NULL: none. */
static const struct base64_vector *find_vector(void)
{
    const struct base64_vector *vector = base64_vectors;
    while (vector->name && !vector->is_here())
        vector++;
    return vector->name ? vector : NULL;
}

/* ---------------------------------------------------------------- checking */

static inline uint32_t group_bits(const unsigned char *c)
{
    return first_bits[c[0]] | second_bits[c[1]] | third_bits[c[2]] | fourth_bits[c[3]];
}

size_t base64_good(const char *text, size_t length)
{
    const struct base64_vector *vector = find_vector();
    const unsigned char *c = (const unsigned char *)text;
    size_t i = vector ? vector->good(text, length) : 0;
    while (length - i >= 4 && !(group_bits(c + i) & BAD))
        i += 4;
    while (i < length && !(first_bits[c[i]] & BAD))
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

/* ---------------------------------------------------------------- decoding */

/* Compilers make one plain store of it on a little-endian host. */
static inline void store_little_endian_32(unsigned char *bytes, uint32_t value)
{
    bytes[0] = (unsigned char)value;
    bytes[1] = (unsigned char)(value >> 8);
    bytes[2] = (unsigned char)(value >> 16);
    bytes[3] = (unsigned char)(value >> 24);
}

/* Decodes groups up to the first bad one, and returns how many. */
static size_t decode_plain(const char *text, size_t groups, unsigned char *bytes)
{
    const unsigned char *c = (const unsigned char *)text;
    size_t done = 0;
    /* Each store but the last writes a fourth byte, which the next one overwrites. */
    for (; groups - done > 4; done += 4, c += 16, bytes += 12) {
        const uint32_t a = group_bits(c), b = group_bits(c + 4);
        const uint32_t d = group_bits(c + 8), e = group_bits(c + 12);
        if ((a | b | d | e) & BAD)
            break;
        store_little_endian_32(bytes, a);
        store_little_endian_32(bytes + 3, b);
        store_little_endian_32(bytes + 6, d);
        store_little_endian_32(bytes + 9, e);
    }
    for (; done < groups; done++, c += 4, bytes += 3) {
        const uint32_t bits = group_bits(c);
        if (bits & BAD)
            break;
        bytes[0] = (unsigned char)bits;
        bytes[1] = (unsigned char)(bits >> 8);
        bytes[2] = (unsigned char)(bits >> 16);
    }
    return done;
}

bool base64_decode(const char *text, size_t groups, bool is_end, unsigned char *bytes)
{
    const struct base64_vector *vector = find_vector();
    const bool is_past = groups * 3 >= COPY_PAST_BYTES;
    size_t done = 0;
    /* Vector code stores nothing of a block with a bad character, so that need not be aligned. */
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
