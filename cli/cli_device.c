/* cli_device.c - what a job has done on a device and what it has left to the host, for JSON and for
 * people. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

device_work device_work_of_demean(const frg_demean_report *r)
{
    return (device_work){r->device_launches, r->device_waits, r->device_bytes_in,
                         r->device_bytes_out};
}

void device_work_json(frg_json *j, device_work w)
{
    frg_json_integer(j, "device_launches", w.launches);
    frg_json_integer(j, "device_waits", w.waits);
    frg_json_integer(j, "device_bytes_in", w.bytes_in);
    frg_json_integer(j, "device_bytes_out", w.bytes_out);
}

void device_work_fact(frg_report *r, const char *passes_on, device_work w)
{
    char text[256], what[96] = "", a[32], b[32], c[32], d[32];
    if (w.launches == 0) {
        return;
    }
    if (passes_on && strcmp(passes_on, "cpu") == 0) {
        snprintf(what, sizeof what, "the iterations alone, residuals and their audit on the cpu; ");
    } else if (passes_on) {
        snprintf(what, sizeof what, "the iterations, residuals and their audit, all on %s; ",
                 passes_on);
    }
    snprintf(text, sizeof text,
             "%s%s kernels and %s waits; %s bytes copied there, %s bytes from there", what,
             grouped(w.launches, a), grouped(w.waits, b), grouped(w.bytes_in, c),
             grouped(w.bytes_out, d));
    frg_report_fact(r, "On the device", text);
}

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
