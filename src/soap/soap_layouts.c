/* soap_layouts.c - the state as named arrays in the layouts of other packages, in an .npz archive.
 *
 * "state.ID.PART" is what state_dict()["state"][ID][PART] is there.  The parts of a parameter are
 * walked in one order for both ways, bases first, since moments are set in them (soap_views.c).  An
 * import looks at everything before it changes anything. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/io.h"
#include "linalg/half.h"
#include "soap/soap_state.h"

enum { KEY_BYTES = 40, LAYOUTS = FRG_LAYOUT_PYTORCH_OPTIMIZER + 1 };
typedef enum { KIND_Q, KIND_K, KIND_LAMBDA, FACTOR_KINDS } factor_kind;

static const struct {
    const char *moment; /* the key of the first moment as it is there */
    bool sides;         /* L and R instead of lists */
    bool own_step;      /* a step for every parameter */
    bool own_options;   /* precondition_frequency and shampoo_beta as well */
    bool empty,
        unchanged; /* arrays of no elements for axes without factors; I where there are no bases
                      yet */
} LAYOUT[LAYOUTS] = {
    [FRG_LAYOUT_EMERGING] = {"exp_avg", false, true, false, true, true},
    [FRG_LAYOUT_EMERGING_04] = {"exp_avg", true, true, false, false, true},
    [FRG_LAYOUT_NIKHILVYAS] = {"exp_avg", false, true, true, false, false},
    [FRG_LAYOUT_PYTORCH_OPTIMIZER] = {"exp_avg.plain", false, false, true, false, false},
};
static const char *const LISTS[FACTOR_KINDS] = {"Q", "GG", "eig"};
static const char *const SIDES[FACTOR_KINDS][2] = {
    {"Q_L", "Q_R"}, {"L", "R"}, {"eigvals_L", "eigvals_R"}};

static frg_status check_layout(frg_soap *soap, const char *path, frg_soap_layout layout)
{
    if (!soap) {
        FAIL(NULL, E_ARG, "soap is NULL");
    }
    REQUIRE(soap->ctx, path && *path, "path is empty");
    REQUIRE(soap->ctx, (int)layout >= 0 && (int)layout < LAYOUTS,
            "layout is %d, expected one of FRG_LAYOUT_EMERGING .. FRG_LAYOUT_PYTORCH_OPTIMIZER",
            (int)layout);
    for (int64_t i = 0; i < soap->n_params && LAYOUT[layout].sides; i++) {
        const soap_param *const p = soap->params[i];
        bool blocks = false;
        for (int k = 1; k < p->n_factors; k++) {
            blocks |= p->factors[k].axis == p->factors[k - 1].axis;
        }
        if (p->n_factors > 0 && (p->axes != 2 || blocks)) {
            FAIL(soap->ctx, E_SHAPE,
                 "the layout emerging-0.4 takes factors of two axes without blocks, those of '%s' "
                 "are "
                 "others; take another layout",
                 p->name);
        }
    }
    return FRG_OK;
}

/** The key of a factor's part, which is its name in the file as well. */
static void factor_key(const soap_param *p, frg_soap_layout layout, int i, factor_kind kind,
                       char key[KEY_BYTES])
{
    const int axis = p->factors[i].axis;
    int first = i, last = i;
    while (first > 0 && p->factors[first - 1].axis == axis) {
        first--;
    }
    while (last + 1 < p->n_factors && p->factors[last + 1].axis == axis) {
        last++;
    }
    if (LAYOUT[layout].sides) {
        snprintf(key, KEY_BYTES, "%s", SIDES[kind][axis]);
    } else if (first < last) {
        snprintf(key, KEY_BYTES, "%s.%d.%d", LISTS[kind], axis, i - first);
    } else {
        snprintf(key, KEY_BYTES, "%s.%d", LISTS[kind], axis);
    }
}

/** Part number `at` of a parameter: bases, factors, quotients where the layout has them, moments.
 *  false: no more. */
static bool tensor_key(const soap_param *p, frg_soap_layout layout, int at, char key[KEY_BYTES])
{
    const int kinds = LAYOUT[layout].sides ? FACTOR_KINDS : KIND_LAMBDA;
    const char *const moments[2] = {LAYOUT[layout].moment, "exp_avg_sq"};
    if (at < kinds * p->n_factors) {
        factor_key(p, layout, at % p->n_factors, (factor_kind)(at / p->n_factors), key);
        return true;
    }
    at -= kinds * p->n_factors;
    if (at < 2) {
        snprintf(key, KEY_BYTES, "%s", moments[at]);
    }
    return at < 2;
}

/** What a part is called in the file: exp_avg, wherever it stands. */
static const char *file_key(const char *key)
{
    return strcmp(key, "exp_avg.plain") == 0 ? "exp_avg" : key;
}

static bool is_basis(const char *key)
{
    return *key == 'Q';
}

/* ---- out ------------------------------------------------------------------------------------- */

typedef struct {
    frg_soap *soap;
    frg_soap_layout layout;
    frgi_npz_writer *file;
    float *work;
} exporter;

static frg_status put(const exporter *e, int64_t id, const char *key, const frg_array *a)
{
    char name[2 * KEY_BYTES];
    snprintf(name, sizeof name, "state.%" PRId64 ".%s", id, key);
    return frgi_npz_add(e->file, name, a);
}

static frg_status put_tensor(const exporter *e, int64_t id, const char *key)
{
    frg_soap *const soap = e->soap;
    frg_array a;
    TRY(frg_soap_state_shape(soap, id, key, &a));
    a.data = e->work;
    TRY(frg_soap_state_get(soap, id, key, a));
    size_t count = 1;
    for (int d = 0; d < a.ndim; d++) {
        count *= (size_t)a.shape[d];
    }
    if (isnan(soap->ops->largest((ptrdiff_t)count, e->work))) {
        FAIL(soap->ctx, E_STATE, "%s of '%s' is beyond single precision", key,
             soap->params[id]->name);
    }
    return put(e, id, file_key(key), &a);
}

/** Arrays of no elements for the axes that have no factor. */
static frg_status put_empty(const exporter *e, int64_t id)
{
    const soap_param *const p = e->soap->params[id];
    const frg_array none = frg_vector(e->work, FRG_F32, 0);
    for (int axis = 0; axis < (p->axes > 0 ? p->axes : 1); axis++) {
        const bool has = frgi_soap_has_factor(p, axis);
        for (int kind = KIND_Q; kind < KIND_LAMBDA && !has; kind++) {
            char key[KEY_BYTES];
            snprintf(key, sizeof key, "%s.%d", LISTS[kind], axis);
            TRY(put(e, id, key, &none));
        }
    }
    return FRG_OK;
}

static frg_array scalar(const void *value, frg_dtype type)
{
    return (frg_array){.data = (void *)(uintptr_t)value, .dtype = type};
}

static frg_status put_param(const exporter *e, int64_t id)
{
    const soap_param *const p = e->soap->params[id];
    const frg_soap_opts *const o = &e->soap->groups[p->group];
    const double beta = o->shampoo_beta < 0 ? o->beta2 : o->shampoo_beta;
    const frg_array step = scalar(&p->step, FRG_I64), shampoo = scalar(&beta, FRG_F64),
                    frequency = scalar(&o->precondition_frequency, FRG_I64);
    char key[KEY_BYTES];
    if (!p->started) { /* other packages have no state of what never had a gradient */
        return FRG_OK;
    }
    for (int at = 0; tensor_key(p, e->layout, at, key); at++) {
        if (!is_basis(key) || p->generation > 0 || LAYOUT[e->layout].unchanged) {
            TRY(put_tensor(e, id, key));
        }
    }
    if (LAYOUT[e->layout].empty) {
        TRY(put_empty(e, id));
    }
    if (LAYOUT[e->layout].own_options) {
        TRY(put(e, id, "precondition_frequency", &frequency));
        TRY(put(e, id, "shampoo_beta", &shampoo));
    }
    return LAYOUT[e->layout].own_step ? put(e, id, "step", &step) : FRG_OK;
}

/** The steps of every group: its parameters' most, and the first, which moves nothing there. */
static frg_status put_groups(const exporter *e)
{
    for (int64_t g = 0; g < e->soap->n_groups && !LAYOUT[e->layout].own_step; g++) {
        int64_t most = 0;
        for (int64_t i = 0; i < e->soap->n_params; i++) {
            const soap_param *const p = e->soap->params[i];
            const int64_t steps = p->group == g && p->started ? p->step + 1 : 0;
            most = steps > most ? steps : most;
        }
        const frg_array step = scalar(&most, FRG_I64);
        char name[KEY_BYTES];
        snprintf(name, sizeof name, "param_groups.%" PRId64 ".step", g);
        TRY(frgi_npz_add(e->file, name, &step));
    }
    return FRG_OK;
}

static frg_status put_all(const exporter *e)
{
    for (int64_t i = 0; i < e->soap->n_params; i++) {
        TRY(put_param(e, i));
    }
    return put_groups(e);
}

frg_status frg_soap_export(frg_soap *soap, const char *path, frg_soap_layout layout)
{
    TRY(check_layout(soap, path, layout));
    frgi_soap_wait(soap);
    TRY(frgi_soap_plan(soap));
    size_t most = 1;
    for (int64_t i = 0; i < soap->n_params; i++) {
        const soap_param *const p = soap->params[i];
        most = (size_t)p->count > most ? (size_t)p->count : most;
        for (int k = 0; k < p->n_factors; k++) {
            const size_t square = (size_t)p->factors[k].size * (size_t)p->factors[k].size;
            most = square > most ? square : most;
        }
    }
    exporter e = {.soap = soap, .layout = layout};
    frg_status status;
    TRY(NEW(soap->ctx, &e.work, most, "a part of the state"));
    TRY_TO(failed, frgi_npz_open(&e.file, soap->ctx, path));
    TRY_TO(failed, put_all(&e));
    DROP(soap->ctx, &e.work);
    return frgi_npz_commit(&e.file);
failed:
    frgi_npz_abandon(&e.file);
    DROP(soap->ctx, &e.work);
    return status;
}

/* ---- in -------------------------------------------------------------------------------------- */

typedef struct {
    char *name;
    frg_npy *array;
    bool used;
} member;

typedef struct {
    frg_soap *soap;
    frg_soap_layout layout;
    const char *path;
    member *members;
    int64_t n, capacity, next; /* next: where the last search ended; members mostly come in order */
} importer;

static frg_status take_member(void *to, const char *name, frg_npy *array)
{
    importer *const im = to;
    frg_context *const ctx = im->soap->ctx;
    frg_status status;
    if (im->n == im->capacity) {
        TRY_TO(failed, GROW(ctx, &im->members, 2 * im->capacity + 16, "members of an archive"));
        im->capacity = 2 * im->capacity + 16;
    }
    member *const m = &im->members[im->n];
    *m = (member){.array = array};
    TRY_TO(failed, frgi_strdup(ctx, &m->name, name, strlen(name)));
    im->n++;
    return FRG_OK;
failed:
    frg_npy_destroy(array);
    return status;
}

static void drop_members(importer *im)
{
    for (int64_t i = 0; i < im->n; i++) {
        DROP(im->soap->ctx, &im->members[i].name);
        frg_npy_destroy(im->members[i].array);
    }
    DROP(im->soap->ctx, &im->members);
}

/** Is `name` = "state." prefix "." key? */
static bool is_called(const char *name, const char *prefix, const char *key)
{
    const size_t length = strlen(prefix);
    return strncmp(name, "state.", 6) == 0 && strncmp(name + 6, prefix, length) == 0 &&
           name[6 + length] == '.' && strcmp(name + 7 + length, key) == 0;
}

/** A part by the parameter's number or name; NULL: there is none, or none with elements. */
static member *find(importer *im, int64_t id, const char *key)
{
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, id);
    const char *const called = im->soap->params[id]->name;
    for (int64_t k = 0; k < im->n; k++) {
        const int64_t at = (im->next + k) % im->n;
        member *const m = &im->members[at];
        if (is_called(m->name, number, key) || is_called(m->name, called, key)) {
            const frg_array a = frg_npy_array(m->array);
            im->next = at + 1;
            m->used = true;
            return a.ndim == 1 && a.shape[0] == 0 ? NULL : m;
        }
    }
    return NULL;
}

static double element(const frg_array *a, int64_t i)
{
    const char *const at = frgi_array_base(a) + (size_t)i * frg_sizeof(a->dtype);
    if (a->dtype == FRG_I64) {
        int64_t n;
        memcpy(&n, at, sizeof n);
        return (double)n;
    }
    return frgi_element_get(at, a->dtype);
}

static int64_t count_of(const frg_array *a)
{
    int64_t count = 1;
    for (int d = 0; d < a->ndim; d++) {
        count *= a->shape[d];
    }
    return count;
}

/** Of the shape that the handle has, f32 or f64, finite. */
static frg_status check_tensor(const importer *im, int64_t id, const char *key, const member *m)
{
    frg_context *const ctx = im->soap->ctx;
    frg_array want, a = frg_npy_array(m->array);
    TRY(frg_soap_state_shape(im->soap, id, key, &want));
    bool same = a.ndim == want.ndim && (a.dtype == FRG_F32 || a.dtype == FRG_F64);
    for (int d = 0; d < a.ndim && same; d++) {
        same = a.shape[d] == want.shape[d];
    }
    if (!same) {
        FAIL(ctx, E_STATE, "'%s': %s is not of the shape of '%s', or not f32 or f64", im->path,
             m->name, im->soap->params[id]->name);
    }
    for (int64_t i = 0, n = count_of(&a); i < n; i++) {
        if (!isfinite((float)element(&a, i))) {
            FAIL(ctx, E_STATE, "'%s': %s holds NaN, an infinity, or more than f32 does", im->path,
                 m->name);
        }
    }
    return FRG_OK;
}

/** Are the columns as long as those of a basis, in whatever precision it was saved?  *identity: it
 *  is none yet. */
static frg_status check_basis(const importer *im, const member *m, bool *identity)
{
    static const double OFF = 0.05; /* bf16: 2^-8 an entry, so at most 2^-7 here */
    const frg_array a = frg_npy_array(m->array);
    const int64_t n = a.shape[0];
    for (int64_t j = 0; j < n; j++) {
        double norm2 = 0;
        for (int64_t i = 0; i < n; i++) {
            const double x = element(&a, i * a.stride[0] + j * a.stride[1]);
            norm2 += x * x;
            *identity = *identity && !(x < (i == j) || x > (i == j));
        }
        if (!(fabs(norm2 - 1) <= OFF)) {
            FAIL(im->soap->ctx, E_STATE, "'%s': %s is no basis, column %" PRId64 " has length %g",
                 im->path, m->name, j + 1, sqrt(norm2));
        }
    }
    return FRG_OK;
}

/** What the file has of a parameter. */
typedef struct {
    bool any, bases;
    int64_t step;
} found;

static frg_status find_step(importer *im, int64_t id, found *f)
{
    const bool own = LAYOUT[im->layout].own_step;
    char name[KEY_BYTES];
    snprintf(name, sizeof name, "param_groups.%d.step", im->soap->params[id]->group);
    member *m = own ? find(im, id, "step") : NULL;
    for (int64_t i = 0; i < im->n && !own && !m; i++) {
        m = strcmp(im->members[i].name, name) == 0 ? &im->members[i] : NULL;
    }
    const frg_array a = m ? frg_npy_array(m->array) : (frg_array){0};
    const bool number =
        m && count_of(&a) == 1 && (a.dtype == FRG_I64 || a.dtype == FRG_F32 || a.dtype == FRG_F64);
    const double step = number ? element(&a, 0) - (own ? 0 : 1) : -1;
    if (!(step >= 0 && step <= 0x1p53 && step == floor(step))) {
        FAIL(im->soap->ctx, E_STATE, "'%s': there is no number of steps for '%s'", im->path,
             im->soap->params[id]->name);
    }
    f->step = (int64_t)step;
    return FRG_OK;
}

static frg_status examine_param(importer *im, int64_t id, found *f)
{
    const soap_param *const p = im->soap->params[id];
    char key[KEY_BYTES];
    int missing = 0, bases = 0;
    bool identity = true;
    const char *absent = NULL;
    *f = (found){.any = false};
    for (int at = 0; tensor_key(p, im->layout, at, key); at++) {
        const member *const m = find(im, id, file_key(key));
        f->any |= m != NULL;
        if (!m && is_basis(key)) {
            missing++;
        } else if (!m) {
            absent = file_key(key)[0] == 'e' ? "a moment" : "a factor";
        } else {
            TRY(check_tensor(im, id, key, m));
            bases += is_basis(key);
            TRY(is_basis(key) ? check_basis(im, m, &identity) : FRG_OK);
        }
    }
    if (f->any && (absent || (missing > 0 && bases > 0))) {
        FAIL(im->soap->ctx, E_STATE, "'%s' lacks %s of '%s'", im->path, absent ? absent : "a basis",
             p->name);
    }
    TRY(f->any ? find_step(im, id, f) : FRG_OK);
    const bool early = f->step <= im->soap->groups[p->group].adam_warmup_steps;
    f->bases = bases > 0 && !(identity && early && LAYOUT[im->layout].unchanged);
    return FRG_OK;
}

/** Parts that nobody asked for: the handle has less than the file. */
static frg_status check_others(importer *im)
{
    for (int64_t id = 0; id < im->soap->n_params; id++) {
        for (int i = 0; i < 2; i++) {
            (void)find(im, id, i == 0 ? "precondition_frequency" : "shampoo_beta");
        }
    }
    for (int64_t i = 0; i < im->n; i++) {
        const member *const m = &im->members[i];
        const frg_array a = frg_npy_array(m->array);
        if (!m->used && strncmp(m->name, "state.", 6) == 0 && count_of(&a) > 0) {
            FAIL(im->soap->ctx, E_STATE, "'%s': this optimizer has no place for %s", im->path,
                 m->name);
        }
    }
    return FRG_OK;
}

/** Nothing fails here: all was examined. */
static frg_status set_param(importer *im, int64_t id, const found *f)
{
    char key[KEY_BYTES];
    frg_soap *const soap = im->soap;
    soap_param *const p = soap->params[id];
    frgi_soap_clear(p);
    for (int at = 0; f->any && tensor_key(p, im->layout, at, key); at++) {
        const member *const m = find(im, id, file_key(key));
        if (m && (!is_basis(key) || f->bases)) {
            TRY(frg_soap_state_set(soap, id, key, frg_npy_array(m->array)));
        }
    }
    p->started = f->any;
    return f->any ? frg_soap_state_set(soap, id, "step", frg_vector(&f->step, FRG_I64, 1)) : FRG_OK;
}

static frg_status import_all(importer *im, found *tensors)
{
    frg_soap *const soap = im->soap;
    for (int64_t i = 0; i < soap->n_params; i++) {
        TRY(examine_param(im, i, &tensors[i]));
    }
    TRY(check_others(im));
    TRY(frgi_soap_plan(soap));
    for (int64_t i = 0; i < soap->n_params; i++) {
        TRY(set_param(im, i, &tensors[i]));
    }
    return FRG_OK;
}

frg_status frg_soap_import_bytes(frg_soap *soap, const void *bytes, int64_t count, const char *name,
                                 frg_soap_layout layout)
{
    TRY(check_layout(soap, name, layout));
    frg_context *const ctx = soap->ctx;
    REQUIRE(ctx, (bytes || count == 0) && count >= 0, "bytes is %s, count is %lld",
            bytes ? "given" : "NULL", (long long)count);
    frgi_soap_wait(soap);
    importer im = {.soap = soap, .layout = layout, .path = name};
    found *tensors = NULL;
    frg_status status;
    TRY_TO(done, frgi_npz_each(ctx, bytes, count, name, take_member, &im));
    TRY_TO(done, NEW0(ctx, &tensors, soap->n_params, "parts of the state"));
    TRY_TO(done, import_all(&im, tensors));
done:
    drop_members(&im);
    DROP(ctx, &tensors);
    return status;
}

frg_status frg_soap_import(frg_soap *soap, const char *path, frg_soap_layout layout)
{
    TRY(check_layout(soap, path, layout));
    frgi_run_begins(soap->ctx);
    char *bytes = NULL;
    size_t count = 0;
    frg_status status = frgi_read_file(soap->ctx, path, &bytes, &count);
    if (status == FRG_OK) {
        status = frg_soap_import_bytes(soap, bytes, (int64_t)count, path, layout);
    }
    DROP(soap->ctx, &bytes);
    return status;
}
