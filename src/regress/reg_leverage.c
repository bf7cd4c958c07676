/* reg_leverage.c - leverages of the full model, effects included.
 *
 *     h_i = w_i (d_i' G^- d_i + x~_i' B x~_i),    G = D'WD, any g-inverse, B = (X~'WX~)^-1
 *
 * Exact, by what the design allows:
 *
 *   one effect    d'G^-d = 1 / W_a, W_a the weight of the row's level a
 *   few others    a: the effect with the most levels, r: all others, m levels, up to DENSE.
 *                 S = D_r'W D_r - sum_a p_a p_a' / W_a,  p_a = sum_{i in a} w_i d_r,i;
 *                 d'G^-d = 1 / W_a + u' S^- u,  u = d_r,i - p_a / W_a        m^3 + sum_a |p_a|^2
 *   otherwise     a unit vector e_i for each distinct cell, demeaned in blocks:
 *                 ((I - P_D) e_i)_i = 1 - w_i d_i'G^-d_i          (cells n) row steps, up to STEPS
 *
 * Beyond that they are refused, or, where asked for, estimated (Johnson and Lindenstrauss; Kline,
 * Saggio and Soelvsten 2020): v of independent signs, P the projection on W^(1/2) [D X],
 *
 *     h_i ~ sum (Pv)_i^2 / (sum (Pv)_i^2 + sum ((I-P)v)_i^2)   over R draws,
 *     standard error h (1 - h) ((2 + 8 h (1 - h)) / R)^(1/2)
 *
 * as (Pv)_i = h v_i + xi, xi about normal with variance h (1 - h).  A frequency weight of 2 is two
 * rows of half the leverage each.
 */
#include <math.h>
#include <string.h>

#include "core/row_order.h"
#include "formula/keys.h"
#include "linalg/cholesky.h"
#include "regress/reg_vcov.h"

enum { DENSE = 2048, BLOCK = 32, DRAWS = 256 };
static const double STEPS = 4e9;
static const double NULL_PIVOT = 1e-9;     /* of S scaled by the levels' weights */
static const double ONE = 1e-9;            /* 1 - h: the row has no residual of its own */
static const uint64_t STREAM = 0x6c657665; /* of the random signs */

/* ---- one effect, and few levels beside the largest ------------------------------------------- */

static double weight_of(const frg_fe *f, int64_t i)
{
    return f->data.frame.weights ? f->data.frame.weights[i] : 1;
}

/** g_i = 1 / W_a of effect q. */
static frg_status add_levels(const frg_fe *f, int q, double *g)
{
    const int64_t n = f->data.frame.n;
    const int32_t *const codes = f->data.frame.codes + q * n;
    double *total;
    TRY(NEW0(f->ctx, &total, f->data.frame.levels[q], "weights of the levels"));
    for (int64_t i = 0; i < n; i++) {
        total[codes[i]] += weight_of(f, i);
    }
    for (int64_t i = 0; i < n; i++) {
        g[i] += 1 / total[codes[i]];
    }
    DROP(f->ctx, &total);
    return FRG_OK;
}

/** The eliminated effect, the others' levels in one numbering, and rows by the eliminated level. */
typedef struct {
    const frg_fe *f;
    int largest;
    int64_t m; /* levels of the others */
    int64_t offset[FRGI_EFFECTS];
    int64_t *start;       /* of level a's rows: row[start[a] .. start[a + 1]), */
    int64_t *row;         /* NULL: start[a] .. start[a + 1] - 1 */
    const int32_t *codes; /* by these rows: the frame's, or in the order of the levels */
    const double *weights;
    double *g;
    frgi_row_order order;
    int32_t *own_codes;
    double *own_weights, *own_g;
    double *inverse, *packed; /* m x m */
    double *total, *size;     /* m: weights of the levels; S_ll^(1/2) */
    unsigned char *kept;      /* m */
} reduced;

static int64_t row_at(const reduced *s, int64_t r)
{
    return s->row ? s->row[r] : r;
}

/** The level in `codes` that row i has of effect q. */
static int64_t level_of(const reduced *s, const int32_t *codes, int q, int64_t i)
{
    return s->offset[q] + codes[q * s->f->data.frame.n + i];
}

static void number_levels(reduced *s)
{
    const frgi_frame *const frame = &s->f->data.frame;
    for (int q = 1; q < frame->n_effects; q++) {
        s->largest = frame->levels[q] > frame->levels[s->largest] ? q : s->largest;
    }
    for (int q = 0; q < frame->n_effects; q++) {
        s->offset[q] = s->m;
        s->m += q == s->largest ? 0 : frame->levels[q];
    }
}

/** row <- the rows by level; start has the levels' ends one place on, and keeps them. */
static frg_status list_rows(reduced *s, const int32_t *codes, int64_t levels)
{
    const int64_t n = s->f->data.frame.n;
    TRY(NEW(s->f->ctx, &s->row, n, "an order"));
    for (int64_t i = 0; i < n; i++) {
        s->row[s->start[codes[i]]++] = i;
    }
    for (int64_t a = levels; a > 0; a--) {
        s->start[a] = s->start[a - 1];
    }
    s->start[0] = 0;
    return FRG_OK;
}

/** `count` columns in the order of the levels. */
static frg_status bring(reduced *s, void *from, int count, size_t size, void *to)
{
    const int64_t n = s->f->data.frame.n;
    const frgi_columns x = {from, 1, n, count, size}, y = {to, 1, n, count, size};
    return frgi_row_order_bring(&s->order, s->f->ctx, &x, &y);
}

/** Codes and weights of rows on the disk in the order of the levels, and a place for theirs of
 *  g. */
static frg_status bring_rows(reduced *s, const int32_t *codes, int64_t levels)
{
    frg_context *const ctx = s->f->ctx;
    const frgi_frame *const frame = &s->f->data.frame;
    TRY(frgi_row_order_create(&s->order, ctx, codes, frame->n, levels));
    TRY(NEW(ctx, &s->own_codes, frame->n_effects * frame->n, "codes by level"));
    TRY(bring(s, frame->codes, frame->n_effects, sizeof *s->own_codes, s->own_codes));
    s->codes = s->own_codes;
    if (frame->weights) {
        TRY(NEW(ctx, &s->own_weights, frame->n, "weights by level"));
        TRY(bring(s, frame->weights, 1, sizeof *s->own_weights, s->own_weights));
        s->weights = s->own_weights;
    }
    TRY(frgi_row_order_room(&s->order, ctx, sizeof *s->own_g)); /* on their way back */
    TRY(NEW(ctx, &s->own_g, frame->n, "leverages by level"));
    s->g = s->own_g;
    return FRG_OK;
}

/** g, in the rows' own order. */
static frg_status bring_back(const reduced *s, double *g)
{
    const int64_t n = s->f->data.frame.n;
    const frgi_columns x = {s->own_g, 1, n, 1, sizeof *g}, y = {g, 1, n, 1, sizeof *g};
    return s->own_g ? frgi_row_order_back(&s->order, s->f->ctx, &x, &y, false) : FRG_OK;
}

static frg_status sort_rows(reduced *s, double *g)
{
    const frgi_frame *const frame = &s->f->data.frame;
    const int32_t *const codes = frame->codes + s->largest * frame->n;
    const int64_t levels = frame->levels[s->largest];
    bool ascending = true;
    TRY(NEW0(s->f->ctx, &s->start, levels + 1, "an order"));
    for (int64_t i = 0; i < frame->n; i++) {
        s->start[codes[i] + 1]++;
        ascending &= i == 0 || codes[i - 1] <= codes[i];
    }
    for (int64_t a = 0; a < levels; a++) {
        s->start[a + 1] += s->start[a];
    }
    s->codes = frame->codes;
    s->weights = frame->weights;
    s->g = g;
    return ascending                ? FRG_OK
           : frgi_spools(s->f->ctx) ? bring_rows(s, codes, levels)
                                    : list_rows(s, codes, levels);
}

/** p_a: its levels, their weights, and where each stands; place is -1 between two calls. */
typedef struct {
    int64_t count;
    int32_t *level, *place; /* m */
    double *weight, *image; /* m: p_a, S^- p_a / W_a */
    double total;           /* W_a */
} profile;

static frg_status open_profile(profile *p, const reduced *s)
{
    frg_context *const ctx = s->f->ctx;
    TRY(NEW(ctx, &p->level, s->m, "levels of a level"));
    TRY(NEW(ctx, &p->place, s->m, "levels of a level"));
    TRY(NEW(ctx, &p->weight, s->m, "levels of a level"));
    TRY(NEW(ctx, &p->image, s->m, "levels of a level"));
    memset(p->place, 0xff, sizeof *p->place * (size_t)s->m);
    return FRG_OK;
}

static void close_profile(profile *p, frg_context *ctx)
{
    DROP(ctx, &p->level);
    DROP(ctx, &p->place);
    DROP(ctx, &p->weight);
    DROP(ctx, &p->image);
}

static void fill_profile(profile *p, const reduced *s, int64_t a)
{
    for (int64_t c = 0; c < p->count; c++) {
        p->place[p->level[c]] = -1;
    }
    p->count = 0;
    p->total = 0;
    for (int64_t r = s->start[a]; r < s->start[a + 1]; r++) {
        const int64_t i = row_at(s, r);
        const double w = s->weights ? s->weights[i] : 1;
        p->total += w;
        for (int q = 0; q < s->f->data.frame.n_effects; q++) {
            if (q != s->largest) {
                const int64_t l = level_of(s, s->codes, q, i);
                if (p->place[l] < 0) {
                    p->place[l] = (int32_t)p->count;
                    p->level[p->count] = (int32_t)l;
                    p->weight[p->count++] = 0;
                }
                p->weight[p->place[l]] += w;
            }
        }
    }
}

/** inverse <- S scaled by the levels' weights on both sides. */
static void assemble(reduced *s, profile *p)
{
    const frgi_frame *const frame = &s->f->data.frame;
    double *const S = s->inverse;
    for (int64_t i = 0; i < frame->n; i++) {
        for (int q = 0; q < frame->n_effects; q++) {
            for (int r = 0; r < frame->n_effects; r++) {
                if (q != s->largest && r != s->largest) {
                    S[level_of(s, frame->codes, q, i) * s->m + level_of(s, frame->codes, r, i)] +=
                        weight_of(s->f, i);
                }
            }
        }
    }
    for (int64_t l = 0; l < s->m; l++) {
        s->total[l] = S[l * s->m + l];
    }
    for (int64_t a = 0; a < frame->levels[s->largest]; a++) {
        fill_profile(p, s, a);
        for (int64_t c = 0; c < p->count; c++) {
            const double share = p->weight[c] / p->total;
            double *const row = S + p->level[c] * s->m;
            for (int64_t d = 0; d < p->count; d++) {
                row[p->level[d]] -= share * p->weight[d];
            }
        }
    }
    for (int64_t l = 0; l < s->m; l++) {
        for (int64_t r = 0; r < s->m; r++) {
            S[l * s->m + r] /= sqrt(s->total[l]) * sqrt(s->total[r]);
        }
    }
}

/** S^-: the inverse on the rows that keep a pivot, zeros beside them.  False: the pivots do not
 *  tell the rank. */
static bool invert(reduced *s)
{
    const int64_t m = s->m;
    const int threads = frg_threads(s->f->ctx);
    memcpy(s->packed, s->inverse, sizeof *s->packed * (size_t)(m * m));
    const int k = frgi_cholesky_keep((int)m, s->packed, NULL_PIVOT, s->kept, threads, NULL);
    const frgi_fe_absorbed *const a = &s->f->absorbed;
    if (a->rank_exact && (double)(k + s->f->data.frame.levels[s->largest]) != a->rank) {
        return false;
    }
    for (int64_t l = 0, at = 0; l < m; l++) {
        s->size[l] = sqrt(s->inverse[l * m + l]);
        for (int64_t r = 0; r < m && s->kept[l]; r++) {
            if (s->kept[r]) {
                s->packed[at++] =
                    s->inverse[l * m + r] / (s->size[l] * sqrt(s->inverse[r * m + r]));
            }
        }
    }
    if (!frgi_inverse(k, s->packed, 0, threads, NULL)) {
        return false;
    }
    for (int64_t l = 0; l < m; l++) {
        s->size[l] *= sqrt(s->total[l]);
    }
    for (int64_t l = 0, at = 0; l < m; l++) {
        for (int64_t r = 0; r < m; r++) {
            s->inverse[l * m + r] =
                s->kept[l] && s->kept[r] ? s->packed[at++] / (s->size[l] * s->size[r]) : 0;
        }
    }
    return true;
}

/** g_i = 1 / W_a + (d_r - p / W_a)' S^- (d_r - p / W_a) for the rows of level a. */
static void level_leverages(const reduced *s, profile *p, int64_t a)
{
    fill_profile(p, s, a);
    double constant = 0;
    for (int64_t c = 0; c < p->count; c++) {
        const double *const row = s->inverse + p->level[c] * s->m;
        double sum = 0;
        for (int64_t d = 0; d < p->count; d++) {
            sum += row[p->level[d]] * p->weight[d];
        }
        p->image[c] = sum / p->total;
        constant += p->image[c] * p->weight[c] / p->total;
    }
    const int Q = s->f->data.frame.n_effects;
    for (int64_t r = s->start[a]; r < s->start[a + 1]; r++) {
        const int64_t i = row_at(s, r);
        double sum = 1 / p->total + constant;
        for (int q = 0; q < Q; q++) {
            for (int t = 0; t < Q && q != s->largest; t++) {
                const int64_t l = level_of(s, s->codes, q, i);
                sum += t == s->largest ? -2 * p->image[p->place[l]]
                                       : s->inverse[l * s->m + level_of(s, s->codes, t, i)];
            }
        }
        s->g[i] = sum;
    }
}

static frg_status by_reduced(const frg_fe *f, double *g, bool *done)
{
    frg_context *const ctx = f->ctx;
    reduced s = {.f = f};
    profile p = {0};
    frg_status status;
    number_levels(&s);
    *done = false;
    if (s.m > DENSE) {
        return FRG_OK;
    }
    TRY_TO(done, sort_rows(&s, g));
    TRY_TO(done, open_profile(&p, &s));
    TRY_TO(done, NEW0(ctx, &s.inverse, s.m * s.m, "a system of levels"));
    TRY_TO(done, NEW(ctx, &s.packed, s.m * s.m, "a system of levels"));
    TRY_TO(done, NEW(ctx, &s.size, s.m, "a system of levels"));
    TRY_TO(done, NEW(ctx, &s.total, s.m, "weights of the levels"));
    TRY_TO(done, NEW(ctx, &s.kept, s.m, "a system of levels"));
    assemble(&s, &p);
    *done = invert(&s);
    for (int64_t a = 0; *done && a < f->data.frame.levels[s.largest]; a++) {
        level_leverages(&s, &p, a);
    }
    status = *done ? bring_back(&s, g) : FRG_OK;
done:
    close_profile(&p, ctx);
    DROP(ctx, &s.start);
    DROP(ctx, &s.row);
    frgi_row_order_destroy(&s.order, ctx);
    DROP(ctx, &s.own_codes);
    DROP(ctx, &s.own_weights);
    DROP(ctx, &s.own_g);
    DROP(ctx, &s.inverse);
    DROP(ctx, &s.packed);
    DROP(ctx, &s.size);
    DROP(ctx, &s.total);
    DROP(ctx, &s.kept);
    return status;
}

/* ---- unit vectors ---------------------------------------------------------------------------- */

/** first[c]: a row of each distinct cell; with slopes every row is one. */
static frg_status list_cells(const frg_fe *f, int32_t *cell, int64_t *cells, int64_t **first)
{
    const frgi_frame *const frame = &f->data.frame;
    const bool slopes = f->data.formula.n_slopes > 0;
    memcpy(cell, frame->codes, sizeof *cell * (size_t)frame->n);
    *cells = frame->levels[0];
    for (int64_t i = 0; i < frame->n && slopes; i++) {
        cell[i] = (int32_t)i;
    }
    *cells = slopes ? frame->n : *cells;
    for (int q = 1; q < frame->n_effects && !slopes; q++) {
        TRY(frgi_keys_join(f->ctx, frame->n, cell, cells, frame->codes + q * frame->n,
                           frame->levels[q]));
    }
    TRY(NEW(f->ctx, first, *cells, "cells"));
    frgi_keys_first(frame->n, cell, *cells, *first);
    return FRG_OK;
}

/** g of the cells whose rows are first[0 .. count). */
static frg_status unit_block(frgi_vcov_work *w, frg_demean *plan, const int64_t *first,
                             int64_t count, double *values, double *g)
{
    const frg_fe *const f = w->f;
    const int64_t n = f->data.frame.n;
    memset(values, 0, sizeof *values * (size_t)(n * count));
    for (int64_t j = 0; j < count; j++) {
        values[j * n + first[j]] = 1;
    }
    TRY(frgi_vcov_demean(w, plan, values, count));
    for (int64_t j = 0; j < count; j++) {
        g[j] = (1 - values[j * n + first[j]]) / weight_of(f, first[j]);
    }
    return FRG_OK;
}

static frg_status check_steps(const frgi_vcov_work *w, int64_t cells)
{
    const double n = (double)w->f->data.frame.n;
    if ((double)cells * n > STEPS) {
        frgi_at(w->f->ctx, "vcov");
        FAIL(w->f->ctx, E_TOO_BIG,
             "vcov '%s': exact leverages of %lld distinct cells among %.0f rows take too long; "
             "leverage=approx estimates them and says how well",
             w->v->request.spec, (long long)cells, n);
    }
    return FRG_OK;
}

static frg_status by_units(frgi_vcov_work *w, frg_demean *plan, double *values, double *g)
{
    const frg_fe *const f = w->f;
    int32_t *cell = NULL;
    int64_t *first = NULL, cells;
    double *of_cell = NULL;
    frg_status status;
    TRY_TO(done, NEW(f->ctx, &cell, f->data.frame.n, "cells"));
    TRY_TO(done, list_cells(f, cell, &cells, &first));
    TRY_TO(done, check_steps(w, cells));
    TRY_TO(done, NEW(f->ctx, &of_cell, cells, "cells"));
    for (int64_t c = 0; c < cells && w->ended == 0; c += BLOCK) {
        TRY_TO(done, unit_block(w, plan, first + c, cells - c < BLOCK ? cells - c : BLOCK, values,
                                of_cell + c));
    }
    for (int64_t i = 0; i < f->data.frame.n; i++) {
        g[i] = of_cell[cell[i]];
    }
done:
    DROP(f->ctx, &cell);
    DROP(f->ctx, &first);
    DROP(f->ctx, &of_cell);
    return status;
}

/* ---- random signs ---------------------------------------------------------------------------- */

/** values <- W^(-1/2) v for draws `begin` on: bit `begin % 128` and the next of a row's random
 *  words. */
static void draw_signs(const frgi_vcov_work *w, int64_t begin, int64_t count, double *values)
{
    const frg_fe *const f = w->f;
    const int64_t n = f->data.frame.n;
    const uint64_t seed = frg_seed(f->ctx);
#pragma omp parallel for schedule(static) num_threads(frgi_pass_threads(f->ctx, n))
    for (int64_t i = 0; i < n; i++) {
        uint32_t words[4];
        frgi_philox(seed, STREAM, (uint64_t)i, (uint64_t)(begin / 128), words);
        const double size = 1 / sqrt(weight_of(f, i));
        for (int64_t j = 0; j < count; j++) {
            const int64_t bit = (begin + j) % 128;
            values[j * n + i] = words[bit / 32] >> bit % 32 & 1 ? size : -size;
        }
    }
}

/** b <- b - X~ B X~'W b, one column. */
static void take_regressors_out(const frgi_vcov_work *w, double *b, double *scratch)
{
    const frg_fe *const f = w->f;
    const int64_t n = f->data.frame.n;
    const int k = f->fit.k;
    double *const c = scratch, *const d = scratch + k;
    for (int j = 0; j < k; j++) {
        c[j] = 0;
        for (int64_t i = 0; i < n; i++) {
            c[j] += weight_of(f, i) * b[i] * w->x[j][i];
        }
    }
    for (int j = 0; j < k; j++) {
        d[j] = 0;
        for (int l = 0; l < k; l++) {
            d[j] += w->bread[j * k + l] * c[l];
        }
        for (int64_t i = 0; i < n; i++) {
            b[i] -= d[j] * w->x[j][i];
        }
    }
}

/** projected_i += sum (Pv)_i^2, rest_i += sum ((I - P)v)_i^2 of a block of draws. */
static frg_status add_draws(frgi_vcov_work *w, frg_demean *plan, int64_t begin, int64_t count,
                            double *values, double *projected, double *rest)
{
    const frg_fe *const f = w->f;
    const int64_t n = f->data.frame.n, k = f->fit.k;
    double *signs = NULL, *scratch = NULL;
    frg_status status;
    TRY_TO(done, NEW(f->ctx, &signs, n * count, "random signs"));
    TRY_TO(done, NEW(f->ctx, &scratch, 2 * k * count, "random signs"));
    draw_signs(w, begin, count, signs);
    memcpy(values, signs, sizeof *values * (size_t)(n * count));
    if (plan) {
        TRY_TO(done, frgi_vcov_demean(w, plan, values, count));
    }
#pragma omp parallel for schedule(static) num_threads(frgi_pass_threads(f->ctx, n))
    for (int64_t j = 0; j < count; j++) {
        take_regressors_out(w, values + j * n, scratch + 2 * k * j);
    }
#pragma omp parallel for schedule(static) num_threads(frgi_pass_threads(f->ctx, n))
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < count; j++) {
            const double r = values[j * n + i], p = signs[j * n + i] - r;
            projected[i] += weight_of(f, i) * p * p;
            rest[i] += weight_of(f, i) * r * r;
        }
    }
done:
    DROP(f->ctx, &signs);
    DROP(f->ctx, &scratch);
    return status;
}

static frg_status estimate(frgi_vcov_work *w, frg_demean *plan, double *values, double *h)
{
    const frg_fe *const f = w->f;
    const int64_t n = f->data.frame.n;
    const double asked = w->v->request.choice[VCOV_DRAWS];
    const int64_t R = isnan(asked) ? DRAWS : (int64_t)asked;
    double *rest, worst = 0;
    TRY(NEW0(f->ctx, &rest, n, "leverages"));
    frg_status status = FRG_OK;
    for (int64_t d = 0; d < R && status >= 0 && w->ended == 0; d += BLOCK) {
        status = add_draws(w, plan, d, R - d < BLOCK ? R - d : BLOCK, values, h, rest);
    }
    for (int64_t i = 0; i < n && status >= 0; i++) {
        h[i] /= h[i] + rest[i];
        const double v = h[i] * (1 - h[i]);
        worst = fmax(worst, v * sqrt((2 + 8 * v) / (double)R));
    }
    w->v->v.leverage_error = worst;
    w->v->v.reps = R;
    DROP(f->ctx, &rest);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/** h_i <- w_i (g_i + x~' B x~), g in h; a row of leverage 1 by its effects alone has x~ = 0. */
static frg_status add_regressors(const frgi_vcov_work *w, double *h)
{
    const frg_fe *const f = w->f;
    const int64_t n = f->data.frame.n;
    const int k = f->fit.k;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int j = 0; j < k; j++) {
            for (int l = 0; l < k; l++) {
                sum += w->x[j][i] * w->bread[j * k + l] * w->x[l][i];
            }
        }
        const double effects = weight_of(f, i) * h[i], regressors = weight_of(f, i) * sum;
        if (1 - effects - regressors <= ONE && regressors > ONE) {
            frgi_at(f->ctx, "vcov");
            FAIL(f->ctx, E_LEVERAGE,
                 "vcov '%s': without row %lld a coefficient is not identified (leverage 1)",
                 w->v->request.spec,
                 (long long)(f->data.frame.rows ? f->data.frame.rows[i] : i) + 1);
        }
        h[i] = effects + regressors;
    }
    return FRG_OK;
}

static frg_status exact(frgi_vcov_work *w, double *h)
{
    const frg_fe *const f = w->f;
    const bool slopes = f->data.formula.n_slopes > 0;
    frg_demean *plan = NULL;
    double *values = NULL;
    bool done = f->data.frame.n_effects == 0;
    frg_status status = FRG_OK;
    if (f->data.frame.n_effects == 1 && !slopes) {
        TRY(add_levels(f, 0, h));
        done = true;
    } else if (!done && !slopes) {
        TRY(by_reduced(f, h, &done));
    }
    if (!done) {
        TRY_TO(done, NEW(f->ctx, &values, f->data.frame.n * BLOCK, "unit vectors"));
        TRY_TO(done, frgi_fe_plan(f, &plan));
        TRY_TO(done, by_units(w, plan, values, h));
    }
    status = add_regressors(w, h);
done:
    frg_demean_destroy(plan);
    DROP(f->ctx, &values);
    return status;
}

static frg_status approximate(frgi_vcov_work *w, double *h)
{
    const frg_fe *const f = w->f;
    frg_demean *plan = NULL;
    double *values = NULL;
    frg_status status;
    TRY_TO(done, NEW(f->ctx, &values, f->data.frame.n * BLOCK, "random signs"));
    if (f->data.frame.n_effects) {
        TRY_TO(done, frgi_fe_plan(f, &plan));
    }
    status = estimate(w, plan, values, h);
done:
    frg_demean_destroy(plan);
    DROP(f->ctx, &values);
    return status;
}

frg_status frgi_vcov_leverages(frgi_vcov_work *w, double *h)
{
    const frg_fe *const f = w->f;
    const bool frequency = f->policy.options.weights_kind == FRG_WEIGHTS_FREQUENCY;
    const bool approx = w->v->request.choice[VCOV_LEVERAGE] == 1;
    if (!approx && !isnan(w->v->request.choice[VCOV_DRAWS])) {
        frgi_at(f->ctx, "vcov");
        FAIL(f->ctx, E_VCOV, "vcov '%s': draws= goes with leverage=approx", w->v->request.spec);
    }
    memset(h, 0, sizeof *h * (size_t)f->data.frame.n);
    w->v->v.leverage = frgi_vcov_word(&w->v->request, VCOV_LEVERAGE);
    w->v->v.leverage_error = 0;
    TRY(approx ? approximate(w, h) : exact(w, h));
    double most = w->ended > 0 ? (double)NAN : 0;
    for (int64_t i = 0; i < f->data.frame.n; i++) {
        h[i] = w->ended > 0 ? (double)NAN : h[i] / (frequency ? weight_of(f, i) : 1);
        most = fmax(most, h[i]);
    }
    w->v->v.leverage_max = most;
    return FRG_OK;
}

bool frgi_vcov_takes_leverages(const frgi_vcov_request *r, bool *approx)
{
    *approx = r->choice[VCOV_LEVERAGE] == 1;
    return r->kind->meat == frgi_vcov_hc2_meat || r->kind->meat == frgi_vcov_hc3_meat;
}

size_t frgi_vcov_leverage_bytes(const frg_fe *f, bool approx, int64_t *columns, size_t *beside)
{
    const frgi_frame *const frame = &f->data.frame;
    const size_t codes = sizeof *frame->codes * (size_t)frame->n_effects, number = sizeof(double);
    const bool slopes = f->data.formula.n_slopes > 0;
    reduced s = {.f = f};
    number_levels(&s);
    *columns = frame->n_effects > 0 ? BLOCK : 0;
    *beside = 0;
    if (approx) { /* signs and their images, h and what the draws leave */
        return number * (2 * BLOCK + 2);
    }
    if (slopes || (frame->n_effects > 1 && s.m > DENSE)) { /* unit vectors, cells, h */
        return number * (BLOCK + 1) + sizeof *frame->codes + 2 * number;
    }
    *beside = 2 * number * (size_t)(s.m * s.m); /* a system of levels, and its inverse */
    *columns = 0; /* codes, weights and g by level, what is on its way, the order, h */
    return 2 * codes + 4 * number + sizeof(uint32_t) + 1;
}

/* ---- hc2, hc3 -------------------------------------------------------------------------------- */

/** M = sum_i s_i s_i' / (1 - h_i)^power  (MacKinnon and White 1985). */
static frg_status add_leveraged(frgi_vcov_work *w, int power)
{
    const frg_fe *const f = w->f;
    const bool frequency = f->policy.options.weights_kind == FRG_WEIGHTS_FREQUENCY;
    double *h;
    TRY(frgi_vcov_scores(w));
    TRY(NEW(f->ctx, &h, f->data.frame.n, "leverages"));
    frg_status status = frgi_vcov_leverages(w, h);
    for (int64_t i = 0; i < f->data.frame.n && status >= 0; i++) {
        const double left = 1 - h[i], s = w->scores[i];
        const double share = left <= ONE ? 0 : power == 1 ? 1 / left : 1 / (left * left);
        h[i] = s * s * share / (frequency ? weight_of(f, i) : 1);
    }
    status = status < 0 ? status : frgi_vcov_add_gram(w, w->x, h, f->data.frame.n, 1);
    DROP(f->ctx, &h);
    return status;
}

frg_status frgi_vcov_hc2_meat(frgi_vcov_work *w)
{
    return add_leveraged(w, 1);
}

frg_status frgi_vcov_hc3_meat(frgi_vcov_work *w)
{
    return add_leveraged(w, 2);
}
