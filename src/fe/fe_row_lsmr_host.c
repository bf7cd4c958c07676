/* fe_row_lsmr_host.c - the steps of the row-space path (fe_row_lsmr_plan.h) on vectors in memory of
 * this machine. */
#include <math.h>
#include <string.h>

#include "core/host_step.h"
#include "fe/fe_row_lsmr_plan.h"

/* ---- the caller's columns -------------------------------------------------------------------- */

static int64_t caller_row(const fe_rows *g, int64_t i)
{
    return g->order ? g->order[i] : i;
}

static frg_status load(fe_row_lsmr *f, const frg_array *a, int64_t first, int64_t k)
{
    frgi_host_step(f->work.stops, FRGI_HOST_LSMR_ROWS);
    const fe_rows *g = f->basis.g;
#pragma omp parallel for num_threads(f->work.threads) schedule(static) if (g->n_chunks > 1)
    for (int64_t i = 0; i < g->n; i++) {
        const int64_t row = caller_row(g, i);
        for (int64_t c = 0; c < k; c++) {
            f->z[i * k + c] = frgi_array_get(a, row, first + c) * f->state[first + c].scale;
        }
    }
    return FRG_OK;
}

static frg_status store(fe_row_lsmr *f, const frg_array *a, int64_t first, int64_t k)
{
    frgi_host_step(f->work.stops, FRGI_HOST_LSMR_ROWS);
    const fe_rows *g = f->basis.g;
    void *base = frgi_array_base(a);
#pragma omp parallel for num_threads(f->work.threads) schedule(static) if (g->n_chunks > 1)
    for (int64_t i = 0; i < g->n; i++) {
        for (int64_t c = 0; c < k; c++) {
            const ptrdiff_t at = caller_row(g, i) * a->stride[0] + (first + c) * a->stride[1];
            const double v = f->z[i * k + c] * f->state[first + c].unscale;
            if (a->dtype == FRG_F32) {
                ((float *)base)[at] = (float)v;
            } else {
                ((double *)base)[at] = v;
            }
        }
    }
    return FRG_OK;
}

static frg_status moments(fe_row_lsmr *f, int64_t k, double *norm2, double *square)
{
    frgi_host_step(f->work.stops, FRGI_HOST_LSMR_ROWS);
    frgi_basis_moments(&f->work, k, f->z, norm2, square);
    return FRG_OK;
}

/** z is not kept anywhere else. */
static frg_status end(fe_row_lsmr *f, const frg_array *a, int64_t first, int64_t k)
{
    (void)f, (void)a, (void)first, (void)k;
    return FRG_OK;
}

static frg_status take_out(fe_row_lsmr *f, int64_t k, fe_taken_out how, double *effect)
{
    frgi_host_step(f->work.stops, FRGI_HOST_LSMR_ROWS);
    const double *const c = how != FE_PROJECTED && f->basis.n_reduced > 0 ? f->c : NULL;
    memset(f->elim, 0, (size_t)(f->basis.n_elim_columns * k) * sizeof *f->elim);
    frgi_basis_residual(&f->work, k, c, f->z, f->elim, effect);
    frgi_basis_residual(&f->work, k, NULL, f->z, f->elim, NULL);
    return FRG_OK;
}

static frg_status zero(fe_row_lsmr *f, int64_t k, const bool columns[])
{
    frgi_host_step(f->work.stops, FRGI_HOST_LSMR_ROWS);
    for (int64_t i = 0; i < f->basis.g->n; i++) {
        for (int64_t c = 0; c < k; c++) {
            f->z[i * k + c] = columns[c] ? 0 : f->z[i * k + c];
        }
    }
    return FRG_OK;
}

/* ---- the audit ------------------------------------------------------------------------------- */

/** The largest level mean among one remaining factor's coefficients, and the sum of g^2. */
static void audit_factor(const fe_basis_factor *f, const double *s, int64_t lanes, int64_t k,
                         fe_row_audit *a)
{
    for (int64_t l = 0; l < f->levels; l++) {
        for (int j = 0; j < f->width; j++) {
            const double g = s[(f->first + l * f->width + j) * lanes + k];
            const double mean = fabs(g) * f->root[l];
            a->reduced += g * g;
            if (mean > a->mean) {
                a->mean = mean;
                a->factor = f;
                a->level = l;
            }
        }
    }
}

fe_row_audit frgi_fe_row_lsmr_audit(const fe_basis *b, const fe_basis_audit *u, const double *s,
                                    int64_t lanes, int64_t k)
{
    fe_row_audit a = {.square = u->square[k],
                      .eliminated = u->gradient[k],
                      .mean = u->mean[k],
                      .factor = &b->elim,
                      .level = u->worst[k]};
    for (int r = 0; r < b->g->n_remaining; r++) {
        audit_factor(&b->remaining[r], s, lanes, k, &a);
    }
    return a;
}

static frg_status audit(fe_row_lsmr *f, int64_t k, fe_row_audit out[])
{
    frgi_host_step(f->work.stops, FRGI_HOST_LSMR_ROWS);
    fe_basis_audit eliminated;
    frgi_basis_scatter(&f->work, k, f->z, f->s, &eliminated);
    for (int64_t c = 0; c < k; c++) {
        out[c] = frgi_fe_row_lsmr_audit(&f->basis, &eliminated, f->s, k, c);
    }
    return FRG_OK;
}

static frg_status energy(fe_row_lsmr *f, int64_t k, int64_t c, double *out)
{
    frgi_not_beside_device(f->work.stops, "the preconditioner of LSMR");
    const int64_t n = f->basis.n_reduced;
    double *const one = f->c, sum = 0;
    for (int64_t j = 0; j < n; j++) {
        one[j] = f->s[j * k + c];
    }
    f->precond(f->precond_data, 1, one, f->lsmr.v);
    for (int64_t j = 0; j < n; j++) {
        sum += one[j] * f->lsmr.v[j];
    }
    *out = sum;
    return FRG_OK;
}

/* ---- coefficients and effects ---------------------------------------------------------------- */

frg_status frgi_fe_row_lsmr_no_answer(fe_row_lsmr *f, int64_t k)
{
    memset(f->c, 0, (size_t)(f->basis.n_reduced * k) * sizeof *f->c);
    return FRG_OK;
}

int64_t frgi_fe_row_lsmr_kept(const fe_row_lsmr *f)
{
    return f->there.passes ? f->basis.n_reduced : frgi_fe_row_lsmr_levels(f);
}

frg_status frgi_fe_row_lsmr_no_effects(fe_row_lsmr *f, int64_t first, int64_t k)
{
    const int64_t kept = frgi_fe_row_lsmr_kept(f);
    memset(f->effects + first * kept, 0, (size_t)(k * kept) * sizeof *f->effects);
    return FRG_OK;
}

frg_status frgi_fe_row_lsmr_add_effects(fe_row_lsmr *f, int64_t first, int64_t k)
{
    const int64_t kept = frgi_fe_row_lsmr_kept(f), reduced = f->basis.n_reduced;
    for (int64_t c = 0; c < k; c++) {
        double *const to = f->effects + (first + c) * kept;
        const double unscale = f->state[first + c].unscale;
        for (int64_t j = 0; j < reduced; j++) {
            to[j] += f->c[j * k + c] * unscale;
        }
        for (int64_t j = reduced; j < kept; j++) {
            to[j] += f->elim[(j - reduced) * k + c] * unscale;
        }
    }
    return FRG_OK;
}

static frg_status effects(const fe_row_lsmr *f, int64_t column, double *alpha)
{
    const fe_basis *b = &f->basis;
    const double *coef = f->effects + column * frgi_fe_row_lsmr_levels(f);
    for (int q = 0; q < b->g->n_factors; q++) {
        const fe_basis_factor *q_block = frgi_basis_factor(b, q);
        const int64_t first = q_block->position < 0 ? b->n_reduced : q_block->first;
        frgi_basis_effects(b, q_block, coef + first, alpha);
        alpha += q_block->levels * q_block->width;
    }
    return FRG_OK;
}

/* ---- solvers --------------------------------------------------------------------------------- */

static frg_status start(fe_row_lsmr *f, frg_context *ctx, int64_t k, bool preconditioned,
                        const frgi_lsmr_rule *rule, frg_lsmr_column reports[])
{
    frgi_not_beside_device(f->work.stops, "the start of LSMR");
    const fe_basis *const b = &f->basis;
    const frgi_lsmr_operator op = {.times = frgi_basis_times,
                                   .transposed = frgi_basis_transposed,
                                   .data = &f->work,
                                   .precond = preconditioned ? f->precond : NULL,
                                   .precond_data = f->precond_data};
    for (int64_t i = 0; b->root_weight && i < b->g->n; i++) {
        for (int64_t c = 0; c < k; c++) {
            f->z[i * k + c] *= b->root_weight[i];
        }
    }
    f->lsmr.k = k;
    frgi_lsmr_start(&f->lsmr, ctx, &op, rule, f->z, reports);
    return FRG_OK;
}

static frg_status step(fe_row_lsmr *f)
{
    frgi_not_beside_device(f->work.stops, "a step of LSMR");
    return frgi_lsmr_step(&f->lsmr);
}

static frg_status finish(fe_row_lsmr *f)
{
    frgi_not_beside_device(f->work.stops, "the answer of LSMR");
    frgi_lsmr_finish(&f->lsmr, f->c);
    return FRG_OK;
}

static frg_status project(fe_row_lsmr *f, frg_context *ctx, int64_t k, const fe_map_rule *rule)
{
    frgi_not_beside_device(f->work.stops, "alternating projections");
    fe_map *const m = &f->map;
    frgi_fe_map_start(m, &f->basis, k);
    const frg_status status = frgi_fe_map_solve(m, ctx, &f->work, rule, f->z, f->elim);
    memcpy(f->c, m->c, (size_t)(f->basis.n_reduced * k) * sizeof *f->c);
    return status;
}

const struct fe_row_lsmr_steps frgi_fe_row_lsmr_host_steps = {
    .load = load,
    .again = load,
    .store = store,
    .end = end,
    .moments = moments,
    .take_out = take_out,
    .audit = audit,
    .energy = energy,
    .zero = zero,
    .no_answer = frgi_fe_row_lsmr_no_answer,
    .no_effects = frgi_fe_row_lsmr_no_effects,
    .add_effects = frgi_fe_row_lsmr_add_effects,
    .start = start,
    .step = step,
    .finish = finish,
    .project = project,
    .effects = effects};
