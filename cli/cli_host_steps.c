/* cli_host_steps.c - what a run on a device has left to the host: for JSON and for people. */
#include "cli.h"

void host_steps_json(frg_json *j, const frg_host_steps *s)
{
    frg_json_open_object(j, "host_steps");
    for (int64_t i = 0; i < s->count; i++) {
        frg_json_integer(j, s->steps[i].name, s->steps[i].calls);
    }
    frg_json_close_object(j);
}

void host_steps_table(frg_report *r, const frg_host_steps *s)
{
    if (s->count == 0) {
        return;
    }
    frg_report_table_open(r, "Left to the host");
    frg_report_table_column(r, "step", FRG_LEFT);
    frg_report_table_column(r, "calls", FRG_RIGHT);
    for (int64_t i = 0; i < s->count; i++) {
        frg_report_cell_text(r, s->steps[i].name);
        frg_report_cell_integer(r, s->steps[i].calls);
    }
    frg_report_table_close(r);
}
