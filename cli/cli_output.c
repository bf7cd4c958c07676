/* cli_output.c - results to files and standard output, the JSON keys all commands share, numbers as
 * words. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"

double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int terminal_width(void)
{
    struct winsize size;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) {
        return 0;
    }
    return size.ws_col < 40 ? 0 : size.ws_col > 120 ? 120 : size.ws_col;
}

/* ---- writing --------------------------------------------------------------------------------- */

/** Where another result has standard output, the table for people goes beside the messages, or
 *  nowhere with -q. */
static int write_standard_output(const cli *c, const char *text, int64_t length)
{
    const int taken = standard_output_taker(c) != NULL;
    fflush(stdout);
    while (length > 0 && !(taken && c->set.quiet)) {
        const ssize_t put = write(taken ? STDERR_FILENO : STDOUT_FILENO, text, (size_t)length);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0 && errno == EPIPE) {
            return 141; /* the reader has enough: what the shell reports for SIGPIPE */
        }
        if (put < 0) {
            return cli_fail(c, "E_WRITE", "standard output", NULL,
                            "writing standard output failed: %s", strerror(errno));
        }
        text += put;
        length -= put;
    }
    return 0;
}

int write_output(const cli *c, const char *text, int64_t length)
{
    if (!c->set.output || strcmp(c->set.output, "-") == 0) {
        return write_standard_output(c, text, length);
    }
    const frg_status status = frg_write_file(c->ctx, c->set.output, text, length);
    return status < 0 ? cli_fail_library(c, status) : 0;
}

/** Paints every "NOT CONVERGED" red; the words say it without colour too. */
static int write_painted(const cli *c, const char *text)
{
    static const char mark[] = "NOT CONVERGED";
    char *painted = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&painted, &length);
    if (!to) {
        return cli_fail_memory(c);
    }
    const char *at = text;
    for (const char *found; (found = strstr(at, mark)) != NULL; at = found + sizeof mark - 1) {
        fprintf(to, "%.*s\033[1;31m%s\033[0m", (int)(found - at), at, mark);
    }
    fputs(at, to);
    fclose(to);
    const int code = painted ? write_output(c, painted, (int64_t)length) : cli_fail_memory(c);
    free(painted);
    return code;
}

static const frg_report_format formats[] = {
    [FORMAT_TEXT] = FRG_TEXT,   [FORMAT_JSON] = FRG_TEXT, [FORMAT_CSV] = FRG_CSV,
    [FORMAT_MD] = FRG_MARKDOWN, [FORMAT_TEX] = FRG_LATEX,
};

/** The report as --format has it; *empty, where it is asked for: there was nothing to write, as in
 *  csv without a table. */
static int render(cli *c, frg_report *report, int *empty)
{
    const char *text;
    int64_t length;
    const frg_status status =
        frg_report_render(report, formats[c->set.format], terminal_width(), &text, &length);
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    if (empty && (*empty = length == 0)) {
        return 0;
    }
    const int painted = c->color_out && c->set.format == FORMAT_TEXT;
    return painted ? write_painted(c, text) : write_output(c, text, length);
}

int write_report(cli *c, frg_report *report)
{
    return render(c, report, NULL);
}

int write_json(cli *c, frg_json *json)
{
    const char *text;
    int64_t length;
    const frg_status status = frg_json_finish(json, &text, &length);
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    const int code = write_output(c, text, length);
    if (code || (length > 0 && text[length - 1] == '\n')) {
        return code;
    }
    return c->set.output && strcmp(c->set.output, "-") != 0 ? 0 : write_standard_output(c, "\n", 1);
}

/** flat: as csv, where there is no table. */
static int write_object(cli *c, json_writer fill, const void *job, int flat)
{
    frg_json *out;
    const frg_status status = frg_json_create(&out, c->ctx);
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    frg_json_flat(out, flat);
    fill(out, c, job);
    const int code = write_json(c, out);
    frg_json_destroy(out);
    return code;
}

/** fe, gp, alignments and the tour write pages with more in them than their tables. */
static int has_own_page(const cli *c)
{
    return c->command && (c->command->bit & (CMD_FE | CMD_TOUR) ||
                          (c->command->bit == CMD_GP && !(1 << c->job & GP_JOB_BATCH)) ||
                          (c->command->bit == CMD_GW && 1 << c->job & GW_JOB_ALIGN));
}

int write_result(cli *c, const char *title, json_writer json, report_writer text, const void *job)
{
    if (c->set.report && (c->set.dry_run || !has_own_page(c))) {
        const int code = save_plain_page(c, title, text, job);
        if (code) {
            return code;
        }
    }
    if (c->set.format == FORMAT_JSON) {
        return write_object(c, json, job, 0);
    }
    const int warned = frg_warning_count(c->ctx); /* writing csv may warn of what it holds */
    frg_report *out;
    const frg_status status = frg_report_create(&out, c->ctx, title);
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    text(out, c, job);
    int empty = 0;
    int code = render(c, out, c->set.format == FORMAT_CSV ? &empty : NULL);
    if (empty) {
        code = write_object(c, json, job, 1);
    }
    frg_report_destroy(out);
    cli_show_warnings_from(c, warned);
    return code;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void json_head(frg_json *j, const char *schema)
{
    frg_json_open_object(j, NULL);
    frg_json_string(j, "schema", schema);
    frg_json_string(j, "version", frg_version());
}

/** "cpu", "cuda:1", "opencl:0" */
static void device_json(frg_json *j, frg_device device)
{
    char text[32] = "cpu";
    if (device.kind != FRG_CPU) {
        snprintf(text, sizeof text, "%s:%d", device.kind == FRG_CUDA ? "cuda" : "opencl",
                 device.index);
    }
    frg_json_string(j, "device", text);
}

void json_foot(frg_json *j, const cli *c)
{
    const size_t peak = frg_peak_bytes(c->ctx);
    frg_json_integer(j, "peak_bytes", (int64_t)(c->left_bytes > peak ? c->left_bytes : peak));
    frg_json_open_array(j, "warnings");
    for (int i = 0; i < frg_warning_count(c->ctx); i++) {
        frg_json_open_object(j, NULL);
        frg_json_string(j, "code", frg_warning_code(c->ctx, i));
        frg_json_string(j, "message", frg_warning_message(c->ctx, i));
        frg_json_close_object(j);
    }
    frg_json_close_array(j);
    device_json(j, c->set.context.device);
    frg_json_integer(j, "threads", frg_threads(c->ctx));
    const uint64_t seed = frg_seed(c->ctx);
    if (seed <= INT64_MAX) {
        frg_json_integer(j, "seed", (int64_t)seed);
    } else { /* more than a JSON reader's integers hold */
        char digits[24];
        snprintf(digits, sizeof digits, "%llu", (unsigned long long)seed);
        frg_json_string(j, "seed", digits);
    }
    frg_json_close_object(j);
}

void repeats_json(frg_json *j, const cli *c, const double *totals, int n)
{
    if (c->set.repeat > 0) {
        frg_json_open_array(j, "repeats");
        for (int i = 0; i < n; i++) {
            frg_json_number(j, NULL, totals[i]);
        }
        frg_json_close_array(j);
    }
}

/* ---- words ----------------------------------------------------------------------------------- */

const char *grouped(int64_t value, char text[32])
{
    char digits[24];
    const int n = snprintf(digits, sizeof digits, "%lld", (long long)value);
    const int sign = digits[0] == '-';
    int out = 0;
    for (int i = 0; i < n; i++) {
        if (i > sign && (n - i) % 3 == 0) {
            text[out++] = ',';
        }
        text[out++] = digits[i];
    }
    text[out] = '\0';
    return text;
}

const char *short_text(double value, int digits, char text[32])
{
    frg_format_short(value, digits, text);
    return text;
}

const char *bytes_text(double bytes, char text[32])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    while (bytes >= 1024 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, 32, unit == 0 || bytes >= 100 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
    return text;
}

const char *seconds_text(double seconds, char text[32])
{
    if (seconds < 1e-3) {
        snprintf(text, 32, "%.2g ms", 1e3 * seconds);
    } else if (seconds < 1) {
        snprintf(text, 32, "%.3g ms", 1e3 * seconds);
    } else if (seconds < 120) {
        snprintf(text, 32, "%.3g s", seconds);
    } else if (seconds < 7200) {
        snprintf(text, 32, "%.0f min", seconds / 60);
    } else {
        snprintf(text, 32, "%.1f h", seconds / 3600);
    }
    return text;
}
