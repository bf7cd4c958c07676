/* gp_scan.h - tokens, numbers, values and the vocabulary of kernel expressions, and messages that
 * name their place. */
#ifndef FRGI_GP_SCAN_H
#define FRGI_GP_SCAN_H

#include "core/core.h"
#include "gp/gp_tree.h"
#include "io/decimal.h"

#pragma GCC visibility push(hidden)

enum { GP_WORD_LENGTH = 31 };

typedef enum {
    TOKEN_END,
    TOKEN_NUMBER,
    TOKEN_NAME,
    TOKEN_STRING,
    TOKEN_SIGN,
    TOKEN_BAD
} frgi_gp_token_kind;

typedef struct {
    frgi_gp_token_kind kind;
    int at, length;
} frgi_gp_token;

typedef struct {
    frg_context *ctx;
    const char *text;
    int length;
    frgi_gp_token now;
    frgi_decimal *decimal; /* opened for the first number that needs it */
} frgi_gp_scan;

/** A number with its suffix, as in 0.5! or 0.5 in(0.1,2) or in(0.1,2); or the parameter to follow,
 *  as in @rbf.l or @rbf.l[2]. */
typedef struct {
    double value, lower, upper; /* NaN: not given */
    bool fixed;
    frgi_gp_token tie; /* its name; of no length: none */
    int entry;         /* of a vector, from 0; -1: none is named */
} frgi_gp_written;

static const frgi_gp_written frgi_gp_not_written = {
    __builtin_nan(""), __builtin_nan(""), __builtin_nan(""), false, {TOKEN_END, 0, 0}, -1};

bool frgi_gp_is_digit(char c);
bool frgi_gp_is_letter(char c);
frgi_gp_token frgi_gp_lex(const frgi_gp_scan *p, int i);
void frgi_gp_advance(frgi_gp_scan *p);
bool frgi_gp_shows(const frgi_gp_scan *p, char sign);
bool frgi_gp_is_word(const frgi_gp_scan *p, const frgi_gp_token *t, const char *word);
/** The word of a token as a string, cut. */
void frgi_gp_spell(const frgi_gp_scan *p, const frgi_gp_token *t, char out[GP_WORD_LENGTH + 1]);
/** Column of a byte, counted in characters from 1; the place is set for the next failure. */
int frgi_gp_locate(const frgi_gp_scan *p, int byte);
/** The error "expected ..., found ..." at the current token. */
frg_status frgi_gp_unexpected(const frgi_gp_scan *p, const char *expected);
FRG_MUST_USE frg_status frgi_gp_expect(frgi_gp_scan *p, char sign, const char *expected);
FRG_MUST_USE frg_status frgi_gp_read_number(frgi_gp_scan *p, const frgi_gp_token *t, double *out);
FRG_MUST_USE frg_status frgi_gp_parse_value(frgi_gp_scan *p, frgi_gp_written *v);

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
