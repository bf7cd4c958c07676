/* fe_codes_cpu.c - the kernels of fe_codes.h for 1 to 4 factors side by side, compiled once per CPU
 * level.
 *
 * WIDE rows of q codes are q vectors; lane j of vector v belongs to factor (WIDE v + j) mod q.  The
 * row before is the same memory, q codes earlier.  A vector is a register of the level.
 */
#include "core/registers.h"
#include "fe/fe_codes.h"

#include <string.h>

#define INLINE     static inline __attribute__((always_inline))
#define CAT_(a, b) a##_##b
#define CAT(a, b)  CAT_(a, b)

typedef int32_t wide __attribute__((vector_size(VECTOR_BYTES)));
enum { WIDE = VECTOR_BYTES / sizeof(int32_t) };

INLINE wide take(const int32_t *from)
{
    wide v;
    memcpy(&v, from, sizeof v);
    return v;
}

INLINE void scan_row(const int32_t *code, const int32_t *before, fe_scan *s)
{
    s->any |= *code;
    s->high = *code > s->high ? *code : s->high;
    s->changes += *code != *before;
    s->descents += *code < *before;
}

INLINE void scan_rows(const int32_t *codes, int64_t begin, int64_t end, fe_scan *out, const int q)
{
    wide any[FE_CODES_Q] = {{0}}, high[FE_CODES_Q] = {{0}};
    wide changes[FE_CODES_Q] = {{0}}, descents[FE_CODES_Q] = {{0}};
    int64_t i = begin;
    for (int f = 0; f < q; f++) {
        out[f] = (fe_scan){0};
        if (begin == 0 && end > 0) { /* the first row of all stands before itself */
            scan_row(codes + f, codes + f, &out[f]);
        }
    }
    i += begin == 0;
    for (; i + WIDE <= end; i += WIDE) {
        for (int v = 0; v < q; v++) {
            const int32_t *at = codes + i * q + v * WIDE;
            const wide code = take(at), before = take(at - q), above = code > high[v];
            any[v] |= code;
            high[v] = (code & above) | (high[v] & ~above);
            changes[v] -= code != before;
            descents[v] -= code < before;
        }
    }
    for (int j = 0; j < q * WIDE; j++) {
        fe_scan *s = &out[j % q];
        const int v = j / WIDE, lane = j % WIDE;
        s->any |= any[v][lane];
        s->high = high[v][lane] > s->high ? high[v][lane] : s->high;
        s->changes += changes[v][lane];
        s->descents += descents[v][lane];
    }
    for (; i < end; i++) {
        for (int f = 0; f < q; f++) {
            scan_row(codes + i * q + f, codes + (i - 1) * q + f, &out[f]);
        }
    }
}

INLINE void fill_rows(const int32_t *codes, int64_t begin, int64_t end, const int elim,
                      const int32_t *first, int32_t *restrict index, const int q)
{
    for (int64_t i = begin; i < end; i++) {
        for (int r = 0; r < q - 1; r++) {
            index[i * (q - 1) + r] = first[r] + codes[i * q + (r < elim ? r : r + 1)];
        }
    }
}

INLINE void fill_any(const int32_t *codes, int64_t begin, int64_t end, int elim,
                     const int32_t *first, int32_t *index, const int q)
{
    switch (elim) {
    case 0:
        fill_rows(codes, begin, end, 0, first, index, q);
        return;
    case 1:
        fill_rows(codes, begin, end, 1, first, index, q);
        return;
    case 2:
        fill_rows(codes, begin, end, 2, first, index, q);
        return;
    default:
        fill_rows(codes, begin, end, 3, first, index, q);
    }
}

/** Every row writes the end of its run; the run's last row has the last word. */
INLINE int64_t find_runs(const int32_t *codes, int64_t begin, int64_t end, int elim, int32_t *ends,
                         const int q)
{
    const int32_t *code = codes + begin * q + elim;
    int32_t before = begin > 0 ? code[-q] : -1;
    int64_t k = 0;
    ends[0] = 0;
    for (int32_t i = 1; i <= (int32_t)(end - begin); i++, code += q) {
        k += *code != before;
        before = *code;
        ends[k] = i;
    }
    return k;
}

#define KERNELS(q)                                                                                 \
    static void scan_##q(const int32_t *codes, int64_t begin, int64_t end, fe_scan *out)           \
    {                                                                                              \
        scan_rows(codes, begin, end, out, q);                                                      \
    }                                                                                              \
    static void fill_##q(const int32_t *codes, int64_t begin, int64_t end, int elim,               \
                         const int32_t *first, int32_t *index)                                     \
    {                                                                                              \
        fill_any(codes, begin, end, elim, first, index, q);                                        \
    }                                                                                              \
    static int64_t runs_##q(const int32_t *codes, int64_t begin, int64_t end, int elim,            \
                            int32_t *ends)                                                         \
    {                                                                                              \
        return find_runs(codes, begin, end, elim, ends, q);                                        \
    }
KERNELS(1)
KERNELS(2)
KERNELS(3)
KERNELS(4)

const fe_code_ops CAT(frgi_fe_code_ops, ISA) = {
    .scan = {scan_1, scan_2, scan_3, scan_4},
    .fill = {fill_1, fill_2, fill_3, fill_4},
    .runs = {runs_1, runs_2, runs_3, runs_4},
};
