/* cmd_simulate.c - `fourge simulate`: writes a simulated design as a csv table or as npy arrays.
 *
 *     --out FILE.csv    y, x1, ..., ids, and w where the design has weights
 *     --out FOLDER      columns.npy (n, p) f64, codes.npy (n, Q) int32, and weights.npy
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli_worker.h"
#include "simulate/simulate.h"

/* ---- parameters ------------------------------------------------------------------------------ */

static int parameter_index(const design *k, const char *name, size_t length)
{
    for (int i = 0; i < MAX_PARAMETERS && k->parameters[i].name; i++) {
        if (strlen(k->parameters[i].name) == length &&
            memcmp(k->parameters[i].name, name, length) == 0) {
            return i;
        }
    }
    return -1;
}

static int unknown_parameter(const cli *c, const design *k, const char *name, size_t length)
{
    const char *names[MAX_PARAMETERS];
    int n = 0;
    for (; n < MAX_PARAMETERS && k->parameters[n].name; n++) {
        names[n] = k->parameters[n].name;
    }
    char word[64], hint[160];
    snprintf(word, sizeof word, "%.*s", (int)(length < 63 ? length : 63), name);
    const char *near = frg_nearest_name(word, names, n);
    snprintf(hint, sizeof hint, "%s%s",
             near ? "did you mean " : "fourge simulate lists the parameters", near ? near : "");
    return cli_fail(c, "E_OPTION", "--set", hint, "--set: the design %s has no parameter '%s'",
                    k->name, word);
}

int design_parameters(const cli *c, const design *k, double values[MAX_PARAMETERS])
{
    for (int i = 0; i < MAX_PARAMETERS; i++) {
        values[i] = k->parameters[i].value;
    }
    for (int i = 0; i < c->set.design.n_set; i++) {
        const char *text = c->set.design.set[i], *equals = strchr(text, '=');
        if (!equals) {
            return cli_fail(c, "E_OPTION", "--set", "", "--set takes NAME=VALUE, got '%s'", text);
        }
        const int at = parameter_index(k, text, (size_t)(equals - text));
        if (at < 0) {
            return unknown_parameter(c, k, text, (size_t)(equals - text));
        }
        const design_parameter *p = &k->parameters[at];
        char *end;
        values[at] = strtod(equals + 1, &end);
        if (end == equals + 1 || *end || !(values[at] >= p->low && values[at] <= p->high)) {
            return cli_fail(c, "E_OPTION", "--set", "",
                            "--set %s takes a number from %.10g to %.10g, got '%s'", p->name,
                            p->low, p->high, equals + 1);
        }
    }
    return 0;
}

const design *design_named(const cli *c, const char *name, int *code)
{
    const design *k = find_design(name);
    if (k) {
        return k;
    }
    const char *names[64];
    int n = 0;
    for (const design *at = design_table; at->name && n < 64; at++) {
        names[n++] = at->name;
    }
    char hint[96];
    const char *near = frg_nearest_name(name, names, n);
    snprintf(hint, sizeof hint, "%s%s",
             near ? "did you mean " : "fourge simulate lists the designs", near ? near : "");
    *code = cli_fail(c, "E_OPTION", name, hint, "there is no design '%s'", name);
    return NULL;
}

int design_codes(const design_data *d, int32_t **codes, int *n_factors)
{
    int q = 0, at[MAX_IDS];
    for (int i = 0; i < d->n_ids; i++) {
        if (d->factors >> i & 1u) {
            at[q++] = i;
        }
    }
    *codes = malloc((size_t)d->n * (size_t)q * sizeof **codes + 1);
    if (!*codes) {
        return -1;
    }
    for (int64_t i = 0; i < d->n; i++) {
        for (int j = 0; j < q; j++) {
            (*codes)[i * q + j] = d->ids[i * d->n_ids + at[j]];
        }
    }
    *n_factors = q;
    return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct {
    const design *design;
    design_data data;
    double parameter[MAX_PARAMETERS];
    double seconds;
    cli *cli;
    worker *worker;
    int writes;
} simulation;

/** 0 or the exit code of what a writer of the library said. */
static int written(const cli *c, frg_status status)
{
    return cli_check(c, status == FRG_INTERRUPTED ? cli_over(c) : status, "the data were written");
}

/** From here on the writers of the library are asked to stop. */
static void begin_to_write(simulation *s)
{
    worker_lock(s->worker);
    s->writes = 1;
    worker_unlock(s->worker);
}

static frg_status fill_table(frg_table *t, const design_data *d, double *numbers, int64_t *integers)
{
    frg_status status = FRG_OK;
    for (int j = 0; j < d->p && status >= 0; j++) {
        char name[16] = "y";
        for (int64_t i = 0; i < d->n; i++) {
            numbers[i] = d->columns[i * d->p + j];
        }
        if (j > 0) {
            snprintf(name, sizeof name, "x%d", j);
        }
        status = frg_table_add_numbers(t, name, numbers);
    }
    for (int q = 0; q < d->n_ids && status >= 0; q++) {
        for (int64_t i = 0; i < d->n; i++) {
            integers[i] = d->ids[i * d->n_ids + q];
        }
        status = frg_table_add_integers(t, d->id_names[q], integers);
    }
    return status >= 0 && d->weights ? frg_table_add_numbers(t, "w", d->weights) : status;
}

static int write_csv(cli *c, simulation *s, const char *path)
{
    const design_data *const d = &s->data;
    frg_table *t = NULL;
    double *numbers = malloc((size_t)d->n * sizeof *numbers + 1);
    int64_t *integers = malloc((size_t)d->n * sizeof *integers + 1);
    if (!numbers || !integers) {
        free(numbers);
        free(integers);
        return cli_fail_memory(c);
    }
    frg_status status = frg_table_create(&t, c->ctx, d->n);
    if (status >= 0) {
        status = fill_table(t, d, numbers, integers);
    }
    free(numbers);
    free(integers);
    if (status >= 0) {
        begin_to_write(s);
        status = frg_table_write(t, c->ctx, path);
    }
    frg_table_destroy(t);
    return written(c, status);
}

static int write_array(cli *c, const char *folder, const char *name, frg_array a)
{
    char path[4096];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) {
        return cli_fail(c, "E_CREATE", "--out", NULL, "the name of the folder is too long");
    }
    return written(c, frg_npy_write(c->ctx, path, a));
}

static int write_folder(cli *c, simulation *s, const char *folder)
{
    const design_data *const d = &s->data;
    int32_t *codes;
    int q, code = 0;
    if (design_codes(d, &codes, &q) < 0) {
        return cli_fail_memory(c);
    }
    begin_to_write(s);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        code = cli_fail(c, "E_CREATE", folder, NULL, "cannot create the folder '%s': %s", folder,
                        strerror(errno));
    }
    if (!code) {
        code = write_array(c, folder, "columns.npy",
                           frg_matrix(d->columns, FRG_F64, d->n, d->p, d->p));
    }
    if (!code) {
        code = write_array(c, folder, "codes.npy", frg_matrix(codes, FRG_I32, d->n, q, q));
    }
    if (!code && d->weights) {
        code = write_array(c, folder, "weights.npy", frg_vector(d->weights, FRG_F64, d->n));
    }
    free(codes);
    return code;
}

static int ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* ---- showing --------------------------------------------------------------------------------- */

static void list_designs(void)
{
    puts("fourge simulate DESIGN --rows N --out FILE.csv|FOLDER [--set NAME=VALUE] [--seed "
         "N]\n\nDesigns");
    for (const design *k = design_table; k->name; k++) {
        printf("  %-18s %s\n", k->name, k->help);
        for (int i = 0; i < MAX_PARAMETERS && k->parameters[i].name; i++) {
            const design_parameter *p = &k->parameters[i];
            printf("      %-17s %s [%.10g]\n", p->name, p->help, p->value);
        }
    }
}

static void simulation_json(frg_json *j, const cli *c, const void *job)
{
    const simulation *const s = job;
    json_head(j, "fourge.simulate/1");
    frg_json_string(j, "design", s->design->name);
    frg_json_integer(j, "n", s->data.n);
    frg_json_integer(j, "columns", s->data.p);
    frg_json_open_array(j, "effects");
    for (int q = 0; q < s->data.n_ids; q++) {
        if (s->data.factors >> q & 1u) {
            frg_json_string(j, NULL, s->data.id_names[q]);
        }
    }
    frg_json_close_array(j);
    frg_json_open_object(j, "parameters");
    for (int i = 0; i < MAX_PARAMETERS && s->design->parameters[i].name; i++) {
        frg_json_number(j, s->design->parameters[i].name, s->parameter[i]);
    }
    frg_json_close_object(j);
    frg_json_string(j, "out", c->set.arrays.out);
    frg_json_open_object(j, "seconds");
    frg_json_number(j, "total", s->seconds);
    frg_json_close_object(j);
    json_foot(j, c);
}

static void simulation_text(frg_report *r, const cli *c, const void *job)
{
    const simulation *const s = job;
    char text[64];
    frg_report_fact(r, "Design", s->design->name);
    frg_report_fact(r, "Rows", grouped(s->data.n, text));
    snprintf(text, sizeof text, "%d", s->data.p);
    frg_report_fact(r, "Columns", text);
    frg_report_fact(r, "Written to", c->set.arrays.out);
    frg_report_fact(r, "Time", seconds_text(s->seconds, text));
}

/* ---- the command ----------------------------------------------------------------------------- */

static int make_and_write(void *job)
{
    simulation *const s = job;
    cli *const c = s->cli;
    const char *const out = c->set.arrays.out;
    const double start = now_seconds();
    const int made =
        s->design->make(&s->data, (int64_t)c->set.design.rows, s->parameter, c->set.context.seed);
    const int code = made < 0                                          ? cli_fail_memory(c)
                     : ends_with(out, ".csv") || strcmp(out, "-") == 0 ? write_csv(c, s, out)
                                                                       : write_folder(c, s, out);
    s->seconds = now_seconds() - start;
    return code;
}

/** The designs are plain loops that nobody can stop; the writers of the library end by
 *  themselves. */
static int may_abandon(void *job)
{
    const simulation *const s = job;
    if (s->writes) {
        frg_interrupt(s->cli->ctx);
    }
    return !s->writes;
}

static int abandon(void *job, frg_status why)
{
    return cli_check(((simulation *)job)->cli, why, "the data were made");
}

static int simulate(cli *c, simulation *s)
{
    const design_data *const d = &s->data;
    worker w = {
        .c = c, .work = make_and_write, .abandon = abandon, .may_abandon = may_abandon, .job = s};
    s->worker = &w;
    const int code = worker_run(&w);
    if (code) {
        return code;
    }
    if (c->set.format != FORMAT_TEXT || c->set.output) {
        return write_result(c, "Simulated data", simulation_json, simulation_text, s);
    }
    if (!c->set.quiet && strcmp(c->set.arrays.out, "-") != 0) {
        char n[32];
        fprintf(stderr, "fourge: %s: %s rows, %d columns written to ", s->design->name,
                grouped(d->n, n), d->p);
        write_visible(stderr, c->set.arrays.out);
        putc('\n', stderr);
    }
    return 0;
}

int command_simulate(cli *c)
{
    if (c->n_arguments == 0) {
        const int refused = cli_text_alone(c, "the list of designs");
        if (!refused) {
            list_designs();
        }
        return refused;
    }
    int code = 0;
    simulation s = {.design = design_named(c, c->arguments[0], &code), .cli = c};
    if (!s.design) {
        return code;
    }
    if (!c->set.arrays.out) {
        return cli_fail(c, "E_OPTION", "--out", "--out FILE.csv or --out FOLDER",
                        "fourge simulate needs --out");
    }
    code = design_parameters(c, s.design, s.parameter);
    code = code ? code : cli_open(c);
    code = code ? code : simulate(c, &s);
    design_free(&s.data);
    return code;
}
