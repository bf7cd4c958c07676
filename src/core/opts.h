/* opts.h - structs of options by their tables: defaults, checks, and the hash of what decides
 * the bits of a result.
 *
 * The file NAME_opts.def of a room has one row for each field of frg_NAME_opts, in the order of the
 * struct; the room includes it once, between
 *
 *     #define OPTIONS_OF frg_NAME_opts
 *     static const frg_option rows[] = {
 *     #include "room/NAME_opts.def"
 *         {.name = NULL}};
 *
 * and frg_NAME_options() hands the table out.  Everything else that knows an option by its name
 * reads it from there.
 */
#ifndef FRGI_OPTS_H
#define FRGI_OPTS_H

#include <math.h>

#include "core/core.h"

/* The columns of a row: field, default, range or choices, whether it decides bits, one line. */
enum { DECIDES = 1, SAME_BITS = 0 };
#define OPTION_ROW(field, type_, decides_, text_)                                                  \
    .name = #field, .type = (type_), .decides_bits = (decides_),                                   \
    .offset = offsetof(OPTIONS_OF, field), .text = (text_)
/** A range is low <= x <= high; open 1 leaves low itself out, 2 high, 3 both. */
#define OPTION_NUMBER(field, type_, value_, low_, high_, open_, decides_, text_)                   \
    {OPTION_ROW(field, type_, decides_, text_), .value = (double)(value_), .low = (double)(low_),  \
     .high = (double)(high_), .open = (open_)},
#define OPTION_REAL(field, ...)  OPTION_NUMBER(field, FRG_OPTION_REAL, __VA_ARGS__)
#define OPTION_INT(field, ...)   OPTION_NUMBER(field, FRG_OPTION_INT, __VA_ARGS__)
#define OPTION_INT64(field, ...) OPTION_NUMBER(field, FRG_OPTION_INT64, __VA_ARGS__)
#define OPTION_FLAG(field, value_, decides_, text_)                                                \
    {OPTION_ROW(field, FRG_OPTION_FLAG, decides_, text_), .value = (value_)},
#define OPTION_CHOICE(field, value_, choices_, decides_, text_)                                    \
    {OPTION_ROW(field, FRG_OPTION_CHOICE, decides_, text_), .value = (value_),                     \
     .choices = (choices_)},
#define OPTION_TEXT(field, words_, decides_, text_)                                                \
    {OPTION_ROW(field, FRG_OPTION_TEXT, decides_, text_), .words = (words_)},
#define OPTION_SIZE(field, decides_, text_) {OPTION_ROW(field, FRG_OPTION_SIZE, decides_, text_)},
#define OPTION_DATA(field, decides_, text_) {OPTION_ROW(field, FRG_OPTION_DATA, decides_, text_)},

/** A zeroed struct's fields to their defaults. */
void frgi_options_set(const frg_option *table, void *opts);
/** The end of a _defaults function: o <- the first struct_size bytes of `known`, struct_size its
 *  own. */
void frgi_options_give(void *o, size_t struct_size, void *known, size_t known_bytes);
/** E_OPTION for the first number outside its range and the first choice that is none. */
FRG_MUST_USE frg_status frgi_options_check(frg_context *ctx, const frg_option *table,
                                           const void *opts);
/** Of the values of all fields that decide bits, but what FRG_OPTION_DATA points to. */
uint64_t frgi_options_hash(const frg_option *table, const void *opts, uint64_t h);

#endif
