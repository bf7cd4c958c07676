/* cli_sort.c - sorted numbers: order, median, search. */
#include <math.h>
#include <stdlib.h>

#include "cli.h"

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sort_numbers(double *values, int64_t n)
{
    qsort(values, (size_t)n, sizeof *values, ascending);
}

double median_of(double *values, int n)
{
    if (n <= 0) {
        return NAN;
    }
    sort_numbers(values, n);
    return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

int64_t count_below(const double *sorted, int64_t n, double x)
{
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (sorted[middle] < x) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}
