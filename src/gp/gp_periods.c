/* gp_periods.c - dominant periods of y along one column of x, from a Lomb-Scargle periodogram.
 *
 * For each frequency f the power is what y = a cos 2 pi f x + b sin 2 pi f x explains of y by least
 * squares, at any spacing of the points (Lomb 1976, Scargle 1982; the sums here are those of the
 * plain normal equations), summed over the columns of y:
 *
 *     P(f) = (YC^2 SS + YS^2 CC - 2 YC YS CS) / (CC SS - CS^2),   CC = sum cos^2, YC = sum y cos,
 *                                                                 ...
 *
 * after a quadratic trend is taken out of y.  Frequencies are multiples of 1 / (OVER range), from
 * two fifths of a cycle over the range to the mean Nyquist frequency (n - 1) / (2 range); a local
 * maximum is refined by a parabola.  cos and sin are rotated from one frequency to the next.  Cost:
 * at most MOST_POINTS x MOST_FREQUENCIES rotations. */
#include <math.h>
#include <string.h>

#include "gp/gp_fit.h"

enum { OVER = 5, MOST_POINTS = 512, MOST_FREQUENCIES = 8192, DEGREE = 2 };
#define PERIOD_STREAM UINT64_C(0x67702d706572696f)

typedef struct {
    ptrdiff_t n, q;
    double range;
    double *x;               /* n: from the first point on, in units of the range */
    double *y;               /* n x q: without trend */
    double *cosine, *sine;   /* n: at the current frequency */
    double *turn_c, *turn_s; /* n: cosine and sine of the rotation from one to the next */
    double *power;           /* of each frequency */
    int frequencies;
} periodogram;

/** The r-th of n of `all` rows: all of them, or one at random of each of n stretches, which keeps
 *  short periods apart. */
static ptrdiff_t row_of(ptrdiff_t r, ptrdiff_t n, ptrdiff_t all)
{
    const ptrdiff_t begin = r * all / n, end = (r + 1) * all / n;
    double u[2];
    if (end - begin <= 1) {
        return begin;
    }
    frgi_uniforms(0, PERIOD_STREAM, (uint64_t)r, 0, u);
    return begin + (ptrdiff_t)(u[0] * (double)(end - begin));
}

static void take_points(periodogram *p, const frg_gp *gp, ptrdiff_t column)
{
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        const double v = gp->data.x[i * gp->data.d + column];
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    p->range = high - low;
    for (ptrdiff_t r = 0; r < p->n && p->range > 0; r++) {
        const ptrdiff_t i = row_of(r, p->n, gp->data.n);
        p->x[r] = (gp->data.x[i * gp->data.d + column] - low) / p->range;
        for (ptrdiff_t c = 0; c < p->q; c++) {
            p->y[c * p->n + r] = gp->data.y[c * gp->data.n + i];
        }
    }
}

/** v <- v - (v'b / b'b) b. */
static void project_out(double *v, const double *b, ptrdiff_t n)
{
    const double square = frgi_gp_dot(n, b, b),
                 share = square > 0 ? frgi_gp_dot(n, v, b) / square : 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        v[i] -= share * b[i];
    }
}

/** y without its polynomial of DEGREE in x, which is made orthogonal power by power in basis
 *  ((DEGREE + 1) x n). */
static void remove_trend(periodogram *p, double *basis)
{
    for (int k = 0; k <= DEGREE; k++) {
        double *const b = basis + k * p->n;
        for (ptrdiff_t i = 0; i < p->n; i++) {
            b[i] = k == 0 ? 1 : basis[(k - 1) * p->n + i] * (p->x[i] - 0.5);
        }
        for (int j = 0; j < k; j++) {
            project_out(b, basis + j * p->n, p->n);
        }
        if (frgi_gp_dot(p->n, b, b) <=
            1e-12 * (double)p->n) { /* too few different points for this power */
            memset(b, 0, (size_t)p->n * sizeof *b);
        }
        for (ptrdiff_t c = 0; c < p->q; c++) {
            project_out(p->y + c * p->n, b, p->n);
        }
    }
}

/** The largest |y| becomes 1, so that squares neither overflow nor vanish. */
static void normalise(periodogram *p)
{
    double largest = 0;
    for (ptrdiff_t i = 0; i < p->n * p->q; i++) {
        largest = fabs(p->y[i]) > largest ? fabs(p->y[i]) : largest;
    }
    for (ptrdiff_t i = 0; i < p->n * p->q && largest > 0; i++) {
        p->y[i] /= largest;
    }
}

static double power_now(const periodogram *p)
{
    const double cc = frgi_gp_dot(p->n, p->cosine, p->cosine),
                 ss = frgi_gp_dot(p->n, p->sine, p->sine),
                 cs = frgi_gp_dot(p->n, p->cosine, p->sine), determinant = cc * ss - cs * cs;
    double power = 0;
    for (ptrdiff_t c = 0; c < p->q; c++) {
        const double yc = frgi_gp_dot(p->n, p->y + c * p->n, p->cosine),
                     ys = frgi_gp_dot(p->n, p->y + c * p->n, p->sine);
        power += yc * yc * ss + ys * ys * cc - 2 * yc * ys * cs;
    }
    return determinant > 1e-9 * (double)(p->n * p->n) ? power / determinant : 0;
}

static void fill_power(periodogram *p)
{
    for (ptrdiff_t i = 0; i < p->n; i++) {
        const double angle = 2 * M_PI / OVER * p->x[i];
        p->turn_c[i] = cos(angle);
        p->turn_s[i] = sin(angle);
        p->cosine[i] = 1;
        p->sine[i] = 0;
    }
    for (int f = 0; f < p->frequencies; f++) {
        p->power[f] = f >= OVER / 2 ? power_now(p) : 0;
        for (ptrdiff_t i = 0; i < p->n; i++) {
            const double c = p->cosine[i], s = p->sine[i];
            p->cosine[i] = c * p->turn_c[i] - s * p->turn_s[i];
            p->sine[i] = s * p->turn_c[i] + c * p->turn_s[i];
        }
    }
}

/** The frequency, in multiples of 1 / OVER cycles over the range, where a parabola through a local
 *  maximum is largest. */
static double refined(const double *power, int f)
{
    const double a = power[f - 1], b = power[f], c = power[f + 1], bend = a - 2 * b + c;
    return f + (bend < 0 ? 0.5 * (a - c) / bend : 0);
}

/** The largest local maxima, the highest first. */
static int take_peaks(const periodogram *p, double periods[FRGI_GP_PERIODS])
{
    double power[FRGI_GP_PERIODS] = {0};
    int count = 0;
    for (int f = OVER / 2; f + 1 < p->frequencies; f++) {
        const double v = p->power[f];
        if (!(v > 0 && v > p->power[f - 1] && v >= p->power[f + 1])) {
            continue;
        }
        int at = count < FRGI_GP_PERIODS ? count++ : FRGI_GP_PERIODS;
        while (at > 0 && v > power[at - 1]) {
            if (at < FRGI_GP_PERIODS) {
                power[at] = power[at - 1];
                periods[at] = periods[at - 1];
            }
            at--;
        }
        if (at < FRGI_GP_PERIODS) {
            power[at] = v;
            periods[at] = p->range * OVER / refined(p->power, f);
        }
    }
    return count;
}

static void lay_out(frgi_arena *a, periodogram *p, double **basis)
{
    double **const vectors[] = {&p->x, &p->cosine, &p->sine, &p->turn_c, &p->turn_s};
    for (size_t k = 0; k < sizeof vectors / sizeof *vectors; k++) {
        *vectors[k] = TAKE(a, double, p->n);
    }
    p->y = TAKE(a, double, p->n * p->q);
    p->power = TAKE(a, double, p->frequencies);
    *basis = TAKE(a, double, (DEGREE + 1) * p->n);
}

frg_status frgi_gp_periods(const frg_gp *gp, ptrdiff_t column, double periods[FRGI_GP_PERIODS],
                           int *count)
{
    periodogram p = {.n = gp->data.n < MOST_POINTS ? gp->data.n : MOST_POINTS, .q = gp->data.q};
    double *basis;
    const ptrdiff_t wanted = OVER * (gp->data.n - 1) / 2 + 2;
    p.frequencies = wanted < MOST_FREQUENCIES ? (int)wanted : MOST_FREQUENCIES;
    *count = 0;
    if (gp->data.n < 4) {
        return FRG_OK;
    }
    frgi_arena a = {0};
    lay_out(&a, &p, &basis);
    TRY(frgi_arena_open(&a, gp->ctx, "a periodogram"));
    lay_out(&a, &p, &basis);
    take_points(&p, gp, column);
    if (p.range > 0 && isfinite(p.range)) {
        normalise(&p);
        remove_trend(&p, basis);
        normalise(&p);
        fill_power(&p);
        *count = take_peaks(&p, periods);
    }
    frgi_arena_close(&a, gp->ctx);
    return FRG_OK;
}
