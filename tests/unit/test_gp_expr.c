/* test_gp_expr.c - kernel expressions: grammar, parameters, messages, and text that is parsed back
 * into the same tree. */
#include "fault.h"
#include "gp/gp_tree.h"
#include "test.h"

static const char *const names[] = {"time", "income", "x.1", "a b", "2nd"};
enum { D = 5 };

static void no_fill(const double *theta, int64_t m, const double *rows, int64_t n,
                    const double *cols, int64_t d, double *k, int64_t ld, void *user)
{
    (void)theta, (void)rows, (void)cols, (void)d, (void)user;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++)
            k[i + j * ld] = 1;
}

static void no_pull(const double *theta, int64_t m, const double *rows, int64_t n,
                    const double *cols, int64_t d, const double *w, int64_t ld, double *gradient,
                    void *user)
{
    (void)theta, (void)m, (void)rows, (void)n, (void)cols, (void)d, (void)w, (void)ld,
        (void)gradient, (void)user;
}

static const double user_start[] = {1.5, 2.5};
static const frg_gp_user_kernel user_kernel = {2, user_start, no_fill, no_pull, NULL};

typedef struct {
    frg_context *ctx;
    frgi_gp_kernel *k;
    frgi_gp_params ps;
    frg_status status;
} parsed;

static parsed parse_in(const char *text, ptrdiff_t d)
{
    parsed p = {.ctx = test_context()};
    frgi_gp_params_open(&p.ps, p.ctx);
    p.status =
        frgi_gp_kernel_parse(&p.k, p.ctx, text, d, d == D ? names : NULL, &user_kernel, &p.ps);
    return p;
}

static parsed parse(const char *text)
{
    return parse_in(text, D);
}

static void drop(parsed *p)
{
    frgi_gp_kernel_destroy(&p->k, p->ctx);
    frgi_gp_params_close(&p->ps);
    frg_context_destroy(p->ctx);
}

/** Nodes in postfix order, by their first letters. */
static void shape(const frgi_gp_kernel *k, char out[256])
{
    static const char *const letter[GP_KINDS] = {[GP_SUM] = "+",
                                                 [GP_PRODUCT] = "*",
                                                 [GP_SCALE] = "f",
                                                 [GP_SELECT] = "o",
                                                 [GP_RBF] = "r",
                                                 [GP_MATERN12] = "1",
                                                 [GP_MATERN32] = "3",
                                                 [GP_MATERN52] = "5",
                                                 [GP_RQ] = "q",
                                                 [GP_PERIODIC] = "p",
                                                 [GP_PERIODIC_GPYTORCH] = "P",
                                                 [GP_LINEAR] = "l",
                                                 [GP_POLY] = "y",
                                                 [GP_COSINE] = "c",
                                                 [GP_COSINE_GPYTORCH] = "C",
                                                 [GP_SM] = "s",
                                                 [GP_SM_GPYTORCH] = "S",
                                                 [GP_CONST] = "k",
                                                 [GP_WHITE] = "w",
                                                 [GP_USER] = "u"};
    out[0] = '\0';
    for (int i = 0; i < k->n_nodes; i++)
        strcat(out, letter[k->node[i].kind]);
}

static void grammar(void)
{
    static const struct {
        const char *text, *shape, *parameters;
    } all[] = {
        {"rbf", "r", "rbf.l"},
        {" 1.7*rbf(l=0.2)+noise(0.04) ", "rf", "scale rbf.l noise"},
        {"noise + scale*rbf", "rf", "scale rbf.l noise"},
        {"2*rbf*linear", "rl*f", "scale rbf.l linear.v"},
        {"2*(rbf*linear)", "rl*f", "scale rbf.l linear.v"},
        {"(2*rbf)*linear", "rfl*", "scale rbf.l linear.v"},
        {"(rbf*linear)*rq", "rl*q*", "rbf.l linear.v rq.l rq.alpha"},
        {"rbf + linear + rq + const", "rlqk+", "rbf.l linear.v rq.l rq.alpha const.v"},
        {"rbf + 2*(linear + white)*rbf", "rlw+r*f+", "rbf.l scale linear.v white.v rbf2.l"},
        {"scale * matern52(ard) * on(time; periodic(l=1, p=in(0.5,2))) + linear", "5po*fl+",
         "scale matern52.l matern52.l matern52.l matern52.l matern52.l periodic.l periodic.p "
         "linear.v"},
        {"on(1, x.1; rbf(ard)*on(time; rbf))", "rro*o", "rbf.l rbf.l rbf2.l"},
        {"on('a b', \"2nd\", `income`; rbf(l=[1,2,3]))", "ro", "rbf.l rbf.l rbf.l"},
        {"on(4,5; rbf)", "ro", "rbf.l"},
        {"rq(0.5, 2)", "q", "rq.l rq.alpha"},
        {"poly(3) + poly(q=2,c=0.5)", "yy+", "poly.c poly2.c"},
        {"periodic(form=gpytorch)", "P", "periodic.l periodic.p"},
        {"on(1; cosine(p=2, form=gpytorch))", "Co", "cosine.p"},
        {"cosine(ard)", "c", "cosine.p cosine.p cosine.p cosine.p cosine.p"},
        {"on(1,2; sm(2))", "so", "sm.w sm.w sm.mu sm.mu sm.mu sm.mu sm.v sm.v sm.v sm.v"},
        {"on(1; sm(2, s=0.5, form=gpytorch))", "So", "sm.w sm.w sm.mu sm.mu sm.s sm.s"},
        {"user * white(0.1)", "uw*", "user.theta user.theta white.v"},
        {"((((rbf))))", "r", "rbf.l"},
        {"matern12\n+\tmatern32", "13+", "matern12.l matern32.l"},
        {"3!*rbf + 2 in(1,4)*rbf + scale(in(1,2))*rbf", "rfrfrf+",
         "scale rbf.l scale2 rbf2.l scale3 rbf3.l"},
    };
    for (size_t c = 0; c < sizeof all / sizeof *all; c++) {
        parsed p = parse(all[c].text);
        if (CHECK_SAYS(p.status == FRG_OK, "%s: %s", all[c].text, frg_message(p.ctx))) {
            char got[256], list[512] = "";
            shape(p.k, got);
            CHECK_TEXT(got, all[c].shape);
            for (int i = 0; i < p.ps.count; i++)
                strcat(strcat(list, i ? " " : ""), p.ps.p[i].name);
            CHECK_TEXT(list, all[c].parameters);
            CHECK_INT(p.ps.kernel_count, p.k->n_parameters);
            CHECK_INT(p.ps.count, p.ps.kernel_count + p.ps.noise_count);
            CHECK_INT(p.k->noise >= 0, strstr(all[c].text, "noise") != NULL);
        }
        drop(&p);
    }
}

static void values(void)
{
    parsed p = parse("1.7!*rbf(l=0.25 in(0.1,2)) + rq(l=[1,2!,in(3,4),5! in(4,6),1e-3], "
                     "alpha=in(1,2)) + noise(4e-2!)");
    if (!CHECK_OK(p.ctx, p.status))
        return;
    const frgi_gp_param *const v = p.ps.p;
    CHECK(v[0].value == 1.7 && v[0].fixed && !v[0].bounded && v[0].entry == -1 &&
          v[0].role == GP_ROLE_VARIANCE);
    CHECK(v[1].value == 0.25 && !v[1].fixed && v[1].bounded && v[1].lower == 0.1 &&
          v[1].upper == 2);
    CHECK(v[1].entry == -1 && v[1].column == -1 && v[1].columns == 31 &&
          v[1].role == GP_ROLE_LENGTH);
    CHECK(v[2].value == 1 && v[2].entry == 0 && v[2].column == 0);
    CHECK(v[3].value == 2 && v[3].fixed && v[3].entry == 1 && v[3].column == 1);
    CHECK(isnan(v[4].value) && v[4].bounded && v[4].lower == 3 && v[4].upper == 4);
    CHECK(v[5].value == 5 && v[5].fixed && v[5].bounded && v[5].upper == 6);
    CHECK(v[6].value == 1e-3 && v[6].entry == 4 && v[6].column == 4 && !v[6].bounded &&
          isnan(v[6].lower));
    CHECK(isnan(v[7].value) && v[7].bounded && v[7].entry == -1 && v[7].role == GP_ROLE_SHAPE);
    CHECK(v[8].value == 0.04 && v[8].fixed && v[8].role == GP_ROLE_NOISE);
    CHECK_INT(p.ps.noise_first, 8);
    CHECK(v[2].name == v[6].name && v[1].name != v[2].name);
    drop(&p);

    p = parse("on(2,4; rbf(ard, l=0.5!)) + on(4; periodic(ard)) + user(theta=[3,in(1,2)]) + "
              "on(2,4;sm(1, mu=0.1, v=[1,2]))");
    if (!CHECK_OK(p.ctx, p.status))
        return;
    CHECK(p.ps.p[0].value == 0.5 && p.ps.p[1].value == 0.5 && p.ps.p[1].fixed &&
          p.ps.p[1].column == 3);
    CHECK(p.ps.p[0].columns == 10 && p.ps.p[2].entry == 0 && p.ps.p[3].column == 3);
    CHECK(p.ps.p[4].value == 3 && p.ps.p[5].value == 2.5 && p.ps.p[5].bounded);
    CHECK(p.ps.p[6].entry == 0 && p.ps.p[7].value == 0.1 && p.ps.p[8].value == 0.1 &&
          p.ps.p[10].value == 2);
    drop(&p);
}

/** Decimals are rounded correctly, short and long. */
static void numbers(void)
{
    static const struct {
        const char *text;
        double value;
    } all[] = {
        {"0.1", 0.1},
        {".5", 0.5},
        {"5.", 5},
        {"123456789012345", 123456789012345.0},
        {"0.000000000000123", 0.000000000000123},
        {"3.141592653589793238462643383279502884197", 3.141592653589793238462643383279502884197},
        {"1e-300", 1e-300},
        {"2.5E+3", 2500},
        {"4.9406564584124654e-324", 4.9406564584124654e-324},
        {"1.7976931348623157e308", 1.7976931348623157e308},
        {"9007199254740993", 9007199254740992},
        {"0000000000000000000000001", 1}};
    for (size_t c = 0; c < sizeof all / sizeof *all; c++) {
        char text[100];
        snprintf(text, sizeof text, "const(%s)", all[c].text);
        parsed p = parse(text);
        if (CHECK_SAYS(p.status == FRG_OK, "%s: %s", text, frg_message(p.ctx)))
            CHECK_SAYS(p.ps.p[0].value == all[c].value, "%s gave %.17g", text, p.ps.p[0].value);
        drop(&p);
    }
}

static void mistakes(void)
{
    static const struct {
        const char *text, *says;
    } all[] = {
        {"", "empty"},
        {"   ", "column 4: expected a kernel, but the text ends"},
        {"rbg(l=1)", "column 1: there is no kernel 'rbg'; did you mean rbf?"},
        {"rbf + matren52", "column 7: there is no kernel 'matren52'; did you mean matern52?"},
        {"zzzzz", "there are rbf, matern12"},
        {"rbf(", "column 5: expected a number or in(lo,hi), but the text ends"},
        {"rbf(l=)", "column 7: expected a number or in(lo,hi), found ')'"},
        {"rbf(l=-1)", "column 7: expected a number or in(lo,hi), found '-'"},
        {"rbf(l=0)", "column 7: parameters are positive and finite"},
        {"rbf(l=1e999)", "column 7: parameters are positive and finite"},
        {"rbf(k=1)", "column 5: rbf has no parameter 'k'; write rbf(l=0.2)"},
        {"rq(alpa=1)", "rq has no parameter 'alpa'; did you mean alpha?"},
        {"rbf(l=1,l=2)", "column 11: this parameter is given twice"},
        {"rbf(1,2)", "column 7: expected ')'"},
        {"rbf(l=[1,2])", "column 7: l of rbf has 2 entries here, expected 5"},
        {"rbf(l=[1,2,3,4,5,6])", "has 6 entries"},
        {"rbf(l=[1,2)", "column 11: expected ',' or ']'"},
        {"rbf(l=1 in(2,1))", "the lower bound is not below the upper one"},
        {"rbf(l=1 in(2,3))", "the value is outside its bounds"},
        {"rbf(l=!)", "expected a number or in(lo,hi)"},
        {"rbf(l=in(1,2)!)", "expected ',' or ')'"},
        {"rbf(form=gpytorch)", "column 10: rbf has one form only"},
        {"periodic(form=numpy)", "column 15: expected gpytorch, found 'numpy'"},
        {"poly", "poly needs its q; write poly(q=2, c=1)"},
        {"poly(2.5)", "q of poly is a whole number from 1 to 64"},
        {"sm(0)", "q of sm is a whole number"},
        {"poly(2, ard)", "nothing that could differ"},
        {"cosine(form=gpytorch)", "no covariance in 5 columns"},
        {"2", "column 2: expected '*' and a kernel after the variance"},
        {"rbf*2", "column 5: a variance stands once, in front"},
        {"2*3*rbf", "column 3: a variance stands once"},
        {"scale", "expected '*'"},
        {"noise(1)", "noise is not one"},
        {"rbf*noise(1)", "column 5: noise is a term of the outermost sum"},
        {"2*(rbf + noise)", "column 10: noise is a term of the outermost sum"},
        {"rbf + noise + noise", "column 15: noise stands here already"},
        {"rbf + noise(0)", "positive and finite"},
        {"rbf rbf", "column 5: expected '+', '*' or the end, found 'rbf'"},
        {"rbf)", "column 4: expected '+', '*' or the end"},
        {"(rbf", "column 5: expected '+', '*' or ')'"},
        {"rbf +", "column 6: expected a kernel, but the text ends"},
        {"rbf - linear", "column 5: expected '+', '*' or the end, found '-'"},
        {"on(tme; rbf)", "column 4: there is no column 'tme'; did you mean 'time'?"},
        {"on(6; rbf)", "there is no column '6' among the 5 of x"},
        {"on(0; rbf)", "there is no column '0'"},
        {"on(1.5; rbf)", "there is no column '1.5'"},
        {"on(1,1; rbf)", "column 6: this column of x stands here already"},
        {"on(1, time; rbf)", "stands here already"},
        {"on(; rbf)", "expected a column's name or number"},
        {"on(1 rbf)", "column 6: expected ',' or ';' and a kernel"},
        {"on(1; rbf", "expected '+', '*' or ')'"},
        {"on(\"time; rbf)", "column 4: the quote \" is not closed"},
        {"r\xc3\xbc + x", "there is no kernel"},
        {"rbf + \x01", "found the byte 0x01"},
        {"\xc3\xbc\xc3\xbc(l=1) ", "column 1: there is no kernel"},
        {"rbf(\xc3\xbc", "column 5: rbf has no parameter"},
        {"user + user", "column 8: user stands once"},
    };
    for (size_t c = 0; c < sizeof all / sizeof *all; c++) {
        parsed p = parse(all[c].text);
        CHECK_SAYS(p.status == FRG_BAD_ARG && p.k == NULL, "%s: %s", all[c].text,
                   frg_status_name(p.status));
        CHECK_SAYS(strstr(frg_message(p.ctx), all[c].says) != NULL, "%s: \"%s\" lacks \"%s\"",
                   all[c].text, frg_message(p.ctx), all[c].says);
        CHECK_TEXT(frg_error_code(p.ctx), "FRG-GP-001");
        drop(&p);
    }
}

static void limits(void)
{
    static char text[1 << 16];
    const struct {
        const char *begin, *middle, *end, *says;
        int count;
    } all[] = {{"rbf", "+rbf", "", NULL, 62},
               {"rbf", "+rbf", "", "more than 64 parts", 64},
               {"", "(", "rbf", "more than 64 levels", 65},
               {"", "2*(", "rbf", "more than 64 levels", 65}};
    for (size_t c = 0; c < sizeof all / sizeof *all; c++) {
        strcpy(text, all[c].begin);
        for (int i = 0; i < all[c].count; i++)
            strcat(text, all[c].middle);
        strcat(text, all[c].end);
        parsed p = parse(text);
        CHECK_SAYS(all[c].says ? strstr(frg_message(p.ctx), all[c].says) != NULL
                               : p.status == FRG_OK,
                   "%s", frg_message(p.ctx));
        drop(&p);
    }
    parsed p = parse_in("rbf(ard) + linear(ard)", 2048);
    CHECK_OK(p.ctx, p.status);
    CHECK_INT(p.ps.count, 4096);
    drop(&p);
    p = parse_in("rbf(ard) + linear(ard) + const", 2048);
    CHECK(strstr(frg_message(p.ctx), "more than 4096 parameters") != NULL);
    drop(&p);
    p = parse_in("on(x12; rbf) + on(x70; rbf)", 70);
    CHECK_OK(p.ctx, p.status);
    CHECK(p.ps.p[0].columns == UINT64_C(1) << 11 && p.ps.p[1].columns == UINT64_MAX);
    drop(&p);
    p = parse_in("rbf", 0);
    CHECK(strstr(frg_message(p.ctx), "rbf needs at least one column of x") != NULL);
    drop(&p);
    p = parse_in("const + white", 0);
    CHECK_OK(p.ctx, p.status);
    drop(&p);
}

/** print(parse(text)) is `want`, and parsed again gives the same tree, parameters and text. */
static void printing(void)
{
    static const char *const all[][2] = {
        {"rbf", "rbf"},
        {"1.7 * rbf(0.2)+noise(0.04)", "1.7*rbf(l=0.2) + noise(0.04)"},
        {"noise+scale*rbf(ard)", "scale*rbf(ard) + noise"},
        {"rbf(ard,l=0.1)", "rbf(l=[0.1,0.1,0.1,0.1,0.1])"},
        {"scale(in(1,2))*rbf", "scale(in(1,2))*rbf"},
        {"3!*rbf", "3!*rbf"},
        {"3! in(1,4)*rbf(in(0.5,1e5))", "3! in(1,4)*rbf(l=in(0.5,100000))"},
        {"(2*rbf)*linear", "(2*rbf)*linear"},
        {"2*(3*rbf)", "2*(3*rbf)"},
        {"2*rbf*linear", "2*rbf*linear"},
        {"(rbf*rq)*linear", "(rbf*rq)*linear"},
        {"rbf*(rq+linear)*const(2)", "rbf*(rq + linear)*const(v=2)"},
        {"(rbf+rq)+linear", "(rbf + rq) + linear"},
        {"on(time,2nd_is_wrong; rbf)", NULL},
        {"on(1,4,`2nd`; rbf*on(2; rq))", "on(time,4,5; rbf*on(income; rq))"},
        {"poly(3,0.5)+sm(2)", "poly(q=3, c=0.5) + sm(q=2)"},
        {"on(1; sm(1, w=2, form=gpytorch))", "on(time; sm(q=1, w=[2], form=gpytorch))"},
        {"periodic(p=2,form=gpytorch)", "periodic(p=2, form=gpytorch)"},
        {"user", "user(theta=[1.5,2.5])"},
        {"const(0.30000000000000004)", "const(v=0.30000000000000004)"},
        {"rq(l=[1,2!,in(3,4),5! in(4,6),1e-3])", "rq(l=[1,2!,in(3,4),5! in(4,6),0.001])"},
    };
    for (size_t c = 0; c < sizeof all / sizeof *all; c++) {
        frgi_text text = {0}, again = {0};
        parsed p = parse(all[c][0]);
        if (!all[c][1]) {
            CHECK(p.status == FRG_BAD_ARG);
            drop(&p);
            continue;
        }
        if (CHECK_SAYS(p.status == FRG_OK, "%s: %s", all[c][0], frg_message(p.ctx)) &&
            CHECK_OK(p.ctx, frgi_gp_kernel_print(p.k, p.ctx, &p.ps, &text))) {
            CHECK_TEXT(text.text, all[c][1]);
            parsed q = parse(text.text);
            char one[256], two[256];
            if (CHECK_SAYS(q.status == FRG_OK, "%s: %s", text.text, frg_message(q.ctx)) &&
                CHECK_OK(q.ctx, frgi_gp_kernel_print(q.k, q.ctx, &q.ps, &again))) {
                shape(p.k, one);
                shape(q.k, two);
                CHECK_TEXT(two, one);
                CHECK_TEXT(again.text, text.text);
                CHECK_INT(q.ps.count, p.ps.count);
                for (int i = 0; i < p.ps.count && i < q.ps.count; i++) {
                    const frgi_gp_param *const a = &p.ps.p[i], *const b = &q.ps.p[i];
                    CHECK_TEXT(b->name, a->name);
                    CHECK(memcmp(&a->value, &b->value, sizeof a->value) == 0 ||
                          (isnan(a->value) && isnan(b->value)));
                    CHECK(a->fixed == b->fixed && a->bounded == b->bounded && a->entry == b->entry);
                }
            }
            frgi_text_free(q.ctx, &again);
            drop(&q);
        }
        frgi_text_free(p.ctx, &text);
        drop(&p);
    }
}

/** Any text of the grammar's pieces is parsed or refused, never worse. */
static void random_texts(void)
{
    static const char *const pieces[] = {
        "rbf", "linear", "noise", "scale", "on",  "(",   ")", "*",    "+", ";",
        ",",   "l=",     "[",     "]",     "1.5", "in(", "!", "ard",  "q", "sm(2)",
        "2*",  "poly",   "user",  "time",  " ",   "\"",  "=", "const"};
    for (int c = 0; c < 20000; c++) {
        char text[200] = "";
        const int64_t count = 1 + test_below(12);
        for (int64_t i = 0; i < count; i++)
            strcat(text, pieces[test_below(sizeof pieces / sizeof *pieces)]);
        static frg_context *ctx;
        if (!ctx)
            ctx = test_context();
        frgi_gp_params ps;
        frgi_gp_kernel *k;
        frgi_text out = {0};
        frgi_gp_params_open(&ps, ctx);
        if (frgi_gp_kernel_parse(&k, ctx, text, D, names, &user_kernel, &ps) == FRG_OK) {
            CHECK_OK(ctx, frgi_gp_kernel_print(k, ctx, &ps, &out));
            frgi_gp_params second;
            frgi_gp_kernel *twin;
            frgi_gp_params_open(&second, ctx);
            CHECK_SAYS(frgi_gp_kernel_parse(&twin, ctx, out.text, D, names, &user_kernel,
                                            &second) == FRG_OK,
                       "%s became %s: %s", text, out.text, frg_message(ctx));
            frgi_gp_kernel_destroy(&twin, ctx);
            frgi_gp_params_close(&second);
        } else {
            CHECK(k == NULL);
        }
        frgi_text_free(ctx, &out);
        frgi_gp_kernel_destroy(&k, ctx);
        frgi_gp_params_close(&ps);
        if (c == 19999)
            frg_context_destroy(ctx);
    }
}

/* ---- every allocation fails in turn ---------------------------------------------------------- */

static frg_status body(frg_context *ctx, void *user, uint64_t *hash)
{
    frgi_gp_params ps;
    frgi_gp_kernel *k;
    frgi_text text = {0};
    static const double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, y[] = {1, 2};
    (void)user;
    frgi_gp_params_open(&ps, ctx);
    frg_status status = frgi_gp_kernel_parse(
        &k, ctx,
        "2*rbf(l=[0.123456789012345678,1,1,1,1]) + sm(3) + on(1,2; matern52(ard)*rq) + noise(0.1)",
        D, names, &user_kernel, &ps);
    if (status == FRG_OK)
        status = frgi_gp_params_noise_groups(&ps, 20);
    if (status == FRG_OK)
        status = frgi_gp_params_start(&ps, x, y, 2, D, 1, FRG_GP_PRESET_NONE, FRG_F64);
    if (status == FRG_OK)
        status = frgi_gp_params_priors(&ps, "noise=gamma(1,2); rbf.l=lognormal(0,1)");
    if (status == FRG_OK)
        status = frgi_gp_kernel_print(k, ctx, &ps, &text);
    if (status == FRG_OK)
        fault_hash(hash, text.text, text.length);
    frgi_text_free(ctx, &text);
    frgi_gp_kernel_destroy(&k, ctx);
    frgi_gp_params_close(&ps);
    return status;
}

static void allocations(void)
{
    CHECK(fault_sweep("kernel expression", body, NULL, 1) >= 10);
}

static const test_case cases[] = {
    {"grammar", grammar},           {"values", values},           {"numbers", numbers},
    {"mistakes", mistakes},         {"limits", limits},           {"printing", printing},
    {"random_texts", random_texts}, {"allocations", allocations},
};
TEST_MAIN(cases)
