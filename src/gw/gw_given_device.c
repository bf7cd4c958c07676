/* gw_given_device.c - matrices that the caller has on a device: points, a linear cost and a plan to
 * start from are copied for the host, which checks them; distances stay there.
 *
 * Of distances one kernel looks at every entry and its mirror image, and writes the mean of both,
 * as the host would; scaled, they are what an alignment reads.  The host has the rows that it asks
 * for (gw_distances.c caches them) and sums over rows alone.
 */
#include "gw/gw_distances.h"
#include "gw/gw_marginals.h"
#include "gw/gw_stage_device.h"

#include <math.h>

/* ---- for the host ---------------------------------------------------------------------------- */

/** Row by row, one element after the other? */
static bool without_gaps(const frg_array *a)
{
    return (a->stride[1] == 1 || a->shape[1] == 1) &&
           (a->stride[0] == a->shape[1] || a->shape[0] == 1);
}

/** to <- all elements, in the order of rows: `from` itself, or through `packed` there. */
static frg_status fetch_elements(frgi_device *dev, const frg_array *a, frgi_buffer from,
                                 frgi_buffer *packed, char *to)
{
    const int64_t entries = a->shape[0] * a->shape[1];
    const size_t bytes = (size_t)entries * frg_sizeof(a->dtype);
    const frgi_program *program;
    if (!without_gaps(a)) {
        TRY(frgi_device_load(dev, &frgi_kernels_gw, FRGI_F64, &program));
        TRY(frgi_device_alloc(dev, bytes, "a matrix in order", packed));
        TRY(LAUNCH(dev, program,
                   a->dtype == FRG_F32 ? "sinkhorn_collect_float" : "sinkhorn_collect",
                   (entries + SK_NARROW - 1) / SK_NARROW, 1, frgi_stage_group(dev, 0),
                   BUFFER(*packed), BUFFER(from), INT64(entries), INT64(a->shape[1]),
                   INT64(a->stride[0]), INT64(a->stride[1])));
    }
    TRY(frgi_device_get(dev, to, without_gaps(a) ? from : *packed, bytes));
    return frgi_device_wait(dev);
}

static frg_status copy_here(frgi_device *dev, const frg_array *a, const char *name, char *to)
{
    frgi_buffer from, packed = {0};
    TRY(frgi_device_adopt(dev, a, name, &from));
    const frg_status status = from.bytes > 0 ? fetch_elements(dev, a, from, &packed, to) : FRG_OK;
    frgi_device_free(dev, &packed);
    frgi_device_disown(dev, &from);
    return status;
}

frg_status frgi_given_open(frgi_given *g, frg_context *ctx, frgi_device *dev, const frg_array *a,
                           const char *name)
{
    *g = (frgi_given){.ctx = ctx, .here = *a};
    TRY(frgi_device_array_check(dev, ctx, a, name, 2, 1u << FRG_F32 | 1u << FRG_F64));
    if (a->device.kind == FRG_CPU) {
        return FRG_OK;
    }
    const int64_t n = a->shape[0], m = a->shape[1];
    TRY(NEW(ctx, &g->copy, frgi_mul(frgi_mul((size_t)n, (size_t)m), frg_sizeof(a->dtype)), name));
    g->here = frg_matrix(g->copy, a->dtype, n, m, m);
    return copy_here(dev, a, name, g->copy);
}

void frgi_given_close(frgi_given *g)
{
    DROP(g->ctx, &g->copy);
}

/* ---- distances that stay there --------------------------------------------------------------- */

/** E_DISTANCE for entry (i, j). */
static frg_status refuse_entry(const frgi_distances *d, const frg_array *a, frgi_buffer given,
                               const char *name, int64_t i, int64_t j)
{
    const size_t bytes = frg_sizeof(a->dtype),
                 at = (size_t)(i * a->stride[0] + j * a->stride[1]) * bytes;
    double wide = 0;
    float narrow = 0;
    TRY(frgi_device_get(d->there.dev, a->dtype == FRG_F64 ? (void *)&wide : &narrow,
                        frgi_device_slice(given, at, bytes), bytes));
    TRY(frgi_device_wait(d->there.dev));
    return frgi_matrix_refuse(d->ctx, name, i, j, a->dtype == FRG_F64 ? wide : (double)narrow);
}

/** What the rows have seen, as the host examines a matrix. */
static frg_status check_rows(frgi_distances *d, const frg_array *a, frgi_buffer given,
                             const char *name, const double *of)
{
    frgi_matrix_seen seen = {0};
    for (int64_t i = 0; i < d->n; i++) {
        const double *const row = of + i * LV_SEEN_COUNT;
        if (row[LV_SEEN_BAD] < (double)d->n) {
            return refuse_entry(d, a, given, name, i, (int64_t)row[LV_SEEN_BAD]);
        }
        seen.most = fmax(seen.most, row[LV_SEEN_MOST]);
        seen.gap = fmax(seen.gap, row[LV_SEEN_GAP]);
        seen.diagonal = fmax(seen.diagonal, row[LV_SEEN_DIAGONAL]);
        d->most = fmaxf(d->most, (float)row[LV_SEEN_FAR]);
        d->there.cut = d->there.cut || row[LV_SEEN_CUT] > 0;
    }
    d->there.hash = frg_hash(0, of, d->n * LV_SEEN_COUNT * (int64_t)sizeof *of);
    return frgi_matrix_check_seen(d->ctx, name, &seen);
}

/** d->there.all <- the means of both triangles; of (n x LV_SEEN_COUNT) <- what is seen. */
static frg_status examine(frgi_distances *d, const frg_array *a, frgi_buffer given,
                          frgi_buffer *seen, double *of)
{
    frgi_device *const dev = d->there.dev;
    const size_t bytes = (size_t)d->n * LV_SEEN_COUNT * sizeof *of;
    const frgi_program *program;
    TRY(frgi_device_load(dev, &frgi_kernels_gw, FRGI_MIXED, &program));
    TRY(frgi_device_alloc(dev, frgi_mul((size_t)d->n, (size_t)d->n) * sizeof(float), "distances",
                          &d->there.all));
    TRY(frgi_device_alloc(dev, bytes, "what is seen of distances", seen));
    TRY(LAUNCH(dev, program, "level_given", d->n, 1, frgi_stage_group(dev, d->there.group),
               BUFFER(d->there.all), BUFFER(*seen), BUFFER(given), INT32(a->dtype == FRG_F32),
               INT64(d->n), INT64(a->stride[0]), INT64(a->stride[1]), WIDE((double)FRGI_LENGTH_MAX),
               WIDE((double)INFINITY)));
    TRY(frgi_device_get(dev, of, *seen, bytes));
    return frgi_device_wait(dev);
}

frg_status frgi_distances_adopt(frgi_distances *d, const frg_array *a, const char *name)
{
    frgi_device *const dev = d->there.dev;
    frgi_buffer given = {0}, seen = {0};
    double *of = NULL;
    frg_status status = FRG_OK;
    d->kind = FRGI_AWAY;
    d->n = a->shape[0];
    TRY(frgi_matrix_square(d->ctx, a, name));
    TRY_TO(done, NEW(d->ctx, &of, d->n * LV_SEEN_COUNT, "what is seen of distances"));
    TRY_TO(done, frgi_device_adopt(dev, a, name, &given));
    TRY_TO(done, examine(d, a, given, &seen, of));
    status = check_rows(d, a, given, name, of);
done:
    frgi_device_free(dev, &seen);
    frgi_device_disown(dev, &given);
    DROP(d->ctx, &of);
    return status;
}

frg_status frgi_distances_scale_there(frgi_distances *d)
{
    TRY(frgi_distances_rescale_there(d, d->there.all, d->there.all));
    return frgi_device_wait(d->there.dev);
}

/* ---- what the host asks for ------------------------------------------------------------------ */

frg_status frgi_distances_rows_there(const frgi_distances *d, const int32_t *nodes, int64_t count,
                                     float *rows)
{
    const size_t row = (size_t)d->n * sizeof *rows;
    for (int64_t first = 0, last; first < count; first = last) {
        for (last = first + 1; last < count && nodes[last] == nodes[last - 1] + 1; last++) {
        }
        const size_t bytes = (size_t)(last - first) * row;
        const frgi_buffer from = frgi_device_slice(d->there.all, (size_t)nodes[first] * row, bytes);
        TRY(frgi_device_get(d->there.dev, rows + first * d->n, from, bytes));
    }
    return frgi_device_wait(d->there.dev);
}

frg_status frgi_distances_sums_there(const frgi_distances *d, const double *w, bool squared,
                                     double *out)
{
    frgi_device *const dev = d->there.dev;
    const size_t bytes = (size_t)d->n * sizeof *w;
    const frgi_program *program;
    frgi_buffer weights = {0}, sums = {0};
    frg_status status = FRG_OK;
    TRY(frgi_device_load(dev, &frgi_kernels_gw, FRGI_F64, &program));
    TRY_TO(done, frgi_device_alloc(dev, bytes, "weights", &weights));
    TRY_TO(done, frgi_device_alloc(dev, bytes, "sums of distances", &sums));
    TRY_TO(done, frgi_device_put(dev, weights, w, bytes));
    TRY_TO(done, LAUNCH(dev, program, squared ? "level_squares" : "level_sums", d->n, 1,
                        frgi_stage_group(dev, d->there.group), BUFFER(sums), BUFFER(d->there.all),
                        BUFFER(weights), INT64(d->n)));
    TRY_TO(done, frgi_device_get(dev, out, sums, bytes));
    status = frgi_device_wait(dev);
done:
    frgi_device_free(dev, &weights);
    frgi_device_free(dev, &sums);
    return status;
}
