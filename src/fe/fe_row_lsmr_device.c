/* fe_row_lsmr_device.c - the steps of the row-space path (fe_row_lsmr_plan.h) on columns that lie
 * on a device, whose passes make right-hand sides, residuals and audits (fe_passes_device.c).
 *
 * Effects and sums of the reduced unknowns lie on this machine.  A device has dummies D_r in the
 * intercepts' place:
 *
 *     D_r a = phi_r c   for a = c / sqrt(N_l),       phi_r' W r = (D_r' W r) / sqrt(N_l)
 *
 * Columns of slopes it has as they are.
 */
#include <math.h>
#include <string.h>

#include "fe/fe_row_lsmr_plan.h"

/** Columns that the next step is on. */
static int columns_of(const fe_row_lsmr *f)
{
    return f->there.k < 0 ? f->there.block.lanes : 1;
}

/** to <- from, where a level's first column is its intercept over sqrt(N_l): effects of D_r from
 *  coefficients of phi_r, and sums of phi_r from those of D_r. */
static void times_root(const fe_row_lsmr *f, const double *from, double *to)
{
    const int64_t k = columns_of(f);
    for (int r = 0; r < f->basis.g->n_remaining; r++) {
        const fe_basis_factor *const q = &f->basis.remaining[r];
        for (int64_t j = 0; j < q->levels * q->width; j++) {
            const double root = j % q->width < q->intercept ? q->root[j / q->width] : 1;
            for (int64_t c = 0; c < k; c++) {
                const int64_t e = (q->first + j) * k + c;
                to[e] = from[e] * root;
            }
        }
    }
}

/** largest <- the largest |effect of an intercept|, where that is more.  Beside slopes it is the
 *  mean of a factor's effects over a level, and the device has looked at these row by row. */
static void raise_intercepts(const fe_row_lsmr *f, const double *a, double *largest)
{
    const int64_t k = columns_of(f);
    for (int r = 0; r < f->basis.g->n_remaining; r++) {
        const fe_basis_factor *const q = &f->basis.remaining[r];
        for (int64_t l = 0; l < q->levels * q->intercept; l++) {
            for (int64_t c = 0; c < k; c++) {
                const double effect = fabs(a[(q->first + l * q->width) * k + c]);
                largest[c] = fmax(largest[c], effect);
            }
        }
    }
}

/** A block as it came. */
static frg_status take(fe_row_lsmr *f, const frg_array *a, int64_t first, int64_t k, fe_moments *m)
{
    fe_row_lsmr_there *const t = &f->there;
    double factor[FE_MAX_LANES];
    const fe_block x = fe_block_of(a, first, (int)k);
    t->block = (fe_device_block){first, first, (int)k, (int)k};
    t->k = -1;
    t->first = true;
    t->tried = false;
    for (int64_t c = 0; c < k; c++) {
        factor[c] = f->state[first + c].scale;
    }
    TRY(frgi_fe_device_columns_take(f->device, &t->block, &x));
    TRY(frgi_fe_device_columns_scale(f->device, &t->block, factor));
    return frgi_fe_device_rhs(f->device, &t->block, -1, f->s, m);
}

static frg_status load(fe_row_lsmr *f, const frg_array *a, int64_t first, int64_t k)
{
    fe_row_lsmr_there *const t = &f->there;
    fe_moments m;
    TRY(take(f, a, first, k, &m));
    for (int64_t c = 0; c < k; c++) {
        t->norm2[c] = m.square[c] + m.weight[c] * m.shift[c] * m.shift[c];
        t->square[c] = f->basis.centred ? m.square[c] : t->norm2[c];
    }
    return FRG_OK;
}

frg_status frgi_fe_row_lsmr_largest(fe_row_lsmr *f, const frg_array *a, int64_t first, int64_t k,
                                    double *most)
{
    fe_moments m;
    TRY(take(f, a, first, k, &m));
    for (int64_t c = 0; c < k; c++) {
        most[c] = isfinite(m.square[c]) ? m.max_abs[c] : (double)NAN;
    }
    return FRG_OK;
}

static frg_status again(fe_row_lsmr *f, const frg_array *a, int64_t first, int64_t k)
{
    fe_row_lsmr_there *const t = &f->there;
    (void)a;
    t->k = k == t->block.lanes ? -1 : (int)(first - t->block.first);
    return FRG_OK;
}

/** The residual without the effects t->a, and what is said of it. */
static frg_status pass(fe_row_lsmr *f, bool with, bool tried, double *effect)
{
    fe_row_lsmr_there *const t = &f->there;
    const fe_device_residuals what = tried      ? FE_RESIDUALS_TRIED
                                     : t->first ? FE_RESIDUALS_FIRST
                                                : FE_RESIDUALS_ADDED;
    fe_elim_audit audit;
    TRY(frgi_fe_device_residual(f->device, &t->block, t->k, what, with ? t->a : NULL, f->s,
                                &audit));
    times_root(f, f->s, f->s);
    t->first = t->first && tried;
    t->tried = tried;
    for (int c = 0; c < columns_of(f); c++) {
        t->audit.square[c] = t->square[c] = t->norm2[c] = audit.square[c];
        t->audit.gradient[c] = audit.gradient[c];
        t->audit.mean[c] = audit.mean[c];
        t->audit.worst[c] = audit.worst[c];
        if (effect) {
            effect[c] = audit.effect[c];
        }
    }
    return FRG_OK;
}

static frg_status take_out(fe_row_lsmr *f, int64_t k, fe_taken_out how, double *effect)
{
    const bool with = how != FE_PROJECTED;
    double own[FE_MAX_LANES];
    if (with) {
        times_root(f, f->c, f->there.a);
    }
    TRY(pass(f, with, how == FE_TRIED, own));
    if (with) {
        raise_intercepts(f, f->there.a, own);
    }
    if (effect) {
        memcpy(effect, own, (size_t)k * sizeof *own);
    }
    return FRG_OK;
}

/** What was tried is what is left from now on. */
static frg_status store(fe_row_lsmr *f, const frg_array *a, int64_t first, int64_t k)
{
    (void)a, (void)first, (void)k;
    return f->there.tried ? pass(f, true, false, NULL) : FRG_OK;
}

static frg_status end(fe_row_lsmr *f, const frg_array *a, int64_t first, int64_t k)
{
    double factor[FE_MAX_LANES];
    const fe_block x = fe_block_of(a, first, (int)k);
    for (int64_t c = 0; c < k; c++) {
        factor[c] = f->state[first + c].unscale;
    }
    TRY(frgi_fe_device_columns_scale(f->device, &f->there.block, factor));
    return frgi_fe_device_columns_give(f->device, &f->there.block, &x);
}

static frg_status moments(fe_row_lsmr *f, int64_t k, double *norm2, double *square)
{
    memcpy(norm2, f->there.norm2, (size_t)k * sizeof *norm2);
    memcpy(square, f->there.square, (size_t)k * sizeof *square);
    return FRG_OK;
}

static frg_status audit(fe_row_lsmr *f, int64_t k, fe_row_audit out[])
{
    for (int64_t c = 0; c < k; c++) {
        out[c] = frgi_fe_row_lsmr_audit(&f->basis, &f->there.audit, f->s, k, c);
    }
    return FRG_OK;
}

/** For the solve: without a right-hand side and its gradient. */
static frg_status zero(fe_row_lsmr *f, int64_t k, const bool columns[])
{
    for (int64_t c = 0; c < k; c++) {
        f->there.audit.square[c] = columns[c] ? 0 : f->there.audit.square[c];
    }
    for (int64_t e = 0; e < f->basis.n_reduced * k; e++) {
        f->s[e] = columns[e % k] ? 0 : f->s[e];
    }
    return FRG_OK;
}

static frg_status effects(const fe_row_lsmr *f, int64_t column, double *alpha)
{
    const fe_basis *const b = &f->basis;
    const double *const coef = f->effects + column * frgi_fe_row_lsmr_kept(f);
    const int64_t width = f->there.width, first = column / width * width;
    const int64_t left = f->columns - first, lanes = left < width ? left : width;
    const fe_device_block block = {first, first, (int)lanes, (int)lanes};
    for (int q = 0; q < b->g->n_factors; q++) {
        const fe_basis_factor *const of = frgi_basis_factor(b, q);
        if (of->position < 0) {
            TRY(frgi_fe_device_effects(f->device, &block, (int)(column - first),
                                       f->state[column].unscale, alpha));
        } else {
            frgi_basis_effects(b, of, coef + of->first, alpha);
        }
        alpha += of->levels * of->width;
    }
    return FRG_OK;
}

const struct fe_row_lsmr_steps frgi_fe_row_lsmr_device_steps = {
    .load = load,
    .again = again,
    .store = store,
    .end = end,
    .moments = moments,
    .take_out = take_out,
    .audit = audit,
    .zero = zero,
    .no_answer = frgi_fe_row_lsmr_no_answer,
    .no_effects = frgi_fe_row_lsmr_no_effects,
    .add_effects = frgi_fe_row_lsmr_add_effects,
    .effects = effects};
