/* gp_centre.c - where the columns of x lie: a centre to take out, and whether the arithmetic resolves what is around it.
 *
 * Both come from up to 9 rows, spread evenly: the centre is their median, the spread the median of the distances from it
 * that are not 0.  A mean would do for most data, but one row with 1e36 for "missing" moves it out of all others, whose
 * differences are then lost to rounding: every k(x, x') is 1 and the likelihood plausible.
 *
 * Lengthscales are cut where scaled coordinates would overflow (gp_build.c); beyond FAR spreads that would join points
 * which are apart.
 */
#include <math.h>

#include "gp/gp_room.h"

enum { SAMPLE = 9 };
static const double FAR[2] = {1e120, 1e12}; /* f64, f32 */

static void sort(double *v, ptrdiff_t count)
{
    for (ptrdiff_t i = 1; i < count; i++) {
        const double moved = v[i];
        ptrdiff_t at = i;
        for (; at > 0 && v[at - 1] > moved; at--) {
            v[at] = v[at - 1];
        }
        v[at] = moved;
    }
}

/** Column k of `count` rows about their median, which is returned; sample takes the distances, the zeros left out of *left. */
static double centre_of(const frg_gp *gp, ptrdiff_t k, double sample[SAMPLE], ptrdiff_t *left)
{
    const ptrdiff_t count = gp->n < SAMPLE ? gp->n : SAMPLE;
    for (ptrdiff_t i = 0; i < count; i++) {
        sample[i] = gp->x[i * gp->n / count * gp->d + k];
    }
    sort(sample, count);
    const double centre = sample[count / 2];
    *left = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        const double distance = fabs(sample[i] - centre);
        sample[*left] = distance;
        *left += distance > 0;
    }
    sort(sample, *left);
    return centre;
}

void frgi_gp_measure_columns(frg_gp *gp)
{
    double sample[SAMPLE];
    for (ptrdiff_t k = 0; k < gp->d; k++) {
        ptrdiff_t left;
        double most = 0;
        const double centre = centre_of(gp, k, sample, &left);
        for (ptrdiff_t i = 0; i < gp->n; i++) {
            const double size = fabs(gp->x[i * gp->d + k] - centre);
            most = size > most ? size : most; /* not by fmax, which is a call */
        }
        gp->centre[k] = centre;
        gp->largest[k] = most;
        gp->spread[k] = left > 0 ? sample[left / 2] : 0;
    }
}

ptrdiff_t frgi_gp_unresolved(const frg_gp *gp)
{
    const double far = FAR[gp->shape.dtype == FRG_F32];
    for (ptrdiff_t k = 0; k < gp->d; k++) {
        if (gp->spread[k] > 0 && gp->largest[k] / far > gp->spread[k]) {
            return k;
        }
    }
    return -1;
}
