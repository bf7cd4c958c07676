/* r_table.c - a list of R vectors as an Arrow record batch, which the library reads without copying
 * its numbers: a double vector is a float64 column, NA and NaN missing; integers, factors and
 * logicals get a validity bitmap; a factor's levels are a dictionary in their order. */
#include "fourge_r.h"

#include <limits.h>
#include <string.h>

/* All memory is R_alloc's, taken back when .Call returns: nothing is released by hand. */
static void release_schema(struct ArrowSchema *s)
{
    s->release = NULL;
}

static void release_array(struct ArrowArray *a)
{
    a->release = NULL;
}

static void *zeroed(size_t bytes)
{
    return memset(R_alloc(bytes ? bytes : 1, 1), 0, bytes);
}

static void set_bit(unsigned char *bits, R_xlen_t i)
{
    bits[i >> 3] |= (unsigned char)(1u << (i & 7));
}

/* Bit i is set where value[i] is not NA; *missing counts the others. */
static unsigned char *validity(const int *value, R_xlen_t n, int64_t *missing)
{
    unsigned char *bits = zeroed(((size_t)n + 7) / 8);
    for (R_xlen_t i = 0; i < n; i++) {
        if (value[i] == NA_INTEGER) {
            ++*missing;
        } else {
            set_bit(bits, i);
        }
    }
    return bits;
}

/* utf8 strings: offsets and bytes */
static void fill_words(SEXP words, struct ArrowSchema *schema, struct ArrowArray *array)
{
    const R_xlen_t n = Rf_xlength(words);
    const char **text = (const char **)R_alloc((size_t)n + 1, sizeof *text);
    int64_t *offset = (int64_t *)R_alloc((size_t)n + 1, sizeof *offset);
    offset[0] = 0;
    for (R_xlen_t i = 0; i < n; i++) {
        text[i] = Rf_translateCharUTF8(STRING_ELT(words, i));
        offset[i + 1] = offset[i] + (int64_t)strlen(text[i]);
    }
    char *bytes = R_alloc((size_t)offset[n] + 1, 1);
    for (R_xlen_t i = 0; i < n; i++) {
        memcpy(bytes + offset[i], text[i], (size_t)(offset[i + 1] - offset[i]));
    }
    const void **buffers = zeroed(3 * sizeof *buffers);
    buffers[1] = offset;
    buffers[2] = bytes;
    *schema = (struct ArrowSchema){.format = "U", .name = "", .release = release_schema};
    *array = (struct ArrowArray){
        .length = n, .n_buffers = 3, .buffers = buffers, .release = release_array};
}

/* codes 1 .. k -> 0 .. k-1 with the levels as dictionary */
static void fill_factor(SEXP column, struct ArrowSchema *schema, struct ArrowArray *array)
{
    const R_xlen_t n = Rf_xlength(column);
    const int *code = INTEGER(column);
    int *index = (int *)R_alloc((size_t)n + 1, sizeof *index);
    for (R_xlen_t i = 0; i < n; i++) {
        index[i] = code[i] == NA_INTEGER ? 0 : code[i] - 1;
    }
    array->buffers[0] = validity(code, n, &array->null_count);
    array->buffers[1] = index;
    array->dictionary = zeroed(sizeof *array->dictionary);
    schema->dictionary = zeroed(sizeof *schema->dictionary);
    fill_words(Rf_getAttrib(column, R_LevelsSymbol), schema->dictionary, array->dictionary);
    schema->format = "i";
    schema->flags |= Rf_getAttrib(column, Rf_install("unordered")) == R_NilValue
                         ? ARROW_FLAG_DICTIONARY_ORDERED
                         : 0;
}

static void fill_logical(SEXP column, struct ArrowSchema *schema, struct ArrowArray *array)
{
    const R_xlen_t n = Rf_xlength(column);
    const int *value = LOGICAL(column);
    unsigned char *bits = zeroed(((size_t)n + 7) / 8);
    for (R_xlen_t i = 0; i < n; i++) {
        if (value[i] == 1) {
            set_bit(bits, i);
        }
    }
    array->buffers[0] = validity(value, n, &array->null_count);
    array->buffers[1] = bits;
    schema->format = "b";
}

static void fill_column(SEXP column, const char *name, struct ArrowSchema *schema,
                        struct ArrowArray *array)
{
    const void **buffers = zeroed(2 * sizeof *buffers);
    *schema =
        (struct ArrowSchema){.name = name, .flags = 2 /* nullable */, .release = release_schema};
    *array = (struct ArrowArray){
        .length = Rf_xlength(column), .n_buffers = 2, .buffers = buffers, .release = release_array};
    if (Rf_isFactor(column)) {
        fill_factor(column, schema, array);
    } else if (TYPEOF(column) == LGLSXP) {
        fill_logical(column, schema, array);
    } else if (TYPEOF(column) == INTSXP) {
        buffers[0] = validity(INTEGER(column), Rf_xlength(column), &array->null_count);
        buffers[1] = INTEGER(column);
        schema->format = "i";
    } else if (TYPEOF(column) == REALSXP) {
        buffers[1] = REAL(column);
        schema->format = "g";
    } else {
        Rf_error("column '%s' is of type %s; numbers, logicals, factors and text are read", name,
                 Rf_type2char(TYPEOF(column)));
    }
}

/* A stream of the one batch. */
typedef struct {
    struct ArrowSchema schema;
    struct ArrowArray batch;
    int sent;
} batch_source;

static int get_schema(struct ArrowArrayStream *s, struct ArrowSchema *out)
{
    *out = ((batch_source *)s->private_data)->schema;
    return 0;
}

static int get_next(struct ArrowArrayStream *s, struct ArrowArray *out)
{
    batch_source *source = s->private_data;
    *out = source->sent++ ? (struct ArrowArray){.release = NULL} : source->batch;
    return 0;
}

static const char *no_error(struct ArrowArrayStream *s)
{
    (void)s;
    return NULL;
}

static void release_stream(struct ArrowArrayStream *s)
{
    s->release = NULL;
}

void r_table(r_object *object, SEXP columns, frg_table **out)
{
    const int p = Rf_length(columns);
    SEXP names = Rf_getAttrib(columns, R_NamesSymbol);
    batch_source source = {.sent = 0};
    struct ArrowSchema *schemas = zeroed((size_t)p * sizeof *schemas);
    struct ArrowArray *arrays = zeroed((size_t)p * sizeof *arrays);
    struct ArrowSchema **schema = zeroed((size_t)p * sizeof *schema);
    struct ArrowArray **array = zeroed((size_t)p * sizeof *array);
    for (int j = 0; j < p; j++) {
        fill_column(VECTOR_ELT(columns, j), Rf_translateCharUTF8(STRING_ELT(names, j)), &schemas[j],
                    &arrays[j]);
        schema[j] = &schemas[j];
        array[j] = &arrays[j];
    }
    source.schema = (struct ArrowSchema){
        .format = "+s", .name = "", .n_children = p, .children = schema, .release = release_schema};
    source.batch = (struct ArrowArray){.length = p ? arrays[0].length : 0,
                                       .n_buffers = 1,
                                       .buffers = zeroed(sizeof(void *)),
                                       .n_children = p,
                                       .children = array,
                                       .release = release_array};
    struct ArrowArrayStream stream = {.get_schema = get_schema,
                                      .get_next = get_next,
                                      .get_last_error = no_error,
                                      .release = release_stream,
                                      .private_data = &source};
    frg_table_opts opts;
    frg_table_defaults(&opts, sizeof opts);
    r_check(object, frg_table_read_arrow(out, object->home->ctx, &stream, &opts));
}
