/* gp_expressions.h - every kernel, and expressions of them, as the library reads them and as the
 * oracle's nodes; means, noises and outputs likewise. */
#ifndef FOURGE_TEST_GP_EXPRESSIONS_H
#define FOURGE_TEST_GP_EXPRESSIONS_H

#include "gp_data.h"
#include "oracle/gp_oracle.h"

enum { EXPRESSION_NODES = 8 };

typedef struct {
    const char *kernel;
    int64_t d;
    int parameters; /* of the kernel */
    int n_nodes;
    gp_oracle_node node[EXPRESSION_NODES];
} expression;

TEST_UNUSED static const expression expressions[] = {
    {"1.3*rbf(l=0.4) + noise(0.1)", 2, 2, 2, {{ORACLE_RBF, .at = {1}}, {ORACLE_SCALE, .at = {0}}}},
    {"1.3*rbf(l=[0.4,0.7,0.2]) + noise(0.1)",
     3,
     4,
     2,
     {{ORACLE_RBF, .at = {1}, .vector = {true}}, {ORACLE_SCALE, .at = {0}}}},
    {"0.8*matern12(l=[0.4,0.7]) + noise(0.1)",
     2,
     3,
     2,
     {{ORACLE_MATERN12, .at = {1}, .vector = {true}}, {ORACLE_SCALE, .at = {0}}}},
    {"0.8*matern32(l=0.5) + noise(0.1)",
     2,
     2,
     2,
     {{ORACLE_MATERN32, .at = {1}}, {ORACLE_SCALE, .at = {0}}}},
    {"0.8*matern32(l=[0.5,0.3]) + noise(0.1)",
     2,
     3,
     2,
     {{ORACLE_MATERN32, .at = {1}, .vector = {true}}, {ORACLE_SCALE, .at = {0}}}},
    {"matern52(l=[0.4,0.7]) + noise(0.1)",
     2,
     2,
     1,
     {{ORACLE_MATERN52, .at = {0}, .vector = {true}}}},
    {"1.1*rq(l=[0.4,0.7], alpha=0.6) + noise(0.1)",
     2,
     4,
     2,
     {{ORACLE_RQ, .at = {1, 3}, .vector = {true}}, {ORACLE_SCALE, .at = {0}}}},
    {"1.1*periodic(l=[0.9,1.2], p=[0.7,0.5]) + noise(0.2)",
     2,
     5,
     2,
     {{ORACLE_PERIODIC, .at = {1, 3}, .vector = {true, true}}, {ORACLE_SCALE, .at = {0}}}},
    {"1.1*periodic(l=0.9, p=0.6, form=gpytorch) + noise(0.2)",
     2,
     3,
     2,
     {{ORACLE_PERIODIC_GPYTORCH, .at = {1, 2}}, {ORACLE_SCALE, .at = {0}}}},
    {"linear(v=[0.5,1.5]) + noise(0.2)", 2, 2, 1, {{ORACLE_LINEAR, .at = {0}, .vector = {true}}}},
    {"0.7*poly(q=3, c=0.8) + noise(0.2)",
     2,
     2,
     2,
     {{ORACLE_POLY, .at = {1}, .degree = 3}, {ORACLE_SCALE, .at = {0}}}},
    {"0.7*cosine(p=[0.8,1.3]) + noise(0.2)",
     2,
     3,
     2,
     {{ORACLE_COSINE, .at = {1}, .vector = {true}}, {ORACLE_SCALE, .at = {0}}}},
    {"sm(q=2, w=[0.6,0.4], mu=[1,0.5,2,0.7], v=[0.3,0.2,0.5,0.1]) + noise(0.2)",
     2,
     10,
     1,
     {{ORACLE_SM, .at = {0, 2, 6}, .vector = {true, true, true}, .degree = 2}}},
    {"sm(q=2, w=[0.6,0.4], mu=[1,0.5,2,0.7], s=[0.3,0.2,0.5,0.1], form=gpytorch) + noise(0.2)",
     2,
     10,
     1,
     {{ORACLE_SM_GPYTORCH, .at = {0, 2, 6}, .vector = {true, true, true}, .degree = 2}}},
    {"0.9*rbf(l=0.3)*linear(v=0.7) + 0.5*matern52(l=0.6)*periodic(l=1, p=0.4) + noise(0.1)",
     2,
     7,
     7,
     {{ORACLE_RBF, .at = {1}},
      {ORACLE_LINEAR, .at = {2}},
      {.kind = ORACLE_PRODUCT},
      {ORACLE_SCALE, .at = {0}},
      {ORACLE_MATERN52, .at = {4}},
      {ORACLE_PERIODIC, .at = {5, 6}},
      {.kind = ORACLE_PRODUCT}}}, /* the second scale and the sum follow in set_oracle */
    {"on(1; rbf(l=0.3))*on(3,2; rq(l=[0.4,0.9], alpha=2)) + white(0.3) + const(0.4) + noise(0.1)",
     3,
     6,
     7,
     {{ORACLE_RBF, .at = {0}, .columns = 1, .column = {0}},
      {ORACLE_RQ, .at = {1, 3}, .vector = {true}, .columns = 2, .column = {2, 1}},
      {.kind = ORACLE_PRODUCT},
      {ORACLE_WHITE, .at = {4}},
      {.kind = ORACLE_SUM},
      {ORACLE_CONST, .at = {5}},
      {.kind = ORACLE_SUM}}},
};
enum { EXPRESSIONS = sizeof expressions / sizeof *expressions };

typedef struct {
    gp_data data;
    gp_oracle oracle;
    gp_oracle_node node[EXPRESSION_NODES + 2];
    int32_t groups[GP_DATA_ROOM];
    double variances[GP_DATA_ROOM];
    double theta[GP_DATA_PARAMETERS];
    int p;
} problem;

/** The oracle's side of an expression, homoscedastic, zero mean. */
TEST_UNUSED static void set_oracle(problem *b, const expression *e, int64_t n, int64_t q)
{
    gp_data_random(&b->data, n, e->d, q);
    memcpy(b->node, e->node, sizeof e->node);
    int nodes = e->n_nodes;
    if (e->parameters == 7) { /* a sum of two scaled products */
        b->node[nodes++] = (gp_oracle_node){.kind = ORACLE_SCALE, .at = {3}};
        b->node[nodes++] = (gp_oracle_node){.kind = ORACLE_SUM};
    }
    b->oracle = (gp_oracle){.n = n,
                            .d = e->d,
                            .q = q,
                            .x = b->data.x,
                            .y = b->data.y,
                            .node = b->node,
                            .n_nodes = nodes,
                            .noise_first = e->parameters,
                            .noise_count = 1,
                            .mean_first = e->parameters + 1};
}

/** Means, restricted likelihood, groups of noise and known noise. */
typedef struct {
    const char *mean;
    gp_oracle_mean oracle;
    int64_t q;
    bool reml, groups, known;
} gp_model;

TEST_UNUSED static const gp_model gp_models[] = {
    {"const(0.3)", ORACLE_CONSTANT, 1, false, false, false},
    {"const(0.3)", ORACLE_CONSTANT, 3, false, true, false},
    {"linear", ORACLE_LINEAR_MEAN, 1, false, false, true},
    {"linear", ORACLE_LINEAR_MEAN, 2, false, true, true},
    {"profiled", ORACLE_GLS, 1, false, false, false},
    {"profiled", ORACLE_GLS, 1, true, true, false},
    {"profiled(linear)", ORACLE_GLS_LINEAR, 1, false, false, true},
    {"profiled(linear)", ORACLE_GLS_LINEAR, 1, true, true, true},
    {"profiled(linear)", ORACLE_GLS_LINEAR, 3, true, false, false},
};
enum { GP_MODELS = sizeof gp_models / sizeof *gp_models };

/** Problem k of the models, on n points. */
TEST_UNUSED static const expression *set_model(problem *b, size_t k, int64_t n, frg_gp_opts *o)
{
    const expression *const e = &expressions[k % 2 == 0 ? 3 : 13];
    set_oracle(b, e, n, gp_models[k].q);
    *o = gp_data_opts(gp_models[k].mean);
    o->reml = gp_models[k].reml;
    b->oracle.reml = o->reml;
    b->oracle.mean = gp_models[k].oracle;
    for (int64_t i = 0; i < b->data.n; i++) {
        b->groups[i] = (int32_t)(i * i % 3);
        b->variances[i] = 0.02 * (double)(i % 4);
    }
    if (gp_models[k].groups) {
        o->noise_groups = b->oracle.groups = b->groups;
        b->oracle.noise_count = 2; /* i^2 mod 3 is 0 or 1 */
        b->oracle.mean_first++;
    }
    if (gp_models[k].known) {
        o->noise_variances = b->oracle.known_noise = b->variances;
    }
    return e;
}

#endif
