/* gw_vertex_spectral.c - starts on many points where distances alone mislead: adjacency matrices,
 * whose rows hardly differ, and points of many dimensions, whose far distances are mostly noise.
 *
 * spectral   -sum_rs (u_r' a)(v_s' b) / ((l_r - m_s)^2 / l^2 + BAND^2) u_r v_s' of the eigenvectors
 *            u of C, v of D and their eigenvalues l, m per point; l^2 the mean of the l_r^2 (Fan,
 *            Mao, Wu and Xu 2019).  Signs of eigenvectors cancel, and vectors of eigenvalues that
 *            lie close are not distinguished
 * near       the annealed start on 1 - exp(-(x / r)^2), r a quantile of the distances of a side:
 *            what is near counts, what is far is all alike
 *
 * Both read distances of rank FRGI_RANK (gw_vertex_anneal.c).
 */
#include "gw/gw_vertex.h"

#include <math.h>
#include <string.h>

#include "linalg/blas.h"

enum {
    SAMPLED = 128, /* points of a side between which the distances of a quantile are */
    STEPS = 20     /* of subspace iteration: adjacency matrices have eigenvalues that lie close */
};
#define BAND 0.3

/* ---- spectra --------------------------------------------------------------------------------- */

static const char *const what = "spectra of distances";

/** Eigenvectors by rows of a, values ascending. */
static frg_status eigen_of(frg_context *ctx, int64_t rank, double *a, double *values)
{
    const int64_t n_work = 1 + 6 * rank + 2 * rank * rank, n_integers = 3 + 5 * rank;
    double *work = NULL;
    int *integers = NULL;
    bool done = false;
    frg_status status = FRG_OK;
    TRY_TO(end, NEW(ctx, &work, n_work, what));
    TRY_TO(end, NEW(ctx, &integers, n_integers, what));
    const frgi_blas_guard guard = frgi_blas_begin();
    frgi_blas_single();
    done =
        frgi_dsyevd((int)rank, a, (int)rank, values, work, (int)n_work, integers, (int)n_integers);
    frgi_blas_end(guard);
    if (!done) { /* no spectrum: the start is that of equal costs */
        memset(a, 0, (size_t)(rank * rank) * sizeof *a);
    }
end:
    DROP(ctx, &work);
    DROP(ctx, &integers);
    return status;
}

/** Q W Q' = (Q V) diag (Q V)' */
static frg_status turn_side(frgi_spectrum *e, const frgi_lifted *l, const frgi_spaces *s, int side,
                            const frgi_products *w)
{
    const int64_t n = side ? s->m : s->n, ld = side ? s->y.ld : s->x.ld, rank = l->rank;
    double *inner = NULL;
    float *turn = NULL;
    frg_status status = FRG_OK;
    TRY_TO(done, NEW0(s->ctx, &e->vectors, frgi_mul((size_t)rank, (size_t)ld), what));
    TRY_TO(done, NEW(s->ctx, &inner, rank * rank, what));
    TRY_TO(done, NEW(s->ctx, &turn, rank * rank, what));
    for (int64_t p = 0; p < rank; p++) {
        for (int64_t q = 0; q < rank; q++) {
            inner[p * rank + q] =
                0.5 * ((double)l->inner[p * l->ld + q] + (double)l->inner[q * l->ld + p]);
        }
    }
    TRY_TO(done, eigen_of(s->ctx, rank, inner, e->value));
    for (int64_t q = 0; q < rank * rank; q++) {
        turn[q % rank * rank + q / rank] = (float)inner[q];
    }
    frgi_costs_add(w, &(frgi_costs){e->vectors, rank, n, ld, true}, turn, rank, l->columns, ld,
                   rank, 1);
done:
    DROP(s->ctx, &inner);
    DROP(s->ctx, &turn);
    return status;
}

static frg_status open_side(frgi_spectrum *e, const frgi_spaces *s, int side,
                            const frgi_products *w)
{
    const frgi_costs *const c = side ? &s->y : &s->x;
    const double *const weight = side ? s->b : s->a;
    frgi_lifted l[2] = {{0}};
    frg_status status = FRG_OK;
    TRY_TO(done, frgi_lifted_side(&l[0], s, side, c, STEPS));
    TRY_TO(done, turn_side(e, &l[0], s, side, w));
    e->rank = l[0].rank;
    for (int64_t q = 0; q < e->rank; q++) {
        e->value[q] /= (double)c->rows;
        e->sum[q] = 0;
        for (int64_t i = 0; i < c->rows; i++) {
            e->sum[q] += weight[i] * (double)e->vectors[q * c->ld + i];
        }
    }
done:
    frgi_lifted_close(l, s->ctx);
    return status;
}

frg_status frgi_spectra_open(frgi_spectrum e[2], const frgi_spaces *s)
{
    frgi_products w = {0};
    frg_status status = frgi_products_open(&w, s->ctx, frg_threads(s->ctx), true);
    for (int side = 0; side < 2 && status >= 0; side++) {
        status = open_side(&e[side], s, side, &w);
    }
    frgi_products_close(&w);
    return status;
}

void frgi_spectra_close(frgi_spectrum e[2], frg_context *ctx)
{
    DROP(ctx, &e[0].vectors);
    DROP(ctx, &e[1].vectors);
}

void frgi_spectral_costs(const frgi_spectrum e[2], frgi_descent *d)
{
    const frgi_spaces *const s = d->s;
    const int64_t rank = e[0].rank;
    float pairs[FRGI_RANK * FRGI_RANK];
    frgi_costs half = {d->right, rank, s->m, s->y.ld, true};
    double square = 0;
    for (int64_t r = 0; r < rank; r++) {
        square += e[0].value[r] * e[0].value[r] / (double)rank;
    }
    for (int64_t k = 0; k < rank * rank; k++) {
        const int64_t r = k % rank, q = k / rank;
        const double gap = e[0].value[r] - e[1].value[q];
        pairs[k] =
            (float)(e[0].sum[r] * e[1].sum[q] / (gap * gap / fmax(square, 1e-300) + BAND * BAND));
    }
    memset(half.at, 0, (size_t)(rank * half.ld) * sizeof(float));
    frgi_costs_add(&d->products, &half, pairs, rank, e[1].vectors, s->y.ld, rank, 1);
    frgi_costs_set(&d->products, s, &d->k_plan, e[0].vectors, s->x.ld, half.at, s->y.ld, rank, -1);
}

/* ---- near distances -------------------------------------------------------------------------- */

static int by_size(const void *p, const void *q, const void *user)
{
    const float x = *(const float *)p, y = *(const float *)q;
    (void)user;
    return (x > y) - (x < y);
}

/** A quantile of the positive distances between some points; 1 where there is none. */
static frg_status quantile_of(frg_context *ctx, const frgi_costs *c, double share, double *out)
{
    const int64_t n = c->rows, some = n < SAMPLED ? n : SAMPLED;
    float *x = NULL;
    int64_t count = 0;
    TRY(NEW(ctx, &x, some * some, "near distances"));
    for (int64_t i = 0; i < some; i++) {
        for (int64_t k = 0; k < some; k++) {
            const double distance = frgi_costs_get(c, i * n / some, k * n / some);
            x[count] = (float)distance;
            count += distance > 0;
        }
    }
    frgi_sort(x, count, sizeof *x, by_size, NULL);
    *out = count > 0 ? (double)x[(int64_t)(share * (double)(count - 1))] : 1;
    DROP(ctx, &x);
    return FRG_OK;
}

static frg_status near_side(frgi_lifted *l, const frgi_spaces *s, int side, double quantile)
{
    const frgi_costs *const c = side ? &s->y : &s->x;
    frgi_costs near = *c;
    float *at = NULL;
    double range;
    frg_status status = FRG_OK;
    TRY(quantile_of(s->ctx, c, quantile, &range));
    TRY(NEW0(s->ctx, &at, frgi_mul((size_t)c->rows, (size_t)c->ld), "near distances"));
    near.at = at;
#pragma omp parallel for schedule(static) num_threads(frg_threads(s->ctx)) if (c->rows > 64)
    for (int64_t i = 0; i < c->rows; i++) {
        const float *const from = frgi_costs_row(c, i);
        for (int64_t k = 0; k < c->rows; k++) {
            const double x = (double)from[k] / range;
            at[i * c->ld + k] = (float)-expm1(-x * x);
        }
    }
    status = frgi_lifted_side(l, s, side, &near, FRGI_LIFTING);
    DROP(s->ctx, &at);
    return status;
}

frg_status frgi_near_open(frgi_lifted l[2], const frgi_spaces *s, double quantile)
{
    TRY(near_side(&l[0], s, 0, quantile));
    return near_side(&l[1], s, 1, quantile);
}

/** out_i <- (Q W Q' w)_i */
static void lifted_means(const frgi_lifted *l, const double *w, int64_t n, float *out)
{
    double sum[FRGI_RANK] = {0}, turned[FRGI_RANK] = {0};
    for (int64_t i = 0; i < n; i++) {
        for (int64_t r = 0; r < l->rank; r++) {
            sum[r] += w[i] * (double)l->rows[i * l->ld + r];
        }
    }
    for (int64_t k = 0; k < l->rank * l->rank; k++) {
        turned[k / l->rank] +=
            (double)l->inner[k / l->rank * l->ld + k % l->rank] * sum[k % l->rank];
    }
    for (int64_t i = 0; i < n; i++) {
        double mean = 0;
        for (int64_t r = 0; r < l->rank; r++) {
            mean += turned[r] * (double)l->rows[i * l->ld + r];
        }
        out[i] = (float)mean;
    }
}

/** Standard deviation of the costs over a b'. */
static double spread_of(const frgi_spaces *s, const frgi_costs *c)
{
    double sum = 0, square = 0;
    for (int64_t i = 0; i < s->n; i++) {
        for (int64_t j = 0; j < s->m; j++) {
            const double x = frgi_costs_get(c, i, j), w = s->a[i] * s->b[j];
            sum += w * x;
            square += w * x * x;
        }
    }
    return sqrt(fmax(square - sum * sum, 0));
}

void frgi_near_costs(const frgi_lifted l[2], frgi_descent *d)
{
    const frgi_spaces *const s = d->s;
    lifted_means(&l[0], s->a, s->n, d->left);
    lifted_means(&l[1], s->b, s->m, d->right);
    frgi_costs_set(&d->products, s, &d->k_plan, d->left, s->x.ld, d->right, s->y.ld, 1,
                   -2 * (1 - s->theta));
    frgi_annealed_costs(l, spread_of(s, &d->k_plan), 0, d);
}
