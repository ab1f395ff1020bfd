/* Wojciech Mula and Daniel Lemire, "Faster Base64 Encoding and Decoding using AVX2 Instructions",
 * 2018, and "Base64 encoding and decoding at almost the speed of a memory copy", 2020. */
#include "transcript/base64_vector.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vbmi")))

/* ---------------------------------------------------------------- AVX2 */

/* 16 bytes for each half of a vector. */
#define BOTH(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)

/* The high nibbles of characters. */
AVX2 static inline __m256i high_nibbles(__m256i c)
{
    return _mm256_and_si256(_mm256_srli_epi32(c, 4), _mm256_set1_epi8(15));
}

/* Not 0 where a character is outside of the alphabet: its high nibble has a bit, and its low nibble
 * the bits of those high ones that it has no character with. */
AVX2 static inline __m256i bad_of(__m256i c)
{
    const __m256i by_low = BOTH(0x15, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x13,
                                0x1a, 0x1b, 0x1b, 0x1b, 0x1a);
    const __m256i by_high = BOTH(16, 16, 1, 2, 4, 8, 4, 8, 16, 16, 16, 16, 16, 16, 16, 16);
    const __m256i low = _mm256_and_si256(c, _mm256_set1_epi8(15));
    return _mm256_and_si256(_mm256_shuffle_epi8(by_low, low),
                            _mm256_shuffle_epi8(by_high, high_nibbles(c)));
}

/* 32 characters as 24 bytes, with 8 zeros behind. */
AVX2 static inline __m256i decode_32(__m256i c)
{
    /* What to add to a character, by its high nibble; '/' has an entry of its own. */
    const __m256i shifts = BOTH(0, 16, 19, 4, -65, -65, -71, -71, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m256i order = BOTH(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1);
    const __m256i is_slash = _mm256_cmpeq_epi8(c, _mm256_set1_epi8('/'));
    const __m256i index = _mm256_add_epi8(is_slash, high_nibbles(c));
    __m256i v = _mm256_add_epi8(c, _mm256_shuffle_epi8(shifts, index));
    v = _mm256_maddubs_epi16(v, _mm256_set1_epi32(0x01400140)); /* pairs of 6 bits, as 12 */
    v = _mm256_madd_epi16(v, _mm256_set1_epi32(0x00011000));    /* pairs of these, as 24 */
    v = _mm256_shuffle_epi8(v, order);
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7));
}

AVX2 static size_t decode_avx2(const char *text, size_t groups, unsigned char *bytes)
{
    enum { GROUPS = 32, BEYOND = 3 }; /* of a block; whose bytes the last store touches */
    size_t done = 0;
    for (; groups - done >= GROUPS + BEYOND; done += GROUPS) {
        __m256i bad = _mm256_setzero_si256();
        for (size_t i = 0; i < GROUPS / 8; i++) {
            const __m256i c = _mm256_loadu_si256((const void *)(text + done * 4 + i * 32));
            bad = _mm256_or_si256(bad, bad_of(c));
            _mm256_storeu_si256((void *)(bytes + done * 3 + i * 24), decode_32(c));
        }
        if (!_mm256_testz_si256(bad, bad))
            break;
    }
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

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") != 0;
}

/* ---------------------------------------------------------------- AVX-512 */

/* The three bytes of 16 groups, the highest first. */
#define OF_4(i) i + 2, i + 1, i, i + 6, i + 5, i + 4, i + 10, i + 9, i + 8, i + 14, i + 13, i + 12
static const unsigned char bytes_of_24[64] = {OF_4(0), OF_4(16), OF_4(32), OF_4(48)};

AVX512 static size_t decode_avx512(const char *text, size_t groups, unsigned char *bytes)
{
    enum { GROUPS = 64, BEYOND = 6 };
    const __m512i low = _mm512_loadu_si512(base64_values);
    const __m512i high = _mm512_loadu_si512(base64_values + 64);
    const __m512i order = _mm512_loadu_si512(bytes_of_24);
    size_t done = 0;
    for (; groups - done >= GROUPS + BEYOND; done += GROUPS) {
        __m512i bad = _mm512_setzero_si512();
        for (size_t i = 0; i < GROUPS / 16; i++) {
            const __m512i c = _mm512_loadu_si512(text + done * 4 + i * 64);
            __m512i v = _mm512_permutex2var_epi8(low, c, high);
            bad = _mm512_ternarylogic_epi32(bad, v, c, 0xfe); /* or */
            v = _mm512_maddubs_epi16(v, _mm512_set1_epi32(0x01400140));
            v = _mm512_madd_epi16(v, _mm512_set1_epi32(0x00011000));
            _mm512_storeu_si512(bytes + done * 3 + i * 48, _mm512_permutexvar_epi8(order, v));
        }
        if (_mm512_movepi8_mask(bad) != 0)
            break;
    }
    return done;
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi");
}

const struct base64_vector base64_vectors[] = {
    {"AVX-512", has_avx512, decode_avx512, good_avx2},
    {"AVX2", has_avx2, decode_avx2, good_avx2},
    {NULL, NULL, NULL, NULL},
};

#elif defined(__aarch64__)

#include <arm_neon.h>

static inline uint8x16_t values_of(uint8x16_t c)
{
    const uint8x16_t high = vsubq_u8(c, vdupq_n_u8(64));
    uint8x16_t v = vqtbl4q_u8(vld1q_u8_x4(base64_values), c); /* 0 for c >= 64 */
    v = vqtbx4q_u8(v, vld1q_u8_x4(base64_values + 64), high); /* unchanged for others */
    return vorrq_u8(v, vandq_u8(c, vdupq_n_u8(0x80)));
}

static size_t decode_neon(const char *text, size_t groups, unsigned char *bytes)
{
    enum { GROUPS = 16 };
    size_t done = 0;
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

static bool is_here(void)
{
    return true;
}

const struct base64_vector base64_vectors[] = {
    {"NEON", is_here, decode_neon, good_neon},
    {NULL, NULL, NULL, NULL},
};

#else

const struct base64_vector base64_vectors[] = {{NULL, NULL, NULL, NULL}};

#endif
