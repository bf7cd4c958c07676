/* designs.c - the table of simulated designs, and the panel designs of the speed comparisons.
 *
 * simple, difficult: Butts' fixest benchmarks.  worker_firm, small_world: workers who move rarely,
 * and only to neighbouring firms, but for a few far jumps.  hard: FixedEffectModels.jl's benchmark.
 * gravity: trade between pairs of countries over years.
 */
#include "simulate/designs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const panel_ids[] = {"unit", "year", "firm", NULL};

enum { UNIT = 1, YEAR = 2, FIRM = 4 };

static unsigned panel_factors(double effects)
{
    return effects > 2.5 ? UNIT | YEAR | FIRM : UNIT | FIRM;
}

static int64_t at_least(int64_t x, int64_t low)
{
    return x > low ? x : low;
}

/* ---- memory and outcomes --------------------------------------------------------------------- */

int design_allocate(design_data *d, int64_t n, int p, const char *const *names, unsigned factors)
{
    *d = (design_data){.n = n, .p = p, .factors = factors};
    while (names[d->n_ids]) {
        d->id_names[d->n_ids] = names[d->n_ids];
        d->n_ids++;
    }
    d->columns = malloc((size_t)n * (size_t)p * sizeof *d->columns + 1);
    d->ids = malloc((size_t)n * (size_t)d->n_ids * sizeof *d->ids + 1);
    if (!d->columns || !d->ids) {
        design_free(d);
        return -1;
    }
    return 0;
}

void design_free(design_data *d)
{
    free(d->columns);
    free(d->ids);
    free(d->weights);
    *d = (design_data){0};
}

/** Adds a N(0,1) effect of each level of id `q` to y. */
static int add_effects(design_data *d, random_stream *r, int q)
{
    int32_t top = -1;
    for (int64_t i = 0; i < d->n; i++) {
        const int32_t id = d->ids[i * d->n_ids + q];
        top = id > top ? id : top;
    }
    double *effect = malloc((size_t)(top + 1) * sizeof *effect + 1);
    if (!effect) {
        return -1;
    }
    for (int32_t l = 0; l <= top; l++) {
        effect[l] = random_normal(r);
    }
    for (int64_t i = 0; i < d->n; i++) {
        d->columns[i * d->p] += effect[d->ids[i * d->n_ids + q]];
    }
    free(effect);
    return 0;
}

int design_outcome(design_data *d, random_stream *r, int squares)
{
    for (int64_t i = 0; i < d->n; i++) {
        double *row = d->columns + i * d->p;
        row[0] = random_normal(r);
        for (int j = 1; j < d->p; j++) {
            const int square = squares && j == 2;
            row[j] = square ? row[1] * row[1] : random_normal(r);
            row[0] += row[j] * (square ? 0.05 : squares ? 1.0 / j : 1.0);
        }
    }
    for (int q = 0; q < d->n_ids; q++) {
        if (add_effects(d, r, q) < 0) {
            design_free(d);
            return -1;
        }
    }
    return 0;
}

/* ---- simple and difficult -------------------------------------------------------------------- */

static int make_panel(design_data *d, int64_t rows, const double *parameter, uint64_t seed,
                      int difficult)
{
    const int64_t years = 10, n = at_least(rows, years);
    const int64_t units = at_least((n + 5) / years, 1), firms = at_least((units + 11) / 23, 1);
    if (design_allocate(d, n, 1 + (int)parameter[0], panel_ids, panel_factors(parameter[1])) < 0) {
        return -1;
    }
    random_stream r;
    random_seed(&r, seed);
    for (int64_t i = 0; i < n; i++) {
        int32_t *id = d->ids + 3 * i;
        id[0] = (int32_t)(i / years);
        id[1] = (int32_t)(i % years);
        id[2] = (int32_t)(difficult ? i % firms : random_below(&r, firms));
    }
    return design_outcome(d, &r, 1);
}

static int make_simple(design_data *d, int64_t rows, const double *parameter, uint64_t seed)
{
    return make_panel(d, rows, parameter, seed, 0);
}

static int make_difficult(design_data *d, int64_t rows, const double *parameter, uint64_t seed)
{
    return make_panel(d, rows, parameter, seed, 1);
}

/* ---- worker_firm and small_world ------------------------------------------------------------- */

enum { WF_COVARIATES, WF_EFFECTS, WF_PERIODS, WF_MOVE, WF_REACH, WF_SIZE, WF_FAR };

/** Each year a worker moves with probability `move` by U{-reach .. reach} firms; of the moves a
 *  share `far` goes anywhere. */
static int make_worker_firm(design_data *d, int64_t rows, const double *parameter, uint64_t seed)
{
    const int64_t periods = (int64_t)parameter[WF_PERIODS], reach = (int64_t)parameter[WF_REACH];
    const int64_t workers = at_least(rows / periods, 1);
    const int64_t firms = at_least(workers / (int64_t)parameter[WF_SIZE], 1);
    if (design_allocate(d, workers * periods, 1 + (int)parameter[WF_COVARIATES], panel_ids,
                        panel_factors(parameter[WF_EFFECTS])) < 0) {
        return -1;
    }
    random_stream r;
    random_seed(&r, seed);
    for (int64_t w = 0; w < workers; w++) {
        int64_t firm = random_below(&r, firms);
        for (int64_t t = 0; t < periods; t++) {
            if (t > 0 && random_uniform(&r) < parameter[WF_MOVE]) {
                const int far = parameter[WF_FAR] > 0 && random_uniform(&r) < parameter[WF_FAR];
                const int64_t step = random_below(&r, 2 * reach + 1) - reach;
                firm = far ? random_below(&r, firms) : ((firm + step) % firms + firms) % firms;
            }
            int32_t *id = d->ids + 3 * (w * periods + t);
            id[0] = (int32_t)w;
            id[1] = (int32_t)t;
            id[2] = (int32_t)firm;
        }
    }
    return design_outcome(d, &r, 0);
}

/* ---- hard, fixest_difficult ------------------------------------------------------------------ */

/** Worker uniform, firm uniform within 10 of worker / 8. */
static int make_hard(design_data *d, int64_t rows, const double *parameter, uint64_t seed)
{
    const int64_t n = at_least(rows, 16), workers = at_least(n / (int64_t)parameter[2], 8),
                  firms = workers / 8;
    if (design_allocate(d, n, 1 + (int)parameter[0], panel_ids, panel_factors(parameter[1])) < 0) {
        return -1;
    }
    random_stream r;
    random_seed(&r, seed);
    for (int64_t i = 0; i < n; i++) {
        const int64_t worker = random_below(&r, workers), middle = worker / 8;
        const int64_t low = at_least(middle - 10, 0),
                      high = middle + 10 < firms ? middle + 10 : firms - 1;
        int32_t *id = d->ids + 3 * i;
        id[0] = (int32_t)worker;
        id[1] = (int32_t)(i % 10);
        id[2] = (int32_t)(low + random_below(&r, high - low + 1));
    }
    return design_outcome(d, &r, 0);
}

static int make_fixest_difficult(design_data *d, int64_t rows, const double *parameter,
                                 uint64_t seed)
{
    const int64_t n = at_least(rows, 160), units = n / 20, firms = n / 160;
    const int64_t years = at_least((int64_t)llround(pow((double)n, 0.3)), 1);
    if (design_allocate(d, n, 1 + (int)parameter[0], panel_ids, panel_factors(parameter[1])) < 0) {
        return -1;
    }
    random_stream r;
    random_seed(&r, seed);
    for (int64_t i = 0; i < n; i++) {
        const int64_t unit = random_below(&r, units);
        const int64_t firm = random_below(&r, 21) + at_least(unit / 8 - 10, 1);
        int32_t *id = d->ids + 3 * i;
        id[0] = (int32_t)unit;
        id[1] = (int32_t)random_below(&r, years);
        id[2] = (int32_t)(firm < firms ? firm : firms) - 1;
    }
    return design_outcome(d, &r, 0);
}

/* ---- gravity --------------------------------------------------------------------------------- */

static const char *const gravity_ids[] = {"exporter", "importer", "year",
                                          "exp_year", "imp_year", "pair"};

/** Trade ~ Poisson(exp(-0.5 + effects + 0.3 rta)); columns: y = log(1 + trade), rta, log distance,
 *  which the pairs absorb. */
static int make_gravity(design_data *d, int64_t rows, const double *parameter, uint64_t seed)
{
    const int64_t years = (int64_t)parameter[0];
    const int64_t countries = at_least(llround(0.5 + sqrt((double)rows / (double)years + 0.25)), 2);
    const char *names[MAX_IDS + 1] = {0};
    memcpy(names, gravity_ids, sizeof gravity_ids);
    const int64_t pairs = countries * (countries - 1), n = pairs * years;
    double *effect = malloc((size_t)(2 * countries * years) * sizeof *effect);
    if (!effect || design_allocate(d, n, 3, names, 8 | 16 | 32) < 0) {
        free(effect);
        return -1;
    }
    random_stream r;
    random_seed(&r, seed);
    for (int64_t i = 0; i < 2 * countries * years; i++) {
        effect[i] = random_normal(&r);
    }
    int64_t row = 0, pair = 0;
    for (int64_t e = 0; e < countries; e++) {
        for (int64_t m = 0; m < countries; m++) {
            if (e == m) {
                continue;
            }
            const double distance = 5 + 4.5 * random_uniform(&r), bond = random_normal(&r);
            const int64_t starts =
                random_uniform(&r) < parameter[1] ? random_below(&r, years) : years;
            for (int64_t t = 0; t < years; t++, row++) {
                const double rta = t >= starts;
                const double mean = exp(-0.5 + effect[e * years + t] +
                                        effect[(countries + m) * years + t] + bond + 0.3 * rta);
                d->columns[3 * row] = log1p(random_poisson(&r, mean));
                d->columns[3 * row + 1] = rta;
                d->columns[3 * row + 2] = distance;
                const int64_t ids[MAX_IDS] = {e, m, t, e * years + t, m * years + t, pair};
                for (int q = 0; q < MAX_IDS; q++) {
                    d->ids[MAX_IDS * row + q] = (int32_t)ids[q];
                }
            }
            pair++;
        }
    }
    free(effect);
    return 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define COVARIATES                                                                                 \
    {                                                                                              \
        "covariates", 2, 1, 10, "regressors beside y"                                              \
    }
#define EFFECTS(initial)                                                                           \
    {                                                                                              \
        "effects", initial, 2, 3, "2: unit and firm; 3: unit, year and firm"                       \
    }

#define WORKERS(jumps)                                                                             \
    {                                                                                              \
        COVARIATES, EFFECTS(3), {"periods", 8, 1, 1000, "rows of a worker"},                       \
            {"move", 0.05, 0, 1, "probability of a move each period"},                             \
            {"reach", 3, 1, 1e6, "moves go at most this far"},                                     \
            {"size", 20, 1, 1e6, "workers of a firm"},                                             \
        {                                                                                          \
            "far", jumps, 0, 1, "share of the moves that go anywhere"                              \
        }                                                                                          \
    }

const design design_table[] = {
    {"simple", "10 years, firms at random: well connected", {COVARIATES, EFFECTS(3)}, make_simple},
    {"difficult",
     "the firm follows the row number: badly connected",
     {COVARIATES, EFFECTS(3)},
     make_difficult},
    {"worker_firm", "workers who move rarely and only to neighbouring firms", WORKERS(0),
     make_worker_firm},
    {"small_world", "worker_firm with a few far jumps", WORKERS(0.01), make_worker_firm},
    {"akm",
     "workers sorted into firms and industries (Abowd, Kramarz and Margolis)",
     {COVARIATES,
      EFFECTS(3),
      {"periods", 10, 1, 1000, "rows of a worker"},
      {"rho", 0, 0, 1e4, "strength of sorting by effects"},
      {"delta", 0.1, 0, 1, "probability of a move each period"},
      {"industries", 5, 1, 1000, "number of industries"},
      {"lambda", 0.8, 0, 1, "share of matches within the own industry"},
      {"gamma", 1, 0.1, 100, "tail of the firm sizes, u^(-1/gamma)"},
      {"frozen", 0, 0, 1000, "industries whose workers move with probability 0.005"},
      {"occupations", 0, 0, 1e5, "a fourth factor of so many levels; 0: none"},
      {"workers_per_firm", 2, 1, 1e6, "sets the number of firms"}},
     make_akm},
    {"hard",
     "firm within 10 of worker / 8 (FixedEffectModels.jl)",
     {COVARIATES, EFFECTS(2), {"per_worker", 2, 1, 1000, "rows of a worker on average"}},
     make_hard},
    {"fixest_difficult",
     "20 rows a unit, 160 a firm, n^0.3 years",
     {COVARIATES, EFFECTS(3)},
     make_fixest_difficult},
    {"gravity",
     "trade between countries: exporter-year, importer-year and pair effects",
     {{"years", 20, 1, 1000, "years"},
      {"treaties", 0.15, 0, 1, "share of the pairs with a treaty"}},
     make_gravity},
    {"cycle", "an even cycle of single rows", {COVARIATES, EFFECTS(2)}, make_cycle},
    {"path", "a path of single rows: every residual is 0", {COVARIATES, EFFECTS(2)}, make_path},
    {"chain",
     "each unit has `stay` rows at its firm and one at the next",
     {COVARIATES, EFFECTS(2), {"stay", 4, 1, 1000, "rows at the own firm"}},
     make_chain},
    {"star",
     "each unit has a row at one hub and others anywhere",
     {COVARIATES, EFFECTS(2), {"spokes", 2, 1, 1000, "rows beside the hub"}},
     make_star},
    {"barbell", "two complete halves joined by one row", {COVARIATES, EFFECTS(2)}, make_barbell},
    {"expander",
     "the union of `degree` random matchings",
     {COVARIATES, EFFECTS(2), {"degree", 3, 1, 100, "rows of a level"}},
     make_expander},
    {"grid", "the edges of a square grid", {COVARIATES, EFFECTS(2)}, make_grid},
    {"powerlaw",
     "levels drawn with probability j^-exponent",
     {COVARIATES, EFFECTS(2), {"exponent", 1.5, 0.1, 10, "of the power law"}},
     make_powerlaw},
    {"clustered",
     "random clusters, each joined to the next by a few rows",
     {COVARIATES,
      EFFECTS(2),
      {"clusters", 10, 1, 1e6, "clusters"},
      {"bridges", 2, 1, 1e6, "rows between two"}},
     make_clustered},
    {"near_disconnected",
     "two expanders joined by one row of a tiny weight",
     {COVARIATES,
      EFFECTS(2),
      {"degree", 3, 1, 100, "rows of a level"},
      {"weight", 1e-8, 1e-300, 1, "of the row that joins them"}},
     make_near_disconnected},
    {.name = NULL},
};

const design *find_design(const char *name)
{
    for (const design *k = design_table; k->name; k++) {
        if (strcmp(k->name, name) == 0) {
            return k;
        }
    }
    return NULL;
}
