/* fe_weights.c - see fe_weights.h. */
#include "fe/fe_weights.h"

#include <math.h>

static const double APART = 0x1p-500;
enum { LEAST = -1022 }; /* 2^1022 is finite, 2^1024 is not */

frgi_weight_range frgi_weights_study(const double *w, ptrdiff_t stride, int64_t n)
{
    frgi_weight_range r = {.least = HUGE_VAL};
    for (int64_t i = 0; i < n; i++) {
        const double v = w[i * stride], positive = v > 0 ? v : HUGE_VAL;
        r.largest_at = v > r.largest ? i : r.largest_at;
        r.largest = v > r.largest ? v : r.largest;
        r.least_at = positive < r.least ? i : r.least_at;
        r.least = positive < r.least ? positive : r.least;
    }
    r.least = r.largest > 0 ? r.least : 0;
    return r;
}

int frgi_weights_exponent(const frgi_weight_range *r)
{
    const int e = r->largest > 0 ? ilogb(r->largest) & ~1 : 0;
    return e < LEAST ? LEAST : e;
}

bool frgi_weights_apart(const frgi_weight_range *r)
{
    return r->least < APART * r->largest;
}

double frgi_weights_root(const frgi_weight_range *r)
{
    const double least = sqrt(ldexp(r->least, -frgi_weights_exponent(r)));
    return least > 0 && least < 1 ? least : 1;
}
