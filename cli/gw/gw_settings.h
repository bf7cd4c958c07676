/* gw_settings.h - what the command line sets for `fourge gw`. */
#ifndef FOURGE_CLI_GW_SETTINGS_H
#define FOURGE_CLI_GW_SETTINGS_H

#include "fourge/gw.h"

/** The subcommands of `fourge gw` as bits, and those that share what they need. */
enum {
    GW_JOB_ALIGN = 1,
    GW_JOB_SINKHORN = 2,
    GW_JOB_PATHS = 4,
    GW_JOB_ENERGY = 8,
    GW_JOB_BARYCENTER = 16,
    GW_JOBS_OF_PLANS = GW_JOB_ALIGN | GW_JOB_SINKHORN,
    GW_JOBS_OF_DISTANCES = GW_JOB_ALIGN | GW_JOB_ENERGY | GW_JOB_BARYCENTER,
    GW_JOBS_OF_GRAPHS = GW_JOBS_OF_DISTANCES | GW_JOB_PATHS
};

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
