/* status.c - statuses, element types, array views and the catalogue: the tables behind fourge.h. */
#include <string.h>

#include "core/core.h"

typedef struct {
    frg_status status;
    int exit_code;
    const char *name, *sentence;
} status_row;

static const status_row statuses[] = {
#define ROW(name, number, exit_code, sentence) {name, exit_code, #name, sentence},
    FRG_STATUS_LIST(ROW)
#undef ROW
};

static const status_row *row_of(frg_status s)
{
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        if (statuses[i].status == s) {
            return &statuses[i];
        }
    }
    return NULL;
}

const char *frg_status_name(frg_status s)
{
    const status_row *row = row_of(s);
    return row ? row->name : "FRG_UNKNOWN";
}

const char *frg_status_sentence(frg_status s)
{
    const status_row *row = row_of(s);
    return row ? row->sentence : "unknown status";
}

int frg_status_exit_code(frg_status s)
{
    const status_row *row = row_of(s);
    return row ? row->exit_code : 70;
}

static const frg_error_entry catalogue[] = {
#define ERROR_ROW(name, code, status, sentence, hint) {code, #name, status, sentence, hint},
#include "core/catalogue.def"
#undef ERROR_ROW
};

const frg_error_entry *frg_error_catalogue(int i)
{
    const int count = (int)(sizeof catalogue / sizeof *catalogue);
    return i >= 0 && i < count ? &catalogue[i] : NULL;
}

static const struct {
    size_t bytes;
    const char *name;
} dtypes[] = {
    [FRG_F32] = {4, "f32"},   [FRG_F64] = {8, "f64"}, [FRG_F16] = {2, "f16"},
    [FRG_BF16] = {2, "bf16"}, [FRG_U8] = {1, "u8"},   [FRG_U16] = {2, "u16"},
    [FRG_I32] = {4, "i32"},   [FRG_I64] = {8, "i64"},
};

static bool known_dtype(frg_dtype t)
{
    return (size_t)t < sizeof dtypes / sizeof *dtypes;
}

size_t frg_sizeof(frg_dtype t)
{
    return known_dtype(t) ? dtypes[t].bytes : 0;
}

const char *frg_dtype_name(frg_dtype t)
{
    return known_dtype(t) ? dtypes[t].name : "?";
}

frg_array frg_vector(const void *data, frg_dtype t, int64_t n)
{
    return (frg_array){
        .data = (void *)(uintptr_t)data, .dtype = t, .ndim = 1, .shape = {n}, .stride = {1}};
}

frg_array frg_matrix(const void *data, frg_dtype t, int64_t m, int64_t n, int64_t ld)
{
    return (frg_array){
        .data = (void *)(uintptr_t)data, .dtype = t, .ndim = 2, .shape = {m, n}, .stride = {ld, 1}};
}

frg_array frg_matrix_columns(const void *data, frg_dtype t, int64_t m, int64_t n, int64_t ld)
{
    return (frg_array){
        .data = (void *)(uintptr_t)data, .dtype = t, .ndim = 2, .shape = {m, n}, .stride = {1, ld}};
}

frg_status frgi_array_check(frg_context *ctx, const frg_array *a, const char *name, int ndim,
                            unsigned allowed)
{
    REQUIRE(ctx, a->ndim == ndim, "%s must have %d axes, got %d", name, ndim, a->ndim);
    if (!known_dtype(a->dtype) || !(allowed >> a->dtype & 1u)) {
        FAIL(ctx, E_DTYPE, "%s has elements of type %s, which this call does not take", name,
             frg_dtype_name(a->dtype));
    }
    if (a->device.kind != FRG_CPU) {
        FAIL(ctx, E_DEVICE,
             "%s lies on %s:%d and not in host memory, where this call takes it from", name,
             a->device.kind == FRG_CUDA ? "cuda" : "opencl", a->device.index);
    }
    int64_t count = 1;
    for (int d = 0; d < ndim; d++) {
        REQUIRE(ctx, a->shape[d] >= 0, "%s: axis %d has the negative length %lld", name, d,
                (long long)a->shape[d]);
        int64_t reach;
        const bool fits = !__builtin_mul_overflow(count, a->shape[d], &count) &&
                          !__builtin_mul_overflow(a->shape[d], a->stride[d], &reach) &&
                          !__builtin_mul_overflow(reach, (int64_t)8, &reach);
        REQUIRE(ctx, fits, "%s: axis %d (length %lld, stride %lld) overflows the address space",
                name, d, (long long)a->shape[d], (long long)a->stride[d]);
    }
    REQUIRE(ctx, a->data || count == 0, "%s: data is NULL", name);
    return FRG_OK;
}

frg_status frgi_take_opts(frg_context *ctx, void *into, size_t known, const void *from)
{
    enum { LARGEST = 1 << 16 /* of a library to come; more than that was never set */ };
    if (!from) {
        return FRG_OK;
    }
    size_t given;
    memcpy(&given, from, sizeof given);
    if (given <= sizeof given || given > LARGEST) {
        FAIL(ctx, E_OPTION,
             "struct_size of the options is %zu: it was not set; begin with the _defaults function",
             given);
    }
    for (size_t i = known; i < given; i++) {
        if (((const char *)from)[i] != 0) {
            FAIL(
                ctx, E_UNSUPPORTED,
                "the options have fields that this version of the library does not know, %zu bytes "
                "for %zu",
                given, known);
        }
    }
    memcpy(into, from, given < known ? given : known);
    memcpy(into, &known, sizeof known);
    return FRG_OK;
}

frg_status frg_device_parse(const char *text, frg_device *out)
{
    static const struct {
        const char *name;
        frg_device_kind kind;
    } kinds[] = {{"cpu", FRG_CPU}, {"cuda", FRG_CUDA}, {"opencl", FRG_OPENCL}};
    for (size_t i = 0; text && i < sizeof kinds / sizeof *kinds; i++) {
        const size_t length = strlen(kinds[i].name);
        if (strncmp(text, kinds[i].name, length) != 0) {
            continue;
        }
        const char *left = text + length;
        int index = 0;
        if (*left == ':' && kinds[i].kind != FRG_CPU) {
            const char *digit = ++left;
            for (; *digit >= '0' && *digit <= '9' && digit - left < 4; digit++) {
                index = index * 10 + (*digit - '0');
            }
            left = digit == left ? left - 1 : digit;
        }
        if (*left == '\0') {
            *out = (frg_device){kinds[i].kind, index};
            return FRG_OK;
        }
    }
    return FRG_BAD_ARG;
}
