/* gp_prior.c - prior densities: their text, logarithms and derivatives.
 *
 *     gamma(a,b)            a log b - lgamma a + (a-1) log v - b v           rate b
 *     lognormal(mu,sg)      normal of log v
 *     normal(mu,sg)   halfnormal(sg)   halfcauchy(s)
 *     invgamma(a,b)         a log b - lgamma a - (a+1) log v - b/v
 *     uniform(lo,hi)        loguniform(lo,hi): uniform in log v
 *     smoothbox(lo,hi,sg)   flat inside, normal tails outside
 *     horseshoe(s)          mean of the two bounds of Carvalho, Polson and Scott (2010), theorem 1,
 *                           in v/s; GPyTorch's, without the factor 1/s
 *
 * All are densities of v; with `jacobian` log |dv/draw| of the parameter's transform is added.
 * Derivatives are taken with respect to v and then changed to log v:  f' = v p', f'' = v p' + v^2
 * p''.
 */
#include <math.h>
#include <string.h>

#include "gp/gp_params.h"
#include "io/decimal.h"

/** A log density with its first and second derivative. */
typedef struct {
    double value, first, second;
} jet;

static jet log_normal_density(double v, double mu, double sigma)
{
    const double z = (v - mu) / sigma;
    return (jet){-0.5 * z * z - log(sigma) - 0.5 * log(2 * M_PI), -z / sigma, -1 / (sigma * sigma)};
}

static jet density_gamma(const frgi_gp_prior *p, double v)
{
    const double a = p->a, b = p->b;
    return (jet){a * log(b) - lgamma(a) + (a - 1) * log(v) - b * v, (a - 1) / v - b,
                 -(a - 1) / (v * v)};
}

static jet density_lognormal(const frgi_gp_prior *p, double v)
{
    const jet n = log_normal_density(log(v), p->a, p->b);
    return (jet){n.value - log(v), (n.first - 1) / v, (n.second - n.first + 1) / (v * v)};
}

static jet density_normal(const frgi_gp_prior *p, double v)
{
    return log_normal_density(v, p->a, p->b);
}

static jet density_halfnormal(const frgi_gp_prior *p, double v)
{
    jet n = log_normal_density(v, 0, p->a);
    n.value += log(2);
    return n;
}

static jet density_halfcauchy(const frgi_gp_prior *p, double v)
{
    const double s = p->a, q = s * s + v * v;
    return (jet){log(2 * s / M_PI) - log(q), -2 * v / q, -2 * (s - v) * (s + v) / (q * q)};
}

static jet density_inverse_gamma(const frgi_gp_prior *p, double v)
{
    const double a = p->a, b = p->b;
    return (jet){a * log(b) - lgamma(a) - (a + 1) * log(v) - b / v, (b / v - (a + 1)) / v,
                 ((a + 1) - 2 * b / v) / (v * v)};
}

static jet density_uniform(const frgi_gp_prior *p, double v)
{
    return (jet){v < p->a || v > p->b ? -HUGE_VAL : -log(p->b - p->a), 0, 0};
}

static jet density_smooth_box(const frgi_gp_prior *p, double v)
{
    const double beyond = v < p->a ? v - p->a : v > p->b ? v - p->b : 0, s = p->c;
    return (jet){-0.5 * (beyond / s) * (beyond / s) - log(s * sqrt(2 * M_PI) + (p->b - p->a)),
                 -beyond / (s * s), beyond != 0 ? -1 / (s * s) : 0};
}

/** log(1 + c s^2 / v^2) */
static jet horseshoe_term(double c, double s, double v)
{
    const double t = c * s * s, q = v * v + t;
    return (jet){log1p(t / (v * v)), -2 * t / (v * q), 2 * t * (3 * v * v + t) / (v * v * q * q)};
}

static jet density_horseshoe(const frgi_gp_prior *p, double v)
{
    const double scale = 0.5 / sqrt(2 * M_PI * M_PI * M_PI);
    const jet low = horseshoe_term(4, p->a, v), high = horseshoe_term(2, p->a, v);
    const double m = 0.5 * low.value + high.value, first = (0.5 * low.first + high.first) / m;
    return (jet){log(scale * m), first, (0.5 * low.second + high.second) / m - first * first};
}

static jet density_log_uniform(const frgi_gp_prior *p, double v)
{
    return (jet){v < p->a || v > p->b ? -HUGE_VAL : -log(v) - log(log(p->b / p->a)), -1 / v,
                 1 / (v * v)};
}

/** What a density's numbers must be. */
typedef enum { ANY, POSITIVE, ORDERED, POSITIVE_ORDERED, BOX } rule;

typedef struct {
    const char *name;
    frgi_gp_prior_kind kind;
    int count;
    rule rule;
    jet (*density)(const frgi_gp_prior *, double v);
    const char *example;
} density_word;

static const density_word densities[] = {
    {"gamma", GP_PRIOR_GAMMA, 2, POSITIVE, density_gamma, "gamma(3,6)"},
    {"lognormal", GP_PRIOR_LOGNORMAL, 2, ANY, density_lognormal, "lognormal(-4,1)"},
    {"normal", GP_PRIOR_NORMAL, 2, ANY, density_normal, "normal(0,1)"},
    {"halfnormal", GP_PRIOR_HALF_NORMAL, 1, POSITIVE, density_halfnormal, "halfnormal(1)"},
    {"halfcauchy", GP_PRIOR_HALF_CAUCHY, 1, POSITIVE, density_halfcauchy, "halfcauchy(1)"},
    {"invgamma", GP_PRIOR_INVERSE_GAMMA, 2, POSITIVE, density_inverse_gamma, "invgamma(3,1)"},
    {"uniform", GP_PRIOR_UNIFORM, 2, ORDERED, density_uniform, "uniform(0,1)"},
    {"smoothbox", GP_PRIOR_SMOOTH_BOX, 3, BOX, density_smooth_box, "smoothbox(0.1,1,0.01)"},
    {"horseshoe", GP_PRIOR_HORSESHOE, 1, POSITIVE, density_horseshoe, "horseshoe(0.1)"},
    {"loguniform", GP_PRIOR_LOG_UNIFORM, 2, POSITIVE_ORDERED, density_log_uniform,
     "loguniform(0.1,10)"},
};
enum { DENSITIES = sizeof densities / sizeof *densities };

/* ---- the sum over parameters ----------------------------------------------------------------- */

/** log |dv/draw| as a function of v. */
static jet jacobian(const frgi_gp_param *p, double v)
{
    const double z = v - p->lower, w = p->upper - v;
    switch (p->transform) {
    case FRG_GP_LOG:
        return (jet){log(v), 1 / v, -1 / (v * v)};
    case FRG_GP_SOFTPLUS:
        return (jet){log(-expm1(-z)), 1 / expm1(z), -1 / (expm1(z) * -expm1(-z))};
    case FRG_GP_INTERVAL:
        return (jet){log(z) + log(w) - log(p->upper - p->lower), 1 / z - 1 / w,
                     -1 / (z * z) - 1 / (w * w)};
    default:
        return (jet){0};
    }
}

static const density_word *density_of(const frgi_gp_prior *p)
{
    for (int k = 0; k < DENSITIES; k++) {
        if (densities[k].kind == p->kind) {
            return &densities[k];
        }
    }
    return NULL;
}

bool frgi_gp_prior_support(const frgi_gp_param *p, frgi_gp_range *out)
{
    *out = (frgi_gp_range){p->prior.a, p->prior.b};
    return p->prior.kind == GP_PRIOR_UNIFORM || p->prior.kind == GP_PRIOR_LOG_UNIFORM;
}

frg_status frgi_gp_params_check_priors(const frgi_gp_params *ps, const double *theta,
                                       bool everywhere)
{
    for (int i = 0; i < ps->count; i++) {
        const frgi_gp_param *const p = &ps->p[i];
        const density_word *const word = density_of(&p->prior);
        if (!word) {
            continue;
        }
        char label[96];
        frgi_gp_params_label(ps, i, label);
        const frgi_gp_range r = frgi_gp_params_range(ps, i);
        if (!p->fixed && !(r.lower <= r.upper)) {
            FAIL(ps->ctx, E_PRIOR, "%s=%s(%g,%g) has no density within the bounds of %s, %g to %g",
                 label, word->name, p->prior.a, p->prior.b, label, p->lower, p->upper);
        }
        if ((p->fixed || everywhere) && !isfinite(word->density(&p->prior, theta[i]).value)) {
            FAIL(ps->ctx, E_PRIOR, "%s=%s(%g,%g) has no density at %g, where %s is%s", label,
                 word->name, p->prior.a, p->prior.b, theta[i], label, p->fixed ? " fixed" : "");
        }
    }
    return FRG_OK;
}

double frgi_gp_params_prior(const frgi_gp_params *ps, const double *theta, double *gradient,
                            double *curvature)
{
    double total = 0;
    for (int i = 0; i < ps->count; i++) {
        const frgi_gp_param *const p = &ps->p[i];
        const density_word *const word = density_of(&p->prior);
        if (!word) {
            continue;
        }
        const double v = theta[i];
        jet j = word->density(&p->prior, v);
        if (ps->jacobian && !p->fixed) {
            const jet more = jacobian(p, v);
            j = (jet){j.value + more.value, j.first + more.first, j.second + more.second};
        }
        total += j.value;
        const double first = p->per_value ? j.first : v * j.first;
        const double second = p->per_value ? j.second : v * j.first + v * v * j.second;
        if (gradient) {
            gradient[i] += first;
        }
        if (curvature) {
            curvature[i] += fmax(0, -second);
        }
    }
    return total;
}

/* ---- the text -------------------------------------------------------------------------------- */

enum { WORD_LENGTH = 63, NUMBER_LENGTH = 63 };

typedef struct {
    frg_context *ctx;
    const char *text;
    ptrdiff_t at;
    char word[WORD_LENGTH + 1];
} reader;

static void skip_space(reader *r)
{
    while (strchr(" \t\r\n", r->text[r->at]) && r->text[r->at]) {
        r->at++;
    }
}

static int here(const reader *r)
{
    const int column = (int)r->at + 1;
    frgi_at(r->ctx, "priors:%d", column);
    return column;
}

static frg_status expect(reader *r, char c)
{
    skip_space(r);
    if (r->text[r->at] != c) {
        FAIL(r->ctx, E_PRIOR,
             "priors, column %d: expected '%c', as in rbf.l=gamma(3,6); noise=lognormal(-4,1)",
             here(r), c);
    }
    r->at++;
    return FRG_OK;
}

static bool in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_';
}

static frg_status read_word(reader *r)
{
    skip_space(r);
    int n = 0;
    while (in_word(r->text[r->at + n]) && n < WORD_LENGTH) {
        r->word[n] = r->text[r->at + n];
        n++;
    }
    r->word[n] = '\0';
    if (n == 0) {
        FAIL(r->ctx, E_PRIOR, "priors, column %d: expected a name, as in rbf.l=gamma(3,6)",
             here(r));
    }
    return FRG_OK;
}

static frg_status read_number(reader *r, const frgi_decimal *decimal, double *out)
{
    skip_space(r);
    const char *const begin = r->text + r->at;
    ptrdiff_t n = 0;
    while (in_word(begin[n]) ||
           ((begin[n] == '-' || begin[n] == '+') && (n == 0 || strchr("eE", begin[n - 1])))) {
        n++;
    }
    if (n == 0 || n > NUMBER_LENGTH || !frgi_decimal_parse(decimal, begin, begin + n, out) ||
        !isfinite(*out)) {
        FAIL(r->ctx, E_PRIOR, "priors, column %d: expected a finite number", here(r));
    }
    r->at += n;
    return FRG_OK;
}

/** Do the numbers of a density obey its rule? */
static bool obeys(rule kind, const frgi_gp_prior *p, int count)
{
    switch (kind) {
    case ANY: /* a mean and a standard deviation */
        return p->b > 0;
    case POSITIVE:
        return p->a > 0 && (count < 2 || p->b > 0);
    case ORDERED:
        return p->a < p->b;
    case POSITIVE_ORDERED:
        return p->a > 0 && p->a < p->b;
    default:
        return p->a < p->b && p->c > 0;
    }
}

static frg_status read_density(reader *r, const frgi_decimal *decimal, frgi_gp_prior *out)
{
    const char *names[DENSITIES];
    const density_word *word = NULL;
    TRY(read_word(r));
    for (int k = 0; k < DENSITIES; k++) {
        names[k] = densities[k].name;
        word = strcmp(r->word, names[k]) == 0 ? &densities[k] : word;
    }
    if (!word) {
        const char *near = frgi_nearest(r->word, names, DENSITIES);
        const int column = here(r);
        if (near) {
            FAIL(r->ctx, E_PRIOR, "priors, column %d: there is no density '%s'; did you mean %s?",
                 column, r->word, near);
        }
        FAIL(r->ctx, E_PRIOR,
             "priors, column %d: there is no density '%s'; there are gamma, lognormal, normal, "
             "halfnormal, "
             "halfcauchy, invgamma, uniform, loguniform, smoothbox and horseshoe",
             column, r->word);
    }
    const reader start = *r;
    r->at += (ptrdiff_t)strlen(r->word);
    double number[3] = {0};
    TRY(expect(r, '('));
    for (int k = 0; k < word->count; k++) {
        if (k > 0) {
            TRY(expect(r, ','));
        }
        TRY(read_number(r, decimal, &number[k]));
    }
    TRY(expect(r, ')'));
    *out = (frgi_gp_prior){.kind = word->kind, .a = number[0], .b = number[1], .c = number[2]};
    if (!obeys(word->rule, out, word->count)) {
        FAIL(r->ctx, E_PRIOR, "priors, column %d: these numbers make no density; write %s",
             here(&start), word->example);
    }
    return FRG_OK;
}

static frg_status no_such_parameter(const frgi_gp_params *ps, const reader *r)
{
    const char **names;
    TRY(NEW(ps->ctx, &names, ps->count, "the parameters' names"));
    for (int i = 0; i < ps->count; i++) {
        names[i] = ps->p[i].name;
    }
    const char *const near = frgi_nearest(r->word, names, ps->count);
    DROP(ps->ctx, &names);
    const int column = here(r);
    if (near) {
        FAIL(ps->ctx, E_PRIOR, "priors, column %d: there is no parameter '%s'; did you mean %s?",
             column, r->word, near);
    }
    FAIL(ps->ctx, E_PRIOR, "priors, column %d: there is no parameter '%s'", column, r->word);
}

/** given: the parameters that this text has named; their priors replace those of a preset. */
static frg_status read_one(frgi_gp_params *ps, reader *r, const frgi_decimal *decimal, bool *given)
{
    TRY(read_word(r));
    const reader name = *r;
    r->at += (ptrdiff_t)strlen(r->word);
    frgi_gp_prior prior;
    TRY(expect(r, '='));
    TRY(read_density(r, decimal, &prior));
    bool found = false;
    for (int i = 0; i < ps->count; i++) {
        if (strcmp(ps->p[i].name, name.word) == 0) {
            if (given[i]) {
                FAIL(ps->ctx, E_PRIOR, "priors, column %d: '%s' has a prior already", here(&name),
                     name.word);
            }
            ps->p[i].prior = prior;
            given[i] = found = true;
        }
    }
    return found ? FRG_OK : no_such_parameter(ps, &name);
}

frg_status frgi_gp_params_priors(frgi_gp_params *ps, const char *text)
{
    reader r = {.ctx = ps->ctx, .text = text};
    frgi_decimal *decimal;
    bool *given = NULL;
    frg_status status = FRG_OK;
    TRY(frgi_decimal_open(&decimal, ps->ctx));
    TRY_TO(done, NEW0(ps->ctx, &given, ps->count, "the parameters' names"));
    skip_space(&r);
    while (r.text[r.at]) {
        TRY_TO(done, read_one(ps, &r, decimal, given));
        skip_space(&r);
        if (!r.text[r.at]) {
            break;
        }
        TRY_TO(done, expect(&r, ';'));
        skip_space(&r);
    }
done:
    DROP(ps->ctx, &given);
    frgi_decimal_close(&decimal, ps->ctx);
    return status;
}
