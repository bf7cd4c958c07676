/* soap_factor.c - one factor: its average, its Rayleigh quotients, its new basis.
 *
 *     K <- beta K + (1 - beta) mat(G) mat(G)^T          SYRK, lower triangle
 *     W = K Q,  lambda_j = q_j^T w_j                    SYMM; serves test, order and refresh
 *     a_j = w_j + max(0, c u norm(K) - lambda_j) q_j,   sorted by lambda; c: ridge_c
 *     Q = orth(A)
 *
 * mat(G): G with the factor's axis as rows and all others as columns.  W is the paper's S.
 *
 * The ridge holds the directions in which K is rounding noise: K Q = 0 there, and orth() of what W
 * has instead is any basis.  Products and averages leave e_j with norm(e_j) of about 0.2 u norm(K)
 * in a column, at orders 24 to 512 and on all CPU levels alike, so that a column raised to c u
 * norm(K) turns by 0.2 / c a refresh: 0.003 with c = 64, and some 0.05 in the 20 refreshes that
 * second moments remember (noise that stays the same adds up).  Columns with lambda_j above that
 * have no ridge: it would slow them by c u norm(K) / lambda_j, more than all rounding does to them.
 * K is read through its lower triangle alone, everywhere.
 *
 * The hint, h = min_j lambda_j^2 / norm(w_j)^2, is by what the engine tries one-pass Cholesky QR.
 * For K > 0 the distance of w_j from the other columns is at most lambda_j, so that with the
 * columns of W scaled to norm 1 their R has norm(R^-1)^2 >= 1 / h: a small h rules the pass out.  A
 * large one proves nothing (Q = I, K = (1 0.999; 0.999 1): h = 1/2, the smaller pivot 1e-6): the
 * pass checks its own pivots.
 *
 * Memory: the workspace of the thread, 3 n^2.
 *
 * References: Vyas et al. (2024), SOAP; Gupta, Koren and Singer (2018), Shampoo; Lin et al. (2025),
 * KL-Shampoo. */
#include <math.h>
#include <string.h>

#include "core/tree_sum.h"
#include "linalg/blas.h"
#include "soap/soap_state.h"

static const double ROUNDOFF = 0x1p-24;
enum {
    SQUARE_COLUMNS = 512, /* at least, of a slice of a triangle */
    COLUMNS = 64          /* of other matrices */
};

/* ---- the average ----------------------------------------------------------------------------- */

/** k <- past k + weight mat(x) mat(x)^T by one matrix of mat(x): lines of k x n ('T') or n x k
 *  ('N'). */
typedef struct {
    const soap_param *p;
    char trans;
    ptrdiff_t n, k, ld;
    const float *x;
    float past, weight, *to;
} averaging;

/** Columns from .. of the lower triangle: the block on the diagonal and what is below it. */
static void columns_of_square(const void *job, const soap_workspace *work, ptrdiff_t from,
                              ptrdiff_t count)
{
    const averaging *const s = job;
    const frgi_product_workspace *const product = frgi_soap_products(s->p, work);
    const ptrdiff_t step = s->trans == 'N' ? 1 : s->ld, end = from + count;
    const float *const x = s->x + from * step;
    float *const to = s->to + from * s->n;
    frgi_product_square(product, s->trans, count, s->k, s->weight, x, s->ld, s->past, to + from,
                        s->n);
    if (end < s->n) {
        const bool lines = s->trans == 'N';
        frgi_product_blend(product, lines ? 'N' : 'T', lines ? 'T' : 'N', s->n - end, count, s->k,
                           s->weight, s->x + end * step, s->ld, x, s->ld, s->past, to + end, s->n);
    }
}

/** k <- past k + weight mat(x) mat(x)^T over the factor's block. */
static void rank_update(const soap_param *p, const soap_factor *f, const soap_workspace *work,
                        float past, float weight, const float *x)
{
    ptrdiff_t outer, inner;
    frgi_soap_around(p, f->axis, &outer, &inner);
    const ptrdiff_t d = p->dims[f->axis];
    averaging s = {p, 'N', f->size, outer, d, x + f->at, past, weight, f->k};
    if (inner == 1) {
        frgi_soap_share(work, f->size, SQUARE_COLUMNS, columns_of_square, &s);
        return;
    }
    for (ptrdiff_t o = 0; o < outer; o++) {
        s = (averaging){p,      'T',    f->size, inner, inner, x + (o * d + f->at) * inner,
                        s.past, weight, f->k};
        frgi_soap_share(work, f->size, SQUARE_COLUMNS, columns_of_square, &s);
        s.past = 1;
    }
}

/** x (rows x columns, the last index fastest) <- x diag(max(lambda, floor))^-1/2 along an axis,
 *  lambda of its factors; unit: all lambda are 1. */
static void kl_scale(const soap_param *p, int axis, double floor, bool unit, float *x)
{
    const ptrdiff_t rows = p->dims[0], columns = p->dims[1];
    for (int i = 0; i < p->n_factors; i++) {
        const soap_factor *const f = &p->factors[i];
        for (ptrdiff_t j = 0; f->axis == axis && j < f->size; j++) {
            const double lambda = f->lambda[j] > floor ? f->lambda[j] : floor;
            const float w = unit ? 1 : (float)(1 / sqrt(lambda));
            const ptrdiff_t at = f->at + j;
            const ptrdiff_t first = axis == 0 ? at * columns : at, step = axis == 0 ? 1 : columns;
            const ptrdiff_t count = axis == 0 ? columns : rows;
            for (ptrdiff_t k = 0; k < count; k++) {
                x[first + k * step] *= w;
            }
        }
    }
}

int frgi_soap_power(const frg_soap_opts *o)
{
    return o->use_kl_shampoo ? 1 : 2;
}

/** K <- beta K + (1 - beta) G G^T, or KL-Shampoo's (Lin et al. 2025), whose weights are those of
 *  the other axis, of length d:
 *
 *      L <- beta L + (1 - beta) / d  G Q_R diag(max(lambda_R, floor))^-1 Q_R^T G^T */
void frgi_soap_accumulate(const frg_soap *soap, const soap_param *p, soap_factor *f,
                          soap_workspace *work)
{
    const frg_soap_opts *const o = &soap->groups[p->group];
    const double start = frgi_seconds();
    const double beta = frgi_soap_shampoo_beta(o, p->step + 1);
    const float *x = frgi_soap_gradient(soap, p, work);
    double weight = 1 - beta;
    if (o->use_kl_shampoo) {
        const int other = 1 - f->axis;
        const double floor = ldexp(fmax(o->eps, 1e-30), -frgi_soap_power(o) * p->exponent);
        if (frgi_soap_has_factor(p, other)) {
            frgi_soap_contract(p, work, other, SOAP_IN, 1, x, work->x);
            kl_scale(p, other, floor, o->kl_init == FRG_KL_UNIT && p->step == 0, work->x);
            x = work->x;
        }
        weight /= (double)p->dims[other];
    }
    rank_update(p, f, work, (float)beta, (float)weight, x);
    work->seconds[SOAP_FACTORS] += frgi_seconds() - start;
}

/* ---- looking --------------------------------------------------------------------------------- */

double frgi_soap_norm(const frg_soap *soap, const soap_factor *f)
{
    frgi_tree_sum sum = {0};
    for (ptrdiff_t j = 0; j < f->size; j++) {
        const float *const column = f->k + j * f->size;
        const double diagonal = (double)column[j];
        const double below = soap->ops->sum_squares(f->size - j - 1, column + j + 1);
        frgi_tree_add(&sum, 2 * below + diagonal * diagonal);
    }
    return sqrt(frgi_tree_total(&sum));
}

/** A factor and the matrices of the workspace that leads its team. */
typedef struct {
    const frg_soap *soap;
    const soap_param *p;
    soap_factor *f;
    soap_workspace *lead;
    double floor;
} factor_job;

static void columns_of_product(const void *job, const soap_workspace *work, ptrdiff_t from,
                               ptrdiff_t count)
{
    const factor_job *const j = job;
    const frgi_qr_workspace *const qr = &j->lead->qr;
    const ptrdiff_t n = j->f->size;
    frgi_product_symmetric(frgi_soap_products(j->p, work), n, count, j->f->k, n, j->f->q + from * n,
                           n, (float *)qr->other + from * qr->x.ld, qr->x.ld);
}

/** W = K Q in work->qr.other. */
static void multiply(const soap_param *p, soap_factor *f, soap_workspace *work)
{
    const factor_job j = {.p = p, .f = f, .lead = work};
    frgi_soap_share_product(work, p, f->size, f->size, columns_of_product, &j);
}

/** lambda_j, and norm(w_j)^2 beside it. */
static void quotients(const void *job, const soap_workspace *work, ptrdiff_t from, ptrdiff_t count)
{
    (void)work;
    const factor_job *const jb = job;
    const frgi_qr_workspace *const qr = &jb->lead->qr;
    const ptrdiff_t n = jb->f->size;
    for (ptrdiff_t j = from; j < from + count; j++) {
        jb->soap->ops->inner(n, jb->f->q + j * n, (const float *)qr->other + j * qr->x.ld,
                             &jb->f->lambda[j], &qr->norm2[j]);
    }
}

/** lambda of every slot, norm(K Q) = norm(K), and the smallest lambda_j^2 / norm(w_j)^2, from W in
 *  work->qr.other. */
static void rayleigh(const frg_soap *soap, soap_factor *f, soap_workspace *work)
{
    const factor_job job = {.soap = soap, .f = f, .lead = work};
    frgi_tree_sum sum = {0};
    double hint = 1;
    frgi_soap_share(work, f->size, COLUMNS, quotients, &job);
    for (ptrdiff_t j = 0; j < f->size; j++) {
        const double ww = work->qr.norm2[j];
        const double ratio = ww > 0 ? f->lambda[j] * f->lambda[j] / ww : 0;
        hint = ratio < hint ? ratio : hint;
        frgi_tree_add(&sum, ww);
    }
    f->result.hint = hint;
    f->result.norm = sqrt(frgi_tree_total(&sum));
}

/** W = K Q in work->qr.other, lambda, norm(W). */
static void product_and_quotients(const frg_soap *soap, const soap_param *p, soap_factor *f,
                                  soap_workspace *work)
{
    multiply(p, f, work);
    rayleigh(soap, f, work);
}

void frgi_soap_begin_factor(soap_factor *f)
{
    f->result.passes = false;
    f->result.done = SOAP_UNTOUCHED;
}

static void begin_product(const frg_soap *soap, const soap_factor *f, soap_workspace *work)
{
    frgi_qr_workspace_shape(soap->qr, &work->qr, f->size, f->size);
    work->qr.x.team = work->team;
}

void frgi_soap_rayleigh(const frg_soap *soap, const soap_param *p, soap_factor *f,
                        soap_workspace *work)
{
    const double start = frgi_seconds();
    begin_product(soap, f, work);
    product_and_quotients(soap, p, f, work);
    /* of K itself: the test is finer than the rounding of K Q */
    f->result.norm = frgi_soap_norm(soap, f);
    work->seconds[SOAP_REFRESH] += frgi_seconds() - start;
}

/** diagonal      norm(diag(Q^T K Q)) >= (1 - tol) norm(K)
 *  off-diagonal  norm(Q^T K Q - diag(Q^T K Q)) <= tol norm(K),
 *                the square of the left side being norm(K)^2 - sum_j lambda_j^2 */
void frgi_soap_test(const frg_soap *soap, const soap_param *p, soap_factor *f, soap_workspace *work)
{
    const frg_soap_opts *const o = &soap->groups[p->group];
    frgi_soap_rayleigh(soap, p, f, work);
    const double norm = f->result.norm;
    frgi_tree_sum squares = {0};
    for (ptrdiff_t j = 0; j < f->size; j++) {
        frgi_tree_add(&squares, f->lambda[j] * f->lambda[j]);
    }
    const double sum = frgi_tree_total(&squares);
    if (o->adaptive_form == FRG_ADAPTIVE_DIAGONAL) {
        f->result.passes = sqrt(sum) >= (1 - o->adaptive_tolerance) * norm;
    } else {
        const double remainder = norm * norm - sum;
        f->result.passes = sqrt(remainder > 0 ? remainder : 0) <= o->adaptive_tolerance * norm;
    }
}

typedef struct {
    const double *lambda;
    const int32_t *rank; /* of a slot: the place it had */
} quotient_order;

/** Larger first, NaN last, equal ones by place: the same on every machine that has the same
 *  numbers. */
static int by_quotient(const void *a, const void *b, const void *user)
{
    const quotient_order *const by = user;
    const int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    const double x = by->lambda[i], y = by->lambda[j];
    if (x == y || (isnan(x) && isnan(y))) {
        return (by->rank[i] > by->rank[j]) - (by->rank[i] < by->rank[j]);
    }
    return isnan(x) || x < y ? 1 : -1;
}

void frgi_soap_sort_places(ptrdiff_t n, const double *lambda, int32_t *slots, int32_t *rank)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        rank[slots[i]] = (int32_t)i;
    }
    const quotient_order by = {lambda, rank};
    frgi_sort(slots, n, sizeof *slots, by_quotient, &by);
}

/* ---- refresh --------------------------------------------------------------------------------- */

/** rotation[old slot, new slot] = (Q_old^T Q_new)^2: Q_old, of before the first iteration, stands
 *  in rotation, the new basis by places in work->qr.q; q, which it is about to replace, holds the
 *  product. */
static void keep_rotation(soap_factor *f, const float *q_new, ptrdiff_t ld)
{
    const int n = (int)f->size;
    frgi_sgemm('T', 'N', n, n, n, 1, f->rotation, n, q_new, (int)ld, 0, f->q, n);
    frgi_soap_set_rotation(f, f->q);
}

/** Where columns are moved, the quotients move with them and places are slots again. */
static void move_quotients(soap_factor *f, soap_workspace *work)
{
    double *const sorted = work->qr.norm2;
    for (ptrdiff_t p = 0; p < f->size; p++) {
        sorted[p] = f->lambda[f->order[p]];
    }
    memcpy(f->lambda, sorted, (size_t)f->size * sizeof *sorted);
    for (ptrdiff_t p = 0; p < f->size; p++) {
        f->order[p] = (int32_t)p;
    }
}

/** x[:, p] <- x[:, order[p]] by way of w. */
static void sort_columns(const soap_factor *f, float *x, float *w)
{
    const size_t n = (size_t)f->size;
    for (size_t p = 0; p < n; p++) {
        memcpy(w + p * n, x + (size_t)f->order[p] * n, n * sizeof *w);
    }
    memcpy(x, w, n * n * sizeof *w);
}

/** Columns are sorted by the quotients of the basis that has just been found (which cost a
 *  product). */
static void sort_after(const frg_soap *soap, const soap_param *p, soap_factor *f,
                       soap_workspace *work)
{
    const frg_soap_opts *const o = &soap->groups[p->group];
    float *const w = work->qr.other;
    product_and_quotients(soap, p, f, work);
    frgi_soap_sort_places(f->size, f->lambda, f->order, work->qr.panel);
    if (o->moment2_order == FRG_MOMENT2_FOLLOW) {
        return;
    }
    sort_columns(f, f->q, w);
    if (f->rotated) {
        sort_columns(f, f->rotation, w);
    }
    move_quotients(f, work);
}

/** a_j = w_j + max(0, floor - lambda_j) q_j in the order of the slots, scaled for the QR. */
static void columns_to_factor(const void *job, const soap_workspace *work, ptrdiff_t from,
                              ptrdiff_t count)
{
    (void)work;
    const factor_job *const j = job;
    frgi_qr_workspace *const qr = &j->lead->qr;
    const ptrdiff_t n = j->f->size, ld = qr->x.ld;
    for (ptrdiff_t p = from; p < from + count; p++) {
        const ptrdiff_t slot = j->f->order[p];
        float *const a = (float *)qr->x.a + p * ld;
        const float *const w = (const float *)qr->other + slot * ld;
        if (j->f->lambda[slot] < j->floor) {
            const double ridge = j->floor - j->f->lambda[slot];
            j->soap->ops->ridge(n, (float)ridge, j->f->q + slot * n, w, a);
        } else {
            memcpy(a, w, (size_t)n * sizeof *a);
        }
        memset(a + n, 0, (size_t)(qr->x.rows - n) * sizeof *a);
        frgi_qr_scale_column(j->soap->qr, qr, p, NULL);
    }
}

/** Columns of the new basis to their places: the slots where second moments stay. */
static void columns_of_basis(const void *job, const soap_workspace *work, ptrdiff_t from,
                             ptrdiff_t count)
{
    (void)work;
    const factor_job *const j = job;
    const frgi_qr_workspace *const qr = &j->lead->qr;
    const ptrdiff_t n = j->f->size;
    const bool stays = j->soap->groups[j->p->group].moment2_order == FRG_MOMENT2_FOLLOW;
    for (ptrdiff_t p = from; p < from + count; p++) {
        memcpy(j->f->q + (stays ? j->f->order[p] : p) * n, (const float *)qr->q + p * qr->x.ld,
               (size_t)n * sizeof(float));
    }
}

/** orth(A) by places in work->qr.q. */
static bool solve_basis(const frg_soap *soap, const soap_param *param, soap_factor *f,
                        soap_workspace *work, double floor, bool verify)
{
    const frg_soap_opts *const o = &soap->groups[param->group];
    const ptrdiff_t n = f->size, ld = work->qr.x.ld;
    const factor_job job = {soap, param, f, work, floor};
    frgi_soap_share(work, n, COLUMNS, columns_to_factor, &job);
    for (ptrdiff_t p = n; p < work->qr.x.columns; p++) {
        float *const a = (float *)work->qr.x.a + p * ld;
        memset(a, 0, (size_t)work->qr.x.rows * sizeof *a);
    }
    const frgi_qr_request wanted = {.method = o->qr_method,
                                    .verify = verify ? FRG_QR_VERIFY_PROBE : FRG_QR_VERIFY_NONE,
                                    .ortho_tol = o->ortho_tol,
                                    .hint = f->result.hint};
    frgi_qr_solve(soap->qr, &work->qr, &wanted, &f->result.report);
    return !(f->result.report.flags & FRG_QR_NONFINITE);
}

/** Q <- what solve_basis found. */
static void place_basis(const frg_soap *soap, const soap_param *param, soap_factor *f,
                        soap_workspace *work)
{
    const factor_job job = {.soap = soap, .p = param, .f = f, .lead = work};
    frgi_soap_share(work, f->size, COLUMNS, columns_of_basis, &job);
}

bool frgi_soap_orthonormalise(const frg_soap *soap, const soap_param *p, soap_factor *f,
                              soap_workspace *work, double floor)
{
    const bool finite = solve_basis(soap, p, f, work, floor, true);
    if (finite) {
        place_basis(soap, p, f, work);
    }
    return finite;
}

/** Q <- orth(K Q), power_iter_steps times, the first of which finds its product made. */
static bool iterate(const frg_soap *soap, const soap_param *p, soap_factor *f, soap_workspace *work)
{
    const frg_soap_opts *const o = &soap->groups[p->group];
    for (int s = 0; s < o->power_iter_steps; s++) {
        const bool last = s + 1 == o->power_iter_steps;
        if (s > 0) {
            product_and_quotients(soap, p, f, work);
            f->result.hint = 0;
        }
        if (!solve_basis(soap, p, f, work, o->ridge_c * ROUNDOFF * f->result.norm, last)) {
            return false;
        }
        if (last && o->moment2_order == FRG_MOMENT2_ROTATE) {
            keep_rotation(f, work->qr.q, work->qr.x.ld);
        }
        place_basis(soap, p, f, work);
        if (o->moment2_order != FRG_MOMENT2_FOLLOW) {
            move_quotients(f, work);
        }
    }
    return true;
}

/** Algorithm 4 of Vyas et al. (2024): S = K Q, Q <- orth(S). */
static soap_outcome refresh_by_qr(const frg_soap *soap, const soap_param *p, soap_factor *f,
                                  soap_workspace *work, bool multiplied)
{
    const frg_soap_opts *const o = &soap->groups[p->group];
    if (!multiplied) {
        product_and_quotients(soap, p, f, work);
    }
    const soap_outcome outcome = frgi_soap_outcome_of(f->result.norm, SOAP_BY_QR);
    if (outcome != SOAP_BY_QR) {
        return outcome;
    }
    if (o->moment2_order == FRG_MOMENT2_ROTATE) {
        memcpy(f->rotation, f->q, (size_t)(f->size * f->size) * sizeof *f->q);
    }
    const bool before = o->sort_when == FRG_SORT_BEFORE_QR;
    if (before) {
        frgi_soap_sort_places(f->size, f->lambda, f->order, work->qr.panel);
    }
    if (!iterate(soap, p, f, work)) {
        return SOAP_FAILED;
    }
    if (!before) {
        sort_after(soap, p, f, work);
    }
    return SOAP_BY_QR;
}

void frgi_soap_note_lowest(soap_factor *f)
{
    double lowest = 0;
    for (ptrdiff_t j = 0; j < f->size; j++) {
        lowest = f->lambda[j] < lowest ? f->lambda[j] : lowest;
    }
    f->result.lowest = lowest < 0 ? lowest / f->result.norm : 0;
}

void frgi_soap_refresh(const frg_soap *soap, const soap_param *p, soap_factor *f,
                       soap_workspace *work, bool multiplied)
{
    const double start = frgi_seconds();
    begin_product(soap, f, work);
    f->result.report = (frg_qr_report){.orthogonality = NAN};
    f->result.done = p->decided.first_bases || f->decompose_again || soap->groups[p->group].use_eigh
                         ? frgi_soap_decompose(soap, p, f, work)
                         : refresh_by_qr(soap, p, f, work, multiplied);
    frgi_soap_note_lowest(f);
    work->seconds[SOAP_REFRESH] += frgi_seconds() - start;
}

void frgi_soap_end_factor(frg_soap *soap, const soap_param *p, soap_factor *f)
{
    if (f->decompose_again && f->result.done == SOAP_FAILED && soap->steps->eigh_f64(soap, p, f)) {
        f->result.done = SOAP_BY_EIGH;
    }
}
