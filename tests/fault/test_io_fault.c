/* test_io_fault.c - reading and writing tables and arrays while memory, files and pipes fail. */
#include <dirent.h>
#include <unistd.h>

#include "unit/dta_help.h"

#include "io/csv.h"

static char folder[] = "/tmp/fourge_io_XXXXXX";
static char path[sizeof folder + 32];

static const char *in_folder(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int count_files(void)
{
    int files = 0;
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && (e = readdir(d));)
        files += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return files;
}

/** Every kind of column; `late` becomes a category in the last row, `odd` has quotes. */
static void make_text(byte_string *b, int rows)
{
    add_bytes(b, "i,x,late,s,odd\n", 15);
    for (int r = 0; r < rows; r++) {
        char line[100];
        const int n = snprintf(line, sizeof line, "%d,%d.5,%s,k%d,\"a\"\"%d\"\n", r, r,
                               r < rows - 1 ? "7" : "x", r % 17, r % 5);
        add_bytes(b, line, (size_t)n);
    }
}

/** A number, a labelled one, one whose labels are not there, a text, a long text. */
static void make_dta(byte_string *b)
{
    static const dta_variable v[] = {{"x", DTA_DOUBLE, "%9.0g", ""},
                                     {"sex", DTA_BYTE, "%8.0g", "sexes"},
                                     {"age", DTA_BYTE, "%8.0g", "ages"},
                                     {"s", 3, "%3s", ""},
                                     {"l", DTA_STRL, "%9s", ""}};
    const dta_labels sexes = {"sexes", 3, (const int32_t[]){1, 2, 3},
                              (const char *const[]){"man", "man", "woman"}};
    dta_file f = {.variables = v, .n_variables = 5, .rows = 40, .labels = &sexes, .n_labels = 1};
    for (unsigned r = 0; r < 40; r++) {
        const char text[3] = {'a', (char)('a' + r % 20), 'z'};
        add_number(&f.data, UINT64_C(0x3ff0000000000000) + r, 8);
        add_number(&f.data, 1 + r % 3, 1);
        add_number(&f.data, r, 1);
        add_bytes(&f.data, text, 3);
        add_number(&f.data, 5, 2);
        add_number(&f.data, 1, 6);
    }
    add_strl(&f.strls, 5, 1, "long");
    add_dta(b, &f);
    drop_bytes(&f.data);
    drop_bytes(&f.strls);
}

static void hash_table(uint64_t *hash, const frg_table *t)
{
    const uint64_t h = table_hash(t);
    fault_hash(hash, &h, sizeof h);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static frg_status parse_body(frg_context *ctx, void *user, uint64_t *hash)
{
    const byte_string *const b = user;
    frg_table *t;
    const char *const name = memcmp(b->data, "PK", 2) == 0       ? "t.npz"
                             : memcmp(b->data, "<stata", 6) == 0 ? "t.dta"
                                                                 : "t.csv";
    const frg_status s = frg_table_parse(&t, ctx, (char *)b->data, (int64_t)b->count, name, NULL);
    if (s == FRG_OK)
        hash_table(hash, t);
    frg_table_destroy(t);
    return s;
}

/** Small steps: several segments, growing arrays, the second pass. */
static frg_status segments_body(frg_context *ctx, void *user, uint64_t *hash)
{
    const byte_string *const b = user;
    const frgi_span span = {(const char *)b->data, (int64_t)b->count};
    const frgi_input input = {.name = "t.csv", .spans = &span, .n_spans = 1};
    frg_table_opts o;
    frg_table_defaults(&o, sizeof o);
    o.delimiter = ',';
    frgi_source *source;
    frg_status s = frgi_source_open(&source, ctx, &input, true);
    frg_table *t = NULL;
    if (s == FRG_OK)
        s = frgi_csv_read(&t, ctx, &input, source, &o, &(frgi_csv_steps){60, 150, 0});
    frgi_source_close(&source);
    if (s == FRG_OK)
        hash_table(hash, t);
    frg_table_destroy(t);
    return s;
}

static void memory_for_parsing(void)
{
    byte_string text = {0}, packed = {0}, zip = {0}, array = {0}, frames = {0}, dta = {0};
    make_text(&text, 40);
    CHECK(fault_sweep("csv", parse_body, &text, 2) > 20);
    CHECK(fault_sweep("csv in segments", segments_body, &text, 2) > 40);
    add_deflated(&packed, text.data, text.count, 31);
    CHECK(fault_sweep("csv.gz", parse_body, &packed, 1) > 20);
    add_zstd_bytes(&frames, text.data, text.count, 400);
    CHECK(fault_sweep("csv.zst", parse_body, &frames, 1) > 20);
    const double x[4] = {1, 2, 3, 4};
    add_npy(&array, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }", x, sizeof x);
    add_zip(&zip,
            (zip_member[]){{"a.npy", array.data, array.count, true, false},
                           {"b.npy", array.data, array.count, false, false}},
            2);
    CHECK(fault_sweep("npz", parse_body, &zip, 1) > 10);
    make_dta(&dta);
    CHECK(fault_sweep("dta", parse_body, &dta, 1) > 20);
    drop_bytes(&dta);
    drop_bytes(&text);
    drop_bytes(&packed);
    drop_bytes(&frames);
    drop_bytes(&zip);
    drop_bytes(&array);
}

static frg_status make_body(frg_context *ctx, void *user, uint64_t *hash)
{
    (void)user;
    frg_table *t;
    frg_status s = frg_table_create(&t, ctx, 2);
    for (int i = 0; i < 20 && s == FRG_OK; i++) { /* more than the first room for columns */
        char name[8];
        snprintf(name, sizeof name, "x%d", i);
        s = frg_table_add_numbers(t, name, (const double[]){1, 2});
    }
    if (s == FRG_OK)
        s = frg_table_add_codes(t, "c", (const int32_t[]){1, 0}, (const char *const[]){"a", "b"},
                                2);
    if (s == FRG_OK)
        s = frg_table_add_bools(t, "b", (const int32_t[]){1, -1});
    if (s == FRG_OK)
        s = frg_table_write(t, ctx, in_folder("made.csv"));
    frg_column_inference k = {0};
    if (s == FRG_OK)
        s = frg_column_count(&k, ctx, frg_table_find(t, "c"));
    fault_hash(hash, &k, s == FRG_OK ? sizeof k : 0);
    if (s == FRG_OK)
        hash_table(hash, t);
    frg_table_destroy(t);
    return s;
}

static void memory_for_tables(void)
{
    CHECK(fault_sweep("table", make_body, NULL, 1) > 40);
    remove(in_folder("made.csv"));
    CHECK_INT(count_files(), 0);
}

/* ---- files ----------------------------------------------------------------------------------- */

static frg_status read_body(frg_context *ctx, void *user, uint64_t *hash)
{
    frg_table *t;
    const frg_status s = frg_table_read(&t, ctx, in_folder(user), NULL);
    if (s == FRG_OK)
        hash_table(hash, t);
    frg_table_destroy(t);
    return s;
}

static frg_status read_array_body(frg_context *ctx, void *user, uint64_t *hash)
{
    frg_npy *a;
    const frg_status s = frg_npy_read(&a, ctx, in_folder(user));
    if (s == FRG_OK)
        fault_hash(hash, frg_npy_array(a).data, 6 * sizeof(double));
    frg_npy_destroy(a);
    return s;
}

static void failing_reads(void)
{
    byte_string text = {0}, packed = {0}, array = {0}, zip = {0}, half = {0}, frames = {0},
                dta = {0};
    make_text(&text, 40);
    add_deflated(&packed, text.data, text.count, 31);
    add_zstd_bytes(&frames, text.data, text.count, 400);
    make_dta(&dta);
    const double x[6] = {1, 2, 3, 4, 5, 6};
    const uint16_t h[2] = {0x3c00, 0x4000};
    add_npy(&array, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }", x, sizeof x);
    add_npy(&half, 1, "{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }", h, sizeof h);
    add_zip(&zip, (zip_member[]){{"a.npy", array.data, array.count, true, false}}, 1);
    const struct {
        const char *name;
        const byte_string *bytes;
    } files[] = {{"t.csv", &text}, {"t.csv.gz", &packed}, {"t.csv.zst", &frames}, {"a.npy", &array},
                 {"h.npy", &half}, {"z.npz", &zip},       {"s.dta", &dta}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        CHECK(write_file(in_folder(files[i].name), files[i].bytes->data, files[i].bytes->count));
        fault_sweep_files(files[i].name, read_body, (void *)(uintptr_t)files[i].name);
    }
    fault_sweep_files("frg_npy_read", read_array_body, (void *)(uintptr_t) "a.npy");
    CHECK(fault_sweep("frg_npy_read", read_array_body, (void *)(uintptr_t) "a.npy", 1) >= 4);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        remove(in_folder(files[i].name));
    CHECK_INT(count_files(), 0);
    drop_bytes(&text);
    drop_bytes(&packed);
    drop_bytes(&array);
    drop_bytes(&half);
    drop_bytes(&frames);
    drop_bytes(&dta);
    drop_bytes(&zip);
}

static frg_status write_table_body(frg_context *ctx, void *user, uint64_t *hash)
{
    (void)user;
    (void)hash;
    frg_table *t;
    frg_status s = frg_table_create(&t, ctx, 1);
    if (s == FRG_OK)
        s = frg_table_add_integers(t, "new", &(int64_t){2});
    if (s == FRG_OK)
        s = frg_table_write(t, ctx, in_folder("out"));
    frg_table_destroy(t);
    return s;
}

static frg_status write_array_body(frg_context *ctx, void *user, uint64_t *hash)
{
    (void)user;
    (void)hash;
    static const double x[6] = {1, 2, 3, 4, 5, 6};
    frg_array v = frg_matrix(x, FRG_F64, 2, 2, 3);
    v.stride[1] = 2; /* gathered */
    return frg_npy_write(ctx, in_folder("out"), v);
}

/** After a failed write the old file stands and nothing lies beside it. */
static frg_status write_over(frg_context *ctx, fault_body body, uint64_t *hash)
{
    CHECK(write_file(in_folder("out"), "old", 3));
    const frg_status s = body(ctx, NULL, hash);
    char bytes[400];
    FILE *const f = fopen(in_folder("out"), "rb");
    const size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f)
        fclose(f);
    CHECK_SAYS((n == 3 && memcmp(bytes, "old", 3) == 0) == (s < 0), "the old file is gone");
    CHECK_INT(count_files(), 1);
    if (s == FRG_OK)
        fault_hash(hash, bytes, n);
    remove(in_folder("out"));
    return s;
}

static frg_status table_over(frg_context *ctx, void *user, uint64_t *hash)
{
    (void)user;
    return write_over(ctx, write_table_body, hash);
}

static frg_status array_over(frg_context *ctx, void *user, uint64_t *hash)
{
    (void)user;
    return write_over(ctx, write_array_body, hash);
}

/** Failures of remove leave a temporary file, which no library can help: those calls are not
 *  failed.  A close that fails comes after the sync, which has told of the disk, and after the
 *  rename: the new file is there, whole. */
static void failing_writes(void)
{
    static const fault_kind kinds[] = {FAULT_OPEN, FAULT_WRITE, FAULT_SYNC, FAULT_CLOSE,
                                       FAULT_RENAME};
    const struct {
        const char *name;
        fault_body body;
    } bodies[] = {{"frg_table_write", table_over}, {"frg_npy_write", array_over}};
    for (size_t i = 0; i < 2; i++) {
        CHECK(fault_sweep(bodies[i].name, bodies[i].body, NULL, 1) >= 3);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            fault_disk d;
            fault_disk_open(&d);
            d.kind = kinds[k];
            d.fail_at = 1;
            d.error = ENOSPC;
            frg_context *ctx = test_context_with(1, NULL, &d.table);
            uint64_t hash = 0;
            const frg_status s = bodies[i].body(ctx, NULL, &hash);
            const bool done = kinds[k] == FAULT_CLOSE;
            CHECK_SAYS(done ? s == FRG_OK : s == FRG_IO || s == FRG_CANNOT_CREATE, "%s, %s: %s",
                       bodies[i].name, fault_kind_name[kinds[k]], frg_status_name(s));
            CHECK_INT(d.open_handles, 0);
            CHECK_INT(frg_bytes_held(ctx), 0);
            d.fail_at = 0;
            CHECK_STATUS(bodies[i].body(ctx, NULL, &hash), FRG_OK);
            frg_context_destroy(ctx);
        }
    }
    CHECK_INT(count_files(), 0);
}

static const test_case cases[] = {
    {"memory for parsing", memory_for_parsing},
    {"memory for tables", memory_for_tables},
    {"failing reads", failing_reads},
    {"failing writes", failing_writes},
};

int main(int argc, char **argv)
{
    if (!mkdtemp(folder))
        return 1;
    const int failed = test_main(argc, argv, cases, sizeof cases / sizeof *cases);
    return rmdir(folder) == 0 ? failed : 1;
}
