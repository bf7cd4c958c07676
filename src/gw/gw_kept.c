/* gw_kept.c - what an alignment may keep of its plan between two steps: all of it, or its
 * marginals.
 *
 * Plan (store_plan).  P <- (1 - alpha) P + alpha Pnew in n m floats.  The sampled pairs come from
 * it instead of from lagged plans (gw_anchors.c), and the change of a step is ||P - P_before|| =
 * alpha ||Pnew - P_before|| (Frobenius), as in the exact mode.
 *
 * Marginals (diag_exact).  The terms sum_k C_ik^2 r_k and sum_l D_jl^2 c_l of L(P) from the
 * averaged marginals r and c of the plan instead of the sampled pairs: exact, at O(n^2 + m^2) a
 * step.  Balanced plans do not depend on them, and have a and b for r and c; relaxed and partial
 * ones have what the passes left.
 */
#include <math.h>
#include <string.h>

#include "gw/gw_level_device.h"

enum { KEPT_CHUNKS = 64 };

bool frgi_keeps_plan(const frgi_level *l)
{
    return l->o->store_plan != 0;
}

bool frgi_keeps_sums(const frgi_level *l)
{
    return l->o->diag_exact && !frgi_is_balanced(l->o);
}

static void lay_out(frgi_arena *a, frgi_level *l)
{
    const int64_t n = l->x->n, m = l->y->n;
    if (frgi_keeps_plan(l)) {
        l->kept.plan = TAKE(a, float, frgi_mul((size_t)n, (size_t)m));
        l->kept.rows = TAKE(a, double, 2 * n);
    }
    if (frgi_keeps_sums(l)) {
        l->kept.sums = TAKE(a, double, n + m);
    }
}

static void keep_in_states(frgi_level *l, frgi_array what)
{
    l->saved.own[l->saved.n_own++] = what;
}

frg_status frgi_kept_open(frgi_level *l)
{
    const int64_t n = l->x->n, m = l->y->n;
    frgi_kept *const k = &l->kept;
    if (l->t.storage.there) {
        return FRG_OK;
    }
    lay_out(&k->memory, l);
    if (k->memory.used == 0) {
        return FRG_OK;
    }
    TRY(l->t.steps->open(&k->memory, l->ctx, "the averaged plan"));
    lay_out(&k->memory, l);
    l->t.steps->kept->clear(l);
    if (k->plan) {
        keep_in_states(l, (frgi_array){.name = "plan",
                                       .live = k->plan,
                                       .bytes = (size_t)(n * m) * sizeof *k->plan});
    }
    if (k->sums) {
        keep_in_states(l, (frgi_array){.name = "sums",
                                       .live = k->sums,
                                       .bytes = (size_t)(n + m) * sizeof *k->sums});
        TRY(NEW(l->ctx, &k->squares, n + m, "marginals of the plan"));
    }
    return FRG_OK;
}

void frgi_kept_close(frgi_level *l)
{
    if (l->kept.memory.bytes > 0) {
        l->t.steps->close(&l->kept.memory, l->ctx);
    }
    DROP(l->ctx, &l->kept.squares);
}

static void clear(frgi_level *l)
{
    memset(l->kept.memory.base, 0, l->kept.memory.bytes);
}

static void reset(frgi_level *l, bool known)
{
    const int64_t n = l->x->n, m = l->y->n;
    for (int64_t i = 0; l->kept.plan && i < n; i++) {
        float *const row = l->kept.plan + i * m;
        for (int64_t j = 0; j < m; j++) {
            row[j] = !known            ? 0
                     : l->initial.plan ? l->initial.plan[i * m + j]
                                       : (float)(l->a[i] * l->b[j]);
        }
    }
    if (l->kept.sums) {
        memcpy(l->kept.sums, l->a, (size_t)n * sizeof *l->a);
        memcpy(l->kept.sums + n, l->b, (size_t)m * sizeof *l->b);
    }
}

/* ---- the plan -------------------------------------------------------------------------------- */

typedef struct {
    frgi_level *l;
    double alpha;
} fold;

static void fold_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    const fold *const f = user;
    const int64_t n = f->l->x->n, m = f->l->y->n;
    float *const to = f->l->kept.plan + i * m;
    double square = 0, sum = 0;
    (void)chunk;
    for (int64_t j = 0; j < m; j++) {
        const double gap = f->alpha * (row[j] - (double)to[j]);
        square += gap * gap;
        to[j] = (float)((double)to[j] + gap);
        sum += (double)to[j];
    }
    f->l->kept.rows[i] = sum;
    f->l->kept.rows[n + i] = square;
}

/** Of a plan that nothing is known of the new one is taken whole. */
static void fold_plan(frgi_level *l)
{
    frgi_not_beside_device(l->ctx, "the average of plans that are kept");
    const int64_t n = l->x->n, count = n * l->y->n;
    bool known = false;
    for (int64_t at = 0; at < count && !known; at++) {
        known = l->kept.plan[at] > 0;
    }
    fold f = {l, known ? l->o->damping : 1};
    frgi_transport_rows(&l->t, 0, n, KEPT_CHUNKS, fold_row, &f);
    double square = 0;
    for (int64_t i = 0; i < n; i++) {
        square += l->kept.rows[n + i];
    }
    l->stopping.change = known ? sqrt(square) : (double)INFINITY;
}

static void rows(const frgi_level *l, const int64_t *first, frgi_row_visitor visit, void *user)
{
    frgi_not_beside_device(l->ctx, "rows of the averaged plan");
    const int64_t n = l->x->n, m = l->y->n;
    double *const row = l->product.row; /* rows + ld */
    for (int64_t i = 0; i < n; i++) {
        if (first[i] < first[i + 1]) {
            for (int64_t j = 0; j < m; j++) {
                row[j] = (double)l->kept.plan[i * m + j];
            }
            visit(user, i, row, 0);
        }
    }
}

/* ---- marginals ------------------------------------------------------------------------------- */

static void fold_sums(frgi_level *l)
{
    frgi_not_beside_device(l->ctx, "the average of marginals");
    const int64_t n = l->t.s.n, m = l->t.s.m;
    double *const now = l->product.row, *const kept = l->kept.sums; /* n + m */
    frgi_transport_marginals(&l->t, now, now + n);
    for (int64_t i = 0; i < n + m; i++) {
        kept[i] += l->o->damping * (now[i] - kept[i]);
    }
}

const struct frgi_kept_steps frgi_kept_host_steps = {
    .clear = clear, .reset = reset, .fold_plan = fold_plan, .fold_sums = fold_sums, .rows = rows};

/* ---- between the steps ----------------------------------------------------------------------- */

frg_status frgi_kept_reset(frgi_level *l, bool known)
{
    if (l->device) {
        return frgi_level_device_keep_reset(l, known);
    }
    if (l->kept.memory.bytes > 0) {
        l->t.steps->kept->reset(l, known);
    }
    return FRG_OK;
}

frg_status frgi_kept_fold(frgi_level *l)
{
    if (l->device) {
        return frgi_level_device_keep_fold(l);
    }
    if (l->kept.plan) {
        l->t.steps->kept->fold_plan(l);
    }
    if (l->kept.sums) {
        l->t.steps->kept->fold_sums(l);
    }
    return FRG_OK;
}

void frgi_kept_rows(const frgi_level *l, const int64_t *first, frgi_row_visitor visit, void *user)
{
    l->t.steps->kept->rows(l, first, visit, user);
}

frg_status frgi_kept_terms(frgi_level *l, double scale)
{
    const frgi_sweep *const s = &l->t.s;
    frgi_distances *const sides[] = {l->x, l->y};
    const double *terms[2] = {NULL};
    double *const sums = l->product.row; /* n + m */
    frgi_transport_copy(&l->t, sums, l->kept.sums, (size_t)(s->n + s->m) * sizeof *sums);
    for (int side = 0; side < 2; side++) {
        const int64_t n = sides[side]->n, from = side ? s->n : 0;
        const double *const weights = sums + from;
        double *const squares = l->kept.squares + from, total = 0;
        TRY(frgi_distances_squares(sides[side], weights, squares));
        for (int64_t i = 0; i < n; i++) {
            total += weights[i];
        }
        for (int64_t i = 0; i < n && total > 0; i++) {
            squares[i] = scale * squares[i] / total;
        }
        terms[side] = total > 0 ? squares : NULL;
    }
    l->t.steps->pairs->put_terms(l, terms[0], terms[1]);
    return FRG_OK;
}
