/* npy_write.c - any host view to an .npy file of version 1.0, its header padded to 64 bytes as
 * NumPy does. */
#include <stdio.h>
#include <string.h>

#include "io/npy.h"

enum { GATHER = 1 << 15, PIECE = 1 << 22, ALIGN = 64 };

typedef struct {
    frgi_writer *w;
    frgi_write_watch watch;
} npy_sink;

static const char *const descr[] = {
    [FRG_F64] = "f8", [FRG_F32] = "f4", [FRG_F16] = "f2", [FRG_U8] = "u1",
    [FRG_U16] = "u2", [FRG_I32] = "i4", [FRG_I64] = "i8",
};

/** Column-major: the first axis runs fastest, and the view is not as well row-major. */
static bool is_fortran(const frg_array *a)
{
    bool rising = a->ndim > 1, falling = true;
    for (int d = 0; d + 1 < a->ndim; d++) {
        rising &= a->stride[d] <= a->stride[d + 1];
        falling &= a->stride[d] >= a->stride[d + 1];
    }
    return rising && !falling && a->stride[0] >= 0;
}

int frgi_npy_header(const frg_array *a, bool fortran, char text[NPY_HEADER_BYTES])
{
    enum { HEADER_BYTES = NPY_HEADER_BYTES - 10 }; /* behind magic, version and length */
    const char order = frg_sizeof(a->dtype) == 1                   ? '|'
                       : __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<'
                                                                   : '>';
    int n = snprintf(text + 10, HEADER_BYTES, "{'descr': '%c%s', 'fortran_order': %s, 'shape': (",
                     order, descr[a->dtype], fortran ? "True" : "False");
    for (int d = 0; d < a->ndim; d++) {
        n += snprintf(text + 10 + n, HEADER_BYTES - (size_t)n, "%lld%s", (long long)a->shape[d],
                      a->ndim == 1      ? ","
                      : d + 1 < a->ndim ? ", "
                                        : "");
    }
    n += snprintf(text + 10 + n, HEADER_BYTES - (size_t)n, "), }");
    const int whole = (10 + n + 1 + ALIGN - 1) / ALIGN * ALIGN;
    memset(text + 10 + n, ' ', (size_t)(whole - 10 - n));
    text[whole - 1] = '\n';
    memcpy(text, "\x93NUMPY\x01\x00", 8);
    text[8] = (char)((whole - 10) & 255);
    text[9] = (char)((whole - 10) >> 8);
    return whole;
}

static frg_status put_bytes(const npy_sink *to, const char *bytes, size_t count)
{
    for (size_t done = 0; done < count; done += PIECE) {
        const size_t piece = count - done < PIECE ? count - done : PIECE;
        if (frgi_write_stops(&to->watch)) {
            return FRG_INTERRUPTED;
        }
        TRY(frgi_writer_put(to->w, bytes + done, piece));
    }
    return FRG_OK;
}

/** The elements along the fastest axis of the file, from the one at `at`. */
static frg_status put_line(const npy_sink *to, const char *at, int64_t n, int64_t step, size_t size,
                           char *gather)
{
    if (step == 1) {
        return put_bytes(to, at, (size_t)n * size);
    }
    const int64_t most = GATHER / (int64_t)size;
    for (int64_t done = 0; done < n; done += most) {
        const int64_t m = n - done < most ? n - done : most;
        for (int64_t i = 0; i < m; i++) {
            memcpy(gather + (size_t)i * size, at + (done + i) * step * (int64_t)size, size);
        }
        const frg_status status = put_bytes(to, gather, (size_t)m * size);
        if (status != FRG_OK) {
            return status;
        }
    }
    return FRG_OK;
}

/** Walks the axes like an odometer; axis[0] is the fastest of the file. */
static frg_status put_elements(const npy_sink *to, const frg_array *a, const int axis[FRG_MAX_DIM],
                               char *gather)
{
    const size_t size = frg_sizeof(a->dtype);
    int64_t at[FRG_MAX_DIM] = {0};
    for (int d = 0; d < a->ndim; d++) {
        if (a->shape[d] == 0) {
            return FRG_OK;
        }
    }
    for (;;) {
        int64_t offset = 0;
        for (int d = 1; d < a->ndim; d++) {
            offset += at[d] * a->stride[axis[d]];
        }
        const frg_status status = put_line(to, frgi_array_base(a) + offset * (int64_t)size,
                                           a->shape[axis[0]], a->stride[axis[0]], size, gather);
        if (status != FRG_OK) {
            return status;
        }
        int d = 1;
        while (d < a->ndim && ++at[d] == a->shape[axis[d]]) {
            at[d++] = 0;
        }
        if (d >= a->ndim) {
            return FRG_OK;
        }
    }
}

static frg_status put_array(frgi_writer *w, frg_context *ctx, const frg_array *a)
{
    const bool fortran = is_fortran(a);
    int axis[FRG_MAX_DIM] = {0};
    for (int d = 0; d < a->ndim; d++) {
        axis[d] = fortran ? d : a->ndim - 1 - d;
    }
    char header[NPY_HEADER_BYTES];
    TRY(frgi_writer_put(w, header, (size_t)frgi_npy_header(a, fortran, header)));
    char *gather;
    TRY(NEW(ctx, &gather, GATHER, "write buffer"));
    const npy_sink to = {w, frgi_write_begins(ctx)};
    const frg_status status = put_elements(&to, a, axis, gather);
    DROP(ctx, &gather);
    return status;
}

frg_status frg_npy_write(frg_context *ctx, const char *path, frg_array a)
{
    const unsigned allowed = 1u << FRG_F64 | 1u << FRG_F32 | 1u << FRG_F16 | 1u << FRG_U8 |
                             1u << FRG_U16 | 1u << FRG_I32 | 1u << FRG_I64;
    REQUIRE(ctx, path && *path, "frg_npy_write needs a path");
    REQUIRE(ctx, a.ndim >= 1 && a.ndim <= FRG_MAX_DIM, "an array has 1 to %d axes, got %d",
            FRG_MAX_DIM, a.ndim);
    TRY(frgi_array_check(ctx, &a, "the array", a.ndim, allowed));
    frgi_writer *w;
    TRY(frgi_writer_open(&w, ctx, path));
    const frg_status status = put_array(w, ctx, &a);
    if (status != FRG_OK) {
        frgi_writer_abandon(&w);
        return status;
    }
    return frgi_writer_commit(&w);
}
