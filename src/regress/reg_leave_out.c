/* reg_leave_out.c - leave-out variance components of worker and firm effects (Kline, Saggio and
 * Soelvsten 2020), beside the plug-in and Andrews, Gill, Schank and Upward (2008)'s.
 *
 *     rows -> matches (reg_matches.c), T_m, units: a match, or its rows one by one (create_panel)
 *     plug-in     Var(a), Var(b), Cov(a, b) of the fit's effects over rows (measure)
 *     bias        sum_i B_ii s_i / (1 - P_i), exact (reg_leave_exact.c) or by random projections
 *                 (reg_leave_draws.c); the formulas are at the head of reg_leave_out.h
 *     estimates   the plug-in less this bias, and less that of one variance (add_corrected,
 *                 add_homoscedastic)
 *     errors      over samples, an upper bound in the mean (reg_leave_error.c)
 *
 * Leaving matches out is the same as collapsing them to means of weight T_m: a match's error is
 * then the mean of its rows', whatever their dependence.
 */
#include <math.h>
#include <string.h>

#include "core/opts.h"
#include "regress/reg_effects.h"
#include "regress/reg_leave_out.h"

/* ---- options --------------------------------------------------------------------------------- */

enum { AUTO_EXACT = 4096, MOST_EXACT = 16384 };

#define OPTIONS_OF frg_leave_out_opts
static const frg_option options[] = {
#include "regress/leave_out_opts.def"
    {.name = NULL}};

const frg_option *frg_leave_out_options(void)
{
    return options;
}

void frg_leave_out_defaults(frg_leave_out_opts *o, size_t struct_size)
{
    frg_leave_out_opts defaults = {0};
    frgi_options_set(options, &defaults);
    frgi_options_give(o, struct_size, &defaults, sizeof defaults);
}

/* ---- is it such a fit? ----------------------------------------------------------------------- */

static frg_status check_model(const frg_fe *f)
{
    const frgi_formula *const formula = &f->data.formula;
    if (formula->n_effects != 2 || formula->n_slopes > 0) {
        FAIL(f->ctx, E_LEAVE_OUT,
             "variance components are those of two fixed effects, '%s' has %d%s", formula->text,
             formula->n_effects, formula->n_slopes ? " and slopes" : "");
    }
    if (f->glm.family || f->data.design.n_endogenous || f->two_stage.text) {
        FAIL(f->ctx, E_LEAVE_OUT, "variance components are those of least squares, '%s' is %s",
             formula->text,
             f->glm.family                 ? "a generalised linear model"
             : f->data.design.n_endogenous ? "fitted with instruments"
                                           : "fitted in two stages");
    }
    if (!f->report.result.converged) {
        FAIL(f->ctx, E_LEAVE_OUT, "the fit of '%s' has not converged", formula->text);
    }
    return FRG_OK;
}

/** The rows are a set that stays connected without what is left out. */
static frg_status check_rows(const frg_fe *f, const frg_leave_out_opts *o)
{
    static const char *const sets[] = {"all", "largest", "match", "observation"};
    static const frg_fe_connected least[] = {FRG_CONNECTED_MATCH, FRG_CONNECTED_OBSERVATION,
                                             FRG_CONNECTED_ALL};
    const frg_fe_connected have = f->policy.options.connected, need = least[o->leave_out];
    const bool fits = have == need || need == FRG_CONNECTED_ALL ||
                      (have == FRG_CONNECTED_MATCH && need == FRG_CONNECTED_OBSERVATION);
    if (!fits) {
        FAIL(f->ctx, E_LEAVE_OUT,
             "leave_out = %s needs a fit with connected = %s, this one has connected = %s",
             sets[need], sets[need], sets[have]);
    }
    if (f->absorbed.components != 1) {
        FAIL(f->ctx, E_LEAVE_OUT,
             "the rows fall into %lld connected sets, whose effects cannot be compared; fit with "
             "connected = largest",
             (long long)f->absorbed.components);
    }
    if (f->data.frame.levels[1] < 2) {
        FAIL(f->ctx, E_LEAVE_OUT, "the rows have one level of '%s': nobody moves between two",
             f->data.frame.keys[1].name);
    }
    return FRG_OK;
}

static frg_status check(const frg_fe *f, const frg_leave_out_opts *o)
{
    const int64_t firms = f->data.formula.n_effects == 2 ? f->data.frame.levels[1] : 0;
    TRY(frgi_options_check(f->ctx, options, o));
    TRY(check_model(f));
    TRY(check_rows(f, o));
    if (o->leverage == FRG_LEVERAGE_EXACT && firms > MOST_EXACT) {
        FAIL(f->ctx, E_TOO_BIG,
             "exact leverages with %lld levels of '%s', more than %d; leverage = approx estimates "
             "them and says how well",
             (long long)firms, f->data.frame.keys[1].name, MOST_EXACT);
    }
    return FRG_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/** What the rows are weighted by. */
typedef struct {
    const frg_fe *f;
    const double *weights; /* NULL: all 1 */
    bool frequency;        /* weights are numbers of rows */
    const frgi_effects *effects;
} weighted_rows;

static double weight_of(const weighted_rows *w, int64_t i)
{
    return w->weights ? w->weights[i] : 1;
}

static double effect(const weighted_rows *w, int q, int64_t i)
{
    const frgi_frame *const frame = &w->f->data.frame;
    return w->effects->value[w->effects->constant[q] + frame->codes[q * frame->n + i]];
}

/** y less the regressors' part. */
static double outcome(const weighted_rows *w, int64_t i)
{
    return effect(w, 0, i) + effect(w, 1, i) + w->f->fit.e[i];
}

/** Means and centred moments of both effects and the outcome over rows. */
typedef struct {
    double total;
    double mean[3];
    double square[3], product; /* over the total; product of the effects */
} moments;

static moments measure(const weighted_rows *w)
{
    const int64_t n = w->f->data.frame.n;
    moments m = {0};
    for (int64_t i = 0; i < n; i++) {
        const double value[3] = {effect(w, 0, i), effect(w, 1, i), outcome(w, i)};
        m.total += weight_of(w, i);
        for (int c = 0; c < 3; c++) {
            m.mean[c] += weight_of(w, i) * value[c];
        }
    }
    for (int c = 0; c < 3; c++) {
        m.mean[c] /= m.total;
    }
    for (int64_t i = 0; i < n; i++) {
        const double share = weight_of(w, i) / m.total, a = effect(w, 0, i) - m.mean[0],
                     b = effect(w, 1, i) - m.mean[1], y = outcome(w, i) - m.mean[2];
        m.square[0] += share * a * a;
        m.square[1] += share * b * b;
        m.square[2] += share * y * y;
        m.product += share * a * b;
    }
    return m;
}

/* ---- the panel ------------------------------------------------------------------------------- */

static frg_status add_weights(frgi_leave_panel *p, const weighted_rows *w)
{
    const frgi_matches *const m = &p->matches;
    TRY(NEW0(p->ctx, &p->weight, m->count, "weights of the matches"));
    TRY(NEW0(p->ctx, &p->worker, m->n_first, "weights of the levels"));
    TRY(NEW0(p->ctx, &p->firm, m->n_second, "weights of the levels"));
    for (int64_t i = 0; i < w->f->data.frame.n; i++) {
        p->weight[m->of_row[i]] += weight_of(w, i);
    }
    for (int64_t e = 0; e < m->count; e++) {
        p->worker[m->first[e]] += p->weight[e];
        p->firm[m->second[e]] += p->weight[e];
        p->total += p->weight[e];
    }
    return FRG_OK;
}

/** Is the match one unit, rather than each of its rows? */
static bool is_unit(const frgi_matches *m, frg_leave_out_unit what, int64_t e)
{
    const int32_t k = m->first[e];
    return what == FRG_LEAVE_MATCH && m->start[k + 1] - m->start[k] > 1;
}

static frg_status number_units(frgi_leave_panel *p, const weighted_rows *w, frg_leave_out_unit what)
{
    const frgi_matches *const m = &p->matches;
    TRY(NEW0(p->ctx, &p->start, m->count + 1, "what is left out"));
    for (int64_t i = 0; i < w->f->data.frame.n && what != FRG_LEAVE_NONE; i++) {
        const int64_t e = m->of_row[i];
        p->start[e + 1] = is_unit(m, what, e) ? 1 : p->start[e + 1] + 1;
    }
    for (int64_t e = 0; e < m->count; e++) {
        p->start[e + 1] += p->start[e];
    }
    double **const parts[] = {&p->unit, &p->outcome, &p->error, &p->copies, &p->inverse};
    for (size_t c = 0; c < sizeof parts / sizeof *parts; c++) {
        TRY(NEW0(p->ctx, parts[c], p->start[m->count], "what is left out"));
    }
    return FRG_OK;
}

/** A row that is a unit; a frequency weight is so many units alike. */
static void fill_row(frgi_leave_panel *p, const weighted_rows *w, int64_t i, int64_t unit,
                     double mean)
{
    const double alike = w->frequency ? weight_of(w, i) : 1;
    p->unit[unit] = weight_of(w, i) / alike;
    p->outcome[unit] = outcome(w, i) - mean;
    p->error[unit] = w->f->fit.e[i];
    p->copies[unit] = alike;
}

/** The units; of a match its means. */
static void fill_units(frgi_leave_panel *p, const weighted_rows *w, frg_leave_out_unit what,
                       double mean, int64_t *next)
{
    const frgi_matches *const m = &p->matches;
    const int64_t n = w->f->data.frame.n;
    memcpy(next, p->start, sizeof *next * (size_t)m->count);
    for (int64_t i = 0; i < n; i++) {
        const int64_t e = m->of_row[i];
        if (is_unit(m, what, e)) {
            p->error[p->start[e]] += weight_of(w, i) / p->weight[e] * w->f->fit.e[i];
        } else {
            fill_row(p, w, i, next[e]++, mean);
        }
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t e = m->of_row[i];
        if (is_unit(m, what, e)) {
            const int64_t unit = p->start[e];
            p->unit[unit] = p->weight[e];
            p->outcome[unit] = effect(w, 0, i) + effect(w, 1, i) + p->error[unit] - mean;
            p->copies[unit] = 1;
        }
    }
}

static frg_status add_units(frgi_leave_panel *p, const weighted_rows *w, frg_leave_out_unit what,
                            double mean)
{
    int64_t *next;
    TRY(number_units(p, w, what));
    TRY(NEW(p->ctx, &next, p->matches.count, "what is left out"));
    if (what != FRG_LEAVE_NONE) {
        fill_units(p, w, what, mean, next);
    }
    DROP(p->ctx, &next);
    return FRG_OK;
}

/** The levels' effects less their means. */
static frg_status add_effects(frgi_leave_panel *p, const weighted_rows *w, const moments *m)
{
    const int64_t levels[] = {p->matches.n_first, p->matches.n_second};
    for (int q = 0; q < 2; q++) {
        TRY(NEW(p->ctx, &p->effect[q], levels[q], "effects"));
        for (int64_t k = 0; k < levels[q]; k++) {
            p->effect[q][k] = w->effects->value[w->effects->constant[q] + k] - m->mean[q];
        }
    }
    return FRG_OK;
}

static frg_status create_panel(frgi_leave_panel *p, const weighted_rows *w,
                               const frg_leave_out_opts *o, const moments *m)
{
    const frgi_frame *const frame = &w->f->data.frame;
    *p = (frgi_leave_panel){.ctx = w->f->ctx, .draws = o->draws};
    TRY(frgi_matches_create(&p->matches, p->ctx, frame->n, frame->codes, frame->levels[0],
                            frame->codes + frame->n, frame->levels[1],
                            w->frequency ? w->weights : NULL));
    TRY(add_weights(p, w));
    TRY(add_effects(p, w, m));
    TRY(NEW0(p->ctx, &p->q, p->matches.count, "leverages"));
    TRY(NEW0(p->ctx, &p->h, p->matches.count, "leverages"));
    return add_units(p, w, o->leave_out, m->mean[2]);
}

static void destroy_panel(frgi_leave_panel *p)
{
    frgi_matches_destroy(&p->matches, p->ctx);
    DROP(p->ctx, &p->weight);
    DROP(p->ctx, &p->worker);
    DROP(p->ctx, &p->firm);
    DROP(p->ctx, &p->start);
    double **const parts[] = {&p->unit,      &p->outcome,   &p->error, &p->copies, &p->inverse,
                              &p->effect[0], &p->effect[1], &p->q,     &p->h};
    for (size_t c = 0; c < sizeof parts / sizeof *parts; c++) {
        DROP(p->ctx, parts[c]);
    }
}

/* ---- components ------------------------------------------------------------------------------ */

static const frg_variance_components unknown = {NAN, NAN, NAN, NAN, NAN};

static frg_variance_components components(double first, double second, double covariance,
                                          double outcome_variance)
{
    return (frg_variance_components){
        .first = first,
        .second = second,
        .covariance = covariance,
        .correlation = first > 0 && second > 0 ? covariance / sqrt(first * second) : (double)NAN,
        .explained = (first + second + 2 * covariance) / outcome_variance};
}

static frg_variance_components errors(double first, double second, double covariance)
{
    return (frg_variance_components){sqrt(first), sqrt(second), sqrt(covariance), (double)NAN,
                                     (double)NAN};
}

/** From B of both together, g / W - 1 / W^2, that of the workers. */
void frgi_leave_combine(const frgi_leave_panel *p, double kept, double rest, double kept_q,
                        double kept_h, frgi_leave_sums *out)
{
    const double W = p->total;
    out->second = kept_q / W;
    out->covariance = (kept_h - kept_q) / W;
    out->first = (rest - kept / W) / W - out->second - 2 * out->covariance;
}

/** With one error variance v the sum of B_ii is the trace of A S^-, as S = sum w d d'. */
static void add_homoscedastic(frg_leave_out *out, const frgi_leave_panel *p,
                              const frgi_leave_sums *s)
{
    const double firms = (double)p->matches.n_second, workers = (double)p->matches.n_first;
    const double v = out->error_variance / p->total, error = v * v * s->trace_variance;
    const frg_variance_components *const b = &out->plug_in;
    out->homoscedastic =
        components(b->first - v * (workers - firms + s->trace), b->second - v * s->trace,
                   b->covariance - v * (firms - 1 - s->trace), out->outcome_variance);
    out->homoscedastic_error = errors(error, error, error);
}

static void add_corrected(frg_leave_out *out, const frgi_leave_sums *s)
{
    const frg_variance_components *const b = &out->plug_in;
    out->corrected = components(b->first - s->first, b->second - s->second,
                                b->covariance - s->covariance, out->outcome_variance);
    out->corrected_error = errors(s->first_variance, s->second_variance, s->covariance_variance);
    out->sampling_error = errors(s->sampling[0], s->sampling[1], s->sampling[2]);
}

/** The design, the plug-in estimates and the error variance. */
static void describe(frg_leave_out *out, const weighted_rows *w, const frgi_leave_panel *p,
                     const moments *m, const frg_leave_out_opts *o)
{
    static const char *const names[] = {"match", "observation", "none"};
    const frgi_frame *const frame = &w->f->data.frame;
    const frgi_matches *const matches = &p->matches;
    const double rank = (double)(matches->n_first + matches->n_second - 1);
    *out = (frg_leave_out){.first = frame->keys[0].name,
                           .second = frame->keys[1].name,
                           .leave_out = names[o->leave_out],
                           .n = (int64_t)frame->count,
                           .n_first = matches->n_first,
                           .n_second = matches->n_second,
                           .n_matches = matches->count,
                           .outcome_variance = m->square[2]};
    for (int64_t k = 0; k < matches->n_first; k++) {
        out->n_movers += matches->start[k + 1] - matches->start[k] > 1;
    }
    const double df = frame->count - w->f->fit.k - rank;
    out->error_variance = df > 0 ? w->f->fit.rss / df : (double)NAN;
    out->plug_in = components(m->square[0], m->square[1], m->product, m->square[2]);
}

/** Weights that are 1e10 apart leave nothing to divide by. */
static frg_status check_sums(frg_context *ctx, const frgi_leave_sums *s)
{
    if (!isfinite(s->first + s->second + s->covariance + s->trace)) {
        FAIL(ctx, E_LEAVE_OUT,
             "the corrections are not finite: a weight is nearly all that its levels have");
    }
    return FRG_OK;
}

/** Workers are more than firms: where they are not, their places are likely to be exchanged. */
static void warn_exchanged(frg_context *ctx, const frg_leave_out *l)
{
    if (l->n_first < l->n_second) {
        frgi_warn(ctx, W_EXCHANGED,
                  "'%s', taken for the workers, has %lld levels, and '%s', taken for the firms, "
                  "%lld: if it is the other way round, write | %s + %s",
                  l->first, (long long)l->n_first, l->second, (long long)l->n_second, l->second,
                  l->first);
    }
}

static frg_status estimate(frg_leave_out *out, const weighted_rows *w, const frg_leave_out_opts *o)
{
    const moments m = measure(w);
    const bool exact =
        o->leverage == FRG_LEVERAGE_EXACT ||
        (o->leverage == FRG_LEVERAGE_AUTO && w->f->data.frame.levels[1] <= AUTO_EXACT);
    frgi_leave_panel p = {.ctx = w->f->ctx};
    frgi_leave_sums sums = {0};
    frg_leave_out found = {0};
    frg_status status;
    TRY_TO(done, create_panel(&p, w, o, &m));
    describe(&found, w, &p, &m, o);
    TRY_TO(done, exact ? frgi_leave_exact(&p, &sums) : frgi_leave_draws(&p, &sums));
    if (status > 0) {
        goto done;
    }
    TRY_TO(done, check_sums(p.ctx, &sums));
    add_homoscedastic(&found, &p, &sums);
    found.corrected = found.corrected_error = found.sampling_error = unknown;
    found.leverage_max = (double)NAN;
    if (o->leave_out != FRG_LEAVE_NONE) {
        add_corrected(&found, &sums);
        found.leverage_max = sums.leverage_max;
    }
    found.error_variance = ldexp(found.error_variance, w->f->data.frame.weight_exponent);
    found.leverage = exact ? "exact" : "approx";
    found.draws = exact ? 0 : o->draws;
    found.iterations = sums.iterations;
    *out = found;
    warn_exchanged(p.ctx, out);
    if (sums.failed > 0) {
        frgi_warn(p.ctx, W_NOT_CONVERGED, "%lld of the linear systems of leave-out leverages",
                  (long long)sums.failed);
        status = FRG_MAX_ITER;
    }
done:
    destroy_panel(&p);
    return status;
}

frg_status frg_fe_leave_out(const frg_fe *f, const frg_leave_out_opts *o, frg_leave_out *out)
{
    frg_leave_out_opts opts;
    frgi_effects effects = {0};
    if (!f) {
        return FRG_BAD_ARG;
    }
    REQUIRE(f->ctx, out, "frg_fe_leave_out takes a place for the result");
    const double start = frgi_seconds();
    frg_leave_out_defaults(&opts, sizeof opts);
    TRY(frgi_take_opts(f->ctx, &opts, sizeof opts, o));
    TRY(check(f, &opts));
    frgi_run_begins(f->ctx);
    TRY(frgi_effects_create(&effects, f));
    const weighted_rows w = {.f = f,
                             .weights = f->data.frame.weights,
                             .frequency = f->policy.options.weights_kind == FRG_WEIGHTS_FREQUENCY,
                             .effects = &effects};
    frg_leave_out found = {0};
    frg_status status = estimate(&found, &w, &opts);
    frgi_effects_destroy(&effects, f->ctx);
    TRY(status);
    TRY(frgi_spool_check(f->ctx));
    found.seconds = status == FRG_OK || status == FRG_MAX_ITER ? frgi_seconds() - start : 0;
    *out = found;
    return status;
}
