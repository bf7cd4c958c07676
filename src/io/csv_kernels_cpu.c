/* csv_kernels_cpu.c - what runs over every byte of a text file, once per CPU level.
 *
 * The index: 64 bytes at a time become three 64-bit masks (delimiters, newlines, quotes).  A
 * running XOR of the quotes' mask says which bytes lie inside quotes (Langdale and Lemire, VLDB
 * Journal 28, 2019); the positions of the set bits outside are the ends of the cells.  That
 * counting of quotes is right exactly when every quote opens a cell, closes one, or is one of two
 * in a row, so each is checked for its neighbours, and a block with any other (INDEX_IRREGULAR) is
 * indexed again by the grammar.
 *
 * The conversions: a column of a block in one loop, eight digits a step, with frgi_cell_read for
 * every cell that is not plainly a number.  Loads run up to 64 bytes past a cell, which
 * FRGI_CSV_MARGIN allows.
 */
#include <string.h>

#include "io/csv.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define JOIN_(a, b) a##_##b
#define JOIN(a, b)  JOIN_(a, b)
#define KERNELS     JOIN(frgi_csv_kernels, ISA)

extern const frgi_csv_kernels KERNELS;

/** Bit i: p[i] == c, for 64 bytes. */
static inline uint64_t equal_bits(const char *p, char c)
{
#if defined(__AVX512BW__)
    return _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(p), _mm512_set1_epi8(c));
#elif defined(__AVX2__)
    uint64_t bits = 0;
    for (int i = 0; i < 2; i++) {
        const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32 * i));
        const __m256i same = _mm256_cmpeq_epi8(x, _mm256_set1_epi8(c));
        bits |= (uint64_t)(uint32_t)_mm256_movemask_epi8(same) << (32 * i);
    }
    return bits;
#elif defined(__SSE2__)
    uint64_t bits = 0;
    for (int i = 0; i < 4; i++) {
        const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
        const __m128i same = _mm_cmpeq_epi8(x, _mm_set1_epi8(c));
        bits |= (uint64_t)(uint32_t)_mm_movemask_epi8(same) << (16 * i);
    }
    return bits;
#else
    uint64_t bits = 0;
    for (int i = 0; i < 64; i++) {
        bits |= (uint64_t)(p[i] == c) << i;
    }
    return bits;
#endif
}

/** Bits 0 .. k-1, k <= 64. */
static inline uint64_t low_bits(int64_t k)
{
    return k >= 64 ? UINT64_MAX : ((uint64_t)1 << k) - 1;
}

static int64_t count_quotes(const char *text, int64_t count)
{
    int64_t n = 0;
    for (int64_t at = 0; at < count; at += 64) {
        n += __builtin_popcountll(equal_bits(text + at, '"') & low_bits(count - at));
    }
    return n;
}

/** Bit i of the result: the parity of bits 0 .. i. */
static inline uint64_t running_parity(uint64_t x)
{
    for (int shift = 1; shift < 64; shift *= 2) {
        x ^= x << shift;
    }
    return x;
}

typedef struct {
    uint64_t inside; /* all ones if the chunk begins inside quotes */
    uint64_t
        before;  /* bit 0: the last byte of the chunk before may stand before a quote that opens */
    bool closed; /* its last byte closed quotes: the next one must end the cell */
} quote_state;

/** Which bytes of the chunk are inside quotes; `regular` stays true if every quote stands where the
 *  grammar has one.  ends: delimiters, newlines and quotes; valid: the bytes that are there. */
static inline uint64_t quoted_bits(quote_state *q, const char *p, uint64_t quotes, uint64_t ends,
                                   uint64_t valid, bool *regular)
{
    const uint64_t inside = running_parity(quotes) ^ q->inside;
    const uint64_t opens = quotes & inside, closes = quotes & ~inside;
    const uint64_t before = ends << 1 | q->before;
    const uint64_t after = ends | (equal_bits(p, '\r') & valid);
    const bool closed_well = !q->closed || (after & 1);
    *regular &= closed_well && (opens & ~before) == 0 && ((closes << 1) & valid & ~after) == 0;
    q->inside = (uint64_t)((int64_t)inside >> 63);
    q->before = ends >> 63;
    q->closed = closes >> 63;
    return inside;
}

/** Is the line whose newline is at `at` blank?  Only asked where the line has no delimiter. */
static bool is_blank(const char *text, int64_t at)
{
    at -= at > 0 && text[at - 1] == '\r';
    return at == 0 || text[at - 1] == '\n';
}

/** The chunk again bit by bit, where a newline did not stand where it should: blank lines leave no
 *  trace, a ragged row ends the index. */
static int64_t index_with_care(frgi_csv_index *x, int64_t base, uint64_t bits, uint64_t newlines,
                               int64_t fields, int64_t n_columns)
{
    for (; bits; bits &= bits - 1) {
        const int64_t at = base + __builtin_ctzll(bits);
        if (!(newlines & bits & -bits)) {
            x->ends[fields++] = (uint32_t)at;
            continue;
        }
        const int64_t in_row = fields - x->rows * n_columns;
        if (in_row == 0 && is_blank(x->text, at)) {
            x->used = at + 1;
        } else if (in_row == n_columns - 1) {
            x->ends[fields++] = (uint32_t)at;
            x->rows++;
            x->used = at + 1;
        } else {
            x->end = INDEX_RAGGED;
            x->found = in_row + 1;
            x->at = at;
            return fields;
        }
    }
    return fields;
}

/** Stores the positions of the set bits, eight at a time so that the usual count needs one
 *  branch. */
static inline void store_positions(uint32_t *to, int64_t base, uint64_t bits)
{
    const uint64_t top = (uint64_t)1 << 63;
    const int n = __builtin_popcountll(bits);
    for (int done = 0; done < n; done += 8) {
        for (int i = 0; i < 8; i++) {
            to[done + i] =
                (uint32_t)(base + __builtin_ctzll(bits | top)); /* top: ctz of 0 is undefined */
            bits &= bits - 1;
        }
    }
}

enum { AHEAD = 3072 };

static void index_block(frgi_csv_index *x, char delimiter, int64_t n_columns)
{
    x->end = INDEX_DONE;
    x->rows = x->used = x->lines = 0;
    int64_t fields = 0;
    quote_state q = {.before = 1};
    bool regular = true;
    for (int64_t base = 0; base < x->count; base += 64) {
        if (fields + 64 > x->capacity) {
            x->end = INDEX_FULL;
            return;
        }
        const char *const p = x->text + base;
        __builtin_prefetch((const void *)((uintptr_t)p + AHEAD)); /* another core has read it */
        const uint64_t valid = low_bits(x->count - base);
        uint64_t newlines = equal_bits(p, '\n') & valid;
        uint64_t bits = (equal_bits(p, delimiter) & valid) | newlines;
        const uint64_t quotes = equal_bits(p, '"') & valid;
        x->lines += __builtin_popcountll(newlines);
        if (quotes | q.inside | q.closed) {
            const uint64_t outside = ~quoted_bits(&q, p, quotes, bits | quotes, valid, &regular);
            bits &= outside;
            newlines &= outside;
        } else {
            q.before = bits >> 63;
        }
        store_positions(x->ends + fields, base, bits);
        /* every newline must be the end of the last column */
        bool as_expected = n_columns > 1;
        int64_t rows = x->rows;
        for (uint64_t rest = newlines; rest; rest &= rest - 1) {
            const int64_t rank = fields + __builtin_popcountll(bits & ((rest & -rest) - 1));
            as_expected &= rank == ++rows * n_columns - 1;
        }
        if (as_expected || newlines == 0) {
            fields += __builtin_popcountll(bits);
            x->rows = rows;
            if (newlines) {
                x->used = base + 64 - __builtin_clzll(newlines);
            }
        } else {
            fields = index_with_care(x, base, bits, newlines, fields, n_columns);
        }
        if (x->end != INDEX_DONE) {
            break;
        }
    }
    for (int64_t at = x->used; at < x->count;
         at++) { /* the unfinished row of a segment's last block */
        x->lines -= x->text[at] == '\n';
    }
    x->open = q.inside != 0;
    if (!regular) {
        x->end = INDEX_IRREGULAR;
    }
}

/* ---- conversions ----------------------------------------------------------------------------- */

static const uint64_t powers_of_ten[] = {1,
                                         10,
                                         100,
                                         1000,
                                         10000,
                                         100000,
                                         1000000,
                                         10000000,
                                         100000000,
                                         1000000000,
                                         10000000000,
                                         100000000000,
                                         1000000000000,
                                         10000000000000,
                                         100000000000000,
                                         1000000000000000,
                                         10000000000000000,
                                         100000000000000000,
                                         1000000000000000000,
                                         10000000000000000000u};

/** The number of the k digits in front of `end`, 0 <= k <= 16; false if one is no digit. */
static inline bool sixteen_digits(const char *end, int64_t k, uint64_t *value)
{
#if defined(__SSE4_1__)
    static const int8_t last[32] = {0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
                                    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    const __m128i keep = _mm_loadu_si128((const __m128i *)(const void *)(last + k));
    const __m128i text = _mm_loadu_si128((const __m128i *)(const void *)(end - 16));
    const __m128i digits = _mm_and_si128(_mm_sub_epi8(text, _mm_set1_epi8('0')), keep);
    /* neighbours to pairs, fours, eights */
    const __m128i two = _mm_maddubs_epi16(digits, _mm_set1_epi16(1 << 8 | 10));
    const __m128i four = _mm_madd_epi16(two, _mm_set1_epi32(1 << 16 | 100));
    const __m128i packed = _mm_packus_epi32(four, four);
    const __m128i eight = _mm_madd_epi16(packed, _mm_set1_epi32(1 << 16 | 10000));
    const uint64_t both = (uint64_t)_mm_cvtsi128_si64(eight);
    *value = (both & UINT32_MAX) * 100000000 + (both >> 32);
    const __m128i beyond = _mm_subs_epu8(digits, _mm_set1_epi8(9));
    return _mm_testz_si128(beyond, beyond);
#else
    const int64_t low = k < 8 ? k : 8;
    uint64_t a, b;
    const bool fine = frgi_digits(end, low, &b) & frgi_digits(end - 8, k - low, &a);
    *value = a * 100000000 + b;
    return fine;
#endif
}

/** The number of the k digits in front of `end`, 0 <= k <= 19.  No branch depends on k: in a column
 *  of random doubles it is as hard to foresee as they are. */
static inline bool nineteen_digits(const char *end, int64_t k, uint64_t *value)
{
    const int64_t low = k < 16 ? k : 16;
    uint64_t a, b;
    const bool fine = sixteen_digits(end, low, &b) & frgi_digits(end - 16, k - low, &a);
    *value = a * powers_of_ten[16] + b;
    return fine;
}

/** Plain integers of up to 18 digits; "-0" is a number, its sign would be lost. */
static inline bool plain_integer(const char *s, const char *e, int64_t *out)
{
    const bool negative = *s == '-';
    const int64_t n = e - s - negative;
    uint64_t x;
    if (n < 1 || n > 18 || !(n <= 16 ? sixteen_digits(e, n, &x) : nineteen_digits(e, n, &x)) ||
        (negative && x == 0)) {
        return false;
    }
    *out = negative ? -(int64_t)x : (int64_t)x;
    return true;
}

/** The digits of a plain number as one integer: w 10^-fraction. */
typedef struct {
    uint64_t w;
    int64_t fraction;
} plain_digits;

#if defined(__AVX2__)

/** All ones in the last k of 32 bytes, 0 <= k <= 32. */
static inline __m256i last_bytes(int64_t k)
{
    static const int64_t ramp[8] = {0, 0, 0, 0, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(const void *)((const char *)ramp + k));
}

/** digits.digits or digits in at most 31 bytes, their value below 10^19.  Bytes in front of the
 *  point come from a load one byte lower, which closes the gap it leaves: one conversion for both
 *  parts, and no branch on where it stands. */
static inline bool read_plain(const char *s, const char *e, plain_digits *out)
{
    const int64_t n = e - s;
    if (n < 1 || n > 31) {
        return false;
    }
    const __m256i text = _mm256_loadu_si256((const __m256i *)(const void *)(e - 32));
    const __m256i lower = _mm256_loadu_si256((const __m256i *)(const void *)(e - 33));
    const __m256i points = _mm256_cmpeq_epi8(text, _mm256_set1_epi8('.'));
    const uint32_t point = (uint32_t)_mm256_movemask_epi8(points) & ~(UINT32_MAX >> n);
    const int64_t decimal = point != 0, behind = decimal ? __builtin_clz(point) : n;
    const __m256i closed = _mm256_blendv_epi8(lower, text, last_bytes(behind));
    const __m256i digits =
        _mm256_and_si256(_mm256_sub_epi8(closed, _mm256_set1_epi8('0')), last_bytes(n - decimal));
    const __m256i beyond = _mm256_subs_epu8(digits, _mm256_set1_epi8(9));
    /* neighbours to pairs, fours, eights */
    const __m256i two = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(1 << 8 | 10));
    const __m256i four = _mm256_madd_epi16(two, _mm256_set1_epi32(1 << 16 | 100));
    const __m256i packed = _mm256_packus_epi32(four, four);
    const __m256i eight = _mm256_madd_epi16(packed, _mm256_set1_epi32(1 << 16 | 10000));
    const uint64_t high = (uint64_t)_mm256_extract_epi64(eight, 0);
    const uint64_t low = (uint64_t)_mm256_extract_epi64(eight, 2);
    out->w = (high >> 32) * powers_of_ten[16] + (low & UINT32_MAX) * 100000000 + (low >> 32);
    out->fraction = decimal ? behind : 0;
    const bool small = (uint32_t)high == 0 && high >> 32 < 1000;
    const bool parts = !decimal || (behind > 0 && behind < n - 1);
    return _mm256_testz_si256(beyond, beyond) & small & parts;
}

#else

/** Where the first point is in the 16 bytes at p: 0 .. 15, or 16. */
static inline int64_t find_point(const char *p)
{
#if defined(__SSE2__)
    const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
    const int bits = _mm_movemask_epi8(_mm_cmpeq_epi8(x, _mm_set1_epi8('.')));
    return __builtin_ctz((unsigned)bits | 1u << 16);
#else
    int64_t at = 0;
    while (at < 16 && p[at] != '.') {
        at++;
    }
    return at;
#endif
}

/** digits.digits or digits, at most 19 of them. */
static inline bool read_plain(const char *s, const char *e, plain_digits *out)
{
    const int64_t n = e - s, point = find_point(s);
    const bool decimal = point < n && point < 16; /* behind n it belongs to another cell */
    if (n < 1 || n > 19 + decimal) {
        return false;
    }
    /* an integer is all fraction, times 10^0 */
    const int64_t whole = decimal ? point : 0, fraction = decimal ? n - point - 1 : n;
    uint64_t a, b;
    const bool fine = sixteen_digits(s + whole, whole, &a) & nineteen_digits(e, fraction, &b);
    out->w = a * powers_of_ten[fraction] + b;
    out->fraction = decimal ? fraction : 0;
    return fine && (!decimal || (whole > 0 && fraction > 0));
}

#endif

/** Plain numbers: [-]digits[.digits]. */
static inline bool plain_number(const char *s, const char *e, double *out)
{
    const bool negative = *s == '-';
    plain_digits digits;
    double x;
    if (!read_plain(s + negative, e, &digits) ||
        !frgi_decimal_scale(digits.w, -digits.fraction, &x)) {
        return false;
    }
    uint64_t bits; /* signs are as hard to foresee as coins: no branch on them */
    memcpy(&bits, &x, sizeof bits);
    bits |= (uint64_t)negative << 63;
    memcpy(out, &bits, sizeof bits);
    return true;
}

static frgi_cell_kind convert_integers(const frgi_cells *c, int64_t *out, int64_t *n_missing)
{
    const frgi_cells cells = *c;
    const bool plain = !cells.rules->na_numeric;
    int64_t missing = 0;
    for (ptrdiff_t r = 0; r < cells.index->rows; r++) {
        const char *s, *e;
        frgi_cell_at(&cells, r, &s, &e);
        if (plain && plain_integer(s, e, &out[r])) {
            continue;
        }
        double unused;
        const frgi_cell_kind kind = frgi_cell_read(cells.rules, s, e, &out[r], &unused);
        if (kind == CELL_MISSING) {
            out[r] = FRG_MISSING_INTEGER;
            missing++;
        } else if (kind != CELL_INTEGER) {
            return frgi_cell_join(CELL_INTEGER, kind);
        }
    }
    *n_missing = missing;
    return CELL_INTEGER;
}

static frgi_cell_kind convert_numbers(const frgi_cells *c, double *out, int64_t *n_missing)
{
    const frgi_cells cells = *c;
    const bool plain = !cells.rules->na_numeric;
    int64_t missing = 0;
    for (ptrdiff_t r = 0; r < cells.index->rows; r++) {
        const char *s, *e;
        frgi_cell_at(&cells, r, &s, &e);
        if (plain && plain_number(s, e, &out[r])) {
            continue;
        }
        int64_t unused;
        const frgi_cell_kind kind = frgi_cell_read(cells.rules, s, e, &unused, &out[r]);
        if (kind == CELL_MISSING) {
            out[r] = __builtin_nan("");
        } else if (kind != CELL_INTEGER && kind != CELL_NUMBER) {
            return frgi_cell_join(CELL_NUMBER, kind);
        }
        missing += out[r] != out[r];
    }
    *n_missing = missing;
    return CELL_NUMBER;
}

const frgi_csv_kernels KERNELS = {
    .count_quotes = count_quotes,
    .index = index_block,
    .integers = convert_integers,
    .numbers = convert_numbers,
};
