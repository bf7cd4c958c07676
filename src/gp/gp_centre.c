/* gp_centre.c - where the columns of x lie: a centre to take out, and whether the arithmetic
 * resolves what is around it.
 *
 * Both come from up to 9 rows, spread evenly: the centre is their median, the spread the median of
 * the distances from it that are not 0.  A mean would do for most data, but one row with 1e36 for
 * "missing" moves it out of all others, whose differences are then lost to rounding: every k(x, x')
 * is 1 and the likelihood plausible.
 *
 * Factors 1 / l are limited where scaled coordinates would overflow (gp_bind.c); for values more
 * than FAR spreads away the limit would make different points equal.
 *
 * Periodic kernels need the fraction of a period: at more than TURNS periods from the centre
 * rounding leaves none of it, sines are taken as 0 and the point would be correlated with all
 * others (k = 1, a negative variance).
 */
#include <math.h>

#include "gp/gp_process.h"
#include "gp/gp_tree.h"

enum { SAMPLE = 9, TILE = 32, SIDE = 8 };
static const double FAR[2] = {1e120, 1e12}; /* f64, f32 */
/* Half of the arguments from which on frgi_turns has whole numbers alone. */
static const double TURNS[2] = {0x1p50, 0x1p21};
static const double VANISHED = 708; /* e^-708 is 0 */

/** Nine numbers in ascending order, by a network of 25 exchanges: branches would be
 *  mispredicted. */
static void sort(double v[SAMPLE])
{
    static const signed char at[][2] = {{0, 3}, {1, 7}, {2, 5}, {4, 8}, {0, 7}, {2, 4}, {3, 8},
                                        {5, 6}, {0, 2}, {1, 3}, {4, 5}, {7, 8}, {1, 4}, {3, 6},
                                        {5, 7}, {0, 1}, {2, 4}, {3, 5}, {6, 8}, {2, 3}, {4, 5},
                                        {6, 7}, {1, 2}, {3, 4}, {5, 6}};
#pragma GCC unroll 32
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        const double a = v[at[i][0]], b = v[at[i][1]];
        v[at[i][0]] = b < a ? b : a;
        v[at[i][1]] = b < a ? a : b;
    }
}

/** The rows of a process, n, and m new ones. */
typedef struct {
    const double *x, *more;
    ptrdiff_t n, m, d;
} rows;

typedef struct {
    double centre, largest, spread;
} extent;

static double value(const rows *r, ptrdiff_t i, ptrdiff_t k)
{
    return i < r->n ? r->x[i * r->d + k] : r->more[(i - r->n) * r->d + k];
}

/** The rows of the sample; their number is returned. */
static ptrdiff_t choose(const rows *r, ptrdiff_t row[SAMPLE])
{
    const ptrdiff_t n = r->n + r->m, count = n < SAMPLE ? n : SAMPLE;
    for (ptrdiff_t i = 0; i < count; i++) {
        row[i] = i * n / count;
    }
    return count;
}

/** Column k: the median of the sample, and the median of its distances from it that are not 0. */
static extent middle(const rows *r, ptrdiff_t k, const ptrdiff_t row[SAMPLE], ptrdiff_t count)
{
    double sample[SAMPLE];
    for (ptrdiff_t i = 0; i < SAMPLE; i++) {
        sample[i] = i < count ? value(r, row[i], k) : HUGE_VAL;
    }
    sort(sample);
    extent e = {.centre = sample[count / 2]};
    ptrdiff_t same = 0;
    for (ptrdiff_t i = 0; i < SAMPLE; i++) {
        sample[i] = fabs(sample[i] - e.centre);
        same += sample[i] <= 0;
    }
    sort(sample); /* those that are 0 first */
    e.spread = same < count ? sample[same + (count - same) / 2] : 0;
    return e;
}

/** most_e = max(most_e, |x_e' - centre_e|) over all e' = e modulo period. */
static void reach(const double *restrict x, ptrdiff_t count, ptrdiff_t period,
                  const double *restrict centre, double *restrict most)
{
    for (; count > 0; x += period, count -= period) {
        const ptrdiff_t here = count < period ? count : period;
        for (ptrdiff_t e = 0; e < here; e++) {
            const double size = fabs(x[e] - centre[e]);
            most[e] = size > most[e] ? size : most[e];
        }
    }
}

/** Columns k0 .. k0 + count - 1, TILE at most.  Where they are all, rows follow each other and SIDE
 *  of them go side by side. */
static void measure(const rows *r, ptrdiff_t k0, ptrdiff_t count, extent e[TILE])
{
    const bool whole = count == r->d;
    const ptrdiff_t period = whole ? SIDE * count : count;
    double centre[SIDE * TILE], most[SIDE * TILE];
    ptrdiff_t row[SAMPLE];
    const ptrdiff_t sampled = choose(r, row);
    for (ptrdiff_t k = 0; k < count; k++) {
        e[k] = middle(r, k0 + k, row, sampled);
        for (ptrdiff_t i = k; i < period; i += count) {
            centre[i] = e[k].centre;
            most[i] = 0;
        }
    }
    const double *const points[2] = {r->x, r->more};
    const ptrdiff_t rows_of[2] = {r->n, r->m};
    for (int p = 0; p < 2; p++) {
        const ptrdiff_t steps = whole ? rows_of[p] > 0 : rows_of[p];
        for (ptrdiff_t i = 0; i < steps; i++) {
            reach(points[p] + i * r->d + k0, whole ? rows_of[p] * count : count, period, centre,
                  most);
        }
    }
    for (ptrdiff_t i = 0; i < period; i += count) {
        for (ptrdiff_t k = 0; k < count; k++) {
            e[k].largest = most[i + k] > e[k].largest ? most[i + k] : e[k].largest;
        }
    }
}

static ptrdiff_t tile_at(ptrdiff_t k0, ptrdiff_t d)
{
    return d - k0 < TILE ? d - k0 : TILE;
}

void frgi_gp_measure_columns(frg_gp *gp)
{
    const rows r = {.x = gp->data.x, .n = gp->data.n, .d = gp->data.d};
    extent e[TILE];
    for (ptrdiff_t k = 0; k < gp->data.d; k++) {
        if (k % TILE == 0) {
            measure(&r, k, tile_at(k, gp->data.d), e);
        }
        gp->columns.centre[k] = e[k % TILE].centre;
        gp->columns.largest[k] = e[k % TILE].largest;
        gp->columns.spread[k] = e[k % TILE].spread;
    }
}

static bool is_resolved(double largest, double spread, bool single)
{
    return !(spread > 0 && largest / FAR[single] > spread);
}

ptrdiff_t frgi_gp_unresolved(const frg_gp *gp)
{
    for (ptrdiff_t k = 0; k < gp->data.d; k++) {
        if (!is_resolved(gp->columns.largest[k], gp->columns.spread[k],
                         frgi_spd_is_single(&gp->own.matrix))) {
            return k;
        }
    }
    return -1;
}

frg_status frgi_gp_check_new_points(const frg_gp *gp, const double *x, ptrdiff_t m)
{
    const rows r = {.x = gp->data.x, .more = x, .n = gp->data.n, .m = m, .d = gp->data.d};
    const bool single = gp->opts.precision == FRG_GP_F32 && !gp->opts.auto_promote;
    extent e[TILE];
    for (ptrdiff_t k = 0; k < gp->data.d; k++) {
        if (k % TILE == 0) {
            measure(&r, k, tile_at(k, gp->data.d), e);
        }
        const extent *const now = &e[k % TILE];
        if (is_resolved(gp->columns.largest[k], gp->columns.spread[k], single) &&
            !is_resolved(now->largest, now->spread, single)) {
            FAIL(gp->ctx, E_PRECISION_GP,
                 "column %s would have a value at %.3g from the others, which lie within about "
                 "%.2g: in %s they would be one point",
                 gp->data.column_names[k], now->largest, now->spread,
                 single ? "float32" : "float64");
        }
    }
    return FRG_OK;
}

/* ---- periodic kernels ------------------------------------------------------------------------ */

static double parameter(const frg_gp *gp, const frgi_gp_node *node, int group, int i)
{
    const frgi_gp_group *const g = &node->group[group];
    return gp->model.theta[g->first + (g->count > 1 ? i : 0)];
}

/** Turns of a mixture's components that are not 0 at that distance. */
static double mixture_turns(const frg_gp *gp, const frgi_gp_node *node, int c, double distance)
{
    double most = 0;
    for (int q = 0; q < node->degree; q++) {
        const int i = q * node->dims + c;
        const double w = parameter(gp, node, 2, i), width = node->kind == GP_SM ? w : w * w;
        if (2 * M_PI * M_PI * width * distance * distance < VANISHED) {
            most = fmax(most, parameter(gp, node, 1, i) * distance);
        }
    }
    return most;
}

/** How often a leaf turns over a distance in its column c; 0 for leaves that are not periodic. */
static double turns(const frg_gp *gp, const frgi_gp_node *node, int c, double distance)
{
    switch (node->kind) {
    case GP_PERIODIC:
    case GP_PERIODIC_GPYTORCH:
        return distance * 0.5 / parameter(gp, node, 1, c);
    case GP_COSINE:
        return distance / parameter(gp, node, 0, c);
    case GP_COSINE_GPYTORCH:
        return distance * 0.5 / parameter(gp, node, 0, c);
    case GP_SM:
    case GP_SM_GPYTORCH:
        return mixture_turns(gp, node, c, distance);
    default:
        return 0;
    }
}

/** A column for whose distance from the centre a leaf has no phase; -1: none. */
static ptrdiff_t lost_phase(const frg_gp *gp, const double *distance, bool single)
{
    for (int n = 0; n < gp->model.kernel->n_nodes; n++) {
        const frgi_gp_node *const node = &gp->model.kernel->node[n];
        for (int c = 0; c < node->dims && node->kind >= GP_PERIODIC; c++) {
            const ptrdiff_t column = gp->model.kernel->column[node->column + c];
            if (turns(gp, node, c, distance[column]) > TURNS[single]) {
                return column;
            }
        }
    }
    return -1;
}

ptrdiff_t frgi_gp_lost_phase(const frg_gp *gp)
{
    return lost_phase(gp, gp->columns.largest, frgi_spd_is_single(&gp->own.matrix));
}

frg_status frgi_gp_check_phases(frg_gp *gp, const char *name, const double *x, ptrdiff_t m)
{
    const bool single = gp->opts.precision == FRG_GP_F32 && !gp->opts.auto_promote;
    double *distance;
    TRY(NEW(gp->ctx, &distance, gp->data.d, "distances of a point"));
    ptrdiff_t lost = -1, i = 0;
    for (; i < m && lost < 0; i++) {
        for (ptrdiff_t k = 0; k < gp->data.d; k++) {
            distance[k] = fabs(x[i * gp->data.d + k] - gp->columns.centre[k]);
        }
        lost = lost_phase(gp, distance, single);
    }
    DROP(gp->ctx, &distance);
    if (lost >= 0) {
        FAIL(gp->ctx, E_PHASE,
             "%s is %g in row %lld, column %s: so many periods from the others that its phase is "
             "unknown in %s",
             name, x[(i - 1) * gp->data.d + lost], frgi_nth(gp->ctx, i - 1),
             gp->data.column_names[lost], single ? "float32" : "float64");
    }
    return FRG_OK;
}
