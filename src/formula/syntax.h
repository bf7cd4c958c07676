/* syntax.h - the text of a formula as nodes in postfix order.
 *
 * Children come before their parent and a subtree is the contiguous range [node.begin, node], so
 * that every walk over a formula is a loop with a small stack: nothing recurses but the parser,
 * which has a depth limit.
 */
#ifndef FRGI_SYNTAX_H
#define FRGI_SYNTAX_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

typedef enum {
    NODE_NUMBER,
    NODE_STRING,
    NODE_NAME,   /* a column */
    NODE_CALL,   /* name(arguments) */
    NODE_SLOPES, /* child 0 [ arguments ], a level with its own slopes */
    NODE_ALONE,  /* child 0 [[ arguments ]], slopes without the level */
    NODE_NAMED,  /* name = child 0, an argument */
    NODE_PAREN,
    NODE_NEGATIVE, /* unary minus, plus and not */
    NODE_POSITIVE,
    NODE_NOT,
    NODE_OR, /* the binary operators, loosest first */
    NODE_AND,
    NODE_LESS,
    NODE_LESS_EQUAL,
    NODE_GREATER,
    NODE_GREATER_EQUAL,
    NODE_EQUAL,
    NODE_UNEQUAL,
    NODE_ADD,
    NODE_SUBTRACT,
    NODE_MULTIPLY,
    NODE_DIVIDE,
    NODE_IN,
    NODE_INTERACT, /* : */
    NODE_POWER
} frgi_node_kind;

typedef struct {
    frgi_node_kind kind;
    int32_t children;
    int32_t begin;      /* the first node of the subtree */
    int32_t at, length; /* the subtree's text */
    int32_t name,
        name_length; /* of a name, a call, a named argument; a string without its quotes */
    double value;    /* of a number */
} frgi_node;

enum { FRGI_FORMULA_SECTIONS = 3 };

typedef struct {
    const char *text; /* borrowed */
    const char *what; /* "formula", "subset": stands in messages */
    int32_t length;
    frgi_node *nodes;
    int32_t n_nodes, capacity;
    int32_t left; /* root of the dependent variable, -1: none */
    int n_sections;
    int32_t section[FRGI_FORMULA_SECTIONS];     /* roots right of the tilde, split at the bars */
    int32_t instruments[FRGI_FORMULA_SECTIONS]; /* root after a second tilde in a section, or -1 */
} frgi_syntax;

/** y ~ section | section | section.  E_FORMULA with the column; *s is to be freed in any case. */
FRG_MUST_USE frg_status frgi_syntax_formula(frgi_syntax *s, frg_context *ctx, const char *text,
                                            int64_t length);
/** One expression, its root in section[0]. */
FRG_MUST_USE frg_status frgi_syntax_expression(frgi_syntax *s, frg_context *ctx, const char *text,
                                               int64_t length, const char *what);
void frgi_syntax_free(frgi_syntax *s, frg_context *ctx);

/** The root of child i (0 is the leftmost) of a node. */
int32_t frgi_syntax_child(const frgi_syntax *s, int32_t node, int32_t i);
bool frgi_syntax_is(const frgi_syntax *s, int32_t node, const char *name);
/** Does a column of this name stand at the node? */
bool frgi_syntax_names(const frgi_syntax *s, int32_t node, const char *name);
/** At how many nodes it does. */
int32_t frgi_syntax_count(const frgi_syntax *s, const char *name);
/** c(...) */
bool frgi_syntax_is_set(const frgi_syntax *s, int32_t node);
/** The text of a subtree with R's spacing, "I(x + y^2)"; a bare name loses its backticks. */
FRG_MUST_USE frg_status frgi_syntax_text(const frgi_syntax *s, frg_context *ctx, int32_t node,
                                         frgi_text *out);
/** Fails with `id` at the node: "formula, column 7: 'a/b': MESSAGE". */
FRG_MUST_USE frg_status frgi_syntax_refuse(const frgi_syntax *s, frg_context *ctx, frgi_error id,
                                           int32_t node, const char *message);
/** Sets the place of the next error to the node's column in the text. */
void frgi_syntax_at(const frgi_syntax *s, frg_context *ctx, int32_t node);
/** 1-based column of a byte of the text, UTF-8 sequences counted once. */
int frgi_syntax_column(const frgi_syntax *s, int32_t at);

#pragma GCC visibility pop
#endif
