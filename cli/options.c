/* options.c - reading of option values, and the words of a default and of a range. */
#include "options.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fourge/report.h"

enum { MAX_NAMES = 128, MAX_WORDS = 1 << 14 };

/* ---- what the library says of its options ---------------------------------------------------- */

/** Names, choices and texts as the program writes them, one after the other. */
static char rewritten[MAX_WORDS];
static size_t rewritten_bytes;

/** A copy of `text` with dashes for underscores: all of them, or those of `names` alone, which
 *  become --names. */
static const char *in_dashes(const char *text, int all)
{
    char *const begin = rewritten + rewritten_bytes;
    int inside = 0;
    if (!strchr(text, '`') && !(all && strchr(text, '_'))) {
        return text;
    }
    const int fits = rewritten_bytes + 2 * strlen(text) < sizeof rewritten;
    assert(fits); /* every option is read by a test; a longer text needs a larger MAX_WORDS */
    if (!fits) {
        return text;
    }
    for (; *text; text++) {
        if (*text == '`' && !inside) {
            rewritten[rewritten_bytes++] = '-';
            rewritten[rewritten_bytes++] = '-';
        } else if (*text != '`') {
            rewritten[rewritten_bytes++] = *text == '_' && (all || inside) ? '-' : *text;
        }
        inside ^= *text == '`';
    }
    rewritten[rewritten_bytes++] = '\0';
    return begin;
}

static void take_row(option_spec *row, const frg_option *o)
{
    static const option_kind kinds[] = {
        [FRG_OPTION_FLAG] = KIND_FLAG,   [FRG_OPTION_INT] = KIND_INT,
        [FRG_OPTION_INT64] = KIND_INT64, [FRG_OPTION_SIZE] = KIND_SIZE,
        [FRG_OPTION_REAL] = KIND_REAL,   [FRG_OPTION_CHOICE] = KIND_CHOICE,
        [FRG_OPTION_TEXT] = KIND_TEXT,   [FRG_OPTION_DATA] = KIND_TEXT};
    if (row->choices) { /* words for the values of a flag */
        row->kind = KIND_CHOICE;
    } else if (row->kind == KIND_FLAG) {
        row->kind = kinds[o->type];
    }
    if (!row->name) {
        row->name = in_dashes(o->name, 1);
    }
    if (row->low == row->high) {
        row->low = o->low;
        row->high = o->high;
        row->open = o->open;
    }
    if (!row->choices && o->choices) {
        row->choices = row->dashes ? in_dashes(o->choices, 1) : o->choices;
    }
    if (!row->help) {
        row->help = in_dashes(o->text, row->dashes);
    }
}

void options_open(void)
{
    for (option_spec *row = option_table; row->name || row->of; row++) {
        const frg_option *o = row->of ? row->of() : NULL;
        while (o && o->name && o->offset != row->place) {
            o++;
        }
        assert(!o || o->name); /* a row of the program has one of the library */
        if (o && o->name) {
            take_row(row, o);
            row->of = NULL;
        }
    }
}

void settings_defaults(settings *s)
{
    memset(s, 0, sizeof *s);
    frg_context_defaults(&s->context, sizeof s->context);
    s->context.count_from = 1; /* rows of files, as editors show them */
    frg_fe_defaults(&s->fe, sizeof s->fe);
    frg_leave_out_defaults(&s->studies.leave_out, sizeof s->studies.leave_out);
    frg_ritest_defaults(&s->studies.ritest, sizeof s->studies.ritest);
    frg_lpdid_defaults(&s->studies.lpdid, sizeof s->studies.lpdid);
    frg_table_defaults(&s->table, sizeof s->table);
    frg_gp_defaults(&s->gp, sizeof s->gp);
    frg_gp_fit_defaults(&s->gp_fit, sizeof s->gp_fit);
    frg_gw_defaults(&s->gw.align, sizeof s->gw.align);
    frg_sinkhorn_defaults(&s->gw.sinkhorn, sizeof s->gw.sinkhorn);
    s->gw.top = 1;
    s->gw.dimensions = 2;
    s->fe.n_vcov =
        0; /* the first --vcov replaces the default; command_fe puts it back where none came */
    s->design.rows = 1e6;
    frg_soap_defaults(&s->soap, sizeof s->soap, FRG_SOAP_EMERGING);
    s->soap_job.layers = 12;
    s->soap_job.hidden = 256;
    s->soap_job.mlp = 1024;
    s->soap_job.steps = 20;
    s->soap_job.warmup = 3;
    s->soap_job.batched = 1;
}

/* ---- finding --------------------------------------------------------------------------------- */

const command_spec *find_command(const char *name)
{
    for (const command_spec *k = command_table; k->name; k++) {
        if (strcmp(k->name, name) == 0) {
            return k;
        }
    }
    return NULL;
}

const option_spec *find_option(const char *name, size_t length, unsigned mask)
{
    for (const option_spec *o = option_table; o->name; o++) {
        if (o->commands & mask && strlen(o->name) == length && memcmp(o->name, name, length) == 0) {
            return o;
        }
    }
    return NULL;
}

const char *nearest_option(const char *name, size_t length, unsigned mask)
{
    const char *names[MAX_NAMES];
    int n = 0;
    for (const option_spec *o = option_table; o->name && n < MAX_NAMES; o++) {
        if (o->commands & mask) {
            names[n++] = o->name;
        }
    }
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)(length < 63 ? length : 63), name);
    return frg_nearest_name(word, names, n);
}

const char *nearest_command(const char *name)
{
    const char *names[MAX_NAMES];
    int n = 0;
    for (const command_spec *k = command_table; k->name && n < MAX_NAMES; k++) {
        names[n++] = k->name;
    }
    return frg_nearest_name(name, names, n);
}

/* ---- lists of words -------------------------------------------------------------------------- */

int place_of(const char *list, const char *word)
{
    const size_t length = strlen(word);
    int i = 0;
    for (const char *at = list; at; i++) {
        const char *bar = strchr(at, '|');
        const size_t size = bar ? (size_t)(bar - at) : strlen(at);
        if (size == length && memcmp(at, word, size) == 0) {
            return i;
        }
        at = bar ? bar + 1 : NULL;
    }
    return -1;
}

const char *nearest_of(const char *list, const char *word, char room[256])
{
    const char *words[16];
    int n = 0;
    if (!list || strlen(word) < 3) { /* shorter words are near to everything */
        return NULL;
    }
    snprintf(room, 256, "%s", list);
    for (char *at = room; at && n < 16;) {
        words[n++] = at;
        at = strchr(at, '|');
        if (at) {
            *at++ = '\0';
        }
    }
    const char *near = frg_nearest_name(word, words, n);
    return near && strlen(near) >= 3 ? near : NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

int option_takes_value(const option_spec *o)
{
    return o->kind != KIND_FLAG && o->kind != KIND_COUNT;
}

size_t option_bytes(const option_spec *o)
{
    return o->kind == KIND_REAL    ? sizeof(double)
           : o->kind == KIND_INT64 ? sizeof(int64_t)
                                   : sizeof(int);
}

static int has_range(const option_spec *o)
{
    return o->low < o->high;
}

static int in_range(const option_spec *o, double x)
{
    return !has_range(o) ||
           ((o->open & 1 ? x > o->low : x >= o->low) && (o->open & 2 ? x < o->high : x <= o->high));
}

static int read_real(const char *text, double *out)
{
    char *end;
    errno = 0;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && !isnan(*out) && !(errno == ERANGE && isinf(*out));
}

/** Whole numbers in plain digits, or like 1e6 where that is whole. */
static int read_whole(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (end != text && *end == '\0' && errno == 0) {
        return 1;
    }
    double x;
    if (!read_real(text, &x) || x != floor(x) || fabs(x) > 9e15) {
        return 0;
    }
    *out = (int64_t)x;
    return 1;
}

static int read_unsigned(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

/** "4G", "512M", "1.5G", "100000": powers of 1024; a B or iB may follow the suffix. */
static int read_bytes(const char *text, int64_t *out)
{
    char *end;
    const double x = strtod(text, &end);
    if (end == text || !(x >= 0)) {
        return 0;
    }
    static const char suffixes[] = "KMGT";
    double scale = 1;
    if (*end) {
        const char upper = (char)(*end >= 'a' && *end <= 'z' ? *end - 32 : *end);
        const char *found = strchr(suffixes, upper);
        if (found) {
            scale = ldexp(1, 10 * (int)(found - suffixes + 1));
            end++;
            end += *end == 'i';
        }
        end += *end == 'B' || *end == 'b';
    }
    if (*end || x * scale > 9e18) {
        return 0;
    }
    *out = (int64_t)(x * scale);
    return 1;
}

static const char *wanted(const option_spec *o, const char *what, char expected[256])
{
    char range[64];
    option_range_text(o, range, sizeof range);
    snprintf(expected, 256, "%s%s%s", what, *range ? " " : "", range);
    return expected;
}

const char *option_store(const option_spec *o, settings *s, const char *value, char expected[256])
{
    char *at = (char *)s + o->field;
    switch (o->kind) {
    case KIND_FLAG:
        *(int *)at = 1;
        return NULL;
    case KIND_COUNT:
        ++*(int *)at;
        return NULL;
    case KIND_TEXT:
    case KIND_INPUT:
    case KIND_OUTPUT:
        *(const char **)at = value;
        return NULL;
    case KIND_CHOICE: {
        const int place = place_of(o->choices, value);
        if (place >= 0) {
            *(int *)at = place;
            return NULL;
        }
        snprintf(expected, 256, "one of %s", o->choices);
        return expected;
    }
    case KIND_INT:
    case KIND_INT64: {
        int64_t x;
        if (!read_whole(value, &x) || !in_range(o, (double)x) ||
            (o->kind == KIND_INT && x != (int64_t)(int)x)) {
            return wanted(o, "a whole number", expected);
        }
        if (o->kind == KIND_INT) {
            *(int *)at = (int)x;
        } else {
            *(int64_t *)at = x;
        }
        return NULL;
    }
    case KIND_UINT64:
        return read_unsigned(value, (uint64_t *)at)
                   ? NULL
                   : wanted(o, "a whole number from 0 to 18446744073709551615", expected);
    case KIND_REAL: {
        double x;
        if (!read_real(value, &x) || !in_range(o, x)) {
            return wanted(o, "a number", expected);
        }
        *(double *)at = x;
        return NULL;
    }
    case KIND_BYTES:
    case KIND_SIZE: {
        int64_t x;
        if (!read_bytes(value, &x)) {
            return wanted(o, "a number of bytes like 500M or 4G", expected);
        }
        if (o->kind == KIND_SIZE) {
            *(size_t *)at = (size_t)x;
        } else {
            *(int64_t *)at = x;
        }
        return NULL;
    }
    case KIND_LIST: {
        int *n = (int *)((char *)s + o->count);
        if (*n >= o->limit) {
            snprintf(expected, 256, "at most %d of them", o->limit);
            return expected;
        }
        ((const char **)at)[(*n)++] = value;
        return NULL;
    }
    case KIND_DEVICE:
        return frg_device_parse(value, (frg_device *)at) == FRG_OK
                   ? NULL
                   : wanted(o, "cpu, cuda, cuda:0, opencl or opencl:0", expected);
    }
    return NULL;
}

/* ---- words for the help ---------------------------------------------------------------------- */

void option_range_text(const option_spec *o, char *text, size_t room)
{
    text[0] = '\0';
    if (!has_range(o)) {
        return;
    }
    if (isinf(o->high) || o->high >= 1e15) {
        snprintf(text, room, "%s %.10g", o->open & 1 ? ">" : ">=", o->low);
    } else if (o->open == 3) {
        snprintf(text, room, "between %.10g and %.10g", o->low, o->high);
    } else {
        snprintf(text, room, "from %.10g to %.10g", o->low, o->high);
    }
}

static void choice_text(const char *choices, int index, char *text, size_t room)
{
    const char *at = choices;
    for (int i = 0; at && i < index; i++) {
        at = strchr(at, '|');
        at = at ? at + 1 : NULL;
    }
    const char *bar = at ? strchr(at, '|') : NULL;
    const size_t length = !at ? 0 : bar ? (size_t)(bar - at) : strlen(at);
    snprintf(text, room, "%.*s", (int)length, at ? at : "");
}

void option_default_text(const option_spec *o, const settings *defaults, char *text, size_t room)
{
    if (o->fallback) {
        snprintf(text, room, "%s", o->fallback);
    } else {
        option_value_text(o, defaults, text, room);
    }
}

static void real_text(double value, char *text, size_t room)
{
    char exact[32];
    frg_format_double(value, exact);
    snprintf(text, room, "%s", isinf(value) ? value > 0 ? "inf" : "-inf" : exact);
}

void option_value_text(const option_spec *o, const settings *s, char *text, size_t room)
{
    const char *at = (const char *)s + o->field;
    text[0] = '\0';
    switch (o->kind) {
    case KIND_CHOICE:
        choice_text(o->choices, *(const int *)at, text, room);
        break;
    case KIND_INT:
        snprintf(text, room, "%d", *(const int *)at);
        break;
    case KIND_INT64:
    case KIND_BYTES:
        snprintf(text, room, "%" PRId64, *(const int64_t *)at);
        break;
    case KIND_UINT64:
        snprintf(text, room, "%" PRIu64, *(const uint64_t *)at);
        break;
    case KIND_SIZE:
        snprintf(text, room, "%zu", *(const size_t *)at);
        break;
    case KIND_REAL:
        real_text(*(const double *)at, text, room);
        break;
    case KIND_FLAG:
    case KIND_COUNT:
    case KIND_TEXT:
    case KIND_INPUT:
    case KIND_OUTPUT:
    case KIND_LIST:
    case KIND_DEVICE:
        break;
    }
}

int option_words(const option_spec *o, const settings *s, const char *words[], int most,
                 char number[64])
{
    const char *const *const texts = (const char *const *)((const char *)s + o->field);
    const int n = o->kind == KIND_LIST ? *(const int *)((const char *)s + o->count) : 1;
    words[0] = number;
    switch (o->kind) {
    case KIND_FLAG:
        snprintf(number, 64, "%s", *(const int *)texts ? "yes" : "no");
        return 1;
    case KIND_TEXT:
    case KIND_INPUT:
    case KIND_OUTPUT:
    case KIND_LIST:
        for (int i = 0; i < n && i < most; i++) {
            words[i] = texts[i];
        }
        return n > 0 && texts[0] ? (n < most ? n : most) : 0;
    default:
        option_value_text(o, s, number, 64);
        return *number != '\0';
    }
}
