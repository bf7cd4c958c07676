/* reg_separation_slopes.c - rows that a varying slope predicts perfectly, by levels of its effect.
 *
 * In a level of an effect f[z] the direction a + b z is free: up to the size of b it is z - c or
 * c - z, with c free, or 0 where the effect is slopes alone (f[[z]]).  As a direction of
 * reg_separation.c z - c has to be >= 0 in the rows where y = 0, and 0 where y > 0, <= 0 where a
 * binary y = 1, so that
 *
 *     low = max z where y is not 0  <=  c  <=  high = min z where y = 0
 *
 * and, of outcomes that are not binary, z is low in all rows where y > 0.  Where there is such a c
 * the rows with y = 0 and z > low are separated, and the binary ones with y = 1 and z < high, each
 * by one of them.  For c - z it is the same with -z in z's place.  This is exact in two passes,
 * where the rectifier's steps become ever smaller in levels of few rows.  Of several slopes each is
 * looked at alone: what only a combination of them tells is left to the rectifier.
 */
#include <math.h>

#include "regress/reg_frame.h"

/** Least and greatest z of a level's rows: of those with y = 0, and of the others. */
typedef struct {
    double zero[2], other[2];
} extent;

/** An effect's slope and the outcomes. */
typedef struct {
    int64_t n, levels;
    const int32_t *codes;
    const double *z, *y;
    bool binary, intercept;
    extent *of; /* of each level */
} sloped;

static void measure(const sloped *s)
{
    for (int64_t v = 0; v < s->levels; v++) {
        s->of[v] = (extent){{INFINITY, -INFINITY}, {INFINITY, -INFINITY}};
    }
    for (int64_t i = 0; i < s->n; i++) {
        extent *const e = &s->of[s->codes[i]];
        double *const range = s->y[i] == 0 ? e->zero : e->other;
        range[0] = fmin(range[0], s->z[i]);
        range[1] = fmax(range[1], s->z[i]);
    }
}

/** Is row i separated by sign z - c of its level? */
static bool is_beyond(const sloped *s, int64_t i, double sign)
{
    const extent *const e = &s->of[s->codes[i]];
    const double z = sign * s->z[i];
    double low = sign > 0 ? e->other[1] : -e->other[0];
    double high = sign > 0 ? e->zero[0] : -e->zero[1];
    if (low > high || (!s->binary && e->other[0] < e->other[1])) {
        return false;
    }
    if (!s->intercept) { /* c = 0 */
        if (low > 0 || high < 0 || (!s->binary && low < 0 && isfinite(low))) {
            return false;
        }
        low = high = 0;
    }
    return s->y[i] == 0 ? z > low : s->binary && z < high;
}

frg_status frgi_separated_by_slope(frg_context *ctx, const frgi_frame *frame,
                                   const frgi_frame_input *in, int k, const double *y,
                                   unsigned char *gone)
{
    const int q = in->formula->slopes[k].effect;
    sloped s = {.n = frame->n,
                .levels = frame->levels[q],
                .codes = frame->codes + q * frame->n,
                .y = y,
                .binary = in->family->edges == EDGES_BINARY,
                .intercept = in->formula->effects[q].intercept};
    double *z = NULL;
    frg_status status;
    TRY_TO(done, NEW(ctx, &z, s.n, "a slope"));
    TRY_TO(done, NEW(ctx, &s.of, s.levels, "a slope's levels"));
    TRY_TO(done, frgi_frame_slope(ctx, frame, in, k, z));
    s.z = z;
    measure(&s);
    for (int64_t i = 0; i < s.n; i++) {
        gone[i] |= is_beyond(&s, i, 1) || is_beyond(&s, i, -1);
    }
done:
    DROP(ctx, &z);
    DROP(ctx, &s.of);
    return status;
}
