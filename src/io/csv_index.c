/* csv_index.c - rows and cells by the grammar, byte after byte.
 *
 *     cell  = quoted | plain          quoted = '"' { any byte but '"' | '""' } '"'
 *     plain = bytes other than the delimiter and newline, the first one not '"'
 *
 * It serves the header, the files whose unquoted cells hold quotes (5" disk), and messages.
 */
#include <string.h>

#include "io/csv.h"

DECLARE_LEVELS(frgi_csv_kernels, frgi_csv_kernels);

const frgi_csv_kernels *frgi_csv_kernels_for(const frg_context *ctx)
{
    static const frgi_csv_kernels *const levels[ISA_COUNT] = EACH_LEVEL(&frgi_csv_kernels);
    return levels[frgi_context_isa(ctx)];
}

frgi_cell_end frgi_cell_find_end(const char *s, const char *e, char delimiter, const char **end)
{
    const char *p = s;
    if (p < e && *p == '"') {
        for (p++;; p += 2) {
            p = memchr(p, '"', (size_t)(e - p));
            if (!p) {
                return CELL_OPEN;
            }
            if (p + 1 == e || p[1] != '"') {
                break;
            }
        }
        p++;
        p += p + 1 < e && p[0] == '\r' && p[1] == '\n';
        *end = p;
        if (p < e && *p != delimiter && *p != '\n' && !(*p == '\r' && p + 1 == e)) {
            return CELL_GARBAGE;
        }
    } else {
        while (p < e && *p != delimiter && *p != '\n') {
            p++;
        }
    }
    *end = p;
    return p < e && *p != '\r' ? CELL_WHOLE : CELL_UNFINISHED;
}

static bool is_blank(const char *s, const char *end)
{
    return s == end || (end - s == 1 && *s == '\r');
}

/** Stores the ends of one row's cells; false at the end of the text or of the index. */
static bool index_row(frgi_csv_index *x, char delimiter, int64_t n_columns)
{
    const char *s = x->text + x->used, *const e = x->text + x->count, *end;
    uint32_t *const ends = x->ends + x->rows * n_columns;
    for (int64_t cells = 0;; s = end + 1) {
        const frgi_cell_end how = frgi_cell_find_end(s, e, delimiter, &end);
        if (how != CELL_WHOLE) {
            x->open = how == CELL_OPEN;
            x->end = how == CELL_GARBAGE ? INDEX_GARBAGE : INDEX_DONE;
            x->at = how == CELL_GARBAGE ? end - x->text : x->used;
            return false;
        }
        if (cells < n_columns) {
            if (ends + cells >= x->ends + x->capacity) {
                x->end = INDEX_FULL;
                return false;
            }
            ends[cells] = (uint32_t)(end - x->text);
        }
        cells++;
        if (*end != '\n') {
            continue;
        }
        const bool blank = cells == 1 && is_blank(s, end);
        if (!blank && cells != n_columns) {
            x->end = INDEX_RAGGED;
            x->found = cells;
            x->at = end - x->text;
            return false;
        }
        x->rows += !blank;
        x->used = end + 1 - x->text;
        return true;
    }
}

void frgi_csv_index_slow(frgi_csv_index *x, char delimiter, int64_t n_columns)
{
    x->end = INDEX_DONE;
    x->rows = x->used = x->lines = 0;
    x->open = false;
    while (x->used < x->count && index_row(x, delimiter, n_columns)) {
    }
    for (const char *p = x->text; (p = memchr(p, '\n', (size_t)(x->text + x->used - p))); p++) {
        x->lines++;
    }
}
