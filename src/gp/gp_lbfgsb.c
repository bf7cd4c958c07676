/* gp_lbfgsb.c - limited-memory BFGS in a box.
 *
 * Model of f at x from the last m pairs s = x+ - x, y = g+ - g, in compact form:
 *
 *     B = theta I - W M W',   W = [Y, theta S],   M = [-D, L'; L, theta S'S]^-1,
 *     D = diag(s_i'y_i),  L_ij = s_i'y_j for i > j,  theta = y'y / s'y of the last pair
 *
 * An iteration: (1) the generalised Cauchy point, the first minimiser of the model along the
 * projected path x - t g, found by walking the breakpoints t_i where coordinates meet their bounds;
 * (2) the minimiser of the model over the coordinates that are free there, projected into the box;
 * (3) a strong Wolfe search (c1 = 1e-4, c2 = 0.9) between x and that point.  Trials ask for the
 * value first: only one that has come down enough is worth its gradient, three times as expensive.
 * After a trial without a value the next one lies three tenths of the way towards it.
 *
 * Cost beside the objective: O(n m^2 + m^3) an iteration, memory (2 m + 10) n, and 2 n^2 for the
 * curvature where the objective has one.  Pairs with s'y not above eps y'y are left out, so that B
 * stays positive definite.  When the model fails (a direction that does not go down, a search
 * without success, a step that gains next to nothing where the curvature predicts more) the pairs
 * are forgotten and the search starts again from steepest descent; it ends where that fails, or
 * after ten such in a row.
 *
 * Byrd, Lu, Nocedal and Zhu (1995), SIAM J. Sci. Comput. 16, 1190-1208; projection of the subspace
 * step: Morales and Nocedal (2011), ACM TOMS 38(1); Nocedal and Wright (2006), Numerical
 * Optimization, 3.5.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "gp/gp_optimise.h"

enum { PAIRS = 10, BASIS = 2 * PAIRS, MAX_TRIALS = 25, MAX_IDLE = PAIRS };
static const double ARMIJO = 1e-4, CURVATURE = 0.9;

/* ---- asking the objective -------------------------------------------------------------------- */

frg_status frgi_gp_ask_value(const frgi_gp_objective *o, const double *x, double *f,
                             frgi_gp_found *found)
{
    found->values++;
    frg_status status = o->value(o->user, x, f);
    if (status == FRG_OK && !isfinite(*f)) {
        status = FRG_NOT_POSDEF;
    }
    if (status == FRG_NOT_POSDEF) {
        *f = (double)INFINITY;
        found->failures++;
    }
    return status;
}

frg_status frgi_gp_ask_gradient(const frgi_gp_objective *o, double *g, frgi_gp_found *found)
{
    found->gradients++;
    frg_status status = o->gradient(o->user, g);
    for (int i = 0; status == FRG_OK && i < o->n; i++) {
        status = isfinite(g[i]) ? FRG_OK : FRG_NOT_POSDEF;
    }
    found->failures += status == FRG_NOT_POSDEF;
    return status;
}

frgi_gp_end frgi_gp_is_end(const frgi_gp_objective *o, const frgi_gp_search *s, double f,
                           double promise)
{
    const double least = fmax(s->relative, 10 * DBL_EPSILON) * fmax(fabs(f), 1);
    const double rounding = o->rounding ? o->rounding(o->user) : 0;
    return promise <= least      ? GP_ENDED_BY_GAIN
           : promise <= rounding ? GP_ENDED_BY_ROUNDING
                                 : GP_ENDED_OTHERWISE;
}

double frgi_gp_projected_norm(const frgi_gp_objective *o, const double *x, const double *g)
{
    double norm = 0;
    for (int i = 0; i < o->n; i++) {
        const bool held = g[i] > 0 ? x[i] <= o->lower[i] : x[i] >= o->upper[i];
        norm = !held && fabs(g[i]) > norm ? fabs(g[i]) : norm;
    }
    return norm;
}

/* ---- the model ------------------------------------------------------------------------------- */

typedef struct {
    const frgi_gp_objective *o;
    const frgi_gp_search *s;
    frgi_gp_found *found;
    int n, pairs;
    double theta;
    double *step, *change;                  /* PAIRS x n: s and y, oldest first */
    double middle[BASIS * BASIS];           /* M */
    double *x, *g, f;                       /* the iterate */
    double *cauchy, *target, *d, *residual; /* n */
    double *trial, *trial_g;                /* n */
    int *order;                             /* n: breakpoints by size */
    unsigned char *is_free;                 /* n */
    frgi_gp_model model;                    /* where the objective has a curvature */
} search;

static double dot(int n, const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

/** Row i of W. */
static void basis_row(const search *q, int i, double *w)
{
    for (int k = 0; k < q->pairs; k++) {
        w[k] = q->change[(size_t)k * (size_t)q->n + (size_t)i];
        w[q->pairs + k] = q->theta * q->step[(size_t)k * (size_t)q->n + (size_t)i];
    }
}

/** a (n x n, row-major) and the n x q right-hand sides b <- a^-1 b by elimination with row
 *  exchanges. */
static bool eliminate(int n, double *a, int q, double *b)
{
    for (int k = 0; k < n; k++) {
        int top = k;
        for (int i = k + 1; i < n; i++) {
            top = fabs(a[i * n + k]) > fabs(a[top * n + k]) ? i : top;
        }
        if (!(fabs(a[top * n + k]) > 0)) {
            return false;
        }
        for (int j = 0; j < n && top != k; j++) {
            const double t = a[k * n + j];
            a[k * n + j] = a[top * n + j];
            a[top * n + j] = t;
        }
        for (int j = 0; j < q && top != k; j++) {
            const double t = b[k * q + j];
            b[k * q + j] = b[top * q + j];
            b[top * q + j] = t;
        }
        for (int i = 0; i < n; i++) {
            const double factor = i == k ? 0 : a[i * n + k] / a[k * n + k];
            for (int j = k; j < n && factor != 0; j++) {
                a[i * n + j] -= factor * a[k * n + j];
            }
            for (int j = 0; j < q && factor != 0; j++) {
                b[i * q + j] -= factor * b[k * q + j];
            }
        }
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < q; j++) {
            b[i * q + j] /= a[i * n + i];
        }
    }
    return true;
}

/** y <- M x, both of 2 pairs. */
static void times_middle(const search *q, const double *x, double *y)
{
    const int m = 2 * q->pairs;
    for (int i = 0; i < m; i++) {
        y[i] = dot(m, q->middle + i * m, x);
    }
}

static bool renew_middle(search *q)
{
    const int k = q->pairs, m = 2 * k;
    double inverse[BASIS * BASIS];
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < m; j++) {
            q->middle[i * m + j] = i == j;
        }
    }
    for (int i = 0; i < k; i++) {
        const double *si = q->step + (size_t)i * (size_t)q->n;
        for (int j = 0; j < k; j++) {
            const double *sj = q->step + (size_t)j * (size_t)q->n;
            const double *yj = q->change + (size_t)j * (size_t)q->n;
            const double sy = dot(q->n, si, yj);
            inverse[i * m + j] = i == j ? -sy : 0;
            inverse[(k + i) * m + j] = i > j ? sy : 0;
            inverse[j * m + k + i] = i > j ? sy : 0;
            inverse[(k + i) * m + k + j] = q->theta * dot(q->n, si, sj);
        }
    }
    return eliminate(m, inverse, m, q->middle);
}

static void forget_pairs(search *q)
{
    q->pairs = 0;
    q->theta = 1;
}

/** Takes the pair of the step to (trial, trial_g), where its curvature is positive. */
static void learn(search *q)
{
    const int n = q->n;
    double sy = 0, yy = 0;
    for (int i = 0; i < n; i++) {
        const double y = q->trial_g[i] - q->g[i];
        sy += y * (q->trial[i] - q->x[i]);
        yy += y * y;
    }
    if (!(sy > DBL_EPSILON * yy)) {
        return;
    }
    if (q->pairs == PAIRS) {
        const size_t kept = (size_t)(PAIRS - 1) * (size_t)n;
        memmove(q->step, q->step + n, kept * sizeof *q->step);
        memmove(q->change, q->change + n, kept * sizeof *q->change);
        q->pairs--;
    }
    double *s = q->step + (size_t)q->pairs * (size_t)n;
    double *y = q->change + (size_t)q->pairs * (size_t)n;
    for (int i = 0; i < n; i++) {
        s[i] = q->trial[i] - q->x[i];
        y[i] = q->trial_g[i] - q->g[i];
    }
    q->pairs++;
    q->theta = yy / sy;
    if (!renew_middle(q)) {
        forget_pairs(q);
    }
}

/* ---- the point the model aims at ------------------------------------------------------------- */

/** The path parameter at which coordinate i meets its bound on x - t g. */
static double breakpoint(const search *q, int i)
{
    const double g = q->g[i];
    if (g < 0) {
        return (q->x[i] - q->o->upper[i]) / g;
    }
    return g > 0 ? (q->x[i] - q->o->lower[i]) / g : (double)INFINITY;
}

static void sort_breakpoints(search *q, const double *t)
{
    for (int i = 0; i < q->n; i++) { /* few coordinates: insertion */
        int k = i;
        for (; k > 0 && t[q->order[k - 1]] > t[i]; k--) {
            q->order[k] = q->order[k - 1];
        }
        q->order[k] = i;
    }
}

/** The path x - t g, bent at every bound that it meets: p = W'd and c = W'(x(t) - x), and along d
 *  the model's slope and bend, from t = `old` on; `ahead` of there it has its minimum. */
typedef struct {
    double p[BASIS], slope, bend, least, old, ahead;
} path;

/** t <- where each coordinate meets its bound. */
static path begin_path(search *q, double *t)
{
    const int n = q->n, m = 2 * q->pairs;
    double w[BASIS], mp[BASIS];
    path x = {.slope = 0};
    for (int i = 0; i < n; i++) {
        t[i] = breakpoint(q, i);
        q->d[i] = t[i] > 0 ? -q->g[i] : 0;
        q->cauchy[i] = q->x[i];
        x.slope -= q->d[i] * q->d[i];
        basis_row(q, i, w);
        for (int k = 0; k < m; k++) {
            x.p[k] += w[k] * q->d[i];
        }
    }
    times_middle(q, x.p, mp);
    x.bend = -q->theta * x.slope - dot(m, x.p, mp);
    x.least = DBL_EPSILON * x.bend;
    x.ahead = x.slope < 0 ? -x.slope / x.bend : 0;
    return x;
}

/** Coordinate b stops at its bound, where t is: with z its way there,
 *  f'  <- f' + dt f'' + g^2 + theta g z - g w'M c,
 *  f'' <- f'' - theta g^2 - 2 g w'M p - g^2 w'M w. */
static void pass_bound(search *q, path *x, int b, double t, double *c)
{
    const int m = 2 * q->pairs;
    const double dt = t - x->old, g = q->g[b];
    double w[BASIS], mw[BASIS];
    q->cauchy[b] = g > 0 ? q->o->lower[b] : q->o->upper[b];
    const double z = q->cauchy[b] - q->x[b];
    for (int i = 0; i < m; i++) {
        c[i] += dt * x->p[i];
    }
    basis_row(q, b, w);
    times_middle(q, w, mw);
    x->slope += dt * x->bend + g * g + q->theta * g * z - g * dot(m, mw, c);
    x->bend -= q->theta * g * g + 2 * g * dot(m, mw, x->p) + g * g * dot(m, mw, w);
    x->bend = fmax(x->bend, x->least);
    for (int i = 0; i < m; i++) {
        x->p[i] += g * w[i];
    }
    q->d[b] = 0;
    x->ahead = -x->slope / x->bend;
    x->old = t;
}

/** The generalised Cauchy point, the first minimum of the model along the path; c <- W'(cauchy -
 *  x). */
static void find_cauchy(search *q, double *c)
{
    const int n = q->n, m = 2 * q->pairs;
    double *const t = q->residual;
    path x = begin_path(q, t);
    memset(c, 0, BASIS * sizeof *c);
    sort_breakpoints(q, t);
    for (int k = 0; k < n; k++) {
        const int b = q->order[k];
        if (t[b] <= 0 || q->d[b] == 0) {
            continue;
        }
        if (!(x.ahead >= t[b] - x.old)) {
            break;
        }
        pass_bound(q, &x, b, t[b], c);
    }
    const double ahead = x.ahead > 0 ? x.ahead : 0;
    for (int i = 0; i < n; i++) {
        if (q->d[i] != 0) {
            q->cauchy[i] = frgi_gp_clip(q->o, i, q->x[i] + (x.old + ahead) * q->d[i]);
        }
        q->is_free[i] = q->cauchy[i] > q->o->lower[i] && q->cauchy[i] < q->o->upper[i];
    }
    for (int i = 0; i < m; i++) {
        c[i] += ahead * x.p[i];
    }
}

/** target <- the minimiser of the model over the free coordinates, projected into the box; the
 *  Cauchy point where that does not lead down. */
static void minimise_subspace(search *q, const double *c)
{
    const int n = q->n, m = 2 * q->pairs;
    double mc[BASIS], w[BASIS], v[BASIS] = {0}, mv[BASIS], gram[BASIS * BASIS] = {0};
    double system[BASIS * BASIS];
    memcpy(q->target, q->cauchy, (size_t)n * sizeof *q->target);
    if (m == 0) {
        return;
    }
    times_middle(q, c, mc);
    for (int i = 0; i < n; i++) {
        if (!q->is_free[i]) {
            continue;
        }
        basis_row(q, i, w);
        q->residual[i] = q->g[i] + q->theta * (q->cauchy[i] - q->x[i]) - dot(m, w, mc);
        for (int a = 0; a < m; a++) {
            v[a] += w[a] * q->residual[i];
            for (int b = 0; b < m; b++) {
                gram[a * m + b] += w[a] * w[b] / q->theta;
            }
        }
    }
    times_middle(q, v, mv);
    for (int a = 0; a < m; a++) { /* I - M W_F'W_F / theta */
        for (int b = 0; b < m; b++) {
            double sum = a == b;
            for (int k = 0; k < m; k++) {
                sum -= q->middle[a * m + k] * gram[k * m + b];
            }
            system[a * m + b] = sum;
        }
    }
    if (!eliminate(m, system, 1, mv)) {
        return;
    }
    double down = 0;
    for (int i = 0; i < n; i++) {
        if (q->is_free[i]) {
            basis_row(q, i, w);
            const double move = -(q->residual[i] + dot(m, w, mv) / q->theta) / q->theta;
            q->target[i] = frgi_gp_clip(q->o, i, q->cauchy[i] + move);
        }
        down += (q->target[i] - q->x[i]) * q->g[i];
    }
    if (!(down < 0)) {
        memcpy(q->target, q->cauchy, (size_t)n * sizeof *q->target);
    }
}

/* ---- the search along d ---------------------------------------------------------------------- */

typedef struct {
    double step, f, slope;
} trial_point;

/** x_i + move, in the box; at a bound where it ends within its rounding of one: an ulp inside, the
 *  gradient that pushes against the bound would count as one that is left. */
static double moved_to(const search *q, int i, double move)
{
    const double to = q->x[i] + move, rounding = 4 * DBL_EPSILON * (fabs(q->x[i]) + fabs(move));
    if (move < 0 && to <= q->o->lower[i] + rounding) {
        return q->o->lower[i];
    }
    if (move > 0 && to >= q->o->upper[i] - rounding) {
        return q->o->upper[i];
    }
    return frgi_gp_clip(q->o, i, to);
}

static void place(search *q, double step)
{
    for (int i = 0; i < q->n; i++) {
        q->trial[i] = moved_to(q, i, step * q->d[i]);
    }
}

/** The longest step that stays in the box. */
static double longest_step(const search *q)
{
    double longest = 1e10;
    for (int i = 0; i < q->n; i++) {
        const double d = q->d[i];
        const double step = d > 0   ? (q->o->upper[i] - q->x[i]) / d
                            : d < 0 ? (q->o->lower[i] - q->x[i]) / d
                                    : (double)INFINITY;
        longest = step < longest ? step : longest;
    }
    return longest > 1 ? longest : 1;
}

/** A step between the ends of the bracket: the minimiser of the parabola through lo's value and
 *  slope and hi's value, kept away from both ends; towards lo where hi has no value. */
static double between(const trial_point *lo, const trial_point *hi)
{
    const double width = hi->step - lo->step;
    if (!isfinite(hi->f)) {
        return lo->step + 0.3 * width;
    }
    const double bend = hi->f - lo->f - lo->slope * width;
    double share = bend > 0 ? -0.5 * lo->slope * width / bend : 0.5;
    share = share < 0.1 ? 0.1 : share > 0.9 ? 0.9 : share;
    return lo->step + share * width;
}

/** Finds a step with f <= f0 + c1 step slope0 and |slope| <= c2 |slope0|; trial, trial_g and *f are
 *  set. FRG_STALLED: none was found that comes down at all. */
static frg_status wolfe(search *q, double slope0, double first, double *f)
{
    const double longest = longest_step(q);
    trial_point lo = {0, q->f, slope0}, hi = {0, 0, 0};
    bool closed = false;
    double step = first < longest ? first : longest;
    for (int trial = 0; trial < MAX_TRIALS; trial++) {
        trial_point now = {step, (double)INFINITY, 0};
        place(q, step);
        frg_status status = frgi_gp_ask_value(q->o, q->trial, &now.f, q->found);
        bool down = status == FRG_OK && now.f <= q->f + ARMIJO * step * slope0 && now.f < lo.f;
        if (down) {
            status = frgi_gp_ask_gradient(q->o, q->trial_g, q->found);
            down = status == FRG_OK;
        }
        if (status != FRG_OK && status != FRG_NOT_POSDEF) {
            return status;
        }
        if (!down) {
            now.f = status == FRG_NOT_POSDEF ? (double)INFINITY : now.f;
            hi = now;
            closed = true;
        } else {
            now.slope = dot(q->n, q->trial_g, q->d);
            *f = now.f;
            if (fabs(now.slope) <= -CURVATURE * slope0 || (now.slope < 0 && step >= longest)) {
                return FRG_OK;
            }
            if (closed ? now.slope * (hi.step - lo.step) >= 0 : now.slope >= 0) {
                hi = lo;
                closed = true;
            }
            lo = now;
        }
        step = closed ? between(&lo, &hi) : fmin(longest, 4 * step);
        if (closed && !(fabs(hi.step - lo.step) > 1e-14 * fabs(hi.step))) {
            break;
        }
    }
    if (lo.step == 0) {
        return FRG_STALLED;
    }
    place(q, lo.step); /* Armijo alone: good enough to go on from */
    frg_status status = frgi_gp_ask_value(q->o, q->trial, f, q->found);
    if (status == FRG_OK) {
        status = frgi_gp_ask_gradient(q->o, q->trial_g, q->found);
    }
    return status == FRG_NOT_POSDEF ? FRG_STALLED : status;
}

/* ---- iterations ------------------------------------------------------------------------------ */

static void lay_out(frgi_arena *a, search *q)
{
    const size_t n = (size_t)q->n;
    q->step = TAKE(a, double, PAIRS *n);
    q->change = TAKE(a, double, PAIRS *n);
    double **const vectors[] = {&q->g,        &q->cauchy, &q->target, &q->d,
                                &q->residual, &q->trial,  &q->trial_g};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        *vectors[i] = TAKE(a, double, n);
    }
    q->order = TAKE(a, int, n);
    q->is_free = TAKE(a, unsigned char, n);
    if (q->o->information) {
        frgi_gp_model_take(a, q->n, &q->model);
    }
}

/** One iteration: FRG_STALLED when no way down was found. */
static frg_status iterate(search *q, bool fresh, double *expected)
{
    double c[BASIS];
    find_cauchy(q, c);
    minimise_subspace(q, c);
    double size = 0;
    for (int i = 0; i < q->n; i++) {
        q->d[i] = q->target[i] - q->x[i];
        size += q->d[i] * q->d[i];
    }
    const double slope = dot(q->n, q->d, q->g);
    *expected = -slope;
    if (!(slope < 0)) {
        return FRG_STALLED;
    }
    double f;
    const double first = fresh && size > 1 ? 1 / sqrt(size) : 1;
    const frg_status status = wolfe(q, slope, first, &f);
    if (status != FRG_OK) {
        return status;
    }
    learn(q);
    memcpy(q->x, q->trial, (size_t)q->n * sizeof *q->x);
    memcpy(q->g, q->trial_g, (size_t)q->n * sizeof *q->g);
    q->f = f;
    return FRG_OK;
}

/** Records and reports the iterate. */
static frg_status report(const search *q)
{
    q->found->f = q->f;
    q->found->norm = frgi_gp_projected_norm(q->o, q->x, q->g);
    return q->o->accepted ? q->o->accepted(q->o->user, q->x, q->f, q->found->norm) : FRG_OK;
}

/** Value and gradient of the start, moved into the box. */
static frg_status begin(search *q)
{
    for (int i = 0; i < q->n; i++) {
        q->x[i] = frgi_gp_clip(q->o, i, q->x[i]);
    }
    frg_status status = frgi_gp_ask_value(q->o, q->x, &q->f, q->found);
    if (status == FRG_OK) {
        status = frgi_gp_ask_gradient(q->o, q->g, q->found);
    }
    return status == FRG_OK ? report(q) : status;
}

/** *done: is the reduction predicted for a full step from x too small to go on?  own: that of the
 *  pairs' model, for objectives without a curvature. */
static frg_status ask_promise(search *q, bool moved, double own, bool *done)
{
    double f, promise = own;
    frg_status status = FRG_OK;
    if (q->o->information) {
        if (!moved) { /* the last value was a trial's */
            status = frgi_gp_ask_value(q->o, q->x, &f, q->found);
        }
        if (status == FRG_OK) {
            status = q->o->information(q->o->user, q->model.h);
        }
        if (status == FRG_OK) {
            promise = frgi_gp_promise(q->o, q->x, q->g, &q->model);
        }
    }
    q->found->end = status == FRG_OK ? frgi_gp_is_end(q->o, q->s, q->f, promise) : q->found->end;
    *done = q->found->end != GP_ENDED_OTHERWISE;
    return status == FRG_NOT_POSDEF ? FRG_STALLED : status;
}

static frg_status run(search *q)
{
    frg_status status = begin(q);
    int idle = 0; /* iterations in a row that won next to nothing */
    while (status == FRG_OK && q->found->norm > q->s->tol) {
        if (q->found->iterations >= q->s->max_iter) {
            return FRG_MAX_ITER;
        }
        const double before = q->f;
        const bool fresh = q->pairs == 0;
        double own;
        status = iterate(q, fresh, &own);
        const bool moved = status == FRG_OK;
        if (!moved && status != FRG_STALLED) {
            return status;
        }
        if (moved) {
            q->found->iterations++;
            status = report(q);
            if (status != FRG_OK) {
                return status;
            }
        }
        if (before - q->f > q->s->relative * fmax(fmax(fabs(before), 1), fabs(q->f))) {
            idle = 0;
            continue;
        }
        bool done;
        status = ask_promise(q, moved, own, &done);
        if (status != FRG_OK || done) {
            return status;
        }
        if ((!moved && fresh) || ++idle == MAX_IDLE) {
            return FRG_STALLED;
        }
        if (idle == 1 || !moved) { /* a model that has gone wrong takes small steps */
            forget_pairs(q);
        }
    }
    return status;
}

frg_status frgi_gp_lbfgsb(frg_context *ctx, const frgi_gp_objective *o, const frgi_gp_search *s,
                          double *x, frgi_gp_found *out)
{
    search q = {.o = o, .s = s, .found = out, .n = o->n, .theta = 1, .x = x};
    frgi_arena a = {0};
    lay_out(&a, &q);
    TRY(frgi_arena_open(&a, ctx, "work memory of L-BFGS-B"));
    lay_out(&a, &q);
    const frg_status status = run(&q);
    frgi_arena_close(&a, ctx);
    return status;
}
