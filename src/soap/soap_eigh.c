/* soap_eigh.c - bases that do not come from a step of orthogonal iteration: the first ones, those
 * after a failure, and all of them where use_eigh is set.
 *
 *     K = Q diag(lambda) Q^T, lambda descending       LAPACK's divide and conquer in f32, in f64
 *                                                     where that fails
 *     K diagonal                                      Q: the permutation that sorts it
 *
 * The first two factors of a matrix G = U S V^T are often multiples of G G^T and G^T G, nothing
 * else (as K = 0 before).  Of two decompositions, each would turn the vectors of close singular
 * values by rounding, differently, and U^T G V would have large entries off its diagonal there,
 * which Adam's first step makes as large as all others.  So the shorter factor alone is decomposed,
 * and the other basis is derived from it:
 *
 *     G^T U = V R                                     one QR, columns in the order of U
 *
 * Then U^T G V = R^T, and R^T R = U^T G G^T U = S^2 + E with norm(E) of about u norm(K): R is
 * diagonal but for entries of about u norm(K) / s_i in row i.  V is completed where G^T U has fewer
 * columns.  Half the work of two decompositions or less. */
#include <math.h>
#include <string.h>

#include "linalg/blas.h"
#include "soap/soap_state.h"

static bool is_diagonal(const soap_factor *f)
{
    for (ptrdiff_t j = 0; j < f->size; j++) {
        for (ptrdiff_t i = j + 1; i < f->size; i++) {
            if (f->k[j * f->size + i] != 0) {
                return false;
            }
        }
    }
    return true;
}

/** Q of a diagonal K: the permutation that sorts it. */
static void permutation_basis(soap_factor *f, soap_workspace *work)
{
    const ptrdiff_t n = f->size;
    int32_t *const rank = work->qr.panel;
    for (ptrdiff_t j = 0; j < n; j++) {
        f->order[j] = (int32_t)j;
        f->lambda[j] = (double)f->k[j * n + j];
    }
    frgi_soap_sort_places(n, f->lambda, f->order, rank);
    memset(f->q, 0, (size_t)(n * n) * sizeof *f->q);
    for (ptrdiff_t p = 0; p < n; p++) {
        f->q[p * n + f->order[p]] = 1;
    }
    for (ptrdiff_t p = 0; p < n; p++) {
        f->lambda[p] = (double)f->k[(ptrdiff_t)f->order[p] * n + f->order[p]];
    }
    for (ptrdiff_t p = 0; p < n; p++) {
        f->order[p] = (int32_t)p;
    }
}

/** Lengths of the workspaces of LAPACK's syevd. */
static int work_length(ptrdiff_t n)
{
    return (int)(1 + 6 * n + 2 * n * n);
}

static int integer_length(ptrdiff_t n)
{
    return (int)(3 + 5 * n);
}

frg_status frgi_soap_eigh_open(frg_soap *soap, ptrdiff_t n)
{
    if (n <= soap->eigh.size) {
        return FRG_OK;
    }
    frgi_soap_eigh_close(soap);
    TRY(NEW0(soap->ctx, &soap->eigh.work, soap->threads, "eigendecompositions"));
    TRY(NEW0(soap->ctx, &soap->eigh.integers, soap->threads, "eigendecompositions"));
    for (int pass = 0; pass < 2; pass++) {
        for (int t = 0; t < soap->threads; t++) {
            soap->eigh.work[t] = TAKE(&soap->eigh.arena, float, work_length(n));
            soap->eigh.integers[t] = TAKE(&soap->eigh.arena, int, integer_length(n));
        }
        if (pass == 0) {
            TRY(frgi_arena_open(&soap->eigh.arena, soap->ctx, "room for eigendecompositions"));
        }
    }
    soap->eigh.size = n;
    return FRG_OK;
}

size_t frgi_soap_eigh_bytes(const frg_soap *soap, ptrdiff_t n)
{
    frgi_arena counted = {0};
    for (int t = 0; t < soap->threads && n > 0; t++) {
        (void)TAKE(&counted, float, work_length(n));
        (void)TAKE(&counted, int, integer_length(n));
    }
    return counted.used;
}

void frgi_soap_eigh_close(frg_soap *soap)
{
    frgi_arena_close(&soap->eigh.arena, soap->ctx);
    DROP(soap->ctx, &soap->eigh.work);
    DROP(soap->ctx, &soap->eigh.integers);
    soap->eigh.arena = (frgi_arena){0};
    soap->eigh.size = 0;
}

void frgi_soap_eigh_end(frg_soap *soap)
{
    bool again = false;
    for (int64_t g = 0; g < soap->n_groups; g++) {
        again |= soap->groups[g].use_eigh != 0;
    }
    if (!again) {
        frgi_soap_eigh_close(soap);
    }
}

/** Eigenvectors of K by columns, descending. */
static bool eigen_basis(const frg_soap *soap, soap_factor *f, soap_workspace *work)
{
    const ptrdiff_t n = f->size, thread = work - soap->plan.workspaces;
    float *const a = work->qr.other, *const values = work->qr.panel;
    memcpy(a, f->k, (size_t)(n * n) * sizeof *a);
    if (!frgi_ssyevd((int)n, a, (int)n, values, soap->eigh.work[thread], work_length(n),
                     soap->eigh.integers[thread], integer_length(n)) ||
        isnan(soap->ops->largest(n * n, a))) {
        return false;
    }
    for (ptrdiff_t p = 0; p < n; p++) {
        memcpy(f->q + p * n, a + (n - 1 - p) * n, (size_t)n * sizeof *a);
        f->lambda[p] = (double)values[n - 1 - p];
        f->order[p] = (int32_t)p;
    }
    return true;
}

/** Second moments of a warm-up turn into the first basis, where that is asked for: Q_old = I. */
static void rotation_from_coordinates(const frg_soap_opts *o, const soap_param *p, soap_factor *f)
{
    if (p->decided.first_bases && o->warmup_v == FRG_WARMUP_V_ROTATE && !f->decompose_again) {
        frgi_soap_set_rotation(f, f->q);
    }
}

bool frgi_soap_eigh_f64(frg_soap *soap, const soap_param *p, soap_factor *f)
{
    if (!isfinite(f->result.norm)) {
        return false;
    }
    const ptrdiff_t n = f->size;
    double *a = NULL;
    int *integers = NULL;
    bool done = false;
    const size_t square = frgi_mul((size_t)n, (size_t)n);
    if (NEW(soap->ctx, &a, frgi_add(frgi_mul(3, square), (size_t)(8 * n + 1)), "a basis") >= 0 &&
        NEW(soap->ctx, &integers, integer_length(n), "a basis") >= 0) {
        double *const values = a + square, *const scratch = values + n;
        for (ptrdiff_t i = 0; i < n * n; i++) {
            a[i] = (double)f->k[i];
        }
        done = frgi_dsyevd((int)n, a, (int)n, values, scratch, work_length(n), integers,
                           integer_length(n));
        for (ptrdiff_t i = 0; i < n * n && done; i++) {
            done = isfinite(a[i]);
        }
        for (ptrdiff_t j = 0; j < n && done; j++) {
            for (ptrdiff_t i = 0; i < n; i++) {
                f->q[j * n + i] = (float)a[(n - 1 - j) * n + i];
            }
            f->lambda[j] = values[n - 1 - j];
            f->order[j] = (int32_t)j;
        }
    }
    DROP(soap->ctx, &a);
    DROP(soap->ctx, &integers);
    f->decompose_again = !done;
    frgi_soap_note_lowest(f);
    rotation_from_coordinates(&soap->groups[p->group], p, f);
    return done;
}

soap_outcome frgi_soap_outcome_of(double norm, soap_outcome otherwise)
{
    return !isfinite(norm) ? SOAP_FAILED : norm > 0 ? otherwise : SOAP_UNTOUCHED;
}

/* ---- the second basis of one gradient -------------------------------------------------------- */

/** The other factor of a matrix whose factors are those of the current gradient alone, where that
 *  is the shorter one; NULL: this factor's basis is not derived. */
static const soap_factor *basis_source(const frg_soap_opts *o, const soap_param *p,
                                       const soap_factor *f)
{
    const bool matrix = p->axes == 2 && p->n_factors == 2 && p->factors[1].axis == 1 &&
                        p->factors[0].size == p->dims[0] && p->factors[1].size == p->dims[1];
    if (!matrix || o->use_eigh || o->use_kl_shampoo || o->order != FRG_GRAD_FIRST) {
        return NULL;
    }
    const soap_factor *const shorter = &p->factors[p->dims[1] < p->dims[0]];
    return f != shorter && f->decided.fresh && shorter->decided.fresh ? shorter : NULL;
}

bool frgi_soap_is_derived(const frg_soap_opts *o, const soap_param *p, const soap_factor *f)
{
    return basis_source(o, p, f) != NULL;
}

/** Q = orth(G^T U), U the basis of the shorter axis. */
static soap_outcome derive_basis(const frg_soap *soap, const soap_param *p, soap_factor *f,
                                 const soap_factor *shorter, soap_workspace *work)
{
    const ptrdiff_t n = f->size, k = shorter->size, ld = work->qr.x.ld;
    const float *const g = frgi_soap_gradient(soap, p, work); /* as columns: dims[1] x dims[0] */
    float *const a = work->qr.other;
    frgi_product_blend(frgi_soap_products(p, work), f->axis == 1 ? 'N' : 'T', 'N', n, k, k, 1, g,
                       p->dims[1], shorter->q, k, 0, a, ld);
    for (ptrdiff_t j = 0; j < n; j++) {
        f->lambda[j] = j < k ? shorter->lambda[j] : 0;
        f->order[j] = (int32_t)j;
    }
    for (ptrdiff_t j = k; j < n; j++) {
        memset(a + j * ld, 0, (size_t)n * sizeof *a);
    }
    f->result.hint = 0;
    return frgi_soap_orthonormalise(soap, p, f, work, 0) ? SOAP_BY_QR : SOAP_FAILED;
}

static soap_outcome make_basis(const frg_soap *soap, const soap_param *p, soap_factor *f,
                               soap_workspace *work)
{
    const soap_factor *const shorter = basis_source(&soap->groups[p->group], p, f);
    if (is_diagonal(f) && (!shorter || is_diagonal(shorter))) {
        permutation_basis(f, work);
        return SOAP_BY_EIGH;
    }
    if (shorter && shorter->result.done == SOAP_BY_EIGH) {
        return derive_basis(soap, p, f, shorter, work);
    }
    return !shorter && eigen_basis(soap, f, work) ? SOAP_BY_EIGH : SOAP_FAILED;
}

soap_outcome frgi_soap_decompose(const frg_soap *soap, const soap_param *p, soap_factor *f,
                                 soap_workspace *work)
{
    f->result.norm = frgi_soap_norm(soap, f);
    soap_outcome outcome = frgi_soap_outcome_of(f->result.norm, SOAP_BY_EIGH);
    if (outcome == SOAP_BY_EIGH) {
        outcome = make_basis(soap, p, f, work);
    }
    f->decompose_again = outcome == SOAP_FAILED || outcome == SOAP_UNTOUCHED;
    rotation_from_coordinates(&soap->groups[p->group], p, f);
    return outcome;
}
