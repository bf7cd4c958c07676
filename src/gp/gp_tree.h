/* gp_tree.h - the inside of a kernel expression: what the parser leaves and the binding reads.
 *
 * Nodes stand in postfix order, a node after its children, so a loop over them evaluates the tree:
 *
 *     2*rbf*(linear + white)      rbf  linear  white  sum  product  scale
 *
 * A leaf has up to three groups of parameters (l; l and alpha; w, mu and v), each a single number
 * for all columns or a vector.  Columns of a leaf are a stretch of `column`.
 */
#ifndef FRGI_GP_TREE_H
#define FRGI_GP_TREE_H

#include "gp/gp_kernel.h"

#pragma GCC visibility push(hidden)

enum { GP_MAX_NODES = 64, GP_MAX_PARAMETERS = 4096, GP_GROUPS = 3, GP_MAX_DEGREE = 64 };

typedef enum {
    GP_SUM,
    GP_PRODUCT,
    GP_SCALE,  /* group 0: the variance */
    GP_SELECT, /* on(...): its child sees other columns */
    GP_RBF,    /* l */
    GP_MATERN12,
    GP_MATERN32,
    GP_MATERN52,
    GP_RQ,                /* l, alpha */
    GP_PERIODIC,          /* l, p */
    GP_PERIODIC_GPYTORCH, /* l, p */
    GP_LINEAR,            /* v */
    GP_POLY,              /* c */
    GP_COSINE,            /* p */
    GP_COSINE_GPYTORCH,   /* p */
    GP_SM,                /* w, mu, v */
    GP_SM_GPYTORCH,       /* w, mu, s */
    GP_CONST,             /* v */
    GP_WHITE,             /* v */
    GP_USER,              /* theta */
    GP_KINDS
} frgi_gp_kind;

typedef struct {
    int first;   /* parameter of the process */
    int count;   /* 1 for all columns, or one a column (component, component and column) */
    bool vector; /* written as a list */
} frgi_gp_group;

typedef struct {
    frgi_gp_kind kind;
    int begin; /* first node of its subtree */
    int children;
    int degree; /* of poly; components of sm */
    int column; /* first of its columns in frgi_gp_kernel.column */
    int dims;   /* how many */
    int n_groups;
    frgi_gp_group group[GP_GROUPS];
} frgi_gp_node;

struct frgi_gp_kernel {
    frgi_gp_node node[GP_MAX_NODES];
    int n_nodes;
    int n_parameters; /* of the nodes: 0 .. n_parameters - 1 of the process */
    int noise;        /* parameter, -1: no noise(...) */
    ptrdiff_t d;
    int32_t *column;
    int n_column, column_capacity;
    char **names; /* d, for printing on(...) */
    bool has_user;
    frg_gp_user_kernel user;
};

/** How many columns of x have this name; *first: the first of them. */
int frgi_gp_named(const frgi_gp_kernel *k, const char *name, size_t length, ptrdiff_t *first);

/** The i-th child of a node. */
static inline int frgi_gp_child(const frgi_gp_kernel *k, int node, int i)
{
    int child = node - 1;
    for (int c = k->node[node].children - 1; c > i; c--) {
        child = k->node[child].begin - 1;
    }
    return child;
}

static inline bool frgi_gp_is_radial(frgi_gp_kind kind)
{
    return kind >= GP_RBF && kind <= GP_RQ;
}

#pragma GCC visibility pop
#endif
