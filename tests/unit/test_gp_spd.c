/* test_gp_spd.c - the dense core against plain loops in long double.
 *
 * Matrices are B B'/n + I with normal B: the eigenvalues of B B'/n are below 4.5 (Marchenko-Pastur,
 * with room for small n), so the norm is below 6 and that of the inverse at most 1.  With u the
 * unit roundoff:
 *
 *     |A - L L'|   <= (n + 20) u sqrt(a_ii a_jj) Higham (2002), theorem 10.3; + 20 for products
 *                  with
 *                                                            the inverses of pivot blocks,
 *                                                            cond(L_pp) <= 2.5
 *     |X - A^-1|   <= 8 (n + 20) u |A^-1| |A| |A^-1| theorem 14.2 and what follows; <= 48 (n + 20)
 *                  u
 *
 * both far above what is seen (errors grow with sqrt n), far below what a wrong entry makes. */
#include <float.h>

#include "core/core.h"
#include "levels.h"
#include "linalg/spd.h"
#include "test.h"

#define SOLVER "spd" /* the name that progress has, as the caller gives it */

static const frg_dtype types[] = {FRG_F64, FRG_F32};

static double unit(frg_dtype t)
{
    return t == FRG_F64 ? DBL_EPSILON / 2 : (double)(FLT_EPSILON / 2);
}

static ptrdiff_t at(const frgi_spd *m, ptrdiff_t i, ptrdiff_t j)
{
    return frgi_spd_at(&m->layout, i, j);
}

static double get(frg_dtype t, const void *a, ptrdiff_t i)
{
    return t == FRG_F64 ? ((const double *)a)[i] : (double)((const float *)a)[i];
}

static void put(frg_dtype t, void *a, ptrdiff_t i, double v)
{
    if (t == FRG_F64)
        ((double *)a)[i] = v;
    else
        ((float *)a)[i] = (float)v;
}

/** A problem: the matrix in full (entries that the type holds exactly), stored, and scratch. */
typedef struct {
    frg_context *ctx;
    frgi_spd m;
    double *full;
    size_t bytes;
} problem;

static problem make(ptrdiff_t n, frg_dtype t, int threads)
{
    problem p = {.ctx = test_context_with(threads, NULL, NULL),
                 .m = frgi_spd_place(n, t, NULL, NULL, SOLVER)};
    double *const b = malloc((size_t)(n * n) * sizeof *b);
    p.full = malloc((size_t)(n * n) * sizeof *p.full);
    const ptrdiff_t m =
        n < 40 ? n : 40; /* terms of a sum: enough for what is asked of them, and n^2 work */
    for (ptrdiff_t i = 0; i < n * m; i++)
        b[i] = test_normal() / sqrt((double)n);
    for (ptrdiff_t j = 0; j < n; j++) {
        for (ptrdiff_t i = j; i < n; i++) {
            double v = i == j;
            for (ptrdiff_t k = 0; k < m; k++)
                v += b[i * m + k] * b[j * m + k];
            p.full[i + j * n] = p.full[j + i * n] = t == FRG_F64 ? v : (double)(float)v;
        }
    }
    free(b);
    p.bytes = frgi_spd_bytes(n, t);
    CHECK_OK(p.ctx, frgi_alloc(p.ctx, &p.m.elements, p.bytes, "test"));
    CHECK_OK(p.ctx, frgi_alloc(p.ctx, &p.m.work, frgi_spd_work_bytes(n, t, threads), "test"));
    return p;
}

/** Only what the contract says is data; the rest is NaN. */
static void fill(const problem *p)
{
    const ptrdiff_t n = frgi_spd_order(&p->m);
    memset(p->m.elements, 0xff, p->bytes);
    for (ptrdiff_t j = 0; j < n; j++)
        for (ptrdiff_t i = j; i < n; i++)
            put(frgi_spd_dtype(&p->m), p->m.elements, at(&p->m, i, j), p->full[i + j * n]);
}

static void drop(problem *p)
{
    frgi_free(p->ctx, &p->m.elements);
    frgi_free(p->ctx, &p->m.work);
    free(p->full);
    frg_context_destroy(p->ctx);
}

/** Plain factor and inverse; l and x are n x n, lower triangles. */
static void reference(const problem *p, long double *l, long double *x)
{
    const ptrdiff_t n = frgi_spd_order(&p->m);
    for (ptrdiff_t j = 0; j < n; j++) {
        for (ptrdiff_t i = j; i < n; i++) {
            long double v = p->full[i + j * n];
            for (ptrdiff_t k = 0; k < j; k++)
                v -= l[i * n + k] * l[j * n + k];
            l[i * n + j] = i == j ? sqrtl(v) : v / l[j * n + j];
        }
    }
    for (ptrdiff_t j = 0; j < n; j++) { /* columns of L^-1, then of the inverse */
        long double *const c = x + j * n;
        for (ptrdiff_t i = 0; i < n; i++) {
            long double v = i == j;
            for (ptrdiff_t k = j; k < i; k++)
                v -= l[i * n + k] * c[k];
            c[i] = i < j ? 0 : v / l[i * n + i];
        }
        for (ptrdiff_t i = n; i-- > 0;) {
            long double v = c[i];
            for (ptrdiff_t k = i + 1; k < n; k++)
                v -= l[k * n + i] * c[k];
            c[i] = v / l[i * n + i];
        }
    }
}

static void one_size(ptrdiff_t n, frg_dtype t)
{
    problem p = make(n, t, 1);
    fill(&p);
    long double *const l = malloc((size_t)(n * n) * sizeof *l), *const x = malloc((size_t)(n * n) *
                                                                                  sizeof *x);
    reference(&p, l, x);
    const double u = unit(t);
    double logdet = NAN, want = 0;
    frgi_spd_pivots pivots;
    CHECK_STATUS(frgi_spd_factor(p.ctx, &p.m, &logdet, &pivots), FRG_OK);
    CHECK_INT(pivots.pivot, -1);
    double smallest = INFINITY, largest = 0;
    double residual = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        want += 2 * (double)logl(l[i * n + i]);
        smallest = fmin(smallest, get(t, p.m.elements, at(&p.m, i, i)));
        largest = fmax(largest, get(t, p.m.elements, at(&p.m, i, i)));
        for (ptrdiff_t j = 0; j <= i; j++) {
            long double v = p.full[i + j * n];
            for (ptrdiff_t k = 0; k <= j; k++)
                v -= (long double)get(t, p.m.elements, at(&p.m, i, k)) *
                     get(t, p.m.elements, at(&p.m, j, k));
            residual =
                fmax(residual, fabs((double)v) / sqrt(p.full[i + i * n] * p.full[j + j * n]));
        }
    }
    CHECK_SAYS(residual <= ((double)n + 20) * u, "n %td %s: factor's residual %g u", n,
               frg_dtype_name(t), residual / u);
    /* the logarithms of pivots with relative errors of the residual's size, summed */
    CHECK_SAYS(fabs(logdet - want) <= 2 * (double)n * ((double)n + 20) * u,
               "n %td %s: logdet %.17g, %.17g", n, frg_dtype_name(t), logdet, want);
    CHECK(pivots.smallest == smallest && pivots.largest == largest);

    CHECK_STATUS(frgi_spd_inverse(p.ctx, &p.m, NULL), FRG_OK);
    double worst = 0;
    for (ptrdiff_t j = 0; j < n; j++)
        for (ptrdiff_t i = j; i < n; i++)
            worst = fmax(worst, fabs(get(t, p.m.elements, at(&p.m, i, j)) - (double)x[i + j * n]));
    CHECK_SAYS(worst <= 48 * ((double)n + 20) * u, "n %td %s: inverse off by %g u", n,
               frg_dtype_name(t), worst / u);
    free(l);
    free(x);
    drop(&p);
}

static void sizes(void)
{
    const ptrdiff_t every = test_size(1, 7);
    for (int t = 0; t < 2; t++) {
        for (ptrdiff_t n = 1; n <= 130; n += every)
            one_size(n, types[t]);
        one_size(176, types[t]);
        one_size(200, types[t]);
        one_size(201, types[t]);
    }
}

/* ---- larger ones, by products with vectors ---- */

static void multiply(const problem *p, const double *x, double *y)
{
    const ptrdiff_t n = frgi_spd_order(&p->m);
    for (ptrdiff_t i = 0; i < n; i++) {
        long double v = 0;
        for (ptrdiff_t k = 0; k < n; k++)
            v += (long double)p->full[i * n + k] * x[k];
        y[i] = (double)v;
    }
}

static double norm(const double *x, ptrdiff_t n)
{
    double s = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        s += x[i] * x[i];
    return sqrt(s);
}

/* LARGE_F32: from 900 rows on float32 goes over the CPU's tiles, where it has them; odd for their
 * edges. */
enum { COLUMNS = 11, LARGE = 1600, LARGE_F32 = 1231 };

/** Factor and inverse in one sweep have the bits of the two calls: the inverse is in p->m.elements, L^-1 y
 *  in z; and L^-T z by the rows of L^-1 is x, with a product's error.  Leaves that in solved. */
static void one_sweep(problem *p, const char *y, const char *z, const double *x, double logdet,
                      const frgi_spd_pivots *pivots, double *solved)
{
    const ptrdiff_t n = frgi_spd_order(&p->m);
    const size_t size = frg_sizeof(frgi_spd_dtype(&p->m));
    char *const two = malloc(p->bytes), *const b = calloc((size_t)n, size),
                *const c = calloc((size_t)n, size), *const d = calloc((size_t)n, size);
    double *const roots = calloc((size_t)n, sizeof *roots), *const e =
                                                                malloc((size_t)n * sizeof *e);
    double again = NAN;
    frgi_spd_pivots found;
    memcpy(two, p->m.elements, p->bytes);
    fill(p);
    memcpy(b, y, (size_t)n * size);
    CHECK_STATUS(frgi_spd_sweep(p->ctx, &p->m, b, c, roots, &again, &found), FRG_OK);
    CHECK(again == logdet && found.smallest == pivots->smallest &&
          found.largest == pivots->largest && found.pivot == -1);
    CHECK_BITS(b, z, (size_t)n * size);
    ptrdiff_t wrong = 0;
    for (ptrdiff_t j = 0; j < n; j++)
        for (ptrdiff_t i = j; i < n; i++)
            wrong += get(frgi_spd_dtype(&p->m), p->m.elements, at(&p->m, i, j)) !=
                     get(frgi_spd_dtype(&p->m), two, at(&p->m, i, j));
    CHECK_INT(wrong, 0);
    fill(p);
    CHECK_STATUS(frgi_spd_factor(p->ctx, &p->m, &again, &found), FRG_OK);
    frgi_spd_diagonal(&p->m, e);
    CHECK_BITS(roots, e, (size_t)n * sizeof *e);
    memcpy(d, z, (size_t)n * size);
    CHECK_STATUS(frgi_spd_inverse(p->ctx, &p->m, d), FRG_OK);
    CHECK_BITS(c, d, (size_t)n * size);
    for (ptrdiff_t i = 0; i < n; i++) {
        solved[i] = get(frgi_spd_dtype(&p->m), c, i);
        e[i] = solved[i] - x[i];
    }
    CHECK_SAYS(norm(e, n) <= 48 * ((double)n + 20) * unit(frgi_spd_dtype(&p->m)) * norm(x, n),
               "n %td: a off by %g", n, norm(e, n) / norm(x, n));
    free(two);
    free(b);
    free(c);
    free(d);
    free(roots);
    free(e);
}

/** Every call with q columns of y = A x, against x; the bits against those of one thread. */
static void calls(ptrdiff_t n, frg_dtype t, ptrdiff_t q, int threads, double *keep)
{
    problem p = make(n, t, threads);
    fill(&p);
    const ptrdiff_t ldb = n + 3;
    const size_t size = frg_sizeof(t);
    double *const x = malloc((size_t)(n * q) * sizeof *x), *const y =
                                                               malloc((size_t)(n * q) * sizeof *y);
    double *const d = malloc((size_t)n * sizeof *d);
    char *const b = calloc((size_t)(ldb * q), size), *const c = calloc((size_t)(ldb * q), size);
    for (ptrdiff_t i = 0; i < n * q; i++)
        x[i] = (double)(float)test_normal();
    for (ptrdiff_t k = 0; k < q; k++) {
        multiply(&p, x + k * n, y + k * n);
        for (ptrdiff_t i = 0; i < n; i++)
            put(t, b, i + k * ldb, y[i + k * n]);
    }
    double logdet;
    frgi_spd_pivots pivots;
    const double u = unit(t), allowed = 48 * ((double)n + 20) * u;
    memcpy(c, b, (size_t)n * size);
    CHECK_STATUS(frgi_spd_factor_forward(p.ctx, &p.m, c, &logdet, &pivots), FRG_OK);
    CHECK_STATUS(frgi_spd_forward(p.ctx, &p.m, q, b, ldb), FRG_OK);
    if (q == 1)
        CHECK_BITS(b, c, (size_t)n * size);
    char *const z = malloc((size_t)n * size);
    memcpy(z, c, (size_t)n * size);
    CHECK_STATUS(frgi_spd_backward(p.ctx, &p.m, q, b, ldb), FRG_OK);
    double *const e = malloc((size_t)n * sizeof *e);
    for (ptrdiff_t k = 0; k < q; k++) {
        for (ptrdiff_t i = 0; i < n; i++)
            e[i] = get(t, b, i + k * ldb) - x[i + k * n];
        CHECK_SAYS(norm(e, n) <= allowed * norm(x + k * n, n), "n %td %s: solve off by %g u", n,
                   frg_dtype_name(t), norm(e, n) / norm(x + k * n, n) / u);
    }
    CHECK_STATUS(frgi_spd_inverse(p.ctx, &p.m, NULL), FRG_OK);
    for (ptrdiff_t k = 0; k < q; k++)
        for (ptrdiff_t i = 0; i < n; i++)
            put(t, c, i + k * ldb, y[i + k * n]);
    CHECK_STATUS(frgi_spd_times(p.ctx, &p.m, q, c, ldb, b, ldb), FRG_OK);
    for (ptrdiff_t k = 0; k < q; k++) {
        for (ptrdiff_t i = 0; i < n; i++)
            e[i] = get(t, b, i + k * ldb) - x[i + k * n];
        CHECK_SAYS(norm(e, n) <= allowed * norm(x + k * n, n), "n %td %s: product off by %g u", n,
                   frg_dtype_name(t), norm(e, n) / norm(x + k * n, n) / u);
    }
    frgi_spd_diagonal(&p.m, d);
    char *const first = calloc((size_t)n, size);
    for (ptrdiff_t i = 0; i < n; i++)
        put(t, first, i, y[i]);
    one_sweep(&p, first, z, x, logdet, &pivots, e);
    free(first);
    free(z);
    if (keep[0] == keep[0])
        CHECK_BITS(e, keep + 1 + n * (q + 1), (size_t)n * sizeof *e);
    else
        memcpy(keep + 1 + n * (q + 1), e, (size_t)n * sizeof *e);
    if (keep[0] != keep[0]) {
        keep[0] = logdet;
        for (ptrdiff_t i = 0; i < n; i++)
            keep[1 + i] = d[i];
        for (ptrdiff_t i = 0; i < n * q; i++)
            keep[1 + n + i] = get(t, b, i % n + i / n * ldb);
    } else {
        CHECK(keep[0] == logdet);
        CHECK_BITS(d, keep + 1, (size_t)n * sizeof *d);
        for (ptrdiff_t i = 0; i < n * q; i++)
            CHECK(keep[1 + n + i] == get(t, b, i % n + i / n * ldb));
    }
    free(e);
    free(b);
    free(c);
    free(d);
    free(x);
    free(y);
    drop(&p);
}

static void threads(void)
{
    static const ptrdiff_t n[] = {1, 7, 50, 96, 200, 209, 288, 289, 384, 432, 433, 500, 577, 720};
    static const int of[] = {1, 2, 3, 8};
    for (int t = 0; t < 2; t++) {
        for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
            if (!test_turn((int64_t)i, 4))
                continue;
            double *const keep = malloc((size_t)(1 + n[i] * (COLUMNS + 2)) * sizeof *keep);
            const uint64_t random = test_now.random;
            keep[0] = NAN;
            for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
                test_now.random = random;
                calls(n[i], types[t], i % 3 == 0 ? 1 : COLUMNS, of[k], keep);
            }
            free(keep);
        }
    }
}

static void large(void)
{
    double *const keep = malloc((size_t)(1 + LARGE * (COLUMNS + 2)) * sizeof *keep);
    for (int t = 0; t < 2; t++) {
        const uint64_t random = test_now.random;
        const ptrdiff_t n = test_size(types[t] == FRG_F64 ? LARGE : LARGE_F32, 400);
        keep[0] = NAN;
        for (int threads_now = 1; threads_now <= 3; threads_now++) { /* solves use them too */
            test_now.random = random;
            calls(n, types[t], 3, threads_now, keep);
        }
    }
    free(keep);
}

/* ---- what is not posdef, congruence, copies ---- */

static void not_posdef(void)
{
    static const ptrdiff_t n[] = {1, 3, 8, 20, 64, 150, 230, 500};
    for (int t = 0; t < 2; t++) {
        for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
            for (int kind = 0; kind < 4; kind++) {
                problem p = make(n[i], types[t], 2);
                const ptrdiff_t at_row = test_below(n[i]);
                const double bad[] = {0, -3, NAN, INFINITY};
                for (ptrdiff_t k = 0; k < n[i]; k++) /* row and column independent of the others */
                    p.full[at_row + k * n[i]] = p.full[k + at_row * n[i]] = 0;
                p.full[at_row * (n[i] + 1)] = bad[kind];
                fill(&p);
                double logdet = 17;
                frgi_spd_pivots pivots;
                CHECK_STATUS(frgi_spd_factor(p.ctx, &p.m, &logdet, &pivots), FRG_NOT_POSDEF);
                CHECK_INT(pivots.pivot, at_row);
                CHECK(pivots.value == bad[kind] || (pivots.value != pivots.value && kind == 2));
                CHECK(logdet == 17);
                fill(&p);
                double *const v = calloc((size_t)(3 * n[i]), sizeof *v);
                CHECK_STATUS(
                    frgi_spd_sweep(p.ctx, &p.m, v, v + n[i], v + 2 * n[i], &logdet, &pivots),
                    FRG_NOT_POSDEF);
                CHECK_INT(pivots.pivot, at_row);
                CHECK(logdet == 17);
                free(v);
                drop(&p);
            }
        }
    }
}

static void congruence(void)
{
    static const ptrdiff_t n[] = {1, 9, 33, 64, 130, 210, 400};
    for (int t = 0; t < 2; t++) {
        for (size_t m = 0; m < sizeof n / sizeof *n; m++) {
            problem p = make(n[m], types[t], 2);
            fill(&p);
            double *const w = malloc((size_t)n[m] * sizeof *w);
            for (ptrdiff_t i = 0; i < n[m]; i++)
                w[i] = 0.1 + test_uniform();
            void *b;
            CHECK_OK(p.ctx, frgi_alloc(p.ctx, &b, p.bytes, "test"));
            const frgi_spd second = frgi_spd_like(&p.m, b);
            CHECK_STATUS(frgi_spd_congruence(p.ctx, &p.m, w, &second), FRG_OK);
            double worst = 0;
            for (ptrdiff_t j = 0; j < n[m]; j += 3) {
                for (ptrdiff_t i = j; i < n[m]; i += 2) {
                    double v = 0, size = 0;
                    for (ptrdiff_t k = 0; k < n[m]; k++) {
                        v += p.full[i + k * n[m]] * w[k] * p.full[k + j * n[m]];
                        size += fabs(p.full[i + k * n[m]] * w[k] * p.full[k + j * n[m]]);
                    }
                    worst = fmax(worst, fabs(v - get(types[t], b, at(&p.m, i, j))) / size);
                }
            }
            /* a sum of n terms, each with three roundings */
            CHECK_SAYS(worst <= ((double)n[m] + 4) * unit(types[t]), "n %td: %g u", n[m],
                       worst / unit(types[t]));
            frgi_free(p.ctx, &b);
            free(w);
            drop(&p);
        }
    }
}

/** Entries of the rows behind the data that are not a unit matrix's. */
static ptrdiff_t wrong_padding(const frgi_spd *m)
{
    const frgi_spd_layout *const s = &m->layout;
    ptrdiff_t wrong = 0;
    for (ptrdiff_t i = s->n; i < s->padded; i++)
        for (ptrdiff_t j = 0; j <= i; j++)
            wrong += get(s->dtype, m->elements, at(m, i, j)) != (i == j);
    return wrong;
}

/** A copy has everything that is read of it later, whatever its memory held before: NaN here. */
static void copies(void)
{
    static const ptrdiff_t n[] = {1, 17, 100, 379, 385, 600};
    for (size_t m = 0; m < sizeof n / sizeof *n; m++) {
        problem p = make(n[m], FRG_F32, 3);
        fill(&p);
        const size_t bytes = frgi_spd_bytes(n[m], FRG_F64);
        void *b;
        CHECK_OK(p.ctx, frgi_alloc(p.ctx, &b, bytes, "test"));
        memset(b, 0xff, bytes);
        const frgi_spd wide = frgi_spd_place(n[m], FRG_F64, b, NULL, SOLVER);
        frgi_spd_convert(p.ctx, &p.m, &wide);
        memset(p.m.elements, 0xff, p.bytes);
        frgi_spd_convert(p.ctx, &wide, &p.m);
        ptrdiff_t wrong = wrong_padding(&wide) + wrong_padding(&p.m);
        for (ptrdiff_t j = 0; j < n[m]; j++)
            for (ptrdiff_t i = j; i < n[m]; i++)
                wrong += get(FRG_F64, b, at(&wide, i, j)) != p.full[i + j * n[m]] ||
                         get(FRG_F32, p.m.elements, at(&p.m, i, j)) != p.full[i + j * n[m]];
        CHECK_INT(wrong, 0);
        double *const d = malloc((size_t)n[m] * sizeof *d);
        for (ptrdiff_t i = 0; i < n[m]; i++)
            d[i] = (double)i + 0.5;
        frgi_spd_set_diagonal(&p.m, d);
        memset(d, 0, (size_t)n[m] * sizeof *d);
        frgi_spd_diagonal(&p.m, d);
        for (ptrdiff_t i = 0; i < n[m]; i++)
            CHECK(d[i] == (double)i + 0.5);
        free(d);
        frgi_free(p.ctx, &b);
        drop(&p);
    }
}

static int stop(const frg_progress *p, void *user)
{
    return --*(int *)user < 0 && strcmp(p->solver, SOLVER) == 0;
}

static void cancelled(void)
{
    for (int threads_now = 1; threads_now < 3; threads_now++) {
        problem p = make(400, FRG_F64, threads_now);
        fill(&p);
        frg_context_opts o;
        frg_context_defaults(&o, sizeof o);
        int left = 2;
        o.threads = threads_now;
        o.on_progress = stop;
        o.user = &left;
        frg_context *ctx = NULL;
        CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
        double logdet;
        frgi_spd_pivots pivots;
        CHECK_STATUS(frgi_spd_factor(ctx, &p.m, &logdet, &pivots), FRG_INTERRUPTED);
        left = 1000;
        fill(&p);
        CHECK_STATUS(frgi_spd_factor(ctx, &p.m, &logdet, &pivots), FRG_OK);
        left = 1;
        CHECK_STATUS(frgi_spd_inverse(ctx, &p.m, NULL), FRG_INTERRUPTED);
        frg_context_destroy(ctx);
        drop(&p);
    }
}

static void one_level(void)
{
    static const ptrdiff_t n[] = {1, 23, 50, 100, 144, 203, 250};
    for (int t = 0; t < 2; t++) {
        double keep[1 + 250 * (COLUMNS + 2)];
        for (size_t m = 0; m < sizeof n / sizeof *n; m++) {
            if (m < 4)
                one_size(n[m], types[t]);
            keep[0] = NAN;
            calls(n[m], types[t], COLUMNS, 2, keep);
        }
    }
}

/** Every CPU level of this machine gives the same within rounding. */
static void levels(void)
{
    test_at_levels(one_level);
}

static const test_case cases[] = {
    {"sizes", sizes},           {"threads", threads},       {"large", large},
    {"not posdef", not_posdef}, {"congruence", congruence}, {"copies", copies},
    {"cancelled", cancelled},   {"levels", levels},
};
TEST_MAIN(cases)
