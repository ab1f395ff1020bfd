/* Wojciech Mula and Daniel Lemire, "Faster Base64 Encoding and Decoding using AVX2 Instructions",
 * 2018, and "Base64 encoding and decoding at almost the speed of a memory copy", 2020. */
#include "transcript/base64_vector.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

/* 16 bytes for each half of a vector. */
#define BOTH(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)

/* The high nibbles of characters. */
AVX2 static inline __m256i high_nibbles(__m256i c)
{
    return _mm256_and_si256(_mm256_srli_epi32(c, 4), _mm256_set1_epi8(15));
}

/* Nonzero for a character outside of the alphabet. The table of high nibbles gives each its bit.
 * The table of low nibbles has the bits of all high nibbles that form no valid character with
 * it. */
AVX2 static inline __m256i bad_of(__m256i c)
{
    const __m256i by_low = BOTH(0x15, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x13,
                                0x1a, 0x1b, 0x1b, 0x1b, 0x1a);
    const __m256i by_high = BOTH(16, 16, 1, 2, 4, 8, 4, 8, 16, 16, 16, 16, 16, 16, 16, 16);
    const __m256i low = _mm256_and_si256(c, _mm256_set1_epi8(15));
    return _mm256_and_si256(_mm256_shuffle_epi8(by_low, low),
                            _mm256_shuffle_epi8(by_high, high_nibbles(c)));
}

/* Decodes 32 characters into 8 numbers of 24 bits, with their bytes in order. Zero bytes follow
 * every four numbers. */
AVX2 static inline __m256i decode_32(__m256i c)
{
    /* What to add to a character, by its high nibble; '/' has its own entry. */
    const __m256i shifts = BOTH(0, 16, 19, 4, -65, -65, -71, -71, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m256i order = BOTH(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1);
    const __m256i is_slash = _mm256_cmpeq_epi8(c, _mm256_set1_epi8('/'));
    const __m256i index = _mm256_add_epi8(is_slash, high_nibbles(c));
    __m256i v = _mm256_add_epi8(c, _mm256_shuffle_epi8(shifts, index));
    v = _mm256_maddubs_epi16(v, _mm256_set1_epi32(0x01400140)); /* pairs of 6 bits, as 12 */
    v = _mm256_madd_epi16(v, _mm256_set1_epi32(0x00011000));    /* pairs of these, as 24 */
    return _mm256_shuffle_epi8(v, order);
}

/* Permutes the words of a vector, of which only 0 to 2 and 4 to 6 hold data. */
#define MOVED(v, ...) _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(__VA_ARGS__))

AVX2 static size_t decode_avx2(const char *text, size_t groups, bool is_past, unsigned char *bytes)
{
    size_t done = 0;
    for (; groups - done >= 32; done += 32) {
        const __m256i *in = (const void *)(text + done * 4);
        __m256i *out = (void *)(bytes + done * 3), v[4], bad = _mm256_setzero_si256();
        for (size_t i = 0; i < 4; i++) {
            const __m256i c = _mm256_loadu_si256(in + i);
            bad = _mm256_or_si256(bad, bad_of(c));
            v[i] = decode_32(c);
        }
        if (!_mm256_testz_si256(bad, bad))
            break;
        v[0] = MOVED(v[0], 0, 1, 2, 4, 5, 6, 3, 3);
        v[1] = MOVED(v[1], 2, 4, 5, 6, 3, 3, 0, 1);
        v[2] = MOVED(v[2], 5, 6, 3, 3, 0, 1, 2, 4);
        v[3] = MOVED(v[3], 3, 3, 0, 1, 2, 4, 5, 6);
        v[0] = _mm256_blend_epi32(v[0], v[1], 0xc0);
        v[1] = _mm256_blend_epi32(v[1], v[2], 0xf0);
        v[2] = _mm256_blend_epi32(v[2], v[3], 0xfc);
        for (size_t i = 0; i < 3; i++)
            if (is_past)
                _mm256_stream_si256(out + i, v[i]);
            else
                _mm256_storeu_si256(out + i, v[i]);
    }
    _mm_sfence();
    return done;
}

AVX2 static size_t good_avx2(const char *text, size_t length)
{
    size_t done = 0;
    for (; length - done >= 128; done += 128) {
        __m256i bad = _mm256_setzero_si256();
        for (size_t i = 0; i < 128; i += 32)
            bad = _mm256_or_si256(bad, bad_of(_mm256_loadu_si256((const void *)(text + done + i))));
        if (!_mm256_testz_si256(bad, bad))
            break;
    }
    return done;
}

const struct base64_vector *base64_vector(void)
{
    static const struct base64_vector avx2 = {decode_avx2, good_avx2};
    return __builtin_cpu_supports("avx2") ? &avx2 : NULL;
}

#elif defined(__aarch64__)

#include <arm_neon.h>

static inline uint8x16_t values_of(uint8x16_t c)
{
    const uint8x16_t high = vsubq_u8(c, vdupq_n_u8(64));
    uint8x16_t v = vqtbl4q_u8(vld1q_u8_x4(base64_values), c); /* 0 for c >= 64 */
    v = vqtbx4q_u8(v, vld1q_u8_x4(base64_values + 64), high); /* unchanged for others */
    return vorrq_u8(v, vandq_u8(c, vdupq_n_u8(0x80)));
}

static size_t decode_neon(const char *text, size_t groups, bool is_past, unsigned char *bytes)
{
    enum { GROUPS = 16 };
    size_t done = 0;
    (void)is_past;
    for (; groups - done >= GROUPS; done += GROUPS) {
        const uint8x16x4_t c = vld4q_u8((const unsigned char *)text + done * 4);
        const uint8x16_t v0 = values_of(c.val[0]), v1 = values_of(c.val[1]);
        const uint8x16_t v2 = values_of(c.val[2]), v3 = values_of(c.val[3]);
        if (vmaxvq_u8(vorrq_u8(vorrq_u8(v0, v1), vorrq_u8(v2, v3))) >= 0x80)
            break;
        const uint8x16x3_t b = {{vorrq_u8(vshlq_n_u8(v0, 2), vshrq_n_u8(v1, 4)),
                                 vorrq_u8(vshlq_n_u8(v1, 4), vshrq_n_u8(v2, 2)),
                                 vorrq_u8(vshlq_n_u8(v2, 6), v3)}};
        vst3q_u8(bytes + done * 3, b);
    }
    return done;
}

static size_t good_neon(const char *text, size_t length)
{
    size_t done = 0;
    for (; length - done >= 64; done += 64) {
        const uint8x16x4_t c = vld1q_u8_x4((const unsigned char *)text + done);
        const uint8x16_t bad = vorrq_u8(vorrq_u8(values_of(c.val[0]), values_of(c.val[1])),
                                        vorrq_u8(values_of(c.val[2]), values_of(c.val[3])));
        if (vmaxvq_u8(bad) >= 0x80)
            break;
    }
    return done;
}

const struct base64_vector *base64_vector(void)
{
    static const struct base64_vector neon = {decode_neon, good_neon};
    return &neon;
}

#else

const struct base64_vector *base64_vector(void)
{
    return NULL;
}

#endif
