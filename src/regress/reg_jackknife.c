/* reg_jackknife.c - clusters left out one at a time, and Bell and McCaffrey's correction.
 *
 * An effect that clusters nest goes with them: what is left of the other rows stays as it is.  Of
 * the effects that clusters cut the dummies T~, demeaned by the nested ones, are regressors again,
 * Z = [X~ T~] with Z'WZ = L L' (X~ and T~ are orthogonal), and with Z- = Z L^-T
 *
 *     C_g = Z-_g' W Z-_g = U diag(l) U',   s_g = Z-_g' W e_g
 *     b_(g) - b = -[L^-T (I - C_g)^-1 s_g]_X                                   without cluster g
 *
 *     jackknife  V = (G - 1) / G sum_g (b_(g) - b)(b_(g) - b)'      MacKinnon, Nielsen, Webb (2023)
 *     cr3        V = sum_g (b_(g) - b)(b_(g) - b)'                  Bell and McCaffrey (2002)
 *     crv3       the same times (n - 1) / (n - K) G / (G - 1), by the small-sample rule: pyfixest's
 *     cr2        V = sum_g d_g d_g',  d_g = [L^-T (I - C_g)^(-1/2) s_g]_X       ... with t of
 *
 *     nu = (tr P)^2 / tr P^2,  P_gh = [g = h] y_g'C_g y_g - (C_g y_g)'(C_h y_h),
 *     y_g = (I - C_g)^(-1/2) L^-1 c for the coefficient c'b         Pustejovsky and Tipton (2018)
 *
 * as a cluster's adjustment by its block of the hat matrix comes down to the columns' space.
 * Weights count as inverse variances.  A direction that one cluster alone has (l = 1) has no score
 * and is left out (Moore and Penrose); where cr3 and its kin would divide by it for a coefficient
 * they are refused.  O(n K^2 + G K^3) for K columns of Z; n K doubles.
 */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "linalg/small.h"
#include "regress/reg_cluster_space.h"

static const double ALONE = 1e-9, SAFE = 1e-6;

typedef struct {
    frgi_cluster_space space;
    double *change; /* k x G: a_g with d_g = B a_g, a_g = L_X (L_X' d_g) */
    double *image;  /* k x G x K: C_g y_g; cr2 alone */
    double *trace;  /* k x G: y_g' C_g y_g */
    bool *alone;    /* G: a coefficient is not identified without it */
} jackknife;

/* ---- a cluster ------------------------------------------------------------------------------- */

/** Memory of one thread. */
typedef struct {
    double *C, *copy, *U, *lambda, *score, *y, *work;
} scratch;

static frg_status open_scratch(scratch *m, frg_context *ctx, int64_t K)
{
    double *block;
    *m = (scratch){0};
    TRY(NEW(ctx, &block, 3 * K * K + 4 * K, "a cluster"));
    *m = (scratch){.C = block,
                   .copy = block + K * K,
                   .U = block + 2 * K * K,
                   .lambda = block + 3 * K * K,
                   .score = block + 3 * K * K + K,
                   .y = block + 3 * K * K + 2 * K,
                   .work = block + 3 * K * K + 3 * K};
    return FRG_OK;
}

/** y <- (I - C_g)^-1 s_g by a Cholesky factor; false where a pivot is small. */
static bool solve_directly(const frgi_cluster_space *s, scratch *m)
{
    const int K = s->K;
    double *const F = m->copy;
    for (int i = 0; i < K; i++) {
        m->y[i] = m->score[i];
        for (int j = 0; j <= i; j++) {
            double sum = (i == j) - m->C[i * K + j];
            for (int l = 0; l < j; l++) {
                sum -= F[i * K + l] * F[j * K + l];
            }
            if (i == j && sum < SAFE) {
                return false;
            }
            F[i * K + j] = i == j ? sqrt(sum) : sum / F[j * K + j];
            m->y[i] -= j < i ? F[i * K + j] * m->y[j] : 0;
        }
        m->y[i] /= F[i * K + i];
    }
    for (int i = K - 1; i >= 0; i--) {
        for (int j = i + 1; j < K; j++) {
            m->y[i] -= F[j * K + i] * m->y[j];
        }
        m->y[i] /= F[i * K + i];
    }
    return true;
}

/** The eigenvalues of C_g and its eigenvectors, rows of U. */
static void decompose(const frgi_cluster_space *s, scratch *m)
{
    memcpy(m->copy, m->C, sizeof *m->C * (size_t)(s->K * s->K));
    frgi_eigen(s->K, m->copy, m->lambda, m->U);
}

/** out <- (I - C_g)^-power v, power 1/2 or 1, on the directions that other clusters have, too. */
static void adjust(const frgi_cluster_space *s, const scratch *m, bool root, const double *v,
                   double *out)
{
    memset(out, 0, sizeof *out * (size_t)s->K);
    for (int l = 0; l < s->K; l++) {
        const double left = 1 - m->lambda[l], *const u = m->U + l * s->K;
        double dot = 0;
        for (int p = 0; p < s->K; p++) {
            dot += u[p] * v[p];
        }
        dot *= left <= ALONE ? 0 : root ? 1 / sqrt(left) : 1 / left;
        for (int p = 0; p < s->K; p++) {
            out[p] += dot * u[p];
        }
    }
}

/** Does the cluster alone have a direction in which a coefficient lies? */
static bool identifies(const frgi_cluster_space *s, const scratch *m)
{
    for (int l = 0; l < s->K; l++) {
        double share = 0;
        for (int p = 0; p < s->k; p++) {
            share += m->U[l * s->K + p] * m->U[l * s->K + p];
        }
        if (1 - m->lambda[l] <= ALONE && share > ALONE) {
            return true;
        }
    }
    return false;
}

/** image <- C_g y_g, trace <- y_g' C_g y_g for each coefficient. */
static void add_freedom(const jackknife *j, int64_t g, scratch *m)
{
    const frgi_cluster_space *const s = &j->space;
    for (int c = 0; c < s->k; c++) {
        double *const image = j->image + ((int64_t)c * s->G + g) * s->K;
        double trace = 0;
        adjust(s, m, true, s->contrast + (int64_t)c * s->K, m->y);
        for (int p = 0; p < s->K; p++) {
            image[p] = 0;
            for (int q = 0; q < s->K; q++) {
                image[p] += m->C[p * s->K + q] * m->y[q];
            }
            trace += image[p] * m->y[p];
        }
        j->trace[(int64_t)c * s->G + g] = trace;
    }
}

/** a_g of one cluster; false: it alone identifies a coefficient. */
static bool leave_out(const jackknife *j, int64_t g, bool root, scratch *m)
{
    const frgi_cluster_space *const s = &j->space;
    frgi_cluster_space_fill(s, g, m->C, m->score);
    bool sound = true;
    if (root || !solve_directly(s, m)) {
        decompose(s, m);
        sound = root || !identifies(s, m);
        adjust(s, m, root, m->score, m->y);
    }
    for (int i = 0; i < s->k; i++) {
        double sum = 0;
        for (int l = 0; l <= i; l++) {
            sum += s->L[i * s->K + l] * m->y[l];
        }
        j->change[i * s->G + g] = sum;
    }
    if (root) {
        add_freedom(j, g, m);
    }
    return sound;
}

static frg_status leave_all_out(jackknife *j, bool root)
{
    const frgi_cluster_space *const s = &j->space;
    frg_context *const ctx = s->w->f->ctx;
    const int threads = frgi_pass_threads(ctx, s->n * s->K);
    scratch *each;
    TRY(NEW0(ctx, &each, threads, "clusters"));
    frg_status status = FRG_OK;
    for (int t = 0; t < threads && status >= 0; t++) {
        status = open_scratch(&each[t], ctx, s->K);
    }
    if (status >= 0) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
        for (int64_t g = 0; g < s->G; g++) {
            if (frgi_stopped(ctx) == FRG_OK) {
                j->alone[g] = !leave_out(j, g, root, &each[omp_get_thread_num()]);
            }
        }
        if (frgi_stopped(ctx) != FRG_OK) {
            s->w->ended = frgi_stopped(ctx);
        }
    }
    for (int t = 0; t < threads; t++) {
        DROP(ctx, &each[t].C);
    }
    DROP(ctx, &each);
    return status;
}

/* ---- degrees of freedom ---------------------------------------------------------------------- */

/** nu = (tr P)^2 / tr P^2,  tr P^2 = sum_g (t_g^2 - 2 t_g |q_g|^2) + |Q Q'|^2,  Q = [q_1 ..]. */
static double freedom(const jackknife *j, int c, double *square)
{
    const frgi_cluster_space *const s = &j->space;
    const int K = s->K;
    double trace = 0, of_square = 0;
    memset(square, 0, sizeof *square * (size_t)(K * K));
    for (int64_t g = 0; g < s->G; g++) {
        const double *const q = j->image + ((int64_t)c * s->G + g) * K;
        const double t = j->trace[(int64_t)c * s->G + g];
        double norm = 0;
        for (int p = 0; p < K; p++) {
            norm += q[p] * q[p];
            for (int r = 0; r < K; r++) {
                square[p * K + r] += q[p] * q[r];
            }
        }
        trace += t - norm;
        of_square += t * t - 2 * t * norm;
    }
    for (int p = 0; p < K * K; p++) {
        of_square += square[p] * square[p];
    }
    return trace * trace / of_square;
}

static frg_status fill_freedom(const jackknife *j)
{
    const frgi_cluster_space *const s = &j->space;
    frg_context *const ctx = s->w->f->ctx;
    double *square;
    TRY(NEW(ctx, &s->w->v->df, s->k, "degrees of freedom"));
    TRY(NEW(ctx, &square, (int64_t)s->K * s->K, "degrees of freedom"));
    for (int c = 0; c < s->k; c++) {
        s->w->v->df[c] = s->w->ended > 0 ? (double)NAN : freedom(j, c, square);
    }
    DROP(ctx, &square);
    return FRG_OK;
}

/* ---- the kinds ------------------------------------------------------------------------------- */

static frg_status prepare(jackknife *j, frgi_vcov_work *w, bool root)
{
    frg_context *const ctx = w->f->ctx;
    frgi_cluster_space *const s = &j->space;
    TRY(frgi_cluster_space_open(s, w));
    TRY(NEW0(ctx, &j->change, s->k * s->G, "clusters"));
    TRY(NEW0(ctx, &j->alone, s->G, "clusters"));
    if (root) {
        TRY(NEW0(ctx, &j->image, s->k * s->G * s->K, "degrees of freedom"));
        TRY(NEW0(ctx, &j->trace, s->k * s->G, "degrees of freedom"));
    }
    return FRG_OK;
}

static frg_status refuse_alone(const jackknife *j)
{
    const frgi_cluster_space *const s = &j->space;
    const frg_fe *const f = s->w->f;
    int64_t g = 0;
    while (g < s->G && !j->alone[g]) {
        g++;
    }
    if (g < s->G) {
        const int64_t i = s->row[s->start[g]];
        frgi_at(f->ctx, "vcov");
        FAIL(f->ctx, E_LEVERAGE,
             "vcov '%s': without the cluster of row %lld a coefficient is not identified; cr2= "
             "does without it",
             s->w->v->request.spec,
             (long long)(f->data.frame.rows ? f->data.frame.rows[i] : i) + 1);
    }
    return FRG_OK;
}

/** meat += scale sum_g a_g a_g'. */
static frg_status add_changes(const jackknife *j, double scale)
{
    const frgi_cluster_space *const s = &j->space;
    const double **columns;
    TRY(NEW(s->w->f->ctx, &columns, s->k, "clusters"));
    for (int c = 0; c < s->k; c++) {
        columns[c] = j->change + c * s->G;
    }
    const frg_status status =
        frgi_vcov_add_gram(s->w, columns, NULL, s->G, s->w->ended > 0 ? (double)NAN : scale);
    DROP(s->w->f->ctx, &columns);
    return status;
}

static frg_status run(frgi_vcov_work *w, bool root, double scale)
{
    frg_context *const ctx = w->f->ctx;
    jackknife j = {.change = NULL};
    frg_status status;
    TRY_TO(done, prepare(&j, w, root));
    TRY_TO(done, leave_all_out(&j, root));
    TRY_TO(done, refuse_alone(&j));
    TRY_TO(done, add_changes(&j, scale));
    status = root ? fill_freedom(&j) : FRG_OK;
done:
    frgi_cluster_space_close(&j.space);
    DROP(ctx, &j.change);
    DROP(ctx, &j.alone);
    DROP(ctx, &j.image);
    DROP(ctx, &j.trace);
    return status;
}

frg_status frgi_vcov_cr2_meat(frgi_vcov_work *w)
{
    return run(w, true, 1);
}

frg_status frgi_vcov_cr3_meat(frgi_vcov_work *w)
{
    return run(w, false, 1);
}

frg_status frgi_vcov_jackknife_meat(frgi_vcov_work *w)
{
    const double G = (double)w->groups[0];
    return run(w, false, (G - 1) / G);
}

frg_status frgi_vcov_crv3_meat(frgi_vcov_work *w)
{
    const double G = (double)w->groups[0];
    return run(w, false, w->v->ssc.cluster_adj ? G / (G - 1) : 1);
}
