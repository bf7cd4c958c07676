/* designs_akm.c - workers, firms and industries with sorting, after Abowd, Kramarz and Margolis
 * (1999).
 *
 *     y_it = sum_j 0.5 x_itj + alpha_i + psi_J(i,t) + phi_t + eps_it
 *
 * alpha ~ N(0, 1), psi ~ N(0, 0.5), phi ~ N(0, 0.1), eps ~ N(0, 1).  Firm sizes are Pareto,
 * u^(-1/gamma), coupled to psi by a Gaussian copula of correlation 0.6.  Each period a worker moves
 * with probability delta to another firm, drawn with probability proportional to
 *
 *     exp(-rho (alpha - psi)^2 / (2 (1 + 0.5))) * size * (lambda in the own industry, the rest
 *     shared)
 *
 * alpha enters by its rank, in at most 2048 bins, so that the cumulative weights of the firms,
 * grouped by industry, are made once a bin: O(bins * firms) time, O(firms) memory.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "simulate/designs.h"

enum {
    COVARIATES,
    EFFECTS,
    PERIODS,
    RHO,
    DELTA,
    INDUSTRIES,
    LAMBDA,
    GAMMA,
    FROZEN,
    OCCUPATIONS,
    PER_FIRM
};
enum { MAX_BINS = 2048, MENU = 5 };

static const double var_psi = 0.5, var_phi = 0.1, copula = 0.6, frozen_delta = 0.005,
                    occupation_move = 0.3, occupation_own = 0.5;

typedef struct {
    int64_t workers, firms, periods, industries;
    double *alpha, *psi, *size;
    double *cumulative;      /* of the firms' weights, within their industries */
    int64_t *industry_start; /* industries + 1: firms are numbered by industry */
    double *industry_weight;
    const double *parameter;
    random_stream r;
} akm;

static int akm_allocate(akm *a)
{
    a->alpha = malloc((size_t)a->workers * sizeof *a->alpha);
    a->psi = malloc((size_t)a->firms * sizeof *a->psi);
    a->size = malloc((size_t)a->firms * sizeof *a->size);
    a->cumulative = malloc((size_t)a->firms * sizeof *a->cumulative);
    a->industry_start = malloc((size_t)(a->industries + 1) * sizeof *a->industry_start);
    a->industry_weight = malloc((size_t)a->industries * sizeof *a->industry_weight);
    return a->alpha && a->psi && a->size && a->cumulative && a->industry_start && a->industry_weight
               ? 0
               : -1;
}

static void akm_free(akm *a)
{
    free(a->alpha);
    free(a->psi);
    free(a->size);
    free(a->cumulative);
    free(a->industry_start);
    free(a->industry_weight);
}

/** Workers are numbered by rank of alpha, so that a bin is a range of workers. */
static void draw_people_and_firms(akm *a)
{
    for (int64_t i = 0; i < a->workers; i++) {
        a->alpha[i] = random_normal(&a->r);
    }
    sort_numbers(a->alpha, a->workers);
    for (int64_t f = 0; f < a->firms; f++) {
        const double z = random_normal(&a->r);
        const double coupled = copula * z + sqrt(1 - copula * copula) * random_normal(&a->r);
        a->psi[f] = sqrt(var_psi) * z;
        a->size[f] = pow(0.5 * erfc(coupled / sqrt(2.0)), -1 / a->parameter[GAMMA]);
    }
    for (int64_t k = 0; k <= a->industries; k++) {
        a->industry_start[k] = k * a->firms / a->industries;
    }
}

static void weight_firms(akm *a, double alpha)
{
    const double scale = a->parameter[RHO] / (2 * (1 + var_psi));
    for (int64_t k = 0; k < a->industries; k++) {
        double sum = 0;
        for (int64_t f = a->industry_start[k]; f < a->industry_start[k + 1]; f++) {
            const double gap = alpha - a->psi[f];
            sum += a->size[f] * exp(-scale * gap * gap);
            a->cumulative[f] = sum;
        }
        a->industry_weight[k] = sum;
    }
}

static double share(const akm *a, int64_t industry, int64_t own)
{
    if (a->industries == 1) {
        return 1;
    }
    return industry == own ? a->parameter[LAMBDA]
                           : (1 - a->parameter[LAMBDA]) / (double)(a->industries - 1);
}

static int64_t draw_firm(akm *a, int64_t own)
{
    double total = 0;
    for (int64_t k = 0; k < a->industries; k++) {
        total += share(a, k, own) * a->industry_weight[k];
    }
    double u = random_uniform(&a->r) * total;
    int64_t k = 0;
    for (; k + 1 < a->industries && u > share(a, k, own) * a->industry_weight[k]; k++) {
        u -= share(a, k, own) * a->industry_weight[k];
    }
    const double target = random_uniform(&a->r) * a->industry_weight[k];
    const int64_t first = a->industry_start[k], last = a->industry_start[k + 1] - 1;
    return first + count_below(a->cumulative + first, last - first, target);
}

/** Another firm than `firm`; after some tries (one firm has nearly all the weight) the same. */
static int64_t draw_other(akm *a, int64_t own, int64_t firm)
{
    int64_t other = firm;
    for (int tries = 0; tries < 20 && other == firm; tries++) {
        other = draw_firm(a, own);
    }
    return other;
}

/** Occupations: a menu of 5 to each firm, one of them kept or drawn again. */
static int64_t draw_occupation(akm *a, int64_t firm, int64_t count)
{
    if (random_uniform(&a->r) < occupation_own) {
        return (firm * 7919 + random_below(&a->r, MENU)) % count;
    }
    return random_below(&a->r, count);
}

static void walk(akm *a, design_data *d, int64_t worker)
{
    const int64_t own = random_below(&a->r, a->industries),
                  occupations = (int64_t)a->parameter[OCCUPATIONS];
    const double delta = own < (int64_t)a->parameter[FROZEN] ? frozen_delta : a->parameter[DELTA];
    int64_t firm = draw_firm(a, own),
            occupation = occupations ? draw_occupation(a, firm, occupations) : 0;
    for (int64_t t = 0; t < a->periods; t++) {
        if (t > 0 && random_uniform(&a->r) < delta) {
            firm = draw_other(a, own, firm);
        }
        if (t > 0 && occupations && random_uniform(&a->r) < occupation_move) {
            occupation = draw_occupation(a, firm, occupations);
        }
        int32_t *id = d->ids + d->n_ids * (worker * a->periods + t);
        id[0] = (int32_t)worker;
        id[1] = (int32_t)t;
        id[2] = (int32_t)firm;
        if (occupations) {
            id[3] = (int32_t)occupation;
        }
    }
}

static void outcomes(akm *a, design_data *d)
{
    for (int64_t i = 0; i < d->n; i++) {
        const int32_t *id = d->ids + d->n_ids * i;
        double *row = d->columns + d->p * i;
        row[0] = a->alpha[id[0]] + a->psi[id[2]] + random_normal(&a->r);
        for (int j = 1; j < d->p; j++) {
            row[j] = random_normal(&a->r);
            row[0] += 0.5 * row[j];
        }
    }
    for (int64_t t = 0; t < a->periods; t++) {
        const double phi = sqrt(var_phi) * random_normal(&a->r);
        for (int64_t w = 0; w < a->workers; w++) {
            d->columns[d->p * (w * a->periods + t)] += phi;
        }
    }
}

int make_akm(design_data *d, int64_t rows, const double *parameter, uint64_t seed)
{
    static const char *const three[] = {"unit", "year", "firm", NULL};
    static const char *const four[] = {"unit", "year", "firm", "occupation", NULL};
    const int with_occupation = parameter[OCCUPATIONS] >= 1;
    akm a = {.parameter = parameter,
             .periods = (int64_t)parameter[PERIODS],
             .industries = (int64_t)parameter[INDUSTRIES]};
    a.workers = rows / a.periods > 0 ? rows / a.periods : 1;
    a.firms = a.workers / (int64_t)parameter[PER_FIRM];
    a.firms = a.firms > a.industries ? a.firms : a.industries;
    random_seed(&a.r, seed);
    const unsigned factors = (parameter[EFFECTS] > 2.5 ? 7u : 5u) | (with_occupation ? 8u : 0u);
    int code = akm_allocate(&a);
    if (!code) {
        code = design_allocate(d, a.workers * a.periods, 1 + (int)parameter[COVARIATES],
                               with_occupation ? four : three, factors);
    }
    if (!code) {
        draw_people_and_firms(&a);
        const int64_t bins = parameter[RHO] > 0 ? (a.workers < MAX_BINS ? a.workers : MAX_BINS) : 1;
        for (int64_t b = 0; b < bins; b++) {
            const int64_t from = b * a.workers / bins, to = (b + 1) * a.workers / bins;
            weight_firms(&a, a.alpha[(from + to) / 2]);
            for (int64_t w = from; w < to; w++) {
                walk(&a, d, w);
            }
        }
        outcomes(&a, d);
    }
    akm_free(&a);
    return code;
}
