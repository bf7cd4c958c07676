/* test_soap_layouts.c - the optimizer's state in the layouts of other packages: out, in, on, and
 * what is refused. */
#include <unistd.h>

#include "fourge/table.h"
#include "io/io.h"
#include "soap_data.h"

enum { PARAMS = 4, ROOM = 1 << 10, FILE_ROOM = 1 << 16 };

static const frg_soap_layout layouts[] = {FRG_LAYOUT_EMERGING, FRG_LAYOUT_EMERGING_04,
                                          FRG_LAYOUT_NIKHILVYAS, FRG_LAYOUT_PYTORCH_OPTIMIZER};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

/** A weight, a bias, a tensor of three axes (a stack for the layout of two axes), and a weight with
 *  one factor. */
typedef struct {
    frg_soap *soap;
    float w[PARAMS][ROOM];
    frg_array views[PARAMS];
} model;

static const int64_t shapes[PARAMS][4] = {{2, 6, 5, 0}, {1, 7, 0, 0}, {3, 2, 3, 4}, {2, 4, 20, 0}};

static frg_array view_of(const float *x, int i)
{
    return tensor(x, (int)shapes[i][0], &shapes[i][1]);
}

static int64_t size_of(int i)
{
    int64_t size = 1;
    for (int d = 0; d < shapes[i][0]; d++)
        size *= shapes[i][1 + d];
    return size;
}

static frg_soap_opts options(frg_soap_layout layout)
{
    frg_soap_opts o;
    frg_soap_defaults(&o, sizeof o,
                      layout >= FRG_LAYOUT_NIKHILVYAS ? FRG_SOAP_NIKHILVYAS : FRG_SOAP_EMERGING);
    o.lr = 0.05;
    o.eps = 0.05; /* noise in the bases' null spaces is not amplified */
    o.precondition_frequency = 2;
    return o;
}

/** Weights of `from`, or random ones. */
static void open_model(model *m, frg_context *ctx, frg_soap_layout layout, const model *from)
{
    frg_soap_opts o = options(layout);
    m->soap = NULL;
    if (!CHECK_OK(ctx, frg_soap_create(&m->soap, ctx, &o)))
        return;
    o.max_precond_dim = 10;
    CHECK_OK(ctx, frg_soap_add_group(m->soap, &o, NULL));
    o.max_precond_dim = -1;
    o.merge_dims = layout == FRG_LAYOUT_EMERGING_04; /* two matrices as one, there alone */
    o.merge_rule = FRG_MERGE_STACKED;
    CHECK_OK(ctx, frg_soap_add_group(m->soap, &o, NULL));
    for (int i = 0; i < PARAMS; i++) {
        for (int64_t k = 0; k < size_of(i); k++)
            m->w[i][k] = from ? from->w[i][k] : (float)test_normal();
        m->views[i] = view_of(m->w[i], i);
        const int group = i == 3 ? 1 : i == 2 ? 2 : 0;
        CHECK_OK(ctx, frg_soap_add_param(m->soap, group, m->views[i], i == 0 ? "block.0.w" : NULL,
                                         NULL));
    }
}

/** The same gradients to every model. */
static void step(frg_context *ctx, int n, model *const models[])
{
    float g[PARAMS][ROOM];
    frg_array grads[PARAMS];
    for (int i = 0; i < PARAMS; i++) {
        for (int64_t k = 0; k < size_of(i); k++)
            g[i][k] = (float)test_normal();
        grads[i] = view_of(g[i], i);
    }
    for (int m = 0; m < n; m++)
        CHECK_OK(ctx, frg_soap_step(models[m]->soap, grads, PARAMS, NULL));
}

static const char *path_of(const char *what)
{
    static char paths[4][80];
    static int next;
    char *const path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "/tmp/fourge_layout_%d_%s.npz", (int)getpid(), what);
    return path;
}

static size_t read_file(const char *path, unsigned char *bytes)
{
    FILE *f = fopen(path, "rb");
    const size_t count = f ? fread(bytes, 1, FILE_ROOM, f) : 0;
    if (f)
        fclose(f);
    CHECK(count > 0 && count < FILE_ROOM);
    return count;
}

static void write_file(const char *path, const unsigned char *bytes, size_t count)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(bytes, 1, count, f) == count);
    if (f)
        fclose(f);
}

/** Out and in and out again gives the same file; two that came in from it go on to the same bits,
 *  and so does, up to rounding, the one that went out.  After no step, the first and some. */
static void round_trips(void)
{
    static unsigned char first[FILE_ROOM], again[FILE_ROOM];
    static model one, two, three;
    for (int l = 0; l < LAYOUTS; l++) {
        for (int steps = 0; steps < 6; steps += steps == 0 ? 1 : 2) {
            frg_context *ctx = test_context();
            const char *const a = path_of("a"), *const b = path_of("b");
            open_model(&one, ctx, layouts[l], NULL);
            for (int t = 0; t < steps; t++)
                step(ctx, 1, (model *[]){&one});
            CHECK_OK(ctx, frg_soap_export(one.soap, a, layouts[l]));
            open_model(&two, ctx, layouts[l], &one);
            open_model(&three, ctx, layouts[l], &one);
            step(ctx, 1, (model *[]){&three}); /* what it had before is gone */
            memcpy(three.w, one.w, sizeof one.w);
            CHECK_OK(ctx, frg_soap_import(two.soap, a, layouts[l]));
            CHECK_OK(ctx, frg_soap_import(three.soap, a, layouts[l]));
            CHECK_OK(ctx, frg_soap_export(two.soap, b, layouts[l]));
            const size_t count = read_file(a, first);
            CHECK_INT(read_file(b, again), count);
            CHECK_BITS(again, first, count);
            for (int t = 0; t < 4; t++)
                step(ctx, 3, (model *[]){&one, &two, &three});
            CHECK_BITS(two.w, three.w, sizeof two.w);
            for (int i = 0; i < PARAMS; i++)
                for (int64_t k = 0; k < size_of(i); k++)
                    CHECK_SAYS(fabsf(one.w[i][k] - two.w[i][k]) < 1e-4f,
                               "layout %d, %d steps, parameter %d: off by %g", l, steps, i,
                               (double)fabsf(one.w[i][k] - two.w[i][k]));
            frg_soap_destroy(one.soap);
            frg_soap_destroy(two.soap);
            frg_soap_destroy(three.soap);
            remove(a);
            remove(b);
            frg_context_destroy(ctx);
        }
    }
}

/** From layout to layout by way of files: the run goes on as it would have. */
static void across(void)
{
    static model kept, links[LAYOUTS];
    frg_context *ctx = test_context();
    open_model(&kept, ctx, FRG_LAYOUT_EMERGING_04, NULL);
    for (int t = 0; t < 5; t++)
        step(ctx, 1, (model *[]){&kept});
    model *last = &kept;
    for (int l = 0; l < LAYOUTS; l++) {
        const char *const path = path_of("across");
        open_model(&links[l], ctx, FRG_LAYOUT_EMERGING_04, &kept);
        CHECK_OK(ctx, frg_soap_export(last->soap, path, layouts[l]));
        CHECK_OK(ctx, frg_soap_import(links[l].soap, path, layouts[l]));
        last = &links[l];
        remove(path);
    }
    for (int t = 0; t < 3; t++)
        step(ctx, 2, (model *[]){&kept, last});
    for (int i = 0; i < PARAMS; i++)
        for (int64_t k = 0; k < size_of(i); k++)
            CHECK_NEAR((double)last->w[i][k], (double)kept.w[i][k], 1e-4);
    for (int l = 0; l < LAYOUTS; l++)
        frg_soap_destroy(links[l].soap);
    frg_soap_destroy(kept.soap);
    frg_context_destroy(ctx);
}

/* ---- files that are changed ------------------------------------------------------------------ */

typedef enum { LEAVE, DROP_IT, RENAME, OTHER_SHAPE, NOT_FINITE, DOUBLED, AS_INTEGER, ADD } change;

typedef struct {
    frgi_npz_writer *to;
    const char *member, *name; /* which one, and what it is called or the one added is */
    change what;
} editor;

static frg_status edit(void *to, const char *name, frg_npy *array)
{
    editor *const e = to;
    frg_array a = frg_npy_array(array);
    const char *called = name;
    static float values[ROOM];
    int64_t n = 1;
    frg_status s = FRG_OK;
    for (int d = 0; d < a.ndim; d++)
        n *= a.shape[d];
    if (strncmp(name, e->member, strlen(e->member)) == 0) {
        if (e->what == NOT_FINITE || e->what == DOUBLED)
            for (int64_t k = 0; k < n; k++) {
                const float x = ((const float *)a.data)[k];
                values[k] = e->what == DOUBLED ? 2 * x : k == n - 1 ? NAN : x;
            }
        if (e->what == NOT_FINITE || e->what == DOUBLED)
            a.data = values;
        if (e->what == OTHER_SHAPE)
            a = frg_vector(a.data, a.dtype, n - 1);
        if (e->what == AS_INTEGER) {
            static int64_t zeros[ROOM];
            a.dtype = FRG_I64;
            a.data = zeros;
        }
        static char renamed[128];
        snprintf(renamed, sizeof renamed, "%s%s", e->name ? e->name : "", name + strlen(e->member));
        called = e->what == RENAME ? renamed : name;
        if (e->what == ADD)
            s = frgi_npz_add(e->to, e->name, &a);
    }
    if (s >= 0 && !(called == name && e->what == DROP_IT && strcmp(name, e->member) == 0))
        s = frgi_npz_add(e->to, called, &a);
    frg_npy_destroy(array);
    return s;
}

static void rewrite(frg_context *ctx, const unsigned char *bytes, size_t count, const char *path,
                    editor *e)
{
    CHECK_OK(ctx, frgi_npz_open(&e->to, ctx, path));
    CHECK_OK(ctx, frgi_npz_each(ctx, (const char *)bytes, (int64_t)count, "file", edit, e));
    CHECK_OK(ctx, frgi_npz_commit(&e->to));
}

/** Each is refused and leaves the handle as it was, to the bit; what is only called otherwise, or
 *  is not of the state, is taken. */
static void changed_files(void)
{
    static const struct {
        frg_soap_layout layout;
        const char *member, *name;
        change what;
        bool taken;
    } rows[] = {
        {FRG_LAYOUT_EMERGING, "none", NULL, LEAVE, true},
        {FRG_LAYOUT_EMERGING, "state.0.", "state.block.0.w.", RENAME, true},
        {FRG_LAYOUT_EMERGING, "state.0.step", "model.0.weight", ADD, true},
        {FRG_LAYOUT_EMERGING, "state.0.step", "state.9.step", ADD, false},
        {FRG_LAYOUT_EMERGING, "state.0.Q.0", "state.0.Q.2", ADD, false},
        {FRG_LAYOUT_EMERGING, "state.0.step", NULL, DROP_IT, false},
        {FRG_LAYOUT_EMERGING, "state.0.exp_avg", NULL, DROP_IT, false},
        {FRG_LAYOUT_EMERGING, "state.0.Q.1", NULL, DROP_IT, false},
        {FRG_LAYOUT_EMERGING, "state.2.GG.1", NULL, DROP_IT, false},
        {FRG_LAYOUT_EMERGING, "state.0.Q.0", NULL, DOUBLED, false},
        {FRG_LAYOUT_EMERGING, "state.0.Q.0", NULL, OTHER_SHAPE, false},
        {FRG_LAYOUT_EMERGING, "state.1.exp_avg_sq", NULL, OTHER_SHAPE, false},
        {FRG_LAYOUT_EMERGING, "state.1.exp_avg_sq", NULL, NOT_FINITE, false},
        {FRG_LAYOUT_EMERGING, "state.0.GG.1", NULL, NOT_FINITE, false},
        {FRG_LAYOUT_EMERGING, "state.0.GG.1", NULL, AS_INTEGER, false},
        {FRG_LAYOUT_EMERGING_04, "state.0.R", NULL, DROP_IT, false},
        {FRG_LAYOUT_EMERGING_04, "state.0.eigvals_L", NULL, NOT_FINITE, false},
        {FRG_LAYOUT_NIKHILVYAS, "state.0.shampoo_beta", NULL, DROP_IT, true},
        {FRG_LAYOUT_PYTORCH_OPTIMIZER, "param_groups.0.step", NULL, DROP_IT, false},
        {FRG_LAYOUT_PYTORCH_OPTIMIZER, "param_groups.0.step", NULL, AS_INTEGER, false}, /* 0 */
    };
    static unsigned char bytes[FILE_ROOM], before[FILE_ROOM], after[FILE_ROOM];
    static model one;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        frg_context *ctx = test_context();
        const char *const path = path_of("sound"), *const other = path_of("changed");
        int64_t count = 0, again = 0;
        open_model(&one, ctx, rows[r].layout, NULL);
        for (int t = 0; t < 3; t++)
            step(ctx, 1, (model *[]){&one});
        CHECK_OK(ctx, frg_soap_export(one.soap, path, rows[r].layout));
        editor e = {NULL, rows[r].member, rows[r].name, rows[r].what};
        rewrite(ctx, bytes, read_file(path, bytes), other, &e);
        step(ctx, 1, (model *[]){&one});
        CHECK_OK(ctx, frg_soap_save_bytes(one.soap, before, FILE_ROOM, &count));
        const frg_status s = frg_soap_import(one.soap, other, rows[r].layout);
        CHECK_SAYS(s == (rows[r].taken ? FRG_OK : FRG_MISMATCH), "row %d: %s %s", (int)r,
                   frg_status_name(s), frg_message(ctx));
        CHECK_OK(ctx, frg_soap_save_bytes(one.soap, after, FILE_ROOM, &again));
        CHECK_INT(again, count);
        CHECK_SAYS((memcmp(before, after, (size_t)count) == 0) == !rows[r].taken, "row %d", (int)r);
        remove(path);
        remove(other);
        frg_soap_destroy(one.soap);
        frg_context_destroy(ctx);
    }
}

/** A file cut off anywhere, or with any byte of its arrays or directory changed, changes
 *  nothing. */
static void damaged_files(void)
{
    static unsigned char bytes[FILE_ROOM], before[FILE_ROOM], after[FILE_ROOM];
    static model one;
    frg_context *ctx = test_context();
    const char *const path = path_of("damaged");
    int64_t count = 0, again = 0;
    open_model(&one, ctx, FRG_LAYOUT_EMERGING, NULL);
    step(ctx, 1, (model *[]){&one});
    CHECK_OK(ctx, frg_soap_export(one.soap, path, FRG_LAYOUT_EMERGING));
    const size_t whole = read_file(path, bytes);
    CHECK_OK(ctx, frg_soap_save_bytes(one.soap, before, FILE_ROOM, &count));
    for (size_t cut = 0; cut < whole; cut += 1 + whole / 40) {
        write_file(path, bytes, cut);
        CHECK(frg_soap_import(one.soap, path, FRG_LAYOUT_EMERGING) < 0);
    }
    for (size_t at = 60; at < whole / 2;
         at += 1 + whole / 80) { /* within members: their CRC tells */
        bytes[at] ^= 0x20;
        write_file(path, bytes, whole);
        if (frg_soap_import(one.soap, path, FRG_LAYOUT_EMERGING) >= 0) /* a date, say */
            CHECK_OK(ctx, frg_soap_load_bytes(one.soap, before, count, "before"));
        bytes[at] ^= 0x20;
    }
    CHECK_OK(ctx, frg_soap_save_bytes(one.soap, after, FILE_ROOM, &again));
    CHECK_INT(again, count);
    CHECK_STATUS(frg_soap_import(one.soap, "/tmp/no/such.npz", FRG_LAYOUT_EMERGING), FRG_NO_INPUT);
    CHECK_STATUS(frg_soap_import(NULL, path, FRG_LAYOUT_EMERGING), FRG_BAD_ARG);
    CHECK_STATUS(frg_soap_export(NULL, path, FRG_LAYOUT_EMERGING), FRG_BAD_ARG);
    CHECK_STATUS(frg_soap_export(one.soap, NULL, FRG_LAYOUT_EMERGING), FRG_BAD_ARG);
    CHECK_STATUS(frg_soap_export(one.soap, path, (frg_soap_layout)7), FRG_BAD_ARG);
    /* the parameter of three axes has factors here */
    CHECK_STATUS(frg_soap_export(one.soap, path, FRG_LAYOUT_EMERGING_04), FRG_BAD_ARG);
    CHECK_BITS(after, before, (size_t)count);
    remove(path);
    frg_soap_destroy(one.soap);
    frg_context_destroy(ctx);
}

/** Bases that are I, of a gradient along the axes, are bases in the file too: the run goes on with
 *  them. */
static void bases_of_the_axes(void)
{
    frg_context *ctx = test_context();
    frg_soap_opts o = options(FRG_LAYOUT_EMERGING);
    o.precondition_frequency = 5;
    float w[2][9] = {{0}}, g[9] = {3, 0, 0, 0, 2, 0, 0, 0, 1};
    const frg_array grad = frg_matrix(g, FRG_F32, 3, 3, 3);
    const char *const path = path_of("axes");
    frg_soap *soap[2] = {NULL, NULL};
    frg_soap_report report;
    for (int k = 0; k < 2; k++) {
        CHECK_OK(ctx, frg_soap_create(&soap[k], ctx, &o));
        CHECK_OK(ctx,
                 frg_soap_add_param(soap[k], 0, frg_matrix(w[k], FRG_F32, 3, 3, 3), "w", NULL));
    }
    CHECK_OK(ctx, frg_soap_step(soap[0], &grad, 1, NULL));
    CHECK_OK(ctx, frg_soap_export(soap[0], path, FRG_LAYOUT_EMERGING));
    CHECK_OK(ctx, frg_soap_import(soap[1], path, FRG_LAYOUT_EMERGING));
    memcpy(w[1], w[0], sizeof w[0]);
    for (int i = 0; i < 9; i++)
        g[i] = (float)test_normal();
    for (int k = 0; k < 2; k++) {
        CHECK_OK(ctx, frg_soap_step(soap[k], &grad, 1, &report));
        CHECK_INT(report.due, 0);
        frg_soap_destroy(soap[k]);
    }
    for (int i = 0; i < 9; i++) /* the same state; m goes through its basis once */
        CHECK_NEAR((double)w[1][i], (double)w[0][i], 1e-6);
    remove(path);
    frg_context_destroy(ctx);
}

/* ---- the state where it lies ----------------------------------------------------------------- */

enum { ROWS = 6, COLUMNS = 5, COUNT = ROWS * COLUMNS };

static const float *floats_of(const frg_soap_view *v)
{
    return v->array.data;
}

static frg_soap_view view_named(frg_context *ctx, frg_soap *soap, const char *key)
{
    frg_soap_view v = {.unit = NAN};
    CHECK_OK(ctx, frg_soap_state_view(soap, 0, key, &v));
    return v;
}

/** A moment without a copy is the copy, by the orders of the columns of both axes where it stands
 *  in the bases. */
static void same_moment(frg_context *ctx, frg_soap *soap, const char *key,
                        const int32_t *const order[2])
{
    const frg_soap_view v = view_named(ctx, soap, key);
    float copy[COUNT];
    const bool plain = !v.in_bases && strcmp(key, "exp_avg") == 0;
    CHECK_OK(ctx, frg_soap_state_get(soap, 0, plain ? "exp_avg.plain" : key,
                                     frg_matrix(copy, FRG_F32, ROWS, COLUMNS, COLUMNS)));
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            const int at = plain ? i * COLUMNS + j : order[0][i] * COLUMNS + order[1][j];
            CHECK(copy[i * COLUMNS + j] == (float)(v.unit * (double)floats_of(&v)[at]));
        }
}

/** The parts of one axis; true: its columns have changed places. */
static bool same_factor(frg_context *ctx, frg_soap *soap, int axis, const int32_t **order)
{
    static const char *const keys[3][2] = {{"Q.0", "Q.1"}, {"GG.0", "GG.1"}, {"eig.0", "eig.1"}};
    const frg_soap_view q = view_named(ctx, soap, keys[0][axis]),
                        k = view_named(ctx, soap, keys[1][axis]),
                        lambda = view_named(ctx, soap, keys[2][axis]);
    const int64_t n = axis == 0 ? ROWS : COLUMNS;
    float basis[ROWS * ROWS], factor[ROWS * ROWS], values[ROWS];
    CHECK_OK(ctx, frg_soap_state_get(soap, 0, keys[0][axis], frg_matrix(basis, FRG_F32, n, n, n)));
    CHECK_OK(ctx, frg_soap_state_get(soap, 0, keys[1][axis], frg_matrix(factor, FRG_F32, n, n, n)));
    CHECK_OK(ctx, frg_soap_state_get(soap, 0, keys[2][axis], frg_vector(values, FRG_F32, n)));
    bool moved = false;
    for (int64_t j = 0; j < n; j++) {
        const int64_t slot = q.order[j];
        moved = moved || slot != j;
        CHECK(values[j] == (float)(lambda.unit * ((const double *)lambda.array.data)[slot]));
        for (int64_t i = 0; i < n; i++) {
            const float *const column = floats_of(&q) + slot * q.array.stride[1];
            CHECK(basis[i * n + j] == column[i * q.array.stride[0]]);
            const float lower = floats_of(&k)[i * k.array.stride[0] + j * k.array.stride[1]];
            CHECK(i < j || factor[i * n + j] == (float)(k.unit * (double)lower));
        }
    }
    *order = q.order;
    return moved;
}

/** Views are the copies, of gradients of ordinary size and beyond 2^40, with columns that change
 *  places; who looks sees the same run. */
static void views(void)
{
    bool moved = false;
    for (int round = 0; round < 4; round++) {
        frg_context *ctx = test_context();
        frg_soap_opts o;
        frg_soap_defaults(&o, sizeof o, FRG_SOAP_EMERGING);
        o.shampoo_beta = 0.5; /* eigenvalues cross */
        o.moment1_basis = round % 2 ? FRG_BASIS_EIGEN : FRG_BASIS_ORIGINAL;
        float w[2][COUNT] = {{0}}, g[COUNT];
        frg_soap *soap[2] = {NULL, NULL};
        for (int k = 0; k < 2; k++) {
            CHECK_OK(ctx, frg_soap_create(&soap[k], ctx, &o));
            CHECK_OK(ctx, frg_soap_add_param(soap[k], 0,
                                             frg_matrix(w[k], FRG_F32, ROWS, COLUMNS, COLUMNS), "w",
                                             NULL));
        }
        bool in_bases = false;
        for (int t = 1; t <= 8; t++) {
            for (int i = 0; i < COUNT; i++)
                g[i] = (float)((round < 2 ? 1 : 0x1p45) * test_normal());
            const frg_array grad = frg_matrix(g, FRG_F32, ROWS, COLUMNS, COLUMNS);
            for (int k = 0; k < 2; k++)
                CHECK_OK(ctx, frg_soap_step(soap[k], &grad, 1, NULL));
            const int32_t *order[2];
            for (int axis = 0; axis < 2; axis++)
                moved = same_factor(ctx, soap[0], axis, &order[axis]) || moved;
            same_moment(ctx, soap[0], "exp_avg", order);
            same_moment(ctx, soap[0], "exp_avg_sq", order);
            const frg_soap_view step = view_named(ctx, soap[0], "step");
            CHECK_INT(*(const int64_t *)step.array.data, t);
            CHECK((view_named(ctx, soap[0], "GG.0").unit > 1) == (round >= 2));
            in_bases = in_bases || view_named(ctx, soap[0], "exp_avg").in_bases;
            CHECK_BITS(w[0], w[1], sizeof w[0]);
        }
        CHECK(in_bases == (o.moment1_basis == FRG_BASIS_EIGEN));
        frg_soap_view none = {.unit = 7};
        CHECK_STATUS(frg_soap_state_view(soap[0], 0, "exp_avg.plain", &none), FRG_BAD_ARG);
        CHECK_STATUS(frg_soap_state_view(soap[0], 0, "GG.2", &none), FRG_BAD_ARG);
        CHECK_STATUS(frg_soap_state_view(soap[0], 1, "step", &none), FRG_BAD_ARG);
        CHECK_STATUS(frg_soap_state_view(soap[0], 0, "step", NULL), FRG_BAD_ARG);
        CHECK(none.unit == 7); /* a refusal leaves it as it was */
        frg_soap_destroy(soap[0]);
        frg_soap_destroy(soap[1]);
        frg_context_destroy(ctx);
    }
    CHECK_SAYS(moved, "no column changed its place");
}

static const test_case cases[] = {{"round_trips", round_trips},
                                  {"across", across},
                                  {"views", views},
                                  {"bases of the axes", bases_of_the_axes},
                                  {"changed_files", changed_files},
                                  {"damaged_files", damaged_files}};
TEST_MAIN(cases)
