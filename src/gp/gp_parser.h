/* gp_parser.h - what the two halves of the parser share: sums, products and columns (gp_expr.c),
 * leaves and parameters (gp_expr_leaf.c). */
#ifndef FRGI_GP_PARSER_H
#define FRGI_GP_PARSER_H

#include "gp/gp_scan.h"

#pragma GCC visibility push(hidden)

typedef struct {
    frgi_gp_scan scan;
    int depth;
    frgi_gp_kernel *k;
    frgi_gp_params *params;
    int column, dims; /* what leaves see here */
    int uses[GP_LEAVES];
    int scales;
} frgi_gp_parser;

/** Appends a node, which sees the columns that are seen here. */
FRG_MUST_USE frg_status frgi_gp_push_node(frgi_gp_parser *p, frgi_gp_node node);
/** Appends a parameter as it was written; entry, column -1: it has none. */
FRG_MUST_USE frg_status frgi_gp_add_parameter(frgi_gp_parser *p, const char *name,
                                              frgi_gp_role role, int entry, int column,
                                              frgi_gp_written v, double factor);
/** The variance of a product: "scale", then "scale2". */
FRG_MUST_USE frg_status frgi_gp_add_scale(frgi_gp_parser *p, frgi_gp_written v, int *parameter);
/** From a leaf's name, which is `word`, to the end of its arguments. */
FRG_MUST_USE frg_status frgi_gp_parse_leaf(frgi_gp_parser *p, const frgi_gp_leaf_word *word);

#pragma GCC visibility pop
#endif
