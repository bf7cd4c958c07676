/* reg_leave_error.c - standard errors of leave-out variance components over samples.
 *
 * A corrected component U is a function of independent outcomes y_i of the units, and by Efron and
 * Stein (1981)
 *
 *     Var U <= sum_i E (U - E_i U)^2 <= sum_i E (U - U_i)^2,
 *
 * E_i the mean over y_i alone and U_i any function of the others; here U with y_i - r_i for y_i,
 * r_i = e_i / (1 - P_i), which is what the others predict.  The sum is the estimate: its mean is at
 * least the variance, whatever the variances of the errors, and the leverages that enter r_i and
 * the quadratic part of U, counted twice, are what it is above.  U is quadratic in y_i,
 *
 *     U - U_i = U' r_i - U'' r_i^2 / 2
 *     U'  = 2 w t_i - k_i (e_i + y_i) + (w / W) sum_j k_j e_j + w v_i
 *     U'' = (2 w / W) (k_i - w c_i)
 *     k_i = w B / (1 - P_i),  t = S^- A b,  v = S^- sum_j k_j y_j d_j,  c = S^- sum_j k_j d_j
 *
 * with y less its mean, w the weight and B that of reg_leave_out.h, w z'A z of z = S^- d_i: three
 * right-hand sides a component.  S^- goes by the firms' graph, the workers eliminated.
 */
#include <math.h>
#include <string.h>

#include "regress/reg_leave_out.h"

enum { COMPONENTS = 3, SIDES = 3 * COMPONENTS }; /* t, v and c of each component */

typedef struct {
    const frgi_leave_panel *p;
    double *worker, *firm; /* n_first x SIDES, n_second x SIDES: right-hand sides, S^- of them */
    double shared[COMPONENTS]; /* sum_j k_j e_j */
    double variance[COMPONENTS];
} work;

/** k of unit i of match e, a component each. */
static void unit_weights(const frgi_leave_panel *p, int64_t e, int64_t i, double k[COMPONENTS])
{
    const double w = p->unit[i], W = p->total;
    const double g = (1 - 1 / p->inverse[i]) / w;
    const double second = p->q[e] / W, covariance = (p->h[e] - p->q[e]) / W;
    const double by = w * w * p->inverse[i];
    k[0] = by * (g / W - 1 / (W * W) - second - 2 * covariance);
    k[1] = by * second;
    k[2] = by * covariance;
}

/** A b, in the columns of t. */
static void add_effects(const work *x, int64_t e)
{
    const frgi_leave_panel *const p = x->p;
    const double share = p->weight[e] / p->total;
    double *const worker = x->worker + p->matches.first[e] * SIDES;
    double *const firm = x->firm + p->matches.second[e] * SIDES;
    const double a = p->effect[0][p->matches.first[e]], b = p->effect[1][p->matches.second[e]];
    worker[0] += share * a;
    firm[1] += share * b;
    worker[2] += share * b / 2;
    firm[2] += share * a / 2;
}

/** The units of match e, in the columns of v and c. */
static void add_units(work *x, int64_t e)
{
    const frgi_leave_panel *const p = x->p;
    double *const worker = x->worker + p->matches.first[e] * SIDES;
    double *const firm = x->firm + p->matches.second[e] * SIDES;
    for (int64_t i = p->start[e]; i < p->start[e + 1]; i++) {
        double k[COMPONENTS];
        unit_weights(p, e, i, k);
        for (int c = 0; c < COMPONENTS; c++) {
            const double one = p->copies[i] * k[c], times = one * p->outcome[i];
            worker[COMPONENTS + c] += times;
            firm[COMPONENTS + c] += times;
            worker[2 * COMPONENTS + c] += one;
            firm[2 * COMPONENTS + c] += one;
            x->shared[c] += one * p->error[i];
        }
    }
}

/** firm <- the right-hand sides less what the workers take. */
static void eliminate(const work *x)
{
    const frgi_matches *const m = &x->p->matches;
    for (int64_t e = 0; e < m->count; e++) {
        const double share = x->p->weight[e] / x->p->worker[m->first[e]];
        for (int c = 0; c < SIDES; c++) {
            x->firm[m->second[e] * SIDES + c] -= share * x->worker[m->first[e] * SIDES + c];
        }
    }
}

/** worker <- their part of S^-, firm that of the firms. */
static void substitute(const work *x)
{
    const frgi_matches *const m = &x->p->matches;
    for (int64_t k = 0; k < m->n_first; k++) {
        double *const of = x->worker + k * SIDES;
        for (int64_t e = m->start[k]; e < m->start[k + 1]; e++) {
            for (int c = 0; c < SIDES; c++) {
                of[c] -= x->p->weight[e] * x->firm[m->second[e] * SIDES + c];
            }
        }
        for (int c = 0; c < SIDES; c++) {
            of[c] /= x->p->worker[k];
        }
    }
}

/** (U - U_i)^2 of the units of match e. */
static void add_squares(work *x, int64_t e)
{
    const frgi_leave_panel *const p = x->p;
    const double *const worker = x->worker + p->matches.first[e] * SIDES;
    const double *const firm = x->firm + p->matches.second[e] * SIDES;
    double at[SIDES];
    for (int c = 0; c < SIDES; c++) {
        at[c] = worker[c] + firm[c];
    }
    for (int64_t i = p->start[e]; i < p->start[e + 1]; i++) {
        const double w = p->unit[i], r = p->error[i] * p->inverse[i];
        double k[COMPONENTS];
        unit_weights(p, e, i, k);
        for (int c = 0; c < COMPONENTS; c++) {
            const double slope = 2 * w * at[c] - k[c] * (p->error[i] + p->outcome[i]) +
                                 w / p->total * x->shared[c] + w * at[COMPONENTS + c];
            const double curve = 2 * w / p->total * (k[c] - w * at[2 * COMPONENTS + c]);
            const double change = slope * r - curve * r * r / 2;
            x->variance[c] += p->copies[i] * change * change;
        }
    }
}

frg_status frgi_leave_errors(const frgi_leave_panel *p, frgi_leave_solve solve, void *of,
                             frgi_leave_sums *out)
{
    const frgi_matches *const m = &p->matches;
    work x = {.p = p};
    frg_status status;
    if (p->start[m->count] == 0) {
        return FRG_OK;
    }
    TRY_TO(done, NEW0(p->ctx, &x.worker, m->n_first * SIDES, "errors of variance components"));
    TRY_TO(done, NEW0(p->ctx, &x.firm, m->n_second * SIDES, "errors of variance components"));
    for (int64_t e = 0; e < m->count; e++) {
        add_effects(&x, e);
        add_units(&x, e);
    }
    eliminate(&x);
    TRY_TO(done, solve(of, SIDES, x.firm, out));
    if (status == FRG_OK) {
        substitute(&x);
        for (int64_t e = 0; e < m->count; e++) {
            add_squares(&x, e);
        }
        memcpy(out->sampling, x.variance, sizeof out->sampling);
    }
done:
    DROP(p->ctx, &x.worker);
    DROP(p->ctx, &x.firm);
    return status;
}
