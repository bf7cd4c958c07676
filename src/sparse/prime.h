/* prime.h - arithmetic modulo the Mersenne prime 2^61 - 1.
 *
 * The rank of an integer matrix modulo a prime is at most its rank over the rationals, and less
 * only if the prime divides all minors of that order. */
#ifndef FRGI_PRIME_H
#define FRGI_PRIME_H

#include <stdint.h>

static const uint64_t FRGI_PRIME = ((uint64_t)1 << 61) - 1;

static inline uint64_t frgi_prime_times(uint64_t a, uint64_t b)
{
    const unsigned __int128 product = (unsigned __int128)a * b;
    const uint64_t sum = (uint64_t)(product & FRGI_PRIME) + (uint64_t)(product >> 61);
    return sum >= FRGI_PRIME ? sum - FRGI_PRIME : sum;
}

static inline uint64_t frgi_prime_plus(uint64_t a, uint64_t b)
{
    const uint64_t sum = a + b;
    return sum >= FRGI_PRIME ? sum - FRGI_PRIME : sum;
}

/** -a, for a > 0 and for 0. */
static inline uint64_t frgi_prime_minus(uint64_t a)
{
    return a ? FRGI_PRIME - a : 0;
}

/** 1 / a by Fermat, a > 0. */
static inline uint64_t frgi_prime_inverse(uint64_t a)
{
    uint64_t result = 1;
    for (uint64_t e = FRGI_PRIME - 2; e > 0; e >>= 1) {
        result = e & 1 ? frgi_prime_times(result, a) : result;
        a = frgi_prime_times(a, a);
    }
    return result;
}

#endif
