/* fe_stream.h - rows that are written one after the other and stored by whole cache lines, past the
 * caches.
 *
 * A store into memory that no cache holds reads the line first: columns larger than the caches cost
 * half as much again as they need.  Rows are kept in `bytes` until lines are full.  Bytes of the
 * first and last line that are not the stream's stay as they are.
 */
#ifndef FRGI_FE_STREAM_H
#define FRGI_FE_STREAM_H

#include "fe/fe_rows.h"

#include <string.h>

enum {
    FE_STREAM_LINES = 16,     /* that are kept */
    FE_STREAM_ROW = 64,       /* the longest row */
    FE_STREAM_BYTES = 1 << 26 /* of columns, which no near cache holds */
};

typedef struct {
    _Alignas(FE_LINE) char bytes[FE_STREAM_LINES * FE_LINE + FE_STREAM_ROW];
    char *to;     /* the line where bytes[0] goes */
    int64_t skip; /* bytes of it in front of the stream */
    int64_t held;
} fe_stream;

static inline void stream_line(char *to, const char *from)
{
#if defined(__AVX512F__)
    _mm512_stream_si512((void *)to, _mm512_load_si512((const void *)from));
#elif defined(__AVX2__)
    for (int k = 0; k < FE_LINE; k += 32) {
        _mm256_stream_si256((__m256i *)(void *)(to + k),
                            _mm256_load_si256((const __m256i *)(const void *)(from + k)));
    }
#else
    memcpy(to, from, FE_LINE);
#endif
}

static inline void stream_open(fe_stream *s, char *base)
{
    s->skip = s->held = (int64_t)((uintptr_t)base % FE_LINE);
    s->to = base - s->skip;
}

/** Lets go of `bytes` up to the last full line. */
static inline void stream_lines(fe_stream *s)
{
    int64_t at = 0;
    for (; at + FE_LINE <= s->held; at += FE_LINE) {
        if (s->skip > 0) {
            memcpy(s->to + s->skip, s->bytes + s->skip, (size_t)(FE_LINE - s->skip));
            s->skip = 0;
        } else {
            stream_line(s->to + at, s->bytes + at);
        }
    }
    memcpy(s->bytes, s->bytes + at, FE_LINE);
    s->to += at;
    s->held -= at;
}

static inline void stream_close(fe_stream *s)
{
    stream_lines(s);
    memcpy(s->to + s->skip, s->bytes + s->skip, (size_t)(s->held - s->skip));
#if defined(__AVX2__)
    _mm_sfence();
#endif
}

#endif
