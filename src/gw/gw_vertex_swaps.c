/* gw_vertex_swaps.c - exchanges of the images of two points, at the end of an assignment.
 *
 * A vertex V that is least to first order, <K(V), V> <= <K(V), V'> for all V', need not be the
 * lowest: J is concave along S = w (e_i - e_k)(e_j - e_l)', j and l the images of k and of i, w the
 * weight of a point, and
 *
 *     J(P + S) - J(P) =  2 w (K_ij + K_kl - K_il - K_kj)
 *                       - 2 (1 - theta) w^2 (C_ii + C_kk - 2 C_ik)(D_jj + D_ll - 2 D_jl)
 *
 * may be below 0.  All pairs are looked at with K at hand; the best ones that share no point are
 * exchanged together, fewer of them where that does not lower J, which is summed anew in double.
 */
#include "gw/gw_vertex.h"

#include <string.h>

static int by_gain(const void *p, const void *q, const void *user)
{
    const frgi_exchange *const x = p, *const y = q;
    (void)user;
    return x->gain != y->gain ? (x->gain < y->gain) - (x->gain > y->gain) : x->i - y->i;
}

/** The best partner of each point, where there is one, the best pairs first. */
static int64_t best_exchanges(const frgi_descent *d, const int32_t *image, frgi_exchange *out)
{
    const frgi_spaces *const s = d->s;
    const double w = s->a[0], curved = (1 - s->theta) * w;
    int64_t count = 0;
    for (int32_t i = 0; i < (int32_t)s->n; i++) {
        const int32_t l = image[i];
        const double own = frgi_costs_get(&d->k_plan, i, l), x = frgi_costs_get(&s->x, i, i),
                     y = frgi_costs_get(&s->y, l, l);
        frgi_exchange best = {0, i, -1};
        for (int32_t k = i + 1; k < (int32_t)s->n; k++) {
            const int32_t j = image[k];
            const double slope = own + frgi_costs_get(&d->k_plan, k, j) -
                                 frgi_costs_get(&d->k_plan, i, j) -
                                 frgi_costs_get(&d->k_plan, k, l);
            const double square =
                (x + frgi_costs_get(&s->x, k, k) - 2 * frgi_costs_get(&s->x, i, k)) *
                (y + frgi_costs_get(&s->y, j, j) - 2 * frgi_costs_get(&s->y, j, l));
            const double gain = 2 * w * (slope + curved * square);
            if (gain > best.gain) {
                best.gain = gain;
                best.k = k;
            }
        }
        if (best.k >= 0) {
            out[count++] = best;
        }
    }
    frgi_sort(out, count, sizeof *out, by_gain, NULL);
    return count;
}

/** image <- that of the plan with the first `most` exchanges whose points are in none before; how
 *  many were done. */
static int64_t apply(const frgi_descent *d, const frgi_exchange *e, int64_t count, int64_t most,
                     int32_t *image, bool *taken)
{
    int64_t done = 0;
    memset(taken, 0, (size_t)d->s->n * sizeof *taken);
    for (int64_t q = 0; q < d->plan.count; q++) {
        image[q] = d->plan.entries[q].j;
    }
    for (int64_t q = 0; q < count && done < most; q++) {
        const int32_t i = e[q].i, k = e[q].k;
        if (!taken[i] && !taken[k]) {
            const int32_t was = image[i];
            image[i] = image[k];
            image[k] = was;
            taken[i] = taken[k] = true;
            done++;
        }
    }
    return done;
}

/** The plan of these images, if it is lower by more than rounding. */
static bool take(frgi_descent *d, const int32_t *image)
{
    for (int64_t i = 0; i < d->s->n; i++) {
        d->vertex.entries[i] = (frgi_entry){(int32_t)i, image[i], d->s->a[i]};
    }
    d->vertex.count = d->s->n;
    return frgi_host_take(d);
}

bool frgi_host_exchange(frgi_descent *d)
{
    const frgi_exchanges *const w = &d->swaps;
    bool lower = false;
    for (int64_t i = 0; i < d->s->n; i++) {
        w->images[i] = d->plan.entries[i].j;
    }
    const int64_t count = best_exchanges(d, w->images, w->found);
    for (int64_t most = count; most > 0 && !lower; most = most > 8 ? most / 4 : most - 1) {
        most = apply(d, w->found, count, most, w->images, w->taken);
        lower = take(d, w->images);
    }
    return lower;
}
