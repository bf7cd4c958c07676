/* fe_codes.c - scanning, counting and numbering; see fe_codes.h.
 *
 * Cost: the scan is one pass over the codes; a count is another one over one factor's.  Codes far
 * above the number of rows are sorted instead of counted.
 */
#include "fe/fe_codes.h"

#include <string.h>

/* ---- scanning -------------------------------------------------------------------------------- */

fe_codes frgi_fe_codes_of(const frg_context *ctx, const frg_array *codes)
{
    static const fe_code_ops *const levels[ISA_COUNT] = EACH_LEVEL(&frgi_fe_code_ops);
    const int64_t n = codes->shape[0], q = codes->shape[1];
    const bool together =
        q <= FE_CODES_Q && codes->stride[0] == q && (q == 1 || codes->stride[1] == 1);
    return (fe_codes){.base = frgi_array_base(codes),
                      .row = codes->stride[0],
                      .column = codes->stride[1],
                      .n = n,
                      .q = (int)q,
                      .ops = together ? levels[frgi_context_isa(ctx)] : NULL,
                      .single = codes->stride[0] == 1 ? levels[frgi_context_isa(ctx)] : NULL};
}

static fe_scan scan_factor(const fe_codes *c, int q, int64_t begin, int64_t end)
{
    fe_scan s = {0};
    int32_t before = fe_code_at(c, begin > 0 ? begin - 1 : 0, q);
    for (int64_t i = begin; i < end; i++) {
        const int32_t code = fe_code_at(c, i, q);
        s.any |= code;
        s.high = code > s.high ? code : s.high;
        s.changes += code != before;
        s.descents += code < before;
        before = code;
    }
    return s;
}

static void scan_piece(const fe_codes *c, int64_t begin, int64_t end, fe_scan *out)
{
    if (c->ops) {
        c->ops->scan[c->q - 1]((const int32_t *)(const void *)c->base, begin, end, out);
        return;
    }
    for (int q = 0; q < c->q; q++) {
        if (c->single) {
            c->single->scan[0](fe_code_column(c, q), begin, end, &out[q]);
        } else {
            out[q] = scan_factor(c, q, begin, end);
        }
    }
}

static void add_scans(const fe_scan *scans, int64_t pieces, int stride, fe_scan *total)
{
    for (int64_t p = 0; p < pieces; p++) {
        const fe_scan *s = &scans[p * stride];
        total->any |= s->any;
        total->high = s->high > total->high ? s->high : total->high;
        total->changes += s->changes;
        total->descents += s->descents;
    }
}

static frg_status refuse_negative(frg_context *ctx, const fe_codes *c, int q)
{
    int64_t i = 0;
    while (fe_code_at(c, i, q) >= 0) {
        i++;
    }
    frgi_at(ctx, "codes, row %lld, factor %d", (long long)i + 1, q + 1);
    FAIL(ctx, E_CODES, "row %lld of factor %d has the negative code %d", (long long)i + 1, q + 1,
         fe_code_at(c, i, q));
}

frg_status frgi_fe_codes_scan(frg_context *ctx, const fe_codes *c, fe_scan **out,
                              fe_factor_codes *f)
{
    const int64_t pieces = fe_code_pieces(c->n);
    fe_scan *scans;
    TRY(NEW(ctx, &scans, pieces * c->q, "scan of the codes"));
    *out = scans;
    frgi_pass_begins(ctx, "fe", "codes", c->n * c->q * (int64_t)sizeof(int32_t));
#pragma omp parallel for num_threads(frg_threads(ctx)) schedule(static) if (c->n >= FE_SMALL_ROWS)
    for (int64_t p = 0; p < pieces; p++) {
        const int64_t begin = p * FE_PIECE_ROWS, end = fe_code_piece_end(c->n, p);
        scan_piece(c, begin, end, scans + p * c->q);
        frgi_pass_did(ctx, (end - begin) * c->q * (int64_t)sizeof(int32_t));
    }
    for (int q = 0; q < c->q; q++) {
        add_scans(scans + q, pieces, c->q, &f[q].scan);
        if (f[q].scan.any < 0) {
            return refuse_negative(ctx, c, q);
        }
        f[q].codes = (int64_t)f[q].scan.high + 1;
    }
    return FRG_OK;
}

/* ---- counting levels ------------------------------------------------------------------------- */

frg_status frgi_fe_codes_open_tables(frg_context *ctx, fe_factor_codes *f, int tables)
{
    enum { NUMBERS = FE_LINE / sizeof(uint32_t) };
    f->apart = (f->codes + NUMBERS - 1) / NUMBERS * NUMBERS;
    TRY(NEW0(ctx, &f->count, tables * f->apart, "level counts"));
    f->tables = tables;
    return FRG_OK;
}

void frgi_fe_codes_add_tables(fe_factor_codes *f)
{
    for (int t = 1; t < f->tables; t++) {
        for (int64_t l = 0; l < f->codes; l++) {
            f->count[l] += f->count[t * f->apart + l];
        }
    }
    f->tables = 0;
}

/** Rows of each code 0 .. codes-1; threads count apart and are added, counts being exact. */
static frg_status count_codes(frg_context *ctx, const fe_codes *c, int q, fe_factor_codes *f)
{
    const int64_t codes = f->codes;
    const int threads = c->n < FE_SMALL_ROWS || codes > c->n / 8 ? 1 : frg_threads(ctx);
    TRY(frgi_fe_codes_open_tables(ctx, f, threads));
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        uint32_t *mine = f->count + t * f->apart;
        for (int64_t i = c->n * t / threads; i < c->n * (t + 1) / threads; i++) {
            mine[fe_code_at(c, i, q)]++;
        }
    }
    frgi_fe_codes_add_tables(f);
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
static frg_status narrow_codes(frg_context *ctx, const fe_codes *c, int q, fe_factor_codes *f,
                               fe_factor *out)
{
    int32_t *keys = NULL, *spare = NULL;
    frg_status status;
    TRY_TO(failed, NEW(ctx, &keys, c->n, "codes to sort"));
    TRY_TO(failed, NEW(ctx, &spare, c->n, "codes to sort"));
    for (int64_t i = 0; i < c->n; i++) {
        keys[i] = fe_code_at(c, i, q);
    }
    radix_sort(keys, spare, c->n);
    int64_t levels = 0;
    for (int64_t i = 0; i < c->n; i++) {
        if (i == 0 || keys[i] != keys[i - 1]) {
            keys[levels++] = keys[i];
        }
    }
    for (int64_t i = 0; i < c->n; i++) {
        const int32_t code = fe_code_at(c, i, q);
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
frg_status frgi_fe_codes_number(frg_context *ctx, fe_factor_codes *f, fe_factor *out)
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

bool frgi_fe_codes_are_wide(const fe_codes *c, const fe_factor_codes *f)
{
    return f->codes > 4 * c->n + 1024;
}

frg_status frgi_fe_codes_count(frg_context *ctx, const fe_codes *c, int q, fe_factor_codes *f,
                               fe_factor *out)
{
    if (frgi_fe_codes_are_wide(c, f)) {
        return narrow_codes(ctx, c, q, f, out);
    }
    TRY(count_codes(ctx, c, q, f));
    return frgi_fe_codes_number(ctx, f, out);
}

void frgi_fe_codes_drop(frg_context *ctx, fe_factor_codes *f)
{
    DROP(ctx, &f->count);
    DROP(ctx, &f->level);
    DROP(ctx, &f->narrow);
}
