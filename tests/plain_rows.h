/* plain_rows.h - the steps of the row-space path (fe_row_lsmr_plan.h) a second time, as fe_basis.h
 * defines them: loops over rows and columns of D, one thread, no chunks, no blocks of lanes.
 *
 * Two things are the library's own: LSMR's recurrence (test_lsmr has it), here on products in plain
 * loops, and the preconditioner, as a factor is opaque.  Alternating projections are von Neumann's,
 * without acceleration and without a bound.
 */
#ifndef FOURGE_TEST_PLAIN_ROWS_H
#define FOURGE_TEST_PLAIN_ROWS_H

#include "fe/fe_row_lsmr_plan.h"
#include "test.h"

static int64_t plain_row_calls;

/** The blocks of the design, the eliminated levels' first. */
static const fe_basis_factor *plain_block(const fe_basis *b, int q)
{
    return q == 0 ? &b->elim : &b->remaining[q - 1];
}

static int plain_blocks(const fe_basis *b)
{
    return 1 + b->g->n_remaining;
}

static int64_t plain_level(const fe_basis *b, const fe_basis_factor *f, int64_t row)
{
    if (f->position >= 0)
        return b->g->index[row * b->g->n_remaining + f->position] - f->index_base;
    int64_t u = 0;
    while (b->g->elim_start[u + 1] <= row)
        u++;
    return u;
}

static double plain_row_weight(const fe_basis *b, int64_t row)
{
    return b->g->weight ? b->g->weight[row] : 1;
}

/** sum of column j of a block times its coefficients in a row. */
static double plain_of_row(const fe_basis *b, const fe_basis_factor *f, int64_t row,
                           const double *coef, int64_t k, int64_t c)
{
    const int64_t level = plain_level(b, f, row);
    double sum = 0;
    for (int j = 0; j < f->width; j++)
        sum += fe_basis_value(f, level, row, j) * coef[(f->first + level * f->width + j) * k + c];
    return sum;
}

/** to <- sum w phi v over the rows of column j of the block; v is `root` times too large. */
static void plain_sums(const fe_basis *b, const fe_basis_factor *f, int j, bool root,
                       const double *v, int64_t k, int64_t c, double *to)
{
    for (int64_t l = 0; l < f->levels; l++)
        to[(f->first + l * f->width + j) * k + c] = 0;
    for (int64_t i = 0; i < b->g->n; i++) {
        const int64_t l = plain_level(b, f, i);
        const double w = plain_row_weight(b, i);
        to[(f->first + l * f->width + j) * k + c] +=
            (root ? sqrt(w) : w) * fe_basis_value(f, l, i, j) * v[i * k + c];
    }
}

/** v <- (I - phi phi' W) v of a block, column after column of a level; what is taken out is added
 *  to `coef` (NULL: nowhere).  root: v has the factor W^(1/2). */
static void plain_take(const fe_basis *b, const fe_basis_factor *f, bool root, double *v, int64_t k,
                       int64_t c, double *coef, double *norm2)
{
    double *const m = calloc((size_t)(f->levels * f->width * k + 1), sizeof *m);
    fe_basis_factor own = *f;
    own.first = 0;
    for (int j = 0; j < f->width; j++) {
        plain_sums(b, &own, j, root, v, k, c, m);
        for (int64_t i = 0; i < b->g->n; i++) {
            const int64_t l = plain_level(b, f, i);
            v[i * k + c] -= (root ? sqrt(plain_row_weight(b, i)) : 1) * fe_basis_value(f, l, i, j) *
                            m[(l * f->width + j) * k + c];
        }
        for (int64_t l = 0; l < f->levels; l++) {
            const double x = m[(l * f->width + j) * k + c];
            *norm2 += x * x;
            if (coef)
                coef[(f->first + l * f->width + j) * k + c] += x;
        }
    }
    free(m);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int64_t plain_caller(const fe_basis *b, int64_t row)
{
    return b->g->order ? (int64_t)b->g->order[row] : row;
}

static frg_status plain_load(fe_row_lsmr *f, const frg_array *a, int64_t first, int64_t k)
{
    plain_row_calls++;
    for (int64_t e = 0; e < f->basis.g->n * k; e++)
        f->z[e] = frgi_array_get(a, plain_caller(&f->basis, e / k), first + e % k) *
                  f->state[first + e % k].scale;
    return FRG_OK;
}

static frg_status plain_store(fe_row_lsmr *f, const frg_array *a, int64_t first, int64_t k)
{
    if (!CHECK(a->dtype == FRG_F64))
        return FRG_BAD_ARG;
    for (int64_t e = 0; e < f->basis.g->n * k; e++)
        ((double *)frgi_array_base(
            a))[plain_caller(&f->basis, e / k) * a->stride[0] + (first + e % k) * a->stride[1]] =
            f->z[e] * f->state[first + e % k].unscale;
    return FRG_OK;
}

static frg_status plain_moments_of(fe_row_lsmr *f, int64_t k, double *norm2, double *square)
{
    const fe_basis *const b = &f->basis;
    for (int64_t c = 0; c < k; c++) {
        double sum = 0, total = 0;
        norm2[c] = square[c] = 0;
        for (int64_t i = 0; i < b->g->n; i++) {
            const double w = plain_row_weight(b, i), z = f->z[i * k + c];
            total += w;
            sum += w * z;
            norm2[c] += w * z * z;
        }
        const double mean = b->centred && total > 0 ? sum / total : 0;
        for (int64_t i = 0; i < b->g->n; i++)
            square[c] += plain_row_weight(b, i) * pow(f->z[i * k + c] - mean, 2);
    }
    return FRG_OK;
}

static frg_status plain_end(fe_row_lsmr *f, const frg_array *a, int64_t first, int64_t k)
{
    (void)f, (void)a, (void)first, (void)k;
    return FRG_OK;
}

static frg_status plain_take_out(fe_row_lsmr *f, int64_t k, fe_taken_out how, double *effect)
{
    const bool with = how != FE_PROJECTED;
    const fe_basis *const b = &f->basis;
    double unused = 0;
    for (int64_t e = 0; e < b->n_elim_columns * k; e++)
        f->elim[e] = 0;
    for (int64_t c = 0; c < k; c++) {
        double most = 0;
        for (int64_t i = 0; i < b->g->n; i++)
            for (int q = 1; with && q < plain_blocks(b); q++) {
                const double of = plain_of_row(b, plain_block(b, q), i, f->c, k, c);
                f->z[i * k + c] -= of;
                most = fmax(most, fabs(of));
            }
        plain_take(b, &b->elim, false, f->z, k, c, f->elim, &unused);
        for (int64_t i = 0; i < b->g->n; i++)
            most = fmax(most, fabs(plain_of_row(b, &b->elim, i, f->elim, k, c)));
        plain_take(b, &b->elim, false, f->z, k, c, f->elim, &unused);
        if (effect)
            effect[c] = most;
    }
    return FRG_OK;
}

static frg_status plain_audit_rows(fe_row_lsmr *f, int64_t k, fe_row_audit out[])
{
    const fe_basis *const b = &f->basis;
    double *const own = calloc((size_t)(b->n_elim_columns * k + 1), sizeof *own);
    for (int64_t c = 0; c < k; c++) {
        fe_row_audit a = {.factor = &b->elim};
        for (int64_t i = 0; i < b->g->n; i++)
            a.square += plain_row_weight(b, i) * f->z[i * k + c] * f->z[i * k + c];
        for (int q = 0; q < plain_blocks(b); q++) {
            const fe_basis_factor *const block = plain_block(b, q);
            double *const g = q == 0 ? own : f->s;
            for (int j = 0; j < block->width; j++) {
                plain_sums(b, block, j, false, f->z, k, c, g);
                for (int64_t l = 0; l < block->levels; l++) {
                    const double x = g[(block->first + l * block->width + j) * k + c],
                                 mean = fabs(x) * block->root[l];
                    *(q == 0 ? &a.eliminated : &a.reduced) += x * x;
                    if (mean > a.mean) {
                        a.mean = mean;
                        a.factor = block;
                        a.level = l;
                    }
                }
            }
        }
        out[c] = a;
    }
    free(own);
    return FRG_OK;
}

static frg_status plain_energy(fe_row_lsmr *f, int64_t k, int64_t c, double *out)
{
    const int64_t n = f->basis.n_reduced;
    double *const one = calloc((size_t)n, sizeof *one), *const two = calloc((size_t)n, sizeof *two);
    for (int64_t j = 0; j < n; j++)
        one[j] = f->s[j * k + c];
    f->precond(f->precond_data, 1, one, two);
    *out = 0;
    for (int64_t j = 0; j < n; j++)
        *out += f->s[j * k + c] * two[j];
    free(one);
    free(two);
    return FRG_OK;
}

static frg_status plain_zero(fe_row_lsmr *f, int64_t k, const bool columns[])
{
    for (int64_t e = 0; e < f->basis.g->n * k; e++)
        f->z[e] = columns[e % k] ? 0 : f->z[e];
    return FRG_OK;
}

static frg_status plain_no_answer(fe_row_lsmr *f, int64_t k)
{
    for (int64_t e = 0; e < f->basis.n_reduced * k; e++)
        f->c[e] = 0;
    return FRG_OK;
}

/** The coefficient's place in the effects of a column: those of the other factors come first. */
static double *plain_effect(const fe_row_lsmr *f, int64_t column, int64_t j)
{
    return &f->effects[column * (f->basis.n_reduced + f->basis.n_elim_columns) + j];
}

static frg_status plain_no_effects(fe_row_lsmr *f, int64_t first, int64_t k)
{
    for (int64_t c = first; c < first + k; c++)
        for (int64_t j = 0; j < f->basis.n_reduced + f->basis.n_elim_columns; j++)
            *plain_effect(f, c, j) = 0;
    return FRG_OK;
}

static frg_status plain_add_effects(fe_row_lsmr *f, int64_t first, int64_t k)
{
    const int64_t n = f->basis.n_reduced;
    for (int64_t c = 0; c < k; c++)
        for (int64_t j = 0; j < n + f->basis.n_elim_columns; j++)
            *plain_effect(f, first + c, j) +=
                (j < n ? f->c[j * k + c] : f->elim[(j - n) * k + c]) * f->state[first + c].unscale;
    return FRG_OK;
}

/** y <- (I - U U') A_r c */
static void plain_times(const void *data, int64_t k, const double *coef, double *y)
{
    const fe_basis *const b = ((const fe_basis_work *)data)->b;
    double unused = 0;
    for (int64_t c = 0; c < k; c++) {
        for (int64_t i = 0; i < b->g->n; i++) {
            y[i * k + c] = 0;
            for (int q = 1; q < plain_blocks(b); q++)
                y[i * k + c] += sqrt(plain_row_weight(b, i)) *
                                plain_of_row(b, plain_block(b, q), i, coef, k, c);
        }
        plain_take(b, &b->elim, true, y, k, c, NULL, &unused);
    }
}

/** x <- A_r' (I - U U') y */
static void plain_transposed(const void *data, int64_t k, const double *y, double *x)
{
    const fe_basis *const b = ((const fe_basis_work *)data)->b;
    const size_t count = (size_t)(b->g->n * k);
    double *const v = calloc(count, sizeof *v), unused = 0;
    memcpy(v, y, count * sizeof *v);
    for (int64_t c = 0; c < k; c++) {
        plain_take(b, &b->elim, true, v, k, c, NULL, &unused);
        for (int q = 1; q < plain_blocks(b); q++)
            for (int j = 0; j < plain_block(b, q)->width; j++)
                plain_sums(b, plain_block(b, q), j, true, v, k, c, x);
    }
    free(v);
}

static frg_status plain_start_lsmr(fe_row_lsmr *f, frg_context *ctx, int64_t k, bool preconditioned,
                                   const frgi_lsmr_rule *rule, frg_lsmr_column reports[])
{
    const frgi_lsmr_operator op = {.times = plain_times,
                                   .transposed = plain_transposed,
                                   .data = &f->work,
                                   .precond = preconditioned ? f->precond : NULL,
                                   .precond_data = f->precond_data};
    for (int64_t e = 0; e < f->basis.g->n * k; e++)
        f->z[e] *= sqrt(plain_row_weight(&f->basis, e / k));
    f->lsmr.k = k;
    frgi_lsmr_start(&f->lsmr, ctx, &op, rule, f->z, reports);
    return FRG_OK;
}

static frg_status plain_step_lsmr(fe_row_lsmr *f)
{
    return frgi_lsmr_step(&f->lsmr);
}

static frg_status plain_finish_lsmr(fe_row_lsmr *f)
{
    frgi_lsmr_finish(&f->lsmr, f->c);
    return FRG_OK;
}

/** One factor after another until what a sweep takes out is small. */
static frg_status plain_project_rows(fe_row_lsmr *f, frg_context *ctx, int64_t k,
                                     const fe_map_rule *rule)
{
    const fe_basis *const b = &f->basis;
    double before[BASIS_MAX_LANES], unused = 0;
    (void)ctx;
    (void)plain_no_answer(f, k);
    f->map.k = k;
    for (int64_t c = 0; c < k; c++) {
        fe_map_lane *const l = &f->map.lane[c];
        *l = (fe_map_lane){.stop = FRG_LSMR_RUNNING, .lambda = (double)NAN};
        for (int64_t sweep = 0; l->stop == FRG_LSMR_RUNNING; sweep++) {
            double square = 0, norm2 = 0;
            plain_take(b, &b->elim, false, f->z, k, c, NULL, &unused);
            for (int q = 1; q < plain_blocks(b); q++)
                plain_take(b, plain_block(b, q), false, f->z, k, c, f->c, &norm2);
            for (int64_t i = 0; i < b->g->n; i++)
                square += plain_row_weight(b, i) * f->z[i * k + c] * f->z[i * k + c];
            before[c] = sweep == 0 ? square : before[c];
            l->sweeps = sweep + 1;
            l->stop = norm2 <= rule->atol * rule->atol * square       ? FRG_LSMR_LEAST_SQUARES
                      : square <= rule->atol * rule->atol * before[c] ? FRG_LSMR_CONSISTENT
                      : l->sweeps >= rule->max_sweeps                 ? FRG_LSMR_MAX_ITER
                                                                      : FRG_LSMR_RUNNING;
        }
    }
    return FRG_OK;
}

/** Intercepts of all levels, then slope after slope: T_l alpha = the coefficients. */
static frg_status plain_effects_of(const fe_row_lsmr *f, int64_t column, double *alpha)
{
    const fe_basis *const b = &f->basis;
    for (int q = 0; q < b->g->n_factors; q++) {
        const fe_basis_factor *const block = frgi_basis_factor(b, q);
        const int64_t first = block->position < 0 ? b->n_reduced : block->first;
        frgi_basis_effects(b, block, plain_effect(f, column, first), alpha);
        alpha += block->levels * block->width;
    }
    return FRG_OK;
}

static const struct fe_row_lsmr_steps plain_row_steps = {.load = plain_load,
                                                         .again = plain_load,
                                                         .store = plain_store,
                                                         .end = plain_end,
                                                         .moments = plain_moments_of,
                                                         .take_out = plain_take_out,
                                                         .audit = plain_audit_rows,
                                                         .energy = plain_energy,
                                                         .zero = plain_zero,
                                                         .no_answer = plain_no_answer,
                                                         .no_effects = plain_no_effects,
                                                         .add_effects = plain_add_effects,
                                                         .start = plain_start_lsmr,
                                                         .step = plain_step_lsmr,
                                                         .finish = plain_finish_lsmr,
                                                         .project = plain_project_rows,
                                                         .effects = plain_effects_of};

#endif
