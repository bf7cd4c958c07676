/* plain_steps.h - the steps of fe_steps.h a second time, each as its definition says and in one
 * thread: no chunks, no pairs, no vectors of a CPU level, no bordered system, no float32 product.
 * The solver runs on them as on the host's.
 *
 * Letters are those of fe_rows.h: u eliminated levels, l reduced unknowns, K columns
 * side by side.  Two steps are the host's own, as a factor is opaque: solve and precondition.
 *
 * Conjugate gradients are the textbook's (Saad 2003, algorithm 9.1), with the stopping test of
 * fe_cg.h: no forecasts, no last step without a product.
 *
 * The steps of the row-space path are those of plain_rows.h.
 *
 * plain.calls[PLAIN_...] counts what was asked for.
 */
#ifndef FOURGE_TEST_PLAIN_STEPS_H
#define FOURGE_TEST_PLAIN_STEPS_H

#include "fe/fe_steps.h"
#include "plain_rows.h"
#include "sparse/ritz.h"
#include "test.h"

typedef enum {
    PLAIN_RHS,
    PLAIN_RESIDUAL,
    PLAIN_APPLY,
    PLAIN_BORDERED,
    PLAIN_MULTIPLY,
    PLAIN_SOLVE,
    PLAIN_PRECONDITION,
    PLAIN_PROJECT,
    PLAIN_SCATTER,
    PLAIN_CG,
    PLAIN_STEPS
} plain_step;

static struct {
    int64_t calls[PLAIN_STEPS];
} plain;

/* ---- rows ------------------------------------------------------------------------------------ */

/** Where row i of column k lies. */
static void *plain_place(const fe_rows *g, const fe_block *x, int f32, int64_t i, int k)
{
    const int64_t row = g->order ? (int64_t)g->order[i] : i;
    return x->base + (row * x->row + k * x->column) * (f32 ? 4 : 8);
}

static double plain_value(const fe_rows *g, const fe_block *x, int f32, int64_t i, int k)
{
    const void *const at = plain_place(g, x, f32, i, k);
    return f32 ? (double)*(const float *)at : *(const double *)at;
}

static double plain_weight(const fe_rows *g, int64_t i)
{
    return g->weight ? g->weight[i] : 1;
}

/** (D_r a)_i of column k. */
static double plain_effects(const fe_rows *g, int64_t i, const double *a, int lanes, int k)
{
    double sum = 0;
    for (int q = 0; q < g->n_remaining; q++)
        sum += a[g->index[i * g->n_remaining + q] * (int64_t)lanes + k];
    return sum;
}

/** s_l += v of column k for the levels of row i. */
static void plain_add_row(const fe_rows *g, int64_t i, double v, int lanes, int k, double *s)
{
    for (int q = 0; q < g->n_remaining; q++)
        s[g->index[i * g->n_remaining + q] * (int64_t)lanes + k] += v;
}

/** The mean of z over the rows of level u; of a level without weight, the first row's. */
static double plain_mean(const fe_rows *g, int64_t u, const double *z)
{
    double sum = 0, weight = 0;
    for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
        sum += plain_weight(g, i) * z[i];
        weight += plain_weight(g, i);
    }
    return weight > 0 ? sum / weight : z[g->elim_start[u]];
}

/** b = D_r' W (I - P_1) x, and the moments of x. */
static frg_status plain_rhs(const fe_rows *g, frg_context *ctx, int f32, int lanes,
                            const fe_row_work *w, const fe_block *x, double *b, fe_moments *m)
{
    double *const z = calloc((size_t)g->n, sizeof *z);
    (void)ctx;
    (void)w;
    plain.calls[PLAIN_RHS]++;
    memset(b, 0, (size_t)(g->n_reduced * lanes) * sizeof *b);
    *m = (fe_moments){.rows = g->n};
    for (int k = 0; k < x->live; k++) {
        for (int64_t i = 0; i < g->n; i++) {
            z[i] = plain_value(g, x, f32, i, k);
            const double from_first = z[i] - z[0], weight = plain_weight(g, i);
            m->weight[k] += weight;
            m->sum[k] += weight * from_first;
            m->square[k] += weight * from_first * from_first;
            m->max_abs[k] = fmax(m->max_abs[k], fabs(z[i]));
        }
        m->shift[k] = z[0];
        for (int64_t u = 0; u < g->n_elim; u++) {
            const double mean = plain_mean(g, u, z);
            for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
                const double wr = plain_weight(g, i) * (z[i] - mean);
                m->within[k] += wr * (z[i] - mean);
                plain_add_row(g, i, wr, lanes, k, b);
            }
        }
    }
    free(z);
    return FRG_OK;
}

/** out = (I - P_1)(x - D_r a),  s = D_r' W out, and the audit of the eliminated levels. */
static frg_status plain_residual(const fe_rows *g, frg_context *ctx, int f32, int lanes,
                                 const fe_row_work *w, const fe_block *x, const fe_block *out,
                                 const double *a, double *s, double *effect, fe_elim_audit *audit)
{
    double *const z = calloc((size_t)g->n, sizeof *z);
    double *const sums = calloc((size_t)(g->n_reduced * lanes), sizeof *sums);
    (void)ctx;
    (void)w;
    plain.calls[PLAIN_RESIDUAL]++;
    *audit = (fe_elim_audit){.rows = g->n};
    for (int k = 0; k < x->live; k++) {
        for (int64_t i = 0; i < g->n; i++)
            z[i] = plain_value(g, x, f32, i, k) - plain_effects(g, i, a, lanes, k);
        for (int64_t u = 0; u < g->n_elim; u++) {
            const double mean = plain_mean(g, u, z);
            double left = 0;
            for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
                const double r = z[i] - mean, wr = plain_weight(g, i) * r;
                if (f32)
                    *(float *)plain_place(g, out, f32, i, k) = (float)r;
                else
                    *(double *)plain_place(g, out, f32, i, k) = r;
                left += wr;
                audit->square[k] += wr * r;
                plain_add_row(g, i, wr, lanes, k, sums);
            }
            const double level_mean = fabs(left) * g->elim_inverse[u];
            audit->worst[k] = level_mean > audit->mean[k] ? u : audit->worst[k];
            audit->mean[k] = fmax(audit->mean[k], level_mean);
            audit->gradient[k] += left * left * g->elim_inverse[u];
            audit->effect[k] = fmax(audit->effect[k], fabs(mean));
            effect[u * lanes + k] = mean;
        }
    }
    memcpy(s, sums, (size_t)(g->n_reduced * lanes) * sizeof *s);
    free(sums);
    free(z);
    return FRG_OK;
}

/* ---- reduced --------------------------------------------------------------------------------- */

static double plain_number(const void *p, int f32, int64_t at)
{
    return f32 ? (double)((const float *)p)[at] : ((const double *)p)[at];
}

/** y = D_r' W (I - P_1) D_r p, which is S p in every form. */
static frg_status plain_apply(const fe_rows *g, const fe_bordered *b, frg_context *ctx, int f32,
                              int lanes, const fe_row_work *w, bool low, const void *p, double *y)
{
    const int64_t length = g->n_reduced * lanes;
    double *const z = calloc((size_t)g->n, sizeof *z), *const a = calloc((size_t)length, sizeof *a);
    (void)ctx;
    (void)w;
    plain.calls[PLAIN_APPLY]++;
    plain.calls[PLAIN_BORDERED] += b != NULL;
    (void)low;
    for (int64_t j = 0; j < length; j++) {
        a[j] = plain_number(p, f32, j);
        y[j] = 0;
    }
    for (int k = 0; k < lanes; k++) {
        for (int64_t i = 0; i < g->n; i++)
            z[i] = plain_effects(g, i, a, lanes, k);
        for (int64_t u = 0; u < g->n_elim; u++) {
            const double mean = plain_mean(g, u, z);
            for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++)
                plain_add_row(g, i, plain_weight(g, i) * (z[i] - mean), lanes, k, y);
        }
    }
    free(a);
    free(z);
    return FRG_OK;
}

/** y = S p with the assembled S. */
static frg_status plain_multiply(const fe_schur *s, frg_context *ctx, int f32, int lanes,
                                 const void *p, double *y)
{
    (void)ctx;
    plain.calls[PLAIN_MULTIPLY]++;
    for (int64_t l = 0; l < s->n; l++)
        for (int k = 0; k < lanes; k++) {
            double sum = 0;
            for (int64_t e = s->starts[l]; e < s->starts[l + 1]; e++)
                sum += s->values[e] * plain_number(p, f32, (int64_t)s->columns[e] * lanes + k);
            y[l * lanes + k] = sum;
        }
    return FRG_OK;
}

static frg_status plain_solve(const frgi_direct *d, int lanes, double *x, double *scratch)
{
    plain.calls[PLAIN_SOLVE]++;
    return frgi_fe_host_steps.reduced.solve(d, lanes, x, scratch);
}

static frg_status plain_precondition(const frgi_ac *ac, int lanes, const double *r, double *z,
                                     double *scratch)
{
    plain.calls[PLAIN_PRECONDITION]++;
    return frgi_fe_host_steps.reduced.precondition(ac, lanes, r, z, scratch);
}

/** r <- r - W z (z'r) / (z'W z) for the indicator z of each set, one column after the other. */
static frg_status plain_project(const fe_rows *g, int lanes, const int32_t *set, double *r,
                                double *sum, double *weight)
{
    plain.calls[PLAIN_PROJECT]++;
    for (int k = 0; k < lanes; k++) {
        for (int64_t z = 0; z < g->n_reduced; z++)
            sum[z] = weight[z] = 0;
        for (int64_t l = 0; l < g->n_reduced; l++) {
            sum[set[l]] += r[l * lanes + k];
            weight[set[l]] += g->level_weight[l];
        }
        for (int64_t l = 0; l < g->n_reduced; l++)
            if (weight[set[l]] > 0)
                r[l * lanes + k] -= g->level_weight[l] * sum[set[l]] / weight[set[l]];
    }
    return FRG_OK;
}

static frg_status plain_audit(const fe_rows *g, int lanes, const double *s, int k,
                              fe_reduced_audit *out)
{
    *out = (fe_reduced_audit){.worst = -1};
    for (int64_t l = 0; l < g->n_reduced; l++) {
        const double v = s[l * lanes + k], n = g->level_weight[l];
        if (n > 0 && fabs(v) / n > out->mean) {
            out->mean = fabs(v) / n;
            out->worst = l;
        }
        out->gradient += n > 0 ? v * v / n : 0;
    }
    return FRG_OK;
}

static frg_status plain_means(const fe_rows *g, int lanes, const double *s, int k, double *to)
{
    for (int64_t l = 0; l < g->n_reduced; l++)
        to[l] = g->level_weight[l] > 0 ? fabs(s[l * lanes + k]) / g->level_weight[l] : 0;
    return FRG_OK;
}

/** Numbers of its own: any will do. */
static frg_status plain_draw(int64_t n, frg_context *ctx, double *to)
{
    uint64_t state = 1;
    (void)ctx;
    for (int64_t i = 0; i < n; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        to[i] = (double)(state >> 11) * 0x1p-53 - 0.5;
    }
    return FRG_OK;
}

/* ---- vectors --------------------------------------------------------------------------------- */

static frg_status plain_copy(int64_t n, int lanes, const double *from, double *to)
{
    for (int64_t j = 0; j < n * lanes; j++)
        to[j] = from ? from[j] : 0;
    return FRG_OK;
}

static frg_status plain_add(int64_t n, int lanes, double alpha, const double *from, double *to)
{
    for (int64_t j = 0; j < n * lanes; j++)
        to[j] += alpha * from[j];
    return FRG_OK;
}

static frg_status plain_scale(int64_t n, int lanes, const double *factor, double *v)
{
    for (int64_t j = 0; j < n * lanes; j++)
        v[j] *= factor[j % lanes];
    return FRG_OK;
}

static frg_status plain_times_diagonal(int64_t n, int lanes, const double *d, const double *s,
                                       double *z)
{
    for (int64_t j = 0; j < n * lanes; j++)
        z[j] = d[j / lanes] * s[j];
    return FRG_OK;
}

static frg_status plain_dot(int64_t n, int lanes, const double *s, const double *z, double *sum)
{
    for (int k = 0; k < lanes; k++)
        sum[k] = 0;
    for (int64_t j = 0; j < n * lanes; j++)
        sum[j % lanes] += s[j] * z[j];
    return FRG_OK;
}

static frg_status plain_largest(int64_t n, int lanes, const double *v, double *max_abs)
{
    for (int k = 0; k < lanes; k++)
        max_abs[k] = 0;
    for (int64_t j = 0; j < n * lanes; j++)
        max_abs[j % lanes] = fmax(max_abs[j % lanes], fabs(v[j]));
    return FRG_OK;
}

static frg_status plain_add_column(int64_t n, int lanes, int k, const double *from, double *to)
{
    for (int64_t l = 0; l < n; l++)
        to[l * lanes + k] += from[l];
    return FRG_OK;
}

static frg_status plain_get_column(int64_t n, int lanes, int k, const double *from, double *to)
{
    for (int64_t l = 0; l < n; l++)
        to[l] = from[l * lanes + k];
    return FRG_OK;
}

static frg_status plain_move_columns(int64_t n, int count, int lanes, int first, const double *from,
                                     int to_lanes, int at, double *to)
{
    for (int64_t l = 0; l < n; l++)
        for (int k = 0; k < count; k++)
            to[l * to_lanes + at + k] = from[l * lanes + first + k];
    return FRG_OK;
}

static frg_status plain_gather(int64_t n, int lanes, const int32_t *level, const double *from,
                               double *to)
{
    for (int64_t j = 0; j < n * lanes; j++)
        to[j] = from[(int64_t)level[j / lanes] * lanes + j % lanes];
    return FRG_OK;
}

static frg_status plain_scatter(int64_t n, int lanes, const int32_t *level, const double *from,
                                const double *b, double *to, double *energy)
{
    plain.calls[PLAIN_SCATTER]++;
    for (int k = 0; k < lanes; k++)
        energy[k] = 0;
    for (int64_t j = 0; j < n * lanes; j++) {
        const int64_t at = (int64_t)level[j / lanes] * lanes + j % lanes;
        to[at] += from[j];
        energy[j % lanes] += b[at] * from[j];
    }
    return FRG_OK;
}

/* ---- recurrence ------------------------------------------------------------------------------ */

/** Of the runs under way, each known by its work memory. */
typedef struct {
    const fe_cg_work *w;
    double rho[FE_MAX_LANES], first[FE_MAX_LANES];
    double alpha[FE_MAX_LANES], beta[FE_MAX_LANES]; /* of the last step */
    fe_cg_target target[FE_MAX_LANES];
    fe_cg_column column[FE_MAX_LANES];
} plain_run;

static plain_run *plain_run_of(const fe_cg_work *w)
{
    enum { RUNS = 64 };
    static plain_run runs[RUNS];
    static int next;
    for (int i = 0; i < RUNS; i++)
        if (runs[i].w == w)
            return &runs[i];
    runs[next] = (plain_run){.w = w};
    return &runs[next++ % RUNS];
}

/** z <- M^-1 r. */
static frg_status plain_z(const fe_cg_call *c, double *z)
{
    const fe_system *const s = c->s;
    if (s->precondition)
        return s->precondition(s->precondition_data, c->lanes, c->w->r, z);
    for (int64_t j = 0; j < s->n * c->lanes; j++)
        z[j] = s->inverse_diag[j / c->lanes] * c->w->r[j];
    return FRG_OK;
}

static double plain_inner(const fe_cg_call *c, int k, const void *p, int f32, const double *q)
{
    double sum = 0;
    for (int64_t l = 0; l < c->s->n; l++)
        sum += plain_number(p, f32, l * c->lanes + k) * q[l * c->lanes + k];
    return sum;
}

/** p <- z + beta p, in the direction's type. */
static void plain_direction(const fe_cg_call *c, int k, double beta, const double *z)
{
    for (int64_t l = 0; l < c->s->n; l++) {
        const int64_t j = l * c->lanes + k;
        if (c->f32)
            ((float *)c->w->p)[j] = (float)(z[j] + beta * plain_number(c->w->p, 1, j));
        else
            ((double *)c->w->p)[j] = z[j] + beta * ((double *)c->w->p)[j];
    }
}

/** Whether column k is at its target: half the tolerance in the largest level mean, relative to
 *  what is left of the column, and in the gradient. */
static bool plain_ends(const fe_cg_call *c, const plain_run *m, int k)
{
    const fe_cg_target *const t = &m->target[k];
    const double left = fmax(t->within - m->column[k].energy, t->noise);
    double largest = 0, gradient = 0;
    for (int64_t l = 0; l < c->s->n; l++) {
        const double r = c->w->r[l * c->lanes + k], inverse = c->s->level_inverse[l];
        largest = fmax(largest, fabs(r) * inverse);
        gradient += r * r * inverse;
    }
    return largest <= fmax(0.5 * t->tol * sqrt(left / t->total_weight), t->floor) &&
           (sqrt(gradient) <= 0.5 * t->tol * sqrt(t->total) || m->column[k].steps == 0);
}

static frg_status plain_cg_start(const fe_cg_call *c, const fe_cg_target *target)
{
    plain_run *const m = plain_run_of(c->w);
    const int64_t length = c->s->n * c->lanes;
    double *const z = calloc((size_t)length + 1, sizeof *z);
    plain.calls[PLAIN_CG]++;
    memset(c->w->x, 0, (size_t)length * sizeof *c->w->x);
    memset(c->w->p, 0, (size_t)length * sizeof *c->w->x);
    const frg_status status = plain_z(c, z);
    for (int k = 0; k < c->lanes; k++) {
        m->target[k] = target[k];
        m->column[k] = (fe_cg_column){.lambda = (double)NAN};
        m->rho[k] = m->first[k] = plain_inner(c, k, c->w->r, 0, z);
        m->column[k].done = !(target[k].total_weight > 0) || plain_ends(c, m, k);
        m->column[k].given_up = !m->column[k].done && target[k].most <= 0;
        plain_direction(c, k, 0, z);
    }
    free(z);
    return status;
}

/** Row `step` of the Lanczos matrix (Golub and Van Loan 2013, 10.2): its diagonal has
 *  1 / alpha + beta' / alpha', beside it stands sqrt(beta') / alpha', of the step before. */
static void plain_lanczos(const fe_cg_call *c, const plain_run *m, int64_t step, int k,
                          double alpha)
{
    const double before = step > 0 ? m->beta[k] / m->alpha[k] : 0;
    if (step < FE_HISTORY) {
        c->w->diagonal[step * c->lanes + k] = 1 / alpha + before;
        c->w->below2[step * c->lanes + k] = step > 0 ? before / m->alpha[k] : 0;
    }
}

/** alpha = rho / p'q,  a += alpha p,  r -= alpha q of column k; false: it does not move. */
static bool plain_move(const fe_cg_call *c, plain_run *m, int64_t step, int k)
{
    const fe_cg_work *const w = c->w;
    fe_cg_column *const col = &m->column[k];
    const double curvature = plain_inner(c, k, w->p, c->f32, w->q);
    if (col->done || col->given_up)
        return false;
    col->done = !(curvature > 0 && m->rho[k] > 0);
    if (col->done)
        return false;
    const double alpha = m->rho[k] / curvature;
    plain_lanczos(c, m, step, k, alpha);
    for (int64_t l = 0; l < c->s->n; l++) {
        const int64_t j = l * c->lanes + k;
        w->x[j] += alpha * plain_number(w->p, c->f32, j);
        w->r[j] -= alpha * w->q[j];
    }
    m->alpha[k] = alpha;
    col->energy += alpha * m->rho[k];
    return true;
}

static frg_status plain_cg_step(const fe_cg_call *c, int64_t step)
{
    plain_run *const m = plain_run_of(c->w);
    double *const z = calloc((size_t)(c->s->n * c->lanes) + 1, sizeof *z);
    bool moved[FE_MAX_LANES] = {false};
    frg_status status = c->s->times(c->s->data, c->lanes, c->w->p, c->w->q); /* q = S p */
    for (int k = 0; k < c->lanes && status == FRG_OK; k++)
        moved[k] = plain_move(c, m, step, k);
    status = status == FRG_OK ? plain_z(c, z) : status;
    for (int k = 0; k < c->lanes && status == FRG_OK; k++) {
        if (!moved[k])
            continue;
        const double next = plain_inner(c, k, c->w->r, 0, z);
        m->beta[k] = next / m->rho[k];
        m->rho[k] = next;
        m->column[k].steps = step + 1;
        m->column[k].done = plain_ends(c, m, k);
        m->column[k].given_up = !m->column[k].done && step + 1 >= m->target[k].most;
        plain_direction(c, k, m->beta[k], z);
    }
    free(z);
    return status;
}

static frg_status plain_cg_poll(const fe_cg_call *c, fe_cg_summary *summary, fe_cg_column *column)
{
    const plain_run *const m = plain_run_of(c->w);
    *summary = (fe_cg_summary){.worst = 0};
    for (int k = 0; k < c->lanes; k++) {
        const fe_cg_column *const col = &m->column[k];
        summary->running += !col->done && !col->given_up;
        if (column) {
            const int64_t known = col->steps < FE_HISTORY ? col->steps : FE_HISTORY;
            column[k] = *col;
            column[k].lambda =
                frgi_ritz_smallest(c->w->diagonal + k, c->w->below2 + k, c->lanes, known);
            column[k].rate = col->steps > 0 && m->first[k] > 0
                                 ? pow(m->rho[k] / m->first[k], 0.5 / (double)col->steps)
                                 : 0;
        }
    }
    return FRG_OK;
}

static const fe_steps plain_steps = {
    .open = frgi_arena_open,
    .close = frgi_arena_close,
    .rows = {.rhs = plain_rhs, .residual = plain_residual},
    .reduced = {.apply = plain_apply,
                .multiply = plain_multiply,
                .solve = plain_solve,
                .precondition = plain_precondition,
                .project = plain_project,
                .audit = plain_audit,
                .means = plain_means,
                .draw = plain_draw,
                .copy = plain_copy,
                .add = plain_add,
                .scale = plain_scale,
                .times_diagonal = plain_times_diagonal,
                .dot = plain_dot,
                .largest = plain_largest,
                .add_column = plain_add_column,
                .get_column = plain_get_column,
                .move = plain_move_columns,
                .gather = plain_gather,
                .scatter = plain_scatter},
    .recurrence = {.start = plain_cg_start, .step = plain_cg_step, .poll = plain_cg_poll},
    .row_lsmr = &plain_row_steps,
};
#endif
