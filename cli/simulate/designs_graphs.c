/* designs_graphs.c - designs that are graphs: a row is an edge between a unit and a firm.
 *
 * Paths and cycles run through units and firms in turn: node v is unit v/2 or firm v/2 as v is even
 * or odd, so that edge i, from node i to node i+1, has unit (i+1)/2 and firm i/2.  Every graph also
 * has a year, i mod 10, for three effects.
 */
#include "simulate/designs.h"

#include <math.h>
#include <stdlib.h>

static const char *const graph_ids[] = {"unit", "year", "firm", NULL};

enum { COVARIATES_AT, EFFECTS_AT, FIRST_OWN };

static int64_t at_least(int64_t x, int64_t low)
{
    return x > low ? x : low;
}

static int allocate(design_data *d, int64_t n, const double *parameter)
{
    const unsigned factors = parameter[EFFECTS_AT] > 2.5 ? 7 : 5;
    return design_allocate(d, n, 1 + (int)parameter[COVARIATES_AT], graph_ids, factors);
}

static void edge(design_data *d, int64_t row, int64_t unit, int64_t firm)
{
    int32_t *id = d->ids + 3 * row;
    id[0] = (int32_t)unit;
    id[1] = (int32_t)(row % 10);
    id[2] = (int32_t)firm;
}

static int outcome(design_data *d, uint64_t seed)
{
    random_stream r;
    random_seed(&r, seed);
    return design_outcome(d, &r, 0);
}

int make_path(design_data *d, int64_t rows, const double *parameter, uint64_t seed)
{
    if (allocate(d, rows, parameter) < 0) {
        return -1;
    }
    for (int64_t i = 0; i < rows; i++) {
        edge(d, i, (i + 1) / 2, i / 2);
    }
    return outcome(d, seed);
}

int make_cycle(design_data *d, int64_t rows, const double *parameter, uint64_t seed)
{
    const int64_t half = at_least(rows / 2, 2);
    if (allocate(d, 2 * half, parameter) < 0) {
        return -1;
    }
    for (int64_t i = 0; i < 2 * half; i++) {
        edge(d, i, (i + 1) / 2 % half, i / 2);
    }
    return outcome(d, seed);
}

int make_chain(design_data *d, int64_t rows, const double *parameter, uint64_t seed)
{
    const int64_t stay = (int64_t)parameter[FIRST_OWN], units = at_least(rows / (stay + 1), 1);
    if (allocate(d, units * (stay + 1), parameter) < 0) {
        return -1;
    }
    for (int64_t u = 0, row = 0; u < units; u++) {
        for (int64_t k = 0; k <= stay; k++, row++) {
            edge(d, row, u, u + (k == stay));
        }
    }
    return outcome(d, seed);
}

int make_star(design_data *d, int64_t rows, const double *parameter, uint64_t seed)
{
    const int64_t spokes = (int64_t)parameter[FIRST_OWN], units = at_least(rows / (spokes + 1), 2);
    if (allocate(d, units * (spokes + 1), parameter) < 0) {
        return -1;
    }
    random_stream r;
    random_seed(&r, ~seed);
    for (int64_t u = 0, row = 0; u < units; u++) {
        for (int64_t k = 0; k <= spokes; k++, row++) {
            edge(d, row, u, k == 0 ? 0 : 1 + random_below(&r, units));
        }
    }
    return outcome(d, seed);
}

int make_barbell(design_data *d, int64_t rows, const double *parameter, uint64_t seed)
{
    const int64_t side = at_least((int64_t)sqrt((double)rows / 2), 1);
    if (allocate(d, 2 * side * side + 1, parameter) < 0) {
        return -1;
    }
    int64_t row = 0;
    for (int64_t half = 0; half < 2; half++) {
        for (int64_t u = 0; u < side; u++) {
            for (int64_t f = 0; f < side; f++) {
                edge(d, row++, half * side + u, half * side + f);
            }
        }
    }
    edge(d, row, 0, side);
    return outcome(d, seed);
}

/** A random order of 0 .. n-1 (Fisher and Yates). */
static void shuffle(int32_t *order, int64_t n, random_stream *r)
{
    for (int64_t i = 0; i < n; i++) {
        order[i] = (int32_t)i;
    }
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = random_below(r, i + 1);
        const int32_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/** `degree` random matchings of `side` units and firms, from `first` on. */
static int matchings(design_data *d, int64_t row, int64_t first, int64_t side, int64_t degree,
                     random_stream *r)
{
    int32_t *order = malloc((size_t)side * sizeof *order);
    if (!order) {
        design_free(d);
        return -1;
    }
    for (int64_t k = 0; k < degree; k++) {
        shuffle(order, side, r);
        for (int64_t u = 0; u < side; u++) {
            edge(d, row++, first + u, first + order[u]);
        }
    }
    free(order);
    return 0;
}

int make_expander(design_data *d, int64_t rows, const double *parameter, uint64_t seed)
{
    const int64_t degree = (int64_t)parameter[FIRST_OWN], side = at_least(rows / degree, 2);
    random_stream r;
    random_seed(&r, ~seed);
    if (allocate(d, degree * side, parameter) < 0 || matchings(d, 0, 0, side, degree, &r) < 0) {
        return -1;
    }
    return outcome(d, seed);
}

int make_near_disconnected(design_data *d, int64_t rows, const double *parameter, uint64_t seed)
{
    const int64_t degree = (int64_t)parameter[FIRST_OWN], side = at_least(rows / (2 * degree), 2);
    const int64_t n = 2 * degree * side + 1;
    random_stream r;
    random_seed(&r, ~seed);
    if (allocate(d, n, parameter) < 0 || matchings(d, 0, 0, side, degree, &r) < 0 ||
        matchings(d, degree * side, side, side, degree, &r) < 0) {
        return -1;
    }
    edge(d, n - 1, 0, side);
    d->weights = malloc((size_t)n * sizeof *d->weights);
    if (!d->weights) {
        design_free(d);
        return -1;
    }
    for (int64_t i = 0; i < n; i++) {
        d->weights[i] = i == n - 1 ? parameter[FIRST_OWN + 1] : 1;
    }
    return outcome(d, seed);
}

/** Nodes (i, j) with i + j even are units, the others firms; node number i * side + j, halved. */
int make_grid(design_data *d, int64_t rows, const double *parameter, uint64_t seed)
{
    const int64_t side = at_least((int64_t)floor(0.5 + sqrt((double)rows / 2 + 0.25)), 2);
    if (allocate(d, 2 * side * (side - 1), parameter) < 0) {
        return -1;
    }
    int64_t row = 0;
    for (int64_t i = 0; i < side; i++) {
        for (int64_t j = 0; j < side; j++) {
            const int64_t here = i * side + j;
            const int64_t others[2] = {j + 1 < side ? here + 1 : -1,
                                       i + 1 < side ? here + side : -1};
            for (int k = 0; k < 2; k++) {
                if (others[k] >= 0) {
                    const int unit = (i + j) % 2 == 0;
                    edge(d, row++, (unit ? here : others[k]) / 2, (unit ? others[k] : here) / 2);
                }
            }
        }
    }
    return outcome(d, seed);
}

/** Level j in 1 .. n with probability ~ j^-a, by inversion of the continuous law. */
static int64_t power_law(random_stream *r, int64_t n, double a)
{
    const double u = random_uniform(r), top = (double)n + 1;
    const double x =
        fabs(a - 1) < 1e-9 ? pow(top, u) : pow(1 + u * (pow(top, 1 - a) - 1), 1 / (1 - a));
    const int64_t j = (int64_t)x - 1;
    return j < 0 ? 0 : j < n ? j : n - 1;
}

int make_powerlaw(design_data *d, int64_t rows, const double *parameter, uint64_t seed)
{
    if (allocate(d, rows, parameter) < 0) {
        return -1;
    }
    random_stream r;
    random_seed(&r, ~seed);
    const int64_t units = at_least(rows / 10, 2), firms = at_least(rows / 50, 2);
    for (int64_t i = 0; i < rows; i++) {
        const int64_t unit = power_law(&r, units, parameter[FIRST_OWN]);
        edge(d, i, unit, power_law(&r, firms, parameter[FIRST_OWN]));
    }
    return outcome(d, seed);
}

int make_clustered(design_data *d, int64_t rows, const double *parameter, uint64_t seed)
{
    const int64_t clusters = (int64_t)parameter[FIRST_OWN],
                  bridges = (int64_t)parameter[FIRST_OWN + 1];
    const int64_t inside = at_least((rows - (clusters - 1) * bridges) / clusters, 4);
    const int64_t units = at_least(inside / 5, 2), firms = at_least(inside / 20, 2);
    if (allocate(d, clusters * inside + (clusters - 1) * bridges, parameter) < 0) {
        return -1;
    }
    random_stream r;
    random_seed(&r, ~seed);
    int64_t row = 0;
    for (int64_t k = 0; k < clusters; k++) {
        for (int64_t i = 0; i < inside; i++) {
            const int64_t unit = k * units + random_below(&r, units);
            edge(d, row++, unit, k * firms + random_below(&r, firms));
        }
        for (int64_t b = 0; k > 0 && b < bridges; b++) {
            const int64_t unit = k * units + random_below(&r, units);
            edge(d, row++, unit, (k - 1) * firms + random_below(&r, firms));
        }
    }
    return outcome(d, seed);
}
