/* philox.c - Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw,
 * "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
 *
 * A draw is a pure function of (seed, stream, index, step): the same on any thread, rank or device.
 */
#include <math.h>

#include "core/core.h"

void frgi_philox(uint64_t seed, uint64_t stream, uint64_t index, uint64_t step, uint32_t out[4])
{
    const uint64_t mixed = seed + stream * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t key0 = (uint32_t)mixed, key1 = (uint32_t)(mixed >> 32);
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32);
    uint32_t c2 = (uint32_t)step, c3 = (uint32_t)(step >> 32);
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ key0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ key1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/** 52 random bits centred in their cell: never 0, never 1. */
static double open_interval(uint32_t high, uint32_t low)
{
    const uint64_t bits = ((uint64_t)high << 32 | low) >> 12;
    return ((double)bits + 0.5) * 0x1p-52;
}

void frgi_uniforms(uint64_t seed, uint64_t stream, uint64_t index, uint64_t step, double out[2])
{
    uint32_t w[4];
    frgi_philox(seed, stream, index, step, w);
    out[0] = open_interval(w[0], w[1]);
    out[1] = open_interval(w[2], w[3]);
}

void frgi_normals(uint64_t seed, uint64_t stream, uint64_t index, uint64_t step, double out[2])
{
    double u[2];
    frgi_uniforms(seed, stream, index, step, u);
    const double radius = sqrt(-2 * log(u[0])), angle = 6.283185307179586 * u[1];
    out[0] = radius * cos(angle);
    out[1] = radius * sin(angle);
}
