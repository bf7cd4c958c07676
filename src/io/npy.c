/* npy.c - NumPy's array files (NEP 1), versions 1 to 3.
 *
 *     "\x93NUMPY" major minor | length (u16, from version 2 on u32) | header | elements
 *     header: {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), } in any order, then
 *             spaces, newline
 *
 * The header is read by a grammar that knows these three keys and nothing else.  Sizes are checked
 * against the bytes that are there before memory is taken for them.  Types that no view has are
 * widened on the way: half to float, all other integers and bool to int64.  Python objects are
 * never loaded.
 */
#include "io/npy.h"

#include <stdio.h>
#include <string.h>

enum { HEADER_MOST = 1 << 20, CHUNK = 1 << 16, NATIVE = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ };

/* ---- element types --------------------------------------------------------------------------- */

/** IEEE 754 binary16. */
static float half_to_float(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31,
                   fraction = h & 1023;
    if (exponent == 0) { /* zero and subnormals: fraction 2^-24, exact */
        const float x = (float)fraction * 0x1p-24f;
        return sign ? -x : x;
    }
    const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
    const uint32_t bits = sign | wide << 23 | fraction << 13;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Each widens n elements in the machine's byte order and returns the number of the first that does
 * not fit, or n. */
static int64_t widen_half(const void *from, void *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        ((float *)to)[i] = half_to_float(((const uint16_t *)from)[i]);
    }
    return n;
}

static int64_t widen_bool(const void *from, void *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        ((int64_t *)to)[i] = ((const uint8_t *)from)[i] != 0;
    }
    return n;
}

static int64_t widen_i8(const void *from, void *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        ((int64_t *)to)[i] = ((const int8_t *)from)[i];
    }
    return n;
}

static int64_t widen_u8(const void *from, void *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        ((int64_t *)to)[i] = ((const uint8_t *)from)[i];
    }
    return n;
}

static int64_t widen_i16(const void *from, void *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        ((int64_t *)to)[i] = ((const int16_t *)from)[i];
    }
    return n;
}

static int64_t widen_u16(const void *from, void *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        ((int64_t *)to)[i] = ((const uint16_t *)from)[i];
    }
    return n;
}

static int64_t widen_u32(const void *from, void *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        ((int64_t *)to)[i] = ((const uint32_t *)from)[i];
    }
    return n;
}

static int64_t widen_u64(const void *from, void *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const uint64_t x = ((const uint64_t *)from)[i];
        if (x > INT64_MAX) {
            return i;
        }
        ((int64_t *)to)[i] = (int64_t)x;
    }
    return n;
}

static const struct element {
    char letter;
    int8_t size;
    frg_dtype view;
    int64_t (*widen)(const void *from, void *to, int64_t n); /* NULL: stored as the view has it */
} elements[] = {
    {'f', 8, FRG_F64, NULL},      {'f', 4, FRG_F32, NULL},      {'f', 2, FRG_F32, widen_half},
    {'i', 8, FRG_I64, NULL},      {'i', 4, FRG_I32, NULL},      {'i', 2, FRG_I64, widen_i16},
    {'i', 1, FRG_I64, widen_i8},  {'u', 8, FRG_I64, widen_u64}, {'u', 4, FRG_I64, widen_u32},
    {'u', 2, FRG_I64, widen_u16}, {'u', 1, FRG_I64, widen_u8},  {'b', 1, FRG_I64, widen_bool},
};

static void swap_bytes(void *data, int64_t n, int size)
{
    unsigned char *p = data;
    for (int64_t i = 0; i < n; i++, p += size) {
        for (int a = 0, b = size - 1; a < b; a++, b--) {
            const unsigned char x = p[a];
            p[a] = p[b];
            p[b] = x;
        }
    }
}

/* ---- the header ------------------------------------------------------------------------------ */

typedef struct {
    const struct element *element;
    bool swapped, fortran;
    int ndim;
    int64_t shape[FRG_MAX_DIM];
    int64_t count; /* elements */
    bool seen[3];  /* descr, fortran_order, shape */
} array_header;

typedef struct {
    frg_context *ctx;
    const char *name;
    const char *p, *e;
} header_text;

static frg_status malformed(const header_text *t, const char *why)
{
    frgi_at(t->ctx, "%s", t->name);
    FAIL(t->ctx, E_FORMAT, "the header of '%s' is malformed: %s", t->name, why);
}

static frg_status foreign(const header_text *t, const char *what)
{
    frgi_at(t->ctx, "%s", t->name);
    FAIL(t->ctx, E_FILE_TYPE,
         "'%s' holds %s; bool, integers and floats of 2, 4 or 8 bytes can be read", t->name, what);
}

static void skip_spaces(header_text *t)
{
    while (t->p < t->e && (*t->p == ' ' || *t->p == '\n' || *t->p == '\t')) {
        t->p++;
    }
}

static bool accept(header_text *t, const char *word)
{
    skip_spaces(t);
    const size_t n = strlen(word);
    const bool found = (size_t)(t->e - t->p) >= n && memcmp(t->p, word, n) == 0;
    t->p += found ? n : 0;
    return found;
}

/** A quoted string without escapes. */
static bool read_string(header_text *t, const char **s, int64_t *n)
{
    skip_spaces(t);
    if (t->p == t->e || (*t->p != '\'' && *t->p != '"')) {
        return false;
    }
    *s = t->p + 1;
    const char *const end = memchr(*s, *t->p, (size_t)(t->e - *s));
    if (!end) {
        return false;
    }
    *n = end - *s;
    t->p = end + 1;
    return true;
}

static frg_status read_descr(header_text *t, array_header *h)
{
    const char *s;
    int64_t n;
    skip_spaces(t);
    if (t->p < t->e && *t->p == '[') {
        return foreign(t, "records");
    }
    if (!read_string(t, &s, &n)) {
        return malformed(t, "'descr' is no string");
    }
    if (n < 2 || !strchr("<>=|", *s) || *s == '\0') {
        return malformed(t, "'descr' does not begin with a byte order");
    }
    if (s[1] == 'O') {
        return foreign(t, "Python objects, which are never loaded");
    }
    const bool little = *s == '<' || ((*s == '=' || *s == '|') && NATIVE);
    h->swapped = little != (bool)NATIVE;
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) {
        if (n == 3 && s[1] == elements[i].letter && s[2] == '0' + elements[i].size) {
            h->element = &elements[i];
            return *s != '|' || elements[i].size == 1 ? FRG_OK : malformed(t, "no byte order");
        }
    }
    char what[64];
    snprintf(what, sizeof what, "elements of type '%.*s'", (int)(n < 32 ? n : 32), s);
    return foreign(t, what);
}

static frg_status read_order(header_text *t, array_header *h)
{
    h->fortran = accept(t, "True");
    return h->fortran || accept(t, "False") ? FRG_OK : malformed(t, "'fortran_order' is no bool");
}

static bool read_length(header_text *t, int64_t *out)
{
    skip_spaces(t);
    const char *const first = t->p;
    for (*out = 0; t->p < t->e && *t->p >= '0' && *t->p <= '9'; t->p++) {
        if (__builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, *t->p - '0', out)) {
            return false;
        }
    }
    const bool any = t->p > first;
    t->p += t->p < t->e && *t->p == 'L'; /* written by Python 2 */
    return any;
}

static frg_status read_shape(header_text *t, array_header *h)
{
    if (!accept(t, "(")) {
        return malformed(t, "'shape' is no tuple");
    }
    while (!accept(t, ")")) {
        if (h->ndim == FRG_MAX_DIM) {
            return foreign(t, "an array of more than four axes");
        }
        if (!read_length(t, &h->shape[h->ndim++])) {
            return malformed(t, "an axis has no length");
        }
        if (!accept(t, ",")) {
            if (h->ndim == 1 || !accept(t, ")")) {
                return malformed(t, "'shape' is no tuple");
            }
            break;
        }
    }
    h->count = 1;
    bool fits = true;
    for (int d = 0; d < h->ndim;
         d++) { /* 16 bytes an element at most, also where another axis is 0 */
        int64_t bytes;
        const int64_t length = h->shape[d] > 0 ? h->shape[d] : 1;
        fits &= !__builtin_mul_overflow(h->count, length, &h->count) &&
                !__builtin_mul_overflow(h->count, (int64_t)16, &bytes);
    }
    for (int d = 0; d < h->ndim; d++) {
        h->count = h->shape[d] > 0 ? h->count : 0;
    }
    return fits ? FRG_OK : malformed(t, "the array is larger than memory can be");
}

static frg_status parse_header(header_text *t, array_header *h)
{
    static const struct {
        const char *key;
        frg_status (*read)(header_text *, array_header *);
    } keys[3] = {{"descr", read_descr}, {"fortran_order", read_order}, {"shape", read_shape}};
    *h = (array_header){0};
    if (!accept(t, "{")) {
        return malformed(t, "no '{'");
    }
    while (!accept(t, "}")) {
        const char *s;
        int64_t n;
        if (!read_string(t, &s, &n)) {
            return malformed(t, "a key is no string");
        }
        int k = 0;
        while (k < 3 &&
               (n != (int64_t)strlen(keys[k].key) || memcmp(s, keys[k].key, (size_t)n) != 0)) {
            k++;
        }
        if (k == 3 || h->seen[k] || !accept(t, ":")) {
            return malformed(t, "a key is unknown, twice there, or without a value");
        }
        h->seen[k] = true;
        TRY(keys[k].read(t, h));
        if (!accept(t, ",")) {
            if (!accept(t, "}")) {
                return malformed(t, "no '}'");
            }
            break;
        }
    }
    skip_spaces(t);
    if (t->p != t->e || !h->seen[0] || !h->seen[1] || !h->seen[2]) {
        return malformed(t, "it must have descr, fortran_order and shape, and nothing else");
    }
    return FRG_OK;
}

static frg_status read_exactly(frg_context *ctx, frgi_source *source, const char *name, void *to,
                               int64_t bytes)
{
    int64_t got;
    TRY(frgi_source_get(source, to, bytes, &got));
    if (got < bytes) {
        frgi_at(ctx, "%s", name);
        FAIL(ctx, E_TRUNCATED, "'%s' ends %lld bytes too early", name, (long long)(bytes - got));
    }
    return FRG_OK;
}

static frg_status read_header(frg_context *ctx, frgi_source *source, const char *name,
                              array_header *h)
{
    unsigned char head[12];
    TRY(read_exactly(ctx, source, name, head, 8));
    header_text t = {.ctx = ctx, .name = name};
    if (memcmp(head, "\x93NUMPY", 6) != 0) {
        return malformed(&t, "the file does not begin as an .npy file");
    }
    if (head[6] < 1 || head[6] > 3 || head[7] != 0) {
        return malformed(&t, "its version is not 1.0, 2.0 or 3.0");
    }
    const int width = head[6] == 1 ? 2 : 4;
    TRY(read_exactly(ctx, source, name, head + 8, width));
    int64_t length = 0;
    for (int i = width - 1; i >= 0; i--) {
        length = length << 8 | head[8 + i];
    }
    if (length > HEADER_MOST) {
        return malformed(&t, "it is longer than 1 MiB");
    }
    const int64_t left = frgi_source_size(source) - frgi_source_consumed(source);
    if (length > left) {
        frgi_at(ctx, "%s", name);
        FAIL(ctx, E_TRUNCATED, "'%s' ends in its header", name);
    }
    char *text;
    TRY(NEW(ctx, &text, length, "header"));
    frg_status status = read_exactly(ctx, source, name, text, length);
    if (status == FRG_OK) {
        t.p = text;
        t.e = text + length;
        status = parse_header(&t, h);
    }
    DROP(ctx, &text);
    return status;
}

/* ---- the elements ---------------------------------------------------------------------------- */

static frg_status read_widened(frg_npy *a, frgi_source *source, const array_header *h,
                               const char *name)
{
    const struct element *const kind = h->element;
    const int64_t in_chunk = CHUNK / kind->size;
    const size_t size = frg_sizeof(kind->view);
    char *chunk;
    TRY(NEW(a->ctx, &chunk, CHUNK, "read buffer"));
    frg_status status = FRG_OK;
    for (int64_t done = 0; done < h->count && status == FRG_OK; done += in_chunk) {
        const int64_t n = h->count - done < in_chunk ? h->count - done : in_chunk;
        status = read_exactly(a->ctx, source, name, chunk, n * kind->size);
        if (status < 0) {
            break;
        }
        if (h->swapped) {
            swap_bytes(chunk, n, kind->size);
        }
        const int64_t fit = kind->widen(chunk, (char *)a->data + (size_t)done * size, n);
        if (fit < n) {
            frgi_at(a->ctx, "%s", name);
            status = frgi_fail(a->ctx, E_FORMAT, __FILE__, __LINE__,
                               "element %lld of '%s' is larger than int64 holds",
                               (long long)(done + fit) + 1, name);
        }
    }
    DROP(a->ctx, &chunk);
    return status;
}

/** a->data: NULL where the elements have to be read. */
static frg_status map_elements(frg_npy *a, const frgi_source *source, const array_header *h)
{
    if (h->element->widen || h->swapped) {
        return FRG_OK;
    }
    TRY(frgi_source_map(source, &a->file));
    const char *const first = a->file ? a->file + frgi_source_consumed(source) : NULL;
    if ((uintptr_t)first % (uintptr_t)h->element->size != 0) {
        frgi_unmap(a->ctx, &a->file);
        return FRG_OK;
    }
    a->data = (void *)(uintptr_t)first;
    return FRG_OK;
}

static frg_status read_elements(frg_npy *a, frgi_source *source, const array_header *h,
                                const char *name, bool maps)
{
    const struct element *const kind = h->element;
    const int64_t size = frgi_source_size(source), bytes = h->count * kind->size;
    const int64_t left = size - frgi_source_consumed(source);
    if (left < bytes) {
        frgi_at(a->ctx, "%s", name);
        FAIL(a->ctx, E_TRUNCATED, "'%s' declares %lld bytes of elements and holds %lld", name,
             (long long)bytes, (long long)left);
    }
    if (left > bytes) {
        frgi_at(a->ctx, "%s", name);
        FAIL(a->ctx, E_FORMAT, "%lld bytes follow the array of '%s'", (long long)(left - bytes),
             name);
    }
    TRY(maps ? map_elements(a, source, h) : FRG_OK);
    if (a->data) {
        return FRG_OK;
    }
    TRY(frgi_alloc(a->ctx, &a->data, frgi_mul((size_t)h->count, frg_sizeof(kind->view)), "array"));
    if (kind->widen) {
        return read_widened(a, source, h, name);
    }
    TRY(read_exactly(a->ctx, source, name, a->data, bytes));
    if (h->swapped) {
        swap_bytes(a->data, h->count, kind->size);
    }
    return FRG_OK;
}

static frg_array make_view(const frg_npy *a, const array_header *h)
{
    frg_array v = {.data = a->data, .dtype = h->element->view, .ndim = h->ndim};
    int64_t stride = 1;
    for (int i = 0; i < h->ndim; i++) {
        const int d = h->fortran ? i : h->ndim - 1 - i;
        v.shape[d] = h->shape[d];
        v.stride[d] = stride;
        stride *= h->shape[d] > 0 ? h->shape[d] : 1;
    }
    return v;
}

frg_status frgi_npy_parse(frg_npy **out, frg_context *ctx, frgi_source *source, const char *name,
                          bool maps)
{
    *out = NULL;
    if (frgi_source_size(source) < 0) { /* what a pipe holds is known at its end alone */
        char *bytes;
        int64_t count;
        TRY(frgi_source_slurp(source, &bytes, &count));
        const frg_status status = frgi_npy_parse_bytes(out, ctx, bytes, count, name);
        DROP(ctx, &bytes);
        return status;
    }
    array_header h;
    TRY(read_header(ctx, source, name, &h));
    frg_npy *a;
    TRY(NEW(ctx, &a, 1, "array"));
    *a = (frg_npy){.ctx = ctx, .is_bool = h.element->letter == 'b'};
    const frg_status status = read_elements(a, source, &h, name, maps);
    if (status < 0) {
        frg_npy_destroy(a);
        return status;
    }
    a->view = make_view(a, &h);
    *out = a;
    return FRG_OK;
}

frg_status frgi_npy_parse_bytes(frg_npy **out, frg_context *ctx, const char *bytes, int64_t count,
                                const char *name)
{
    *out = NULL;
    const frgi_span span = {bytes, count};
    const frgi_input input = {.name = name, .spans = &span, .n_spans = 1};
    frgi_source *source;
    TRY(frgi_source_open(&source, ctx, &input, false));
    const frg_status status = frgi_npy_parse(out, ctx, source, name, false);
    frgi_source_close(&source);
    return status;
}

/* ---- public ---------------------------------------------------------------------------------- */

frg_status frg_npy_read(frg_npy **out, frg_context *ctx, const char *path)
{
    REQUIRE(ctx, ctx && out, "frg_npy_read takes a place and a context");
    *out = NULL;
    REQUIRE(ctx, path && *path, "frg_npy_read needs a path");
    const frgi_input input = {.path = path, .name = path, .stops = true};
    frgi_run_begins(ctx);
    frgi_source *source = NULL;
    frg_status status = frgi_source_open(&source, ctx, &input, true);
    if (status == FRG_OK) {
        frgi_source_tell(source);
        status = frgi_npy_parse(out, ctx, source, path, false);
        frgi_source_close(&source);
    }
    const frg_status stopped = frgi_stopped(ctx);
    return status < 0 && stopped != FRG_OK ? stopped : status; /* what came was cut short */
}

frg_array frg_npy_array(const frg_npy *a)
{
    if (!a) {
        return (frg_array){0};
    }
    return a->view;
}

void frg_npy_destroy(frg_npy *a)
{
    if (a) {
        frg_context *const ctx = a->ctx;
        if (a->file) {
            frgi_unmap(ctx, &a->file);
        } else {
            DROP(ctx, &a->data);
        }
        DROP(ctx, &a);
    }
}
