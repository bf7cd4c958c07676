/* test_arrow.c - tables from the Arrow C stream interface, against streams made by hand. */
#include "core/context.h"
#include "fault.h"
#include "fourge/arrow.h"
#include "unit/io_help.h"

enum { COLUMNS_MAX = 4, BATCHES_MAX = 3 };

/** A producer: a schema, batches, and what was released. */
typedef struct {
    int64_t n_columns, n_batches, given;
    const char *names[COLUMNS_MAX], *formats[COLUMNS_MAX],
        *words[COLUMNS_MAX]; /* words: a dictionary's format */
    int64_t flags;           /* of all columns */
    struct ArrowArray columns[BATCHES_MAX][COLUMNS_MAX];
    int64_t rows[BATCHES_MAX], offset[BATCHES_MAX];
    int released, fails_at; /* batch that the producer cannot give, -1: none */
    bool one_at_a_time;     /* the last batch has to be back before the next is asked for */
    struct ArrowSchema schemas[COLUMNS_MAX], dictionaries[COLUMNS_MAX],
        *schema_children[COLUMNS_MAX];
    struct ArrowArray *children[BATCHES_MAX][COLUMNS_MAX];
} producer;

static int schemas_held; /* given and not yet released */

static void release_schema(struct ArrowSchema *s)
{
    schemas_held--;
    s->release = NULL;
}

static void release_batch(struct ArrowArray *a)
{
    ((producer *)a->private_data)->released++;
    a->release = NULL;
}

static void release_small(struct ArrowArray *a)
{
    a->release = NULL;
}

static void release_stream(struct ArrowArrayStream *s)
{
    s->release = NULL;
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    producer *const p = stream->private_data;
    for (int64_t k = 0; k < p->n_columns; k++) {
        p->dictionaries[k] = (struct ArrowSchema){.format = p->words[k]};
        p->schemas[k] =
            (struct ArrowSchema){.format = p->formats[k],
                                 .name = p->names[k],
                                 .flags = p->flags,
                                 .dictionary = p->words[k] ? &p->dictionaries[k] : NULL};
        p->schema_children[k] = &p->schemas[k];
    }
    schemas_held++;
    *out = (struct ArrowSchema){.format = "+s",
                                .n_children = p->n_columns,
                                .children = p->schema_children,
                                .release = release_schema};
    return 0;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    producer *const p = stream->private_data;
    if (p->given == p->fails_at)
        return 5;
    *out = (struct ArrowArray){.release = NULL};
    if (p->given == p->n_batches)
        return 0;
    if (p->one_at_a_time)
        CHECK_INT(p->released, p->given);
    const int64_t b = p->given++;
    for (int64_t k = 0; k < p->n_columns; k++)
        p->children[b][k] = &p->columns[b][k];
    *out = (struct ArrowArray){.length = p->rows[b],
                               .offset = p->offset[b],
                               .n_children = p->n_columns,
                               .children = p->children[b],
                               .release = release_batch,
                               .private_data = p};
    return 0;
}

static const char *last_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return "the disk is on fire";
}

static struct ArrowArrayStream stream_of(producer *p)
{
    p->given = 0;
    return (struct ArrowArrayStream){.get_schema = get_schema,
                                     .get_next = get_next,
                                     .get_last_error = last_error,
                                     .release = release_stream,
                                     .private_data = p};
}

#define BUFFERS(...)                                                                               \
    (const void *[])                                                                               \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/** Two batches, the second sliced by one row: a number with a null, small integers, text, a
 *  dictionary. */
static producer two_batches(void)
{
    static const double x0[] = {1.5, 2.5}, x1[] = {99, 3.5, 4.5};
    static const int16_t k0[] = {-7, 8}, k1[] = {99, 9, 10};
    static const int32_t ends0[] = {0, 2, 2}, ends1[] = {0, 1, 3, 5};
    static const uint8_t codes0[] = {1, 0}, codes1[] = {0, 1, 0};
    static const int32_t word_ends0[] = {0, 4, 9}, word_ends1[] = {0, 5, 10};
    static const unsigned char second_missing[] = {1}, third_missing[] = {3};
    static struct ArrowArray words0, words1;
    words0 = (struct ArrowArray){.length = 2, .n_buffers = 3};
    words1 = words0;
    static const void *w0[3] = {NULL, word_ends0, "eastnorth"},
                      *w1[3] = {NULL, word_ends1, "northsouth"};
    words0.buffers = w0;
    words1.buffers = w1;
    static const void *bx0[] = {second_missing, x0}, *bx1[] = {NULL, x1}, *bk0[] = {NULL, k0},
                      *bk1[] = {third_missing, k1}, *bs0[] = {NULL, ends0, "ab"},
                      *bs1[] = {NULL, ends1, "?abcd"}, *bd0[] = {NULL, codes0},
                      *bd1[] = {NULL, codes1};
    return (producer){
        .n_columns = 4,
        .n_batches = 2,
        .fails_at = -1,
        .names = {"x", "k", "s", "d"},
        .formats = {"g", "s", "u", "C"},
        .words = {NULL, NULL, NULL, "u"},
        .rows = {2, 2},
        .offset = {0, 1},
        .columns = {{{.null_count = 1, .n_buffers = 2, .buffers = bx0},
                     {.n_buffers = 2, .buffers = bk0},
                     {.n_buffers = 3, .buffers = bs0},
                     {.n_buffers = 2, .buffers = bd0, .dictionary = &words0}},
                    {{.n_buffers = 2, .buffers = bx1},
                     {.null_count = -1, .n_buffers = 2, .buffers = bk1},
                     {.n_buffers = 3, .buffers = bs1},
                     {.n_buffers = 2, .buffers = bd1, .dictionary = &words1}}},
    };
}

static void batches(void)
{
    frg_context *ctx = test_context();
    producer p = two_batches();
    struct ArrowArrayStream stream = stream_of(&p);
    frg_table *t;
    char got[300];
    CHECK_OK(ctx, frg_table_read_arrow(&t, ctx, &stream, NULL));
    CHECK_TEXT(table_text(t, got, sizeof got),
               "x:n 1.5 ? 3.5 4.5|k:i -7 8 9 ?|s:c 0=ab 1= 0=ab 2=cd"
               "|d:c 0=north 1=east 2=south 0=north");
    CHECK_INT(p.released, 2); /* nothing was borrowed */
    CHECK_INT(frg_table_find(t, "d")->ordered, 0);
    frg_table_destroy(t);

    p.flags = ARROW_FLAG_DICTIONARY_ORDERED; /* "east", "north", then the second batch's "south" */
    stream = stream_of(&p);
    CHECK_OK(ctx, frg_table_read_arrow(&t, ctx, &stream, NULL));
    const char *const last = strstr(table_text(t, got, sizeof got), "|d");
    CHECK_TEXT(last ? last : got, "|d:c 1=north 0=east 2=south 1=north");
    CHECK_INT(frg_table_find(t, "d")->ordered, 1);
    CHECK_INT(frg_table_find(t, "s")->ordered, 0);
    frg_table_destroy(t);
    CHECK_INT(frg_bytes_held(ctx), 0);
    frg_context_destroy(ctx);
}

/** Under a spool: the same table, of batches of which one is there at a time. */
static void one_at_a_time(void)
{
    frg_context_opts o;
    frg_context_defaults(&o, sizeof o);
    o.spool = ".";
    for (int flags = 0; flags <= ARROW_FLAG_DICTIONARY_ORDERED; flags++) {
        for (int batches = 0; batches < 3; batches++) {
            frg_context *const ctx = test_context();
            frg_context *spooled = NULL;
            producer p = two_batches();
            p.flags = flags;
            p.n_batches = batches;
            struct ArrowArrayStream stream = stream_of(&p);
            frg_table *t = NULL, *u = NULL;
            char want[300], got[300];
            CHECK_STATUS(frg_context_create(&spooled, &o), FRG_OK);
            CHECK_OK(ctx, frg_table_read_arrow(&t, ctx, &stream, NULL));
            p.released = 0;
            p.one_at_a_time = true;
            stream = stream_of(&p);
            CHECK_OK(spooled, frg_table_read_arrow(&u, spooled, &stream, NULL));
            CHECK_INT(p.released, batches);
            CHECK_TEXT(table_text(u, got, sizeof got), table_text(t, want, sizeof want));
            frg_table_destroy(t);
            frg_table_destroy(u);
            frg_interrupt(spooled);
            stream = stream_of(&p);
            CHECK_STATUS(frg_table_read_arrow(&u, spooled, &stream, NULL), FRG_INTERRUPTED);
            CHECK(!u);
            frg_context_destroy(spooled);
            frg_context_destroy(ctx);
        }
    }
}

/** Small batches without end, one row each; private_data counts those that are left. */
static int get_small(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    static double value = 2;
    static const void *buffers[] = {NULL, &value};
    static struct ArrowArray column, *children[] = {&column};
    static int released;
    int *const left = stream->private_data;
    column = (struct ArrowArray){.length = 1, .n_buffers = 2, .buffers = buffers};
    *out = (struct ArrowArray){.release = NULL};
    if ((*left)-- > 0)
        *out = (struct ArrowArray){.length = 1,
                                   .n_children = 1,
                                   .children = children,
                                   .release = release_small,
                                   .private_data = &released};
    return 0;
}

static int small_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    (void)stream;
    static struct ArrowSchema column, *children[] = {&column};
    column = (struct ArrowSchema){.format = "g", .name = "x"};
    schemas_held++;
    *out = (struct ArrowSchema){
        .format = "+s", .n_children = 1, .children = children, .release = release_schema};
    return 0;
}

/** Ten times the batches ask for a few more blocks, not for ten times as many: 2^14 / 2^10 is four
 *  doublings. */
static void many_batches(void)
{
    int64_t calls[2];
    for (int c = 0; c < 2; c++) {
        fault_memory m;
        fault_memory_open(&m);
        frg_context_opts o;
        frg_context_defaults(&o, sizeof o);
        o.allocator = &m.table;
        frg_context *ctx = NULL;
        CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
        int left = c == 0 ? 1 << 10 : 1 << 14;
        struct ArrowArrayStream stream = {.get_schema = small_schema,
                                          .get_next = get_small,
                                          .get_last_error = last_error,
                                          .release = release_stream,
                                          .private_data = &left};
        frg_table *t;
        if (CHECK_OK(ctx, frg_table_read_arrow(&t, ctx, &stream, NULL))) {
            CHECK_INT(frg_table_rows(t), c == 0 ? 1 << 10 : 1 << 14);
            frg_table_destroy(t);
        }
        calls[c] = m.calls;
        frg_context_destroy(ctx);
    }
    CHECK(calls[1] <= calls[0] + 4);
    CHECK_INT(schemas_held, 0);
}

static void borrowed(void)
{
    frg_context *ctx = test_context();
    static const double x[] = {9, 1, NAN, 3};
    static const int64_t k[] = {9, 4, FRG_MISSING_INTEGER, 6};
    producer p = {
        .n_columns = 2,
        .n_batches = 1,
        .fails_at = -1,
        .names = {"x", "k"},
        .formats = {"g", "tsu:Europe/Vienna"},
        .rows = {3},
        .columns = {{{.offset = 1, .n_buffers = 2, .buffers = BUFFERS(NULL, x)},
                     {.offset = 1, .n_buffers = 2, .buffers = BUFFERS(NULL, k)}}},
    };
    struct ArrowArrayStream stream = stream_of(&p);
    frg_table *t;
    CHECK_OK(ctx, frg_table_read_arrow(&t, ctx, &stream, NULL));
    CHECK(frg_table_find(t, "x")->numbers == x + 1);
    CHECK(frg_table_find(t, "k")->integers == k + 1);
    CHECK_INT(frg_table_find(t, "x")->n_missing, 1);
    CHECK_INT(frg_table_find(t, "k")->n_missing, 1);
    CHECK_INT(p.released, 0); /* the table keeps the batch */
    frg_table_destroy(t);
    CHECK_INT(p.released, 1);
    frg_context_destroy(ctx);
}

/** Every other element type, one value each with its neighbours. */
static void element_types(void)
{
    static const uint16_t halves[] = {0x3c00, 0xc100, 0x0001, 0x7c00, 0x7e00};
    static const float floats[] = {1, -2.5F, 0x1p-24F, INFINITY, NAN};
    static const unsigned char bits[] = {0x15}, valid[] = {0x0f};
    static const uint32_t unsigned32[] = {0, 1, 4000000000U, 7, 8};
    static const char views[5][16] = {{3, 0, 0, 0, 'o', 'n', 'e'},
                                      {0},
                                      {14, 0, 0, 0, 'a', 'b', 'c', 'd', 0, 0, 0, 0, 2, 0, 0, 0},
                                      {3, 0, 0, 0, 'o', 'n', 'e'},
                                      {0}};
    producer p = {
        .n_columns = 4,
        .n_batches = 1,
        .fails_at = -1,
        .names = {"h", "b", "u", "v"},
        .formats = {"e", "b", "I", "vu"},
        .rows = {5},
        .columns = {{{.n_buffers = 2, .buffers = BUFFERS(NULL, halves)},
                     {.null_count = 1, .n_buffers = 2, .buffers = BUFFERS(valid, bits)},
                     {.n_buffers = 2, .buffers = BUFFERS(NULL, unsigned32)},
                     {.n_buffers = 3, .buffers = BUFFERS(NULL, views, "..abcdefghijklmn")}}},
    };
    frg_context *ctx = test_context();
    struct ArrowArrayStream stream = stream_of(&p);
    frg_table *t;
    char got[300];
    CHECK_OK(ctx, frg_table_read_arrow(&t, ctx, &stream, NULL));
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(frg_table_find(t, "h")->numbers[i], (double)floats[i], 0);
    CHECK(isnan(frg_table_find(t, "h")->numbers[4]));
    const char *const rest = strstr(table_text(t, got, sizeof got), "|b");
    CHECK_TEXT(rest ? rest : got,
               "|b:b 1 0 1 0 ?|u:i 0 1 4000000000 7 8|v:c 0=one 1= 2=abcdefghijklmn 0=one 1=");
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** Whole numbers over 10^scale in 4, 8 and 16 bytes. */
static void decimals(void)
{
    static const int32_t small[] = {-125, 7, 0};
    static const int64_t middle[] = {-INT64_C(9007199254740991), 5, 0};
    static const uint64_t wide[] = {5, 0, (uint64_t)-3, UINT64_MAX, 0, 1}; /* 5, -3, 2^64 */
    static const unsigned char valid[] = {0x05};
    producer p = {
        .n_columns = 4,
        .n_batches = 1,
        .fails_at = -1,
        .names = {"s", "m", "w", "n"},
        .formats = {"d:9,2,32", "d:18,3,64", "d:38,1", "d:38,-2,128"},
        .rows = {3},
        .columns = {{{.n_buffers = 2, .buffers = BUFFERS(NULL, small)},
                     {.n_buffers = 2, .buffers = BUFFERS(NULL, middle)},
                     {.n_buffers = 2, .buffers = BUFFERS(NULL, wide)},
                     {.null_count = 1, .n_buffers = 2, .buffers = BUFFERS(valid, wide)}}},
    };
    static const double want[4][3] = {{-1.25, 0.07, 0},
                                      {-9007199254740.991, 0.005, 0},
                                      {0.5, -0.3, 0x1p64 / 10},
                                      {500, (double)NAN, 0x1p64 * 100}};
    frg_context *ctx = test_context();
    struct ArrowArrayStream stream = stream_of(&p);
    frg_table *t;
    if (CHECK_OK(ctx, frg_table_read_arrow(&t, ctx, &stream, NULL)))
        for (int k = 0; k < 4; k++)
            for (int i = 0; i < 3; i++) {
                const double got = frg_table_column(t, k)->numbers[i];
                CHECK(isnan(want[k][i]) ? isnan(got)
                                        : !(fabs(got - want[k][i]) > 2e-16 * fabs(got)));
            }
    frg_table_destroy(t);
    static const char *const bad[] = {"d:50,2,256", "d:9", "d:", "d:9,9999", "d:9,2,31"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        p.formats[1] = bad[i];
        p.given = 0;
        stream = stream_of(&p);
        CHECK_STATUS(frg_table_read_arrow(&t, ctx, &stream, NULL), FRG_UNSUPPORTED);
        CHECK(strstr(frg_message(ctx), "'m'") && strstr(frg_message(ctx), bad[i]));
    }
    CHECK_INT(frg_bytes_held(ctx), 0);
    frg_context_destroy(ctx);
}

static void selected(void)
{
    frg_context *ctx = test_context();
    producer p = two_batches();
    p.formats[1] = "+l"; /* a list is no trouble where it is not asked for */
    frg_table_opts o;
    frg_table_defaults(&o, sizeof o);
    o.columns = (const char *const[]){"d", "x"};
    o.n_columns = 2;
    struct ArrowArrayStream stream = stream_of(&p);
    frg_table *t;
    CHECK_OK(ctx, frg_table_read_arrow(&t, ctx, &stream, &o));
    CHECK_INT(frg_table_columns(t), 2);
    frg_table_destroy(t);
    stream = stream_of(&p);
    CHECK_STATUS(frg_table_read_arrow(&t, ctx, &stream, NULL), FRG_UNSUPPORTED);
    CHECK(strstr(frg_message(ctx), "'k'") && strstr(frg_message(ctx), "+l"));
    o.columns = (const char *const[]){"dd", "x"};
    stream = stream_of(&p);
    t = (frg_table *)(void *)&p; /* what stood there does not stay */
    CHECK_STATUS(frg_table_read_arrow(&t, ctx, &stream, &o), FRG_BAD_DATA);
    CHECK(strstr(frg_message(ctx), "did you mean 'd'"));
    CHECK(t == NULL);
    CHECK_INT(frg_bytes_held(ctx), 0);
    frg_context_destroy(ctx);
}

static void refused(void)
{
    frg_context *ctx = test_context();
    frg_table *t;
    producer p = two_batches();
    p.fails_at = 1;
    struct ArrowArrayStream stream = stream_of(&p);
    CHECK_STATUS(frg_table_read_arrow(&t, ctx, &stream, NULL), FRG_BAD_DATA);
    CHECK(strstr(frg_message(ctx), "the disk is on fire"));
    CHECK_INT(p.released, 1);

    static const uint8_t wild[] = {0, 2};
    p = two_batches();
    p.columns[0][3].buffers = BUFFERS(NULL, wild);
    stream = stream_of(&p);
    CHECK_STATUS(frg_table_read_arrow(&t, ctx, &stream, NULL), FRG_BAD_DATA);
    CHECK(strstr(frg_message(ctx), "'d', row 2"));

    static const uint64_t large[] = {1, UINT64_C(1) << 63};
    p = two_batches();
    p.n_columns = 2;
    p.n_batches = 1;
    p.formats[1] = "L";
    p.columns[0][1].buffers = BUFFERS(NULL, large);
    stream = stream_of(&p);
    CHECK_STATUS(frg_table_read_arrow(&t, ctx, &stream, NULL), FRG_BAD_DATA);
    CHECK(strstr(frg_message(ctx), "'k', row 2: 9223372036854775808"));

    p = two_batches();
    p.columns[0][2].buffers = BUFFERS(NULL, p.columns[0][2].buffers[1], "a\xff");
    stream = stream_of(&p);
    CHECK_STATUS(frg_table_read_arrow(&t, ctx, &stream, NULL), FRG_BAD_DATA);
    CHECK(strstr(frg_message(ctx), "'s', row 1") && strstr(frg_message(ctx), "UTF-8"));

    p = two_batches();
    p.names[1] = "x";
    stream = stream_of(&p);
    CHECK_STATUS(frg_table_read_arrow(&t, ctx, &stream, NULL), FRG_BAD_DATA);
    CHECK_INT(schemas_held, 0);
    stream.release = NULL;
    t = (frg_table *)(void *)&p;
    CHECK_STATUS(frg_table_read_arrow(&t, ctx, &stream, NULL), FRG_BAD_ARG);
    CHECK(t == NULL);
    CHECK_INT(frg_bytes_held(ctx), 0);
    frg_context_destroy(ctx);
}

static void no_rows(void)
{
    frg_context *ctx = test_context();
    producer p = two_batches();
    p.n_batches = 0;
    struct ArrowArrayStream stream = stream_of(&p);
    frg_table *t;
    CHECK_OK(ctx, frg_table_read_arrow(&t, ctx, &stream, NULL));
    CHECK_INT(frg_table_rows(t), 0);
    CHECK_INT(frg_table_columns(t), 4);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
}

/** A producer of one batch at a time is read under a spool. */
static frg_status read_body(frg_context *ctx, void *user, uint64_t *hash)
{
    producer *const p = user;
    if (p->one_at_a_time && !ctx->spool) {
        ctx->opts.memory_limit = 1 << 30;
        TRY(frgi_spool_open(ctx, "."));
    }
    p->released = 0;
    struct ArrowArrayStream stream = stream_of(p);
    frg_table *t;
    const frg_status status = frg_table_read_arrow(&t, ctx, &stream, NULL);
    if (status == FRG_OK) {
        *hash = table_hash(t);
        frg_table_destroy(t);
    }
    return status;
}

static void every_allocation_fails(void)
{
    producer p = two_batches();
    CHECK(fault_sweep("arrow", read_body, &p, 1) > 15);
    p.one_at_a_time = true;
    CHECK(fault_sweep("arrow by batches", read_body, &p, 1) > 15);
    CHECK_INT(schemas_held, 0);
}

static const test_case cases[] = {
    {"batches", batches},
    {"one at a time", one_at_a_time},
    {"many batches", many_batches},
    {"borrowed", borrowed},
    {"element types", element_types},
    {"decimals", decimals},
    {"selected", selected},
    {"refused", refused},
    {"no rows", no_rows},
    {"every allocation fails", every_allocation_fails},
};
TEST_MAIN(cases)
