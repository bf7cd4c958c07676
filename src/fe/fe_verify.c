/* fe_verify.c - the test of a demeaned column; every path of the demeaner ends here. */
#include "fe/fe_verify.h"

#include <float.h>
#include <math.h>

static const double ABSORBED = 1e-9; /* ||r|| of the centred input */
static const double LOST =
    1e-8; /* of its deviation: the rounding of effects that a column survives */
static const double ROUNDINGS = 64;           /* of the numbers that are subtracted */
static const double ABSORBED_ROUNDING = 0.25; /* of the rounding floor: as much as is left of 0 */

/** Level means below it are rounding: 64 roundings of the largest numbers that were subtracted, of
 *  the column in its type and of the effects in double. */
static double rounding_floor(const fe_column_size *c)
{
    return ROUNDINGS * (c->epsilon * c->max_abs + DBL_EPSILON * c->effect);
}

/** sqrt(sum of w (x - mean)^2 / N) */
static double deviation(const fe_column_size *c)
{
    return c->total_weight > 0 ? sqrt(c->total / c->total_weight) : 0;
}

bool frgi_fe_is_lost(const fe_column_size *c)
{
    return DBL_EPSILON * c->effect > LOST * deviation(c) + ROUNDINGS * DBL_EPSILON * c->max_abs;
}

double frgi_fe_reachable(double tol, double epsilon)
{
    return fmax(tol, 4 * epsilon);
}

void frgi_fe_verify(double tol, int n_factors, const fe_column_size *c, const fe_column_audit *a,
                    double error, frg_demean_column *out)
{
    const double size = c->total_weight > 0 ? sqrt(a->square / c->total_weight) : 0;
    const double input = deviation(c);
    const double floor = rounding_floor(c);
    const bool varies = c->total > 0, lost = frgi_fe_is_lost(c);
    out->absorbed = !lost && (size <= ABSORBED * input || size <= ABSORBED_ROUNDING * floor);
    const double scale = out->absorbed ? input : size;
    out->audit = a->mean > 0 && scale > 0 ? a->mean / scale : 0;
    out->gradient = varies ? sqrt(a->gradient) / (sqrt(n_factors) * sqrt(c->total)) : 0;
    out->error_bound = varies ? sqrt(error / c->total) : 0;
    const bool at_floor = !lost && a->mean <= floor;
    if (at_floor && input <= floor) { /* a constant: what is left of it is rounding alone */
        out->audit = out->gradient = out->error_bound = 0;
    }
    out->converged = !lost && out->gradient <= frgi_fe_reachable(tol, c->epsilon) &&
                     (out->audit <= tol || at_floor);
}

bool frgi_fe_accepted(double tol, const frg_demean_column *c)
{
    return c->converged && !(c->error_bound > FE_BOUND_MOST * tol);
}

frg_status frgi_fe_refuse_value(frg_context *ctx, int64_t row, int64_t column, double v)
{
    frgi_at(ctx, "column %lld, row %lld", (long long)column + 1, (long long)row + 1);
    FAIL(ctx, E_NOT_FINITE, "column %lld, row %lld holds %g%s", (long long)column + 1,
         (long long)row + 1, v,
         !isfinite(v)           ? ""
         : fabs(v) > FE_LARGEST ? ", which is too large: scale the column"
                                : ", its largest value, which is too small: scale the column");
}
