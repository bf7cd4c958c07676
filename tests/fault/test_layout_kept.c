/* test_layout_kept.c - codes and order of rows in files: a later fit or plan reads them, numbers and
 * sorts nothing, and has the bits of one that made them; damage, other data and options, a disk
 * without room, failing memory and files. */
#include <math.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/context.h"
#include "fault.h"
#include "fourge/fe.h"
#include "no_columns.h"

enum { SMALL = 4096, LIMIT = 4 << 20, MOST = 4096 };

static bool is_full; /* every folder has 100 bytes left */

/** In the place of the C library's. */
int statvfs(const char *path, struct statvfs *v)
{
    const fsblkcnt_t all = (fsblkcnt_t)1 << 40;
    *v = (struct statvfs){.f_blocks = all, .f_bavail = is_full ? 100 : all, .f_frsize = 1};
    return access(path, F_OK);
}

static char folder[] = "/tmp/fourge_layout_XXXXXX";
static char codes_path[sizeof folder + 16], order_path[sizeof folder + 16];

static void enter(void)
{
    strcpy(folder, "/tmp/fourge_layout_XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(codes_path, sizeof codes_path, "%s/run.codes", folder);
    snprintf(order_path, sizeof order_path, "%s/run.order", folder);
}

static void leave(void)
{
    remove(codes_path);
    remove(order_path);
    CHECK(rmdir(folder) == 0);
}

static frg_layout_files files_of(uint64_t options, uint64_t source)
{
    return (frg_layout_files){codes_path, order_path, options, source};
}

/* ---- what is counted ------------------------------------------------------------------------- */

typedef struct {
    int numbered, sorted, codes_read, order_read;
    int keys; /* columns, or bunches of them, that were numbered */
} counts;

static void take_line(int level, const char *line, void *user)
{
    counts *const c = user;
    (void)level;
    c->numbered += strcmp(line, "the levels of the effects are numbered") == 0;
    c->sorted += strcmp(line, "the order of the rows is made") == 0;
    c->codes_read += strncmp(line, "the levels of the effects are those of", 38) == 0;
    c->order_read += strncmp(line, "the order of the rows is that of", 32) == 0;
    c->keys += strncmp(line, "the keys of ", 12) == 0;
}

static int no_sync(int handle, void *user)
{
    (void)handle, (void)user;
    return 0;
}

static int no_sync_folder(const char *path, void *user)
{
    (void)path, (void)user;
    return 0;
}

/** Counts into c; beyond SMALL bytes on the disk where it `spools`. */
static frg_context *counting(counts *c, bool spools)
{
    static fault_disk disk;
    frg_context_opts o;
    frg_context *ctx = NULL;
    *c = (counts){0};
    frg_context_defaults(&o, sizeof o);
    fault_disk_open(&disk);
    disk.table.sync = no_sync;
    disk.table.sync_folder = no_sync_folder;
    o.threads = test_now.threads;
    o.on_log = take_line;
    o.user = c;
    o.files = &disk.table;
    o.spool = spools ? "." : NULL;
    o.memory_limit = spools ? LIMIT : 0;
    if (CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK) && spools)
        frgi_spool_from(ctx, SMALL);
    return ctx;
}

static bool warned(const frg_context *ctx)
{
    bool said = false;
    for (int i = 0; i < frg_warning_count(ctx); i++)
        said = said || strcmp(frg_warning_code(ctx, i), "FRG-IO-108") == 0;
    return said;
}

/* ---- regressions ----------------------------------------------------------------------------- */

/** y, x, z with missing values, weights some of which are 0, keys a (text) and b. */
static frg_table *make_table(frg_context *ctx, int64_t n)
{
    static double v[4][MOST];
    static int32_t a[MOST];
    static int64_t b[MOST], c[MOST];
    static char text[MOST][8];
    static const char *labels[MOST];
    const int64_t people = n / 3 + 1;
    frg_table *t = NULL;
    for (int64_t i = 0; i < people; i++) {
        snprintf(text[i], sizeof text[i], "p%d", (int)i);
        labels[i] = text[i];
    }
    for (int64_t i = 0; i < n; i++) {
        a[i] = test_below(50) ? (int32_t)test_below(people) : FRG_MISSING_CODE;
        b[i] = 1000 * (test_below(3) ? a[i] % 7 : test_below(n / 20 + 2));
        c[i] = test_below(60) ? test_below(5) : FRG_MISSING_INTEGER;
        v[1][i] = test_uniform() + 0.01 * a[i];
        v[2][i] = test_below(40) ? test_uniform() : (double)NAN;
        v[3][i] = test_below(30) ? 0.5 + test_uniform() : 0;
        v[0][i] = v[1][i] + test_uniform();
    }
    CHECK_OK(ctx, frg_table_create(&t, ctx, n));
    CHECK_OK(ctx, frg_table_add_numbers(t, "y", v[0]));
    CHECK_OK(ctx, frg_table_add_numbers(t, "x", v[1]));
    CHECK_OK(ctx, frg_table_add_numbers(t, "z", v[2]));
    CHECK_OK(ctx, frg_table_add_numbers(t, "w", v[3]));
    CHECK_OK(ctx, frg_table_add_codes(t, "a", a, labels, people));
    CHECK_OK(ctx, frg_table_add_integers(t, "b", b));
    CHECK_OK(ctx, frg_table_add_integers(t, "c", c));
    return t;
}

typedef struct {
    const char *formula, *weights, *subset, *vcov;
    frg_fe_connected connected;
    int keep_singletons;
    frg_fe_method method;
} design;

static const design designs[] = {
    {.formula = "y ~ x | a"},
    {.formula = "y ~ x + z | a + b"},
    {.formula = "y ~ x | a + b", .weights = "w"},
    {.formula = "y ~ x | a^b + b", .subset = "x > 0.5"},
    {.formula = "y ~ x | a + b", .connected = FRG_CONNECTED_LARGEST},
    {.formula = "y ~ x | a + b", .keep_singletons = 1},
    {.formula = "y ~ x | a + b", .method = FRG_FE_LSMR, .weights = "w"},
    {.formula = "y ~ z | a + b[x]"},
    {.formula = "y ~ x + i(c) | a", .vcov = "cluster=a+b+c"},
    {.formula = "y ~ x + i(c, z) | a + b", .vcov = "dk=c", .weights = "w"},
    {.formula = "y ~ x + z | b", .vcov = "jackknife=c", .keep_singletons = 1}};
enum { DESIGNS = sizeof designs / sizeof *designs };

static frg_status fit(frg_fe **out, frg_context *ctx, const design *d, const frg_table *t,
                      const frg_layout_files *files)
{
    const frg_column_store store = {.load = load_none, .save = save_none, .layout = files};
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.vcov[0] = d->vcov ? d->vcov : "hc1";
    o.weights = d->weights;
    o.subset = d->subset;
    o.connected = d->connected;
    o.keep_singletons = d->keep_singletons;
    o.demean.method = d->method;
    o.store = &store;
    return frg_fe_fit(out, ctx, d->formula, t, &o);
}

/** *h <- of what a fit gives: every number that its rows decide. */
static frg_status hash_fit(const frg_fe *f, uint64_t *h)
{
    const frg_fe_result *const r = frg_fe_get(f);
    const int64_t numbers[] = {
        r->n,        r->n_missing, r->n_singleton,   r->singleton_rounds, r->n_disconnected,
        r->n_groups, r->rank,      r->n_coefficients};
    double *const e = malloc((size_t)r->n_rows * 2 * sizeof *e);
    const frg_status s = frg_fe_residuals(f, e, e + r->n_rows);
    fault_hash(h, numbers, sizeof numbers);
    fault_hash(h, r->factor_levels, (size_t)r->n_factors * sizeof *r->factor_levels);
    fault_hash(h, r->vcov[0].matrix, (size_t)(r->n_coefficients * r->n_coefficients) * 8);
    fault_hash(h, &r->coefficients[0].estimate, sizeof(double));
    fault_hash(h, e, (size_t)r->n_rows * 2 * sizeof *e);
    free(e);
    return s;
}

static uint64_t fit_hash(frg_context *ctx, const design *d, const frg_table *t,
                         const frg_layout_files *files)
{
    frg_fe *f = NULL;
    uint64_t h = 0;
    frg_warnings_clear(ctx);
    if (CHECK_OK(ctx, fit(&f, ctx, d, t, files)))
        CHECK_OK(ctx, hash_fit(f, &h));
    frg_fe_destroy(f);
    return h;
}

/** Made in memory or on the disk, read in memory or on the disk: the same, and nothing is made. */
static void goes_on(void)
{
    enter();
    const frg_layout_files files = files_of(1, 2);
    for (int k = 0; k < 4 * DESIGNS; k++) {
        const design *const d = &designs[k / 4];
        counts first, second;
        frg_context *const a = counting(&first, k & 1), *const b = counting(&second, k >> 1 & 1);
        frg_table *const t = make_table(a, 1500);
        const uint64_t want = fit_hash(a, d, t, NULL);
        CHECK(!first.numbered && !first.sorted && access(codes_path, F_OK) != 0);
        CHECK(fit_hash(a, d, t, &files) == want);
        CHECK(first.numbered == 1 && first.sorted == 1 && !first.codes_read && !first.order_read);
        CHECK_SAYS(fit_hash(b, d, t, &files) == want, "%s: other bits", d->formula);
        CHECK(!second.numbered && !second.sorted && second.codes_read == 1);
        CHECK_SAYS(!second.keys && first.keys >= 2, "%s: %d keys", d->formula, second.keys);
        CHECK(second.order_read == 1 && !warned(b));
        remove(order_path); /* each is of use without the other */
        CHECK(fit_hash(b, d, t, &files) == want);
        CHECK(second.sorted == 1 && second.codes_read == 2 && second.order_read == 1);
        remove(codes_path);
        CHECK(fit_hash(b, d, t, &files) == want);
        CHECK(second.numbered == 1 && second.codes_read == 2 && second.order_read == 2);
        remove(codes_path);
        remove(order_path);
        frg_table_destroy(t);
        frg_context_destroy(a);
        frg_context_destroy(b);
    }
    leave();
}

/* ---- plans ----------------------------------------------------------------------------------- */

/** Codes with gaps, and some far apart, of q factors; weights, some of which are 0; slopes. */
typedef struct {
    int64_t n;
    int q;
    int32_t codes[3 * MOST];
    double x[2 * MOST], w[MOST], z[MOST];
} panel;

static void make_panel(panel *p, int64_t n, int q, bool sorted)
{
    p->n = n;
    p->q = q;
    for (int64_t i = 0; i < n; i++) {
        for (int k = 0; k < q; k++)
            p->codes[i * q + k] =
                (int32_t)(k == 2 ? 100000000 * (1 + test_below(9)) : 3 * test_below(n / (5 + k)));
        p->codes[i * q] = sorted ? (int32_t)(i / 4) : p->codes[i * q];
        p->w[i] = test_below(20) ? 0.5 + test_uniform() : 0;
        p->z[i] = test_uniform();
        p->x[i] = test_uniform();
        p->x[n + i] = test_uniform() + 0.01 * p->codes[i * q];
    }
}

typedef struct {
    const panel *p;
    bool weighted, slopes;
    frg_fe_method method;
    frg_layout_files files;
} plan_job;

static frg_status run_plan(frg_context *ctx, void *user, uint64_t *hash)
{
    const plan_job *const j = user;
    const panel *const p = j->p;
    static double out[2 * MOST];
    frg_demean_opts o;
    frg_demean *d = NULL;
    frg_demean_defaults(&o, sizeof o);
    o.method = j->method;
    const frg_slope slope = {.factor = 0, .z = p->z};
    const frg_array codes = frg_matrix((void *)(uintptr_t)p->codes, FRG_I32, p->n, p->q, p->q),
                    x = frg_matrix_columns((void *)(uintptr_t)p->x, FRG_F64, p->n, 2, p->n),
                    w = frg_vector((void *)(uintptr_t)p->w, FRG_F64, p->n);
    frg_status s = frg_demean_create_kept(&d, ctx, codes, j->weighted ? &w : NULL,
                                          j->slopes ? &slope : NULL, j->slopes, 0, &o, &j->files);
    CHECK((s >= 0) == (d != NULL));
    s = s < 0 ? s
              : frg_demean_run(d, x, frg_matrix_columns(out, FRG_F64, p->n, 2, p->n), NULL, NULL);
    if (s >= 0)
        fault_hash(hash, out, (size_t)p->n * 2 * sizeof *out);
    frg_demean_destroy(d);
    return s;
}

static uint64_t plan_hash(frg_context *ctx, plan_job *j)
{
    uint64_t h = 0;
    CHECK_OK(ctx, run_plan(ctx, j, &h));
    return h;
}

/** One to three factors, weighted or not, sorted or not, with slopes, by conjugate gradients and by
 *  LSMR, made and read in memory or on the disk. */
static void plans(void)
{
    enter();
    static panel p;
    for (int k = 0; k < 32; k++) {
        make_panel(&p, 200 + test_below(800), 1 + k % 3, k % 5 == 0);
        plan_job j = {.p = &p, .weighted = k & 1, .slopes = k % 7 == 3, .files = files_of(3, 4)};
        j.method = k >> 3 & 1 && !j.slopes ? FRG_FE_LSMR : FRG_FE_AUTO;
        counts first, second;
        frg_context *const a = counting(&first, k >> 1 & 1), *const b =
                                                                 counting(&second, k >> 2 & 1);
        const frg_layout_files files = j.files;
        j.files.order = NULL;
        const uint64_t want = plan_hash(a, &j);
        CHECK(access(order_path, F_OK) != 0);
        j.files = files;
        CHECK(plan_hash(a, &j) == want);
        CHECK_SAYS(plan_hash(b, &j) == want, "case %d: other bits", k);
        CHECK(first.sorted == 1 && !first.order_read && !second.sorted && second.order_read == 1);
        remove(order_path);
        frg_context_destroy(a);
        frg_context_destroy(b);
    }
    leave();
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

static void refusals(void)
{
    enter();
    counts c;
    frg_context *const ctx = counting(&c, false);
    frg_table *const t = make_table(ctx, 60), *const u = make_table(ctx, 61);
    const design *const d = &designs[1];
    const frg_layout_files own = files_of(1, 2), options = files_of(3, 2), source = files_of(1, 4);
    frg_fe *f = NULL;
    const uint64_t want = fit_hash(ctx, d, t, &own);
    CHECK_STATUS(fit(&f, ctx, d, t, &source), FRG_IO);
    CHECK(!f);
    CHECK_TEXT(frg_error_code(ctx), "FRG-IO-016");
    CHECK_TEXT(frg_error_where(ctx), codes_path);
    CHECK(fit_hash(ctx, d, t, &own) == want && c.codes_read == 1 && c.order_read == 1);
    CHECK(fit_hash(ctx, d, t, &options) == want && warned(ctx) && c.numbered == 2);
    CHECK(fit_hash(ctx, d, t, &options) == want && !warned(ctx) && c.codes_read == 2);
    CHECK(fit_hash(ctx, &designs[0], t, &options) == fit_hash(ctx, &designs[0], t, NULL));
    CHECK_INT(c.numbered, 3); /* other effects under the caller's same hash */
    CHECK(fit_hash(ctx, &designs[0], u, &options) == fit_hash(ctx, &designs[0], u, NULL));
    CHECK_INT(c.numbered, 4); /* and other rows */
    design other = designs[0];
    other.vcov = "cluster=c";
    CHECK(fit_hash(ctx, &other, u, &options) == fit_hash(ctx, &other, u, NULL));
    CHECK_INT(c.numbered, 5); /* and other keys */
    frg_table_destroy(t);
    frg_table_destroy(u);
    frg_context_destroy(ctx);
    CHECK_STATUS(frg_demean_create_kept(NULL, NULL, (frg_array){0}, NULL, NULL, 0, 0, NULL, NULL),
                 FRG_BAD_ARG);
    leave();
}

static void no_room(void)
{
    enter();
    counts c;
    frg_context *const ctx = counting(&c, false);
    frg_table *const t = make_table(ctx, 60);
    const frg_layout_files files = files_of(1, 2);
    static panel p;
    make_panel(&p, 100, 2, false);
    plan_job j = {.p = &p, .files = files};
    frg_fe *f = NULL;
    uint64_t h = 0;
    char says[96];
    is_full = true;
    CHECK_STATUS(fit(&f, ctx, &designs[1], t, &files), FRG_IO);
    CHECK_TEXT(frg_error_code(ctx), "FRG-IO-019");
    CHECK(!f && access(codes_path, F_OK) != 0);
    CHECK_STATUS(run_plan(ctx, &j, &h), FRG_IO);
    CHECK_TEXT(frg_error_code(ctx), "FRG-IO-019");
    CHECK_TEXT(frg_error_where(ctx), order_path);
    CHECK_SAYS(strstr(frg_message(ctx), "has room for 100"), "%s", frg_message(ctx));
    CHECK(access(order_path, F_OK) != 0);
    CHECK_STATUS(frg_table_save(t, ctx, order_path, 1, 2), FRG_IO);
    snprintf(says, sizeof says, "would take %zu bytes", frg_table_save_bytes(t));
    CHECK_SAYS(strstr(frg_message(ctx), says), "%s", frg_message(ctx));
    is_full = false;
    CHECK_OK(ctx, frg_table_save(t, ctx, order_path, 1, 2));
    FILE *const saved = fopen(order_path, "rb");
    CHECK(saved && fseek(saved, 0, SEEK_END) == 0);
    CHECK_INT(saved ? ftell(saved) : 0, frg_table_save_bytes(t));
    CHECK(saved && fclose(saved) == 0);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
    leave();
}

static size_t read_bytes(const char *path, char *bytes, size_t most)
{
    FILE *const f = fopen(path, "rb");
    const size_t count = f ? fread(bytes, 1, most, f) : 0;
    CHECK(f && fclose(f) == 0 && count > 0 && count < most);
    return count;
}

static void write_bytes(const char *path, const char *bytes, size_t count)
{
    FILE *const f = fopen(path, "wb");
    CHECK(f && fwrite(bytes, 1, count, f) == count && fclose(f) == 0);
}

/** The result of the sound file, with a warning, and a sound file in its place. */
static void made_anew(frg_context *ctx, const char *path, const char *sound, size_t count,
                      const design *d, const frg_table *t, uint64_t want)
{
    const frg_layout_files files = files_of(1, 2);
    char now[MOST];
    CHECK(fit_hash(ctx, d, t, &files) == want);
    CHECK(warned(ctx));
    CHECK(read_bytes(path, now, sizeof now) == count && memcmp(now, sound, count) == 0);
}

/** Of both files every length and every bit; none is taken. */
static void damage(void)
{
    enter();
    counts c;
    frg_context *const ctx = counting(&c, false);
    frg_table *const t = make_table(ctx, 16);
    const design *const d = &designs[DESIGNS - 1];
    const frg_layout_files files = files_of(1, 2);
    const uint64_t want = fit_hash(ctx, d, t, &files);
    for (int k = 0; k < 2; k++) {
        const char *const path = k ? order_path : codes_path;
        char sound[MOST], bytes[MOST];
        const size_t count = read_bytes(path, sound, sizeof sound);
        for (size_t n = 0; n < count; n++) {
            write_bytes(path, sound, n);
            made_anew(ctx, path, sound, count, d, t, want);
        }
        for (size_t bit = 0; bit < 8 * count; bit++) {
            memcpy(bytes, sound, count);
            bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
            write_bytes(path, bytes, count);
            made_anew(ctx, path, sound, count, d, t, want);
        }
        memcpy(bytes, sound, count);
        bytes[count] = 'x';
        write_bytes(path, bytes, count + 1);
        made_anew(ctx, path, sound, count, d, t, want);
    }
    CHECK(c.numbered > 100 && c.sorted > 100);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
    leave();
}

/* ---- faults ---------------------------------------------------------------------------------- */

typedef struct {
    const frg_table *t;
    bool anew;
    frg_layout_files files;
} fit_job;

static frg_status fit_body(frg_context *ctx, void *user, uint64_t *hash)
{
    const fit_job *const j = user;
    frg_fe *f = NULL;
    if (j->anew) {
        remove(codes_path);
        remove(order_path);
    }
    frg_status s = fit(&f, ctx, &designs[DESIGNS - 3], j->t, &j->files);
    s = s < 0 ? s : hash_fit(f, hash);
    frg_fe_destroy(f);
    return s;
}

static frg_status plan_body(frg_context *ctx, void *user, uint64_t *hash)
{
    const bool there = access(order_path, F_OK) == 0;
    const frg_status s = run_plan(ctx, user, hash);
    CHECK(s < 0 || access(order_path, F_OK) == 0);
    if (!there)
        remove(order_path);
    return s;
}

static void faults(void)
{
    enter();
    frg_context *const ctx = test_context();
    fit_job j = {make_table(ctx, 50), true, files_of(1, 2)};
    static panel p;
    make_panel(&p, 60, 3, false);
    plan_job k = {.p = &p, .weighted = true, .files = files_of(5, 6)};
    fault_sweep_once("a fit that keeps", fit_body, &j, 1);
    fault_sweep_files("a fit that keeps", fit_body, &j);
    j.anew = false;
    fault_sweep_once("a fit that goes on", fit_body, &j, 1);
    fault_sweep_files("a fit that goes on", fit_body, &j);
    remove(order_path);
    fault_sweep("a plan that keeps", plan_body, &k, 1);
    fault_sweep_files("a plan that keeps", plan_body, &k);
    CHECK(plan_hash(ctx, &k) != 0);
    CHECK(fault_sweep("a plan that goes on", plan_body, &k, 1) > 10);
    fault_sweep_files("a plan that goes on", plan_body, &k);
    frg_table_destroy((frg_table *)(uintptr_t)j.t);
    frg_context_destroy(ctx);
    leave();
}

static const test_case cases[] = {{"goes on", goes_on}, {"plans", plans},   {"refusals", refusals},
                                  {"no room", no_room}, {"damage", damage}, {"faults", faults}};
TEST_MAIN(cases)
