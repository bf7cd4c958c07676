/* gp_adam.h - one step of Adam on one coordinate, the arithmetic of torch.optim.Adam (Kingma and Ba
 * 2015):
 *
 *     m <- m + (1 - b1)(g - m)        v <- b2 v + (1 - b2) g g
 *     x <- x - lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps),   b1 = 0.9, b2 = 0.999, eps =
 *                                                                      1e-8
 */
#ifndef FRGI_GP_ADAM_H
#define FRGI_GP_ADAM_H

#include <math.h>
#include <stdint.h>

/** What step t = 1, 2, ... has in common for all coordinates. */
typedef struct {
    double rate; /* lr / (1 - b1^t) */
    double root; /* sqrt(1 - b2^t) */
} frgi_gp_adam_step;

static inline frgi_gp_adam_step frgi_gp_adam_at(double rate, int64_t t)
{
    return (frgi_gp_adam_step){.rate = rate / (1 - pow(0.9, (double)t)),
                               .root = sqrt(1 - pow(0.999, (double)t))};
}

/** What is taken from the coordinate whose gradient is g; moments m and v follow. */
static inline double frgi_gp_adam_move(const frgi_gp_adam_step *s, double g, double *m, double *v)
{
    *m += (1 - 0.9) * (g - *m);
    *v = 0.999 * *v + (1 - 0.999) * g * g;
    return s->rate * *m / (sqrt(*v) / s->root + 1e-8);
}

#endif
