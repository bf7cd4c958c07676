/* opts.c - what is done with every struct of options alike, by its table. */
#include "core/opts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fourge/checkpoint.h"

/** The number in a field; of a text and of data 0. */
static double number_in(const frg_option *o, const void *opts)
{
    const char *const at = (const char *)opts + o->offset;
    switch (o->type) {
    case FRG_OPTION_FLAG:
    case FRG_OPTION_INT:
    case FRG_OPTION_CHOICE:
        return *(const int *)(const void *)at;
    case FRG_OPTION_INT64:
        return (double)*(const int64_t *)(const void *)at;
    case FRG_OPTION_SIZE:
        return (double)*(const size_t *)(const void *)at;
    case FRG_OPTION_REAL:
        return *(const double *)(const void *)at;
    case FRG_OPTION_TEXT:
    case FRG_OPTION_DATA:
        break;
    }
    return 0;
}

void frgi_options_set(const frg_option *table, void *opts)
{
    for (const frg_option *o = table; o->name; o++) {
        char *const at = (char *)opts + o->offset;
        switch (o->type) {
        case FRG_OPTION_FLAG:
        case FRG_OPTION_INT:
        case FRG_OPTION_CHOICE:
            *(int *)(void *)at = (int)o->value;
            break;
        case FRG_OPTION_INT64:
            *(int64_t *)(void *)at = (int64_t)o->value;
            break;
        case FRG_OPTION_REAL:
            *(double *)(void *)at = o->value;
            break;
        case FRG_OPTION_TEXT:
            *(const char **)(void *)at = o->words;
            break;
        case FRG_OPTION_SIZE:
        case FRG_OPTION_DATA:
            break;
        }
    }
}

void frgi_options_give(void *o, size_t struct_size, void *known, size_t known_bytes)
{
    memcpy(known, &struct_size, sizeof struct_size);
    memcpy(o, known, struct_size < known_bytes ? struct_size : known_bytes);
}

static int count_of(const char *choices)
{
    int n = 1;
    for (const char *at = choices; *at; at++) {
        n += *at == '|';
    }
    return n;
}

static frg_status check_choice(frg_context *ctx, const frg_option *o, double v)
{
    if (!(v >= 0 && v < count_of(o->choices))) {
        FAIL(ctx, E_OPTION, "%s is %.15g, it must be >= 0 and <= %d, which stand for %s", o->name,
             v, count_of(o->choices) - 1, o->choices);
    }
    return FRG_OK;
}

/** text (of `bytes`) <- the range in words, with 15 digits: a value beside a limit is not printed
 *  as the limit. */
static void name_range(const frg_option *o, char *text, size_t bytes)
{
    const char *const low = o->open & 1 ? ">" : ">=", *const high = o->open & 2 ? "<" : "<=";
    if (isinf(o->high)) {
        snprintf(text, bytes, "%s %.15g", low, o->low);
    } else {
        snprintf(text, bytes, "%s %.15g and %s %.15g", low, o->low, high, o->high);
    }
}

static frg_status check_number(frg_context *ctx, const frg_option *o, double v)
{
    const bool above = o->open & 1 ? v > o->low : v >= o->low;
    const bool below = o->open & 2 ? v < o->high : v <= o->high;
    if (!above || !below) {
        char range[80];
        name_range(o, range, sizeof range);
        FAIL(ctx, E_OPTION, "%s is %.15g, it must be %s", o->name, v, range);
    }
    return FRG_OK;
}

frg_status frgi_options_check(frg_context *ctx, const frg_option *table, const void *opts)
{
    for (const frg_option *o = table; o->name; o++) {
        const double v = number_in(o, opts);
        if (o->type == FRG_OPTION_CHOICE) {
            TRY(check_choice(ctx, o, v));
        } else if (o->low < o->high) {
            TRY(check_number(ctx, o, v));
        }
    }
    return FRG_OK;
}

uint64_t frgi_options_hash(const frg_option *table, const void *opts, uint64_t h)
{
    for (const frg_option *o = table; o->name; o++) {
        if (!o->decides_bits || o->type == FRG_OPTION_DATA) {
            continue;
        }
        const double v = number_in(o, opts);
        h = frg_hash(h, &v, sizeof v);
        if (o->type == FRG_OPTION_TEXT) {
            const char *const text =
                *(const char *const *)(const void *)((const char *)opts + o->offset);
            h = text ? frg_hash(h, text, (int64_t)strlen(text)) : h;
        }
    }
    return h;
}
