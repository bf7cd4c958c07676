/* assign_cpu.c - kernels of dense costs, passes of Sinkhorn's iteration over them, and
 * assignments in floats and in doubles, at one CPU level. */
#include "core/denormals.h"
#include "core/lanes.h"
#include "transport/assign.h"

#define LEAST_SUM 1e-30F

static void kernel(const frgi_costs *c, const float *f, const float *g, float scale,
                   frgi_costs *out)
{
    const lanes most = lanes_all(FRGI_ANNEAL_MOST);
    const unsigned mode = frgi_flush_denormals();
    for (int64_t i = 0; i < c->rows; i++) {
        const float *const from = (const float *)c->at + i * c->ld;
        float *const to = (float *)out->at + i * out->ld;
        for (int64_t j = 0; j < c->ld; j += FLOATS) {
            const lanes z = f[i] + lanes_at(g + j) - scale * lanes_at(from + j);
            lanes_put(to + j, lanes_power(lanes_smaller(z, most)));
        }
        for (int64_t j = c->columns; j < c->ld; j++) {
            to[j] = 0;
        }
    }
    frgi_restore_denormals(mode);
}

static void pass(const frgi_costs *k, const float *a, const float *b, float *u, float *v,
                 float *sums)
{
    const unsigned mode = frgi_flush_denormals(); /* kernels are full of them */
    memset(sums, 0, (size_t)k->ld * sizeof *sums);
    for (int64_t i = 0; i < k->rows; i++) {
        const float *const row = (const float *)k->at + i * k->ld;
        lanes sum = {};
        for (int64_t j = 0; j < k->ld; j += FLOATS) {
            sum += lanes_at(row + j) * lanes_at(v + j);
        }
        const double total = lanes_sum(sum);
        u[i] = total > (double)LEAST_SUM ? (float)((double)a[i] / total) : u[i];
        for (int64_t j = 0; j < k->ld; j += FLOATS) {
            lanes_put(sums + j, lanes_at(sums + j) + u[i] * lanes_at(row + j));
        }
    }
    for (int64_t j = 0; j < k->columns; j++) {
        v[j] = sums[j] > LEAST_SUM ? b[j] / sums[j] : v[j];
    }
    frgi_restore_denormals(mode);
}

#pragma GCC visibility push(hidden)
extern const frgi_anneal_ops CAT(frgi_anneal_ops, ISA);
#pragma GCC visibility pop
const frgi_anneal_ops CAT(frgi_anneal_ops, ISA) = {kernel, pass};

/* ---- assignments ----------------------------------------------------------------------------- */

#define real     float
#define vec      lanes
#define mask     lane_mask
#define whole    int32_t
#define LANES    FLOATS
#define AN(name) single_##name
#define VN(name) lanes_##name
#include "transport/assign.tmpl.h"
#undef real
#undef vec
#undef mask
#undef whole
#undef LANES
#undef AN
#undef VN
#define real     double
#define vec      reals
#define mask     real_mask
#define whole    int64_t
#define LANES    REALS
#define AN(name) double_##name
#define VN(name) reals_##name
#include "transport/assign.tmpl.h"

#pragma GCC visibility push(hidden)
extern const frgi_assign_ops CAT(frgi_assign_ops, ISA)[2];
#pragma GCC visibility pop
#define OPS(type)                                                                                  \
    {                                                                                              \
        .two = type##_two, .near = type##_near, .nearest = type##_nearest_of,                      \
        .begin = type##_begin, .finish = type##_finish, .coarsen = type##_coarsen,                 \
        .extend = type##_extend                                                                    \
    }
const frgi_assign_ops CAT(frgi_assign_ops, ISA)[2] = {OPS(double), OPS(single)};
