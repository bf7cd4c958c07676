/* gp_words.h - the vocabulary of kernel expressions: leaves, their parameters, and how many entries
 * these have. */
#ifndef FRGI_GP_WORDS_H
#define FRGI_GP_WORDS_H

#include "gp/gp_tree.h"

#pragma GCC visibility push(hidden)

enum { GP_LEAVES = 13 };

/** How many entries a group has when it is a vector. */
typedef enum { GP_ONE, GP_PER_COLUMN, GP_PER_COMPONENT, GP_PER_BOTH, GP_PER_USER } frgi_gp_spread;

typedef struct {
    const char *name;
    frgi_gp_role role;
    frgi_gp_spread spread;
} frgi_gp_group_word;

typedef struct {
    const char *name;
    frgi_gp_kind kind;
    frgi_gp_kind gpytorch; /* with form=gpytorch, the same where there is none */
    const char *counts;    /* name of an integer argument, NULL: none */
    int n_groups;
    frgi_gp_group_word group[GP_GROUPS];
    const char *example;
} frgi_gp_leaf_word;

extern const frgi_gp_leaf_word frgi_gp_leaves[GP_LEAVES];
/** With form=gpytorch the third group of sm is a width, not a variance. */
extern const frgi_gp_group_word frgi_gp_width_word;

/** The word of a leaf's kind. */
const frgi_gp_leaf_word *frgi_gp_leaf_of(frgi_gp_kind kind);
const frgi_gp_group_word *frgi_gp_group_of(const frgi_gp_leaf_word *leaf, frgi_gp_kind kind, int g);

#pragma GCC visibility pop
#endif
