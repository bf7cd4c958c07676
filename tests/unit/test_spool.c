/* test_spool.c - arrays beyond the memory limit, on the disk: the same bits as in memory, pages
 * that leave while they are used, and what goes wrong with folders and disks.
 *
 * Contexts with a spool take blocks from SMALL bytes on from the disk here, and have a limit so low
 * that the keeper lets every page go each millisecond or two. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/context.h"
#include "core/row_order.h"
#include "fault.h"
#include "fourge/fe.h"

enum { SMALL = 4096, LIMIT = 4 << 20 };

static bool disk_fails; /* the next file that is asked has lost a page, and says so once */

/** In the place of the C library's: what the kernel could not write back. */
int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags)
{
    const bool failed = disk_fails;
    (void)offset;
    (void)bytes;
    CHECK_INT(flags, SYNC_FILE_RANGE_WAIT_BEFORE);
    CHECK(fcntl(fd, F_GETFD) >= 0);
    disk_fails = false;
    errno = failed ? EIO : 0;
    return failed ? -1 : 0;
}

/** The file of a matrix, of this process alone. */
static const char *mapped(void)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/fourge_mapped_%ld.npy", (long)getpid());
    return path;
}

/** What happens to a file while it is copied. */
static enum { COPIED, ELSEWHERE, CUT, LOST } copying;

/** In the place of the C library's: ELSEWHERE the file systems are two. */
ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *to_at, size_t bytes, unsigned flags)
{
    if (copying == CUT)
        CHECK(truncate(mapped(), 200) == 0);
    if (copying == COPIED || copying == CUT)
        return syscall(SYS_copy_file_range, from, at, to, to_at, bytes, flags);
    errno = EXDEV;
    return -1;
}

ssize_t sendfile(int to, int from, off_t *at, size_t bytes)
{
    CHECK(copying == ELSEWHERE || copying == LOST);
    errno = EIO;
    return copying == LOST ? -1 : syscall(SYS_sendfile, to, from, at, bytes);
}

static frg_context *spooled(int threads, const char *folder, int64_t limit)
{
    frg_context_opts o;
    frg_context *ctx = NULL;
    frg_context_defaults(&o, sizeof o);
    o.threads = threads;
    o.memory_limit = limit;
    o.spool = folder;
    if (CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK))
        frgi_spool_from(ctx, SMALL);
    return ctx;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/** Zeros, contents through growth, and the counts; nothing is held at the end. */
static void blocks(void)
{
    frg_context *const ctx = spooled(1, ".", LIMIT);
    double *x = NULL, *y = NULL;
    const size_t n = 100000;
    CHECK_OK(ctx, NEW0(ctx, &x, n, "zeros"));
    bool zero = true;
    for (size_t i = 0; i < n; i++) {
        zero &= x[i] == 0;
        x[i] = (double)i;
    }
    CHECK(zero);
    CHECK(frg_spool_bytes(ctx) >= n * sizeof *x);
    CHECK(frg_peak_bytes(ctx) < n * sizeof *x);
    CHECK_INT(frg_warning_count(ctx), 1);
    CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-CORE-170");
    CHECK_OK(ctx, NEW(ctx, &y, n, "others"));
    const size_t beside = frg_spool_bytes(ctx);
    CHECK_OK(ctx, GROW(ctx, &x, 3 * n, "more"));
    CHECK_INT(frg_spool_bytes(ctx), beside + 2 * n * sizeof *x); /* in its place: no copy */
    CHECK_OK(ctx, GROW(ctx, &x, n + 1000, "less"));
    CHECK_OK(ctx, GROW(ctx, &x, 2 * n, "more again"));
    CHECK_INT(frg_spool_bytes(ctx), beside + 2 * n * sizeof *x);
    bool kept = true;
    for (size_t i = 0; i < 2 * n; i++)
        kept &= x[i] == (i < n ? (double)i : 0);
    CHECK(kept);
    DROP(ctx, &x);
    DROP(ctx, &y);
    frg_warnings_clear(ctx);
    CHECK(frg_bytes_held(ctx) < SMALL); /* the spool itself */
    CHECK_INT(frg_warning_count(ctx), 0);
    frg_context_destroy(ctx);
}

static size_t pages_of_files(void)
{
    unsigned long long total, all, files = 0;
    FILE *const f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%llu %llu %llu", &total, &all, &files) != 3)
        files = 0;
    if (f)
        fclose(f);
    return (size_t)files * (size_t)sysconf(_SC_PAGESIZE);
}

/** 24 MB under a limit of 4: all but a little of them leave, and come back as they were. */
static void pages_leave(void)
{
    frg_context *const ctx = spooled(1, ".", LIMIT);
    const size_t before = pages_of_files(), n = 3 << 20;
    uint64_t *x = NULL;
    CHECK_OK(ctx, NEW(ctx, &x, n, "a long column"));
    for (size_t i = 0; i < n; i++)
        x[i] = i * UINT64_C(0x9e3779b97f4a7c15);
    for (int look = 0; look < 6000 && pages_of_files() > before + LIMIT; look++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    CHECK(pages_of_files() <= before + LIMIT);
    bool kept = true;
    for (size_t i = 0; i < n; i++)
        kept &= x[i] == i * UINT64_C(0x9e3779b97f4a7c15);
    CHECK(kept);
    DROP(ctx, &x);
    frg_context_destroy(ctx);
}

/* ---- files that are mapped ------------------------------------------------------------------- */

enum { MAPPED_ROWS = 10000, MAPPED_COLUMNS = 3 };

/** y, x and whole numbers, column after column or row after row. */
static void write_matrix(const char *path, bool fortran)
{
    char head[128];
    FILE *const f = fopen(path, "wb");
    if (!CHECK(f))
        return;
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\1\0\x76\0", 10);
    const int n = snprintf(head + 10, sizeof head - 10,
                           "{'descr': '<f8', 'fortran_order': %s, 'shape': (%d, %d), }",
                           fortran ? "True" : "False", MAPPED_ROWS, MAPPED_COLUMNS);
    head[10 + n] = ' ';
    head[sizeof head - 1] = '\n';
    CHECK(fwrite(head, 1, sizeof head, f) == sizeof head);
    for (int i = 0; i < MAPPED_ROWS * MAPPED_COLUMNS; i++) {
        const int row = fortran ? i % MAPPED_ROWS : i / MAPPED_COLUMNS;
        const int column = fortran ? i / MAPPED_ROWS : i % MAPPED_COLUMNS;
        const double x = column == 2 ? row % 70 : sin(row * (1 + column)) + column;
        CHECK(fwrite(&x, sizeof x, 1, f) == 1);
    }
    fclose(f);
}

/** Columns that lie in a file as they are wanted take neither memory nor disk; others are read as
 *  ever, and what was not asked for goes. */
static void mapped_columns(void)
{
    frg_table_opts two;
    frg_table_defaults(&two, sizeof two);
    two.columns = (const char *const[]){"c3", "c1"};
    two.n_columns = 2;
    for (int order = 0; order < 2; order++) {
        frg_context *const memory = test_context(), *const disk = spooled(1, ".", LIMIT);
        frg_table *t = NULL, *u = NULL;
        write_matrix(mapped(), order == 0);
        CHECK_OK(memory, frg_table_read(&t, memory, mapped(), NULL));
        CHECK_OK(disk, frg_table_read(&u, disk, mapped(), order ? NULL : &two));
        CHECK_INT(frg_table_columns(u), order ? 3 : 2);
        CHECK_SAYS((frg_spool_bytes(disk) < MAPPED_ROWS * sizeof(double)) == (order == 0),
                   "%zu bytes on the disk", frg_spool_bytes(disk)); /* a buffer alone */
        CHECK(order || frg_peak_bytes(disk) < MAPPED_ROWS * sizeof(double));
        CHECK_OK(disk, frgi_spool_check(disk));
        for (int64_t c = 0; c < frg_table_columns(u); c++) {
            const frg_column *const k = frg_table_column(u, c);
            CHECK_BITS(k->numbers, frg_table_find(t, k->name)->numbers,
                       MAPPED_ROWS * sizeof(double));
        }
        frg_table_destroy(t);
        frg_table_destroy(u);
        remove(mapped());
        frg_context_destroy(memory);
        frg_context_destroy(disk);
    }
}

static frg_status fit_mapped(frg_context *ctx, const frg_table *t, uint64_t *hash)
{
    frg_fe *f = NULL;
    TRY(frg_fe_fit(&f, ctx, "c1 ~ c2 | c3", t, NULL));
    fault_hash(hash, &frg_fe_get(f)->coefficients[0].estimate, sizeof(double));
    frg_fe_destroy(f);
    return FRG_OK;
}

/** A file that was written to since it was mapped, or cut, or made longer, gives no result; its
 *  name may go. */
static void changed_file(void)
{
    for (int way = 0; way < 3; way++) {
        frg_context *const ctx = spooled(1, ".", LIMIT);
        frg_table *t = NULL;
        uint64_t hash = 0;
        write_matrix(mapped(), true);
        const int fd = open(mapped(), O_WRONLY);
        CHECK_OK(ctx, frg_table_read(&t, ctx, mapped(), NULL));
        remove(mapped());
        CHECK_OK(ctx, fit_mapped(ctx, t, &hash));
        if (way == 0)
            CHECK(futimens(fd, (struct timespec[2]){{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1}}) == 0);
        else
            CHECK(ftruncate(fd, 128 + 8 * MAPPED_ROWS * MAPPED_COLUMNS + (way == 1 ? 1 : -1)) == 0);
        CHECK_STATUS(fit_mapped(ctx, t, &hash), FRG_IO);
        CHECK_TEXT(frg_error_code(ctx), "FRG-IO-016");
        CHECK_SAYS(strstr(frg_message(ctx), ".npy' was written to"), "%s", frg_message(ctx));
        frg_table_destroy(t);
        CHECK_OK(ctx, frgi_spool_check(ctx)); /* nobody uses it any more */
        close(fd);
        frg_context_destroy(ctx);
    }
}

/** A file that is copied first may be cut while a fit uses it, and not before. */
static void copied_file(void)
{
    frg_context *const memory = test_context();
    frg_table *t = NULL;
    uint64_t want = 0;
    write_matrix(mapped(), true);
    CHECK_OK(memory, frg_table_read(&t, memory, mapped(), NULL));
    CHECK_OK(memory, fit_mapped(memory, t, &want));
    frg_table_destroy(t);
    for (copying = COPIED; copying <= LOST; copying++) {
        frg_context *const ctx = spooled(1, ".", LIMIT);
        uint64_t got = 0;
        ctx->opts.copies_files = 1;
        write_matrix(mapped(), true);
        const frg_status status = frg_table_read(&t, ctx, mapped(), NULL);
        CHECK_STATUS(status, copying < CUT ? FRG_OK : FRG_IO);
        if (status == FRG_OK) {
            CHECK(truncate(mapped(), 200) == 0);
            CHECK_OK(ctx, fit_mapped(ctx, t, &got));
            CHECK_INT(got, want);
            frg_table_destroy(t);
        } else {
            CHECK_TEXT(frg_error_code(ctx), copying == CUT ? "FRG-IO-016" : "FRG-IO-002");
        }
        CHECK_INT(frgi_spool_held(ctx), 0);
        frg_context_destroy(ctx);
    }
    copying = COPIED;
    remove(mapped());
    frg_context_destroy(memory);
}

/* ---- the order of the rows ------------------------------------------------------------------- */

/** Forward is the stable order by levels, back is its inverse: columns of eight and of four bytes,
 *  side by side or one behind the other, and rows that go to their own place. */
static void order_of_rows(void)
{
    frg_context *const ctx = spooled(test_now.threads, ".", 1 << 20);
    enum { COLUMNS = 3 };
    const int64_t n = 30000 + test_below(20000), levels = 1 + test_below(3000);
    int32_t *level = NULL, *sorted = NULL;
    double *x = NULL, *y = NULL, *z = NULL;
    frgi_row_order o = {0};
    CHECK_OK(ctx, NEW(ctx, &level, n, "levels"));
    CHECK_OK(ctx, NEW(ctx, &sorted, n, "levels"));
    CHECK_OK(ctx, NEW(ctx, &x, n * COLUMNS, "rows"));
    CHECK_OK(ctx, NEW(ctx, &y, n * COLUMNS, "rows"));
    CHECK_OK(ctx, NEW(ctx, &z, n * COLUMNS, "rows"));
    for (int64_t i = 0; i < n; i++) {
        level[i] = (int32_t)(i < levels ? i : test_below(levels));
        for (int c = 0; c < COLUMNS; c++)
            x[c * n + i] = (double)(i + c * n);
    }
    memcpy(z, x, (size_t)(n * COLUMNS) * sizeof *x);
    CHECK_OK(ctx, frgi_row_order_create(&o, ctx, level, n, levels));
    CHECK(o.buckets > 1);
    CHECK_OK(ctx, frgi_row_order_room(&o, ctx, COLUMNS * sizeof *x));
    const frgi_columns codes = {level, 1, n, 1, sizeof *level};
    const frgi_columns ordered = {sorted, 1, n, 1, sizeof *level};
    const frgi_columns columns = {x, 1, n, COLUMNS, sizeof *x};
    const frgi_columns rows = {y, COLUMNS, 1, COLUMNS, sizeof *x};
    CHECK_OK(ctx, frgi_row_order_forward(&o, ctx, &codes, &ordered, true));
    CHECK_OK(ctx, frgi_row_order_forward(&o, ctx, &columns, &rows, true));
    bool right = true;
    for (int64_t j = 0; j < n; j++) {
        const double *const at = y + j * COLUMNS;
        right &= level[(int64_t)at[0]] == sorted[j];
        right &= j == 0 || sorted[j - 1] < sorted[j] ||
                 (sorted[j - 1] == sorted[j] && at[-COLUMNS] < at[0]);
        right &= at[1] == at[0] + (double)n && at[2] == at[0] + 2 * (double)n;
    }
    CHECK(right);
    CHECK(frgi_row_order_is_grouped(sorted, n, levels));
    CHECK(levels == 1 || levels > 2000 || !frgi_row_order_is_grouped(level, n, levels));
    CHECK_OK(ctx, frgi_row_order_forward(&o, ctx, &columns, &columns, false));
    CHECK(x[n - 1] == y[(n - 1) * COLUMNS]);
    CHECK_OK(ctx, frgi_row_order_back(&o, ctx, &columns, &columns, true));
    CHECK_BITS(x, z, (size_t)(n * COLUMNS) * sizeof *x);
    memset(x, 0, (size_t)(n * COLUMNS) * sizeof *x);
    CHECK_OK(ctx, frgi_row_order_back(&o, ctx, &rows, &columns, true));
    CHECK_BITS(x, z, (size_t)(n * COLUMNS) * sizeof *x);
    CHECK_OK(ctx, frgi_row_order_back(&o, ctx, &ordered, &ordered, false));
    CHECK_BITS(sorted, level, (size_t)n * sizeof *level);
    const frgi_columns apart = {y, COLUMNS, 1, COLUMNS - 1, sizeof *x}; /* the last stays between */
    for (int64_t i = 0; i < n * COLUMNS; i++)
        y[i] = -1;
    const frgi_columns two = {x, 1, n, COLUMNS - 1, sizeof *x};
    CHECK_OK(ctx, frgi_row_order_forward(&o, ctx, &two, &apart, true));
    for (int64_t j = 0; j < n; j++)
        right &= y[j * COLUMNS + 1] == y[j * COLUMNS] + (double)n && y[j * COLUMNS + 2] < 0;
    CHECK(right);
    memset(x, 0, (size_t)(n * COLUMNS) * sizeof *x);
    CHECK_OK(ctx, frgi_row_order_back(&o, ctx, &apart, &two, true));
    CHECK_BITS(x, z, (size_t)(n * (COLUMNS - 1)) * sizeof *x);
    memcpy(x, z, (size_t)(n * COLUMNS) * sizeof *x);
    CHECK_OK(ctx, frgi_spool_check(ctx));
    frg_interrupt(ctx);
    CHECK_STATUS(frgi_row_order_forward(&o, ctx, &columns, &rows, true), FRG_INTERRUPTED);
    CHECK_STATUS(frgi_row_order_back(&o, ctx, &rows, &columns, true), FRG_INTERRUPTED);
    CHECK_BITS(x, z, (size_t)(n * COLUMNS) * sizeof *x);
    CHECK_OK(ctx, frgi_row_order_forward(&o, ctx, &columns, &rows, false));
    frgi_row_order_destroy(&o, ctx);
    DROP(ctx, &level);
    DROP(ctx, &sorted);
    DROP(ctx, &x);
    DROP(ctx, &y);
    DROP(ctx, &z);
    frg_context_destroy(ctx);
}

/* ---- regressions ----------------------------------------------------------------------------- */

/** n rows: y, x, z, w (some 0), text keys a and b, numbers c and g, the row's number t, d where c > 4; some cells
 *  missing. */
static frg_table *make_table(frg_context *ctx, int64_t n, bool sorted)
{
    enum { LABELS = 4000 };
    static char text[LABELS][16];
    static const char *labels[LABELS];
    frg_table *t = NULL;
    double *const v = malloc((size_t)n * 4 * sizeof *v);
    int32_t *const k = malloc((size_t)n * 2 * sizeof *k);
    int64_t *const g = malloc((size_t)n * 4 * sizeof *g);
    const int64_t people = n / 5 < LABELS ? n / 5 + 1 : LABELS, firms = people / 6 + 2;
    for (int i = 0; i < LABELS; i++) {
        snprintf(text[i], sizeof text[i], "p%d", i);
        labels[i] = text[i];
    }
    for (int64_t i = 0; i < n; i++) {
        k[i] = (int32_t)(sorted ? i * people / n : test_below(people));
        k[n + i] = (int32_t)(test_below(4) ? k[i] % firms : test_below(firms));
        g[i] = test_below(7);
        g[n + i] = test_below(40);
        g[2 * n + i] = i;
        g[3 * n + i] = g[i] > 4;
        v[n + i] = test_uniform() + 0.1 * k[i];
        v[2 * n + i] = test_below(50) ? test_uniform() : (double)NAN;
        v[3 * n + i] = test_below(60) ? 0.5 + test_uniform() : 0;
        v[i] = v[n + i] - 0.3 * v[2 * n + i] + 0.01 * k[n + i] + test_uniform();
        k[i] = test_below(200) ? k[i] : FRG_MISSING_CODE;
    }
    CHECK_OK(ctx, frg_table_create(&t, ctx, n));
    CHECK_OK(ctx, frg_table_add_numbers(t, "y", v));
    CHECK_OK(ctx, frg_table_add_numbers(t, "x", v + n));
    CHECK_OK(ctx, frg_table_add_numbers(t, "z", v + 2 * n));
    CHECK_OK(ctx, frg_table_add_numbers(t, "w", v + 3 * n));
    CHECK_OK(ctx, frg_table_add_codes(t, "a", k, labels, LABELS));
    CHECK_OK(ctx, frg_table_add_codes(t, "b", k + n, labels, LABELS));
    CHECK_OK(ctx, frg_table_add_integers(t, "c", g));
    CHECK_OK(ctx, frg_table_add_integers(t, "g", g + n));
    CHECK_OK(ctx, frg_table_add_integers(t, "t", g + 2 * n));
    CHECK_OK(ctx, frg_table_add_integers(t, "d", g + 3 * n));
    free(v);
    free(k);
    free(g);
    return t;
}

static frg_table *copy_table(frg_context *ctx, const frg_table *from)
{
    frg_table *t = NULL;
    CHECK_OK(ctx, frg_table_create(&t, ctx, frg_table_rows(from)));
    for (int64_t c = 0; c < frg_table_columns(from); c++) {
        const frg_column *const k = frg_table_column(from, c);
        if (k->kind == FRG_NUMBER)
            CHECK_OK(ctx, frg_table_add_numbers(t, k->name, k->numbers));
        else if (k->kind == FRG_INTEGER)
            CHECK_OK(ctx, frg_table_add_integers(t, k->name, k->integers));
        else
            CHECK_OK(ctx, frg_table_add_codes(t, k->name, k->codes, k->labels, k->n_labels));
    }
    return t;
}

typedef struct {
    const char *formula, *weights;
    frg_weights_kind kind;
    frg_fe_method method;
} design;

static frg_status fit_design(frg_fe **out, frg_context *ctx, const design *d, const frg_table *t)
{
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.vcov[0] = "iid";
    o.vcov[1] = "hc1";
    o.vcov[2] = "cluster=g";
    o.vcov[3] = "cluster=b+c";
    o.n_vcov = 4;
    o.weights = d->weights;
    o.weights_kind = d->kind;
    o.demean.method = d->method;
    o.keep_effects = 1;
    return frg_fe_fit(out, ctx, d->formula, t, &o);
}

/** Coefficients, covariances, residuals, effects: every bit. */
static void compare_fits(const frg_fe *got, const frg_fe *want, frg_context *g, frg_context *w,
                         bool effects)
{
    const frg_fe_result *const a = frg_fe_get(got), *const b = frg_fe_get(want);
    const int64_t n = b->n_rows, k = b->n_coefficients;
    CHECK_INT(a->n, b->n);
    CHECK_INT(a->n_singleton, b->n_singleton);
    CHECK_INT(a->rank, b->rank);
    if (b->demean.method)
        CHECK_TEXT(a->demean.method, b->demean.method);
    if (!CHECK_INT(a->n_coefficients, k))
        return;
    for (int v = 0; v < b->n_vcov; v++) {
        CHECK_BITS(a->vcov[v].matrix, b->vcov[v].matrix, (size_t)(k * k) * sizeof(double));
        CHECK_BITS(&a->vcov[v].wald_f, &b->vcov[v].wald_f, sizeof(double));
    }
    for (int64_t j = 0; j < k; j++)
        CHECK_BITS(&a->coefficients[j].estimate, &b->coefficients[j].estimate, sizeof(double));
    CHECK_BITS(&a->rss, &b->rss, sizeof(double));
    CHECK_BITS(&a->tss, &b->tss, sizeof(double));
    double *const e = malloc((size_t)n * 4 * sizeof *e);
    CHECK_OK(g, frg_fe_residuals(got, e, e + n));
    CHECK_OK(w, frg_fe_residuals(want, e + 2 * n, e + 3 * n));
    CHECK_BITS(e, e + 2 * n, (size_t)(2 * n) * sizeof *e);
    free(e);
    frg_table *p = NULL, *q = NULL;
    if (b->n_factors > 0 && effects && CHECK_OK(g, frg_fe_effects(got, &p)) &&
        CHECK_OK(w, frg_fe_effects(want, &q))) {
        const frg_column *const s = frg_table_column(p, 2), *const t = frg_table_column(q, 2);
        if (CHECK_INT(s->n, t->n))
            CHECK_BITS(s->numbers, t->numbers, (size_t)t->n * sizeof(double));
    }
    frg_table_destroy(p);
    frg_table_destroy(q);
}

/** One design in memory and on the disk, with other threads. */
static void try_design(const design *d, int64_t n, bool sorted)
{
    frg_context *const memory = test_context(), *const disk =
                                                    spooled(1 + (int)test_below(3), ".", LIMIT);
    frg_table *const t = make_table(memory, n, sorted), *const u = copy_table(disk, t);
    frg_fe *want = NULL, *got = NULL;
    const frg_status s = fit_design(&want, memory, d, t), r = fit_design(&got, disk, d, u);
    CHECK_SAYS(s >= 0 && s == r, "%s: %s in memory, %s on the disk: %s", d->formula,
               frg_status_name(s), frg_status_name(r), frg_message(disk));
    if (want && got)
        compare_fits(got, want, disk, memory, true);
    CHECK(frg_spool_bytes(disk) > 0);
    frg_fe_destroy(want);
    frg_fe_destroy(got);
    frg_table_destroy(t);
    frg_table_destroy(u);
    frg_context_destroy(memory);
    frg_context_destroy(disk);
}

/** What a dry run tells of the disk holds, and is not many times what there was; the buffer of an
 *  order, a 16th of the limit, lies in memory but where blocks of all sizes do not. */
static void bounds_of_leverages(void)
{
    static const char *const specs[] = {"hc2", "hc3,leverage=approx",
                                        "hc3,leverage=approx,draws=40"};
    static const char *const formulas[] = {"y ~ x + z | a + b", "y ~ x | a", "y ~ z | a + b[x]"};
    for (int k = 0; k < 9; k++) {
        frg_context *const disk = spooled(test_now.threads, ".", LIMIT);
        const int64_t n = 1500;
        frgi_spool_from(disk, (size_t)n * sizeof(int32_t)); /* what has a number a row */
        frg_table *const t = make_table(disk, n, k % 2 == 0);
        frg_fe *f = NULL;
        frg_fe_size size;
        frg_fe_opts o;
        frg_fe_defaults(&o, sizeof o);
        o.vcov[0] = specs[k % 3];
        o.n_vcov = 1;
        CHECK_OK(disk, frg_fe_estimate(disk, formulas[k / 3], t, &o, &size));
        CHECK(frg_fe_fit(&f, disk, formulas[k / 3], t, &o) >= 0);
        const size_t had = frg_spool_bytes(disk);
        CHECK_SAYS(had <= size.spool_bytes + LIMIT / 16 && size.spool_bytes < 4 * had,
                   "%s, %s: %zu bytes on the disk, %zu reported", formulas[k / 3], specs[k % 3],
                   had, size.spool_bytes);
        frg_fe_destroy(f);
        frg_table_destroy(t);
        frg_context_destroy(disk);
    }
}

/** The other end of what a dry run tells: with a factor, and the count of the rank of three. */
static void bounds_with_a_factor(void)
{
    static const char *const formulas[] = {"y ~ x + z | a + b", "y ~ x | a + b + c",
                                           "y ~ z | a + b[x]"};
    for (int k = 0; k < 3; k++) {
        frg_context *const disk = spooled(test_now.threads, ".", LIMIT);
        frgi_spool_from(disk, 1024);
        frg_table *const t = make_table(disk, 1500, k % 2 == 0);
        frg_fe *f = NULL;
        frg_fe_size size;
        frg_fe_opts o;
        frg_fe_defaults(&o, sizeof o);
        o.demean.method = k < 2 ? FRG_FE_DIRECT : FRG_FE_LSMR;
        o.demean.dof = FRG_DOF_EXACT;
        CHECK_OK(disk, frg_fe_estimate(disk, formulas[k], t, &o, &size));
        const size_t cap = size.with_factor_bytes - size.plan_bytes;
        CHECK_INT(size.spool_with_factor_bytes, size.spool_bytes + (k == 0 ? 1 : 2) * cap);
        CHECK(frg_fe_fit(&f, disk, formulas[k], t, &o) >= 0);
        CHECK_SAYS(frg_spool_bytes(disk) <= size.spool_with_factor_bytes,
                   "%s: %zu bytes on the disk, %zu reported", formulas[k], frg_spool_bytes(disk),
                   size.spool_with_factor_bytes);
        frg_fe_destroy(f);
        frg_table_destroy(t);
        frg_context_destroy(disk);
    }
}

static void same_bits(void)
{
    static const design designs[] = {
        {.formula = "y ~ x + z | a + b"},
        {.formula = "y ~ x + z | a + b + c", .weights = "w"},
        {.formula = "y ~ x + log(w + 1) | b^c + a", .method = FRG_FE_DIRECT},
        {.formula = "y ~ x + i(c) | a", .weights = "w", .kind = FRG_WEIGHTS_PROBABILITY},
        {.formula = "y ~ x + z | a + b[x]"},
        {.formula = "y ~ x + z + factor(c)"},
        {.formula = "y ~ x | a + b", .method = FRG_FE_LSMR},
        {.formula = "y ~ x | a + b + c", .weights = "w", .method = FRG_FE_MLSMR},
        {.formula = "y ~ z | a[x] + b", .weights = "w"},
        {.formula = "y ~ z + c | a + g", .weights = "g", .kind = FRG_WEIGHTS_FREQUENCY},
    };
    const int count = (int)(sizeof designs / sizeof *designs);
    for (int i = 0; i < count; i++)
        try_design(&designs[i], test_size(300, 100) + test_below(test_size(9000, 200)),
                   test_below(2) == 0);
}

typedef struct {
    const char *formula, *vcov;
    frg_fe_family family;
    const char *panel, *first_stage, *weights;
} model;

static frg_status fit_model(frg_fe **out, frg_context *ctx, const model *m, const frg_table *t)
{
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.vcov[0] = m->vcov;
    o.family = m->family;
    o.panel = m->panel;
    o.first_stage = m->first_stage;
    o.weights = m->weights;
    return frg_fe_fit(out, ctx, m->formula, t, &o);
}

/** Every covariance, instruments, families, lags and two stages: bits of rows as they come. */
static void models(void)
{
    static const char two[] = "y ~ x + z | a + b", one[] = "y ~ x + z | a";
    static const model all[] = {
        {.formula = two, .vcov = "hetero"},
        {.formula = two, .vcov = "hc2"},
        {.formula = "y ~ x | a + c + g", .vcov = "hc3", .weights = "w"},
        {.formula = two, .vcov = "hc3,leverage=approx,draws=20"},
        {.formula = two, .vcov = "cr2=g"},
        {.formula = two, .vcov = "cr3=b", .weights = "w"},
        {.formula = one, .vcov = "jackknife=g"},
        {.formula = two, .vcov = "crv3=g"},
        {.formula = two, .vcov = "wild=g,99"},
        {.formula = two, .vcov = "conley=x,z,40"},
        {.formula = one, .vcov = "nw=a,t,2"},
        {.formula = two, .vcov = "dk=g,3"},
        {.formula = one, .vcov = "hac=a,t,2"},
        {.formula = "y ~ x | a + b | z ~ c + g", .vcov = "cluster=g", .weights = "w"},
        {.formula = "y ~ x | a | z ~ c", .vcov = "nw=a,t,1"},
        {.formula = "c ~ x + z | a + b", .vcov = "cluster=g", .family = FRG_FAMILY_POISSON},
        {.formula = "d * c ~ x + z + i(c) | a + b", .vcov = "iid", .family = FRG_FAMILY_POISSON},
        {.formula = "c ~ x | a + g", .vcov = "hc1", .family = FRG_FAMILY_NEGBIN},
        {.formula = "(c > 3) ~ x + z | b", .vcov = "hc1", .family = FRG_FAMILY_LOGIT},
        {.formula = "(c > 3) ~ x | b", .vcov = "iid", .family = FRG_FAMILY_PROBIT},
        {.formula = "w + 1 ~ x | a + b[z]", .vcov = "hc1", .family = FRG_FAMILY_GAMMA},
        {.formula = "y ~ l(x, 1) + z | a", .vcov = "hc1", .panel = "a,t"},
        {.formula = "y ~ i(c)", .vcov = "cluster=g", .first_stage = "d ~ x | b + g"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        frg_context *const memory = test_context(), *const disk = spooled(2, ".", LIMIT);
        frg_table *const t = make_table(memory, test_size(600, 300), i % 3 == 0);
        frg_table *const u = copy_table(disk, t);
        frg_fe *want = NULL, *got = NULL;
        const frg_status s = fit_model(&want, memory, &all[i], t);
        const frg_status r = fit_model(&got, disk, &all[i], u);
        CHECK_SAYS(s >= 0 && s == r, "%s, %s: %s in memory, %s on the disk: %s", all[i].formula,
                   all[i].vcov, frg_message(memory), frg_status_name(r), frg_message(disk));
        if (want && got)
            compare_fits(got, want, disk, memory, false);
        frg_fe_destroy(want);
        frg_fe_destroy(got);
        frg_table_destroy(t);
        frg_table_destroy(u);
        frg_context_destroy(memory);
        frg_context_destroy(disk);
    }
}

/** Several models in one call, of one sample and of two, and one after the other. */
static void several_models(void)
{
    frg_context *const memory = test_context(), *const disk = spooled(2, ".", LIMIT);
    frg_table *const t = make_table(memory, test_size(1500, 500), false);
    frg_table *const u = copy_table(disk, t);
    frg_fe_many *want = NULL, *got = NULL;
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.vcov[0] = "cluster=g";
    const char *const formula = "c(y, x, z) ~ csw(c, d, t) | sw(a + b, b)";
    CHECK_OK(memory, frg_fe_fit_many(&want, memory, formula, t, &o));
    CHECK_OK(disk, frg_fe_fit_many(&got, disk, formula, u, &o));
    CHECK_INT(frg_fe_many_count(want), 18);
    for (int64_t i = 0; i < frg_fe_many_count(want); i++)
        compare_fits(frg_fe_many_get(got, i), frg_fe_many_get(want, i), disk, memory, false);
    frg_fe_many_destroy(want);
    frg_fe_many_destroy(got);
    frg_table_destroy(t);
    frg_table_destroy(u);
    frg_context_destroy(memory);
    frg_context_destroy(disk);
}

/** Predictions for other rows, of a fit on the disk of least squares or of counts: the same. */
static void predictions(void)
{
    for (int family = 0; family < 2; family++) {
        frg_context *const memory = test_context(), *const disk = spooled(2, ".", LIMIT);
        frg_table *const t = make_table(memory, 900, false), *const u = copy_table(disk, t);
        frg_table *const other = make_table(memory, 700, false), *const other_copy =
                                                                     copy_table(disk, other);
        frg_fe *want = NULL, *got = NULL;
        frg_fe_opts o;
        double p[2][700];
        int64_t unseen[2] = {-1, -2};
        frg_fe_defaults(&o, sizeof o);
        o.family = family ? FRG_FAMILY_POISSON : FRG_FAMILY_OLS;
        o.keep_effects = 1;
        CHECK_OK(memory, frg_fe_fit(&want, memory, "c ~ x | a + b + g", t, &o));
        CHECK_OK(disk, frg_fe_fit(&got, disk, "c ~ x | a + b + g", u, &o));
        if (want && got) {
            compare_fits(got, want, disk, memory, true);
            CHECK_OK(memory, frg_fe_predict(want, other, p[0], &unseen[0]));
            CHECK_OK(disk, frg_fe_predict(got, other_copy, p[1], &unseen[1]));
            CHECK_BITS(p[1], p[0], sizeof p[0]);
            CHECK_INT(unseen[1], unseen[0]);
        }
        frg_fe_destroy(want);
        frg_fe_destroy(got);
        frg_table_destroy(t);
        frg_table_destroy(u);
        frg_table_destroy(other);
        frg_table_destroy(other_copy);
        frg_context_destroy(memory);
        frg_context_destroy(disk);
    }
}

/* ---- a run that goes on elsewhere ------------------------------------------------------------ */

/** Columns that were done when a run was stopped, after the first. */
typedef struct {
    frg_context *ctx; /* to be stopped; NULL: the run goes on */
    double *values;
    frg_demean_column reports[8];
    int64_t done, saves;
    frg_status worst;
} kept_columns;

static frg_status load_kept(void *user, int64_t n, int64_t p, double *values,
                            frg_demean_column *columns, int64_t *done, frg_status *worst)
{
    const kept_columns *const k = user;
    CHECK(k->done < p);
    *done = k->done;
    if (k->done > 0) {
        *worst = k->worst;
        memcpy(values, k->values, (size_t)(n * k->done) * sizeof *values);
        memcpy(columns, k->reports, (size_t)k->done * sizeof *columns);
    }
    return FRG_OK;
}

static frg_status save_kept(void *user, int64_t n, int64_t p, const double *values,
                            const frg_demean_column *columns, int64_t done, frg_status worst,
                            int stopped)
{
    kept_columns *const k = user;
    (void)p;
    (void)stopped;
    k->saves++;
    free(k->values);
    k->values = malloc((size_t)(n * done) * sizeof *values);
    memcpy(k->values, values, (size_t)(n * done) * sizeof *values);
    memcpy(k->reports, columns, (size_t)done * sizeof *columns);
    k->done = done;
    k->worst = worst;
    if (k->ctx)
        frg_interrupt(k->ctx);
    return FRG_OK;
}

static frg_status fit_kept(frg_fe **out, frg_context *ctx, const frg_table *t, kept_columns *k)
{
    const frg_column_store store = {.block = 1, .load = load_kept, .save = save_kept, .user = k};
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.vcov[0] = "cluster=g";
    o.store = k ? &store : NULL;
    return frg_fe_fit(out, ctx, "y ~ x + z | a + b", t, &o);
}

/** What was done in memory goes on on the disk, and the other way round: columns are kept in the
 *  order of the rows, and end with the same bits. */
static void goes_on_elsewhere(void)
{
    for (int way = 0; way < 2; way++) {
        frg_context *const memory = test_context(), *const disk = spooled(2, ".", LIMIT);
        frg_table *const t = make_table(memory, 900, false), *const u = copy_table(disk, t);
        frg_context *const first = way ? disk : memory, *const second = way ? memory : disk;
        kept_columns k = {.ctx = first};
        frg_fe *want = NULL, *got = NULL, *none = NULL;
        CHECK_OK(memory, fit_kept(&want, memory, t, NULL));
        CHECK_STATUS(fit_kept(&none, first, way ? u : t, &k), FRG_INTERRUPTED);
        CHECK(!none);
        CHECK_INT(k.done, 1);
        k.ctx = NULL;
        CHECK_OK(second, fit_kept(&got, second, way ? t : u, &k));
        CHECK(k.saves >= 2);
        if (want && got)
            compare_fits(got, want, second, memory, false);
        frg_fe_destroy(want);
        frg_fe_destroy(got);
        free(k.values);
        frg_table_destroy(t);
        frg_table_destroy(u);
        frg_context_destroy(memory);
        frg_context_destroy(disk);
    }
}

/** What progress said of the columns' way into the order of the levels, and of the way back. */
typedef struct {
    int64_t times[2], total[2];
    bool in_turn;
} ways;

static int watch(const frg_progress *p, void *user)
{
    ways *const w = user;
    const bool there = !strcmp(p->phase, "order by level");
    const bool back = !strcmp(p->phase, "back to the rows' order");
    if ((there || back) && !p->in_bytes) {
        w->in_turn = w->in_turn && p->done == 0 && w->times[0] == back;
        w->times[back]++;
        w->total[back] = p->total;
    }
    return 0;
}

/** y and x go there and back together, and progress says so each way. */
static void progress_of(const design *d)
{
    ways w = {.in_turn = true};
    frg_context_opts o;
    frg_context *ctx = NULL;
    frg_fe *f = NULL;
    frg_context_defaults(&o, sizeof o);
    o.memory_limit = LIMIT;
    o.spool = ".";
    o.on_progress = watch;
    o.user = &w;
    if (!CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK))
        return;
    frgi_spool_from(ctx, SMALL);
    frg_table *const t = make_table(ctx, 3000, false);
    CHECK_OK(ctx, fit_design(&f, ctx, d, t));
    CHECK(w.in_turn);
    for (int way = 0; way < 2; way++) {
        CHECK_INT(w.times[way], 1);
        CHECK_INT(w.total[way], 2);
    }
    frg_fe_destroy(f);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

static void progress(void)
{
    progress_of(&(design){.formula = "y ~ x | a"});
    progress_of(&(design){.formula = "y ~ x | a + b", .method = FRG_FE_LSMR});
    progress_of(&(design){.formula = "y ~ z | a + b[x]"});
}

/** Real data, the first covariance of each. */
static void same_bits_of_data(void)
{
    static const struct {
        const char *file, *formula, *vcov;
    } fits[] = {{"grunfeld.csv", "invest ~ value + capital | firm + year", "cluster=firm"},
                {"empluk.csv", "log(emp) ~ log(wage) + log(capital) | firm + year", "hc1"},
                {"wage_panel.csv", "lwage ~ expersq + union + married | nr + year", "cluster=nr"}};
    for (size_t i = 0; i < sizeof fits / sizeof *fits; i++) {
        frg_context *const memory = test_context(), *const disk = spooled(2, ".", LIMIT);
        frg_context *const both[] = {memory, disk};
        frg_fe *fit[2] = {NULL, NULL};
        frg_table *t[2] = {NULL, NULL};
        char path[512];
        snprintf(path, sizeof path, "%s/data/%s", FOURGE_SOURCE_DIR, fits[i].file);
        for (int k = 0; k < 2; k++) {
            frg_fe_opts o;
            frg_fe_defaults(&o, sizeof o);
            o.vcov[0] = fits[i].vcov;
            o.keep_effects = 1;
            if (CHECK_OK(both[k], frg_table_read(&t[k], both[k], path, NULL)))
                CHECK_OK(both[k], frg_fe_fit(&fit[k], both[k], fits[i].formula, t[k], &o));
        }
        if (fit[0] && fit[1])
            compare_fits(fit[1], fit[0], disk, memory, true);
        for (int k = 0; k < 2; k++) {
            frg_fe_destroy(fit[k]);
            frg_table_destroy(t[k]);
            frg_context_destroy(both[k]);
        }
    }
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

static void refused(const char *folder, const char *says)
{
    frg_context *const ctx = spooled(1, folder, LIMIT);
    double *x = NULL;
    const bool unusable = strstr(says, "cannot be used") != NULL;
    const frg_status want = unusable ? FRG_CANNOT_CREATE : FRG_IO;
    const char *const code = unusable ? "FRG-IO-003" : "FRG-CORE-070";
    const bool full = strstr(says, "ulimit") != NULL;
    CHECK_STATUS(frg_spool_usable(ctx), full ? FRG_OK : want);
    CHECK_SAYS(full || strstr(frg_message(ctx), says), "%s", frg_message(ctx));
    CHECK_STATUS(NEW(ctx, &x, SMALL, "a column"), want);
    CHECK_TEXT(frg_error_code(ctx), code);
    CHECK_SAYS(strstr(frg_message(ctx), says) && strstr(frg_message(ctx), folder), "%s",
               frg_message(ctx));
    CHECK(!x);
    CHECK_INT(frg_warning_count(ctx), full);
    CHECK_OK(ctx, NEW(ctx, &x, 8, "a small block")); /* what fits goes on */
    DROP(ctx, &x);
    frg_context_destroy(ctx);
}

static void folders(void)
{
    struct statfs f;
    refused("./no/such/folder", "cannot be used");
    refused("/dev/null", "cannot be used");
    refused("", "cannot be used");
    CHECK_STATUS(frg_spool_usable(NULL), FRG_BAD_ARG);
    frg_context *const plain = test_context();
    CHECK_STATUS(frg_spool_usable(plain), FRG_BAD_ARG);
    frg_context_destroy(plain);
    refused(FOURGE_SOURCE_DIR "/README.md", "cannot be used");
    if (statfs("/dev/shm", &f) == 0 && (unsigned long)f.f_type == 0x01021994)
        refused("/dev/shm", "in memory");
}

/** A limit on the size of files is the full disk that a test can have. */
static void full_disk(void)
{
    frg_context *const one = spooled(1, ".", LIMIT);
    double *x = NULL;
    CHECK_OK(one, NEW(one, &x, 1000, "a column"));
    x[999] = 7;
    struct rlimit before, low;
    if (!CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0))
        return;
    void (*const action)(int) = signal(SIGXFSZ, SIG_IGN);
    low = before;
    low.rlim_cur = SMALL;
    setrlimit(RLIMIT_FSIZE, &low);
    refused(".", "ulimit -f");
    const double *const before_growth = x;
    CHECK_STATUS(GROW(one, &x, 2000, "a longer column"), FRG_IO);
    CHECK_SAYS(strstr(frg_message(one), "8000 bytes on disk"), "%s", frg_message(one));
    CHECK(x == before_growth && x[999] == 7);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, action);
    DROP(one, &x);
    frg_context_destroy(one);
    frg_context *const ctx = spooled(1, ".", LIMIT);
    CHECK_STATUS(frgi_spool_expect(ctx, SIZE_MAX / 2, "a table"), FRG_IO);
    CHECK_OK(ctx, frgi_spool_expect(ctx, LIMIT / 2, "a table"));
    frg_context_destroy(ctx);
}

static void check_failed(frg_context *ctx, frg_status status)
{
    CHECK_STATUS(status, FRG_IO);
    CHECK_TEXT(frg_error_code(ctx), "FRG-CORE-072");
    CHECK_SAYS(strstr(frg_message(ctx), strerror(EIO)), "%s", frg_message(ctx));
}

/** A page that the disk could not take, of a block that is there or was: no result and no file from
 *  then on. */
static void failed_disk(void)
{
    frg_context *const memory = test_context();
    frg_table *const t = make_table(memory, 400, true);
    for (int gone = 0; gone < 2; gone++) {
        frg_context *const ctx = spooled(1, ".", LIMIT);
        double *x = NULL;
        CHECK_OK(ctx, NEW(ctx, &x, SMALL, "a column"));
        CHECK_OK(ctx, frgi_spool_check(ctx));
        disk_fails = true;
        if (gone)
            DROP(ctx, &x);
        else
            check_failed(ctx, frgi_spool_check(ctx));
        CHECK(!disk_fails);
        check_failed(ctx, frg_write_file(ctx, "lost", "x", 1));
        CHECK(access("lost", F_OK) != 0);
        frg_fe *f = NULL;
        const design d = {.formula = "y ~ x | a"};
        check_failed(ctx, fit_design(&f, ctx, &d, t));
        CHECK(!f);
        DROP(ctx, &x);
        frg_context_destroy(ctx);
    }
    frg_table_destroy(t);
    frg_context_destroy(memory);
}

/** A write of rows on their way that the disk refuses: each pass in turn, and no result then. */
static void failed_order(void)
{
    const int64_t n = 20000, levels = 500;
    for (int back = 0; back < 2; back++) {
        frg_context *const ctx = spooled(test_now.threads, ".", 1 << 20);
        int32_t *level = NULL;
        double *x = NULL;
        frgi_row_order o = {0};
        CHECK_OK(ctx, NEW(ctx, &level, n, "levels"));
        CHECK_OK(ctx, NEW(ctx, &x, n, "a column"));
        for (int64_t i = 0; i < n; i++) {
            level[i] = (int32_t)(i < levels ? i : test_below(levels));
            x[i] = (double)i;
        }
        CHECK_OK(ctx, frgi_row_order_create(&o, ctx, level, n, levels));
        CHECK_OK(ctx, frgi_row_order_room(&o, ctx, sizeof *x));
        const frgi_columns c = {x, 1, n, 1, sizeof *x};
        struct rlimit before, low;
        CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
        void (*const action)(int) = signal(SIGXFSZ, SIG_IGN);
        low = before;
        low.rlim_cur = 4096;
        setrlimit(RLIMIT_FSIZE, &low);
        const frg_status status = back ? frgi_row_order_back(&o, ctx, &c, &c, false)
                                       : frgi_row_order_forward(&o, ctx, &c, &c, false);
        setrlimit(RLIMIT_FSIZE, &before);
        signal(SIGXFSZ, action);
        CHECK_OK(ctx, status);
        CHECK_STATUS(frgi_spool_check(ctx), FRG_IO);
        CHECK_TEXT(frg_error_code(ctx), "FRG-CORE-072");
        CHECK_SAYS(strstr(frg_message(ctx), strerror(EFBIG)), "%s", frg_message(ctx));
        frgi_row_order_destroy(&o, ctx);
        DROP(ctx, &level);
        DROP(ctx, &x);
        frg_context_destroy(ctx);
    }
}

/** What the process holds beyond the limit is said, once a run, with how much it was. */
static void beyond_limit(void)
{
    frg_context *const ctx = spooled(1, ".", 1 << 20);
    double *x = NULL;
    CHECK_OK(ctx, NEW(ctx, &x, SMALL, "a column"));
    frg_warnings_clear(ctx);
    CHECK_STATUS(frgi_stopped(ctx), FRG_OK); /* looks */
    CHECK_OK(ctx, frgi_spool_check(ctx));
    CHECK_OK(ctx, frgi_spool_check(ctx));
    if (CHECK_INT(frg_warning_count(ctx), 1))
        CHECK_TEXT(frg_warning_code(ctx, 0), "FRG-CORE-171");
    DROP(ctx, &x);
    frg_context_destroy(ctx);
}

/** Half of the machine's memory is the limit where none is given. */
static void limit_of_itself(void)
{
    frg_context_opts o;
    frg_context *ctx = NULL;
    frg_context_defaults(&o, sizeof o);
    o.spool = ".";
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    CHECK_INT(ctx->opts.memory_limit, frgi_machine_memory(ctx) / 2);
    CHECK_INT(frgi_memory_allowed(ctx), frgi_machine_memory(ctx));
    CHECK(frgi_data_allowed(ctx) >= frgi_memory_allowed(ctx));
    frg_context_destroy(ctx);
}

/** A fit whose larger blocks lie on the disk; every allocation fails once. */
static frg_status faulty_fit(frg_context *ctx, void *user, uint64_t *hash)
{
    const frg_table *const data = user;
    if (!ctx->spool) {
        ctx->opts.memory_limit = LIMIT;
        TRY(frgi_spool_open(ctx, "."));
        frgi_spool_from(ctx, SMALL);
    }
    frg_table *const t = (frg_table *)(uintptr_t)data;
    frg_fe *f = NULL;
    const design d = {.formula = "y ~ x + z | a + b"};
    const frg_status status = fit_design(&f, ctx, &d, t);
    if (status >= 0)
        fault_hash(hash, frg_fe_get(f)->vcov[0].matrix, 4 * sizeof(double));
    frg_fe_destroy(f);
    return status;
}

typedef struct {
    frg_table *data;
    model m;
} model_job;

/** By reweighting, and with rows brought together for leverages. */
static frg_status faulty_model(frg_context *ctx, void *user, uint64_t *hash)
{
    const model_job *const j = user;
    frg_fe *f = NULL;
    if (!ctx->spool) {
        ctx->opts.memory_limit = LIMIT;
        TRY(frgi_spool_open(ctx, "."));
        frgi_spool_from(ctx, SMALL);
    }
    const frg_status status = fit_model(&f, ctx, &j->m, j->data);
    if (status >= 0)
        fault_hash(hash, frg_fe_get(f)->vcov[0].matrix, sizeof(double));
    frg_fe_destroy(f);
    return status;
}

static frg_status faulty_map(frg_context *ctx, void *user, uint64_t *hash)
{
    (void)user;
    frg_table *t = NULL;
    if (!ctx->spool) {
        ctx->opts.memory_limit = LIMIT;
        TRY(frgi_spool_open(ctx, "."));
        frgi_spool_from(ctx, SMALL);
    }
    TRY(frg_table_read(&t, ctx, mapped(), NULL));
    const frg_status status = fit_mapped(ctx, t, hash);
    frg_table_destroy(t);
    return status;
}

static frg_status faulty_copy(frg_context *ctx, void *user, uint64_t *hash)
{
    ctx->opts.copies_files = 1;
    return faulty_map(ctx, user, hash);
}

static void faults_of_files(void)
{
    write_matrix(mapped(), true);
    fault_sweep("a fit of a mapped file", faulty_map, NULL, 1);
    fault_sweep("a fit of a copied file", faulty_copy, NULL, 1);
    fault_sweep_files("a fit of a file that is no descriptor", faulty_map, NULL);
    remove(mapped());
}

static void faults(void)
{
    frg_context *const ctx = test_context();
    frg_table *const t = make_table(ctx, 600, false);
    fault_sweep("a fit on the disk", faulty_fit, t, 1);
    model_job j = {t, {.formula = "c ~ x | a + g", .vcov = "hc1", .family = FRG_FAMILY_POISSON}};
    fault_sweep_once("counts on the disk", faulty_model, &j, 1);
    j.m = (model){.formula = "y ~ x | a + g", .vcov = "hc2", .weights = "w"};
    fault_sweep_once("leverages on the disk", faulty_model, &j, 1);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {{"blocks", blocks},
                                  {"pages leave", pages_leave},
                                  {"mapped columns", mapped_columns},
                                  {"changed file", changed_file},
                                  {"copied file", copied_file},
                                  {"order of rows", order_of_rows},
                                  {"same bits", same_bits},
                                  {"models", models},
                                  {"several models", several_models},
                                  {"predictions", predictions},
                                  {"goes on elsewhere", goes_on_elsewhere},
                                  {"same bits of data", same_bits_of_data},
                                  {"progress", progress},
                                  {"bounds of leverages", bounds_of_leverages},
                                  {"bounds with a factor", bounds_with_a_factor},
                                  {"folders", folders},
                                  {"full disk", full_disk},
                                  {"failed disk", failed_disk},
                                  {"failed writes of rows", failed_order},
                                  {"beyond limit", beyond_limit},
                                  {"limit of itself", limit_of_itself},
                                  {"faults of files", faults_of_files},
                                  {"faults", faults}};
TEST_MAIN(cases)
