/* cli_subproblems.c - what became of the components of a design that were solved apart: for JSON
 * and for people. */
#include "cli.h"

void subproblems_json(frg_json *j, const frg_demean_part *subproblems, int64_t n)
{
    frg_json_open_array(j, "parts");
    for (int64_t i = 0; i < n; i++) {
        const frg_demean_part *const p = &subproblems[i];
        frg_json_open_object(j, NULL);
        frg_json_integer(j, "n", p->n);
        frg_json_integer(j, "levels", p->levels);
        frg_json_integer(j, "components", p->components);
        frg_json_string(j, "method", p->method);
        frg_json_integer(j, "iterations", p->iterations);
        frg_json_number(j, "audit", p->audit);
        frg_json_close_object(j);
    }
    frg_json_close_array(j);
}

void subproblems_table(frg_report *r, const frg_demean_part *subproblems, int64_t n)
{
    static const struct {
        const char *name;
        frg_align align;
    } columns[] = {{"rows", FRG_RIGHT},  {"levels", FRG_RIGHT},     {"components", FRG_RIGHT},
                   {"method", FRG_LEFT}, {"iterations", FRG_RIGHT}, {"audit", FRG_RIGHT}};
    if (n == 0) {
        return;
    }
    frg_report_table_open(r, "Components solved apart");
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        frg_report_table_column(r, columns[c].name, columns[c].align);
    }
    for (int64_t i = 0; i < n; i++) {
        const frg_demean_part *const p = &subproblems[i];
        frg_report_cell_integer(r, p->n);
        frg_report_cell_integer(r, p->levels);
        frg_report_cell_integer(r, p->components);
        frg_report_cell_text(r, p->method);
        frg_report_cell_integer(r, p->iterations);
        frg_report_cell_number(r, p->audit, 2);
    }
    frg_report_table_close(r);
}
