/* soap_tensor.c - parameters and gradients of any strides and type as contiguous f32, and
 * contractions.
 *
 * A tensor with axes (outer, d, inner), last index fastest, is `outer` matrices X of inner x d by
 * columns.  Then the contraction of the axis with Q (d x d by columns) is
 *
 *     in:  Y = X Q          out:  Y = X Q^T        inner > 1, matrix by matrix
 *     in:  Y = Q^T X        out:  Y = Q X          inner = 1, all at once: X is d x outer
 *
 * so that no axis is ever transposed. */
#include <string.h>

#include "linalg/half.h"
#include "soap/soap_state.h"

/* ---- in and out ------------------------------------------------------------------------------ */

bool frgi_soap_contiguous(const frg_array *a)
{
    int64_t stride = 1;
    for (int d = a->ndim - 1; d >= 0; d--) {
        if (a->shape[d] != 1 && a->stride[d] != stride) {
            return false;
        }
        stride *= a->shape[d];
    }
    return true;
}

/** The rows of an array: runs of its last axis. */
typedef struct {
    int64_t rows, length;
    ptrdiff_t step; /* bytes from element to element */
} row_walk;

static row_walk walk_of(const frg_array *a)
{
    row_walk w = {1, 1, 0};
    for (int d = 0; d + 1 < a->ndim; d++) {
        w.rows *= a->shape[d];
    }
    if (a->ndim > 0) {
        w.length = a->shape[a->ndim - 1];
        w.step = (ptrdiff_t)(a->stride[a->ndim - 1] * (int64_t)frg_sizeof(a->dtype));
    }
    return w;
}

static char *row_start(const frg_array *a, int64_t row)
{
    int64_t at = 0;
    for (int d = a->ndim - 2; d >= 0; d--) {
        at += row % a->shape[d] * a->stride[d];
        row /= a->shape[d];
    }
    return frgi_array_base(a) + at * (int64_t)frg_sizeof(a->dtype);
}

frg_array frgi_soap_oriented(const soap_param *p, const frg_array *a)
{
    frg_array turned = *a;
    if (p->swapped) {
        turned.shape[0] = a->shape[1];
        turned.shape[1] = a->shape[0];
        turned.stride[0] = a->stride[1];
        turned.stride[1] = a->stride[0];
    }
    return turned;
}

void frgi_soap_take(const frg_array *a, double scale, float *to)
{
    const row_walk w = walk_of(a);
    for (int64_t r = 0; r < w.rows; r++) {
        const char *const row = row_start(a, r);
        for (int64_t i = 0; i < w.length; i++) {
            *to++ = (float)(scale * frgi_element_get(row + i * w.step, a->dtype));
        }
    }
}

void frgi_soap_put(const frg_array *a, double scale, const float *x)
{
    const row_walk w = walk_of(a);
    for (int64_t r = 0; r < w.rows; r++) {
        char *const row = row_start(a, r);
        for (int64_t i = 0; i < w.length; i++, x++) {
            frgi_element_put(row + i * w.step, a->dtype, scale * (double)*x);
        }
    }
}

void frgi_soap_add(const frg_array *a, double scale, float *x)
{
    const row_walk w = walk_of(a);
    for (int64_t r = 0; r < w.rows; r++) {
        const char *const row = row_start(a, r);
        for (int64_t i = 0; i < w.length; i++, x++) {
            *x = (float)((double)*x + scale * frgi_element_get(row + i * w.step, a->dtype));
        }
    }
}

soap_rounding frgi_soap_rounding(const frg_soap_opts *o, const soap_param *p)
{
    uint64_t stream = UINT64_C(0xcbf29ce484222325); /* FNV-1a of the name */
    for (const char *c = p->name; *c; c++) {
        stream = (stream ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    }
    return (soap_rounding){.stochastic = o->stochastic_rounding &&
                                         (p->w.dtype == FRG_BF16 || p->w.dtype == FRG_F16),
                           .seed = (uint64_t)o->rounding_seed,
                           .stream = stream,
                           .step = (uint64_t)p->step};
}

/** w <- keep w - lr d, where w lies as d does. */
typedef struct {
    const soap_ops *ops;
    float keep, lr;
    bool after;
    const float *d;
    float *w;
} writing;

static void write_slice(const void *job, const soap_workspace *work, ptrdiff_t from,
                        ptrdiff_t count)
{
    (void)work;
    const writing *const j = job;
    j->ops->write(count, j->keep, j->after, j->lr, j->d + from, j->w + from);
}

void frgi_soap_give(const soap_ops *ops, const soap_workspace *work, const frg_array *a,
                    double keep, bool after, double lr, soap_rounding rounding, const float *d)
{
    const row_walk w = walk_of(a);
    if (a->dtype == FRG_F32 && frgi_soap_contiguous(a)) {
        const writing job = {ops,   (float)keep, (float)lr,
                             after, d,           (float *)(void *)frgi_array_base(a)};
        frgi_soap_share(work, (ptrdiff_t)(w.rows * w.length), SOAP_ELEMENTS, write_slice, &job);
        return;
    }
    uint32_t words[4] = {0};
    for (int64_t r = 0; r < w.rows; r++) {
        char *const row = row_start(a, r);
        for (int64_t i = 0; i < w.length; i++, d++) {
            const double old = frgi_element_get(row + i * w.step, a->dtype), move = lr * (double)*d;
            double x = after ? (old - move) * keep : old * keep - move;
            if (rounding.stochastic) {
                const uint64_t number = (uint64_t)(r * w.length + i);
                if (number % 4 == 0) {
                    frgi_philox(rounding.seed, rounding.stream, number / 4, rounding.step, words);
                }
                x = (double)frgi_round_randomly((float)x, a->dtype, words[number % 4]);
            }
            frgi_element_put(row + i * w.step, a->dtype, x);
        }
    }
}

const float *frgi_soap_gradient(const frg_soap *soap, const soap_param *p, soap_workspace *work)
{
    const bool maximize = soap->groups[p->group].maximize != 0;
    const frg_array g = frgi_soap_oriented(p, p->grad);
    if (g.dtype == FRG_F32 && frgi_soap_contiguous(&g) && !maximize && p->exponent == 0) {
        return (const float *)(const void *)frgi_array_base(&g);
    }
    frgi_soap_take(&g, __builtin_ldexp(maximize ? -1 : 1, -p->exponent), work->g);
    return work->g;
}

/* ---- contractions ---------------------------------------------------------------------------- */

void frgi_soap_around(const soap_param *p, int axis, ptrdiff_t *outer, ptrdiff_t *inner)
{
    *outer = *inner = 1;
    for (int a = 0; a < p->axes; a++) {
        *outer *= a < axis ? p->dims[a] : 1;
        *inner *= a > axis ? p->dims[a] : 1;
    }
}

bool frgi_soap_has_factor(const soap_param *p, int axis)
{
    for (int i = 0; i < p->n_factors; i++) {
        if (p->factors[i].axis == axis) {
            return true;
        }
    }
    return false;
}

const frgi_product_workspace *frgi_soap_products(const soap_param *p, const soap_workspace *work)
{
    static const frgi_product_workspace without = {0};
    const double tiny = 0x1p-40;
    const bool underflows = work->product.way == PRODUCT_TILES && p->largest > 0 &&
                            __builtin_ldexp(p->largest, -p->exponent) < tiny;
    return underflows ? &without : &work->product;
}

/** The contraction of one block of an axis. */
typedef struct {
    const soap_param *p;
    const soap_factor *f;
    soap_direction way;
    ptrdiff_t outer, d, inner;
    const float *from;
    float *to;
} contraction;

static const float *matrix_of(const contraction *c)
{
    return c->way == SOAP_ROTATE ? c->f->rotation : c->f->q;
}

/** inner = 1: some of the `outer` columns. */
static void columns_of_fibres(const void *job, const soap_workspace *work, ptrdiff_t from,
                              ptrdiff_t count)
{
    const contraction *const c = job;
    const ptrdiff_t n = c->f->size, at = c->f->at + from * c->d;
    frgi_product(frgi_soap_products(c->p, work), c->way == SOAP_OUT ? 'N' : 'T', 'N', n, count, n,
                 matrix_of(c), n, c->from + at, c->d, c->to + at, c->d);
}

/** Some columns of every matrix. */
static void columns_of_each(const void *job, const soap_workspace *work, ptrdiff_t from,
                            ptrdiff_t count)
{
    const contraction *const c = job;
    const ptrdiff_t n = c->f->size, m = c->inner, at = c->f->at * m;
    const bool out = c->way == SOAP_OUT;
    frgi_product_each(frgi_soap_products(c->p, work), out ? 'T' : 'N', c->outer, c->d * m, m, count,
                      n, c->from + at, m, matrix_of(c) + (out ? from : from * n), n,
                      c->to + at + from * m, m);
}

void frgi_soap_contract(const soap_param *p, const soap_workspace *work, int axis,
                        soap_direction way, int copies, const float *from, float *to)
{
    ptrdiff_t outer, inner;
    frgi_soap_around(p, axis, &outer, &inner);
    outer *= copies;
    for (int i = 0; i < p->n_factors; i++) {
        if (p->factors[i].axis == axis) {
            const contraction c = {p, &p->factors[i], way, outer, p->dims[axis], inner, from, to};
            const ptrdiff_t n = c.f->size;
            if (inner == 1) {
                frgi_soap_share_product(work, p, outer, n, columns_of_fibres, &c);
            } else {
                frgi_soap_share_product(work, p, n, inner < n ? inner : n, columns_of_each, &c);
            }
        }
    }
}

float *frgi_soap_contract_all(const soap_param *p, const soap_workspace *work, soap_direction way,
                              int copies, float *x, float *y)
{
    int last = -1;
    for (int i = 0; i < p->n_factors; i++) {
        if (p->factors[i].axis != last) {
            last = p->factors[i].axis;
            frgi_soap_contract(p, work, last, way, copies, x, y);
            float *const other = x;
            x = y;
            y = other;
        }
    }
    return x;
}
