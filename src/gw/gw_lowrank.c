/* gw_lowrank.c - alignment with a plan of low rank, in factors from end to end.
 *
 *     P = Q diag(1/h) W',     Q (n x r) 1 = a,  W (m x r) 1 = b,  Q' 1 = W' 1 = h
 *
 * Q, W and h are Q, R and g in Scetbon, Cuturi and Peyre (2021, 2022); R counts sampled pairs here.
 *
 * An outer step draws R pairs from the factors (row ~ a, component ~ Q_i. / a_i, column ~ W_.k /
 * h_k) and linearises the energy: L = -(2/R) Dx Dy' with the columns of Dx and Dy centred, plus
 * terms of rows and of columns, which are the same for all plans with these marginals, plus the
 * linear cost.  Then mirror steps, all in logarithms:
 *
 *     grad_Q = L W / h,   grad_W = L' Q / h,   grad_h = -diag(Q' L W) / h^2
 *     xi_Q = (1 - gamma eps) log Q - gamma grad_Q,  the others alike
 *     gamma = min(10 / max|grad|^2, 1 / eps)
 *
 * and (Q, W, h) <- the projection of exp(xi) by Dykstra's algorithm in the sense of Kullback and
 * Leibler.  The marginal sets are affine and need no correction; the set h >= h_min has one.  At
 * gamma eps = 1 xi no longer depends on the last factors; beyond it their weight would be negative.
 *
 * Dykstra's algorithm runs on kernels scaled by their row maxima; where a column of one would be
 * lost to the range of double, the scalings go into the logarithms first.  Memory O((n + m)(r +
 * R)), an outer step O((n + m) r (R + passes)).  The plan handed on is made from the factors, row
 * by row, whenever it is read.
 */
#include "gw/gw_lowrank.h"

#include <math.h>
#include <string.h>

#include "gw/gw_level_device.h"
#include "gw/gw_state.h"
#include "linalg/product.h"

enum { START_STEPS = 10, STEPS_AN_EPSILON = 5, STREAM_FACTORS = 160 };

/** One of the two sides of a projection: exp(log_k) scaled from both sides. */
typedef struct {
    int64_t n;
    const double *weight; /* n */
    double *log_k;        /* n x r */
    double *k;            /* exp(log_k - shift_i) */
    double *shift;        /* n */
    double *u;            /* n: of the rows of k */
    double *v, *sums;     /* r */
} side;

struct frgi_lowrank {
    frgi_level *l;
    frgi_factored *f;
    frgi_lowrank_device *there; /* NULL: the host */
    frg_gw_report *report;
    double *dx, *dy;             /* R x n, R x m: centred, scaled */
    double *middle;              /* R x r: Dy W or Dx Q */
    double *grad_q, *grad_w;     /* n x r, m x r */
    double *grad_h, *h_new, *hc; /* r; hc: correction of h >= h_min */
    side x, y;
    double *best;      /* copy of the factors of the best start */
    double *before;    /* of the last mirror step */
    double most;       /* max |grad| over all three */
    double error;      /* L1, of the rows before the last pass of a projection */
    frgi_arena memory; /* all of these arrays */
};

static double uniform(const frgi_level *l, uint64_t stream, int64_t index)
{
    double u[2];
    frgi_uniforms(l->seed + l->run * UINT64_C(0x9e3779b97f4a7c15), STREAM_FACTORS + stream,
                  (uint64_t)index, (uint64_t)l->step, u);
    return u[0];
}

/* ---- memory ---------------------------------------------------------------------------------- */

static const struct frgi_lowrank_steps *steps_of(const frgi_lowrank *w)
{
    return w->f->steps->lowrank;
}

static void lay_out_factors(frgi_arena *a, frgi_factored *f)
{
    const int64_t r = f->rank;
    f->q = TAKE(a, double, frgi_mul((size_t)f->n, (size_t)r));
    f->w = TAKE(a, double, frgi_mul((size_t)f->m, (size_t)r));
    f->h = TAKE(a, double, r);
    f->left = TAKE(a, float, frgi_mul((size_t)f->n, (size_t)r));
    f->right = TAKE(a, float, frgi_mul((size_t)f->ld, (size_t)r));
}

/** What a factor is rounded with. */
static void lay_out_scaling(frgi_arena *a, side *s, int64_t r)
{
    s->u = TAKE(a, double, s->n);
    s->v = TAKE(a, double, r);
    s->sums = TAKE(a, double, r);
}

static void lay_out_side(frgi_arena *a, side *s, int64_t r)
{
    s->log_k = TAKE(a, double, frgi_mul((size_t)s->n, (size_t)r));
    s->k = TAKE(a, double, frgi_mul((size_t)s->n, (size_t)r));
    s->shift = TAKE(a, double, s->n);
    lay_out_scaling(a, s, r);
}

static void lay_out_work(frgi_arena *a, frgi_lowrank *w)
{
    const int64_t R = w->l->o->anchors, n = w->f->n, m = w->f->m, r = w->f->rank;
    const size_t factors = frgi_mul((size_t)(n + m + 1), (size_t)r);
    if (w->there) {
        lay_out_scaling(a, &w->x, r);
        lay_out_scaling(a, &w->y, r);
        return;
    }
    w->dx = TAKE(a, double, frgi_mul((size_t)R, (size_t)n));
    w->dy = TAKE(a, double, frgi_mul((size_t)R, (size_t)m));
    w->middle = TAKE(a, double, frgi_mul((size_t)R, (size_t)r));
    w->grad_q = TAKE(a, double, frgi_mul((size_t)n, (size_t)r));
    w->grad_w = TAKE(a, double, frgi_mul((size_t)m, (size_t)r));
    w->grad_h = TAKE(a, double, r);
    w->h_new = TAKE(a, double, r);
    w->hc = TAKE(a, double, r);
    w->best = TAKE(a, double, factors);
    w->before = TAKE(a, double, factors);
    lay_out_side(a, &w->x, r);
    lay_out_side(a, &w->y, r);
}

static frg_status open_factors(frgi_lowrank *w)
{
    frg_context *const ctx = w->l->ctx;
    frgi_factored *const f = w->f;
    w->x = (side){.n = f->n, .weight = w->l->a};
    w->y = (side){.n = f->m, .weight = w->l->b};
    lay_out_factors(&f->memory, f);
    TRY(f->steps->open(&f->memory, ctx, "factors of a plan"));
    lay_out_factors(&f->memory, f);
    lay_out_work(&w->memory, w);
    TRY(f->steps->open(&w->memory, ctx, "what factors of a plan are computed with"));
    lay_out_work(&w->memory, w);
    steps_of(w)->clear(w);
    return FRG_OK;
}

static void clear(frgi_lowrank *w)
{
    memset(w->f->memory.base, 0, w->f->memory.bytes);
    memset(w->memory.base, 0, w->memory.bytes);
}

void frgi_factored_close(frgi_factored *f, frg_context *ctx)
{
    if (f->memory.bytes > 0) {
        f->steps->close(&f->memory, ctx);
    }
    *f = (frgi_factored){.n = f->n, .m = f->m, .rank = f->rank};
}

/* ---- projection ------------------------------------------------------------------------------ */

/** k <- exp(log_k - its row maximum). */
static void exponentiate(side *s, int64_t r)
{
    for (int64_t i = 0; i < s->n; i++) {
        double top = -(double)INFINITY;
        for (int64_t c = 0; c < r; c++) {
            top = fmax(top, s->log_k[i * r + c]);
        }
        s->shift[i] = top;
        for (int64_t c = 0; c < r; c++) {
            s->k[i * r + c] = exp(s->log_k[i * r + c] - top);
        }
    }
    for (int64_t c = 0; c < r; c++) {
        s->v[c] = 1;
    }
}

/** Moves the scaling of the columns into log_k, and every column's largest entry to 0. */
static void absorb(side *s, int64_t r)
{
    for (int64_t c = 0; c < r; c++) {
        double top = -(double)INFINITY;
        const double log_v = s->v[c] > 0 ? log(s->v[c]) : 0;
        for (int64_t i = 0; i < s->n; i++) {
            s->log_k[i * r + c] += log_v;
            if (s->weight[i] > 0) {
                top = fmax(top, s->log_k[i * r + c] - s->shift[i]);
            }
        }
        for (int64_t i = 0; i < s->n && top < -300; i++) {
            s->log_k[i * r + c] -= top;
        }
    }
    exponentiate(s, r);
}

/** u <- weight / (k v); returns how far the rows were off before, and leaves k' u in sums. */
static double scale_rows(side *s, int64_t r)
{
    double error = 0;
    memset(s->sums, 0, (size_t)r * sizeof *s->sums);
    for (int64_t i = 0; i < s->n; i++) {
        const double *const k = s->k + i * r;
        double sum = 0;
        for (int64_t c = 0; c < r; c++) {
            sum += k[c] * s->v[c];
        }
        const double u = s->weight[i] > 0 && sum > 0 ? s->weight[i] / sum : 0;
        error += fabs(s->u[i] * sum - s->weight[i]);
        s->u[i] = u;
        for (int64_t c = 0; c < r; c++) {
            s->sums[c] += k[c] * u;
        }
    }
    return error;
}

static bool is_lost(const side *s, int64_t r)
{
    bool lost = false;
    for (int64_t c = 0; c < r; c++) {
        lost = lost || !(s->sums[c] > 1e-250 && s->sums[c] < 1e250) ||
               !(s->v[c] > 1e-100 && s->v[c] < 1e100);
    }
    return lost;
}

static void scaled_out(const side *s, int64_t r, double *out)
{
    for (int64_t i = 0; i < s->n; i++) {
        for (int64_t c = 0; c < r; c++) {
            out[i * r + c] = s->u[i] * s->k[i * r + c] * s->v[c];
        }
    }
}

double frgi_lowrank_least(int64_t rank)
{
    return log(1 / (double)rank < 1e-10 ? 0.5 / (double)rank : 1e-10);
}

/** (Q, W, h) <- projection of exp(x.log_k), exp(y.log_k), exp(h_new); h_new in logarithms. */
static frg_status project(frgi_lowrank *w, int64_t passes)
{
    frgi_factored *const f = w->f;
    const int64_t r = f->rank;
    const double least = frgi_lowrank_least(r);
    side *const sides[2] = {&w->x, &w->y};
    for (int q = 0; q < 2; q++) {
        exponentiate(sides[q], r);
        memset(sides[q]->u, 0, (size_t)sides[q]->n * sizeof(double));
    }
    memset(w->hc, 0, (size_t)r * sizeof *w->hc);
    for (int64_t pass = 0; pass < passes; pass++) {
        double error = 0;
        for (int q = 0; q < 2; q++) {
            error += scale_rows(sides[q], r);
            if (is_lost(sides[q], r)) {
                absorb(sides[q], r);
                error += 1 + scale_rows(sides[q], r);
            }
        }
        if (!(error < (double)INFINITY)) {
            FAIL(w->l->ctx, E_NUMERIC, "the projection of outer step %lld gave %g",
                 (long long)w->l->step + 1, error);
        }
        w->error = error;
        if (error <= 1e-7 && pass > 0) {
            break;
        }
        for (int64_t c = 0; c < r; c++) {
            const double raised = w->h_new[c] + w->hc[c], kept = fmax(least, raised);
            w->hc[c] = raised - kept;
            const double log_x = log(w->x.sums[c] * w->x.v[c]),
                         log_y = log(w->y.sums[c] * w->y.v[c]), mean = (kept + log_x + log_y) / 3;
            w->x.v[c] *= exp(mean - log_x);
            w->y.v[c] *= exp(mean - log_y);
            w->h_new[c] = mean;
        }
    }
    /* rows were scaled last: make the inner marginals meet where both sides allow it */
    for (int64_t c = 0; c < r; c++) {
        f->h[c] = fmax(sqrt(w->x.sums[c] * w->x.v[c] * w->y.sums[c] * w->y.v[c]), exp(least));
    }
    scaled_out(&w->x, r, f->q);
    scaled_out(&w->y, r, f->w);
    return FRG_OK;
}

static void mirror(side *s, const double *factor, const double *grad, int64_t r, double gamma,
                   double keep)
{
    for (int64_t i = 0; i < s->n * r; i++) {
        s->log_k[i] = keep * log(fmax(factor[i], 1e-300)) - gamma * grad[i];
    }
}

/* ---- starts ---------------------------------------------------------------------------------- */

static frg_status project_again(frgi_lowrank *w, int64_t passes)
{
    frgi_not_beside_device(w->l->ctx, "the projection of factors");
    frgi_factored *const f = w->f;
    mirror(&w->x, f->q, w->grad_q, f->rank, 0, 1);
    mirror(&w->y, f->w, w->grad_w, f->rank, 0, 1);
    for (int64_t c = 0; c < f->rank; c++) {
        w->h_new[c] = log(f->h[c]);
    }
    return project(w, passes);
}

/** Whether the first start is the factors of a dense plan: not where a linear cost has a say and no
 *  plan is given. */
static bool begins_dense(const frgi_level *l)
{
    return l->initial.plan || !l->linear;
}

void frgi_lowrank_random(const frgi_level *l, uint64_t run, int second, int64_t count, double *out)
{
    for (int64_t i = 0; i < count; i++) {
        double z[2];
        frgi_normals(l->seed + run * UINT64_C(0x9e3779b97f4a7c15),
                     (uint64_t)(STREAM_FACTORS + 8 + second), (uint64_t)i, 0, z);
        out[i] = log(fabs(z[0]) + 1);
    }
}

static frg_status begin_random(frgi_lowrank *w, uint64_t run)
{
    frgi_not_beside_device(w->l->ctx, "random factors");
    const int64_t r = w->f->rank;
    side *const sides[2] = {&w->x, &w->y};
    for (int q = 0; q < 2; q++) {
        frgi_lowrank_random(w->l, run, q, sides[q]->n * r, sides[q]->log_k);
    }
    for (int64_t c = 0; c < r; c++) {
        w->h_new[c] = -log((double)r);
    }
    return project(w, w->l->o->lr_dykstra_max_iter);
}

static frg_status again(frgi_lowrank *w, int64_t passes)
{
    return w->there ? frgi_lowrank_device_again(w->there, passes, &w->error)
                    : steps_of(w)->again(w, passes);
}

/** Factors of a dense plan, or positive random ones, |N(0, 1)| + 1; projected.  Positive: stopped,
 *  with factors. */
static frg_status start(frgi_lowrank *w, uint64_t run)
{
    frgi_level *const l = w->l;
    l->run = run;
    l->step = 0;
    if (run == 0 && begins_dense(l)) {
        frgi_host_step_open(l->ctx, FRGI_HOST_COARSE);
        const frg_status status = frgi_lowrank_groups(l, w->f, &w->report->coarse_iterations);
        frgi_host_step_close(l->ctx);
        TRY(status);
        TRY(w->there ? frgi_lowrank_device_put(w->there, w->f) : FRG_OK);
        TRY(again(w, l->o->lr_dykstra_max_iter));
        return status;
    }
    return w->there ? frgi_lowrank_device_random(w->there, run) : steps_of(w)->random(w, run);
}

/* ---- anchors --------------------------------------------------------------------------------- */

static int64_t draw(const double *weight, int64_t n, int64_t stride, double at)
{
    double total = 0, below = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < n; i++) {
        total += weight[i * stride];
    }
    for (int64_t i = 0; i < n; i++) {
        below += weight[i * stride];
        last = weight[i * stride] > 0 ? i : last;
        if (below > at * total) {
            return i;
        }
    }
    return last;
}

/** The row in which the p-th of `count` shares of the weights begins, at *i or behind it; *below:
 *  the weights before *i. */
static int64_t next_row(const frgi_level *l, int64_t p, int64_t count, double shift, int64_t *i,
                        double *below)
{
    const double at = ((double)p + shift) / (double)count;
    while (*i < l->x->n - 1 && *below + l->a[*i] <= at) {
        *below += l->a[(*i)++];
    }
    while (*i > 0 && !(l->a[*i] > 0)) {
        --*i;
    }
    return *i;
}

void frgi_lowrank_rows(const frgi_level *l, int64_t count, uint64_t stream, int32_t *rows,
                       double *uniforms)
{
    const double shift = uniform(l, stream, -1);
    double below = 0;
    int64_t i = 0;
    for (int64_t p = 0; p < count; p++) {
        rows[p] = (int32_t)next_row(l, p, count, shift, &i, &below);
        uniforms[p] = uniform(l, stream + 1, p);
        uniforms[count + p] = uniform(l, stream + 2, p);
    }
}

/** count pairs from the factors; rows by a systematic draw. */
static void draw_factored(const frgi_lowrank *w, int64_t count, uint64_t stream, frgi_pair *out)
{
    const frgi_level *const l = w->l;
    const frgi_factored *const f = w->f;
    const double shift = uniform(l, stream, -1);
    double below = 0;
    int64_t at = 0;
    for (int64_t p = 0; p < count; p++) {
        const int64_t i = next_row(l, p, count, shift, &at, &below);
        const int64_t c = draw(f->q + i * f->rank, f->rank, 1, uniform(l, stream + 1, p));
        const int64_t j = draw(f->w + c, f->m, f->rank, uniform(l, stream + 2, p));
        out[p] = (frgi_pair){(int32_t)i, (int32_t)j};
    }
}

static void centre_rows(frgi_lowrank *w, bool second, const float *rows, double scale)
{
    frgi_not_beside_device(w->l->ctx, "centred distances");
    const int64_t n = second ? w->f->m : w->f->n;
    const double *const weight = second ? w->l->b : w->l->a;
    double *const out = second ? w->dy : w->dx;
    for (int64_t p = 0; p < w->l->o->anchors; p++) {
        double mean = 0;
        for (int64_t i = 0; i < n; i++) {
            mean += weight[i] * (double)rows[p * n + i];
        }
        for (int64_t i = 0; i < n; i++) {
            out[p * n + i] = scale * ((double)rows[p * n + i] - mean);
        }
    }
}

static frg_status linearise(frgi_lowrank *w)
{
    frgi_level *const l = w->l;
    const int64_t R = l->o->anchors;
    const double share = -2 * (1 - l->o->linear_weight) / (double)R;
    if (w->there) {
        return frgi_lowrank_device_linearise(w->there);
    }
    steps_of(w)->draw(w, R, 0, l->sampled.now);
    TRY(l->t.steps->pairs->distances(l, R));
    steps_of(w)->centre(w, false, l->product.rows_x, share);
    steps_of(w)->centre(w, true, l->product.rows_y, 1);
    return FRG_OK;
}

/* ---- mirror steps ---------------------------------------------------------------------------- */

/** out (n x r) <- left' (n x R) right (R x m) z (m x r); row-major. */
static void through(const frg_context *ctx, const double *left, int64_t n, const double *right,
                    int64_t m, int64_t R, int64_t r, const double *z, double *middle, double *out)
{
    frgi_product_dense(ctx, 'N', 'N', R, r, m, 1, right, z, 0, middle);
    frgi_product_dense(ctx, 'T', 'N', n, r, R, 1, left, middle, 0, out);
}

/** grad_q += theta M W, grad_w += theta M' Q. */
static void add_linear(frgi_lowrank *w)
{
    const frgi_factored *const f = w->f;
    const double theta = w->l->o->linear_weight;
    const int64_t r = f->rank;
    for (int64_t i = 0; w->l->linear && i < f->n; i++) {
        for (int64_t j = 0; j < f->m; j++) {
            const double cost = theta * (double)w->l->linear[i * f->ld + j];
            for (int64_t c = 0; c < r; c++) {
                w->grad_q[i * r + c] += cost * f->w[j * r + c];
                w->grad_w[j * r + c] += cost * f->q[i * r + c];
            }
        }
    }
}

/** Divides by h; returns the largest. */
static double divide(double *grad, int64_t n, int64_t r, const double *h)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t c = 0; c < r; c++) {
            grad[i * r + c] /= h[c];
            most = fmax(most, fabs(grad[i * r + c]));
        }
    }
    return most;
}

static void copy_factors(frgi_lowrank *w, frgi_copy what)
{
    frgi_factored *const f = w->f;
    const bool back = what == FRGI_RECALL_BEST || what == FRGI_RECALL_BEFORE;
    const bool best = what == FRGI_KEEP_BEST || what == FRGI_RECALL_BEST;
    const size_t q = (size_t)(f->n * f->rank), v = (size_t)(f->m * f->rank);
    double *const parts[3] = {f->q, f->w, f->h};
    const size_t counts[3] = {q, v, (size_t)f->rank};
    double *at = best ? w->best : w->before;
    for (int p = 0; p < 3; p++) {
        memcpy(back ? parts[p] : at, back ? at : parts[p], counts[p] * sizeof *at);
        at += counts[p];
    }
}

/** sum x (log x - 1) */
static double entropy(const double *x, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += x[i] > 0 ? x[i] * (log(x[i]) - 1) : 0;
    }
    return sum;
}

static frg_status derive(frgi_lowrank *w, double *value)
{
    frgi_not_beside_device(w->l->ctx, "derivatives by factors");
    const frgi_level *const l = w->l;
    frgi_factored *const f = w->f;
    const int64_t r = f->rank, R = l->o->anchors;
    through(l->ctx, w->dx, f->n, w->dy, f->m, R, r, f->w, w->middle, w->grad_q);
    through(l->ctx, w->dy, f->m, w->dx, f->n, R, r, f->q, w->middle, w->grad_w);
    add_linear(w);
    double most = 0;
    *value = l->epsilon * (entropy(f->q, f->n * r) + entropy(f->w, f->m * r) + entropy(f->h, r));
    for (int64_t c = 0; c < r; c++) {
        double omega = 0;
        for (int64_t i = 0; i < f->n; i++) {
            omega += f->q[i * r + c] * w->grad_q[i * r + c];
        }
        *value += omega / f->h[c];
        w->grad_h[c] = -omega / (f->h[c] * f->h[c]);
        most = fmax(most, fabs(w->grad_h[c]));
    }
    most = fmax(most, divide(w->grad_q, f->n, r, f->h));
    w->most = fmax(most, divide(w->grad_w, f->m, r, f->h));
    if (!(w->most < (double)INFINITY)) {
        FAIL(l->ctx, E_NUMERIC, "a gradient of outer step %lld is %g", (long long)l->step + 1,
             w->most);
    }
    return FRG_OK;
}

static frg_status mirror_step(frgi_lowrank *w, double pace)
{
    frgi_not_beside_device(w->l->ctx, "a mirror step");
    frgi_factored *const f = w->f;
    const int64_t r = f->rank;
    const double square = fmax(w->most * w->most, 1e-30), eps = w->l->epsilon;
    const double gamma = pace * fmin(10 / square, 1 / eps);
    const double keep = 1 - gamma * eps;
    mirror(&w->x, f->q, w->grad_q, r, gamma, keep);
    mirror(&w->y, f->w, w->grad_w, r, gamma, keep);
    for (int64_t c = 0; c < r; c++) {
        w->h_new[c] = keep * log(f->h[c]) - gamma * w->grad_h[c];
    }
    return project(w, w->l->o->lr_dykstra_max_iter);
}

/** Derivatives; value NULL: not wanted. */
static frg_status gradients(frgi_lowrank *w, double *value)
{
    double unwanted;
    return w->there ? frgi_lowrank_device_derive(w->there, value)
                    : steps_of(w)->derive(w, value ? value : &unwanted);
}

static frg_status step(frgi_lowrank *w, double pace)
{
    return w->there ? frgi_lowrank_device_mirror(w->there, pace) : steps_of(w)->mirror(w, pace);
}

static frg_status copy(frgi_lowrank *w, frgi_copy what)
{
    if (w->there) {
        return frgi_lowrank_device_copy(w->there, what);
    }
    steps_of(w)->copy(w, what);
    return FRG_OK;
}

/** Mirror steps on one linearisation.  Q and W move at once, each by its gradient at the other's
 *  old value, so that the value may rise, and both may oscillate.  With a linear cost, which is the
 *  same in all outer steps, a step that raises the value is undone and gamma divided by 8.  L(P)
 *  changes with the plan, and there such steps are kept: without them E ended 3 % higher at full
 *  rank. */
static frg_status mirror_steps(frgi_lowrank *w)
{
    const bool falls = w->l->o->linear_weight > 0;
    double value = 0, next, pace = 1;
    for (int64_t t = 0; t < w->l->o->lr_max_iter; t++) {
        if (!falls) {
            TRY(gradients(w, NULL));
            TRY(step(w, pace));
            continue;
        }
        if (t == 0) {
            TRY(gradients(w, &value));
        }
        TRY(copy(w, FRGI_KEEP_BEFORE));
        TRY(step(w, pace));
        TRY(gradients(w, &next));
        if (next > value + 1e-4 * fabs(value)) { /* more than a projection is off by */
            TRY(copy(w, FRGI_RECALL_BEFORE));
            TRY(gradients(w, &next));
            pace /= 8;
        }
        value = next;
    }
    return FRG_OK;
}

static frg_status outer_step(frgi_lowrank *w)
{
    frgi_level *const l = w->l;
    double begin = frgi_seconds(), now;
    TRY(linearise(w));
    now = frgi_seconds();
    l->spent.build += now - begin;
    TRY(mirror_steps(w));
    l->spent.passes += l->o->lr_max_iter;
    l->spent.inner += frgi_seconds() - now;
    l->step++;
    return FRG_OK;
}

/* ---- energy ---------------------------------------------------------------------------------- */

/** The objective without entropy (E, with a linear cost (1-theta) E + 2 theta <M, P>) from two
 *  independent sets of pairs that no step has used, and its standard error. */
static frg_status estimate(frgi_lowrank *w, double *energy, double *error)
{
    enum { COUNT = FRGI_CHECK_PAIRS };
    frgi_level *const l = w->l;
    frgi_pair pairs[2 * COUNT];
    const double begin = frgi_seconds();
    if (w->there) {
        frgi_pair_moments of;
        TRY(frgi_lowrank_device_estimate(w->there, &of));
        frgi_join_moments(l, &of, 2 * COUNT, 1, energy, error);
        l->spent.sample += frgi_seconds() - begin;
        return FRG_OK;
    }
    steps_of(w)->draw(w, COUNT, 3, pairs);
    steps_of(w)->draw(w, COUNT, 6, pairs + COUNT);
    TRY(frgi_energy_of_pairs(l, COUNT, 1, 1, NULL, pairs, energy, error));
    frgi_join_linear(l, pairs, 2 * COUNT, 1, energy, error);
    l->spent.sample += frgi_seconds() - begin;
    return FRG_OK;
}

/* ---- the loop -------------------------------------------------------------------------------- */

/** Some steps from every start; goes on from the one of lowest energy.  A random start has to be
 *  below that of a dense plan by twice its standard error, as the lowest of many estimates is
 *  biased downwards. */
static frg_status best_start(frgi_lowrank *w, int64_t count, int64_t *steps)
{
    frgi_level *const l = w->l;
    const int64_t trial = l->o->max_iter < START_STEPS ? l->o->max_iter : START_STEPS;
    frgi_start *const lowest = &l->starts[0]; /* its factors are in w->best */
    l->saved.phase = FRGI_FACTOR_STARTS;
    if (!frgi_state_waits(l, FRGI_FACTOR_STARTS)) {
        frgi_level_forget(l, FRGI_STARTS_KEPT);
    }
    for (int64_t run = frgi_state_turn(l, FRGI_FACTOR_STARTS); run < count; run++) {
        double energy, error;
        int64_t t = 0;
        const frg_status begun = start(w, (uint64_t)run);
        if (begun != FRG_OK) {
            return begun;
        }
        l->saved.turn = run;
        TRY(frgi_state_enter(l, trial, &t));
        for (; t < trial; t++) {
            TRY(frgi_state_point(l, t));
            TRY(outer_step(w));
            ++*steps;
            TRY(frgi_trace_add(l));
            const frg_status status = frgi_level_beat(l, "starts", run * trial + t + 1,
                                                      count * trial, l->stopping.ema, (double)NAN);
            if (status != FRG_OK) {
                return status;
            }
        }
        TRY(estimate(w, &energy, &error));
        frgi_trace_cost(l, energy, error);
        const bool guarded = run > 0 && lowest->run == 0 && begins_dense(l);
        if (energy + (guarded ? 2 * error : 0) < lowest->energy) {
            lowest->energy = energy;
            lowest->run = (uint64_t)run;
            TRY(copy(w, FRGI_KEEP_BEST));
        }
    }
    TRY(copy(w, FRGI_RECALL_BEST));
    l->run = lowest->run;
    l->step = trial;
    return FRG_OK;
}

static frg_status loop(frgi_lowrank *w, frg_gw_report *report)
{
    frgi_level *const l = w->l;
    const frg_gw_opts *const o = l->o;
    frg_gw_reason *const reason = &report->reason;
    int64_t *const steps = &report->outer_iterations;
    const int64_t starts = l->initial.plan ? 1 : frgi_starts(o, START_STEPS),
                  most = o->max_iter - (starts - 1) * START_STEPS;
    const double end = o->anneal == FRG_GW_ANNEAL_NONE ? l->epsilon : frgi_epsilon_end(o);
    *reason = FRG_GW_MAX_ITER;
    report->starts = starts;
    const bool skips = frgi_state_waits(l, FRGI_FACTORS);
    int64_t t = START_STEPS;
    frg_status status = skips ? FRG_OK : best_start(w, starts, steps);
    l->saved.phase = FRGI_FACTORS;
    l->saved.turn = 0;
    if (skips) {
        TRY(frgi_state_enter(l, most, &t));
    }
    for (; status == FRG_OK && t < most; t++) {
        TRY(frgi_state_point(l, t));
        if (t % STEPS_AN_EPSILON == 0) {
            l->epsilon = fmax(end, l->epsilon * pow(10, -0.125));
        }
        TRY(outer_step(w));
        ++*steps;
        TRY(frgi_trace_add(l));
        status = frgi_level_beat(l, "factors", t + 1, most, l->stopping.ema, (double)NAN);
        if (status == FRG_OK && l->epsilon <= end && t + 1 >= o->min_iter &&
            (t + 1) % FRGI_CHECK_EVERY == 0 && o->min_iter < o->max_iter) {
            double cost, error;
            TRY(estimate(w, &cost, &error));
            frgi_trace_cost(l, cost, error);
            if (!frgi_level_falls(l, cost, error) &&
                l->stopping.bad >= frgi_patience(o->min_iter)) {
                *reason = FRG_GW_CONVERGED_PLATEAU;
                return FRG_OK;
            }
        }
    }
    if (status > 0) {
        *reason = FRG_GW_CANCELLED;
    }
    return status;
}

/* ---- the plan -------------------------------------------------------------------------------- */

/** Exponents log2(P_ij / a_i) and the potentials that the sweep wants inside. */
static void fill(const frgi_sweep *s, int64_t i0, int64_t groups, void *rows)
{
    const frgi_factored *const f = s->x.source;
    float *const out = rows;
    for (int64_t q = 0; q < groups * FRGI_GROUP; q++) {
        float *const row = out + q * f->ld;
        const int64_t i = i0 + q;
        memset(row, 0, (size_t)f->ld * sizeof *row);
        for (int64_t c = 0; i < f->n && c < f->rank; c++) {
            const float left = f->left[i * f->rank + c];
            const float *const right = f->right + c * f->ld;
            for (int64_t j = 0; j < f->ld; j++) {
                row[j] += left * right[j];
            }
        }
        for (int64_t j = 0; j < f->ld; j++) {
            row[j] = log2f(fmaxf(row[j], 0x1p-120f)) + s->base.h[i] + s->base.g[j];
        }
    }
}

/** A factor (n x r) to rows that sum to a and columns that sum to h, sum a = sum h (Altschuler,
 *  Weed and Rigollet 2017): too heavy ones are scaled down, rows first, and what is missing is
 *  given in proportion to both. */
static void round_factor(side *s, const double *h, int64_t r, double *q)
{
    double *const row_lacks = s->u, *const column_lacks = s->sums, missing = 0;
    memset(column_lacks, 0, (size_t)r * sizeof *column_lacks);
    for (int64_t i = 0; i < s->n; i++) {
        double sum = 0;
        for (int64_t c = 0; c < r; c++) {
            sum += q[i * r + c];
        }
        const double scale = sum > s->weight[i] ? s->weight[i] / sum : 1;
        for (int64_t c = 0; c < r; c++) {
            q[i * r + c] *= scale;
            column_lacks[c] += q[i * r + c];
        }
    }
    for (int64_t c = 0; c < r; c++) {
        s->v[c] = column_lacks[c] > h[c] ? h[c] / column_lacks[c] : 1;
        column_lacks[c] = fmax(h[c] - column_lacks[c], 0);
        missing += column_lacks[c];
    }
    for (int64_t i = 0; i < s->n; i++) {
        double sum = 0;
        for (int64_t c = 0; c < r; c++) {
            q[i * r + c] *= s->v[c];
            sum += q[i * r + c];
        }
        row_lacks[i] = fmax(s->weight[i] - sum, 0);
        for (int64_t c = 0; c < r && missing > 0; c++) {
            q[i * r + c] += row_lacks[i] * column_lacks[c] / missing;
        }
    }
}

static void round_factors(frgi_lowrank *w)
{
    frgi_factored *const f = w->f;
    const double scale = frgi_transport_sum(w->x.weight, f->n) / frgi_transport_sum(f->h, f->rank);
    for (int64_t c = 0; c < f->rank; c++) {
        f->h[c] *= scale;
    }
    round_factor(&w->x, f->h, f->rank, f->q);
    round_factor(&w->y, f->h, f->rank, f->w);
}

static void pack_factors(frgi_factored *f, const double *a)
{
    for (int64_t i = 0; i < f->n; i++) {
        for (int64_t c = 0; c < f->rank; c++) {
            f->left[i * f->rank + c] =
                a[i] > 0 ? (float)(f->q[i * f->rank + c] / f->h[c] / a[i]) : 0;
        }
    }
    for (int64_t j = 0; j < f->m; j++) {
        for (int64_t c = 0; c < f->rank; c++) {
            f->right[c * f->ld + j] = (float)f->w[j * f->rank + c];
        }
    }
}

const struct frgi_lowrank_steps frgi_lowrank_host_steps = {.clear = clear,
                                                           .random = begin_random,
                                                           .again = project_again,
                                                           .draw = draw_factored,
                                                           .centre = centre_rows,
                                                           .derive = derive,
                                                           .mirror = mirror_step,
                                                           .copy = copy_factors,
                                                           .round = round_factors,
                                                           .pack = pack_factors};

/** Projects the last factors until their marginals hold to 1e-7, PASSES at most; then they are
 *  rounded (a warning says how far they are off then).  Convergence is slow where entries of
 *  factors are nearly 0. */
static frg_status final_passes(frgi_lowrank *w)
{
    enum { PASSES = 5000 };
    TRY(again(w, PASSES));
    TRY(w->there ? frgi_lowrank_device_fetch(w->there, w->f) : FRG_OK);
    if (w->error > w->l->o->polish_tol && w->l->o->round) {
        frgi_warn(w->l->ctx, W_MARGINALS,
                  "after %d passes the rows of the factors were off by %.1e (L1)", PASSES,
                  w->error);
    }
    if (w->l->o->round) {
        steps_of(w)->round(w);
    }
    return FRG_OK;
}

void frgi_lowrank_give_plan(frgi_level *l, frgi_factored *f)
{
    frgi_sweep *const s = &l->t.s;
    f->steps->lowrank->pack(f, l->a);
    memset(l->product.row, 0, (size_t)f->ld * sizeof *l->product.row);
    frgi_transport_copy(&l->t, s->F, s->to.log_a, (size_t)f->n * sizeof *s->F);
    frgi_transport_copy(&l->t, s->G, l->product.row, (size_t)f->ld * sizeof *s->G);
    frgi_transport_renew(&l->t, l->epsilon, fill, f);
    frgi_transport_pass(&l->t);
}

int64_t frgi_lowrank_rank(const frgi_level *l)
{
    const int64_t least = l->x->n < l->y->n ? l->x->n : l->y->n;
    return l->o->rank < least ? l->o->rank : least;
}

/** The factors, and those of the lowest start, belong to a saved state. */
static void keep_in_states(const frgi_lowrank *w)
{
    const frgi_factored *const f = w->f;
    frgi_array *const own = w->l->saved.own;
    const size_t each = (size_t)f->rank * sizeof *f->q;
    own[0] = (frgi_array){.name = "q", .bytes = (size_t)f->n * each};
    own[1] = (frgi_array){.name = "w", .bytes = (size_t)f->m * each};
    own[2] = (frgi_array){.name = "h", .bytes = each};
    own[3] = (frgi_array){.name = "lowest", .bytes = (size_t)(f->n + f->m + 1) * each};
    w->l->saved.n_own = 4;
    if (w->there) {
        frgi_lowrank_device_arrays(w->there, own);
        return;
    }
    own[0].live = f->q;
    own[1].live = f->w;
    own[2].live = f->h;
    own[3].live = w->best;
}

frg_status frgi_lowrank_loop(frgi_level *l, frgi_factored *f, frgi_lowrank_device *there,
                             frg_gw_report *report)
{
    frgi_lowrank w = {.l = l, .f = f, .there = there, .report = report};
    frgi_factored_close(f, l->ctx);
    f->steps = l->t.steps;
    f->n = l->x->n;
    f->m = l->y->n;
    f->ld = l->t.s.ld;
    f->rank = frgi_lowrank_rank(l);
    l->epsilon = frgi_epsilon_start(l->o);
    l->stopping.best = (double)INFINITY;
    l->stopping.ema = (double)NAN;
    l->stopping.bad = 0;
    frg_status status = open_factors(&w);
    keep_in_states(&w);
    if (status >= 0) {
        status = loop(&w, report);
    }
    if (status >= 0) { /* stopped or not: the factors there are */
        const frg_status settled = final_passes(&w);
        status = settled < 0 ? settled : status;
    }
    l->saved.n_own = 0;
    if (w.memory.bytes > 0) {
        f->steps->close(&w.memory, l->ctx);
    }
    return status;
}
