/* report_cells.c - cells as words, and the lining up of decimal points.
 *
 * In a right-aligned column 0.12 should stand over 10.3 with the points in one line.  The `tail` of
 * a cell is what stands from its decimal point on, brackets and stars included; each cell is pushed
 * to the left by the difference to the longest tail of its column:
 *
 *      0.1234***        tail 8
 *     (0.0213)          tail 6, pushed by 2
 *        yes            not a number: stays at the right edge
 *
 * Scientific notation is left out: its point lines up with nothing.
 */
#include <stdio.h>
#include <string.h>

#include "report/report_parts.h"

const char *frgi_cell_words(const frgi_cell *c, char buffer[32])
{
    if (c->kind == CELL_TEXT)
        return c->text;
    if (c->kind == CELL_NUMBER)
        frg_format_short(c->number, c->digits, buffer);
    else
        snprintf(buffer, 32, "%lld", (long long)c->integer);
    return buffer;
}

static int skip(const char *s, int at, const char *set)
{
    return at + (int)strspn(s + at, set);
}

bool frgi_number_split(const char *s, frgi_number_parts *p)
{
    static const char digits[] = "0123456789";
    int at = skip(s, 0, "([<>");
    if (at > 1 || strlen(s) > 64)
        return false;
    p->sign = s[at] == '-' ? at : -1;
    at += s[at] == '-' || s[at] == '+';
    p->whole = at;
    p->point = at = skip(s, at, digits);
    if (at == p->whole)
        return false;
    if (s[at] == '.')
        at = skip(s, at + 1, digits);
    p->mantissa = at;
    p->exponent = -1;
    p->negative = false;
    if (s[at] == 'e' || s[at] == 'E') {
        const int sign = at + 1, first = sign + (s[sign] == '-' || s[sign] == '+');
        const int last = skip(s, first, digits);
        if (last > first) {
            p->negative = s[sign] == '-';
            p->exponent = first;
            while (s[p->exponent] == '0' && p->exponent + 1 < last) /* printf writes two figures */
                p->exponent++;
            at = last;
        }
    }
    p->end = at;
    return s[skip(s, at, ")]*+%")] == '\0';
}

bool frgi_cell_tail(const frgi_report_table *t, int64_t cell, int64_t *tail)
{
    char buffer[32];
    frgi_number_parts p;
    *tail = 0;
    if (t->columns[cell % t->n_columns].align != FRG_RIGHT)
        return false;
    const char *const s = frgi_cell_words(&t->cells[cell], buffer);
    if (!frgi_number_split(s, &p) || p.exponent >= 0)
        return false;
    *tail = (int64_t)strlen(s + p.point);
    return true;
}

int64_t frgi_column_tail(const frgi_report_table *t, int64_t column)
{
    int64_t longest = 0;
    for (int64_t i = column; i < t->n_cells; i += t->n_columns) {
        int64_t tail;
        if (frgi_cell_tail(t, i, &tail) && tail > longest)
            longest = tail;
    }
    return longest;
}
