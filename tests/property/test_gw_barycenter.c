/* test_gw_barycenter.c - barycenters: of scaled copies, of one space, as POT has them, refusals. */
#include <string.h>
#include <time.h>

#include "fault.h"
#include "fourge/gw.h"
#include "golden_text.h"

enum { N = 9 };

static frg_array matrix(double *x, int64_t n)
{
    return frg_matrix(x, FRG_F64, n, n, n);
}

static void line(double *c, const double *at, int64_t n, double scale)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            c[i * n + j] = scale * fabs(at[i] - at[j]);
}

static const double PLACES[N] = {0, 1, 3, 7, 8.5, 12, 17, 18, 25};

static frg_barycenter_opts options(double epsilon)
{
    frg_barycenter_opts o;
    frg_barycenter_defaults(&o, sizeof o);
    o.epsilon = epsilon;
    return o;
}

/* A line and the same three times as long: with matching plans the minimiser is the mean of the
 * distances, (1-s) + 3 s times the line.  Entropy blurs a plan by exp(-gap / epsilon), here below
 * 1e-6. */
static void copies_of(const double *w)
{
    frg_context *ctx = test_context();
    const double *const both[] = {w, w};
    double one[N * N], three[N * N], out[N * N] = {0};
    line(one, PLACES, N, 1);
    line(three, PLACES, N, 3);
    const frg_array spaces[] = {matrix(one, N), matrix(three, N)};
    const frg_barycenter_opts o = options(2e-5);
    const double shares[] = {3, 1};
    const frg_array start = matrix(one, N);
    frg_barycenter_report r;
    CHECK_OK(ctx, frg_gw_barycenter(ctx, spaces, w ? both : NULL, shares, 2, w, &start, &o,
                                    matrix(out, N), &r));
    CHECK(r.converged && r.iterations >= 1 && r.change <= o.tol);
    double energy = 0;
    for (int i = 0; i < N * N; i++) {
        CHECK_NEAR(out[i], 1.5 * one[i], 1e-3);
        energy += (0.75 * pow(0.5 * one[i], 2) + 0.25 * pow(1.5 * one[i], 2)) *
                  (w ? w[i / N] * w[i % N] : 1.0 / (N * N));
    }
    CHECK_NEAR(r.energy, energy, 1e-3);
    frg_context_destroy(ctx);
}

static void scaled_copies(void)
{
    static const double weights[N] = {0.02, 0.05, 0.08, 0.1, 0.11, 0.12, 0.15, 0.17, 0.2};
    copies_of(NULL);
    copies_of(weights);
}

/* Fewer points than the space has: distances stay symmetric, within the space's, and the energy is
 * small. */
static void smaller(void)
{
    frg_context *ctx = test_context();
    double one[N * N], out[16] = {0};
    line(one, PLACES, N, 1);
    const frg_array space = matrix(one, N);
    const frg_barycenter_opts o = options(2e-3);
    frg_barycenter_report r;
    const frg_status status =
        frg_gw_barycenter(ctx, &space, NULL, NULL, 1, NULL, NULL, &o, matrix(out, 4), &r);
    CHECK_SAYS(status >= 0, "%s", frg_message(ctx));
    double most = 0;
    for (int i = 0; i < 16; i++) {
        CHECK_NEAR(out[i], out[i % 4 * 4 + i / 4], 1e-9);
        CHECK(out[i] >= 0 && out[i] <= 25);
        most = fmax(most, out[i]);
    }
    CHECK_SAYS(most > 12 && r.energy < 20, "largest distance %g, energy %g", most, r.energy);
    frg_context_destroy(ctx);
}

static bool golden(const char *name, double *out)
{
    return golden_array(FOURGE_SOURCE_DIR "/tests/golden/gw_barycenter.txt", name, out);
}

/* POT's entropic barycenter of the same start with twice the epsilon: both solve every plan to the
 * end. */
static void as_pot(void)
{
    enum { SIZE = 5 };
    frg_context *ctx = test_context();
    double one[36], two[64], start[SIZE * SIZE], want[SIZE * SIZE], out[SIZE * SIZE] = {0};
    if (!golden("bary_one", one) || !golden("bary_two", two) || !golden("bary_start", start) ||
        !golden("bary", want))
        return;
    const frg_array spaces[] = {matrix(one, 6), matrix(two, 8)}, first = matrix(start, SIZE);
    frg_barycenter_opts o = options(0.01);
    o.tol = 1e-9;
    o.outer_tol = 1e-10;
    o.max_outer = 3000;
    o.max_inner = 5000;
    const double shares[] = {0.3, 0.7};
    const frg_status status =
        frg_gw_barycenter(ctx, spaces, NULL, shares, 2, NULL, &first, &o, matrix(out, SIZE), NULL);
    CHECK_SAYS(status >= 0, "%s", frg_message(ctx));
    for (int i = 0; i < SIZE * SIZE; i++)
        CHECK_NEAR(out[i], want[i], 1e-6);
    frg_context_destroy(ctx);
}

static void refusals(void)
{
    frg_context *ctx = test_context();
    double one[N * N], out[16] = {0};
    line(one, PLACES, N, 1);
    const frg_array space = matrix(one, N), oblong = frg_matrix(one, FRG_F64, 3, 4, 4);
    frg_barycenter_opts o = options(0);
    CHECK_STATUS(
        frg_gw_barycenter(ctx, &space, NULL, NULL, 1, NULL, NULL, &o, matrix(out, 4), NULL),
        FRG_BAD_ARG);
    o = options(0.01);
    CHECK_STATUS(
        frg_gw_barycenter(ctx, &oblong, NULL, NULL, 1, NULL, NULL, &o, matrix(out, 4), NULL),
        FRG_BAD_ARG);
    CHECK_STATUS(
        frg_gw_barycenter(ctx, &space, NULL, NULL, 0, NULL, NULL, &o, matrix(out, 4), NULL),
        FRG_BAD_ARG);
    CHECK_STATUS(
        frg_gw_barycenter(ctx, &space, NULL, NULL, 1, NULL, &space, &o, matrix(out, 4), NULL),
        FRG_BAD_ARG);
    const double p[] = {1, 0, 1, 1};
    CHECK_STATUS(frg_gw_barycenter(ctx, &space, NULL, NULL, 1, p, NULL, &o, matrix(out, 4), NULL),
                 FRG_BAD_ARG);
    one[3] = -1;
    CHECK_STATUS(
        frg_gw_barycenter(ctx, &space, NULL, NULL, 1, NULL, NULL, &o, matrix(out, 4), NULL),
        FRG_BAD_DATA);
    CHECK_TEXT(frg_error_where(ctx), "space 1, row 1, column 4");
    /* not symmetric: said, and the barycenter of the mean of both halves */
    double mean[N * N], other[16];
    line(one, PLACES, N, 1);
    memcpy(mean, one, sizeof one);
    one[3] *= 1.5;
    mean[3] *= 1.25;
    mean[3 * N] *= 1.25;
    const frg_array even = matrix(mean, N);
    CHECK(frg_gw_barycenter(ctx, &even, NULL, NULL, 1, NULL, NULL, &o, matrix(other, 4), NULL) >=
          0);
    frg_warnings_clear(ctx);
    CHECK(frg_gw_barycenter(ctx, &space, NULL, NULL, 1, NULL, NULL, &o, matrix(out, 4), NULL) >= 0);
    CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-GW-104");
    for (int i = 0; i < 16; i++)
        CHECK_NEAR(out[i], other[i], 1e-9); /* the unit, the largest distance, is another one */
    frg_context_destroy(ctx);
}

/** A round takes 20 ms longer than it does. */
static int slowly(const frg_progress *p, void *user)
{
    (void)user;
    if (strcmp(p->phase, "barycenter") == 0)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return 0;
}

/* The time limit is of all rounds together: 400 of them take 8 s here, the solves inside them take
 * well below a millisecond each. */
static void time_limit(void)
{
    frg_context_opts c;
    frg_context *ctx = NULL;
    frg_context_defaults(&c, sizeof c);
    c.time_limit = 0.1;
    c.on_progress = slowly;
    CHECK(frg_context_create(&ctx, &c) == FRG_OK);
    double one[N * N], out[16] = {0};
    line(one, PLACES, N, 1);
    const frg_array space = matrix(one, N);
    frg_barycenter_opts o = options(0.02);
    frg_barycenter_report r = {0};
    o.tol = 0; /* every round is done */
    o.max_iter = 400;
    CHECK(frg_gw_barycenter(ctx, &space, NULL, NULL, 1, NULL, NULL, &o, matrix(out, 4), &r) ==
          FRG_TIME_LIMIT);
    CHECK(r.iterations < 400); /* 0: the first round alone took as long */
    frg_context_destroy(ctx);
}

static frg_status once(frg_context *ctx, void *user, uint64_t *hash)
{
    double *const one = user, out[16] = {0};
    const frg_array space = matrix(one, N);
    frg_barycenter_opts o = options(0.02);
    o.max_iter = 2;
    o.max_outer = 2;
    const frg_status status =
        frg_gw_barycenter(ctx, &space, NULL, NULL, 1, NULL, NULL, &o, matrix(out, 4), NULL);
    if (status >= 0)
        fault_hash(hash, out, sizeof out);
    return status;
}

static void memory(void)
{
    double one[N * N];
    line(one, PLACES, N, 1);
    fault_sweep("a barycenter", once, one, 1);
}

static const test_case cases[] = {
    {"scaled copies", scaled_copies}, {"smaller", smaller},       {"as POT", as_pot},
    {"refusals", refusals},           {"time limit", time_limit}, {"memory", memory}};
TEST_MAIN(cases)
