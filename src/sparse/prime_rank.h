/* prime_rank.h - the rank of many short vectors modulo 2^61 - 1, by a sparse factor. */
#ifndef FRGI_PRIME_RANK_H
#define FRGI_PRIME_RANK_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

/** Takes vector `id`: value[k] (below the prime, 0 as well) at index at[k]. */
typedef void frgi_prime_take(void *to, int64_t id, int count, const int32_t *at,
                             const uint64_t *value);
/** Hands all vectors to take(to, ...), each under another id; it is called twice and does the same
 *  then.  A status other than FRG_OK ends the count with it. */
typedef frg_status frgi_prime_vectors(void *data, frgi_prime_take *take, void *to);

/** What a count may take, and in whose name it reports. */
typedef struct {
    double work;    /* multiply-adds of the factor */
    double entries; /* of the matrix of sums, whose ordering takes as long as a factor may */
    size_t bytes;
    const char *solver; /* of the progress reports; NULL: "rank" */
} frgi_prime_limits;

/** *rank <- the rank modulo the prime of vectors with indices below `indices`; -1 where it would
 *  take more than `most`, or where the heartbeat ends it. */
FRG_MUST_USE frg_status frgi_prime_rank(frg_context *ctx, int64_t indices, frgi_prime_vectors *each,
                                        void *data, const frgi_prime_limits *most, int64_t *rank);

#pragma GCC visibility pop
#endif
