/* simulate.h - what `simulate` and `bench` share: designs by name, their parameters, their
 * codes. */
#ifndef FOURGE_CLI_SIMULATE_H
#define FOURGE_CLI_SIMULATE_H

#include "cli.h"
#include "simulate/designs.h"

/** The design of that name; NULL after an error was shown, with the exit code in *code. */
const design *design_named(const cli *c, const char *name, int *code);
/** Defaults and --set; 0 or the exit code. */
int design_parameters(const cli *c, const design *k, double values[MAX_PARAMETERS]);
/** The ids that are factors, n x Q row-major, to be freed; 0 or -1 when memory ran out. */
int design_codes(const design_data *d, int32_t **codes, int *n_factors);

#endif
