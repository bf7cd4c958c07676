/* gp_words.c - the table of leaves: a kernel is added here, in frgi_gp_kind, in
 * gp_leaves_cpu.tmpl.h or gp_periodic_cpu.tmpl.h, and in the table of gp_tiles_cpu.tmpl.h. */
#include "gp/gp_words.h"

const frgi_gp_leaf_word frgi_gp_leaves[GP_LEAVES] = {
    {"rbf", GP_RBF, GP_RBF, NULL, 1, {{"l", GP_ROLE_LENGTH, GP_PER_COLUMN}}, "rbf(l=0.2)"},
    {"matern12",
     GP_MATERN12,
     GP_MATERN12,
     NULL,
     1,
     {{"l", GP_ROLE_LENGTH, GP_PER_COLUMN}},
     "matern12(l=0.2)"},
    {"matern32",
     GP_MATERN32,
     GP_MATERN32,
     NULL,
     1,
     {{"l", GP_ROLE_LENGTH, GP_PER_COLUMN}},
     "matern32(l=0.2)"},
    {"matern52",
     GP_MATERN52,
     GP_MATERN52,
     NULL,
     1,
     {{"l", GP_ROLE_LENGTH, GP_PER_COLUMN}},
     "matern52(l=0.2)"},
    {"rq",
     GP_RQ,
     GP_RQ,
     NULL,
     2,
     {{"l", GP_ROLE_LENGTH, GP_PER_COLUMN}, {"alpha", GP_ROLE_SHAPE, GP_ONE}},
     "rq(l=0.2, alpha=1)"},
    {"periodic",
     GP_PERIODIC,
     GP_PERIODIC_GPYTORCH,
     NULL,
     2,
     {{"l", GP_ROLE_SHAPE, GP_PER_COLUMN}, {"p", GP_ROLE_PERIOD, GP_PER_COLUMN}},
     "periodic(l=1, p=12)"},
    {"linear", GP_LINEAR, GP_LINEAR, NULL, 1, {{"v", GP_ROLE_SLOPE, GP_PER_COLUMN}}, "linear(v=1)"},
    {"poly", GP_POLY, GP_POLY, "q", 1, {{"c", GP_ROLE_SHAPE, GP_ONE}}, "poly(q=2, c=1)"},
    {"cosine",
     GP_COSINE,
     GP_COSINE_GPYTORCH,
     NULL,
     1,
     {{"p", GP_ROLE_PERIOD, GP_PER_COLUMN}},
     "cosine(p=12)"},
    {"sm",
     GP_SM,
     GP_SM_GPYTORCH,
     "q",
     3,
     {{"w", GP_ROLE_VARIANCE, GP_PER_COMPONENT},
      {"mu", GP_ROLE_FREQUENCY, GP_PER_BOTH},
      {"v", GP_ROLE_FREQUENCY_VARIANCE, GP_PER_BOTH}},
     "sm(q=3)"},
    {"const", GP_CONST, GP_CONST, NULL, 1, {{"v", GP_ROLE_VARIANCE, GP_ONE}}, "const(v=1)"},
    {"white", GP_WHITE, GP_WHITE, NULL, 1, {{"v", GP_ROLE_NOISE, GP_ONE}}, "white(v=0.1)"},
    {"user", GP_USER, GP_USER, NULL, 1, {{"theta", GP_ROLE_USER, GP_PER_USER}}, "user"},
};
const frgi_gp_group_word frgi_gp_width_word = {"s", GP_ROLE_FREQUENCY_WIDTH, GP_PER_BOTH};

const frgi_gp_leaf_word *frgi_gp_leaf_of(frgi_gp_kind kind)
{
    for (int i = 0; i < GP_LEAVES; i++) {
        if (frgi_gp_leaves[i].kind == kind || frgi_gp_leaves[i].gpytorch == kind) {
            return &frgi_gp_leaves[i];
        }
    }
    return NULL;
}

const frgi_gp_group_word *frgi_gp_group_of(const frgi_gp_leaf_word *leaf, frgi_gp_kind kind, int g)
{
    return kind == GP_SM_GPYTORCH && g == 2 ? &frgi_gp_width_word : &leaf->group[g];
}
