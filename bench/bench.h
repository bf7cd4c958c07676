/* bench.h - what every benchmark program needs: a clock, and repeats in order. */
#ifndef FOURGE_BENCH_H
#define FOURGE_BENCH_H

#include <stdlib.h>
#include <time.h>

static inline double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int bench_by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/** Best first, the median in the middle. */
static inline void bench_sort(double *seconds, int repeats)
{
    qsort(seconds, (size_t)repeats, sizeof *seconds, bench_by_size);
}

#endif
