/* gw_sweep.tmpl.h - the pass over a chunk of rows; included once for each way of storing exponents
 * or kernels.
 *
 * Eight rows at a time.  The sums of a row have to be known before its weights can be added to the
 * columns, so the columns of the eight rows before are added inside the loop that sums these eight:
 * one read of g and one of col serve 16 row elements, and what is read twice (the weights, 192 KB
 * at 6000 columns; of kernels the stored entries themselves) stays in L2.
 *
 * Template parameters: real, vec (LANES reals), stored (element of x), RN(name), KERNEL: 1 where x
 * holds kernel entries and g holds v.  LOAD(p, v): vec v of the AT_ONCE that are stored from p on;
 * SHIFT(g): what the columns' increment becomes before the row loop; EXPONENT(p, shifted):
 * exponents; ROWS: what is stored of 8 rows.
 */

/** The sums of the weights of 8 rows, and col += p (the weights of the 8 rows before). */
INLINE void RN(group)(const frgi_sweep *s, const stored *x, const stored *x_before, const real *g,
                      const real *p, real *w, real *col, double *sums)
{
    const ptrdiff_t ld = s->ld;
    vec total[FRGI_GROUP] = {{0}};
    const real step = (real)s->x.step, low = (real)s->x.low;
    (void)step;
    (void)low;
    (void)x_before;
    (void)w;
#if KERNEL
    for (ptrdiff_t j = 0; j < ld; j += AT_ONCE * LANES) {
        vec gj[AT_ONCE], c[AT_ONCE];
        EACH_OF_ONCE gj[v] = FN(at)(g + j + v * LANES);
        EACH_OF_ONCE c[v] = FN(at)(col + j + v * LANES);
#pragma GCC unroll 8
        for (int r = 0; r < FRGI_GROUP; r++) {
            __builtin_prefetch(x + r * ld + j + 512 / (ptrdiff_t)sizeof *x);
            EACH_OF_ONCE c[v] += p[r] * LOAD(x_before + r * ld + j, v);
            EACH_OF_ONCE total[r] += LOAD(x + r * ld + j, v) * gj[v];
        }
        EACH_OF_ONCE FN(put)(col + j + v * LANES, c[v]);
    }
#else
    for (ptrdiff_t j = 0; j < ld; j += LANES) {
        const vec gj = SHIFT(FN(at)(g + j));
        vec c = FN(at)(col + j);
#pragma GCC unroll 8
        for (int r = 0; r < FRGI_GROUP; r++) {
            __builtin_prefetch(x + r * ld + j + 512 / (ptrdiff_t)sizeof *x);
            real *const at = w + j * FRGI_GROUP + r * LANES;
            c += p[r] * FN(at)(at);
            const vec y = FN(power)(EXPONENT(x + r * ld + j, gj));
            FN(put)(at, y);
            total[r] += y;
        }
        FN(put)(col + j, c);
    }
#endif
    for (int r = 0; r < FRGI_GROUP; r++) {
        sums[r] = FN(sum)(total[r]);
    }
}

INLINE void RN(flush)(const frgi_sweep *s, const stored *x_before, const real *p, const real *w,
                      real *col)
{
    const ptrdiff_t ld = s->ld;
    (void)x_before;
    (void)w;
#if KERNEL
    for (ptrdiff_t j = 0; j < ld; j += AT_ONCE * LANES) {
        for (int r = 0; r < FRGI_GROUP; r++) {
            EACH_OF_ONCE FN(put)(col + j + v * LANES, FN(at)(col + j + v * LANES) +
                                                          p[r] * LOAD(x_before + r * ld + j, v));
        }
    }
#else
    for (ptrdiff_t j = 0; j < ld; j += LANES) {
        vec c = FN(at)(col + j);
#pragma GCC unroll 8
        for (int r = 0; r < FRGI_GROUP; r++) {
            c += p[r] * FN(at)(w + j * FRGI_GROUP + r * LANES);
        }
        FN(put)(col + j, c);
    }
#endif
}

#if !KERNEL
/** One row again, relative to its largest exponent, which is returned. */
static double RN(far_row)(const frgi_sweep *s, const stored *x, real *w, double *sum)
{
    const real *const g = s->g;
    const real step = (real)s->x.step, low = (real)s->x.low;
    real top = (real)-1e30;
    vec total = {0};
    (void)step;
    (void)low;
    for (ptrdiff_t j = 0; j < s->ld; j += LANES) {
        const vec z = EXPONENT(x + j, SHIFT(FN(at)(g + j)));
        for (int l = 0; l < LANES; l++) {
            top = z[l] > top ? z[l] : top;
        }
    }
    for (ptrdiff_t j = 0; j < s->ld; j += LANES) {
        const vec y = FN(power)(EXPONENT(x + j, SHIFT(FN(at)(g + j))) - top);
        FN(put)(w + j * FRGI_GROUP, y);
        total += y;
    }
    *sum = FN(sum)(total);
    return (double)top;
}
#endif

/** p of row i from the sum of its weights, and what final_rows needs. */
INLINE real RN(end_of_row)(const frgi_sweep *s, const stored *x, int64_t i, real *w, double sum,
                           int64_t *far)
{
    double guess = s->base.H0[i];
#if KERNEL
    (void)x;
    (void)w;
    (void)far;
#else
    if (!(sum >= 1e-24 && sum <= 1e24)) {
        guess -= RN(far_row)(s, x, w, &sum);
        ++*far;
    }
#endif
    /* a row that is too far for any but the dummy column: all of it, in finite numbers */
    const double exponent = fmin(s->dummy.g + guess, 1000);
    const double dummy_weight = s->dummy.a > 0 ? power_of_two(exponent) : 0;
    const double p = finish_row(s, i, sum + dummy_weight, guess);
    s->dummy.row[i] = p * dummy_weight;
    return (real)p;
}

static void RN(chunk)(const frgi_sweep *s, int64_t chunk, void *scratch)
{
    const unsigned mode = frgi_flush_denormals();
    const ptrdiff_t ld = s->ld;
    const int64_t groups = s->rows / FRGI_GROUP;
    const int64_t first = chunk * groups / s->chunks, last = (chunk + 1) * groups / s->chunks;
    real *const w = scratch, *const col = (real *)s->partial + chunk * ld;
    float *const built = (float *)(void *)(w + FRGI_GROUP * ld);
    real p[FRGI_GROUP] = {0};
    const stored *before = (const stored *)(void *)w; /* zeros, with p = 0 */
    memset(col, 0, (size_t)ld * sizeof *col);
    memset(w, 0, (size_t)(FRGI_GROUP * ld) * sizeof *w);
    s->out_of_range[chunk] = 0;
    for (int64_t i0 = first * FRGI_GROUP; i0 < last * FRGI_GROUP; i0 += FRGI_GROUP) {
        const stored *const x = ROWS(s, i0, built, i0 / FRGI_GROUP - first, last - i0 / FRGI_GROUP);
        double sums[FRGI_GROUP];
        RN(group)(s, x, before, s->g, p, w, col, sums);
        for (int r = 0; r < FRGI_GROUP; r++) {
            const int64_t i = i0 + r;
            p[r] = i < s->n ? RN(end_of_row)(s, x + r * ld, i, w + r * LANES, sums[r],
                                             &s->out_of_range[chunk])
                            : 0;
        }
        before = x;
    }
    RN(flush)(s, before, p, w, col);
    final_rows(s, first * FRGI_GROUP, last * FRGI_GROUP);
    frgi_restore_denormals(mode);
}
