/* test_npy.c - arrays of every type, order and version; archives; and headers and sizes that
 * lie. */
#include "unit/io_help.h"

#include "io/io.h"

/* ---- types ----------------------------------------------------------------------------------- */

/** Two elements, little-endian, and what they are. */
static const struct {
    const char *letters;
    int size;
    unsigned char bytes[16];
    frg_dtype view;
    double values[2];
} types[] = {
    {"f8", 8, {0, 0, 0, 0, 0, 0, 0xf8, 0xbf, 0, 0, 0, 0, 0, 0, 0x04, 0x40}, FRG_F64, {-1.5, 2.5}},
    {"f4", 4, {0, 0, 0xc0, 0xbf, 0, 0, 0x20, 0x40}, FRG_F32, {-1.5, 2.5}},
    {"f2", 2, {0x00, 0xbe, 0x01, 0x00}, FRG_F32, {-1.5, 0x1p-24}},
    {"i8", 8, {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, FRG_I64, {-2, 1}},
    {"i4", 4, {0xfe, 0xff, 0xff, 0xff, 3}, FRG_I32, {-2, 3}},
    {"i2", 2, {0xfe, 0xff, 0x01, 0x02}, FRG_I64, {-2, 513}},
    {"i1", 1, {0xfe, 0x7f}, FRG_I64, {-2, 127}},
    {"u8", 8, {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, FRG_I64, {1, 0x1p56}},
    {"u4", 4, {0xff, 0xff, 0xff, 0xff, 2}, FRG_I64, {4294967295.0, 2}},
    {"u2", 2, {0xff, 0xff, 1}, FRG_I64, {65535, 1}},
    {"u1", 1, {0xff, 2}, FRG_I64, {255, 2}},
    {"b1", 1, {1, 0}, FRG_I64, {1, 0}},
};

static double element(const frg_array *a, int64_t i)
{
    const void *const p = (const char *)a->data + a->offset;
    return a->dtype == FRG_F64   ? ((const double *)p)[i]
           : a->dtype == FRG_F32 ? (double)((const float *)p)[i]
           : a->dtype == FRG_I32 ? (double)((const int32_t *)p)[i]
                                 : (double)((const int64_t *)p)[i];
}

static void every_type(void)
{
    frg_context *ctx = test_context();
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        for (int order = 0; order < 4; order++) {
            const int size = types[i].size;
            if (order == 3 && size > 1)
                continue; /* '|' says that bytes have no order */
            unsigned char bytes[16];
            for (int e = 0; e < 2; e++)
                for (int k = 0; k < size; k++)
                    bytes[e * size + k] =
                        types[i].bytes[e * size + (order == 1 ? size - 1 - k : k)];
            char header[100];
            snprintf(header, sizeof header,
                     "{'descr': '%c%s', 'fortran_order': False, 'shape': (2,), }", "<>=|"[order],
                     types[i].letters);
            byte_string b = {0};
            add_npy(&b, order % 3 + 1, header, bytes, 2 * (size_t)size);
            frg_npy *a;
            if (CHECK_OK(ctx,
                         frgi_npy_parse_bytes(&a, ctx, (char *)b.data, (int64_t)b.count, "a"))) {
                const frg_array v = frg_npy_array(a);
                CHECK_INT(v.dtype, types[i].view);
                CHECK_INT(v.ndim, 1);
                CHECK_INT(v.shape[0], 2);
                CHECK_SAYS(element(&v, 0) == types[i].values[0] &&
                               element(&v, 1) == types[i].values[1],
                           "%s: %g %g", header, element(&v, 0), element(&v, 1));
            }
            frg_npy_destroy(a);
            drop_bytes(&b);
        }
    }
    frg_context_destroy(ctx);
}

/** Halves by their definition: (-1)^s 2^(e-25) (1024 + f), 2^-24 f where e = 0. */
static void every_half(void)
{
    frg_context *ctx = test_context();
    static uint16_t bits[65536];
    for (int i = 0; i < 65536; i++)
        bits[i] = (uint16_t)i;
    byte_string b = {0};
    add_npy(&b, 1, "{'descr': '<f2', 'fortran_order': False, 'shape': (65536,), }", bits,
            sizeof bits);
    frg_npy *a;
    CHECK_OK(ctx, frgi_npy_parse_bytes(&a, ctx, (char *)b.data, (int64_t)b.count, "halves"));
    const frg_array v = frg_npy_array(a);
    int wrong = 0;
    for (int i = 0; i < 65536; i++) {
        const int e = i >> 10 & 31, f = i & 1023;
        double size = e ? ldexp(1024 + f, e - 25) : ldexp(f, -24);
        if (e == 31)
            size = f ? (double)NAN : (double)INFINITY;
        const double x = element(&v, i), want = i & 0x8000 ? -size : size;
        wrong += x != want && !(isnan(x) && isnan(want));
        wrong += signbit(x) != signbit(want) && !isnan(x);
    }
    CHECK_INT(wrong, 0);
    frg_npy_destroy(a);
    drop_bytes(&b);
    frg_context_destroy(ctx);
}

/* ---- headers --------------------------------------------------------------------------------- */

static const struct {
    const char *header;
    size_t bytes;
    const char *code; /* NULL: fine */
} headers[] = {
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", 16, NULL},
    {"{'shape':(2L,),'fortran_order':True,\"descr\":\"<f8\"}", 16, NULL},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }          ", 16, NULL},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (), }", 8, NULL},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2, 1, 1), }", 16, NULL},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (0, 5), }", 0, NULL},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }", 16, NULL},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (2), }", 16, "FRG-IO-005"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (2,), ", 16, "FRG-IO-005"},
    {"'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", 16, "FRG-IO-005"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (2,), } x", 16, "FRG-IO-005"},
    {"{'descr': '<f8', 'fortran_order': False, }", 16, "FRG-IO-005"},
    {"{'descr': '<f8', 'shape': (2,), }", 16, "FRG-IO-005"},
    {"{'fortran_order': False, 'shape': (2,), }", 16, "FRG-IO-005"},
    {"{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", 16, "FRG-IO-005"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (2,), 'x': 1}", 16, "FRG-IO-005"},
    {"{'descr': '<f8', 'fortran_order': 0, 'shape': (2,), }", 16, "FRG-IO-005"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': [2], }", 16, "FRG-IO-005"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (-2,), }", 16, "FRG-IO-005"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (2.,), }", 16, "FRG-IO-005"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (,), }", 16, "FRG-IO-005"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (2 2), }", 32, "FRG-IO-005"},
    {"{'descr' '<f8', 'fortran_order': False, 'shape': (2,), }", 16, "FRG-IO-005"},
    {"{descr: '<f8', 'fortran_order': False, 'shape': (2,), }", 16, "FRG-IO-005"},
    {"{'descr': <f8, 'fortran_order': False, 'shape': (2,), }", 16, "FRG-IO-005"},
    {"{'descr': 'f8', 'fortran_order': False, 'shape': (2,), }", 16, "FRG-IO-005"},
    {"{'descr': '|f8', 'fortran_order': False, 'shape': (2,), }", 16, "FRG-IO-005"},
    {"{'descr': '', 'fortran_order': False, 'shape': (2,), }", 16, "FRG-IO-005"},
    {"{'descr': '<f8, 'fortran_order': False, 'shape': (2,), }", 16, "FRG-IO-006"},
    {"", 16, "FRG-IO-005"},
    {"{}", 16, "FRG-IO-005"},
    {"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", 16, "FRG-IO-006"},
    {"{'descr': '<c16', 'fortran_order': False, 'shape': (1,), }", 16, "FRG-IO-006"},
    {"{'descr': '<U4', 'fortran_order': False, 'shape': (1,), }", 16, "FRG-IO-006"},
    {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,), }", 16, "FRG-IO-006"},
    {"{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (2,), }", 16, "FRG-IO-006"},
    {"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,), }", 16, "FRG-IO-006"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1, 1, 1, 2), }", 16, "FRG-IO-006"},
    /* sizes that are not there, or cannot be */
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", 16, "FRG-IO-007"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }", 16, "FRG-IO-007"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (500000000000000000,), }", 16,
     "FRG-IO-007"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", 16, "FRG-IO-005"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807,), }", 16,
     "FRG-IO-005"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775808,), }", 16,
     "FRG-IO-005"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 16,
     "FRG-IO-005"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (0, 4294967296, 4294967296), }", 0,
     "FRG-IO-005"},
};

static void header_grammar(void)
{
    frg_context *ctx = test_context();
    const double values[4] = {1, 2, 3, 4};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        byte_string b = {0};
        add_npy(&b, (int)(i % 3) + 1, headers[i].header, values, headers[i].bytes);
        frg_npy *a = (frg_npy *)&a;
        const frg_status s =
            frgi_npy_parse_bytes(&a, ctx, (char *)b.data, (int64_t)b.count, "h.npy");
        CHECK_SAYS((s == FRG_OK) == !headers[i].code && (s < 0) == !a, "%s: %s", headers[i].header,
                   frg_status_name(s));
        if (headers[i].code && s < 0) {
            CHECK_SAYS(strcmp(frg_error_code(ctx), headers[i].code) == 0, "%s: %s: %s",
                       headers[i].header, frg_error_code(ctx), frg_message(ctx));
            CHECK_TEXT(frg_error_where(ctx), "h.npy");
        }
        frg_npy_destroy(a);
        CHECK_INT(frg_bytes_held(ctx), 0);
        drop_bytes(&b);
    }
    frg_context_destroy(ctx);
}

static void cut_and_changed(void)
{
    frg_context *ctx = test_context();
    const double values[2] = {1, 2};
    byte_string b = {0};
    add_npy(&b, 1, headers[0].header, values, sizeof values);
    for (size_t cut = 0; cut < b.count; cut++) {
        frg_npy *a;
        CHECK_STATUS(frgi_npy_parse_bytes(&a, ctx, (char *)b.data, (int64_t)cut, "c.npy"),
                     FRG_BAD_DATA);
        CHECK_TEXT(frg_error_code(ctx), "FRG-IO-007");
    }
    for (size_t at = 0; at < 8; at++) { /* magic and version */
        b.data[at] ^= 0x40;
        frg_npy *a;
        CHECK_STATUS(frgi_npy_parse_bytes(&a, ctx, (char *)b.data, (int64_t)b.count, "c.npy"),
                     FRG_BAD_DATA);
        b.data[at] ^= 0x40;
    }
    drop_bytes(&b);
    const uint64_t large = UINT64_C(1) << 63;
    add_npy(&b, 1, "{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }", &large, 8);
    frg_npy *a;
    CHECK_STATUS(frgi_npy_parse_bytes(&a, ctx, (char *)b.data, (int64_t)b.count, "c.npy"),
                 FRG_BAD_DATA);
    CHECK(strstr(frg_message(ctx), "element 1"));
    drop_bytes(&b);
    frg_context_destroy(ctx);
}

/* ---- writing --------------------------------------------------------------------------------- */

/** Element (i, j, k, l) of any view, as its bytes. */
static const char *element_at(const frg_array *a, const int64_t i[FRG_MAX_DIM])
{
    int64_t at = 0;
    for (int d = 0; d < a->ndim; d++)
        at += i[d] * a->stride[d];
    return (const char *)a->data + a->offset + at * (int64_t)frg_sizeof(a->dtype);
}

static bool same_elements(const frg_array *a, const frg_array *b)
{
    bool same = a->ndim == b->ndim && a->dtype == b->dtype;
    int64_t i[FRG_MAX_DIM] = {0}, count = 1;
    for (int d = 0; same && d < a->ndim; d++) {
        same = a->shape[d] == b->shape[d];
        count *= a->shape[d];
    }
    for (int64_t k = 0; same && k < count; k++) {
        int64_t rest = k;
        for (int d = 0; d < a->ndim; d++) {
            i[d] = rest % a->shape[d];
            rest /= a->shape[d];
        }
        same = memcmp(element_at(a, i), element_at(b, i), frg_sizeof(a->dtype)) == 0;
    }
    return same;
}

static void write_and_read(void)
{
    frg_context *ctx = test_context();
    char path[] = "/tmp/fourge_npy_XXXXXX";
    const int fd = mkstemp(path);
    if (!CHECK(fd >= 0))
        return;
    enum { ROOM = 200000 };
    double *data = malloc(ROOM * sizeof *data);
    for (int i = 0; data && i < ROOM; i++)
        data[i] = test_normal();
    static const frg_dtype dtypes[] = {FRG_F64, FRG_F32, FRG_I64, FRG_I32};
    for (int repeat = 0; data && repeat < 200; repeat++) {
        frg_array v = {
            .data = data, .dtype = dtypes[test_below(4)], .ndim = 1 + (int)test_below(4)};
        v.offset = frg_sizeof(v.dtype) * (size_t)test_below(5);
        int64_t step = 1 + test_below(3);
        const bool rising = test_below(2);
        for (int d = 0; d < v.ndim; d++) {
            const int axis = rising ? d : v.ndim - 1 - d;
            v.shape[axis] = repeat == 0 ? 90000 : test_below(v.ndim == 1 ? 300 : 8);
            v.stride[axis] = step;
            step *= v.shape[axis] + test_below(2);
            if (repeat == 0)
                v.ndim = 1;
        }
        frg_npy *a = NULL;
        CHECK_OK(ctx, frg_npy_write(ctx, path, v));
        if (CHECK_OK(ctx, frg_npy_read(&a, ctx, path))) {
            const frg_array got = frg_npy_array(a);
            CHECK_SAYS(same_elements(&v, &got), "%d axes, %s", v.ndim,
                       rising ? "rising" : "falling");
            bool several = v.ndim > 1;
            for (int d = 0; d < v.ndim; d++)
                several &= v.shape[d] > 1;
            CHECK(!several || (got.stride[0] == 1) == rising);
        }
        frg_npy_destroy(a);
    }
    free(data);
    const frg_array empty = {.dtype = FRG_F64};
    CHECK_STATUS(frg_npy_write(ctx, path, empty), FRG_BAD_ARG);
    const uint16_t brain = 0;
    CHECK_STATUS(frg_npy_write(ctx, path, frg_vector(&brain, FRG_BF16, 1)), FRG_BAD_ARG);
    const double one = 1;
    CHECK_STATUS(frg_npy_write(ctx, "/nonexistent/x.npy", frg_vector(&one, FRG_F64, 1)),
                 FRG_CANNOT_CREATE);
    frg_npy *a;
    CHECK_STATUS(frg_npy_read(&a, ctx, "/nonexistent/x.npy"), FRG_NO_INPUT);
    remove(path);
    frg_context_destroy(ctx);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/** Files that a stop falls into: the second large read asks for it. */
typedef struct {
    const frg_files *system;
    frg_context *ctx;
    int large;
    int64_t bytes;
} stopping_disk;

static int64_t read_and_stop(int handle, void *to, size_t bytes, void *user)
{
    stopping_disk *const d = user;
    if (bytes > 1 << 20 && ++d->large == 2)
        frg_interrupt(d->ctx);
    const int64_t n = d->system->read(handle, to, bytes, d->system->user);
    d->bytes += n > 0 ? n : 0;
    return n;
}

/** A stop ends the reading of a large file after the piece that it falls into, as an array and as a
 *  table. */
static void stopped_within(void)
{
    enum { ROWS = 6 << 20, PIECE = 8 << 20 };
    char path[] = "/tmp/fourge_npy_XXXXXX";
    const int fd = mkstemp(path);
    byte_string b = {0};
    add_npy(&b, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (6291456,), }", NULL, 0);
    if (!CHECK(fd >= 0) || !CHECK(write_file(path, b.data, b.count)) ||
        !CHECK(ftruncate(fd, (off_t)(b.count + 8 * (size_t)ROWS)) == 0)) /* zeros, and no blocks */
        return;
    for (int table = 0; table < 2; table++) {
        stopping_disk d = {.system = frg_system_files()};
        frg_files files = *d.system;
        files.read = read_and_stop;
        files.user = &d;
        d.ctx = test_context_with(2, NULL, &files);
        frg_npy *a = NULL;
        frg_table *t = NULL;
        CHECK_STATUS(table ? frg_table_read(&t, d.ctx, path, NULL) : frg_npy_read(&a, d.ctx, path),
                     FRG_INTERRUPTED);
        CHECK(!a && !t);
        CHECK_SAYS(d.bytes <= 2 * PIECE + (1 << 17), "%" PRId64 " bytes were read", d.bytes);
        CHECK_INT(frg_bytes_held(d.ctx), 0);
        frg_context_destroy(d.ctx);
    }
    close(fd);
    remove(path);
    drop_bytes(&b);
}

static void npy_as_table(void)
{
    frg_context *ctx = test_context();
    byte_string b = {0};
    char got[300];
    frg_table *t;
    const double x[6] = {1, 2, 3, 4, NAN, 6};
    const int32_t k[3] = {7, -8, 9};
    const bool flag[2] = {true, false};
    add_npy(&b, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }", x, sizeof x);
    CHECK_OK(ctx, frg_table_parse(&t, ctx, (char *)b.data, (int64_t)b.count, "x.npy", NULL));
    CHECK_TEXT(table_text(t, got, sizeof got), "c1:n 1 3 ?|c2:n 2 4 6");
    CHECK_INT(frg_table_column(t, 0)->n_missing, 1);
    frg_table_destroy(t);
    drop_bytes(&b);
    add_npy(&b, 1, "{'descr': '<f8', 'fortran_order': True, 'shape': (3, 2), }", x, sizeof x);
    CHECK_OK(ctx,
             frg_table_parse(&t, ctx, (char *)b.data, (int64_t)b.count, "-", NULL)); /* sniffed */
    CHECK_TEXT(table_text(t, got, sizeof got), "c1:n 1 2 3|c2:n 4 ? 6");
    frg_table_destroy(t);
    frg_table_opts o;
    frg_table_defaults(&o, sizeof o);
    o.columns = (const char *const[]){"c2"};
    o.n_columns = 1;
    CHECK_OK(ctx, frg_table_parse(&t, ctx, (char *)b.data, (int64_t)b.count, "x.npy", &o));
    CHECK_TEXT(table_text(t, got, sizeof got), "c2:n 4 ? 6");
    frg_table_destroy(t);
    byte_string packed = {0};
    add_zstd_bytes(&packed, b.data, b.count, 100);
    CHECK_OK(ctx,
             frg_table_parse(&t, ctx, (char *)packed.data, (int64_t)packed.count, "x.npy.zst", &o));
    CHECK_TEXT(table_text(t, got, sizeof got), "c2:n 4 ? 6");
    frg_table_destroy(t);
    CHECK_STATUS(
        frg_table_parse(&t, ctx, (char *)packed.data, (int64_t)packed.count - 1, "x.npy.zst", &o),
        FRG_BAD_DATA);
    CHECK_TEXT(frg_error_code(ctx), "FRG-IO-007");
    drop_bytes(&packed);
    o.columns = (const char *const[]){"c3"};
    CHECK_STATUS(frg_table_parse(&t, ctx, (char *)b.data, (int64_t)b.count, "x.npy", &o),
                 FRG_BAD_DATA);
    CHECK_TEXT(frg_error_code(ctx), "FRG-IO-008");
    drop_bytes(&b);
    add_npy(&b, 1, "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }", k, sizeof k);
    CHECK_OK(ctx, frg_table_parse(&t, ctx, (char *)b.data, (int64_t)b.count, "k.npy", NULL));
    CHECK_TEXT(table_text(t, got, sizeof got), "c1:i 7 -8 9");
    frg_table_destroy(t);
    drop_bytes(&b);
    add_npy(&b, 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", flag, sizeof flag);
    CHECK_OK(ctx, frg_table_parse(&t, ctx, (char *)b.data, (int64_t)b.count, "k.npy", NULL));
    CHECK_TEXT(table_text(t, got, sizeof got), "c1:b 1 0");
    frg_table_destroy(t);
    drop_bytes(&b);
    add_npy(&b, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 3, 2), }", x, sizeof x);
    CHECK_STATUS(frg_table_parse(&t, ctx, (char *)b.data, (int64_t)b.count, "k.npy", NULL),
                 FRG_BAD_DATA);
    byte_string z = {0};
    add_deflated(&z, b.data, b.count, 31);
    CHECK_STATUS(frg_table_parse(&t, ctx, (char *)z.data, (int64_t)z.count, "k.npz", NULL),
                 FRG_UNSUPPORTED);
    drop_bytes(&z);
    drop_bytes(&b);
    CHECK_INT(frg_bytes_held(ctx), 0);
    frg_context_destroy(ctx);
}

/* ---- archives -------------------------------------------------------------------------------- */

typedef struct {
    byte_string x, k, m;
} three_arrays;

static three_arrays make_arrays(void)
{
    const double x[2] = {1.5, -2}, m[4] = {1, 2, 3, 4};
    const int64_t k[2] = {7, 8};
    three_arrays a = {0};
    add_npy(&a.x, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", x, sizeof x);
    add_npy(&a.k, 2, "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }", k, sizeof k);
    add_npy(&a.m, 3, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }", m, sizeof m);
    return a;
}

static void drop_arrays(three_arrays *a)
{
    drop_bytes(&a->x);
    drop_bytes(&a->k);
    drop_bytes(&a->m);
}

static frg_status parse_zip(frg_table **t, frg_context *ctx, const byte_string *b)
{
    return frg_table_parse(t, ctx, (char *)b->data, (int64_t)b->count, "z.npz", NULL);
}

static void archives(void)
{
    frg_context *ctx = test_context();
    three_arrays a = make_arrays();
    char got[300];
    for (int how = 0; how < 4; how++) {
        const bool deflated = how & 1, wide = how & 2;
        const zip_member members[] = {{"x.npy", a.x.data, a.x.count, deflated, wide},
                                      {"key.npy", a.k.data, a.k.count, !deflated, wide},
                                      {"m.npy", a.m.data, a.m.count, deflated, wide}};
        byte_string b = {0};
        frg_table *t;
        if (how == 3)
            add_bytes(&b, "PK\3\4 something in front", 24); /* offsets count from the beginning */
        const size_t front = b.count;
        add_zip(&b, members, 3);
        CHECK_OK(ctx, parse_zip(&t, ctx, &b));
        CHECK_TEXT(table_text(t, got, sizeof got), "x:n 1.5 -2|key:i 7 8|m1:n 1 3|m2:n 2 4");
        frg_table_destroy(t);
        for (size_t cut = front; cut < b.count; cut++) {
            CHECK(parse_zip(&t, ctx, &(byte_string){.data = b.data, .count = cut}) < 0 && !t);
        }
        /* a bit changed anywhere: refused, or a bit of a time or the like, that nothing is read
         * from */
        for (size_t bit = 0; bit < 8 * b.count; bit++) {
            b.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
            if (parse_zip(&t, ctx, &b) == FRG_OK)
                CHECK_SAYS(strcmp(table_text(t, got, sizeof got),
                                  "x:n 1.5 -2|key:i 7 8|m1:n 1 3|m2:n 2 4") == 0,
                           "way %d, bit %zu of byte %zu: %s", how, bit % 8, bit / 8, got);
            frg_table_destroy(t);
            b.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        CHECK_INT(frg_bytes_held(ctx), 0);
        drop_bytes(&b);
    }
    drop_arrays(&a);
    frg_context_destroy(ctx);
}

/** Members are found by one pass over the directory, and their names by a table: many are read at
 *  once. */
static void many_members(void)
{
    enum { MEMBERS = 20000 };
    frg_context *ctx = test_context();
    three_arrays a = make_arrays();
    zip_member *const members = malloc(MEMBERS * sizeof *members);
    char(*const names)[16] = malloc(MEMBERS * sizeof *names);
    for (int i = 0; i < MEMBERS; i++) {
        snprintf(names[i], sizeof names[i], "m%d.npy", i);
        members[i] = (zip_member){names[i], a.x.data, a.x.count, i % 2, false};
    }
    byte_string b = {0};
    frg_table *t;
    add_zip(&b, members, MEMBERS);
    CHECK_OK(ctx, parse_zip(&t, ctx, &b));
    CHECK_INT(frg_table_columns(t), MEMBERS);
    CHECK_TEXT(frg_table_column(t, MEMBERS - 1)->name, "m19999");
    CHECK(frg_table_find(t, "m12345")->numbers[1] == -2);
    frg_table_destroy(t);
    free(members);
    free(names);
    drop_bytes(&b);
    drop_arrays(&a);
    frg_context_destroy(ctx);
}

static void check_refused(frg_context *ctx, const zip_member *members, int n, int patch_at,
                          int patch, const char *code)
{
    byte_string b = {0};
    add_zip(&b, members, n);
    /* the directory's first entry begins at what the end record says */
    const size_t directory =
        b.data[b.count - 6] | (size_t)b.data[b.count - 5] << 8 | (size_t)b.data[b.count - 4] << 16;
    if (patch_at)
        b.data[directory + (size_t)patch_at] = (unsigned char)patch;
    frg_table *t;
    CHECK_SAYS(parse_zip(&t, ctx, &b) < 0 && !t, "accepted, expected %s", code);
    CHECK_TEXT(frg_error_code(ctx), code);
    CHECK_INT(frg_bytes_held(ctx), 0);
    drop_bytes(&b);
}

static void bad_archives(void)
{
    frg_context *ctx = test_context();
    three_arrays a = make_arrays();
    byte_string three = {0};
    const double y[3] = {1, 2, 3};
    add_npy(&three, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", y, sizeof y);
    const zip_member x = {"x.npy", a.x.data, a.x.count, false, false};
    const zip_member packed = {"x.npy", a.x.data, a.x.count, true, false};
    const zip_member text = {"x.txt", "hello", 5, false, false};
    const zip_member junk = {"x.npy", "hello", 5, false, false};
    const zip_member latin = {"\xe9.npy", a.x.data, a.x.count, false, false};
    enum { FLAGS = 8, METHOD = 10, CRC = 16, PACKED = 20, UNPACKED = 24, LOCAL = 42 };
    check_refused(ctx, (zip_member[]){x, {"y.npy", three.data, three.count, false, false}}, 2, 0, 0,
                  "FRG-IO-005");
    CHECK_SAYS(strstr(frg_message(ctx), "the array 'y' has 3 rows, those before it have 2"), "%s",
               frg_message(ctx));
    check_refused(ctx, (zip_member[]){x, x}, 2, 0, 0, "FRG-IO-005");
    check_refused(ctx, &x, 0, 0, 0, "FRG-IO-005");
    check_refused(ctx, &text, 1, 0, 0, "FRG-IO-006");
    check_refused(ctx, &junk, 1, 0, 0, "FRG-IO-007");
    check_refused(ctx, &latin, 1, 0, 0, "FRG-IO-005");
    check_refused(ctx, &x, 1, FLAGS, 1, "FRG-IO-006");
    check_refused(ctx, &x, 1, METHOD, 12, "FRG-IO-006");
    check_refused(ctx, &x, 1, CRC, 0x5a, "FRG-IO-005");
    check_refused(ctx, &packed, 1, CRC, 0x5a, "FRG-IO-005");
    check_refused(ctx, &x, 1, UNPACKED, 1, "FRG-IO-005");
    check_refused(ctx, &packed, 1, UNPACKED, 1, "FRG-IO-005");
    check_refused(ctx, &packed, 1, UNPACKED + 3, 0x70, "FRG-IO-009"); /* 1.8 GB of 80 bytes */
    check_refused(ctx, &packed, 1, PACKED + 2, 1, "FRG-IO-007");
    check_refused(ctx, &x, 1, LOCAL, 5, "FRG-IO-005");
    check_refused(ctx, &x, 1, LOCAL + 3, 5, "FRG-IO-005");
    drop_bytes(&three);
    drop_arrays(&a);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"every type", every_type},         {"every half", every_half},
    {"header grammar", header_grammar}, {"cut and changed", cut_and_changed},
    {"write and read", write_and_read}, {"stopped within", stopped_within},
    {"npy as table", npy_as_table},     {"archives", archives},
    {"many members", many_members},     {"bad archives", bad_archives},
};
TEST_MAIN(cases)
