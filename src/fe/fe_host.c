/* fe_host.c - the steps of fe_steps.h on vectors in the memory of this machine. */
#include "fe/fe_row_lsmr_plan.h"

#include <math.h>
#include <string.h>

#include "core/host_step.h"

/* ---- rows, and S ----------------------------------------------------------------------------- */

/** The work of a pass along so many columns, which begins and reports its progress. */
static fe_row_work begin_pass(const fe_rows *g, frg_context *ctx, const fe_row_work *w,
                              const char *phase, int lanes)
{
    fe_row_work own = *w;
    own.progress = ctx;
    frgi_pass_begins(ctx, "fe", phase, g->n * lanes * (int64_t)sizeof(double));
    return own;
}

static frg_status rhs(const fe_rows *g, frg_context *ctx, int f32, int lanes, const fe_row_work *w,
                      const fe_block *x, double *b, fe_moments *total)
{
    const fe_row_ops *const ops = frgi_fe_row_ops(frgi_context_isa(ctx), f32, lanes);
    frgi_host_step(ctx, FRGI_HOST_PASSES);
    const fe_row_work own = begin_pass(g, ctx, w, "right-hand sides", lanes);
    frgi_fe_rhs(g, ops, &own, frg_threads(ctx), lanes, x, b, total);
    return FRG_OK;
}

static frg_status residual(const fe_rows *g, frg_context *ctx, int f32, int lanes,
                           const fe_row_work *w, const fe_block *x, const fe_block *out,
                           const double *a, double *s, double *elim_effect, fe_elim_audit *total)
{
    const fe_row_ops *const ops = frgi_fe_row_ops(frgi_context_isa(ctx), f32, lanes);
    frgi_host_step(ctx, FRGI_HOST_PASSES);
    const fe_row_work own = begin_pass(g, ctx, w, "residuals", lanes);
    frgi_fe_residual(g, ops, &own, frg_threads(ctx), lanes, x, out, a, s, elim_effect, total);
    return FRG_OK;
}

static frg_status apply(const fe_rows *g, const fe_bordered *b, frg_context *ctx, int f32,
                        int lanes, const fe_row_work *w, bool low, const void *p, double *y)
{
    const fe_reduced_ops *const ops = frgi_fe_reduced_ops(frgi_context_isa(ctx), f32, lanes);
    const int threads = frg_threads(ctx);
    frgi_not_beside_device(ctx, "a product through the rows");
    if (b) {
        frgi_fe_bordered_apply(b, ops, w, threads, lanes, low, f32 ? sizeof(float) : sizeof(double),
                               p, y);
    } else {
        frgi_fe_apply(g, ops, w, threads, lanes, low, p, y);
    }
    return FRG_OK;
}

static frg_status multiply(const fe_schur *s, frg_context *ctx, int f32, int lanes, const void *p,
                           double *y)
{
    const fe_reduced_ops *const ops = frgi_fe_reduced_ops(frgi_context_isa(ctx), f32, lanes);
    enum { ROWS = 512 };
    const int64_t pieces = (s->n + ROWS - 1) / ROWS;
#pragma omp parallel for num_threads(frg_threads(ctx))                                             \
    schedule(dynamic, 4) if (s->starts[s->n] > 20000)
    for (int64_t i = 0; i < pieces; i++) {
        const int64_t end = (i + 1) * ROWS;
        ops->spmv(i * ROWS, end < s->n ? end : s->n, s->starts, s->columns, s->values, p, y);
    }
    return FRG_OK;
}

static frg_status solve(const frgi_direct *d, int lanes, double *x, double *scratch)
{
    frgi_direct_solve(d, lanes, x, scratch);
    return FRG_OK;
}

static frg_status precondition(const frgi_ac *ac, int lanes, const double *r, double *z,
                               double *scratch)
{
    frgi_ac_apply(ac, lanes, r, z, scratch);
    return FRG_OK;
}

static frg_status project(const fe_rows *g, int lanes, const int32_t *set, double *r, double *sum,
                          double *weight)
{
    const int64_t n = g->n_reduced;
    memset(sum, 0, (size_t)(n * lanes) * sizeof *sum);
    memset(weight, 0, (size_t)n * sizeof *weight);
    for (int64_t i = 0; i < n; i++) {
        const int64_t z = set[i];
        weight[z] += g->level_weight[i];
        for (int k = 0; k < lanes; k++) {
            sum[z * lanes + k] += r[i * lanes + k];
        }
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t z = set[i];
        const double share = weight[z] > 0 ? g->level_weight[i] / weight[z] : 0;
        for (int k = 0; k < lanes; k++) {
            r[i * lanes + k] -= share * sum[z * lanes + k];
        }
    }
    return FRG_OK;
}

static frg_status audit(const fe_rows *g, int lanes, const double *s, int k, fe_reduced_audit *out)
{
    fe_reduced_audit a = {.worst = -1};
    for (int64_t l = 0; l < g->n_reduced; l++) {
        const double v = s[l * lanes + k], mean = fabs(v) * g->level_inverse[l];
        a.gradient += v * v * g->level_inverse[l];
        a.worst = mean > a.mean ? l : a.worst;
        a.mean = mean > a.mean ? mean : a.mean;
    }
    *out = a;
    return FRG_OK;
}

static frg_status means(const fe_rows *g, int lanes, const double *s, int k, double *to)
{
    for (int64_t l = 0; l < g->n_reduced; l++) {
        to[l] = fabs(s[l * lanes + k]) * g->level_inverse[l];
    }
    return FRG_OK;
}

static frg_status draw(int64_t n, frg_context *ctx, double *to)
{
    for (int64_t i = 0; i < n; i++) {
        double z[2];
        frgi_uniforms(frg_seed(ctx), 1, (uint64_t)i, 0, z);
        to[i] = z[0] - 0.5;
    }
    return FRG_OK;
}

/* ---- vectors --------------------------------------------------------------------------------- */

static frg_status copy(int64_t n, int lanes, const double *from, double *to)
{
    const size_t bytes = (size_t)(n * lanes) * sizeof *to;
    if (from) {
        memcpy(to, from, bytes);
    } else {
        memset(to, 0, bytes);
    }
    return FRG_OK;
}

static frg_status add(int64_t n, int lanes, double alpha, const double *from, double *to)
{
    for (int64_t j = 0; j < n * lanes; j++) {
        to[j] += alpha * from[j];
    }
    return FRG_OK;
}

static frg_status scale(int64_t n, int lanes, const double *factor, double *v)
{
    for (int64_t l = 0; l < n; l++) {
        for (int k = 0; k < lanes; k++) {
            v[l * lanes + k] *= factor[k];
        }
    }
    return FRG_OK;
}

static frg_status times_diagonal(int64_t n, int lanes, const double *d, const double *s, double *z)
{
    for (int64_t l = 0; l < n; l++) {
        for (int k = 0; k < lanes; k++) {
            z[l * lanes + k] = s[l * lanes + k] * d[l];
        }
    }
    return FRG_OK;
}

static frg_status dot(int64_t n, int lanes, const double *s, const double *z, double *sum)
{
    for (int k = 0; k < lanes; k++) {
        double total = 0;
        for (int64_t i = 0; i < n; i++) {
            total += s[i * lanes + k] * z[i * lanes + k];
        }
        sum[k] = total;
    }
    return FRG_OK;
}

static frg_status largest(int64_t n, int lanes, const double *v, double *max_abs)
{
    memset(max_abs, 0, (size_t)lanes * sizeof *max_abs);
    for (int64_t l = 0; l < n; l++) {
        for (int k = 0; k < lanes; k++) {
            const double a = fabs(v[l * lanes + k]);
            max_abs[k] = a > max_abs[k] ? a : max_abs[k];
        }
    }
    return FRG_OK;
}

static frg_status add_column(int64_t n, int lanes, int k, const double *from, double *to)
{
    for (int64_t l = 0; l < n; l++) {
        to[l * lanes + k] += from[l];
    }
    return FRG_OK;
}

static frg_status get_column(int64_t n, int lanes, int k, const double *from, double *to)
{
    for (int64_t l = 0; l < n; l++) {
        to[l] = from[l * lanes + k];
    }
    return FRG_OK;
}

static frg_status move(int64_t n, int count, int lanes, int first, const double *from, int to_lanes,
                       int at, double *to)
{
    for (int64_t l = 0; l < n; l++) {
        memcpy(to + l * to_lanes + at, from + l * lanes + first, (size_t)count * sizeof *to);
    }
    return FRG_OK;
}

static frg_status gather(int64_t n, int lanes, const int32_t *level, const double *from, double *to)
{
    for (int64_t l = 0; l < n; l++) {
        memcpy(to + l * lanes, from + (int64_t)level[l] * lanes, (size_t)lanes * sizeof *to);
    }
    return FRG_OK;
}

static frg_status scatter(int64_t n, int lanes, const int32_t *level, const double *from,
                          const double *b, double *to, double *energy)
{
    memset(energy, 0, (size_t)lanes * sizeof *energy);
    for (int64_t l = 0; l < n; l++) {
        const int64_t at = (int64_t)level[l] * lanes;
        for (int k = 0; k < lanes; k++) {
            to[at + k] += from[l * lanes + k];
            energy[k] += b[at + k] * from[l * lanes + k];
        }
    }
    return FRG_OK;
}

const fe_steps frgi_fe_host_steps = {
    .open = frgi_arena_open,
    .close = frgi_arena_close,
    .rows = {.rhs = rhs, .residual = residual},
    .reduced = {.apply = apply,
                .multiply = multiply,
                .solve = solve,
                .precondition = precondition,
                .project = project,
                .audit = audit,
                .means = means,
                .draw = draw,
                .copy = copy,
                .add = add,
                .scale = scale,
                .times_diagonal = times_diagonal,
                .dot = dot,
                .largest = largest,
                .add_column = add_column,
                .get_column = get_column,
                .move = move,
                .gather = gather,
                .scatter = scatter},
    .recurrence = {.start = frgi_fe_host_cg_start,
                   .step = frgi_fe_host_cg_step,
                   .poll = frgi_fe_host_cg_poll},
    .row_lsmr = &frgi_fe_row_lsmr_host_steps,
};
