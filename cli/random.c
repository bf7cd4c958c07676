/* random.c - the random numbers of the simulated designs.
 *
 * xoshiro256** of Blackman and Vigna (2018), its state filled by splitmix64 from the seed.  Normals
 * by the polar method, two at a time.  Poisson by inversion of products below mean 30, by a rounded
 * normal above, which a simulated design does not tell apart.
 */
#include <math.h>

#include "simulate/designs.h"

static uint64_t rotated(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void random_seed(random_stream *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        r->state[i] = splitmix(&seed);
    }
    r->has_spare = 0;
}

static uint64_t bits(random_stream *r)
{
    uint64_t *s = r->state;
    const uint64_t result = rotated(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotated(s[3], 45);
    return result;
}

double random_uniform(random_stream *r)
{
    return ((double)(bits(r) >> 11) + 0.5) * 0x1p-53;
}

double random_normal(random_stream *r)
{
    if (r->has_spare) {
        r->has_spare = 0;
        return r->spare;
    }
    double u, v, s;
    do {
        u = 2 * random_uniform(r) - 1;
        v = 2 * random_uniform(r) - 1;
        s = u * u + v * v;
    } while (s >= 1);
    const double scale = sqrt(-2 * log(s) / s);
    r->spare = v * scale;
    r->has_spare = 1;
    return u * scale;
}

int64_t random_below(random_stream *r, int64_t n)
{
    /* the high half of a 128-bit product; its bias, n / 2^64, is nothing for n < 2^32 */
    return (int64_t)((unsigned __int128)bits(r) * (uint64_t)n >> 64);
}

double random_poisson(random_stream *r, double mean)
{
    if (mean > 30) {
        const double x = floor(mean + sqrt(mean) * random_normal(r) + 0.5);
        return x > 0 ? x : 0;
    }
    const double limit = exp(-mean);
    double product = random_uniform(r), count = 0;
    for (; product > limit; product *= random_uniform(r)) {
        count++;
    }
    return count;
}
