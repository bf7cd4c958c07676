/* formula.h - what a formula means: the dependent variable, the terms, the fixed effects.
 *
 * Texts are interned: an atom (a factor of a term, "x", "log(x)", "i(year, ref=1980)") is the id of
 * its text, and nodes[id] is where it first stood in the formula.
 */
#ifndef FRGI_FORMULA_H
#define FRGI_FORMULA_H

#include "formula/names.h"
#include "formula/syntax.h"

#pragma GCC visibility push(hidden)

enum { FRGI_TERM_ATOMS = 8, FRGI_EFFECTS = 64, FRGI_KEY_COLUMNS = 8 };

/** A product of atoms; x1:x2 has two. */
typedef struct {
    int32_t n;
    int32_t atom[FRGI_TERM_ATOMS];
} frgi_term;

/** A joint category, f1^f2: nodes of names. */
typedef struct {
    int32_t name; /* id of "f1^f2" */
    int32_t n;
    int32_t node[FRGI_KEY_COLUMNS];
} frgi_key_spec;

typedef struct {
    frgi_key_spec key;
    bool intercept; /* false: slopes alone, f[[x]] */
} frgi_effect;

typedef struct {
    int32_t effect, name, node;
} frgi_slope_spec;

typedef struct {
    char *text;
    char *written; /* the text with its lags one by one; NULL: there are none */
    frgi_syntax syntax;
    frgi_names names;
    int32_t *nodes; /* of the atoms, by id; -1 for texts that are no atoms */
    int32_t capacity;
    int32_t depvar; /* id */
    bool intercept; /* not switched off by -1 or 0 */
    int32_t n_terms, terms_capacity;
    frgi_term *terms; /* exogenous, endogenous, instruments; each by degree, then in the order
                         written, as in R */
    int32_t n_exogenous, n_endogenous; /* terms before the instruments: all, and 0, without them */
    int n_effects;
    frgi_effect effects[FRGI_EFFECTS]; /* no two with the same key */
    int n_slopes, slopes_capacity;
    frgi_slope_spec *slopes; /* by effect */
} frgi_formula;

/** E_FORMULA with the column, E_UNSUPPORTED with the name of what is not built yet. */
FRG_MUST_USE frg_status frgi_formula_create(frgi_formula *f, frg_context *ctx, const char *text,
                                            int64_t length);
void frgi_formula_destroy(frgi_formula *f, frg_context *ctx);

/** Is this subtree arithmetic that we can evaluate? */
FRG_MUST_USE frg_status frgi_formula_check_expression(const frgi_syntax *s, frg_context *ctx,
                                                      int32_t node);
/** l(x, k), f(x, k) or d(x, k): a column of the panel (lags.c). */
bool frgi_formula_is_lag(const frgi_syntax *s, int32_t node);
/** Its k as of l(): rows back in time; of f() negative. */
int64_t frgi_formula_lag(const frgi_syntax *s, int32_t node);
/** The formula with l(x) as l(x, 1) and l(x, 1:2) as (l(x, 1) + l(x, 2)) into *out, f() and d()
 *  likewise; NULL where it has none of these.  E_FORMULA. */
FRG_MUST_USE frg_status frgi_formula_write_lags(char **out, frg_context *ctx, const char *text,
                                                int64_t length);
/** factor(x), as.factor(x) or C(x): the column as categories, whatever its type. */
bool frgi_formula_is_factor(const frgi_syntax *s, int32_t node);
/** sunab(cohort, period, ...) or sunab_att(cohort, period, ...). */
bool frgi_formula_is_sunab(const frgi_syntax *s, int32_t node);
/** The root of what is given by name to a call, -1 where it is not. */
int32_t frgi_formula_given(const frgi_syntax *s, int32_t node, const char *name);
/** f1^f2^f3, the nodes first .. last; key->name is left alone. */
FRG_MUST_USE frg_status frgi_formula_key(const frgi_syntax *s, frg_context *ctx, int32_t first,
                                         int32_t last, frgi_key_spec *key);
/** Its text, whatever the spacing and parentheses were. */
FRG_MUST_USE frg_status frgi_formula_key_text(const frgi_syntax *s, frg_context *ctx,
                                              const frgi_key_spec *key, frgi_text *out);

#pragma GCC visibility pop
#endif
