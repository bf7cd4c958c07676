/* plain_pairs.h - the steps on pairs of points of gw_solver.h (frgi_pairs_steps) a second time, as
 * their definitions say, in one thread and in loops over all of it: no blocks of sums, no groups
 * found before, no factors but floats.  Alignments run on them as on the host's.
 *
 * Numbers are summed in the order of the definition, which is the library's where it has one sum,
 * so that runs of fewer than 16 pairs a step (of which the library packs floats, too) and distances
 * that are not scaled come out with the same bits: a column is drawn otherwise only where a random
 * number lies within the rounding of a row's sum from a border.
 */
#ifndef FOURGE_TEST_PLAIN_PAIRS_H
#define FOURGE_TEST_PLAIN_PAIRS_H

#include "gw/gw_solver.h"
#include "test.h"

static _Atomic int64_t plain_calls; /* steps of pairs that were taken here */

static frgi_distances *plain_side(const frgi_level *l, bool second)
{
    return second ? l->y : l->x;
}

static void plain_clear(frgi_level *l)
{
    plain_calls++;
    for (int q = 0; q < FRGI_LAGS; q++)
        for (int64_t r = 0; r < frgi_drawn_of(l->o, l->sampled.count_most); r++)
            l->sampled.lagged[q][r] = (frgi_pair){0, 0};
    for (int64_t i = 0; i < l->t.s.rows + l->t.s.ld; i++)
        l->product.terms[i] = 0;
    for (int64_t j = 0; j < l->t.s.ld; j++)
        l->stopping.g_before[j] = 0;
}

static void plain_no_cost(frgi_level *l)
{
    plain_calls++;
    for (int64_t e = 0; e < l->product.rank * l->t.s.rows; e++)
        l->product.left[e] = 0;
    for (int64_t e = 0; e < l->product.rank * l->t.s.ld; e++)
        l->product.right[e] = 0;
}

/** u_i = sum_k C_ik w_k / sum_k w_k, over all points: no side has more than 512. */
static frg_status plain_means_of(frgi_distances *d, const double *w, float *out)
{
    double sums[512] = {0}, total = 0;
    float row[512];
    if (!CHECK(d->n <= 512))
        return FRG_BAD_ARG;
    for (int32_t k = 0; k < d->n; k++) {
        TRY(frgi_distances_rows(d, &k, 1, row, d->n));
        for (int64_t i = 0; i < d->n; i++)
            sums[i] += w[k] * (double)row[i];
        total += w[k];
    }
    for (int64_t i = 0; i < d->n; i++)
        out[i] = (float)(sums[i] / total);
    return FRG_OK;
}

static frg_status plain_means(frgi_level *l)
{
    plain_calls++;
    TRY(plain_means_of(l->x, l->a, l->product.means));
    return plain_means_of(l->y, l->b, l->product.means + l->x->n);
}

/* ---- draws ----------------------------------------------------------------------------------- */

static double plain_uniform(const frgi_level *l, uint64_t stream, int64_t index)
{
    double u[2];
    frgi_uniforms(l->seed + l->run * UINT64_C(0x9e3779b97f4a7c15), stream, (uint64_t)index,
                  (uint64_t)l->step, u);
    return u[0];
}

/** The entry where the sum of the weights before it and its own passes `at`; the last one with a
 *  weight where none does. */
static int32_t plain_find(const double *w, int64_t n, double at)
{
    double below = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < n; i++) {
        below += w[i];
        if (below > at)
            return (int32_t)i;
        last = w[i] > 0 ? i : last;
    }
    return (int32_t)last;
}

/** The q-th of `count` draws of an index: at equal steps of the weights, or on its own; of all
 *  alike where there is no plan to speak of. */
static int32_t plain_index(const frgi_level *l, const double *w, int64_t n, int64_t count,
                           uint64_t stream, int64_t q)
{
    const double sum = frgi_transport_sum(w, n), shift = plain_uniform(l, stream, -1);
    const bool flat = !(sum > 1e-9), alone = l->o->sampling == FRG_GW_MULTINOMIAL;
    const double share = alone ? plain_uniform(l, stream, q) : ((double)q + shift) / (double)count;
    return flat ? (int32_t)fmin(share * (double)n, (double)(n - 1)) : plain_find(w, n, share * sum);
}

/** Fisher and Yates; columns: of them alone. */
static void plain_shuffle(const frgi_level *l, int64_t count, uint64_t stream, frgi_pair *pairs,
                          bool columns)
{
    for (int64_t q = count - 1; q > 0; q--) {
        const int64_t other = (int64_t)(plain_uniform(l, stream, q) * (double)(q + 1));
        const frgi_pair one = pairs[q], two = pairs[other];
        pairs[q] = (frgi_pair){columns ? one.i : two.i, two.j};
        pairs[other] = (frgi_pair){columns ? two.i : one.i, one.j};
    }
}

static void plain_draw_product(frgi_level *l, uint64_t stream)
{
    frgi_pair *const out = l->sampled.lagged[0];
    const int64_t count = l->sampled.drawn;
    plain_calls++;
    for (int64_t q = 0; q < count; q++) {
        out[q].i = plain_index(l, l->a, l->x->n, count, 16 * stream + 1, q);
        out[q].j = plain_index(l, l->b, l->y->n, count, 16 * stream + 2, q);
    }
    plain_shuffle(l, count, 16 * stream + 3, out, true);
    plain_shuffle(l, count, 16 * stream + 4, out, false);
}

typedef struct {
    double *plan;
    int64_t m;
} plain_copy;

static void plain_keep_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    const plain_copy *const c = user;
    (void)chunk;
    for (int64_t j = 0; j < c->m; j++)
        c->plan[i * c->m + j] = row[j];
}

static int plain_by_row(const void *a, const void *b)
{
    return ((const frgi_pair *)a)->i - ((const frgi_pair *)b)->i;
}

/** Rows by their sums, a column each by its share of the row, in random order. */
static frg_status plain_draw(frgi_level *l, bool averaged, int64_t count, uint64_t stream,
                             frgi_pair *out)
{
    const int64_t n = l->x->n, m = l->y->n;
    double *const sums = calloc((size_t)n, sizeof *sums), *const plan =
                                                              calloc((size_t)(n * m), sizeof *plan);
    plain_copy copy = {.plan = plan, .m = m};
    plain_calls++;
    for (int64_t i = 0; averaged && i < n; i++)
        sums[i] = l->kept.rows[i];
    if (!averaged)
        frgi_transport_marginals(&l->t, sums, NULL);
    if (!averaged)
        frgi_transport_rows(&l->t, 0, n, 1, plain_keep_row, &copy);
    for (int64_t e = 0; averaged && e < n * m; e++)
        plan[e] = (double)l->kept.plan[e];
    for (int64_t q = 0; q < count; q++)
        out[q].i = plain_index(l, sums, n, count, 16 * stream + 1, q);
    qsort(out, (size_t)count, sizeof *out, plain_by_row);
    for (int64_t q = 0; q < count; q++) {
        const double *const row = plan + out[q].i * m;
        out[q].j =
            plain_find(row, m, plain_uniform(l, 16 * stream + 2, q) * frgi_transport_sum(row, m));
    }
    plain_shuffle(l, count, 16 * stream + 4, out, false);
    free(sums);
    free(plan);
    return FRG_OK;
}

static void plain_take(frgi_level *l, const frgi_waiting *places, int64_t count)
{
    plain_calls++;
    for (int64_t r = 0; r < count; r++)
        l->sampled.now[r] = l->sampled.lagged[places[r].age][places[r].at];
}

/* ---- distances, terms and factors ------------------------------------------------------------ */

static float *plain_rows(const frgi_level *l, bool second)
{
    return second ? l->product.rows_y : l->product.rows_x;
}

static frg_status plain_distances(frgi_level *l, int64_t R)
{
    plain_calls++;
    for (int64_t q = 0; q < 2 * R; q++) {
        const bool second = q >= R;
        frgi_distances *const d = plain_side(l, second);
        const int64_t r = second ? q - R : q;
        const int32_t point = second ? l->sampled.now[r].j : l->sampled.now[r].i;
        float *const row = plain_rows(l, second) + r * d->n;
        const float *const means =
            l->product.means ? l->product.means + (second ? l->x->n : 0) : NULL;
        TRY(frgi_distances_rows(d, &point, 1, row, d->n));
        for (int64_t i = 0; means && i < d->n; i++)
            row[i] -= means[i];
    }
    return FRG_OK;
}

static void plain_divide(frgi_level *l, int64_t R)
{
    plain_calls++;
    for (int second = 0; second < 2; second++) {
        float *const rows = plain_rows(l, second), most = 0;
        const int64_t cells = R * plain_side(l, second)->n;
        for (int64_t e = 0; e < cells; e++)
            most = fmaxf(most, fabsf(rows[e]));
        for (int64_t e = 0; most > 0 && e < cells; e++)
            rows[e] *= 1 / most;
    }
}

static void plain_terms(frgi_level *l, int64_t R, double scale)
{
    plain_calls++;
    for (int second = 0; second < 2; second++) {
        const int64_t n = plain_side(l, second)->n;
        const float *const rows = plain_rows(l, second),
                           each = (float)scale / (float)R; /* a point's sum goes along the pairs */
        float *const to = l->product.terms + (second ? l->t.s.rows : 0);
        for (int64_t i = 0; i < n; i++) {
            to[i] = l->product.means ? l->product.means[(second ? l->x->n : 0) + i] : 0;
            for (int64_t r = 0; !l->product.means && r < R; r++)
                to[i] += each * rows[r * n + i] * rows[r * n + i];
        }
    }
}

static void plain_put_terms(frgi_level *l, const double *of_rows, const double *of_columns)
{
    plain_calls++;
    for (int64_t i = 0; i < l->t.s.n; i++)
        l->product.terms[i] = of_rows ? (float)of_rows[i] : l->product.terms[i];
    for (int64_t j = 0; j < l->t.s.m; j++) {
        float *const to = &l->product.terms[l->t.s.rows + j];
        *to = of_columns ? (float)of_columns[j] : *to;
    }
}

/** [block][r][width] <- scale rows[r][i], block i / width; 0 beyond n. */
static void plain_pack_side(const float *rows, int64_t R, int64_t n, int64_t places, int width,
                            float scale, float *out)
{
    for (int64_t i = 0; i < places; i++)
        for (int64_t r = 0; r < R; r++)
            out[(i / width * R + r) * width + i % width] = i < n ? scale * rows[r * n + i] : 0;
}

static void plain_pack(frgi_level *l, int64_t R)
{
    const frgi_sweep *const s = &l->t.s;
    frgi_level_product *const f = &l->product;
    plain_calls++;
    f->packed = FRGI_AS_FLOATS;
    f->scale = 1;
    f->rank = R;
    plain_pack_side(f->rows_x, R, s->n, s->rows, FRGI_GROUP, 2 / (float)R, f->left);
    plain_pack_side(f->rows_y, R, s->m, s->ld, FRGI_PANEL, 1, f->right);
}

static void plain_mean_squares(const frgi_level *l, bool second, double *out)
{
    const int64_t n = plain_side(l, second)->n, R = l->sampled.count;
    const float *const rows = plain_rows(l, second);
    plain_calls++;
    for (int64_t i = 0; i < n; i++) {
        const float *const mean =
            l->product.means ? l->product.means + (second ? l->x->n : 0) : NULL;
        out[i] = mean ? pow((double)mean[i], 2) : 0;
        for (int64_t r = 0; r < R; r++)
            out[i] += pow((double)rows[r * n + i], 2) / (double)R;
    }
}

/** Points by the distances to 16 of the pairs, or to all of fewer. */
static frg_status plain_order(const frgi_level *l, bool second, int32_t *order)
{
    const int64_t n = plain_side(l, second)->n, R = l->sampled.count, d = R < 16 ? R : 16;
    float *const features = calloc((size_t)(n * d), sizeof *features);
    plain_calls++;
    for (int64_t e = 0; e < n * d; e++)
        features[e] = plain_rows(l, second)[e % d * R / d * n + e / d];
    for (int64_t i = 0; i < n; i++)
        order[i] = (int32_t)i;
    frgi_bisect(features, d, order, n);
    free(features);
    return FRG_OK;
}

static const struct frgi_pairs_steps plain_pairs_steps = {.clear = plain_clear,
                                                          .no_cost = plain_no_cost,
                                                          .means = plain_means,
                                                          .draw_product = plain_draw_product,
                                                          .draw = plain_draw,
                                                          .take = plain_take,
                                                          .distances = plain_distances,
                                                          .divide = plain_divide,
                                                          .terms = plain_terms,
                                                          .put_terms = plain_put_terms,
                                                          .pack = plain_pack,
                                                          .mean_squares = plain_mean_squares,
                                                          .order = plain_order};

#endif
