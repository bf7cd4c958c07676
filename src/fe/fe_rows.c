/* fe_rows.c - reads codes and weights into the layout of fe_rows.h, and runs the passes over all chunks.
 *
 * Cost: two or three passes over the codes; data that are sorted by their largest factor, as panels are,
 * keep their order and nothing but compact coefficient numbers is stored (4 bytes a row and factor).
 * Others are counted and sorted once (4 more bytes a row).
 */
#include "fe/fe_rows.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum {
    SMALL_ROWS = 1 << 14, /* below, one chunk and no threads */
    MAX_CHUNKS = 64,
    ROWS_PER_COPIED_LEVEL =
        32, /* a chunk's copy of the coefficients is worth it from so many rows a level */
    SCAN_ROWS = 1 << 12 /* rows of one piece when the codes are scanned */
};

/* ---- scanning the codes ------------------------------------------------------------------------- */

/** What one look at a stretch of a factor's codes tells. */
typedef struct {
    int32_t any, high; /* bitwise or (negative when a code is), largest */
    int64_t changes;   /* rows whose code differs from the row before */
    int64_t descents;  /* of these, to a smaller code */
} code_scan;

typedef struct {
    const char *base;
    ptrdiff_t row, column; /* strides in elements */
    int64_t n;
    int q;
} code_view;

static inline int32_t code_at(const code_view *c, int64_t i, int q)
{
    return ((const int32_t *)(const void *)c->base)[i * c->row + q * c->column];
}

static int64_t count_pieces(int64_t n)
{
    return (n + SCAN_ROWS - 1) / SCAN_ROWS;
}

static int64_t piece_end(int64_t n, int64_t piece)
{
    const int64_t end = (piece + 1) * SCAN_ROWS;
    return end < n ? end : n;
}

static code_scan scan_piece(const code_view *c, int q, int64_t begin, int64_t end)
{
    code_scan s = {0};
    int32_t before = code_at(c, begin > 0 ? begin - 1 : 0, q);
    for (int64_t i = begin; i < end; i++) {
        const int32_t code = code_at(c, i, q);
        s.any |= code;
        s.high = code > s.high ? code : s.high;
        s.changes += code != before;
        s.descents += code < before;
        before = code;
    }
    return s;
}

typedef int32_t quad __attribute__((vector_size(16)));

static inline quad codes_of_row(const code_view *c, int64_t i)
{
    quad v;
    memcpy(&v, c->base + i * c->row * (ptrdiff_t)sizeof(int32_t), sizeof v);
    return v;
}

/** The same for all of up to four adjacent factors at once, a row a vector; lanes past c->q hold the next
 *  row's codes and are not looked at. */
static void scan_rows(const code_view *c, int64_t begin, int64_t end, code_scan *out)
{
    quad any = {0}, high = {0}, changes = {0}, descents = {0};
    quad before = codes_of_row(c, begin > 0 ? begin - 1 : 0);
    for (int64_t i = begin; i < end; i++) {
        const quad code = codes_of_row(c, i), above = code > high;
        any |= code;
        high = (code & above) | (high & ~above);
        changes -= code != before;
        descents -= code < before;
        before = code;
    }
    for (int q = 0; q < c->q; q++) {
        out[q] = (code_scan){any[q], high[q], changes[q], descents[q]};
    }
}

/** One pass over all codes: the scan of each factor in each piece, pieces x q. */
static frg_status scan_codes(frg_context *ctx, const code_view *c, code_scan **out)
{
    const int64_t pieces = count_pieces(c->n);
    code_scan *scans;
    TRY(NEW(ctx, &scans, pieces * c->q, "scan of the codes"));
#pragma omp parallel for num_threads(frg_threads(ctx)) schedule(static) if (c->n >= SMALL_ROWS)
    for (int64_t p = 0; p < pieces; p++) {
        /* a vector reaches up to three codes past its row: those of the rows after the piece */
        const bool by_rows =
            c->column == 1 && c->row >= c->q && c->q <= 4 && piece_end(c->n, p) + 3 <= c->n;
        if (by_rows) {
            scan_rows(c, p * SCAN_ROWS, piece_end(c->n, p), scans + p * c->q);
        }
        for (int q = 0; !by_rows && q < c->q; q++) {
            scans[p * c->q + q] = scan_piece(c, q, p * SCAN_ROWS, piece_end(c->n, p));
        }
    }
    *out = scans;
    return FRG_OK;
}

static frg_status refuse_negative(frg_context *ctx, const code_view *c, int q)
{
    int64_t i = 0;
    while (code_at(c, i, q) >= 0) {
        i++;
    }
    frgi_at(ctx, "codes, row %lld, factor %d", (long long)i + 1, q + 1);
    FAIL(ctx, E_CODES, "row %lld of factor %d has the negative code %d", (long long)i + 1, q + 1,
         code_at(c, i, q));
}

/* ---- counting levels ---------------------------------------------------------------------------- */

/** A factor's codes while the layout is built. */
typedef struct {
    code_scan scan;  /* of all rows */
    int64_t codes;   /* length of count and level */
    uint32_t *count; /* rows of each code; NULL where nothing needs them */
    int32_t *level;  /* code -> level; NULL: the same */
    int32_t *narrow; /* n: levels by row, where codes are too far apart for a table */
} factor_codes;

static void add_scans(const code_scan *scans, int64_t pieces, int stride, code_scan *total)
{
    for (int64_t p = 0; p < pieces; p++) {
        const code_scan *s = &scans[p * stride];
        total->any |= s->any;
        total->high = s->high > total->high ? s->high : total->high;
        total->changes += s->changes;
        total->descents += s->descents;
    }
}

/** Rows of each code 0 .. codes-1; threads count apart and are added, counts being exact. */
static frg_status count_codes(frg_context *ctx, const code_view *c, int q, factor_codes *f)
{
    const int64_t codes = f->codes;
    const int threads = c->n < SMALL_ROWS || codes > c->n / 8 ? 1 : frg_threads(ctx);
    uint32_t *count;
    TRY(NEW0(ctx, &count, (int64_t)threads * codes, "level counts"));
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        uint32_t *mine = count + t * codes;
        for (int64_t i = c->n * t / threads; i < c->n * (t + 1) / threads; i++) {
            mine[code_at(c, i, q)]++;
        }
    }
    for (int t = 1; t < threads; t++) {
        for (int64_t l = 0; l < codes; l++) {
            count[l] += count[t * codes + l];
        }
    }
    f->count = count;
    return FRG_OK;
}

static int64_t count_occupied(const uint32_t *count, int64_t codes)
{
    int64_t levels = 0;
    for (int64_t l = 0; l < codes; l++) {
        levels += count[l] > 0;
    }
    return levels;
}

/** Sorts int32 keys >= 0, least significant byte first; `spare` has the same length. */
static void radix_sort(int32_t *keys, int32_t *spare, int64_t n)
{
    for (int shift = 0; shift < 32; shift += 8) {
        int64_t start[257] = {0};
        for (int64_t i = 0; i < n; i++) {
            start[((uint32_t)keys[i] >> shift & 255u) + 1]++;
        }
        for (int b = 0; b < 256; b++) {
            start[b + 1] += start[b];
        }
        for (int64_t i = 0; i < n; i++) {
            spare[start[(uint32_t)keys[i] >> shift & 255u]++] = keys[i];
        }
        memcpy(keys, spare, (size_t)n * sizeof *keys);
    }
}

/** Codes far above n get no table of their size: the distinct ones are sorted and searched. */
static frg_status narrow_codes(frg_context *ctx, const code_view *c, int q, factor_codes *f,
                               fe_factor *out)
{
    int32_t *keys = NULL, *spare = NULL;
    frg_status status;
    TRY_TO(failed, NEW(ctx, &keys, c->n, "codes to sort"));
    TRY_TO(failed, NEW(ctx, &spare, c->n, "codes to sort"));
    for (int64_t i = 0; i < c->n; i++) {
        keys[i] = code_at(c, i, q);
    }
    radix_sort(keys, spare, c->n);
    int64_t levels = 0;
    for (int64_t i = 0; i < c->n; i++) {
        if (i == 0 || keys[i] != keys[i - 1]) {
            keys[levels++] = keys[i];
        }
    }
    for (int64_t i = 0; i < c->n; i++) {
        const int32_t code = code_at(c, i, q);
        int64_t low = 0, high = levels - 1;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (keys[middle] < code) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        spare[i] = (int32_t)low;
    }
    out->levels = levels;
    out->label = keys;
    f->narrow = spare;
    f->codes = levels;
    return FRG_OK;
failed:
    DROP(ctx, &keys);
    DROP(ctx, &spare);
    return status;
}

/** level[code] for occupied codes and label[level]; nothing is stored where every code occurs. */
static frg_status number_levels(frg_context *ctx, factor_codes *f, fe_factor *out)
{
    out->levels = count_occupied(f->count, f->codes);
    if (out->levels == f->codes) {
        return FRG_OK;
    }
    TRY(NEW(ctx, &f->level, f->codes, "level numbers"));
    TRY(NEW(ctx, &out->label, out->levels, "level labels"));
    int32_t next = 0;
    for (int64_t l = 0; l < f->codes; l++) {
        if (f->count[l] > 0) {
            out->label[next] = (int32_t)l;
            f->level[l] = next++;
        }
    }
    return FRG_OK;
}

static inline int32_t level_at(const code_view *c, const factor_codes *f, int64_t i, int q)
{
    if (f->narrow) {
        return f->narrow[i];
    }
    const int32_t code = code_at(c, i, q);
    return f->level ? f->level[code] : code;
}

static frg_status count_factor(frg_context *ctx, const code_view *c, int q, factor_codes *f,
                               fe_factor *out)
{
    if (f->codes > 4 * c->n + 1024) {
        return narrow_codes(ctx, c, q, f, out);
    }
    TRY(count_codes(ctx, c, q, f));
    return number_levels(ctx, f, out);
}

/** The factor with the most levels is projected out exactly. */
static int largest_factor(const fe_rows *g)
{
    int best = 0;
    for (int q = 1; q < g->n_factors; q++) {
        best = g->factor[q].levels > g->factor[best].levels ? q : best;
    }
    return best;
}

/** Levels of all factors.  Ascending codes tell theirs without being counted; should such a factor not
 *  become the units, it is counted after all. */
static frg_status study_factors(fe_rows *g, frg_context *ctx, const code_view *c,
                                const code_scan *scans, factor_codes *f)
{
    for (int q = 0; q < c->q; q++) {
        add_scans(scans + q, count_pieces(c->n), c->q, &f[q].scan);
        if (f[q].scan.any < 0) {
            return refuse_negative(ctx, c, q);
        }
        f[q].codes = (int64_t)f[q].scan.high + 1;
        g->factor[q].levels = f[q].scan.changes + 1;
        if (f[q].scan.descents > 0) {
            TRY(count_factor(ctx, c, q, &f[q], &g->factor[q]));
        }
    }
    g->unit_factor = largest_factor(g);
    for (int q = 0; q < c->q; q++) {
        if (q != g->unit_factor && f[q].scan.descents == 0) {
            TRY(count_factor(ctx, c, q, &f[q], &g->factor[q]));
        }
    }
    return FRG_OK;
}

/* ---- the layout --------------------------------------------------------------------------------- */

static frg_status check_weights(frg_context *ctx, const frg_array *weights)
{
    const double *w = (const double *)(const void *)frgi_array_base(weights);
    for (int64_t i = 0; i < weights->shape[0]; i++) {
        const double v = w[i * weights->stride[0]];
        if (!(v >= 0 && isfinite(v))) {
            frgi_at(ctx, "weights, row %lld", (long long)i + 1);
            FAIL(ctx, E_WEIGHT, "row %lld has the weight %g", (long long)i + 1, v);
        }
    }
    return FRG_OK;
}

/** Rows stay where they are: the runs of equal codes are the units.  A piece's first unit is known from the
 *  changes counted in the pieces before. */
static frg_status take_runs(fe_rows *g, frg_context *ctx, const code_view *c,
                            const code_scan *scans, factor_codes *f)
{
    const int q = g->unit_factor;
    fe_factor *unit = &g->factor[q];
    const bool ascending = f->scan.descents == 0;
    const int64_t pieces = count_pieces(g->n);
    int64_t *first;
    TRY(NEW(ctx, &g->unit_start, g->n_units + 1, "unit starts"));
    if (!ascending) {
        TRY(NEW(ctx, &g->unit_level, g->n_units, "unit levels"));
    } else if (g->n_units < f->codes && g->n > 0) {
        TRY(NEW(ctx, &unit->label, g->n_units, "level labels"));
    }
    TRY(NEW(ctx, &first, pieces, "first units"));
    for (int64_t p = 0, u = 0; p < pieces; p++) {
        first[p] = u;
        u += scans[p * c->q + q].changes + (p == 0);
    }
#pragma omp parallel for num_threads(frg_threads(ctx)) schedule(static) if (g->n >= SMALL_ROWS)
    for (int64_t p = 0; p < pieces; p++) {
        int64_t u = first[p];
        int32_t before = p == 0 ? -1 : code_at(c, p * SCAN_ROWS - 1, q);
        for (int64_t i = p * SCAN_ROWS; i < piece_end(g->n, p); i++) {
            const int32_t code = code_at(c, i, q);
            if (code == before) {
                continue;
            }
            if (!ascending) {
                g->unit_level[u] = level_at(c, f, i, q);
            } else if (unit->label) {
                unit->label[u] = code;
            }
            g->unit_start[u++] = i;
            before = code;
        }
    }
    g->unit_start[g->n_units] = g->n;
    DROP(ctx, &first);
    return FRG_OK;
}

/** A stable counting sort of the rows by unit. */
static frg_status sort_rows(fe_rows *g, frg_context *ctx, const code_view *c, const factor_codes *f)
{
    const int q = g->unit_factor;
    TRY(NEW0(ctx, &g->unit_start, g->n_units + 1, "unit starts"));
    TRY(NEW(ctx, &g->order, g->n + FE_ROWS_AHEAD, "row order"));
    memset(g->order + g->n, 0, FE_ROWS_AHEAD * sizeof *g->order);
    int64_t *next = g->unit_start;
    for (int64_t i = 0; i < g->n; i++) {
        next[level_at(c, f, i, q) + 1]++;
    }
    for (int64_t u = 0; u < g->n_units; u++) {
        next[u + 1] += next[u];
    }
    for (int64_t i = 0; i < g->n; i++) {
        g->order[next[level_at(c, f, i, q)]++] = (uint32_t)i;
    }
    /* next[u] has moved to the start of unit u + 1 */
    memmove(g->unit_start + 1, g->unit_start, (size_t)g->n_units * sizeof *g->unit_start);
    g->unit_start[0] = 0;
    return FRG_OK;
}

/** Coefficient numbers of one factor for rows begin .. end-1. */
static void fill_factor(const fe_rows *g, const code_view *c, const factor_codes *f, int q,
                        int rest, int64_t begin, int64_t end)
{
    const int32_t first = (int32_t)g->factor[q].first;
    int32_t *index = g->index + rest;
    const bool as_given = !g->order && !f->narrow && !f->level;
    for (int64_t i = begin; as_given && i < end; i++) {
        index[i * g->n_rest] = first + code_at(c, i, q);
    }
    for (int64_t i = begin; !as_given && i < end; i++) {
        index[i * g->n_rest] = first + level_at(c, f, g->order ? g->order[i] : i, q);
    }
}

static void fill_index(const fe_rows *g, const code_view *c, const factor_codes *f, int threads)
{
    const int64_t pieces = count_pieces(g->n);
#pragma omp parallel for num_threads(threads) schedule(static) if (g->n >= SMALL_ROWS)
    for (int64_t p = 0; p < pieces; p++) {
        for (int q = 0, rest = 0; q < g->n_factors; q++) {
            if (q != g->unit_factor) {
                fill_factor(g, c, &f[q], q, rest++, p * SCAN_ROWS, piece_end(g->n, p));
            }
        }
    }
}

static void take_weights(fe_rows *g, const frg_array *weights)
{
    const double *w = (const double *)(const void *)frgi_array_base(weights);
    for (int64_t i = 0; i < g->n; i++) {
        g->weight[i] = w[(g->order ? g->order[i] : i) * weights->stride[0]];
    }
}

/** N_u, N_l and their inverses.  Unweighted counts are exact in any order; weights are added row by row. */
static void weigh_levels(fe_rows *g, const factor_codes *f, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static) if (g->n >= SMALL_ROWS)
    for (int64_t u = 0; u < g->n_units; u++) {
        double mass = (double)(g->unit_start[u + 1] - g->unit_start[u]);
        if (g->weight) {
            mass = 0;
            for (int64_t i = g->unit_start[u]; i < g->unit_start[u + 1]; i++) {
                mass += g->weight[i];
            }
        }
        g->unit_inverse[u] = mass > 0 ? 1 / mass : 0;
    }
    const bool counted = !g->weight;
    memset(g->level_weight, 0, (size_t)g->n_coef * sizeof *g->level_weight);
    for (int q = 0; q < g->n_factors; q++) {
        if (q == g->unit_factor || !counted || f[q].narrow) {
            continue;
        }
        for (int64_t l = 0, next = g->factor[q].first; l < f[q].codes; l++) {
            if (f[q].count[l] > 0) {
                g->level_weight[next++] = f[q].count[l];
            }
        }
    }
    for (int q = 0, r = 0; q < g->n_factors; q++) {
        if (q == g->unit_factor) {
            continue;
        }
        for (int64_t i = 0; (!counted || f[q].narrow) && i < g->n; i++) {
            g->level_weight[g->index[i * g->n_rest + r]] += g->weight ? g->weight[i] : 1;
        }
        r++;
    }
    for (int64_t l = 0; l < g->n_coef; l++) {
        g->level_inverse[l] = g->level_weight[l] > 0 ? 1 / g->level_weight[l] : 0;
    }
}

/** A power of two of chunks: as many as the rows pay for, since each costs a copy of the coefficients. */
static int choose_chunks(int64_t n, int64_t n_coef)
{
    if (n < SMALL_ROWS) {
        return 1;
    }
    int chunks = 2;
    while (chunks < MAX_CHUNKS && n / (2 * chunks) >= ROWS_PER_COPIED_LEVEL * (n_coef + 64)) {
        chunks *= 2;
    }
    return chunks;
}

static void cut_chunks(fe_rows *g)
{
    for (int k = 0; k <= g->n_chunks; k++) {
        const int64_t row = g->n * k / g->n_chunks;
        int64_t low = 0, high = g->n_units;
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (g->unit_start[middle] < row) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        g->chunk_unit[k] = low;
    }
}

static frg_status lay_out(fe_rows *g, frg_context *ctx, const code_view *c,
                          const frg_array *weights, const code_scan *scans, factor_codes *f)
{
    g->n_units = g->factor[g->unit_factor].levels;
    for (int q = 0; q < g->n_factors; q++) {
        g->factor[q].first = q == g->unit_factor ? -1 : g->n_coef;
        g->n_coef += q == g->unit_factor ? 0 : g->factor[q].levels;
    }
    if (g->n_coef > INT32_MAX) {
        FAIL(ctx, E_TOO_BIG, "%lld levels beside the largest factor are more than 2^31",
             (long long)g->n_coef);
    }
    factor_codes *unit = &f[g->unit_factor];
    const bool grouped = g->n == 0 || unit->scan.changes + 1 == g->n_units;
    TRY(grouped ? take_runs(g, ctx, c, scans, unit) : sort_rows(g, ctx, c, unit));
    TRY(NEW(ctx, &g->index, (g->n + FE_ROWS_AHEAD) * g->n_rest, "coefficient numbers"));
    memset(g->index + g->n * g->n_rest, 0, (size_t)(FE_ROWS_AHEAD * g->n_rest) * sizeof *g->index);
    fill_index(g, c, f, frg_threads(ctx));
    if (weights) {
        TRY(NEW(ctx, &g->weight, g->n, "weights"));
        take_weights(g, weights);
    }
    TRY(NEW(ctx, &g->unit_inverse, g->n_units, "unit weights"));
    TRY(NEW(ctx, &g->level_weight, g->n_coef, "level weights"));
    TRY(NEW(ctx, &g->level_inverse, g->n_coef, "level weights"));
    weigh_levels(g, f, frg_threads(ctx));
    g->n_chunks = choose_chunks(g->n, g->n_coef);
    TRY(NEW(ctx, &g->chunk_unit, g->n_chunks + 1, "chunks"));
    cut_chunks(g);
    return FRG_OK;
}

frg_status frgi_fe_rows_create(fe_rows *g, frg_context *ctx, const frg_array *codes,
                               const frg_array *weights)
{
    const code_view c = {frgi_array_base(codes), codes->stride[0], codes->stride[1],
                         codes->shape[0], (int)codes->shape[1]};
    g->n = c.n;
    g->n_factors = c.q;
    g->n_rest = c.q - 1;
    if (g->n >= UINT32_MAX) {
        FAIL(ctx, E_TOO_BIG, "%lld rows are more than one plan holds (2^32)", (long long)g->n);
    }
    factor_codes *f = NULL;
    code_scan *scans = NULL;
    frg_status status;
    TRY_TO(done, NEW0(ctx, &f, c.q, "factors"));
    TRY_TO(done, NEW0(ctx, &g->factor, c.q, "factors"));
    if (weights) {
        TRY_TO(done, check_weights(ctx, weights));
    }
    if (g->n > 0) {
        TRY_TO(done, scan_codes(ctx, &c, &scans));
        TRY_TO(done, study_factors(g, ctx, &c, scans, f));
    }
    TRY_TO(done, lay_out(g, ctx, &c, weights, scans, f));
done:
    for (int q = 0; f && q < c.q; q++) {
        DROP(ctx, &f[q].count);
        DROP(ctx, &f[q].level);
        DROP(ctx, &f[q].narrow);
    }
    DROP(ctx, &f);
    DROP(ctx, &scans);
    return status;
}

size_t frgi_fe_rows_bytes(const fe_rows *g)
{
    const int64_t per_row = (g->n_rest + (g->order ? 1 : 0)) * 4 + (g->weight ? 8 : 0);
    return (size_t)(g->n * per_row + g->n_units * (g->unit_level ? 20 : 16) + g->n_coef * 16);
}

void frgi_fe_rows_destroy(fe_rows *g, frg_context *ctx)
{
    for (int q = 0; g->factor && q < g->n_factors; q++) {
        DROP(ctx, &g->factor[q].label);
    }
    DROP(ctx, &g->factor);
    DROP(ctx, &g->unit_start);
    DROP(ctx, &g->unit_level);
    DROP(ctx, &g->unit_inverse);
    DROP(ctx, &g->index);
    DROP(ctx, &g->order);
    DROP(ctx, &g->weight);
    DROP(ctx, &g->level_weight);
    DROP(ctx, &g->level_inverse);
    DROP(ctx, &g->chunk_unit);
}

/* ---- the passes --------------------------------------------------------------------------------- */

#define TABLE(level) extern const fe_row_ops frgi_fe_row_table_##level[2][FE_LANE_KINDS];
#pragma GCC visibility push(hidden)
TABLE(plain)
#if FOURGE_LEVELS > 1
TABLE(v2)
TABLE(v3)
TABLE(v4)
#endif
#pragma GCC visibility pop

const fe_row_ops *frgi_fe_row_ops(frgi_isa isa, int f32, int kind)
{
    static const fe_row_ops(*const tables[ISA_COUNT])[FE_LANE_KINDS] =
        EACH_LEVEL(frgi_fe_row_table);
    return &tables[isa][f32][kind];
}

void frgi_fe_row_work_layout(frgi_arena *a, const fe_rows *g, int lanes, fe_row_work *w)
{
    w->partial = TAKE(a, double, frgi_mul((size_t)g->n_chunks * (size_t)g->n_coef, (size_t)lanes));
    w->moments = TAKE(a, fe_moments, g->n_chunks);
    w->audit = TAKE(a, fe_unit_audit, g->n_chunks);
}

void frgi_fe_add_chunks(const fe_rows *g, const double *partial, int threads, int64_t length,
                        double *to)
{
    enum { PIECE = 2048 };
    const int64_t pieces = (length + PIECE - 1) / PIECE;
#pragma omp parallel for num_threads(threads) schedule(static) if (g->n_chunks > 1 && pieces > 8)
    for (int64_t p = 0; p < pieces; p++) {
        const int64_t begin = p * PIECE, end = begin + PIECE < length ? begin + PIECE : length;
        for (int64_t j = begin; j < end; j++) {
            to[j] = partial[j];
        }
        for (int k = 1; k < g->n_chunks; k++) {
            for (int64_t j = begin; j < end; j++) {
                to[j] += partial[k * length + j];
            }
        }
    }
}

/** Moments of two sets of rows from the moments of each (Chan, Golub, LeVeque 1983), lane by lane. */
static void merge_moments(fe_moments *t, const fe_moments *m, int lanes)
{
    for (int k = 0; k < lanes; k++) {
        const double gap = m->shift[k] - t->shift[k];
        t->square[k] += m->square[k] + 2 * gap * m->sum[k] + gap * gap * m->weight[k];
        t->sum[k] += m->sum[k] + gap * m->weight[k];
        t->weight[k] += m->weight[k];
        t->within[k] += m->within[k];
        t->top[k] = m->top[k] > t->top[k] ? m->top[k] : t->top[k];
    }
}

void frgi_fe_rhs(const fe_rows *g, const fe_row_ops *ops, const fe_row_work *w, int threads,
                 int lanes, const fe_block *x, double *b, fe_moments *total)
{
    const int64_t length = g->n_coef * lanes;
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (g->n_chunks > 1)
    for (int k = 0; k < g->n_chunks; k++) {
        memset(w->partial + k * length, 0, (size_t)length * sizeof(double));
        memset(&w->moments[k], 0, sizeof w->moments[k]);
        if (g->chunk_unit[k] < g->chunk_unit[k + 1]) {
            ops->rhs(g, k, x, w->partial + k * length, &w->moments[k]);
        }
    }
    frgi_fe_add_chunks(g, w->partial, threads, length, b);
    *total = w->moments[0];
    for (int k = 1; k < g->n_chunks; k++) {
        merge_moments(total, &w->moments[k], lanes);
    }
}

static void merge_audits(fe_unit_audit *t, const fe_unit_audit *m, int lanes)
{
    for (int k = 0; k < lanes; k++) {
        t->square[k] += m->square[k];
        t->gradient[k] += m->gradient[k];
        t->worst[k] = m->mean[k] > t->mean[k] ? m->worst[k] : t->worst[k];
        t->mean[k] = m->mean[k] > t->mean[k] ? m->mean[k] : t->mean[k];
        t->effect[k] = m->effect[k] > t->effect[k] ? m->effect[k] : t->effect[k];
    }
}

void frgi_fe_residual(const fe_rows *g, const fe_row_ops *ops, const fe_row_work *w, int threads,
                      int lanes, const fe_block *x, const fe_block *out, const double *a, double *s,
                      double *unit_effect, fe_unit_audit *total)
{
    const int64_t length = g->n_coef * lanes;
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (g->n_chunks > 1)
    for (int k = 0; k < g->n_chunks; k++) {
        memset(w->partial + k * length, 0, (size_t)length * sizeof(double));
        memset(&w->audit[k], 0, sizeof w->audit[k]);
        ops->residual(g, k, x, out, a, w->partial + k * length, unit_effect, &w->audit[k]);
    }
    frgi_fe_add_chunks(g, w->partial, threads, length, s);
    *total = w->audit[0];
    for (int k = 1; k < g->n_chunks; k++) {
        merge_audits(total, &w->audit[k], lanes);
    }
}
