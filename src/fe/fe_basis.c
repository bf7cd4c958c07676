/* fe_basis.c - makes the columns of each level orthonormal, and takes coefficients back to
 * intercept and slopes.
 *
 * Modified Gram-Schmidt with one re-orthogonalisation ("twice is enough", Giraud, Langou and
 * Rozloznik 2005), all levels of a factor at once: a pass over the rows adds the products up by
 * level, another subtracts. For column j and every level, with z scaled by a power of two so that
 * squares neither overflow nor vanish:
 *
 *     twice, for i < j:  t = sum w phi_i z_j;   z_j <- z_j - t phi_i;   T_ij <- T_ij + t
 *     T_jj = ||z_j||,    phi_j = z_j / T_jj,    or 0 where T_jj <= DEPENDENT ||z_j at the start||
 *
 * Dangers: z nearly constant in a level beside the intercept (calendar years) loses digits to
 * cancellation, which the second pass restores; z of 1e-150 or 1e150.  Cost: O(n width^2) a factor,
 * at plan time.
 */
#include "fe/fe_basis.h"

#include <math.h>
#include <string.h>

enum { EXPONENT_LIMIT = 1000 };
static const double DEPENDENT = 1e-9;

/* ---- one factor ------------------------------------------------------------------------------ */

/** What Gram-Schmidt works with: a value a level, and the level of every row. */
typedef struct {
    const fe_rows *g;
    fe_basis_factor *f;
    int32_t *level; /* n */
    double *sum;    /* levels */
    double *before; /* levels: norm of the column as it came */
} builder;

static void find_levels(const builder *m)
{
    const fe_rows *g = m->g;
    if (m->f->position < 0) {
        for (int64_t u = 0; u < g->n_elim; u++) {
            for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
                m->level[i] = (int32_t)u;
            }
        }
        return;
    }
    for (int64_t i = 0; i < g->n; i++) {
        m->level[i] = (int32_t)(g->index[i * g->n_remaining + m->f->position] - m->f->index_base);
    }
}

static double weight_of(const fe_rows *g, int64_t i)
{
    return g->weight ? g->weight[i] : 1;
}

/** phi_j of row i. */
static double value_of(const builder *m, int64_t i, int j)
{
    return fe_basis_value(m->f, m->level[i], i, j);
}

/** sum[l] = sum over the level of w phi_i phi_j */
static void add_products(const builder *m, int i, int j)
{
    memset(m->sum, 0, (size_t)m->f->levels * sizeof *m->sum);
    for (int64_t r = 0; r < m->g->n; r++) {
        m->sum[m->level[r]] += weight_of(m->g, r) * value_of(m, r, i) * value_of(m, r, j);
    }
}

/** Brings z into phi, its largest value of every level between 1/2 and 1. */
static frg_status take_slope(const builder *m, frg_context *ctx, const frg_slope *slope, int number,
                             int s)
{
    const fe_rows *g = m->g;
    fe_basis_factor *f = m->f;
    memset(m->sum, 0, (size_t)f->levels * sizeof *m->sum);
    for (int64_t i = 0; i < g->n; i++) {
        const int64_t row = g->order ? g->order[i] : i;
        const double z = slope->z[row];
        if (!isfinite(z)) {
            frgi_at(ctx, "slope %d, row %lld", number + 1, (long long)row + 1);
            FAIL(ctx, E_NOT_FINITE, "slope %d, row %lld holds %g", number + 1, (long long)row + 1,
                 z);
        }
        const double size = weight_of(g, i) > 0 ? fabs(z) : 0;
        m->sum[m->level[i]] = size > m->sum[m->level[i]] ? size : m->sum[m->level[i]];
        f->phi[i * f->slopes + s] = z;
    }
    for (int64_t l = 0; l < f->levels; l++) {
        int e = 0;
        frexp(m->sum[l], &e);
        e = e > EXPONENT_LIMIT ? EXPONENT_LIMIT : e < -EXPONENT_LIMIT ? -EXPONENT_LIMIT : e;
        f->scale[l * f->slopes + s] = ldexp(1, -e);
    }
    for (int64_t i = 0; i < g->n; i++) {
        f->phi[i * f->slopes + s] *= f->scale[m->level[i] * f->slopes + s];
    }
    return FRG_OK;
}

/** The number, from 1 on, of the first slope that has the same values. */
static int identify(const fe_rows *g, const frg_slope *slopes, int k)
{
    int same = 0;
    while (same < k && slopes[same].z != slopes[k].z &&
           memcmp(slopes[same].z, slopes[k].z, (size_t)g->n * sizeof *slopes[k].z) != 0) {
        same++;
    }
    return same + 1;
}

/** How many of the first k slopes have values that none before them has. */
static int count_values(const fe_rows *g, const frg_slope *slopes, int k)
{
    int count = 0;
    for (int j = 0; j < k; j++) {
        count += identify(g, slopes, j) == j + 1;
    }
    return count;
}

/** phi_j <- phi_j - sum[l] phi_i, and the products into T. */
static void subtract(const builder *m, int i, int j)
{
    const fe_basis_factor *f = m->f;
    for (int64_t r = 0; r < m->g->n; r++) {
        f->phi[r * f->slopes + j - f->intercept] -= m->sum[m->level[r]] * value_of(m, r, i);
    }
    for (int64_t l = 0; l < f->levels; l++) {
        f->triangle[(l * f->width + i) * f->width + j] += m->sum[l];
    }
}

/** Column j, whose z stands in phi, becomes orthonormal or is dropped, level by level. */
static void orthonormalise(const builder *m, int j)
{
    fe_basis_factor *f = m->f;
    add_products(m, j, j);
    for (int64_t l = 0; l < f->levels; l++) {
        m->before[l] = sqrt(m->sum[l]);
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < j; i++) {
            add_products(m, i, j);
            subtract(m, i, j);
        }
    }
    add_products(m, j, j);
    for (int64_t l = 0; l < f->levels; l++) {
        const double norm = sqrt(m->sum[l]);
        const bool kept = norm > DEPENDENT * m->before[l];
        f->rank += kept;
        f->triangle[(l * f->width + j) * f->width + j] = kept ? norm : 0;
        m->sum[l] = kept ? 1 / norm : 0;
    }
    for (int64_t i = 0; i < m->g->n; i++) {
        f->phi[i * f->slopes + j - f->intercept] *= m->sum[m->level[i]];
    }
}

static void fill_roots(const fe_rows *g, fe_basis_factor *f)
{
    const double *inverse = f->position < 0 ? g->elim_inverse : g->level_inverse + f->index_base;
    for (int64_t l = 0; l < f->levels; l++) {
        f->root[l] = sqrt(inverse[l]);
        f->rank += f->intercept && f->root[l] > 0;
    }
}

static frg_status build_factor(frg_context *ctx, const fe_rows *g, fe_basis_factor *f,
                               const frg_slope *slopes, int n_slopes)
{
    fill_roots(g, f);
    if (f->slopes == 0) {
        return FRG_OK;
    }
    builder m = {.g = g, .f = f};
    frg_status status;
    TRY_TO(done, NEW(ctx, &m.level, g->n, "levels of the rows"));
    TRY_TO(done, NEW(ctx, &m.sum, f->levels, "sums of the levels"));
    TRY_TO(done, NEW(ctx, &m.before, f->levels, "norms of the levels"));
    find_levels(&m);
    memset(f->triangle, 0, (size_t)(f->levels * f->width * f->width) * sizeof *f->triangle);
    for (int64_t l = 0; f->intercept && l < f->levels; l++) {
        f->triangle[l * f->width * f->width] = f->root[l] > 0 ? 1 / f->root[l] : 0;
    }
    for (int k = 0, s = 0; k < n_slopes; k++) {
        if (slopes[k].factor == f->factor) {
            f->slope_id[s] = identify(g, slopes, k);
            f->z_place[s] = count_values(g, slopes, f->slope_id[s] - 1);
            TRY_TO(done, take_slope(&m, ctx, &slopes[k], k, s));
            orthonormalise(&m, f->intercept + s++);
        }
    }
done:
    DROP(ctx, &m.level);
    DROP(ctx, &m.sum);
    DROP(ctx, &m.before);
    return status;
}

/* ---- the basis ------------------------------------------------------------------------------- */

static void lay_out_factor(frgi_arena *a, const fe_rows *g, fe_basis_factor *f)
{
    f->root = TAKE(a, double, f->levels);
    f->phi = TAKE(a, double, frgi_mul((size_t)g->n, (size_t)f->slopes));
    f->triangle = f->slopes ? TAKE(a, double, f->levels * f->width * f->width) : NULL;
    f->scale = TAKE(a, double, f->levels * f->slopes);
    f->slope_id = TAKE(a, int, f->slopes);
    f->z_place = TAKE(a, int, f->slopes);
}

static fe_basis_factor shape_of(const fe_rows *g, int q, const frg_slope *slopes, int n_slopes,
                                uint64_t no_intercept)
{
    fe_basis_factor f = {.factor = q,
                         .position = fe_remaining_place(g, q),
                         .intercept = !(no_intercept >> q & 1),
                         .levels = g->factor[q].levels,
                         .index_base = g->factor[q].first};
    for (int k = 0; k < n_slopes; k++) {
        f.slopes += slopes[k].factor == q;
    }
    f.width = f.intercept + f.slopes;
    return f;
}

static void lay_out(frgi_arena *a, fe_basis *b, const frg_slope *slopes, int n_slopes,
                    uint64_t no_intercept, bool keep_values)
{
    const fe_rows *g = b->g;
    b->root_weight = g->weight ? TAKE(a, double, g->n) : NULL;
    b->z = keep_values ? TAKE(a, double, frgi_mul((size_t)g->n, (size_t)b->n_z)) : NULL;
    b->remaining = TAKE(a, fe_basis_factor, g->n_remaining);
    b->n_reduced = 0;
    b->centred = false;
    for (int q = 0; q < g->n_factors; q++) {
        fe_basis_factor f = shape_of(g, q, slopes, n_slopes, no_intercept);
        b->centred = b->centred || f.intercept;
        f.first = f.position < 0 ? 0 : b->n_reduced;
        b->n_reduced += f.position < 0 ? 0 : f.levels * f.width;
        lay_out_factor(a, g, &f);
        if (f.position < 0) {
            b->elim = f;
        } else if (a->base) {
            b->remaining[f.position] = f;
        }
    }
    b->n_elim_columns = b->elim.levels * b->elim.width;
}

static frg_status check_slopes(frg_context *ctx, const fe_rows *g, const frg_slope *slopes,
                               int n_slopes, uint64_t no_intercept)
{
    REQUIRE(ctx, n_slopes >= 0 && (slopes || n_slopes == 0), "%d slopes, but no array of them",
            n_slopes);
    for (int k = 0; k < n_slopes; k++) {
        REQUIRE(ctx, slopes[k].factor >= 0 && slopes[k].factor < g->n_factors,
                "slope %d belongs to factor %d, there are %d", k + 1, slopes[k].factor + 1,
                g->n_factors);
        REQUIRE(ctx, slopes[k].z || g->n == 0, "slope %d has no values", k + 1);
    }
    for (int q = 0; q < 64 && no_intercept >> q; q++) {
        REQUIRE(ctx, q < g->n_factors || !(no_intercept >> q & 1),
                "no_intercept names factor %d, there are %d", q + 1, g->n_factors);
        bool any = !(no_intercept >> q & 1);
        for (int k = 0; k < n_slopes; k++) {
            any = any || slopes[k].factor == q;
        }
        REQUIRE(ctx, any, "factor %d has neither an intercept nor slopes", q + 1);
    }
    return FRG_OK;
}

static void copy_values(const fe_basis *b, const frg_slope *slopes, int n_slopes)
{
    const fe_rows *const g = b->g;
    double *to = b->z;
    for (int k = 0; k < n_slopes; k++) {
        const bool own = identify(g, slopes, k) == k + 1;
        for (int64_t i = 0; own && i < g->n; i++) {
            *to++ = slopes[k].z[g->order ? g->order[i] : i];
        }
    }
}

frg_status frgi_basis_create(fe_basis *b, frg_context *ctx, const fe_rows *g,
                             const frg_slope *slopes, int n_slopes, uint64_t no_intercept,
                             bool keep_values)
{
    *b = (fe_basis){.g = g};
    TRY(check_slopes(ctx, g, slopes, n_slopes, no_intercept));
    b->n_z = count_values(g, slopes, n_slopes);
    frgi_arena fresh = {0};
    lay_out(&fresh, b, slopes, n_slopes, no_intercept, keep_values);
    TRY(frgi_arena_open(&fresh, ctx, "orthonormal columns"));
    lay_out(&fresh, b, slopes, n_slopes, no_intercept, keep_values);
    b->arena = fresh;
    if (keep_values) {
        copy_values(b, slopes, n_slopes);
    }
    for (int64_t i = 0; i < g->n; i++) {
        b->total_weight += weight_of(g, i);
        if (b->root_weight) {
            b->root_weight[i] = sqrt(g->weight[i]);
        }
    }
    frg_status status;
    TRY_TO(failed, build_factor(ctx, g, &b->elim, slopes, n_slopes));
    for (int r = 0; r < g->n_remaining; r++) {
        TRY_TO(failed, build_factor(ctx, g, &b->remaining[r], slopes, n_slopes));
    }
    return FRG_OK;
failed:
    frgi_basis_destroy(b, ctx);
    return status;
}

size_t frgi_basis_shape(fe_basis *b, const fe_rows *g, const frg_slope *slopes, int n_slopes,
                        uint64_t no_intercept, bool keep_values)
{
    frgi_arena a = {0};
    *b = (fe_basis){.g = g, .n_z = n_slopes};
    lay_out(&a, b, slopes, n_slopes, no_intercept, keep_values);
    return a.used;
}

void frgi_basis_destroy(fe_basis *b, frg_context *ctx)
{
    frgi_arena_close(&b->arena, ctx);
}

const fe_basis_factor *frgi_basis_factor(const fe_basis *b, int q)
{
    const int r = fe_remaining_place(b->g, q);
    return r < 0 ? &b->elim : &b->remaining[r];
}

void frgi_basis_effects(const fe_basis *b, const fe_basis_factor *f, const double *coef,
                        double *alpha)
{
    const int64_t width = f->width, levels = f->levels;
    for (int64_t l = 0; l < levels; l++) {
        const double *c = coef + l * width, *t = f->triangle + l * width * width;
        double *a = alpha + (f->position < 0 && b->g->elim_level ? b->g->elim_level[l] : l);
        if (!f->triangle) {
            a[0] = c[0] * f->root[l];
            continue;
        }
        for (int64_t j = width - 1; j >= 0; j--) { /* T a = c, backwards; dropped columns give 0 */
            double left = c[j];
            for (int64_t i = j + 1; i < width; i++) {
                left -= t[j * width + i] * a[i * levels];
            }
            a[j * levels] = t[j * width + j] > 0 ? left / t[j * width + j] : 0;
        }
        for (int64_t s = 0; s < f->slopes; s++) {
            a[(f->intercept + s) * levels] *= f->scale[l * f->slopes + s];
        }
    }
}
