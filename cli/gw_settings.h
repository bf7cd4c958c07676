/* gw_settings.h - what the command line sets for `fourge gw`. */
#ifndef FOURGE_CLI_GW_SETTINGS_H
#define FOURGE_CLI_GW_SETTINGS_H

#include "fourge/gw.h"

typedef struct {
    frg_gw_opts align;
    frg_sinkhorn_opts sinkhorn;
    int64_t iterations; /* 0: tol decides */
    const char *linear_cost, *initial_plan, *initial_potentials, *source, *target, *labels,
        *sources;
    const char *plan, *matches, *potentials, *embedding, *out;
    int plan_dtype, directed;
    int64_t top, dimensions, points;
} gw_settings;

#endif
