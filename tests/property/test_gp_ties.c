/* test_gp_ties.c - parameters that go together.
 *
 * A process whose three lengthscales are tied is the one with a single lengthscale: same
 * likelihood, same optimum, same standard errors.  Optima are compared to what the searches stop
 * at, 1e-5 of the gradient a point.
 */
#include <unistd.h>

#include "gp_data.h"

static const char *const one = "1.2*rbf(l=0.4) + noise(0.1)";
static const char *const three = "1.2*rbf(l=[0.4,0.4,0.4]) + noise(0.1)";

static frg_gp *open_tied(frg_context *ctx, const gp_data *g)
{
    frg_gp *gp = gp_data_open(ctx, g, three, NULL);
    /* a chain: what 2 leads follows too */
    CHECK_OK(ctx,
             frg_gp_update_tied(gp, gp_data_find(gp, "rbf.l[3]"), gp_data_find(gp, "rbf.l[2]")));
    CHECK_OK(ctx,
             frg_gp_update_tied(gp, gp_data_find(gp, "rbf.l[2]"), gp_data_find(gp, "rbf.l[1]")));
    return gp;
}

static frg_gp_parameter parameter(const frg_gp *gp, const char *name)
{
    frg_gp_parameter p = {0};
    CHECK_STATUS(frg_gp_get_parameter(gp, gp_data_find(gp, name), &p), FRG_OK);
    return p;
}

static void fits(void)
{
    static const frg_gp_optimizer methods[] = {FRG_GP_AI, FRG_GP_LBFGSB, FRG_GP_ADAM};
    static gp_data g;
    frg_context *ctx = test_context();
    gp_data_random(&g, 60, 3, 1);
    for (size_t k = 0; k < sizeof methods / sizeof *methods; k++) {
        frg_gp *tied = open_tied(ctx, &g), *plain = gp_data_open(ctx, &g, one, NULL);
        frg_gp_fit_opts o;
        frg_gp_fit_result a, b;
        frg_gp_fit_defaults(&o, sizeof o);
        o.optimizer = methods[k];
        o.max_iter = methods[k] == FRG_GP_ADAM ? 15 : 200;
        if (tied && plain && CHECK_STATUS(frg_gp_fit(tied, &o, &a), FRG_OK) &&
            CHECK_STATUS(frg_gp_fit(plain, &o, &b), FRG_OK)) {
            CHECK_NEAR(a.log_likelihood, b.log_likelihood, 1e-8);
            CHECK_INT(a.values, b.values);
            const double l = parameter(tied, "rbf.l[1]").value,
                         e = parameter(tied, "rbf.l[1]").std_error;
            for (int i = 1; i <= 3; i++) {
                char name[16];
                snprintf(name, sizeof name, "rbf.l[%d]", i);
                const frg_gp_parameter p = parameter(tied, name);
                CHECK(p.value == l && p.std_error == e);
                CHECK_INT(p.tied, i == 1 ? -1 : gp_data_find(tied, "rbf.l[1]"));
            }
            CHECK_NEAR(l, parameter(plain, "rbf.l").value, 1e-4);
            CHECK_NEAR(e, parameter(plain, "rbf.l").std_error, 1e-3);
            CHECK_NEAR(parameter(tied, "noise").std_error, parameter(plain, "noise").std_error,
                       1e-3);
        }
        frg_gp_destroy(tied);
        frg_gp_destroy(plain);
    }
    frg_context_destroy(ctx);
}

/** Starts, bounds of both, a bound that is met, fixing one of them. */
static void bounds(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    gp_data_random(&g, 40, 2, 1);
    frg_gp *gp = gp_data_open(ctx, &g, "rbf(l=0.3) + matern52(l=in(0.2,0.35)) + noise(0.1)", NULL);
    const int follower = gp_data_find(gp, "rbf.l"), leader = gp_data_find(gp, "matern52.l");
    double theta[GP_DATA_PARAMETERS];
    frg_gp_fit_opts o;
    frg_gp_fit_result r;
    frg_gp_fit_defaults(&o, sizeof o);
    o.starts = 3;
    CHECK_OK(ctx, frg_gp_update_tied(gp, follower, leader));
    CHECK(parameter(gp, "rbf.l").value == parameter(gp, "matern52.l").value);
    CHECK(frg_gp_fit(gp, &o, &r) >= 0);
    CHECK(parameter(gp, "rbf.l").value == parameter(gp, "matern52.l").value);
    CHECK_NEAR(parameter(gp, "rbf.l").value, 0.35, 1e-14); /* sines of period 1 are wider */
    CHECK_INT(parameter(gp, "rbf.l").active, 1);
    gp_data_theta(gp, theta);
    theta[leader] = 0.3;
    CHECK_STATUS(frg_gp_update_parameters(gp, theta), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "rbf.l is 0.35 and matern52.l, to which it is tied, is 0.3"));
    theta[follower] = 0.3;
    CHECK_OK(ctx, frg_gp_update_parameters(gp, theta));
    CHECK_OK(ctx, frg_gp_update_fixed(gp, follower, 1));
    CHECK(frg_gp_fit(gp, &o, &r) >= 0);
    CHECK(parameter(gp, "rbf.l").value == 0.3 && parameter(gp, "matern52.l").value == 0.3);
    CHECK_OK(ctx, frg_gp_update_fixed(gp, leader, 0));
    CHECK_OK(ctx, frg_gp_update_tied(gp, follower, -1));
    CHECK(frg_gp_fit(gp, &o, &r) >= 0);
    CHECK(parameter(gp, "rbf.l").value != parameter(gp, "matern52.l").value);
    CHECK_STATUS(frg_gp_update_tied(gp, leader, follower), FRG_BAD_ARG); /* out of 0.2 .. 0.35 */
    CHECK_STATUS(frg_gp_update_tied(gp, leader, leader), FRG_BAD_ARG);
    CHECK_STATUS(frg_gp_update_tied(gp, leader, gp_data_find(gp, "mean")), FRG_BAD_ARG);
    CHECK_STATUS(frg_gp_update_tied(gp, leader, 99), FRG_BAD_ARG);
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

static void files(void)
{
    static gp_data g;
    char path[] = "/tmp/fourge-ties-XXXXXX";
    frg_context *ctx = test_context();
    const int file = mkstemp(path);
    gp_data_random(&g, 12, 3, 1);
    frg_gp *gp = open_tied(ctx, &g), *back = NULL;
    if (CHECK(file >= 0) && CHECK_OK(ctx, frg_gp_save(gp, path)) &&
        CHECK_OK(ctx, frg_gp_load(&back, ctx, path))) {
        CHECK_INT(parameter(back, "rbf.l[3]").tied, gp_data_find(back, "rbf.l[1]"));
        CHECK_INT(parameter(back, "noise").tied, -1);
        CHECK(!parameter(back, "rbf.l[3]").fixed);
    }
    close(file);
    unlink(path);
    frg_gp_destroy(back);
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/** Ties written in the expression are those made by call; the expression as it is printed has them
 *  again. */
static void written(void)
{
    static const struct {
        const char *text, *plain, *printed;
        int pairs[4]; /* follower, leader: indices; ended by -1 */
    } some[] = {
        {"1.2*rbf(l=0.4) + 0.5*matern52(l=@rbf.l) + noise(0.1)",
         "1.2*rbf(l=0.4) + 0.5*matern52(l=0.4) + noise(0.1)",
         "1.2*rbf(l=0.4) + 0.5*matern52(l=@rbf.l) + noise(0.1)",
         {3, 1, -1}},
        {"1.2*rbf(l=[0.4,0.3,@rbf.l[1]]) + noise(@scale)",
         "1.2*rbf(l=[0.4,0.3,0.4]) + noise(1.2)",
         "1.2*rbf(l=[0.4,0.3,@rbf.l[1]]) + noise(@scale)",
         {3, 1, 4, 0}},
        {"scale(0.7! in(0.5,1))*rq(l=0.4,alpha=@rq.l) + scale(@scale)*rbf(@rq.alpha) + noise(0.1)",
         "0.7!*rq(l=0.4,alpha=0.4) + 0.7!*rbf(0.4) + noise(0.1)",
         "0.7! in(0.5,1)*rq(l=0.4, alpha=@rq.l) + scale(@scale)*rbf(l=@rq.l) + noise(0.1)",
         {2, 1, 3, 0}},
    };
    static gp_data g;
    frg_context *ctx = test_context();
    gp_data_random(&g, 30, 3, 1);
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        frg_gp *gp = gp_data_open(ctx, &g, some[k].text, NULL),
               *plain = gp_data_open(ctx, &g, some[k].plain, NULL);
        if (!gp || !plain)
            continue;
        CHECK_TEXT(frg_gp_get(gp).kernel, some[k].printed);
        frg_gp *again = gp_data_open(ctx, &g, frg_gp_get(gp).kernel, NULL);
        CHECK(gp_data_value(ctx, gp) == gp_data_value(ctx, plain));
        for (int i = 0; i < 4 && some[k].pairs[i] >= 0; i += 2) {
            frg_gp_parameter p, q;
            CHECK_OK(ctx, frg_gp_get_parameter(gp, some[k].pairs[i], &p));
            CHECK_OK(ctx, frg_gp_get_parameter(again, some[k].pairs[i], &q));
            CHECK_INT(p.tied, some[k].pairs[i + 1]);
            CHECK_INT(q.tied, some[k].pairs[i + 1]);
        }
        frg_gp_fit_result r;
        CHECK(frg_gp_fit(gp, NULL, &r) >= 0);
        double theta[GP_DATA_PARAMETERS];
        gp_data_theta(gp, theta);
        for (int i = 0; i < 4 && some[k].pairs[i] >= 0; i += 2) {
            CHECK(theta[some[k].pairs[i]] == theta[some[k].pairs[i + 1]]);
        }
        frg_gp_destroy(again);
        frg_gp_destroy(plain);
        frg_gp_destroy(gp);
    }
    /* a whole vector; starts from the data, a constant column's and all */
    for (int i = 0; i < 30; i++) {
        g.x[3 * i + 2] = 4;
    }
    frg_gp *gp = gp_data_open(ctx, &g, "scale*rbf(ard)*matern12(l=@rbf.l) + noise", NULL);
    for (int i = 0; i < 3 && gp; i++) {
        frg_gp_parameter p, q;
        CHECK_OK(ctx, frg_gp_get_parameter(gp, 1 + i, &p));
        CHECK_OK(ctx, frg_gp_get_parameter(gp, 4 + i, &q));
        CHECK(q.tied == 1 + i && q.value == p.value && q.fixed == p.fixed && q.lower == p.lower);
        CHECK_INT(p.fixed, i == 2);
    }
    frg_gp_destroy(gp);
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"rbf(l=@matern12.l)*matern12(l=1)", "column 8: there is no parameter 'matern12.l'"},
        {"rbf(l=@rbf.l)", "no parameter 'rbf.l'"},
        {"rbf(l=@rbf.l[1])", "no parameter 'rbf.l[..]'"},
        {"rbf(ard) + noise(@rbf.l)",
         "'rbf.l' has 3 entries, one is to be followed here: write @rbf.l[1]"},
        {"rbf(ard)*on(x1;rq(l=@rbf.l))", "l of rq has 3 entries here, expected 1"},
        {"rbf(ard)*matern12(l=@rbf.l[4])", "no parameter 'rbf.l[..]'"},
        {"rbf(ard)*matern12(l=@rbf.l[1.5])", "whole numbers"},
        {"rbf(ard)*matern12(l=@)", "expected the name of a parameter"},
        {"rbf(l=1)*matern12(l=@rbf.l!)", "found '!'"},
        {"@scale*rbf", "found '@'"},
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        gp = NULL;
        CHECK_STATUS(frg_gp_create(&gp, ctx, gp_data_x(&g), gp_data_y(&g), wrong[k].text, NULL),
                     FRG_BAD_ARG);
        CHECK_SAYS(strstr(frg_message(ctx), wrong[k].says), "%s", frg_message(ctx));
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/** One that follows has all of its leader's: an interval's transform too. */
static void transforms(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    gp_data_random(&g, 12, 1, 1);
    frg_gp_opts o = gp_data_opts("zero");
    o.preset = FRG_GP_PRESET_GPYTORCH;
    frg_gp *gp = gp_data_open(
        ctx, &g, "rbf(l=0.4 in (0.1,2)) + matern32(l=@rbf.l) + matern52(l=1) + noise(0.1)", &o);
    if (gp) {
        const frg_gp_parameter leader = parameter(gp, "rbf.l"), p = parameter(gp, "matern32.l");
        CHECK_INT(leader.transform, FRG_GP_INTERVAL);
        CHECK_INT(p.transform, FRG_GP_INTERVAL);
        CHECK(p.value == 0.4 && p.lower == 0.1 && p.upper == 2);
        CHECK_INT(parameter(gp, "matern52.l").transform, FRG_GP_SOFTPLUS);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/** Where names are; one that is not there is refused with those that are. */
static void found(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    gp_data_random(&g, 20, 3, 1);
    frg_gp *gp = gp_data_open(ctx, &g, three, NULL);
    int first = -1, entries = -1;
    if (gp) {
        CHECK_OK(ctx, frg_gp_find_parameter(gp, "rbf.l", &first, &entries));
        CHECK(first == 1 && entries == 3);
        CHECK_OK(ctx, frg_gp_find_parameter(gp, "noise", &first, NULL));
        CHECK_INT(first, 4);
        CHECK_STATUS(frg_gp_find_parameter(gp, "rbf", &first, NULL), FRG_BAD_ARG);
        CHECK_TEXT(frg_message(ctx),
                   "there is no parameter 'rbf'; there are: scale, rbf.l, noise, mean");
        CHECK_INT(first, 4);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/** Set by name, or said in the expression: the same value and the same fit, bit for bit; a fit ends
 *  at the new bound. */
static void named(void)
{
    static gp_data g;
    const double stays = (double)NAN;
    const frg_gp_change changes[] = {{"rbf.l", 2, 0.05, 0.01, 0.06},
                                     {"scale", -1, 2, stays, stays},
                                     {"noise", -1, stays, stays, 0.5}};
    const frg_gp_fit_opts *const as_ever = NULL;
    frg_context *ctx = test_context();
    gp_data_random(&g, 60, 3, 1);
    frg_gp *gp = gp_data_open(ctx, &g, three, NULL);
    if (gp && CHECK_OK(ctx, frg_gp_update_named(gp, changes, 3))) {
        frg_gp_fit_result a, b;
        const frg_gp_parameter noise = parameter(gp, "noise");
        char text[160];
        snprintf(text, sizeof text,
                 "2*rbf(l=[0.4,0.4,0.05 in(0.01,0.06)]) + noise(0.1 in(%.17g,0.5))", noise.lower);
        frg_gp *said = gp_data_open(ctx, &g, text, NULL);
        const double v = gp_data_value(ctx, gp), w = said ? gp_data_value(ctx, said) : 0;
        CHECK_BITS(&v, &w, sizeof v);
        CHECK_TEXT(frg_gp_get(gp).kernel, said ? frg_gp_get(said).kernel : "");
        if (said && CHECK_OK(ctx, frg_gp_fit(gp, as_ever, &a)) &&
            CHECK_OK(ctx, frg_gp_fit(said, as_ever, &b))) {
            CHECK_BITS(&a.log_likelihood, &b.log_likelihood, sizeof a.log_likelihood);
            CHECK(parameter(gp, "rbf.l[3]").value == 0.06 && parameter(gp, "rbf.l[3]").active == 1);
        }
        frg_gp_destroy(said);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/** Each is refused, and the change before it in the same call is taken back. */
static void not_named(void)
{
    static gp_data g;
    const double stays = (double)NAN;
    static const char *const says[] = {
        "there is no parameter",
        "noise has 1 entry, 1 is none",
        "rbf.l[0] is 7, outside its bounds [0.1, 5]",
        "bounds of rbf.l[1] are 3 and 2",
        "bounds of noise are -1 and 1: expected lower < upper, and none below 0",
        "noise must be positive"};
    const frg_gp_change wrong[] = {
        {"rbf.ll", -1, 1, stays, stays}, {"noise", 1, 1, stays, stays},
        {"rbf.l", 0, 7, 0.1, 5},         {"rbf.l", 1, stays, 3, 2},
        {"noise", -1, stays, -1, 1},     {"noise", -1, -1, stays, stays}};
    frg_context *ctx = test_context();
    gp_data_random(&g, 20, 3, 1);
    frg_gp *gp = gp_data_open(ctx, &g, three, NULL);
    for (size_t k = 0; gp && k < sizeof wrong / sizeof *wrong; k++) {
        const frg_gp_change both[] = {{"scale", -1, 3, 0.5, 4}, wrong[k]};
        CHECK_STATUS(frg_gp_update_named(gp, both, 2), FRG_BAD_ARG);
        CHECK_SAYS(strstr(frg_message(ctx), says[k]), "%s", frg_message(ctx));
        CHECK(parameter(gp, "scale").value == 1.2 && parameter(gp, "scale").upper != 4);
        CHECK(parameter(gp, "rbf.l[1]").value == 0.4 && parameter(gp, "noise").value == 0.1);
    }
    frg_gp_destroy(gp);
    frg_gp_opts o = gp_data_opts("zero");
    o.priors = "rbf.l=uniform(0.3,0.6)";
    gp = gp_data_open(ctx, &g, one, &o);
    if (gp) { /* within its bounds, where its prior has nothing */
        const frg_gp_change c = {"rbf.l", -1, 0.7, stays, stays};
        CHECK_STATUS(frg_gp_update_named(gp, &c, 1), FRG_BAD_ARG);
        CHECK_TEXT(frg_error_code(ctx), "FRG-GP-005");
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

/** A follower's value is the leader's too; under GPyTorch's transforms two bounds are an
 *  interval. */
static void named_ties(void)
{
    static gp_data g;
    const double stays = (double)NAN;
    frg_context *ctx = test_context();
    gp_data_random(&g, 20, 3, 1);
    frg_gp *gp = open_tied(ctx, &g);
    const frg_gp_change c = {"rbf.l", 2, 0.3, stays, stays};
    if (gp && CHECK_OK(ctx, frg_gp_update_named(gp, &c, 1))) {
        CHECK(parameter(gp, "rbf.l[1]").value == 0.3 && parameter(gp, "rbf.l[2]").value == 0.3);
        CHECK_OK(ctx, frg_gp_eval(gp, NULL));
    }
    frg_gp_destroy(gp);
    frg_gp_opts o = gp_data_opts("zero");
    o.preset = FRG_GP_PRESET_GPYTORCH;
    gp = gp_data_open(ctx, &g, one, &o);
    frg_gp_change bounds = {"rbf.l", -1, stays, 0.1, 2};
    if (gp && CHECK_OK(ctx, frg_gp_update_named(gp, &bounds, 1))) {
        CHECK_INT(parameter(gp, "rbf.l").transform, FRG_GP_INTERVAL);
        bounds.upper = (double)INFINITY;
        CHECK_OK(ctx, frg_gp_update_named(gp, &bounds, 1));
        CHECK_INT(parameter(gp, "rbf.l").transform, FRG_GP_SOFTPLUS);
        CHECK(parameter(gp, "rbf.l").lower == 0.1);
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"names found", found},
    {"set by name", named},
    {"refused by name", not_named},
    {"names of ties", named_ties},
    {"ties in the expression", written},
    {"fits", fits},
    {"bounds", bounds},
    {"files", files},
    {"transforms", transforms},
};
TEST_MAIN(cases)
