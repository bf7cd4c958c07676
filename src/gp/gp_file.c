/* gp_file.c - processes in files: data, expression, parameters, factor, checked.
 *
 * All numbers little-endian; no gaps:
 *
 *     8 bytes    "FRG-GP\r\n": a transfer that meddles with line ends is seen
 *     u32        version, 1; another one is refused
 *     u64        bytes of the whole file
 *     u32 x 10   precision, storage, jitter policy, mean, columns of a profiled mean, reml, prior
 *                jacobian, auto promote, what is there (bits: known noise 1, groups 2, mean values
 *                4, factor 8, a profiled scale 16), parameters
 *     f64 x 3    accuracy, jitter in the factor, 0
 *     i64 x 4    n, d, q, rows left out
 *     text       expression (u32 length, bytes), d column names in the same way
 *     parameters u32 transform, fixed + 2 (1 + the parameter it is tied to; 0: none), active + 1,
 *     prior;
 *                f64 value, lower, upper, standard error, prior a, b, c
 *     f64        x (n d), y (n q, column after column), known noise (n), mean values (n); u32
 *                groups (n)
 *     f64        the factor's lower triangle, column after column
 *     u32        CRC-32 of all before it
 *
 * The factor is kept so that a loaded process predicts at once and to the bit: what follows from it
 * (K^-1 r) is solved for again by the same code.  Sizes are checked against the length of the file
 * before memory is asked for. A factor in f64 that auto_promote made is left out: the process makes
 * it again.
 */
#include <limits.h>
#include <math.h>
#include <string.h>
#include <zlib.h>

#include "core/host_alone.h"
#include "gp/gp_create.h"
#include "gp/gp_process.h"

static const char MAGIC[8] = "FRG-GP\r\n";
enum { VERSION = 1, HEAD_BYTES = 20, CHUNK = 512, LONGEST_TEXT = 1 << 20 };
enum { HAS_NOISE = 1, HAS_GROUPS = 2, HAS_MEAN = 4, HAS_FACTOR = 8, HAS_SCALE = 16, HAS_ALL = 31 };

/* ---- writing --------------------------------------------------------------------------------- */

/** Where bytes go; the first error is kept.  Without a writer they are counted. */
typedef struct {
    frgi_writer *writer;
    frg_status status;
    uLong crc;
    uint64_t bytes;
} sink;

static void put_bytes(sink *s, const void *bytes, size_t count)
{
    s->bytes += count;
    if (!s->writer || s->status < 0) {
        return;
    }
    s->crc = crc32(s->crc, bytes, (uInt)count);
    s->status = frgi_writer_put(s->writer, bytes, count);
}

static void to_little(unsigned char *to, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        to[i] = (unsigned char)(v >> (8 * i));
    }
}

static void put_u32(sink *s, uint32_t v)
{
    unsigned char b[4];
    to_little(b, v, 4);
    put_bytes(s, b, sizeof b);
}

static void put_u64(sink *s, uint64_t v)
{
    unsigned char b[8];
    to_little(b, v, 8);
    put_bytes(s, b, sizeof b);
}

static void put_doubles(sink *s, const double *v, ptrdiff_t n)
{
    unsigned char b[CHUNK * 8];
    for (ptrdiff_t from = 0; from < n; from += CHUNK) {
        const ptrdiff_t count = n - from < CHUNK ? n - from : CHUNK;
        for (ptrdiff_t i = 0; i < count; i++) {
            uint64_t bits;
            memcpy(&bits, v + from + i, sizeof bits);
            to_little(b + 8 * i, bits, 8);
        }
        put_bytes(s, b, (size_t)count * 8);
    }
}

static void put_text(sink *s, const char *text)
{
    const size_t length = strlen(text);
    put_u32(s, (uint32_t)length);
    put_bytes(s, text, length);
}

static void put_parameter(sink *s, const frgi_gp_param *p, double value)
{
    const double numbers[] = {value,      p->lower,   p->upper,  p->std_error,
                              p->prior.a, p->prior.b, p->prior.c};
    put_u32(s, (uint32_t)p->transform);
    put_u32(s, (p->fixed ? 1 : 0) + 2 * (uint32_t)p->tie);
    put_u32(s, (uint32_t)(p->active + 1));
    put_u32(s, (uint32_t)p->prior.kind);
    put_doubles(s, numbers, sizeof numbers / sizeof *numbers);
}

static void put_factor(sink *s, const frg_gp *gp, double *column)
{
    for (ptrdiff_t j = 0; j < gp->data.n; j++) {
        if (s->writer) {
            gp->steps->factor.read(gp, j, j, gp->data.n, column);
        }
        put_doubles(s, column, gp->data.n - j);
    }
}

/** The file but for its CRC; `size` is the count of a first pass. */
static void put_model(sink *s, const frg_gp *gp, const char *kernel, uint32_t there, uint64_t size,
                      double *column)
{
    const uint32_t choices[] = {
        (uint32_t)gp->opts.precision,    (uint32_t)gp->opts.storage,  (uint32_t)gp->opts.jitter,
        (uint32_t)gp->mean.kind,         (uint32_t)gp->profile.count, gp->opts.reml != 0,
        gp->model.params.jacobian,       gp->opts.auto_promote != 0,  there,
        (uint32_t)gp->model.params.count};
    const double numbers[] = {gp->opts.accuracy, gp->state.jitter, 0};
    const ptrdiff_t sizes[] = {gp->data.n, gp->data.d, gp->data.q, gp->data.masked};
    put_bytes(s, MAGIC, sizeof MAGIC);
    put_u32(s, VERSION);
    put_u64(s, size);
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        put_u32(s, choices[i]);
    }
    put_doubles(s, numbers, 3);
    for (int i = 0; i < 4; i++) {
        put_u64(s, (uint64_t)sizes[i]);
    }
    put_text(s, kernel);
    for (ptrdiff_t k = 0; k < gp->data.d; k++) {
        put_text(s, gp->data.column_names[k]);
    }
    for (int i = 0; i < gp->model.params.count; i++) {
        put_parameter(s, &gp->model.params.p[i], gp->model.theta[i]);
    }
    put_doubles(s, gp->data.x, gp->data.n * gp->data.d);
    put_doubles(s, gp->data.y, gp->data.n * gp->data.q);
    put_doubles(s, gp->data.known_noise, gp->data.known_noise ? gp->data.n : 0);
    put_doubles(s, gp->data.given_mean, gp->data.given_mean ? gp->data.n : 0);
    for (ptrdiff_t i = 0; gp->data.groups && i < gp->data.n; i++) {
        put_u32(s, (uint32_t)gp->data.groups[i]);
    }
    if (there & HAS_FACTOR) {
        put_factor(s, gp, column);
    }
}

static frg_status write_model(frg_gp *gp, const char *path, const char *kernel, bool with_factor,
                              double *column)
{
    const uint32_t there = (gp->data.known_noise ? HAS_NOISE : 0u) |
                           (gp->data.groups ? HAS_GROUPS : 0u) |
                           (gp->data.given_mean ? HAS_MEAN : 0u) | (with_factor ? HAS_FACTOR : 0u) |
                           (gp->opts.profile_scale ? HAS_SCALE : 0u);
    sink count = {0}, s = {0};
    put_model(&count, gp, kernel, there, 0, column);
    TRY(frgi_writer_open(&s.writer, gp->ctx, path));
    s.crc = crc32(0, NULL, 0);
    put_model(&s, gp, kernel, there, count.bytes + 4, column);
    put_u32(&s, (uint32_t)s.crc);
    if (s.status < 0) {
        frgi_writer_abandon(&s.writer);
        return s.status;
    }
    return frgi_writer_commit(&s.writer);
}

frg_status frg_gp_save(frg_gp *gp, const char *path)
{
    if (!gp) {
        return FRG_BAD_ARG;
    }
    frg_context *ctx = gp->ctx;
    REQUIRE(ctx, path, "path is NULL");
    frgi_run_begins(ctx);
    if (gp->opts.user_kernel) {
        FAIL(ctx, E_UNSUPPORTED, "a process with a kernel of the user cannot be saved");
    }
    frg_status status = frgi_gp_need_factor(gp);
    if (status != FRG_OK && status != FRG_NOT_POSDEF && status != FRG_BROKE_DOWN) {
        return status;
    }
    const bool with_factor = status == FRG_OK && !gp->state.swapped;
    frgi_text kernel = {0};
    double *column = NULL;
    TRY_TO(done, frgi_gp_kernel_print(gp->model.kernel, ctx, &gp->model.params, &kernel));
    TRY_TO(done, NEW(ctx, &column, gp->data.n, "a column of the factor"));
    status = write_model(gp, path, kernel.text, with_factor, column);
done:
    DROP(ctx, &column);
    frgi_text_free(ctx, &kernel);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

/** Bytes not read yet; `short_of` is set once something asked for more than is there. */
typedef struct {
    const unsigned char *at;
    size_t left;
    bool short_of;
} source;

static const unsigned char *get_bytes(source *s, size_t count)
{
    if (count > s->left || s->short_of) {
        s->short_of = true;
        return NULL;
    }
    const unsigned char *const p = s->at;
    s->at += count;
    s->left -= count;
    return p;
}

static uint64_t from_little(const unsigned char *p, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; p && i < bytes; i++) {
        v |= (uint64_t)p[i] << (8 * i);
    }
    return v;
}

static uint32_t get_u32(source *s)
{
    return (uint32_t)from_little(get_bytes(s, 4), 4);
}

static uint64_t get_u64(source *s)
{
    return from_little(get_bytes(s, 8), 8);
}

static double double_at(const unsigned char *p)
{
    const uint64_t bits = from_little(p, 8);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static double get_double(source *s)
{
    return double_at(get_bytes(s, 8));
}

/** What a file says before any memory is asked for. */
typedef struct {
    frg_gp_opts opts;
    uint32_t mean, profiled, there, n_params;
    double jitter;
    int64_t n, d, q, masked;
} model;

/** NULL, or what is wrong with the frame: magic, version, length, checksum. */
static const char *check_frame(source *s, uint32_t *version)
{
    const unsigned char *const whole = s->at;
    const size_t count = s->left;
    const unsigned char *const magic = get_bytes(s, sizeof MAGIC);
    if (!magic || memcmp(magic, MAGIC, sizeof MAGIC) != 0) {
        return "it does not begin as a model of fourge does";
    }
    *version = get_u32(s);
    const uint64_t bytes = get_u64(s);
    if (s->short_of) {
        return "it ends in its header";
    }
    if (*version != VERSION) {
        return "it has another version";
    }
    if (bytes != count || count < HEAD_BYTES + 4) {
        return "it is shorter or longer than it says";
    }
    uLong crc = crc32(0, NULL, 0);
    for (size_t from = 0; from < count - 4; from += 1u << 30) { /* zlib counts in unsigned int */
        const size_t piece = count - 4 - from < 1u << 30 ? count - 4 - from : 1u << 30;
        crc = crc32(crc, whole + from, (uInt)piece);
    }
    if ((uint32_t)crc != (uint32_t)from_little(whole + count - 4, 4)) {
        return "its checksum does not hold";
    }
    s->left -= 4;
    return NULL;
}

static const char *read_head(source *s, model *m)
{
    frg_gp_defaults(&m->opts, sizeof m->opts);
    const uint32_t precision = get_u32(s), storage = get_u32(s), jitter = get_u32(s);
    m->mean = get_u32(s);
    m->profiled = get_u32(s);
    m->opts.reml = get_u32(s) != 0;
    m->opts.prior_jacobian = get_u32(s) != 0;
    m->opts.auto_promote = get_u32(s) != 0;
    m->there = get_u32(s);
    m->opts.profile_scale = (m->there & HAS_SCALE) != 0;
    m->n_params = get_u32(s);
    m->opts.accuracy = get_double(s);
    m->jitter = get_double(s);
    (void)get_double(s);
    m->n = (int64_t)get_u64(s);
    m->d = (int64_t)get_u64(s);
    m->q = (int64_t)get_u64(s);
    m->masked = (int64_t)get_u64(s);
    const bool known = precision <= FRG_GP_MIXED && storage <= FRG_GP_PACKED &&
                       jitter <= FRG_GP_JITTER_NONE && m->mean <= GP_MEAN_VALUES &&
                       m->there <= HAS_ALL && m->jitter >= 0 && isfinite(m->jitter);
    const int64_t most = (int64_t)(s->left / 8);
    const bool sizes = m->n >= 1 && m->n <= most && m->d >= 0 && m->d <= most && m->q >= 1 &&
                       m->q <= most / m->n && m->d <= most / m->n && m->masked >= 0 &&
                       m->n_params <= s->left / 72;
    m->opts.precision = (frg_gp_precision)precision;
    m->opts.storage = (frg_gp_storage)storage;
    m->opts.jitter = (frg_gp_jitter)jitter;
    return s->short_of || !known || !sizes ? "its header contradicts itself" : NULL;
}

static frg_status get_text(source *s, frg_context *ctx, char **out)
{
    const uint32_t length = get_u32(s);
    const unsigned char *const text = length < LONGEST_TEXT ? get_bytes(s, length) : NULL;
    *out = NULL;
    s->short_of = s->short_of || !text || memchr(text, '\0', length);
    return s->short_of ? FRG_OK : frgi_strdup(ctx, out, (const char *)text, length);
}

static frg_status get_doubles(source *s, frg_context *ctx, double **out, int64_t n)
{
    *out = NULL;
    const unsigned char *const from = get_bytes(s, frgi_mul((size_t)n, 8));
    if (!from) {
        return FRG_OK;
    }
    TRY(NEW(ctx, out, n, "data of a model"));
    for (int64_t i = 0; i < n; i++) {
        (*out)[i] = double_at(from + 8 * i);
    }
    return FRG_OK;
}

/** Everything that frg_gp_create borrows. */
typedef struct {
    char *kernel, **names;
    const unsigned char *parameters;
    double *x, *y, *noise, *mean;
    int32_t *groups;
} contents;

static void release(contents *p, frg_context *ctx, int64_t d)
{
    for (int64_t k = 0; p->names && k < d; k++) {
        DROP(ctx, &p->names[k]);
    }
    DROP(ctx, &p->names);
    DROP(ctx, &p->kernel);
    DROP(ctx, &p->x);
    DROP(ctx, &p->y);
    DROP(ctx, &p->noise);
    DROP(ctx, &p->mean);
    DROP(ctx, &p->groups);
}

static frg_status get_groups(source *s, frg_context *ctx, int32_t **out, int64_t n)
{
    const unsigned char *const from = get_bytes(s, frgi_mul((size_t)n, 4));
    if (!from) {
        return FRG_OK;
    }
    TRY(NEW(ctx, out, n, "noise groups of a model"));
    for (int64_t i = 0; i < n; i++) {
        const uint32_t g = (uint32_t)from_little(from + 4 * i, 4);
        s->short_of = s->short_of || g > INT32_MAX;
        (*out)[i] = (int32_t)(g & INT32_MAX);
    }
    return FRG_OK;
}

static frg_status read_contents(source *s, frg_context *ctx, const model *m, contents *p)
{
    enum { PARAMETER_BYTES = 4 * 4 + 7 * 8 };
    TRY(get_text(s, ctx, &p->kernel));
    TRY(NEW0(ctx, &p->names, m->d, "names of the columns"));
    for (int64_t k = 0; k < m->d && !s->short_of; k++) {
        TRY(get_text(s, ctx, &p->names[k]));
    }
    p->parameters = get_bytes(s, (size_t)m->n_params * PARAMETER_BYTES);
    TRY(get_doubles(s, ctx, &p->x, m->n * m->d));
    TRY(get_doubles(s, ctx, &p->y, m->n * m->q));
    if (m->there & HAS_NOISE) {
        TRY(get_doubles(s, ctx, &p->noise, m->n));
    }
    if (m->there & HAS_MEAN) {
        TRY(get_doubles(s, ctx, &p->mean, m->n));
    }
    if (m->there & HAS_GROUPS) {
        TRY(get_groups(s, ctx, &p->groups, m->n));
    }
    return FRG_OK;
}

static const char *mean_text(const model *m)
{
    static const char *const words[] = {[GP_MEAN_ZERO] = "zero",
                                        [GP_MEAN_CONST] = "const",
                                        [GP_MEAN_LINEAR] = "linear",
                                        [GP_MEAN_PROFILED] = "profiled",
                                        [GP_MEAN_VALUES] = "values"};
    return m->mean == GP_MEAN_PROFILED && m->profiled > 1 ? "profiled(linear)" : words[m->mean];
}

/** The parameters as they were: values, bounds, fixings, priors.  False: they are not those of this
 *  process. */
static bool take_parameters(frg_gp *gp, const unsigned char *bytes, uint32_t count)
{
    source s = {bytes, SIZE_MAX, false};
    if (count != (uint32_t)gp->model.params.count) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        frgi_gp_param *const p = &gp->model.params.p[i];
        const uint32_t transform = get_u32(&s), fixed = get_u32(&s), active = get_u32(&s);
        const uint32_t prior = get_u32(&s);
        const uint32_t tie = fixed / 2;
        if (transform > FRG_GP_IDENTITY || tie > count || tie == i + 1 || active > 2 ||
            prior > GP_PRIOR_LOG_UNIFORM) {
            return false;
        }
        p->transform = (frg_gp_transform)transform;
        p->fixed = fixed % 2 != 0;
        p->tie = (int)tie;
        p->active = (int)active - 1;
        gp->model.theta[i] = p->value = get_double(&s);
        p->lower = get_double(&s);
        p->upper = get_double(&s);
        p->std_error = get_double(&s);
        p->prior = (frgi_gp_prior){.kind = (frgi_gp_prior_kind)prior};
        p->prior.a = get_double(&s);
        p->prior.b = get_double(&s);
        p->prior.c = get_double(&s);
        if (!(p->lower <= p->upper)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < count; i++) { /* who is followed follows no one */
        if (gp->model.params.p[frgi_gp_params_leader(&gp->model.params, (int)i)].tie > 0) {
            return false;
        }
    }
    return true;
}

/** False: a pivot that no factor has. */
static bool read_factor(frg_gp *gp, source *s, double *column)
{
    for (ptrdiff_t j = 0; j < gp->data.n; j++) {
        const unsigned char *const from = get_bytes(s, (size_t)(gp->data.n - j) * 8);
        for (ptrdiff_t i = 0; from && i < gp->data.n - j; i++) {
            column[i] = double_at(from + 8 * i);
            if (!isfinite(column[i])) {
                return false;
            }
        }
        if (!from || !(column[0] > 0)) {
            return false;
        }
        gp->steps->factor.write(gp, j, j, gp->data.n, column);
    }
    return true;
}

static frg_status refuse(frg_context *ctx, const char *name, const char *why)
{
    frgi_at(ctx, "%s", name);
    FAIL(ctx, E_MODEL, "'%s' is no model that can be read: %s", name, why);
}

/** Parameters and factor into a process that has its data. */
static frg_status complete(frg_gp *gp, const model *m, const contents *p, source *s,
                           const char *name)
{
    frg_context *ctx = gp->ctx;
    gp->data.masked = (ptrdiff_t)m->masked;
    if (!take_parameters(gp, p->parameters, m->n_params)) {
        return refuse(ctx, name, "its parameters are not those of its expression");
    }
    if (frgi_gp_params_check(&gp->model.params, gp->model.theta) < 0) {
        return refuse(ctx, name, "a parameter is out of its bounds");
    }
    frgi_gp_forget(gp);
    if (m->there & HAS_FACTOR) {
        double *column;
        TRY(NEW(ctx, &column, gp->data.n, "a column of the factor"));
        const bool good = read_factor(gp, s, column);
        DROP(ctx, &column);
        if (!good) {
            return refuse(ctx, name, "its factor is damaged");
        }
        frgi_gp_set_jitter(gp, m->jitter);
        const frg_status status = frgi_gp_adopt_factor(gp);
        if (status != FRG_OK) {
            return status < 0 ? refuse(ctx, name, "its factor is not that of its data") : status;
        }
    }
    return s->short_of || s->left > 0 ? refuse(ctx, name, "its parts do not fill it") : FRG_OK;
}

static frg_status build(frg_gp **out, frg_context *ctx, model *m, source *s, const char *name)
{
    contents p = {0};
    frg_gp *gp = NULL;
    frg_status status;
    TRY_TO(done, read_contents(s, ctx, m, &p));
    if (s->short_of || !p.parameters) {
        status = refuse(ctx, name, "it ends before its data");
        goto done;
    }
    m->opts.column_names = (const char *const *)p.names;
    m->opts.mean = mean_text(m);
    m->opts.noise_variances = p.noise;
    m->opts.noise_groups = p.groups;
    m->opts.mean_values = p.mean;
    status = frg_gp_create(&gp, ctx, frg_matrix(p.x, FRG_F64, m->n, m->d, m->d),
                           frg_matrix_columns(p.y, FRG_F64, m->n, m->q, m->n), p.kernel, &m->opts);
    if (status < 0 && status != FRG_NO_MEMORY) {
        status = refuse(ctx, name, "its expression or data are not valid");
    }
    if (status == FRG_OK) {
        status = complete(gp, m, &p, s, name);
    }
    if (status == FRG_OK) {
        *out = gp;
        gp = NULL;
    }
    frg_gp_destroy(gp);
done:
    release(&p, ctx, m->d);
    return status;
}

frg_status frgi_gp_parse_model(frg_gp **out, frg_context *ctx, const char *bytes, size_t count,
                               const char *name)
{
    source s = {(const unsigned char *)bytes, count, false};
    model m = {0};
    uint32_t version = 0;
    *out = NULL;
    const char *why = check_frame(&s, &version);
    if (!why) {
        why = read_head(&s, &m);
    }
    if (why && version != VERSION && version != 0) {
        frgi_at(ctx, "%s", name);
        FAIL(ctx, E_MODEL, "'%s' is a model of version %u; this program reads version %d", name,
             (unsigned)version, VERSION);
    }
    return why ? refuse(ctx, name, why) : build(out, ctx, &m, &s, name);
}

frg_status frg_gp_load(frg_gp **out, frg_context *ctx, const char *path)
{
    if (!out || !ctx) {
        return FRG_BAD_ARG;
    }
    *out = NULL;
    REQUIRE(ctx, path, "path is NULL");
    TRY(frgi_host_alone(ctx, "a Gaussian process"));
    frgi_run_begins(ctx);
    char *bytes;
    size_t count;
    frg_status status = frgi_read_file(ctx, path, &bytes, &count);
    if (status == FRG_OK) {
        status = frgi_gp_parse_model(out, ctx, bytes, count, path);
    }
    DROP(ctx, &bytes);
    return status;
}
