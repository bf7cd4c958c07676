/* reg_leave_exact.c - g, q and h of every match (reg_leave_out.h) by a direct factor.
 *
 *     C = L^-1 with one firm grounded, column after column; each shifted to sum_j F_j C_jc = 0
 *     p = C (column of j(m)) - sum_l T_l C (column of j(l)) / W_k        J + J (matches) steps
 *
 * A worker with one match has p = 0.  Workers go to the threads; what a match adds is added up in
 * their order.
 */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "regress/reg_leave_out.h"
#include "sparse/direct.h"

enum { BLOCK = 8 };
/** Pairs of matches of a level that the graph is assembled from, at most; and where the effects
 *  stand in the wrong order. */
static const double PAIRS = 4e9, TURNED = 2e7;
static const double ONE = 1e-10; /* 1 - P: without the unit its effects are not known */

/* ---- the graph of firms ---------------------------------------------------------------------- */

/** Entries of a row, one at a time: `to` are the firms that share a worker with j. */
typedef struct {
    const frgi_leave_panel *p;
    int64_t *place; /* n_second: where firm l stands in the row; below `begin`: not there */
} row_maker;

/** Row j from entry `begin` on, its diagonal first; columns NULL: it is counted alone.  Returns its
 *  end. */
static int64_t make_row(const row_maker *r, int64_t j, int64_t begin, int64_t size,
                        int32_t *columns, double *values)
{
    const frgi_matches *const m = &r->p->matches;
    int64_t end = begin + 1;
    double sum = 0;
    for (int64_t b = m->back_start[j]; b < m->back_start[j + 1]; b++) {
        const int64_t e = m->back[b], k = m->first[e];
        for (int64_t d = m->start[k]; d < m->start[k + 1]; d++) {
            const int32_t l = m->second[d];
            const double weight = r->p->weight[e] * r->p->weight[d] / r->p->worker[k];
            sum += l == j ? 0 : weight;
            if (l == j || l >= size) {
                continue;
            }
            if (r->place[l] < begin) {
                r->place[l] = end++;
                if (columns) {
                    columns[r->place[l]] = l;
                    values[r->place[l]] = 0;
                }
            }
            if (columns) {
                values[r->place[l]] -= weight;
            }
        }
    }
    if (columns) {
        columns[begin] = (int32_t)j;
        values[begin] = sum;
    }
    return end;
}

static frg_status check_pairs(const frgi_leave_panel *p)
{
    const frgi_matches *const m = &p->matches;
    double pairs = 0;
    for (int64_t k = 0; k < m->n_first; k++) {
        const double d = (double)(m->start[k + 1] - m->start[k]);
        pairs += d * d;
    }
    if (pairs > (m->n_first < m->n_second ? TURNED : PAIRS)) {
        FAIL(
            p->ctx, E_TOO_BIG,
            "the levels of the first effect have %.3g pairs of matches; write the effect with more "
            "levels first",
            pairs);
    }
    return FRG_OK;
}

frg_status frgi_firm_graph_create(frgi_firm_graph *g, const frgi_leave_panel *p, bool grounded)
{
    frg_context *const ctx = p->ctx;
    const int64_t size = p->matches.n_second - grounded;
    row_maker r = {.p = p};
    frg_status status;
    *g = (frgi_firm_graph){0};
    TRY(check_pairs(p));
    TRY_TO(done, NEW(ctx, &g->starts, size + 1, "a graph of levels"));
    TRY_TO(done, NEW(ctx, &r.place, p->matches.n_second, "a graph of levels"));
    for (int pass = 0; pass < 2; pass++) {
        memset(r.place, 0xff, sizeof *r.place * (size_t)p->matches.n_second);
        g->starts[0] = 0;
        for (int64_t j = 0; j < size; j++) {
            g->starts[j + 1] = make_row(&r, j, g->starts[j], size, g->columns, g->values);
        }
        if (pass == 0) {
            TRY_TO(done, NEW(ctx, &g->columns, g->starts[size], "a graph of levels"));
            TRY_TO(done, NEW(ctx, &g->values, g->starts[size], "a graph of levels"));
        }
    }
    g->view = (frgi_symmetric){size, g->starts, g->columns, g->values, 0};
done:
    DROP(ctx, &r.place);
    if (status < 0) {
        frgi_firm_graph_destroy(g, ctx);
    }
    return status;
}

void frgi_firm_graph_destroy(frgi_firm_graph *g, frg_context *ctx)
{
    DROP(ctx, &g->starts);
    DROP(ctx, &g->columns);
    DROP(ctx, &g->values);
}

/* ---- the inverse ----------------------------------------------------------------------------- */

typedef struct {
    const frgi_leave_panel *p;
    int64_t n;       /* firms */
    double *inverse; /* n x n: row c is column c of C */
} inverse;

/** Columns begin .. end-1 of C, `size` of them solved for; work: size x BLOCK, scratch behind. */
static void solve_block(const inverse *v, const frgi_direct *d, int64_t size, int64_t begin,
                        int64_t end, double *work)
{
    const int64_t count = end - begin;
    memset(work, 0, sizeof *work * (size_t)(size * count));
    for (int64_t c = 0; c < count; c++) {
        work[(begin + c) * count + c] = 1;
    }
    frgi_direct_solve(d, count, work, work + size * BLOCK);
    for (int64_t c = 0; c < count; c++) {
        double *const row = v->inverse + (begin + c) * v->n;
        double mean = 0;
        for (int64_t j = 0; j < size; j++) {
            row[j] = work[j * count + c];
            mean += v->p->firm[j] * row[j];
        }
        row[size] = 0;
        mean /= v->p->total;
        for (int64_t j = 0; j < v->n; j++) {
            row[j] -= mean;
        }
    }
}

static frg_status solve_all(const inverse *v, const frgi_direct *d, int64_t size)
{
    frg_context *const ctx = v->p->ctx;
    const int64_t blocks = (size + BLOCK - 1) / BLOCK;
    const int most = frg_threads(ctx), threads = blocks < most ? (int)blocks : most;
    const size_t each = frgi_add(frgi_mul((size_t)size, BLOCK), frgi_direct_scratch(d, BLOCK));
    double *work;
    TRY(NEW(ctx, &work, frgi_mul(each, (size_t)threads), "columns of an inverse"));
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t begin = b * BLOCK, end = begin + BLOCK < size ? begin + BLOCK : size;
        if (frgi_stopped(ctx) == FRG_OK) {
            solve_block(v, d, size, begin, end, work + each * (size_t)omp_get_thread_num());
        }
    }
    memset(v->inverse + size * v->n, 0, sizeof *v->inverse * (size_t)v->n);
    DROP(ctx, &work);
    return frgi_stopped(ctx);
}

static frg_status invert(inverse *v)
{
    frg_context *const ctx = v->p->ctx;
    const int64_t size = v->n - 1;
    frgi_firm_graph g = {0};
    frgi_direct *d = NULL;
    frgi_direct_opts o;
    frg_status status;
    frgi_direct_defaults(&o);
    o.null_pivot = 0;
    o.solver = "fe";
    TRY_TO(done, frgi_firm_graph_create(&g, v->p, true));
    TRY_TO(done, frgi_direct_analyse(&d, ctx, &g.view, NULL, 0, &o));
    TRY_TO(done, frgi_direct_factor(d, &g.view));
    if (status == FRG_OK) {
        TRY_TO(done, solve_all(v, d, size));
    }
done:
    frgi_direct_destroy(d);
    frgi_firm_graph_destroy(&g, ctx);
    return status;
}

/* ---- matches --------------------------------------------------------------------------------- */

/** Of a match. */
typedef struct {
    double g, q, h;
} numbers;

/** Of the matches of worker k; mean: n_second doubles of work. */
static void of_worker(const inverse *v, int64_t k, double *mean, numbers *out)
{
    const frgi_leave_panel *const p = v->p;
    const frgi_matches *const m = &p->matches;
    const int64_t n = v->n;
    const double own = 1 / p->worker[k];
    if (m->start[k + 1] - m->start[k] == 1) {
        out[m->start[k]] = (numbers){.g = own};
        return;
    }
    memset(mean, 0, sizeof *mean * (size_t)n);
    for (int64_t e = m->start[k]; e < m->start[k + 1]; e++) {
        const double *const column = v->inverse + m->second[e] * n;
        const double share = p->weight[e] * own;
        for (int64_t j = 0; j < n; j++) {
            mean[j] += share * column[j];
        }
    }
    for (int64_t e = m->start[k]; e < m->start[k + 1]; e++) {
        const int32_t at = m->second[e];
        const double *const column = v->inverse + at * n;
        numbers *const to = &out[e];
        *to = (numbers){.g = own, .h = column[at] - mean[at]};
        for (int64_t j = 0; j < n; j++) {
            const double x = column[j] - mean[j];
            to->q += p->firm[j] * x * x;
        }
        for (int64_t d = m->start[k]; d < m->start[k + 1]; d++) {
            const double u = (d == e) - p->weight[d] * own;
            to->g += u * (column[m->second[d]] - mean[m->second[d]]);
        }
    }
}

static frg_status of_all(const inverse *v, numbers *out)
{
    frg_context *const ctx = v->p->ctx;
    const int threads = frg_threads(ctx);
    double *work;
    TRY(NEW(ctx, &work, frgi_mul((size_t)v->n, (size_t)threads), "leverages"));
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads)
    for (int64_t k = 0; k < v->p->matches.n_first; k++) {
        if (frgi_stopped(ctx) == FRG_OK) {
            of_worker(v, k, work + v->n * omp_get_thread_num(), out);
        }
    }
    DROP(ctx, &work);
    return frgi_stopped(ctx);
}

/** What the units of match e add; *most: the largest leverage so far. */
static frg_status add_match(const frgi_leave_panel *p, int64_t e, double g, frgi_leave_match *out,
                            double *most)
{
    *out = (frgi_leave_match){0};
    for (int64_t i = p->start[e]; i < p->start[e + 1]; i++) {
        const double w = p->unit[i], leverage = w * g, left = 1 - leverage;
        if (!(left > ONE)) {
            FAIL(p->ctx, E_LEAVE_OUT,
                 "1 - leverage of a unit of match %lld is %.3g: its weight is nearly all that its "
                 "levels have",
                 (long long)e + 1, left);
        }
        *most = fmax(*most, leverage);
        p->inverse[i] = 1 / left;
        out->kept += w * w * frgi_leave_score(p, i) / left;
        out->rest += w * frgi_leave_score(p, i) * leverage / left;
    }
    return FRG_OK;
}

static frg_status add_all(const frgi_leave_panel *p, const numbers *of, frgi_leave_sums *out)
{
    double kept = 0, rest = 0, kept_q = 0, kept_h = 0;
    for (int64_t e = 0; e < p->matches.count; e++) {
        frgi_leave_match one;
        TRY(add_match(p, e, of[e].g, &one, &out->leverage_max));
        kept += one.kept;
        rest += one.rest;
        kept_q += one.kept * of[e].q;
        kept_h += one.kept * of[e].h;
        out->trace += p->weight[e] * of[e].q;
        p->q[e] = of[e].q;
        p->h[e] = of[e].h;
    }
    frgi_leave_combine(p, kept, rest, kept_q, kept_h, out);
    return FRG_OK;
}

/** frgi_leave_solve by the inverse. */
static frg_status apply_inverse(void *of, int64_t columns, double *x, frgi_leave_sums *out)
{
    const inverse *const v = of;
    double *y;
    (void)out;
    TRY(NEW(v->p->ctx, &y, frgi_mul((size_t)v->n, (size_t)columns), "leverages"));
#pragma omp parallel for schedule(static) num_threads(frg_threads(v->p->ctx))
    for (int64_t j = 0; j < v->n; j++) {
        double *const to = y + j * columns;
        memset(to, 0, sizeof *to * (size_t)columns);
        for (int64_t l = 0; l < v->n; l++) {
            const double entry = v->inverse[l * v->n + j];
            for (int64_t c = 0; c < columns; c++) {
                to[c] += entry * x[l * columns + c];
            }
        }
    }
    memcpy(x, y, sizeof *x * (size_t)(v->n * columns));
    DROP(v->p->ctx, &y);
    return FRG_OK;
}

frg_status frgi_leave_exact(const frgi_leave_panel *p, frgi_leave_sums *out)
{
    frg_context *const ctx = p->ctx;
    inverse v = {.p = p, .n = p->matches.n_second};
    numbers *of = NULL;
    frg_status status;
    *out = (frgi_leave_sums){0};
    TRY_TO(done, NEW(ctx, &v.inverse, frgi_mul((size_t)v.n, (size_t)v.n), "leverages"));
    TRY_TO(done, NEW(ctx, &of, p->matches.count, "leverages"));
    TRY_TO(done, invert(&v));
    if (status == FRG_OK) {
        TRY_TO(done, of_all(&v, of));
    }
    if (status == FRG_OK) {
        TRY_TO(done, add_all(p, of, out));
        TRY_TO(done, frgi_leave_errors(p, apply_inverse, &v, out));
    }
done:
    DROP(ctx, &v.inverse);
    DROP(ctx, &of);
    return status;
}
