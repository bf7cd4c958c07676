/* cli_plan.c - where the solver of --plan came from, or went to: for JSON and for people. */
#include "cli.h"

void plan_json(frg_json *j, const char *file, int read, int written)
{
    if (file) {
        frg_json_open_object(j, "plan");
        frg_json_string(j, "file", file);
        frg_json_bool(j, "read", read);
        frg_json_bool(j, "written", written);
        frg_json_close_object(j);
    }
}

void plan_fact(frg_report *r, const char *file, int read, int written)
{
    if (file) {
        char text[320];
        snprintf(text, sizeof text, "%s %.240s",
                 read      ? "read from"
                 : written ? "made and written to"
                           : "made, and not written to",
                 file);
        frg_report_fact(r, "Plan", text);
    }
}
