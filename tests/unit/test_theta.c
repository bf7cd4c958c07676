/* test_theta.c - the likelihood of a negative binomial model in theta, 1e-8 to 1e14, beside sums
 * over the integers below a count, in long double:
 *
 *     log Gamma(y + t) - log Gamma(t) - y log t = sum_{j < y} log(1 + j / t)
 *
 * and its derivatives, and sums of log(1 + m) - m, none of which cancels as theta grows.
 *
 * Tolerances.  A term is rounded a few times, and up to 12 of a small theta come one after another:
 * 1e-14 of the largest of them, which is the sum itself where theta is large.
 */
#include "regress/reg_family.h"
#include "test.h"

typedef long double real;

static void near(double got, real want, real largest, const char *what, double theta, double y)
{
    const double error = fabs((double)(got - want));
    CHECK_SAYS(error <= 1e-14 * (double)largest, "%s at theta %g, y %g: %.17g, expected %.17Lg",
               what, theta, y, got, want);
}

static void ratios(void)
{
    for (int k = -8; k <= 14; k++) {
        for (int y = 0; y < 300; y = y < 20 ? y + 1 : 2 * y - 7) {
            const double theta = pow(10, k) * (1 + 0.5 * test_uniform());
            real sum = 0;
            for (int j = 1; j < y; j++)
                sum += log1pl(j / (real)theta);
            /* below 12 the terms of a small theta are y log(12 / theta) */
            const real largest =
                theta < 12 ? sum + y * logl(13 / (real)theta) + 1 : 3 * (sum + y / (real)theta);
            near(frgi_gamma_ratio(theta, y), sum, largest, "the ratio", theta, y);
        }
    }
}

/** log Gamma(x + y + 1) - log Gamma(x + y) = log(x + y), for any y. */
static void recurrence(void)
{
    for (int k = 0; k < 400; k++) {
        const double x = exp(20 * test_uniform() - 10), y = exp(10 * test_uniform() - 5);
        const real want = log1pl(y / (real)x), size = frgi_gamma_ratio(x, y + 1);
        near(frgi_gamma_ratio(x, y + 1) - frgi_gamma_ratio(x, y), want,
             2 * size + (y + 1) * (x < 12 ? logl(13 / (real)x) : 0) + 1, "the next ratio", x, y);
    }
}

/** Of three rows of a weight, at means of the size of the counts. */
static void slopes(void)
{
    frg_context *const ctx = test_context();
    for (int k = -4; k <= 12; k++) {
        const double theta = pow(10, k) * (1 + 0.5 * test_uniform());
        const double y[3] = {0, (double)test_below(9), (double)test_below(200)}, w[3] = {1, 2, 0.5};
        const double mu[3] = {0.3, 1 + 8 * test_uniform(), 250 * test_uniform()};
        const frgi_counts counts = {.ctx = ctx, .n = 3, .y = y, .w = w, .mu = mu};
        const frgi_theta_slopes s = frgi_theta_slopes_at(&counts, theta);
        const real t = theta;
        real first = 0, second = 0, sizes[2] = {0};
        for (int i = 0; i < 3; i++) {
            const real m = mu[i], q = m / t, r = y[i] - m;
            real gap = q - log1pl(q);
            for (int j = 25; j >= 2 && q < 0.05L; j--) /* its series */
                gap = j == 25 ? 1 / 25.0L : 1 / (real)j - q * gap;
            gap *= q < 0.05L ? q * q : 1;
            real a = gap + r * m / (t * (t + m)), b = -m * q / (t * (t + m));
            sizes[0] += w[i] * (gap + fabsl(r) * m / (t * (t + m)));
            b -= r * m * (2 * t + m) / (t * t * (t + m) * (t + m));
            sizes[1] += w[i] * (fabsl(r) + m) * m * (2 * t + m) / (t * t * (t + m) * (t + m));
            for (int j = 1; j < (int)y[i]; j++) {
                a -= j / (t * (t + j));
                b += j * (2 * t + j) / (t * t * (t + j) * (t + j));
            }
            sizes[0] += w[i] * (y[i] / t) * (t < 12 ? 12 : y[i] / t);
            sizes[1] += w[i] * (y[i] / (t * t)) * (t < 12 ? 12 : 2 * y[i] / t);
            first += w[i] * a;
            second += w[i] * b;
        }
        near(s.first, first, 3 * sizes[0], "the slope", theta, y[2]);
        near(s.second, second, 3 * sizes[1], "the bend", theta, y[2]);
    }
    frg_context_destroy(ctx);
}

/** y = 0 and 2 m at a mean m: the best theta is the same from any start, the likelihood's slope is
 *  below at both sides of it, and without an excess it is infinite. */
static void best(void)
{
    frg_context *const ctx = test_context();
    for (int k = 0; k < 40; k++) {
        const double m = 1.5 + 20 * test_uniform(), y[2] = {0, 2 * m}, mu[2] = {m, m};
        const frgi_counts counts = {.ctx = ctx, .n = 2, .y = y, .mu = mu};
        const double theta = frgi_theta_best(&counts, INFINITY);
        const double starts[] = {1e-6, 0.5, 3, 1e5};
        CHECK(isfinite(theta) && frgi_theta_stands(&counts, theta));
        CHECK(!frgi_theta_stands(&counts, INFINITY) && !frgi_theta_stands(&counts, 1.01 * theta));
        CHECK(frgi_theta_slopes_at(&counts, 0.99 * theta).first > 0);
        CHECK(frgi_theta_slopes_at(&counts, 1.01 * theta).first < 0);
        for (int i = 0; i < 4; i++)
            CHECK_NEAR(frgi_theta_best(&counts, starts[i]), theta, 1e-12 * theta);
        const double even[2] = {m - 0.5, m + 0.5};
        const frgi_counts narrow = {.ctx = ctx, .n = 2, .y = even, .mu = mu};
        for (int i = 0; i < 4; i++)
            CHECK(isinf(frgi_theta_best(&narrow, starts[i])));
        CHECK(isinf(frgi_theta_best(&narrow, INFINITY)) && frgi_theta_stands(&narrow, INFINITY));
    }
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"ratios", ratios}, {"recurrence", recurrence}, {"slopes", slopes}, {"best", best}};
TEST_MAIN(cases)
