#include "core/copy.h"

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)

#include <emmintrin.h>

void copy_bytes(void *to, const void *from, size_t bytes)
{
    enum { LINE = 64 };
    const size_t first = -(uintptr_t)to % LINE; /* up to a line of the cache */
    if (bytes < COPY_PAST_BYTES) {
        memcpy(to, from, bytes);
        return;
    }
    memcpy(to, from, first);
    const size_t end = first + (bytes - first) / LINE * LINE;
    for (size_t at = first; at < end; at += LINE) {
        const __m128i *in = (const void *)((const char *)from + at);
        __m128i *out = (void *)((char *)to + at);
        const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
        const __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
        _mm_stream_si128(out, a);
        _mm_stream_si128(out + 1, b);
        _mm_stream_si128(out + 2, c);
        _mm_stream_si128(out + 3, d);
    }
    _mm_sfence();
    memcpy((char *)to + end, (const char *)from + end, bytes - end);
}

#else

void copy_bytes(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

#endif
