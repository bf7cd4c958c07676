/* gp_choose.c - the start of a fit that the data choose, and the intervals that random starts are
 * drawn from.
 *
 * The values that an expression leaves out are set from moments of the data (gp_params.c).  A
 * search from there may end in a lesser local optimum where a lengthscale or a period is far from
 * its best value.  So a few other values are tried, on at most MOST points, and the search begins
 * at those of the largest ell + log prior:
 *
 *     lengthscales   LEVELS of them, s (R / s)^t, 0 <= t <= 1, from the nearest distance s of the
 *                    points to their range R
 *     periods        the peaks of a periodogram (gp_periods.c) and twice the first; beside them
 *                    lengthscales as they are, R, or LASTING R (an oscillation whose form changes
 *                    within the range and one whose form does not are two optima), and periodic
 *                    functions of any form or near to a sine
 *     noise          1/2 mean (y_i - y_j)^2 of nearest neighbours i, j, and fractions of var(y)
 *     variances, shapes   a few factors
 *
 * one parameter at a time, the others at the best values so far, in SWEEPS rounds.  Where every
 * term and the noise has a free variance of its own all of them are multiplied by f = r'K^-1 r / N,
 * at which ell is largest, which costs nothing:
 *
 *     ell(f K) = ell(K) + 1/2 r'K^-1 r (1 - 1/f) - N/2 log f
 *
 * A value that somebody gave is never changed.  The points are groups of neighbours spread over the
 * data, so that both short and long distances are among them.  All choices depend on the data
 * alone: the same bits on any number of threads.  Cost: about 40 likelihoods of MOST points, and
 * MOST / GROUP times n distances.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "gp/gp_fit.h"
#include "gp/gp_tree.h"

enum { MOST = 160, GROUP = 10, LEVELS = 6, SWEEPS = 2, MOST_VALUES = 140 };
#define LASTING 32. /* ranges: the form of an oscillation hardly changes over the data */
#define SMOOTH  4.  /* lengthscale of a periodic leaf near to a sine */

typedef struct {
    frg_gp *gp, *subset;
    ptrdiff_t n;        /* points of the subset */
    double *deviation;  /* d: standard deviations of the columns, 1 where that is 0 */
    double *best;       /* parameters that were best so far */
    double *trial;      /* ... and those to be tried */
    double *spacing;    /* of each lengthscale or period: the nearest distance of the points */
    double *range;      /* ... and their range */
    bool *scales;       /* variances that multiply one term of K each, and the noise */
    bool profiles;      /* every term has one: they may be multiplied by f together */
    double objective;   /* at best */
    double neighbours;  /* 1/2 mean (y_i - y_j)^2 of nearest neighbours, over var(y) */
    frg_status stopped; /* why the search for a start ended early */
} choice;

/* ---- points ---------------------------------------------------------------------------------- */

static void measure_deviations(choice *c)
{
    const frg_gp *const gp = c->gp;
    for (ptrdiff_t k = 0; k < gp->data.d; k++) {
        const double mean = frgi_gp_mean_of(gp->data.x + k, gp->data.n, gp->data.d);
        const double deviation = sqrt(
            frgi_gp_sum_of(gp->data.x + k, gp->data.n, gp->data.d, mean, 2) / (double)gp->data.n);
        c->deviation[k] = deviation > 0 && isfinite(deviation) ? deviation : 1;
    }
}

static double distance(const choice *c, const double *a, const double *b)
{
    double s = 0;
    for (ptrdiff_t k = 0; k < c->gp->data.d; k++) {
        const double u = (a[k] - b[k]) / c->deviation[k];
        s += u * u;
    }
    return s;
}

/** Marks the GROUP rows nearest to `row`, itself among them. */
static void choose_group(const choice *c, ptrdiff_t row, bool *selected)
{
    const frg_gp *const gp = c->gp;
    double nearest[GROUP];
    ptrdiff_t at[GROUP];
    int count = 0;
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        const double s = distance(c, gp->data.x + row * gp->data.d, gp->data.x + i * gp->data.d);
        int k = count < GROUP ? count++ : GROUP;
        while (k > 0 && s < nearest[k - 1]) {
            if (k < GROUP) {
                nearest[k] = nearest[k - 1];
                at[k] = at[k - 1];
            }
            k--;
        }
        if (k < GROUP) {
            nearest[k] = s;
            at[k] = i;
        }
    }
    for (int k = 0; k < count; k++) {
        selected[at[k]] = true;
    }
}

/** All rows, or neighbours of rows that are spread evenly over the order of the data; their
 *  number. */
static ptrdiff_t choose_rows(const choice *c, bool *selected, ptrdiff_t *rows)
{
    const ptrdiff_t n = c->gp->data.n;
    ptrdiff_t count = 0;
    for (ptrdiff_t g = 0; g < MOST / GROUP && n > MOST; g++) {
        choose_group(c, (2 * g + 1) * n / (2 * (MOST / GROUP)), selected);
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        if (n <= MOST || selected[i]) {
            rows[count++] = i;
        }
    }
    return count;
}

/** Median over the points of the subset of the smallest distance that is not 0, over the columns
 *  that p sees, each divided by its deviation; 0 where there is none.  *y2: 1/2 mean (y_i - y_j)^2
 *  of those nearest (or NULL). */
static double nearest_distance(const choice *c, const frgi_gp_param *p, const double *deviation,
                               double *work, double *y2)
{
    const frg_gp *const subset = c->subset;
    ptrdiff_t count = 0;
    double squares = 0;
    for (ptrdiff_t i = 0; i < subset->data.n; i++) {
        double least = HUGE_VAL;
        ptrdiff_t who = i;
        for (ptrdiff_t j = 0; j < subset->data.n; j++) {
            double s = 0;
            for (ptrdiff_t k = 0; k < subset->data.d; k++) {
                const double u = frgi_gp_param_sees(p, k)
                                     ? (subset->data.x[i * subset->data.d + k] -
                                        subset->data.x[j * subset->data.d + k]) /
                                           deviation[k]
                                     : 0;
                s += u * u;
            }
            if (s > 0 && s < least) {
                least = s;
                who = j;
            }
        }
        if (who != i) {
            work[count++] = sqrt(least);
            squares += 0.5 * (subset->data.y[i] - subset->data.y[who]) *
                       (subset->data.y[i] - subset->data.y[who]);
        }
    }
    if (y2) {
        *y2 = count > 0 ? squares / (double)count : (double)NAN;
    }
    return frgi_gp_median(work, count);
}

static double range_of(const frg_gp *gp, ptrdiff_t k)
{
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        const double v = gp->data.x[i * gp->data.d + k];
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    return high - low;
}

/** Nearest distance and range of a length or a period; of an entry of a vector in units of its
 *  column. */
static void measure_parameter(choice *c, int i, const double *ones, double *work)
{
    const frg_gp *const gp = c->gp;
    const frgi_gp_param *const p = &gp->model.params.p[i];
    frgi_gp_param all = *p;
    double squares = 0;
    for (ptrdiff_t k = 0; k < gp->data.d; k++) {
        if (frgi_gp_param_sees(p, k)) {
            const double r = range_of(gp, k);
            squares += r * r;
        }
    }
    c->range[i] = sqrt(squares);
    if (p->role == GP_ROLE_PERIOD) { /* as far as the periodogram goes */
        c->spacing[i] = 2 * c->range[i] / (double)(gp->data.n - 1);
        return;
    }
    if (p->column < 0) {
        c->spacing[i] = nearest_distance(c, p, ones, work, NULL);
        return;
    }
    all.column =
        -1; /* in one column alone nearest values of many points differ by next to nothing */
    c->spacing[i] = nearest_distance(c, &all, c->deviation, work, NULL) * c->deviation[p->column];
}

/* ---- a common factor of all variances -------------------------------------------------------- */

/** Marks the free variance of each term below a node; false where a term has none. */
static bool choose_scales(const choice *c, int at, bool *selected)
{
    const frgi_gp_kernel *const k = c->gp->model.kernel;
    const frgi_gp_node *const node = &k->node[at];
    const bool own = node->kind == GP_SCALE || node->kind == GP_LINEAR || node->kind == GP_SM ||
                     node->kind == GP_CONST || node->kind == GP_WHITE;
    bool all = own;
    for (int e = 0; own && e < node->group[0].count; e++) {
        all = all && frgi_gp_params_moves(&c->gp->model.params, node->group[0].first + e);
    }
    for (int e = 0; all && e < node->group[0].count; e++) {
        selected[node->group[0].first + e] = true;
    }
    for (int i = 0; i < node->children && !(all && node->kind != GP_SUM); i++) {
        const bool good = choose_scales(c, frgi_gp_child(k, at, i), selected);
        all = node->kind == GP_SUM ? good && (i == 0 || all) : good;
        if (node->kind == GP_SUM && !good) {
            return false;
        }
    }
    return all;
}

/** profiles: may K as a whole be multiplied by a number: has every term, and the noise, a free
 *  variance that the data gave, without a prior and not tied to one of the others? */
static void find_scales(choice *c)
{
    const frgi_gp_params *const ps = &c->gp->model.params;
    const frg_gp *const gp = c->gp;
    c->profiles = !gp->opts.profile_scale && !gp->data.has_known_noise &&
                  choose_scales(c, gp->model.kernel->n_nodes - 1, c->scales);
    for (int i = ps->noise_first; i < ps->noise_first + ps->noise_count; i++) {
        c->scales[i] = true;
    }
    for (int i = 0; i < ps->count; i++) {
        const frgi_gp_param *const p = &ps->p[i];
        const bool leads = p->tie == 0 || !c->scales[p->tie - 1];
        c->profiles = c->profiles && leads &&
                      (!c->scales[i] || (p->natural > 0 && frgi_gp_params_moves(ps, i) &&
                                         p->prior.kind == GP_PRIOR_NONE));
    }
}

/* ---- trials ---------------------------------------------------------------------------------- */

/** trial's variances <- f times them; returns what ell gains by it (0 where there is no such f). */
static double profile(choice *c)
{
    const frgi_gp_params *const ps = &c->gp->model.params;
    const double count = frgi_gp_scale_count(c->subset), f = c->subset->state.quad / count;
    if (!c->profiles || !(f > 0) || !isfinite(f)) {
        return 0;
    }
    for (int i = 0; i < ps->count; i++) {
        const frgi_gp_range r = frgi_gp_params_range(ps, i);
        if (c->scales[i] && !(c->trial[i] * f > r.lower && c->trial[i] * f < r.upper)) {
            return 0;
        }
    }
    for (int i = 0; i < ps->count; i++) {
        c->trial[i] *= c->scales[i] ? f : 1;
    }
    return 0.5 * c->subset->state.quad * (1 - 1 / f) - 0.5 * count * log(f);
}

/** Evaluates the parameters in trial, which become best where they are better. */
static frg_status try_trial(choice *c)
{
    frg_gp *const subset = c->subset;
    const frgi_gp_params *const ps = &c->gp->model.params;
    if (c->stopped != FRG_OK || c->gp->result.start_values >= MOST_VALUES) {
        return c->stopped;
    }
    for (int i = 0; i < ps->count; i++) {
        if (frgi_gp_params_moves(ps, i)) {
            c->trial[i] = frgi_gp_within(frgi_gp_params_range(ps, i), c->trial[i]);
        }
    }
    frgi_gp_params_follow(ps, c->trial);
    TRY(frgi_gp_set_theta(subset, c->trial));
    c->gp->result.start_values++;
    const frg_status status = frgi_gp_value(subset);
    if (status == FRG_NOT_POSDEF || status == FRG_BROKE_DOWN || status == FRG_BAD_DATA) {
        return FRG_OK;
    }
    TRY(status);
    c->stopped = status;
    if (status != FRG_OK) {
        return status;
    }
    const double objective =
        subset->result.value.log_likelihood + subset->result.value.log_prior + profile(c);
    if (objective > c->objective) {
        frgi_gp_params_follow(ps, c->trial);
        memcpy(c->best, c->trial, (size_t)ps->count * sizeof *c->best);
        c->objective = objective;
    }
    return FRG_OK;
}

static void begin_trial(choice *c)
{
    memcpy(c->trial, c->best, (size_t)c->gp->model.params.count * sizeof *c->trial);
}

/** Is it a free parameter whose value came from the data and was not changed since? */
static bool is_from_data(const frg_gp *gp, int i)
{
    const frgi_gp_param *const p = &gp->model.params.p[i];
    return p->natural > 0 && gp->model.theta[i] == p->natural &&
           frgi_gp_params_moves(&gp->model.params, i);
}

/** The place behind the last entry of the vector of which parameter i is an entry. */
static int end_of(const frgi_gp_params *ps, int i)
{
    int end = i + 1;
    while (end < ps->count && ps->p[end].name == ps->p[i].name) {
        end++;
    }
    return end;
}

/** s (R / s)^t of parameter i, 0 where it has no spacing. */
static double level(const choice *c, int i, double t)
{
    const double s = c->spacing[i], r = c->range[i];
    return s > 0 && r > s ? s * pow(r / s, t) : 0;
}

static frg_status try_lengths(choice *c, int first, int end)
{
    for (int l = 0; l < LEVELS; l++) {
        begin_trial(c);
        for (int i = first; i < end; i++) {
            const double v = level(c, i, l / (LEVELS - 1.));
            c->trial[i] = is_from_data(c->gp, i) && v > 0 ? v : c->trial[i];
        }
        TRY(try_trial(c));
    }
    return FRG_OK;
}

/** Lengthscales of the column become so many times its range. */
static void lengthen(choice *c, ptrdiff_t column, double times)
{
    for (int i = 0; i < c->gp->model.params.count; i++) {
        const frgi_gp_param *const p = &c->gp->model.params.p[i];
        if (p->role == GP_ROLE_LENGTH && is_from_data(c->gp, i) && frgi_gp_param_sees(p, column) &&
            c->range[i] > 0) {
            c->trial[i] = times * c->range[i];
        }
    }
}

/** What else changes with a period: lengthscales of its column become so many ranges, the
 *  lengthscale of the periodic leaf so many times its value from the data (0: they stay). */
typedef struct {
    double lengths, shape;
} company;

/** The lengthscale of the leaf that has the period i, where nobody gave it. */
static void set_shape(choice *c, int i, double times)
{
    const frgi_gp_kernel *const k = c->gp->model.kernel;
    for (int at = 0; at < k->n_nodes; at++) {
        const frgi_gp_node *const node = &k->node[at];
        const bool periodic = node->kind == GP_PERIODIC || node->kind == GP_PERIODIC_GPYTORCH;
        if (!periodic || i < node->group[1].first ||
            i >= node->group[1].first + node->group[1].count) {
            continue;
        }
        for (int e = 0; e < node->group[0].count; e++) {
            const int shape = node->group[0].first + e;
            if (is_from_data(c->gp, shape)) {
                c->trial[shape] = times * c->gp->model.params.p[shape].natural;
            }
        }
    }
}

static frg_status try_period(choice *c, int i, ptrdiff_t column, double period)
{
    static const company beside[] = {{0, 0}, {0, SMOOTH}, {1, 1}, {LASTING, SMOOTH}};
    for (size_t k = 0; k < sizeof beside / sizeof *beside; k++) {
        begin_trial(c);
        c->trial[i] = period;
        if (beside[k].lengths > 0) {
            lengthen(c, column, beside[k].lengths);
        }
        if (beside[k].shape > 0) {
            set_shape(c, i, beside[k].shape);
        }
        TRY(try_trial(c));
    }
    return FRG_OK;
}

static frg_status try_periods(choice *c, int i)
{
    const frgi_gp_param *const p = &c->gp->model.params.p[i];
    ptrdiff_t column = 0;
    double periods[FRGI_GP_PERIODS];
    int count;
    while (!frgi_gp_param_sees(p, column)) {
        column++;
    }
    TRY(frgi_gp_periods(c->gp, column, periods, &count));
    for (int k = 0; k < count; k++) {
        TRY(try_period(c, i, column, periods[k]));
    }
    return count > 0 ? try_period(c, i, column, 2 * periods[0]) : FRG_OK;
}

static frg_status try_factors(choice *c, int first, int end, const double *factors, int count)
{
    for (int k = 0; k < count; k++) {
        begin_trial(c);
        for (int i = first; i < end; i++) {
            c->trial[i] *= is_from_data(c->gp, i) ? factors[k] : 1;
        }
        TRY(try_trial(c));
    }
    return FRG_OK;
}

static frg_status try_noise(choice *c, int first, int end)
{
    const double fractions[] = {c->neighbours, 0.1 * c->neighbours, 1e-3, 0.3};
    for (size_t k = 0; k < sizeof fractions / sizeof *fractions; k++) {
        begin_trial(c);
        for (int i = first; i < end; i++) {
            const double v = fractions[k] * 10 * c->gp->model.params.p[i].natural; /* 0.1 var(y) */
            c->trial[i] = is_from_data(c->gp, i) && v > 0 ? v : c->trial[i];
        }
        TRY(try_trial(c));
    }
    return FRG_OK;
}

static int count_from_data(const frg_gp *gp, frgi_gp_role role)
{
    int count = 0;
    for (int i = 0; i < gp->model.params.count; i++) {
        count += gp->model.params.p[i].role == role && is_from_data(gp, i);
    }
    return count;
}

static frg_status try_parameter(choice *c, int first, int end)
{
    static const double variances[] = {10, 0.1}, shapes[] = {0.3, 3};
    bool open = false;
    for (int i = first; i < end; i++) {
        open = open || is_from_data(c->gp, i);
    }
    switch (open ? c->gp->model.params.p[first].role : GP_ROLE_USER) {
    case GP_ROLE_LENGTH:
        return try_lengths(c, first, end);
    case GP_ROLE_PERIOD:
        for (int i = first; i < end; i++) {
            if (is_from_data(c->gp, i)) {
                TRY(try_periods(c, i));
            }
        }
        return FRG_OK;
    case GP_ROLE_VARIANCE:
    case GP_ROLE_SLOPE:
        return count_from_data(c->gp, GP_ROLE_VARIANCE) + count_from_data(c->gp, GP_ROLE_SLOPE) >
                           1 ||
                       !c->profiles
                   ? try_factors(c, first, end, variances, 2)
                   : FRG_OK;
    case GP_ROLE_SHAPE:
        return try_factors(c, first, end, shapes, 2);
    case GP_ROLE_NOISE:
        return try_noise(c, first, end);
    default:
        return FRG_OK;
    }
}

static frg_status try_all(choice *c)
{
    const frgi_gp_params *const ps = &c->gp->model.params;
    memcpy(c->best, c->gp->model.theta, (size_t)ps->count * sizeof *c->best);
    begin_trial(c);
    TRY(try_trial(c));
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        const double before = c->objective;
        for (int i = 0; i < ps->count; i = end_of(ps, i)) {
            TRY(try_parameter(c, i, end_of(ps, i)));
        }
        if (!(c->objective > before)) {
            break;
        }
    }
    return c->stopped;
}

/* ---- the choice ------------------------------------------------------------------------------ */

static void lay_out(frgi_arena *a, choice *c, ptrdiff_t **rows, bool **selected, double **ones,
                    double **work)
{
    const ptrdiff_t p = c->gp->model.params.count;
    c->deviation = TAKE(a, double, c->gp->data.d);
    *ones = TAKE(a, double, c->gp->data.d);
    c->best = TAKE(a, double, p);
    c->trial = TAKE(a, double, p);
    c->spacing = TAKE(a, double, p);
    c->range = TAKE(a, double, p);
    *work = TAKE(a, double, MOST);
    *rows = TAKE(a, ptrdiff_t, c->gp->data.n);
    c->scales = TAKE(a, bool, p);
    *selected = TAKE(a, bool, c->gp->data.n);
}

static void measure(choice *c, double *ones, double *work)
{
    const frg_gp *const gp = c->gp;
    const frgi_gp_param all = {.column = -1, .columns = UINT64_MAX};
    for (ptrdiff_t k = 0; k < gp->data.d; k++) {
        ones[k] = 1;
    }
    double squares = 0;
    nearest_distance(c, &all, c->deviation, work, &squares);
    const double mean = frgi_gp_mean_of(gp->data.y, gp->data.n, 1);
    c->neighbours =
        squares / (frgi_gp_sum_of(gp->data.y, gp->data.n, 1, mean, 2) / (double)gp->data.n);
    for (int i = 0; i < gp->model.params.count; i++) {
        const frgi_gp_role role = gp->model.params.p[i].role;
        c->spacing[i] = c->range[i] = 0;
        c->scales[i] = false;
        if (role == GP_ROLE_LENGTH || role == GP_ROLE_PERIOD) {
            measure_parameter(c, i, ones, work);
        }
    }
}

/** Intervals of random starts: of lengthscales and periods between spacing and range, of others
 *  about the value from the data. */
static void keep_likely(choice *c)
{
    frgi_gp_params *const ps = &c->gp->model.params;
    for (int i = 0; i < ps->count; i++) {
        frgi_gp_param *const p = &ps->p[i];
        const bool measured = c->range[i] > c->spacing[i] && c->spacing[i] > 0;
        const double value = p->natural > 0 ? p->natural : c->gp->model.theta[i];
        p->likely[0] = measured ? c->spacing[i] : 0.01 * value;
        p->likely[1] = measured ? c->range[i] : (p->role == GP_ROLE_NOISE ? 10 : 100) * value;
        p->likely[0] = p->per_value ? 0 : p->likely[0];
    }
}

/** Is there something to choose whose value nobody gave? */
static bool chooses(const frg_gp *gp)
{
    return !gp->model.kernel->has_user &&
           count_from_data(gp, GP_ROLE_LENGTH) + count_from_data(gp, GP_ROLE_PERIOD) > 0;
}

frg_status frgi_gp_choose_start(frg_gp *gp, int starts)
{
    choice c = {.gp = gp, .objective = -HUGE_VAL};
    ptrdiff_t *rows;
    bool *selected;
    double *ones, *work;
    frgi_arena a = {0};
    gp->result.start_values = gp->result.start_points = 0;
    const bool chosen = chooses(gp);
    if (gp->data.n < 3 || !(chosen || starts > 1)) {
        return FRG_OK;
    }
    lay_out(&a, &c, &rows, &selected, &ones, &work);
    TRY(frgi_arena_open(&a, gp->ctx, "the choice of a start"));
    lay_out(&a, &c, &rows, &selected, &ones, &work);
    memset(selected, 0, (size_t)gp->data.n * sizeof *selected);
    measure_deviations(&c);
    c.n = choose_rows(&c, selected, rows);
    frg_status status = frgi_gp_subset(&c.subset, gp, c.n, rows);
    if (status == FRG_OK) {
        (void)frgi_gp_mute_jitter(c.subset, true);
        measure(&c, ones, work);
        keep_likely(&c);
    }
    if (status == FRG_OK && chosen) {
        gp->result.start_points = c.n;
        find_scales(&c);
        status = try_all(&c);
    }
    if (status == FRG_OK && c.objective > -HUGE_VAL) {
        status = frgi_gp_set_theta(gp, c.best);
    }
    frg_gp_destroy(c.subset);
    frgi_arena_close(&a, gp->ctx);
    return status;
}
