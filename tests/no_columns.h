/* no_columns.h - a store of columns that keeps none: for fits that have one for their layout alone. */
#ifndef TEST_NO_COLUMNS_H
#define TEST_NO_COLUMNS_H

#include "fourge/fe.h"

static frg_status load_none(void *user, int64_t n, int64_t p, double *values,
                            frg_demean_column *columns, int64_t *done, frg_status *worst)
{
    (void)user, (void)n, (void)p, (void)values, (void)columns, (void)worst;
    *done = 0;
    return FRG_OK;
}

static frg_status save_none(void *user, int64_t n, int64_t p, const double *values,
                            const frg_demean_column *columns, int64_t done, frg_status worst,
                            int stopped)
{
    (void)user, (void)n, (void)p, (void)values, (void)columns, (void)done, (void)worst;
    (void)stopped;
    return FRG_OK;
}

#endif
