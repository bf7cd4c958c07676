/* designs.h - simulated data of the benchmark designs, for `simulate` and `bench`. */
#ifndef FOURGE_CLI_DESIGNS_H
#define FOURGE_CLI_DESIGNS_H

#include <stdint.h>

enum { MAX_PARAMETERS = 12, MAX_IDS = 6 };

/** One simulated data set.  Columns: y, then regressors. */
typedef struct {
    int64_t n;
    int p;           /* columns */
    double *columns; /* n x p, row-major */
    double *weights; /* n, or NULL */
    int n_ids;       /* identifiers of a row; a csv file has all of them */
    int32_t *ids;    /* n x n_ids, row-major */
    const char *id_names[MAX_IDS];
    unsigned factors; /* bit i: id i is one of the fixed effects of codes.npy */
} design_data;

typedef struct {
    const char *name;
    double value, low, high; /* default and range */
    const char *help;
} design_parameter;

typedef struct {
    const char *name, *help;
    design_parameter parameters[MAX_PARAMETERS]; /* ends with a NULL name */
    /** Fills `d` for about `rows` rows; 0, or -1 when memory ran out. */
    int (*make)(design_data *d, int64_t rows, const double *parameter, uint64_t seed);
} design;

/** Ends with a NULL name. */
extern const design design_table[];

const design *find_design(const char *name);
void design_free(design_data *d);

/* ---- for the files that make designs --------------------------------------------------------- */

/** xoshiro256** (Blackman and Vigna 2018), seeded by splitmix64; one sequential stream a data set,
 *  so that the numbers depend on the seed alone. */
typedef struct {
    uint64_t state[4];
    double spare; /* the second normal of a pair */
    int has_spare;
} random_stream;

void random_seed(random_stream *r, uint64_t seed);
double random_uniform(random_stream *r);           /* in (0, 1) */
double random_normal(random_stream *r);            /* polar method of Marsaglia */
int64_t random_below(random_stream *r, int64_t n); /* 0 .. n-1 */
double random_poisson(random_stream *r, double mean);

/** Allocates n rows; `names` are the ids, ending with NULL.  Returns 0, or -1 when memory ran
 *  out. */
int design_allocate(design_data *d, int64_t n, int p, const char *const *names, unsigned factors);
/** x_j ~ N(0,1), y = sum_j beta_j x_j + a N(0,1) effect of every level of each factor + N(0,1);
 *  squares: x2 is x1 squared with coefficient 0.05, as in the speed designs. */
int design_outcome(design_data *d, random_stream *r, int squares);

int make_akm(design_data *d, int64_t rows, const double *parameter, uint64_t seed);
int make_path(design_data *d, int64_t rows, const double *parameter, uint64_t seed);
int make_cycle(design_data *d, int64_t rows, const double *parameter, uint64_t seed);
int make_chain(design_data *d, int64_t rows, const double *parameter, uint64_t seed);
int make_star(design_data *d, int64_t rows, const double *parameter, uint64_t seed);
int make_barbell(design_data *d, int64_t rows, const double *parameter, uint64_t seed);
int make_expander(design_data *d, int64_t rows, const double *parameter, uint64_t seed);
int make_grid(design_data *d, int64_t rows, const double *parameter, uint64_t seed);
int make_powerlaw(design_data *d, int64_t rows, const double *parameter, uint64_t seed);
int make_clustered(design_data *d, int64_t rows, const double *parameter, uint64_t seed);
int make_near_disconnected(design_data *d, int64_t rows, const double *parameter, uint64_t seed);

#endif
