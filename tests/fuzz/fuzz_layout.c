/* fuzz_layout.c - any numbers as kept codes and order of rows: they are made anew, or a run ends.
 *
 * The first byte chooses file and design.  Three bytes each behind it change a byte of a sound file:
 * where, in two bytes, and what; the checksums are those of what stands there then, as they are all
 * that keeps strange files out of an honest run.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/kept_file.h"
#include "fourge/fe.h"

#include "fuzz.h"
#include "no_columns.h"

enum { N = 90, ROOM = 1 << 14, HEAD = 48, SUM = 8 };

/* ---- a disk of two files --------------------------------------------------------------------- */

typedef struct {
    char bytes[2][ROOM]; /* the file, and the one that is being written */
    size_t count[2];
    bool there;
    size_t at; /* of the reader */
} disk;

static int open_file(const char *path, char mode, void *user)
{
    disk *const d = user;
    (void)path;
    if (mode == 'd') {
        return -ENODEV;
    }
    if (mode == 'w') {
        d->count[1] = 0;
        return 1;
    }
    d->at = 0;
    return d->there ? 0 : -ENOENT;
}

static int64_t read_file(int handle, void *to, size_t bytes, void *user)
{
    disk *const d = user;
    const size_t left = d->count[handle] - d->at, count = bytes < left ? bytes : left;
    memcpy(to, d->bytes[handle] + d->at, count);
    d->at += count;
    return (int64_t)count;
}

static int64_t write_file(int handle, const void *from, size_t bytes, void *user)
{
    disk *const d = user;
    insist(d->count[handle] + bytes <= ROOM);
    memcpy(d->bytes[handle] + d->count[handle], from, bytes);
    d->count[handle] += bytes;
    return (int64_t)bytes;
}

static int end_file(int handle, void *user)
{
    (void)handle, (void)user;
    return 0;
}

static int rename_file(const char *from, const char *to, void *user)
{
    disk *const d = user;
    (void)from, (void)to;
    memcpy(d->bytes[0], d->bytes[1], d->count[1]);
    d->count[0] = d->count[1];
    d->there = true;
    return 0;
}

static int on_path(const char *path, void *user)
{
    (void)path, (void)user;
    return 0;
}

static int64_t size_file(int handle, void *user)
{
    const disk *const d = user;
    return (int64_t)d->count[handle];
}

static frg_files table_of(disk *d)
{
    return (frg_files){.open = open_file,
                       .read = read_file,
                       .write = write_file,
                       .sync = end_file,
                       .close = end_file,
                       .rename = rename_file,
                       .remove = on_path,
                       .sync_folder = on_path,
                       .size = size_file,
                       .user = d};
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static const frg_layout_files plan_files = {.order = "fuzz.order", .options = 1, .source = 2},
                              fit_files = {.codes = "fuzz.codes", .options = 1, .source = 2};

/** Scattered rows of two or three factors, one of which has gaps. */
static frg_status run_plan(frg_context *ctx, int kind)
{
    const int q = 2 + kind % 2;
    int32_t codes[3 * N];
    double x[N];
    frg_demean *d = NULL;
    frg_demean_opts o;
    frg_demean_defaults(&o, sizeof o);
    o.max_iter = 50;
    o.method = kind / 2 % 2 ? FRG_FE_LSMR : FRG_FE_AUTO;
    for (int i = 0; i < N; i++) {
        codes[i * q] = i * 7 % 31;
        codes[i * q + 1] = 5 * (i % 8);
        if (q > 2) {
            codes[i * q + 2] = i / 20;
        }
        x[i] = sin(i);
    }
    frg_status s = frg_demean_create_kept(&d, ctx, frg_matrix(codes, FRG_I32, N, q, q), NULL, NULL,
                                          0, 0, &o, &plan_files);
    insist(s == FRG_OK); /* read, or made anew */
    s = frg_demean_run(d, frg_matrix(x, FRG_F64, N, 1, 1), frg_matrix(x, FRG_F64, N, 1, 1), NULL,
                       NULL);
    frg_demean_destroy(d);
    return s;
}

/** Some rows are missing, and some singletons. */
static frg_status run_fit(frg_context *ctx, int kind)
{
    const frg_column_store store = {.load = load_none, .save = save_none, .layout = &fit_files};
    double y[N], x[N];
    int64_t a[N], b[N], c[N];
    frg_table *t = NULL;
    frg_fe *f = NULL;
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.store = &store;
    o.weights = kind % 2 ? "b" : NULL;
    o.vcov[0] = "cluster=c";
    for (int i = 0; i < N; i++) {
        a[i] = i % 30 == 7 ? 1000 + i : i % 13;
        b[i] = 1 + i % 7;
        c[i] = i * i % 11 % 4;
        x[i] = i % 40 == 3 ? (double)NAN : cos(i * i);
        y[i] = sin(i) + x[i];
    }
    frg_status s = frg_table_create(&t, ctx, N);
    s = s < 0 ? s : frg_table_add_numbers(t, "y", y);
    s = s < 0 ? s : frg_table_add_numbers(t, "x", x);
    s = s < 0 ? s : frg_table_add_integers(t, "a", a);
    s = s < 0 ? s : frg_table_add_integers(t, "b", b);
    s = s < 0 ? s : frg_table_add_integers(t, "c", c);
    s = s < 0 ? s : frg_fe_fit(&f, ctx, "y ~ x + i(c) | a + b", t, &o);
    s = s < 0 ? s : frg_fe_residuals(f, y, x);
    frg_fe_destroy(f);
    frg_table_destroy(t);
    return s;
}

static frg_status run(frg_context *ctx, int kind)
{
    return kind & 4 ? run_fit(ctx, kind) : run_plan(ctx, kind);
}

/* ---- changes --------------------------------------------------------------------------------- */

/** Bytes between the head's checksum and the next one. */
static size_t facts_bytes(int kind)
{
    return kind & 4 ? 56 + 3 * 8 : 40 + (2 + (size_t)kind % 2) * 16;
}

/** The file with the changes, and checksums that hold. */
static void change(frg_context *ctx, disk *d, int kind, const uint8_t *data, size_t size)
{
    static const frgi_keep_kind kinds[2] = {{"fourgeOR", ""}, {"fourgeCO", ""}};
    char now[ROOM];
    frgi_keep_head h;
    frgi_keep_out f;
    const size_t facts = facts_bytes(kind), all = d->count[0] - HEAD - 3 * SUM;
    memcpy(&h, d->bytes[0] + 16, sizeof h);
    memcpy(now, d->bytes[0] + HEAD + SUM, facts);
    memcpy(now + facts, d->bytes[0] + HEAD + 2 * SUM + facts, all - facts);
    for (size_t at = 0; at + 3 <= size; at += 3) {
        now[((size_t)data[at] << 8 | data[at + 1]) % all] = (char)data[at + 2];
    }
    insist(frgi_keep_create(&f, ctx, "fuzz", &kinds[kind >> 2 & 1], &h) == FRG_OK);
    insist(frgi_keep_put(&f, now, facts) == FRG_OK && frgi_keep_put_sum(&f) == FRG_OK);
    insist(frgi_keep_put(&f, now + facts, all - facts) == FRG_OK);
    insist(frgi_keep_end(&f, frgi_keep_put_sum(&f)) == FRG_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static disk d;
    const int kind = size > 0 ? data[0] & 7 : 0;
    const frg_files files = table_of(&d);
    frg_context_opts o;
    frg_context *ctx = NULL;
    d = (disk){.there = false};
    frg_context_defaults(&o, sizeof o);
    o.threads = 1;
    o.memory_limit = 1 << 26;
    o.spool = size > 0 && data[0] & 8 ? "." : NULL; /* rows are sorted by buckets; none is there */
    o.files = &files;
    if (frg_context_create(&ctx, &o) < 0) {
        return 0;
    }
    insist(run(ctx, kind) >= 0 && d.there);
    const frg_status again = run(ctx, kind);
    insist(again >= 0 && frg_warning_count(ctx) == 0);
    change(ctx, &d, kind, data + (size > 0), size > 0 ? size - 1 : 0);
    const frg_status changed = run(ctx, kind);
    insist(changed >= 0 || kind & 4); /* of other levels no regressor may be left */
    frg_context_destroy(ctx);
    return 0;
}
