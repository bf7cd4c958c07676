/* test_gp_file.c - model files: the same predictions to the bit, and nothing that is not whole and
 * unchanged. */
#include "gp/gp_create.h"

#include <unistd.h>
#include <zlib.h>

#include "gp_data.h"

enum { ROOM = 1 << 20, NEW = 12 };

static char folder[] = "/tmp/fourge-gp-XXXXXX";
static char path[64];

static bool make_path(void)
{
    if (!*path) {
        if (!CHECK(mkdtemp(folder) != NULL))
            return false;
        snprintf(path, sizeof path, "%s/model", folder);
    }
    return true;
}

static int64_t slurp(char *bytes)
{
    FILE *const f = fopen(path, "rb");
    if (!CHECK(f != NULL))
        return 0;
    const int64_t n = (int64_t)fread(bytes, 1, ROOM, f);
    fclose(f);
    return n;
}

static void predict(frg_context *ctx, frg_gp *gp, int64_t d, int64_t q, double *out)
{
    double x[3 * NEW];
    for (int i = 0; i < 3 * NEW; i++)
        x[i] = 0.083 * i - 0.3 * (i % 3);
    frg_array mean = frg_matrix(out, FRG_F64, NEW, q, q);
    frg_array variance = frg_vector(out + NEW * q, FRG_F64, NEW);
    frg_gp_predict_opts o;
    frg_gp_predict_defaults(&o, sizeof o);
    o.mean = &mean;
    o.variance = &variance;
    o.observed = 1;
    o.mean_values = frg_gp_get(gp).given_mean ? x : NULL;
    CHECK_OK(ctx, frg_gp_predict(gp, frg_matrix(x, FRG_F64, NEW, d, 3), &o));
}

/** Saved, loaded, asked: all that can be asked for must be the same. */
static void same(frg_context *ctx, frg_gp *gp)
{
    double a[4 * NEW], b[4 * NEW];
    frg_gp *back = NULL;
    const frg_gp_report r = frg_gp_get(gp);
    if (!make_path() || !CHECK_OK(ctx, frg_gp_save(gp, path)) ||
        !CHECK_OK(ctx, frg_gp_load(&back, ctx, path)))
        return;
    const frg_gp_report s = frg_gp_get(back);
    CHECK(r.n == s.n && r.d == s.d && r.q == s.q && r.n_masked == s.n_masked &&
          r.precision == s.precision);
    CHECK_TEXT(s.kernel, r.kernel);
    for (int64_t k = 0; k < r.d; k++)
        CHECK_TEXT(s.column_names[k], r.column_names[k]);
    CHECK_INT(frg_gp_parameter_count(back), frg_gp_parameter_count(gp));
    for (int i = 0; i < frg_gp_parameter_count(gp); i++) {
        frg_gp_parameter p, q;
        CHECK_OK(ctx, frg_gp_get_parameter(gp, i, &p));
        CHECK_OK(ctx, frg_gp_get_parameter(back, i, &q));
        CHECK_TEXT(q.name, p.name);
        CHECK_BITS(&q.value, &p.value, sizeof p.value);
        CHECK(q.lower == p.lower && q.upper == p.upper && q.fixed == p.fixed &&
              q.transform == p.transform && q.active == p.active && q.entry == p.entry);
        CHECK_BITS(&q.std_error, &p.std_error, sizeof p.std_error);
    }
    predict(ctx, gp, r.d, r.q, a);
    predict(ctx, back, r.d, r.q, b);
    CHECK_BITS(b, a, (size_t)(NEW * (r.q + 1)) * sizeof *a);
    const double value = gp_data_value(ctx, gp), again = gp_data_value(ctx, back);
    CHECK_BITS(&again, &value, sizeof value);
    double ga[GP_DATA_PARAMETERS], gb[GP_DATA_PARAMETERS];
    CHECK_OK(ctx, frg_gp_eval_gradient(gp, ga, NULL, NULL, NULL));
    CHECK_OK(ctx, frg_gp_eval_gradient(back, gb, NULL, NULL, NULL));
    CHECK_BITS(gb, ga, (size_t)frg_gp_parameter_count(gp) * sizeof *ga);
    frg_gp_destroy(back);
}

/** A gradient takes the factor's place, and the next prediction makes it again. */
static void stays(frg_context *ctx, frg_gp *gp, int64_t d, int64_t q)
{
    double a[4 * NEW], b[4 * NEW], gradient[GP_DATA_PARAMETERS];
    predict(ctx, gp, d, q, a);
    const double before = gp_data_value(ctx, gp);
    CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient, NULL, NULL, NULL));
    predict(ctx, gp, d, q, b);
    const double after = gp_data_value(ctx, gp);
    CHECK_BITS(b, a, (size_t)(NEW * (q + 1)) * sizeof *a);
    CHECK_BITS(&after, &before, sizeof before);
}

static void round_trips(void)
{
    static gp_data g;
    static const struct {
        const char *kernel, *mean, *priors;
        int64_t n, d, q;
        frg_gp_precision precision;
        bool noise, groups, values, fits;
    } jobs[] = {
        {"scale*rbf(ard) + noise", "const", NULL, 60, 2, 1, FRG_GP_F64, .fits = true},
        {"1.2*matern52(l=[0.2,0.3!])*periodic(l=1,p=0.5) + 0.3*linear + noise(0.1)", "linear", NULL,
         330, 2, 1, FRG_GP_F64, .fits = false},
        {"1.2*rq(l=0.4) + noise(0.1)", "profiled(linear)", "rq.l=gamma(3,6)", 40, 3, 2, FRG_GP_F64,
         .fits = false},
        {"1.2*rbf(l=in(0.1,0.9)) + noise(0.1)", "zero", NULL, 50, 1, 1, FRG_GP_F32, .fits = false},
        {"1.2*rbf(l=0.4) + on(x2; sm(q=2))", "zero", NULL, 50, 2, 1, FRG_GP_MIXED, .groups = true},
        {"1.2*cosine(p=0.7) + poly(q=2,c=1) + white(0.1)", "values", NULL, 30, 1, 1, FRG_GP_F64,
         .noise = true, .values = true},
        {"const(2)", "const(0.5!)", NULL, 1, 1, 1, FRG_GP_F64, .noise = true},
    };
    double noise[400], mean[400];
    int32_t groups[400];
    for (int i = 0; i < 400; i++) {
        noise[i] = 0.01 + 0.001 * i;
        mean[i] = 0.1 * i;
        groups[i] = i % 3;
    }
    frg_context *ctx = test_context();
    for (size_t k = 0; k < sizeof jobs / sizeof *jobs; k++) {
        gp_data_random(&g, jobs[k].n, jobs[k].d, jobs[k].q);
        frg_gp_opts o = gp_data_opts(jobs[k].mean);
        o.precision = jobs[k].precision;
        o.priors = jobs[k].priors;
        o.noise_variances = jobs[k].noise ? noise : NULL;
        o.noise_groups = jobs[k].groups ? groups : NULL;
        o.mean_values = jobs[k].values ? mean : NULL;
        o.nan = FRG_GP_NAN_MASK;
        if (k == 1)
            g.y[7] = (double)NAN;
        frg_gp *gp = gp_data_open(ctx, &g, jobs[k].kernel, &o);
        frg_gp_fit_result r;
        if (gp && jobs[k].fits)
            CHECK_OK(ctx, frg_gp_fit(gp, NULL, &r));
        if (gp) {
            stays(ctx, gp, jobs[k].d, jobs[k].q);
            same(ctx, gp);
        }
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/** A loaded process can be fitted and changed like any other; its values count as given. */
static void lives_on(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    gp_data_random(&g, 50, 1, 1);
    const frg_gp_opts o = gp_data_opts("const");
    frg_gp *gp = gp_data_open(ctx, &g, "0.7*rbf(l=0.3) + noise(0.1)", &o), *back = NULL;
    frg_gp_fit_result r, s;
    if (make_path() && gp && CHECK_OK(ctx, frg_gp_save(gp, path)) &&
        CHECK_OK(ctx, frg_gp_load(&back, ctx, path))) {
        CHECK_OK(ctx, frg_gp_fit(gp, NULL, &r));
        CHECK_OK(ctx, frg_gp_fit(back, NULL, &s));
        CHECK_BITS(&r.log_likelihood, &s.log_likelihood, sizeof(double));
        CHECK_OK(ctx, frg_gp_update_remove(back, 3));
        same(ctx, back);
    }
    frg_gp_destroy(gp);
    frg_gp_destroy(back);
    frg_context_destroy(ctx);
}

/** A factor that an update made gives way to a fresh one once the gradient has taken its place:
 *  what is saved then is what predicts, before and behind the file.  330 points: several tiles. */
static void updated(void)
{
    static gp_data g;
    static const struct {
        const char *mean;
        int64_t q;
        frg_gp_precision precision;
        int scale;
    } jobs[] = {
        {"const", 1, FRG_GP_F64, 0},
        {"const", 2, FRG_GP_F64, 0},
        {"profiled(linear)", 1, FRG_GP_F64, 0},
        {"const", 1, FRG_GP_F64, 1},
        {"const", 1, FRG_GP_MIXED, 0},
    };
    enum { APPENDED, REMOVED, QUIETED, CHANGED, UPDATES };
    double gradient[GP_DATA_PARAMETERS], noise[330], x[] = {0.31, 0.77}, y[] = {0.4, 0.1};
    frg_context *ctx = test_context();
    for (int i = 0; i < 330; i++)
        noise[i] = 0.01 + 0.001 * i;
    for (size_t k = 0; k < sizeof jobs / sizeof *jobs; k++) {
        gp_data_random(&g, 330, 2, jobs[k].q);
        frg_gp_opts o = gp_data_opts(jobs[k].mean);
        o.precision = jobs[k].precision;
        o.profile_scale = jobs[k].scale;
        const double *const known = jobs[k].scale ? NULL : noise; /* a scale allows none */
        o.noise_variances = known;
        for (int what = 0; what < UPDATES; what++) {
            if (what == QUIETED && !known)
                continue;
            frg_gp *gp = gp_data_open(ctx, &g, "1.2*matern52(l=[0.2,0.3]) + noise(0.1)", &o);
            if (!gp)
                continue;
            gp_data_value(ctx, gp); /* a factor that the update can change */
            CHECK_OK(ctx, what == APPENDED
                              ? frg_gp_update_append(gp, frg_matrix(x, FRG_F64, 1, 2, 2),
                                                     frg_matrix(y, FRG_F64, 1, g.q, g.q), known)
                          : what == REMOVED ? frg_gp_update_remove(gp, 100)
                          : what == QUIETED ? frg_gp_update_noise(gp, 7, 0.5)
                                            : frg_gp_update_y(gp, gp_data_y(&g)));
            CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient, NULL, NULL, NULL));
            same(ctx, gp);
            frg_gp_destroy(gp);
        }
    }
    frg_context_destroy(ctx);
}

/** Two columns of one name, as a frame may have: on(...) wants a number, and writes one. */
static void names_twice(void)
{
    static gp_data g;
    const char *const names[] = {"a", "a", "b"};
    frg_context *ctx = test_context();
    gp_data_random(&g, 40, 3, 1);
    frg_gp_opts o = gp_data_opts("const");
    o.column_names = names;
    frg_gp *gp = gp_data_open(ctx, &g, "1.2*on(2,b; rbf(l=0.3)) + noise(0.1)", &o);
    if (gp) {
        CHECK_TEXT(frg_gp_get(gp).kernel, "1.2*on(2,b; rbf(l=0.3)) + noise(0.1)");
        same(ctx, gp);
    }
    frg_gp_destroy(gp);
    CHECK_STATUS(frg_gp_create(&gp, ctx, gp_data_x(&g), gp_data_y(&g), "on(a; rbf)", &o),
                 FRG_BAD_ARG);
    CHECK_SAYS(strstr(frg_message(ctx), "column 4: 2 columns of x have the name 'a'"), "%s",
               frg_message(ctx));
    frg_context_destroy(ctx);
}

static void little(unsigned char *to, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(v >> (8 * i));
}

static void damaged(void)
{
    static gp_data g;
    static char bytes[ROOM], copy[ROOM];
    frg_context *ctx = test_context();
    gp_data_random(&g, 6, 1, 1);
    const frg_gp_opts o = gp_data_opts("const");
    frg_gp *gp = gp_data_open(ctx, &g, "1.5*rbf(l=0.3) + noise(0.1)", &o), *back;
    if (!make_path() || !gp || !CHECK_OK(ctx, frg_gp_save(gp, path)))
        return;
    const size_t n = (size_t)slurp(bytes);
    CHECK(n > 200);
    const size_t held = frg_bytes_held(ctx);
    for (size_t cut = 0; cut < n; cut++) {
        back = gp;
        CHECK_STATUS(frgi_gp_parse_model(&back, ctx, bytes, cut, "cut"), FRG_BAD_DATA);
        CHECK(back == NULL);
    }
    for (size_t bit = 0; bit < 8 * n; bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
        CHECK_STATUS(frgi_gp_parse_model(&back, ctx, bytes, n, "bit"), FRG_BAD_DATA);
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
    }
    memcpy(copy, bytes, n);
    CHECK_STATUS(frgi_gp_parse_model(&back, ctx, copy, n + 1, "long"), FRG_BAD_DATA);
    little((unsigned char *)copy + 8, 2); /* another version, with a checksum that holds */
    little((unsigned char *)copy + n - 4,
           (uint32_t)crc32(crc32(0, NULL, 0), (void *)copy, (uInt)n - 4));
    CHECK_STATUS(frgi_gp_parse_model(&back, ctx, copy, n, "new.model"), FRG_BAD_DATA);
    CHECK_SAYS(strstr(frg_message(ctx), "version 2"), "%s", frg_message(ctx));
    CHECK_TEXT(frg_error_code(ctx), "FRG-GP-011");
    CHECK_TEXT(frg_error_where(ctx), "new.model");
    CHECK_INT(frg_bytes_held(ctx), held);
    CHECK_STATUS(frgi_gp_parse_model(&back, ctx, bytes, n, "whole"), FRG_OK);
    frg_gp_destroy(back);
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

static void errors(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    gp_data_random(&g, 6, 1, 1);
    const frg_gp_opts o = gp_data_opts("const");
    frg_gp *gp = gp_data_open(ctx, &g, "1.5*rbf(l=0.3) + noise(0.1)", &o), *back = gp;
    CHECK_STATUS(frg_gp_load(&back, ctx, "/nowhere/model"), FRG_NO_INPUT);
    CHECK(back == NULL);
    if (gp) {
        CHECK_STATUS(frg_gp_save(gp, "/nowhere/model"), FRG_CANNOT_CREATE);
        CHECK_STATUS(frg_gp_save(gp, NULL), FRG_BAD_ARG);
    }
    CHECK_STATUS(frg_gp_save(NULL, path), FRG_BAD_ARG);
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
    if (*path) { /* the last case cleans up */
        unlink(path);
        rmdir(folder);
    }
}

static const test_case cases[] = {
    {"round_trips", round_trips}, {"lives_on", lives_on}, {"updated", updated},
    {"names_twice", names_twice}, {"damaged", damaged},   {"errors", errors},
};
TEST_MAIN(cases)
