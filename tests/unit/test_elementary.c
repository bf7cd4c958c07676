/* test_elementary.c - exp, log, log1p, sine and cosine in vector loops against long double libm, at
 * every CPU level.
 *
 * The long double of x86 has 11 bits more than double, so its own error is below 2^-10 units in the
 * last place.
 */
#include "linalg/elementary.h"
#include "test.h"

enum { POINTS = 4096, LEVELS = 3 };

typedef struct {
    void (*f64)(const double *x, double *y, int64_t n);
    void (*f32)(const float *x, float *y, int64_t n);
} loops;

/* One loop a function, type and level; the functions are inlined into it and take its instruction
 * set. */
#define LOOP(name, level, target, type, call)                                                      \
    target static void name##_##type##_##level(const type *restrict x, type *restrict y,           \
                                               int64_t n)                                          \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            call;                                                                                  \
        }                                                                                          \
    }
#define BOTH(name, level, target)                                                                  \
    LOOP(name, level, target, double, y[i] = frgi_##name##_f64(x[i]))                              \
    LOOP(name, level, target, float, y[i] = frgi_##name##_f32(x[i]))
#define TURNS(level, target)                                                                       \
    LOOP(sine, level, target, double, double c; frgi_turns_f64(x[i], &y[i], &c))                   \
    LOOP(sine, level, target, float, float c; frgi_turns_f32(x[i], &y[i], &c))                     \
    LOOP(cosine, level, target, double, double s; frgi_turns_f64(x[i], &s, &y[i]))                 \
    LOOP(cosine, level, target, float, float s; frgi_turns_f32(x[i], &s, &y[i]))
#define LEVEL(level, target)                                                                       \
    BOTH(exp, level, target)                                                                       \
    BOTH(exp_low, level, target)                                                                   \
    BOTH(log, level, target)                                                                       \
    BOTH(log1p, level, target)                                                                     \
    TURNS(level, target)

#if defined(__x86_64__)
LEVEL(base, )
LEVEL(avx2, __attribute__((target("avx2,fma"), optimize("O3"))))
LEVEL(avx512, __attribute__((target("avx512f,avx512vl,avx512dq,fma"), optimize("O3"))))
#define ALL(name)                                                                                  \
    {                                                                                              \
        {name##_double_base, name##_float_base}, {name##_double_avx2, name##_float_avx2},          \
        {                                                                                          \
            name##_double_avx512, name##_float_avx512                                              \
        }                                                                                          \
    }
static bool runs(int level)
{
    return level == 0 || (level == 1 && __builtin_cpu_supports("avx2")) ||
           (level == 2 && __builtin_cpu_supports("avx512vl"));
}
#else
LEVEL(base, )
#define ALL(name)                                                                                  \
    {                                                                                              \
        {                                                                                          \
            name##_double_base, name##_float_base                                                  \
        }                                                                                          \
    }
static bool runs(int level)
{
    return level == 0;
}
#endif

static const loops exp_loops[LEVELS] = ALL(exp), low_loops[LEVELS] = ALL(exp_low),
                   log_loops[LEVELS] = ALL(log), log1p_loops[LEVELS] = ALL(log1p),
                   sine_loops[LEVELS] = ALL(sine), cosine_loops[LEVELS] = ALL(cosine);

/** sin 2 pi x for a finite x, reduced exactly. */
static long double sine_turns(long double x)
{
    const long double r = x - rintl(x), q = rintl(4 * r), z = 2 * M_PIl * (r - q / 4);
    return q == 0 ? sinl(z) : q == 1 ? cosl(z) : q == -1 ? -cosl(z) : -sinl(z);
}

static long double cosine_turns(long double x)
{
    const long double r = x - rintl(x), q = rintl(4 * r), z = 2 * M_PIl * (r - q / 4);
    return q == 0 ? cosl(z) : q == 1 ? -sinl(z) : q == -1 ? sinl(z) : -cosl(z);
}

/** Error in units in the last place of `want`, normal results only. */
static double ulps(double got, long double want, int digits, double tiny)
{
    if (fabsl(want) < tiny)
        return got == 0 || fabs(got) < 2 * tiny ? 0 : HUGE_VAL;
    return (double)(fabsl(got - want) / ldexpl(1, ilogbl(want) - digits + 1));
}

/** Largest error over random x: uniform in [lo, hi], or its logarithm where `logs`. */
static void measure(const char *name, const loops levels[LEVELS], long double (*exact)(long double),
                    double lo, double hi, bool logs, double allowed)
{
    static double x[POINTS], y[POINTS];
    static float xf[POINTS], yf[POINTS];
    for (int level = 0; level < LEVELS; level++) {
        if (!levels[level].f64 || !runs(level))
            continue;
        double worst = 0, at = 0, worst_f = 0, at_f = 0;
        for (int round = 0; round < 4; round++) {
            for (int i = 0; i < POINTS; i++) {
                const double u = test_uniform(),
                             v = logs ? exp(log(lo) + u * log(hi / lo)) : lo + u * (hi - lo);
                x[i] = v;
                xf[i] = (float)v;
            }
            levels[level].f64(x, y, POINTS);
            levels[level].f32(xf, yf, POINTS);
            for (int i = 0; i < POINTS; i++) {
                const double e = ulps(y[i], exact(x[i]), 53, 0x1p-1022);
                const double f = ulps((double)yf[i], exact((long double)xf[i]), 24, 0x1p-126);
                at = e > worst ? x[i] : at;
                worst = e > worst ? e : worst;
                at_f = f > worst_f ? (double)xf[i] : at_f;
                worst_f = f > worst_f ? f : worst_f;
            }
        }
        CHECK_SAYS(worst <= allowed, "%s, level %d, f64: %.3f ulp at %.17g", name, level, worst,
                   at);
        CHECK_SAYS(worst_f <= allowed, "%s, level %d, f32: %.3f ulp at %.9g", name, level, worst_f,
                   at_f);
    }
}

/* The bounds of the header: half a unit of the last rounding, the same of the step before it, and
 * the error of the reduction. */
static void exponentials(void)
{
    measure("exp", exp_loops, expl, -1, 1, false, 1.5);
    measure("exp", exp_loops, expl, -86, 88, false, 1.5);
    measure("exp, low", low_loops, expl, -86, 80, false, 1.5);
    measure("exp of small", exp_loops, expl, 1e-20, 1, true, 1.5);
    static const double x[] = {0,        -0.0,        1,     -1000, 1000,   -HUGE_VAL,
                               HUGE_VAL, (double)NAN, 709.7, 709.8, -707.9, -708.1};
    static double y[12], low[12];
    static float f[12];
    static const float xf[] = {0,         -0.0f, 1,     -1000, 1000,   -HUGE_VALF,
                               HUGE_VALF, NAN,   88.7f, 88.8f, -86.8f, -87.0f};
    for (int level = 0; level < LEVELS && exp_loops[level].f64; level++) {
        if (!runs(level))
            continue;
        exp_loops[level].f64(x, y, 12);
        exp_loops[level].f32(xf, f, 12);
        low_loops[level].f64(x, low, 12);
        CHECK(low[0] == 1 && low[3] == 0 && low[5] == 0 && isnan(low[7]) && low[11] == 0);
        CHECK(low[2] == y[2] && low[10] == y[10]);
        CHECK(y[0] == 1 && y[1] == 1 && y[3] == 0 && y[4] == HUGE_VAL && y[5] == 0);
        CHECK(y[6] == HUGE_VAL && isnan(y[7]) && y[9] == HUGE_VAL && y[11] == 0);
        CHECK(ulps(y[2], expl(1), 53, 0) <= 1.5 && ulps(y[8], expl(709.7), 53, 0) <= 1.5);
        CHECK(ulps(y[10], expl(-707.9), 53, 0) <= 1.5);
        CHECK(f[0] == 1 && f[1] == 1 && f[3] == 0 && isinf(f[4]) && f[5] == 0 && isinf(f[6]));
        CHECK(isnan(f[7]) && isinf(f[9]) && f[11] == 0);
        CHECK(ulps((double)f[8], expl((long double)88.7f), 24, 0) <= 1.5);
        CHECK(ulps((double)f[10], expl((long double)-86.8f), 24, 0) <= 1.5);
    }
}

static void exponential_range(void)
{
    /* f64 alone reaches this far */
    static double x[POINTS], y[POINTS];
    for (int level = 0; level < LEVELS && exp_loops[level].f64; level++) {
        if (!runs(level))
            continue;
        for (int i = 0; i < POINTS; i++)
            x[i] = -707.99 + i * (709.78 + 707.99) / (POINTS - 1);
        exp_loops[level].f64(x, y, POINTS);
        double worst = 0;
        for (int i = 0; i < POINTS; i++)
            worst = fmax(worst, ulps(y[i], expl(x[i]), 53, 0x1p-1022));
        CHECK_SAYS(worst <= 1.5, "level %d: %.3f ulp", level, worst);
    }
}

static void logarithms(void)
{
    measure("log", log_loops, logl, 0.5, 2, false, 1);
    measure("log", log_loops, logl, 1e-37, 1e38, true, 1);
    static const double x[] = {0, -1,        HUGE_VAL,    (double)NAN,
                               1, 0x1p-1074, 0x1.8p-1030, 0x1.fffffffffffffp1023};
    static const float xf[] = {0, -1, HUGE_VALF, NAN, 1, 0x1p-149f, 0x1.8p-130f, 0x1.fffffep127f};
    static double y[8];
    static float f[8];
    for (int level = 0; level < LEVELS && log_loops[level].f64; level++) {
        if (!runs(level))
            continue;
        log_loops[level].f64(x, y, 8);
        log_loops[level].f32(xf, f, 8);
        CHECK(y[0] == -(double)HUGE_VALF && isnan(y[1]) && y[2] == (double)HUGE_VALF &&
              isnan(y[3]) && y[4] == 0);
        CHECK(isinf(f[0]) && f[0] < 0 && isnan(f[1]) && isinf(f[2]) && isnan(f[3]) && f[4] == 0);
        for (int i = 5; i < 8; i++) {
            CHECK(ulps(y[i], logl(x[i]), 53, 0) <= 1);
            CHECK(ulps((double)f[i], logl((long double)xf[i]), 24, 0) <= 1);
        }
    }
}

static void logarithms_of_one_plus(void)
{
    measure("log1p", log1p_loops, log1pl, 1e-30, 1, true, 1.5);
    measure("log1p", log1p_loops, log1pl, 0, 4, false, 1.5);
    measure("log1p", log1p_loops, log1pl, 1, 1e30, true, 1.5);
    measure("log1p", log1p_loops, log1pl, -0.9999, 0, false, 1.5);
    static const double x[] = {0, HUGE_VALF, NAN, 1e300};
    static double y[4];
    log1p_loops[0].f64(x, y, 4);
    CHECK(y[0] == 0 && y[1] == HUGE_VAL && isnan(y[2]) && ulps(y[3], log1pl(1e300L), 53, 0) <= 1);
}

static void circle(void)
{
    measure("sine", sine_loops, sine_turns, -1, 1, false, 2);
    measure("sine", sine_loops, sine_turns, 1e-20, 1e5, true, 2);
    measure("cosine", cosine_loops, cosine_turns, -1, 1, false, 2);
    measure("cosine", cosine_loops, cosine_turns, 1e-20, 1e5, true, 2);
    static const double x[] = {0, 0.25, 0.5, 0.75, 1, -0.25, 0.125, 1e17, HUGE_VAL, (double)NAN};
    static const double sine[] = {0, 1, 0, -1, 0, -1, M_SQRT1_2, 0},
                        cosine[] = {1, 0, -1, 0, 1, 0, M_SQRT1_2, 1};
    static double s[10], c[10];
    for (int level = 0; level < LEVELS && sine_loops[level].f64; level++) {
        if (!runs(level))
            continue;
        sine_loops[level].f64(x, s, 10);
        cosine_loops[level].f64(x, c, 10);
        for (int i = 0; i < 8; i++) {
            CHECK_NEAR(s[i], sine[i], 0x1p-53);
            CHECK_NEAR(c[i], cosine[i], 0x1p-53);
        }
        CHECK(isnan(s[8]) && isnan(c[8]) && isnan(s[9]) && isnan(c[9]));
    }
}

static const test_case cases[] = {
    {"exponentials", exponentials},
    {"exponential_range", exponential_range},
    {"logarithms", logarithms},
    {"logarithms_of_one_plus", logarithms_of_one_plus},
    {"circle", circle},
};
TEST_MAIN(cases)
