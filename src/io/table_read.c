/* table_read.c - which parser reads a file: by the format asked for, the extension, or the first
 * bytes. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "io/io.h"

static const char readable[] = "csv, tsv, txt, npy, dta (plain, .gz or .zst) and npz can be read";

typedef enum {
    FORMAT_CSV,
    FORMAT_TSV,
    FORMAT_TXT,
    FORMAT_NPY,
    FORMAT_NPZ,
    FORMAT_DTA,
    FORMAT_COUNT
} format;
static const char *const format_name[FORMAT_COUNT] = {"csv", "tsv", "txt", "npy", "npz", "dta"};
static const char format_delimiter[FORMAT_COUNT] = {[FORMAT_CSV] = ',', [FORMAT_TSV] = '\t'};

static bool is_text(format f)
{
    return f <= FORMAT_TXT;
}

/** The format of `n` letters, or FORMAT_COUNT. */
static format find_format(const char *s, size_t n)
{
    int f = 0;
    while (f < FORMAT_COUNT && (n != 3 || strncasecmp(s, format_name[f], n) != 0)) {
        f++;
    }
    return (format)f;
}

/** Without an extension (a pipe) the first bytes say it. */
static format sniff(frgi_span head)
{
    const bool npy = head.count >= 6 && memcmp(head.bytes, "\x93NUMPY", 6) == 0;
    const bool zip = head.count >= 4 && memcmp(head.bytes, "PK\3\4", 4) == 0;
    const bool dta = head.count >= 11 && memcmp(head.bytes, "<stata_dta>", 11) == 0;
    return npy ? FORMAT_NPY : zip ? FORMAT_NPZ : dta ? FORMAT_DTA : FORMAT_CSV;
}

/** The extension of a compressed stream at the end of n bytes, "" where there is none. */
static const char *packed_extension(const char *base, size_t n)
{
    static const char *const extensions[] = {".gz", ".zst"};
    for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++) {
        const size_t m = strlen(extensions[i]);
        if (n > m && strcasecmp(base + n - m, extensions[i]) == 0) {
            return extensions[i];
        }
    }
    return "";
}

/** By the name's extension, behind which one of a compressed stream may stand; *out is FORMAT_COUNT
 *  where there is none. */
static frg_status choose_by_name(frg_context *ctx, const char *name, const char *packing,
                                 format *out)
{
    const char *const slash = strrchr(name, '/');
    const char *const base = slash ? slash + 1 : name;
    const char *const packed = packed_extension(base, strlen(base));
    const size_t n = strlen(base) - strlen(packed);
    const char *const dot = memrchr(base, '.', n);
    *out = FORMAT_COUNT;
    if (!dot || dot == base) {
        return FRG_OK;
    }
    const size_t letters = (size_t)(base + n - dot - 1);
    *out = find_format(dot + 1, letters);
    if (*out == FORMAT_COUNT) {
        frgi_at(ctx, "%s", name);
        FAIL(ctx, E_FILE_TYPE, "'%s': files of this kind (.%.*s%s) are not read; %s", name,
             (int)letters, dot + 1, packed, readable);
    }
    const char *const named = strcmp(packed, ".gz") == 0 ? "gzip" : *packed ? "zstd" : NULL;
    if (named && (!packing || strcmp(named, packing) != 0)) {
        frgi_at(ctx, "%s", name);
        FAIL(ctx, E_FORMAT, "'%s' is no %s stream, in spite of its name", name, named);
    }
    return FRG_OK;
}

static frg_status choose(frg_context *ctx, const char *name, const frg_table_opts *o,
                         const frgi_source *source, format *out)
{
    const char *const packing = frgi_source_packing(source);
    if (o->format) {
        *out = find_format(o->format, strlen(o->format));
        if (*out == FORMAT_COUNT) {
            frgi_at(ctx, "%s", name);
            FAIL(ctx, E_FILE_TYPE, "the format '%s' cannot be read; %s", o->format, readable);
        }
    } else {
        TRY(choose_by_name(ctx, name, packing, out));
        if (*out == FORMAT_COUNT) {
            *out = packing ? FORMAT_CSV : sniff(frgi_source_head(source));
        }
    }
    if (packing && *out == FORMAT_NPZ) {
        frgi_at(ctx, "%s", name);
        FAIL(ctx, E_FILE_TYPE, "'%s' is compressed by %s; decompress it first", name, packing);
    }
    return FRG_OK;
}

typedef frg_status (*whole_reader)(frg_table **, frg_context *, const char *name,
                                   frgi_source *source, const frg_table_opts *o);

static frg_status read_npy(frg_table **out, frg_context *ctx, const char *name, frgi_source *source,
                           const frg_table_opts *o)
{
    (void)o;
    frg_npy *a;
    frgi_source_tell(source);
    TRY(frgi_npy_parse(&a, ctx, source, name, true));
    return frgi_npy_to_columns(out, ctx, a, "c1", "c", name);
}

static frg_status read_npz(frg_table **out, frg_context *ctx, const char *name, frgi_source *source,
                           const frg_table_opts *o)
{
    (void)o;
    char *bytes;
    int64_t count;
    frgi_source_tell(source);
    TRY(frgi_source_slurp(source, &bytes, &count));
    const frg_status status = frgi_npz_parse(out, ctx, bytes, count, name);
    DROP(ctx, &bytes);
    return status;
}

static frg_status read_dta(frg_table **out, frg_context *ctx, const char *name, frgi_source *source,
                           const frg_table_opts *o)
{
    char *bytes;
    int64_t count;
    TRY(frgi_source_slurp(source, &bytes, &count));
    const frg_status status = frgi_dta_parse(out, ctx, bytes, count, name, o);
    DROP(ctx, &bytes);
    return status;
}

/** An input whose format is known. */
typedef struct {
    frg_context *ctx;
    const frgi_input *input;
    frgi_source *source;
    const frg_table_opts *opts;
    format format;
} reading;

static frg_status read_format(frg_table **out, void *user)
{
    const reading *const r = user;
    frg_context *const ctx = r->ctx;
    static const whole_reader readers[FORMAT_COUNT] = {
        [FORMAT_NPY] = read_npy, [FORMAT_NPZ] = read_npz, [FORMAT_DTA] = read_dta};
    frg_table_opts o = *r->opts;
    if (is_text(r->format)) {
        o.delimiter = o.delimiter ? o.delimiter : format_delimiter[r->format];
        return frgi_csv_read(out, ctx, r->input, r->source, &o, &frgi_csv_default_steps);
    }
    frg_table *t = NULL;
    frg_status status = readers[r->format](&t, ctx, r->input->name, r->source, &o);
    if (status == FRG_OK) {
        status = frgi_table_select(t, &o, r->input->name);
    }
    if (status == FRG_OK) {
        *out = t;
    } else {
        frg_table_destroy(t);
    }
    return status;
}

/** Text and arrays as they are, are read by parsers of our own, which find nothing to follow in
 *  them. */
static bool is_foreign(format f, const frgi_source *source)
{
    return f == FORMAT_DTA || f == FORMAT_NPZ || frgi_source_packing(source);
}

static frg_status read_source(frg_table **out, frg_context *ctx, const frgi_input *input,
                              frgi_source *source, const frg_table_opts *opts)
{
    reading r = {.ctx = ctx, .input = input, .source = source, .opts = opts};
    TRY(choose(ctx, input->name, opts, source, &r.format));
    if (!opts->untrusted || !is_foreign(r.format, source)) {
        return read_format(out, &r);
    }
    if (r.format == FORMAT_DTA) {
        TRY(frgi_dta_open_library(ctx, input->name));
    }
    return frgi_table_confined(out, ctx, input->name, read_format, &r);
}

static frg_status check_opts(frg_context *ctx, const frg_table_opts *o)
{
    const unsigned char d = (unsigned char)o->delimiter;
    const bool word = (d >= '0' && d <= '9') || ((d | 0x20) >= 'a' && (d | 0x20) <= 'z');
    REQUIRE(ctx, d < 128 && !word && (d == 0 || !strchr("\"\r\n+-.", d)),
            "the delimiter must be a character that no number holds, got '%c' (%d)", d, d);
    REQUIRE(ctx, o->untrusted == 0 || o->untrusted == 1, "untrusted must be 0 or 1, got %d",
            o->untrusted);
    REQUIRE(ctx, o->n_na >= 0 && (o->na || o->n_na == 0), "n_na is %lld and na is NULL",
            (long long)o->n_na);
    REQUIRE(ctx, o->n_columns >= 0 && (o->columns || o->n_columns == 0),
            "n_columns is %lld and columns is NULL", (long long)o->n_columns);
    for (int64_t i = 0; i < o->n_na; i++) {
        REQUIRE(ctx, o->na[i], "na[%lld] is NULL", (long long)i);
    }
    for (int64_t i = 0; i < o->n_columns; i++) {
        REQUIRE(ctx, o->columns[i], "columns[%lld] is NULL", (long long)i);
    }
    return FRG_OK;
}

static frg_status read_input(frg_table **out, frg_context *ctx, const frgi_input *input,
                             const frg_table_opts *opts)
{
    frg_table_opts o;
    frg_table_defaults(&o, sizeof o);
    TRY(frgi_take_opts(ctx, &o, sizeof o, opts));
    TRY(check_opts(ctx, &o));
    frgi_run_begins(ctx);
    frgi_source *source;
    TRY(frgi_source_open(&source, ctx, input, true));
    const frg_status status = read_source(out, ctx, input, source, &o);
    frgi_source_close(&source);
    const frg_status stopped = input->stops ? frgi_stopped(ctx) : FRG_OK;
    if (stopped != FRG_OK) { /* what was read may not be all there is */
        frg_table_destroy(*out);
        *out = NULL;
    }
    return stopped != FRG_OK ? stopped : status;
}

void frg_table_defaults(frg_table_opts *o, size_t struct_size)
{
    const frg_table_opts defaults = {.struct_size = struct_size, .header = 1};
    memcpy(o, &defaults, struct_size < sizeof defaults ? struct_size : sizeof defaults);
}

frg_status frg_table_read(frg_table **out, frg_context *ctx, const char *path,
                          const frg_table_opts *o)
{
    REQUIRE(ctx, ctx && out, "frg_table_read takes a place and a context");
    *out = NULL;
    REQUIRE(ctx, path && *path, "frg_table_read needs a path");
    const frgi_input input = {.path = path, .name = path, .stops = true};
    return read_input(out, ctx, &input, o);
}

frg_status frg_table_parse(frg_table **out, frg_context *ctx, const char *bytes, int64_t count,
                           const char *name, const frg_table_opts *o)
{
    REQUIRE(ctx, ctx && out, "frg_table_parse takes a place and a context");
    *out = NULL;
    REQUIRE(ctx, count >= 0 && (bytes || count == 0), "frg_table_parse needs count >= 0 bytes");
    const frgi_span span = {bytes, count};
    const frgi_input input = {.name = name ? name : "-", .spans = &span, .n_spans = 1};
    return read_input(out, ctx, &input, o);
}
