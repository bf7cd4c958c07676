/* gp_params.c - the parameter vector: its list, transforms, starting values and bounds from the
 * data, checks.
 *
 * Transforms v = T(raw):
 *     log       v = e^raw
 *     softplus  v = lower + log(1 + e^raw) = lower + max(raw, 0) + log1p(e^-|raw|);
 *               raw = z + log(-expm1(-z)), z = v - lower: neither overflows nor loses small z
 *     interval  v = lower + (upper - lower) / (1 + e^-raw)
 *     identity  v = raw, with box bounds
 *
 * Presets are the conventions of GPyTorch (softplus, all raw values 0, noise above 1e-4), of
 * BoTorch (boxes, log-normal priors that grow with sqrt(log d), starts at their modes; Hvarfner,
 * Hellsten and Nardi 2024) and of scikit-learn (logs, 1e-5 .. 1e5, starts at 1).
 */
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gp/gp_params.h"

/* ---- the list -------------------------------------------------------------------------------- */

void frgi_gp_params_open(frgi_gp_params *ps, frg_context *ctx)
{
    *ps = (frgi_gp_params){.ctx = ctx};
}

/** The entries of a vector stand side by side and share their name. */
static bool shares_name(const frgi_gp_params *ps, int i)
{
    return i > 0 && ps->p[i - 1].name == ps->p[i].name;
}

void frgi_gp_params_close(frgi_gp_params *ps)
{
    for (int i = ps->count - 1; i >= 0; i--) {
        if (!shares_name(ps, i)) {
            DROP(ps->ctx, (char **)(void *)&ps->p[i].name);
        }
    }
    DROP(ps->ctx, &ps->p);
    *ps = (frgi_gp_params){.ctx = ps->ctx};
}

static frg_status grow(frgi_gp_params *ps)
{
    if (ps->count < ps->capacity) {
        return FRG_OK;
    }
    const int capacity = ps->capacity ? 2 * ps->capacity : 16;
    TRY(GROW(ps->ctx, &ps->p, capacity, "the parameters"));
    ps->capacity = capacity;
    return FRG_OK;
}

frg_status frgi_gp_params_add(frgi_gp_params *ps, const char *name, frgi_gp_param p)
{
    TRY(grow(ps));
    const frgi_gp_param *const last = ps->count ? &ps->p[ps->count - 1] : NULL;
    if (last && p.entry > 0 && strcmp(last->name, name) == 0) {
        p.name = last->name;
    } else {
        char *copy;
        TRY(frgi_strdup(ps->ctx, &copy, name, strlen(name)));
        p.name = copy;
    }
    ps->p[ps->count++] = p;
    return FRG_OK;
}

frg_status frgi_gp_params_noise_groups(frgi_gp_params *ps, int groups)
{
    REQUIRE(ps->ctx, ps->noise_count == 1 && ps->noise_first == ps->count - 1 && groups >= 1,
            "noise by groups needs the single noise as the last parameter");
    ps->p[ps->noise_first].entry = 0;
    for (int g = 1; g < groups; g++) {
        frgi_gp_param p = ps->p[ps->noise_first];
        p.entry = g;
        TRY(frgi_gp_params_add(ps, p.name, p));
        ps->noise_count++;
    }
    return FRG_OK;
}

void frgi_gp_params_label(const frgi_gp_params *ps, int i, char out[96])
{
    const frgi_gp_param *const p = &ps->p[i];
    if (p->entry < 0) {
        snprintf(out, 96, "%s", p->name);
    } else {
        snprintf(out, 96, "%s[%lld]", p->name, frgi_nth(ps->ctx, p->entry));
    }
}

void frgi_gp_list_add(frgi_gp_list *l, const char *format, ...)
{
    if (l->count++ >= FRGI_GP_LISTED) {
        return;
    }
    char one[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(one, sizeof one, format, arguments);
    va_end(arguments);
    l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used, "%s%s",
                                l->count > 1 ? "; " : "", one);
}

const char *frgi_gp_list_text(frgi_gp_list *l)
{
    if (l->count > FRGI_GP_LISTED) {
        snprintf(l->text + l->used, sizeof l->text - l->used, "; and %d more",
                 l->count - FRGI_GP_LISTED);
    }
    return l->text;
}

/* ---- transforms ------------------------------------------------------------------------------ */

double frgi_gp_transform_value(const frgi_gp_param *p, double raw)
{
    switch (p->transform) {
    case FRG_GP_LOG:
        return exp(raw);
    case FRG_GP_SOFTPLUS:
        return p->lower + fmax(raw, 0) + log1p(exp(-fabs(raw)));
    case FRG_GP_INTERVAL:
        return p->lower + (p->upper - p->lower) / (1 + exp(-raw));
    default:
        return raw;
    }
}

double frgi_gp_transform_raw(const frgi_gp_param *p, double value)
{
    const double z = value - p->lower;
    switch (p->transform) {
    case FRG_GP_LOG:
        return log(value);
    case FRG_GP_SOFTPLUS:
        return z + log(-expm1(-z));
    case FRG_GP_INTERVAL:
        return log(z / (p->upper - value));
    default:
        return value;
    }
}

double frgi_gp_transform_slope(const frgi_gp_param *p, double raw)
{
    const double e = exp(-fabs(raw)), sigmoid = (raw >= 0 ? 1 : e) / (1 + e);
    switch (p->transform) {
    case FRG_GP_LOG:
        return exp(raw);
    case FRG_GP_SOFTPLUS:
        return sigmoid;
    case FRG_GP_INTERVAL:
        return (p->upper - p->lower) * e / ((1 + e) * (1 + e));
    default:
        return 1;
    }
}

/* ---- starts from the data -------------------------------------------------------------------- */

/** Moments of the data.  typical: the variance as a starting value; infinite, which
 *  frgi_gp_params_check refuses, where y varies but its squares underflow. */
typedef struct {
    double variance, typical;
    double *centre, *deviation, *range; /* d */
    ptrdiff_t d;
    frg_dtype dtype;
    frg_gp_preset preset;
} moments;

static void measure_y(moments *m, const double *y, ptrdiff_t n, ptrdiff_t q)
{
    double squares = 0;
    bool varies = false;
    for (ptrdiff_t c = 0; y && c < q; c++) {
        const double *const v = y + c * n;
        const double mean = frgi_gp_mean_of(v, n, 1);
        squares += frgi_gp_sum_of(v, n, 1, mean, 2);
        for (ptrdiff_t i = 1; i < n && !varies; i++) {
            varies = v[i] != v[0];
        }
    }
    const double variance = squares / (double)(n * q);
    m->variance = squares > 0 ? variance : 1;
    m->typical = varies && variance < DBL_MIN ? HUGE_VAL : m->variance;
}

static void measure_x(moments *m, const double *x, ptrdiff_t n)
{
    for (ptrdiff_t k = 0; k < m->d; k++) {
        double low = HUGE_VAL, high = -HUGE_VAL;
        for (ptrdiff_t i = 0; i < n; i++) {
            const double v = x[i * m->d + k];
            low = v < low ? v : low; /* not by fmin and fmax, which are calls */
            high = v > high ? v : high;
        }
        m->centre[k] = frgi_gp_mean_of(x + k, n, m->d);
        m->range[k] = n ? high - low : 0;
        m->deviation[k] = n ? sqrt(frgi_gp_sum_of(x + k, n, m->d, m->centre[k], 2) / (double)n) : 0;
    }
}

/** What one parameter's columns look like: root mean square of the deviations, largest range, and
 *  their number. */
typedef struct {
    double deviation, range, square;
    ptrdiff_t count;
} view;

static view view_of(const frgi_gp_param *p, const moments *m)
{
    view v = {0};
    double squares = 0;
    for (ptrdiff_t k = 0; k < m->d; k++) {
        if (frgi_gp_param_sees(p, k)) {
            squares += m->deviation[k] * m->deviation[k];
            v.square += m->deviation[k] * m->deviation[k] + m->centre[k] * m->centre[k];
            v.range = fmax(v.range, m->range[k]);
            v.count++;
        }
    }
    v.deviation = v.count ? sqrt(squares / (double)v.count) : 0;
    return v;
}

/** How many columns the node sees, for a vector's entry too: sqrt(d) of the length is the
 *  node's. */
static double node_dims(const frgi_gp_param *p, const moments *m)
{
    return p->columns == UINT64_MAX ? (double)m->d : fmax(1, __builtin_popcountll(p->columns));
}

/** The starting value, and the unit that bounds are multiples of.  Infinite where the data vary but
 *  squares of their deviations underflow. */
static double natural_start(const frgi_gp_param *p, const moments *m, double *unit)
{
    const view v = view_of(p, m);
    const double range = v.range > 0 ? v.range : 1;
    const double length = v.deviation > 0 ? 0.5 * sqrt(node_dims(p, m)) * v.deviation
                          : v.range > 0   ? HUGE_VAL
                                          : 1;
    const double width = 1 / (2 * M_PI * length);
    switch (p->role) {
    case GP_ROLE_VARIANCE:
        *unit = m->variance;
        return m->typical;
    case GP_ROLE_LENGTH:
        *unit = range;
        return length;
    case GP_ROLE_PERIOD:
        *unit = range;
        return 0.5 * range;
    case GP_ROLE_SLOPE:
        *unit = v.square > 0 ? m->variance / v.square : m->variance;
        return *unit;
    case GP_ROLE_FREQUENCY:
        *unit = 1 / range;
        return 1 / range;
    case GP_ROLE_FREQUENCY_WIDTH:
        *unit = width;
        return width;
    case GP_ROLE_FREQUENCY_VARIANCE:
        *unit = width * width;
        return width * width;
    case GP_ROLE_NOISE:
        *unit = m->variance;
        return 0.1 * m->typical;
    case GP_ROLE_MEAN:
        *unit = 1;
        return 0;
    default:
        *unit = 1;
        return 1;
    }
}

/** Bounds as multiples of the unit. */
static void natural_bounds(const frgi_gp_param *p, const moments *m, double *lower, double *upper)
{
    const bool is_variance = p->role == GP_ROLE_VARIANCE || p->role == GP_ROLE_SLOPE;
    *lower = is_variance ? 1e-6 : 1e-5;
    *upper = is_variance ? 1e6 : 1e5;
    if (p->role == GP_ROLE_FREQUENCY_VARIANCE) {
        *lower = 1e-10;
        *upper = 1e10;
    }
    if (p->role == GP_ROLE_NOISE) {
        *lower = m->dtype == FRG_F32 ? 1e-5 : 1e-8;
        *upper = 10;
    }
}

static void open_bounds(frgi_gp_param *p, double lower, double upper)
{
    p->lower = isnan(p->lower) ? lower : p->lower;
    p->upper = isnan(p->upper) ? upper : p->upper;
}

/** Bounds that the text did not give are widened to contain the value. */
static void reach_value(frgi_gp_param *p)
{
    if (!p->bounded && isfinite(p->value)) {
        p->lower = fmin(p->lower, p->value);
        p->upper = fmax(p->upper, p->value);
    }
}

static void start_value(frgi_gp_param *p, double value)
{
    if (isnan(p->value)) {
        p->value = value * (p->start_factor > 0 ? p->start_factor : 1);
        if (p->bounded && (p->value < p->lower || p->value > p->upper)) {
            p->value = p->per_value ? 0.5 * (p->lower + p->upper) : sqrt(p->lower * p->upper);
        }
    }
}

static void start_natural(frgi_gp_param *p, const moments *m)
{
    double unit, lower, upper;
    const double value = natural_start(p, m, &unit);
    natural_bounds(p, m, &lower, &upper);
    const bool open = isnan(p->value);
    start_value(p, value);
    p->natural = open && !p->per_value ? p->value : 0;
    if (p->per_value) {
        open_bounds(p, -HUGE_VAL, HUGE_VAL);
    } else {
        open_bounds(p, lower * unit, upper * unit);
    }
}

static void start_sklearn(frgi_gp_param *p)
{
    start_value(p, p->per_value ? 0 : 1);
    open_bounds(p, p->per_value ? -HUGE_VAL : 1e-5, p->per_value ? HUGE_VAL : 1e5);
}

/** raw = 0: log 2 above the lower bound, or the middle of an interval. */
static void start_gpytorch(frgi_gp_param *p)
{
    if (p->per_value) {
        start_value(p, 0);
        open_bounds(p, -HUGE_VAL, HUGE_VAL);
        return;
    }
    p->transform = p->bounded ? FRG_GP_INTERVAL : FRG_GP_SOFTPLUS;
    open_bounds(p, p->role == GP_ROLE_NOISE ? 1e-4 : 0, HUGE_VAL);
    if (!p->bounded && p->value <= p->lower) {
        p->lower = 0; /* a smaller value was asked for */
    }
    if (isnan(p->value)) {
        p->value = frgi_gp_transform_value(p, 0);
    }
}

/** Lengthscales LogNormal(sqrt 2 + log(d)/2, sqrt 3) from 0.025 on, noise LogNormal(-4, 1) from
 *  1e-4 on. */
static void start_botorch(frgi_gp_param *p, const moments *m)
{
    const bool is_length = p->role == GP_ROLE_LENGTH;
    if (!is_length && p->role != GP_ROLE_NOISE) {
        start_gpytorch(p);
        return;
    }
    const double mu = is_length ? M_SQRT2 + 0.5 * log(node_dims(p, m)) : -4,
                 sigma = is_length ? sqrt(3) : 1;
    p->transform = FRG_GP_IDENTITY;
    start_value(p, exp(mu - sigma * sigma));
    open_bounds(p, is_length ? 0.025 : 1e-4, HUGE_VAL);
    if (p->prior.kind == GP_PRIOR_NONE) {
        p->prior = (frgi_gp_prior){.kind = GP_PRIOR_LOGNORMAL, .a = mu, .b = sigma};
    }
}

/* ---- constant columns ------------------------------------------------------------------------ */

static bool is_constant(const double *x, ptrdiff_t n, ptrdiff_t d, ptrdiff_t k)
{
    ptrdiff_t i = 1;
    while (i < n && x[i * d + k] == x[k]) {
        i++;
    }
    return i >= n;
}

/** Are all columns that a lengthscale or a period divides constant?  Then the likelihood does not
 *  depend on it. */
static bool sees_nothing(const frgi_gp_param *p, const double *x, ptrdiff_t n, ptrdiff_t d)
{
    ptrdiff_t seen = 0;
    for (ptrdiff_t k = 0; k < d; k++) {
        if (frgi_gp_param_sees(p, k)) {
            seen++;
            if (!is_constant(x, n, d, k)) {
                return false;
            }
        }
    }
    return seen > 0;
}

/** The same for a parameter and all that follow it. */
static bool is_idle(const frgi_gp_params *ps, int leader, const double *x, ptrdiff_t n, ptrdiff_t d)
{
    for (int i = 0; i < ps->count; i++) {
        const frgi_gp_param *const p = &ps->p[i];
        const bool divides = p->role == GP_ROLE_LENGTH || p->role == GP_ROLE_PERIOD;
        if (frgi_gp_params_leader(ps, i) == leader && !(divides && sees_nothing(p, x, n, d))) {
            return false;
        }
    }
    return true;
}

/** Fixes a parameter of constant columns, until other values are appended; not with one point. */
static void hold_constant(frgi_gp_params *ps, int i, const double *x, ptrdiff_t n, ptrdiff_t d,
                          frgi_gp_list *held)
{
    frgi_gp_param *const p = &ps->p[i];
    if (p->fixed || p->tie > 0 || n < 2 || !is_idle(ps, i, x, n, d)) {
        return;
    }
    char label[96], columns[40] = "every column";
    frgi_gp_params_label(ps, i, label);
    if (p->column >= 0) {
        snprintf(columns, sizeof columns, "column %lld", frgi_nth(ps->ctx, p->column));
    }
    p->fixed = p->held = true;
    frgi_gp_list_add(held, "%s, which %s divides, at %g", columns, label, p->value);
}

static void warn_held(const frgi_gp_params *ps, frgi_gp_list *held)
{
    if (held->count > 0) {
        frgi_warn(ps->ctx, W_CONSTANT, "%d parameter%s of constant columns of x %s held: %s",
                  held->count, held->count > 1 ? "s" : "", held->count > 1 ? "are" : "is",
                  frgi_gp_list_text(held));
    }
}

static void follow_fixings(frgi_gp_params *ps)
{
    for (int i = 0; i < ps->count; i++) {
        ps->p[i].fixed = ps->p[frgi_gp_params_leader(ps, i)].fixed;
    }
}

void frgi_gp_params_release(frgi_gp_params *ps, const double *x, ptrdiff_t n, ptrdiff_t d)
{
    for (int i = 0; i < ps->count; i++) {
        frgi_gp_param *const p = &ps->p[i];
        if (p->held && !is_idle(ps, i, x, n, d)) {
            p->held = p->fixed = false;
        }
    }
    follow_fixings(ps);
}

/** A parameter that follows another one from the text on has all of it but its name and its
 *  prior. */
static void follow_leaders(frgi_gp_params *ps)
{
    for (int i = 0; i < ps->count; i++) {
        const frgi_gp_param *const leader = &ps->p[frgi_gp_params_leader(ps, i)];
        frgi_gp_param *const p = &ps->p[i];
        p->value = leader->value;
        p->lower = leader->lower;
        p->upper = leader->upper;
        p->transform = leader->transform;
    }
    follow_fixings(ps);
}

frg_status frgi_gp_params_start(frgi_gp_params *ps, const double *x, const double *y, ptrdiff_t n,
                                ptrdiff_t d, ptrdiff_t q, frg_gp_preset preset, frg_dtype dtype)
{
    double *block = NULL;
    frgi_gp_list held = {0};
    moments m = {.d = d, .dtype = dtype};
    if (preset == FRG_GP_PRESET_NONE) { /* the others do not look at the data */
        TRY(NEW(ps->ctx, &block, 3 * d, "the moments of x"));
        m.centre = block;
        m.deviation = block + d;
        m.range = block + 2 * d;
        measure_x(&m, x, n);
        measure_y(&m, y, n, q);
    }
    for (int i = 0; i < ps->count; i++) {
        frgi_gp_param *const p = &ps->p[i];
        switch (preset) {
        case FRG_GP_PRESET_GPYTORCH:
            start_gpytorch(p);
            break;
        case FRG_GP_PRESET_BOTORCH:
            start_botorch(p, &m);
            break;
        case FRG_GP_PRESET_SKLEARN:
            start_sklearn(p);
            break;
        default:
            start_natural(p, &m);
            break;
        }
        reach_value(p);
        hold_constant(ps, i, x, n, d, &held);
    }
    warn_held(ps, &held);
    follow_leaders(ps);
    DROP(ps->ctx, &block);
    return FRG_OK;
}

/* ---- ties ------------------------------------------------------------------------------------ */

void frgi_gp_params_follow(const frgi_gp_params *ps, double *theta)
{
    for (int i = 0; i < ps->count; i++) {
        theta[i] = theta[frgi_gp_params_leader(ps, i)];
    }
}

/* ---- ranges and checks ----------------------------------------------------------------------- */

/** Do the bounds not belong to the values? */
static bool excludes_bounds(const frgi_gp_param *p)
{
    return p->transform == FRG_GP_SOFTPLUS || p->transform == FRG_GP_INTERVAL;
}

static void narrow(frgi_gp_range *r, double lower, double upper)
{
    r->lower = fmax(r->lower, lower);
    r->upper = fmin(r->upper, upper);
}

/** Within +-DBL_MAX, of positive parameters from DBL_MIN on: denormals are taken for 0. */
frgi_gp_range frgi_gp_params_range(const frgi_gp_params *ps, int i)
{
    const int leader = frgi_gp_params_leader(ps, i);
    frgi_gp_range r = {ps->p[leader].per_value ? -DBL_MAX : DBL_MIN, DBL_MAX}, support;
    for (int k = 0; k < ps->count; k++) {
        const frgi_gp_param *const p = &ps->p[k];
        if (frgi_gp_params_leader(ps, k) != leader) {
            continue;
        }
        const bool open = excludes_bounds(p);
        narrow(&r, open ? nextafter(p->lower, (double)INFINITY) : p->lower,
               open ? nextafter(p->upper, -(double)INFINITY) : p->upper);
        if (frgi_gp_prior_support(p, &support)) {
            narrow(&r, support.lower, support.upper);
        }
    }
    return r;
}

frg_status frgi_gp_params_check(const frgi_gp_params *ps, const double *theta)
{
    for (int i = 0; i < ps->count; i++) {
        const frgi_gp_param *const p = &ps->p[i];
        const double v = theta[i];
        const bool open = excludes_bounds(p);
        const bool inside =
            p->fixed || (open ? v > p->lower && v < p->upper : v >= p->lower && v <= p->upper);
        const int leader = frgi_gp_params_leader(ps, i);
        const bool follows = v == theta[leader] || !isfinite(theta[leader]);
        if (isfinite(v) && (v > 0 || p->per_value) && inside && follows) {
            continue;
        }
        char label[96];
        frgi_gp_params_label(ps, i, label);
        frgi_at(ps->ctx, "%s", label);
        if (isinf(v) && isinf(p->value)) { /* the expression has finite ones alone */
            FAIL(ps->ctx, E_PARAMETER,
                 "%s cannot be set from the data, whose spread or its square is beyond floating "
                 "point: scale them",
                 label);
        }
        if (!isfinite(v)) {
            FAIL(ps->ctx, E_PARAMETER, "%s is not finite", label);
        }
        if (!(v > 0) && !p->per_value) {
            FAIL(ps->ctx, E_PARAMETER, "%s must be positive, got %g", label, v);
        }
        if (inside) {
            char other[96];
            frgi_gp_params_label(ps, leader, other);
            FAIL(ps->ctx, E_PARAMETER, "%s is %g and %s, to which it is tied, is %g", label, v,
                 other, theta[leader]);
        }
        FAIL(ps->ctx, E_PARAMETER, "%s is %g, outside its bounds %s%g, %g%s", label, v,
             open ? "(" : "[", p->lower, p->upper, open ? ")" : "]");
    }
    return FRG_OK;
}
