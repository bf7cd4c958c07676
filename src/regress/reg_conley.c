/* reg_conley.c - spatial correlation within a distance (Conley 1999).
 *
 *     M = sum_ij K(d_ij) s_i s_j',   d_ij the great circle of a sphere of 6371 km (haversine)
 *     uniform   K = 1 where d <= cutoff          bartlett   K = max(0, 1 - d / cutoff)
 *
 * Points are sorted by bands of latitude and by longitude in them.  Those within the cutoff of a
 * point lie, band by band, in a range of longitudes,
 *
 *     hav(dlon) <= (hav(cutoff) - hav(dlat)) / (cos(lat) cos(lat')),    hav(t) = sin^2(t / 2),
 *
 * with the least dlat and cos(lat') of the band; what is beyond the cutoff there has weight 0.
 * Each pair is looked at once, from the point that is sorted first: T_i = sum_{j > i} K_ij s_j, and
 * M = S'S + S'T + T'S.  O(n log n + pairs), never n^2; 2 k + 4 columns of n.  M need not be
 * positive.
 */
#include "regress/reg_conley.h"

#include <math.h>
#include <string.h>

#include "formula/program.h"
#include "regress/reg_vcov.h"

enum { BANDS = 8 /* to a cutoff */, CHUNK = 256 /* points of a task */ };
static const double RADIUS = 6371, DEGREE = 0.017453292519943295, SLACK = 1e-9;
static const double SHORT = 0.04; /* squared chord up to which the series of the arc holds */

#pragma GCC visibility push(hidden)
DECLARE_LEVELS(frgi_conley_ops, frgi_conley_ops);
#pragma GCC visibility pop

typedef struct {
    double lon, lat;
    int64_t band, row;
} place;

typedef struct {
    frgi_vcov_work *w;
    const frgi_conley_ops *ops;
    int64_t n, bands;
    double first, height; /* degrees: the first band's edge, of a band */
    double angle, c2;     /* radians; chord^2 of the cutoff */
    bool bartlett;
    place *places;  /* n, sorted */
    int64_t *start; /* bands + 1 */
    double *lon;    /* n */
    double *sphere; /* 3 n */
    frgi_sphere at;
    double *s, *t; /* k x n: scores in the order, and of the neighbours behind */
} conley;

/* ---- places ---------------------------------------------------------------------------------- */

static frg_status read_places(conley *c)
{
    const frg_fe *const f = c->w->f;
    const int64_t *const rows = f->data.frame.rows;
    for (int v = 0; v < 2; v++) {
        const frgi_key *const key = &c->w->v->request.keys[v];
        const frg_column *const column = key->columns[0];
        TRY(frgi_vcov_check_complete(f, key));
        if (column->kind == FRG_CATEGORY || column->kind == FRG_BOOL) {
            FAIL(f->ctx, E_TYPE, "vcov '%s': the %s '%s' is not a column of numbers",
                 c->w->v->request.spec, v ? "longitude" : "latitude", column->name);
        }
        for (int64_t i = 0; i < c->n; i++) {
            double value;
            frgi_column_block(column, rows, i, 1, &value);
            if (v ? !(value >= -180 && value <= 360) : !(value >= -90 && value <= 90)) {
                const long long row = (rows ? rows[i] : i) + 1;
                frgi_at(f->ctx, "%s:%lld", column->name, row);
                FAIL(f->ctx, E_PLACE, "the %s '%s' is %g in row %lld", v ? "longitude" : "latitude",
                     column->name, value, row);
            }
            if (v) {
                c->places[i].lon = value >= 180 ? value - 360 : value;
            } else {
                c->places[i].lat = value;
            }
            c->places[i].row = i;
        }
    }
    return FRG_OK;
}

static int by_band(const void *a, const void *b, const void *user)
{
    const place *const p = a, *const q = b;
    (void)user;
    return p->band != q->band ? (p->band > q->band) - (p->band < q->band)
           : p->lon != q->lon ? (p->lon > q->lon) - (p->lon < q->lon)
                              : (p->row > q->row) - (p->row < q->row);
}

/** Bands that are no more than the points, sorted, with the point on the sphere. */
static frg_status sort_places(conley *c)
{
    double low = 90, high = -90;
    for (int64_t i = 0; i < c->n; i++) {
        low = fmin(low, c->places[i].lat);
        high = fmax(high, c->places[i].lat);
    }
    c->first = low;
    c->height = fmax(c->angle / DEGREE / BANDS, (high - low) / (double)c->n);
    c->bands = (int64_t)((high - low) / c->height) + 1;
    for (int64_t i = 0; i < c->n; i++) {
        c->places[i].band = (int64_t)((c->places[i].lat - low) / c->height);
    }
    frgi_sort(c->places, c->n, sizeof *c->places, by_band, NULL);
    TRY(NEW0(c->w->f->ctx, &c->start, c->bands + 1, "bands"));
    double *const x = c->sphere, *const y = x + c->n, *const z = y + c->n;
    for (int64_t i = 0; i < c->n; i++) {
        const place *const p = &c->places[i];
        c->start[p->band + 1]++;
        c->lon[i] = p->lon;
        x[i] = cos(p->lat * DEGREE) * cos(p->lon * DEGREE);
        y[i] = cos(p->lat * DEGREE) * sin(p->lon * DEGREE);
        z[i] = sin(p->lat * DEGREE);
    }
    for (int64_t b = 0; b < c->bands; b++) {
        c->start[b + 1] += c->start[b];
    }
    c->at = (frgi_sphere){.x = x, .y = y, .z = z};
    return FRG_OK;
}

/* ---- neighbours ------------------------------------------------------------------------------ */

/** The kernel where the cutoff is a large part of the globe. */
static void long_bartlett(const conley *c, int64_t i, int64_t begin, int64_t n, double *w)
{
    for (int64_t r = 0; r < n; r++) {
        const double a = c->at.x[begin + r] - c->at.x[i], b = c->at.y[begin + r] - c->at.y[i],
                     d = c->at.z[begin + r] - c->at.z[i];
        const double half = fmin(0.5 * sqrt(a * a + b * b + d * d), 1);
        w[r] = fmax(0, 1 - 2 * asin(half) / c->angle);
    }
}

/** t_i += sum K_ij s_j over the points begin .. end-1. */
static void add_range(const conley *c, int64_t i, int64_t begin, int64_t end)
{
    double w[FRGI_CONLEY_BLOCK];
    const double p[3] = {c->at.x[i], c->at.y[i], c->at.z[i]};
    for (int64_t at = begin; at < end; at += FRGI_CONLEY_BLOCK) {
        const int64_t n = end - at < FRGI_CONLEY_BLOCK ? end - at : FRGI_CONLEY_BLOCK;
        if (!c->bartlett) {
            c->ops->uniform(p, &c->at, at, n, c->c2, w);
        } else if (c->c2 <= SHORT) {
            c->ops->bartlett(p, &c->at, at, n, c->c2, c->angle, w);
        } else {
            long_bartlett(c, i, at, n, w);
        }
        for (int j = 0; j < c->w->f->fit.k; j++) {
            c->t[j * c->n + i] += c->ops->dot(w, c->s + j * c->n + at, n);
        }
    }
}

static double hav(double degrees)
{
    const double s = sin(0.5 * DEGREE * degrees);
    return s * s;
}

/** How far in longitude the points of a band may be, in degrees; negative: the band is beyond. */
static double reach(const conley *c, double lat, int64_t band)
{
    const double low = c->first + (double)band * c->height, high = low + c->height;
    const double gap = fmax(0, fmax(low - lat, lat - high));
    const double room = hav(c->angle / DEGREE) - hav(gap);
    const double width =
        cos(lat * DEGREE) * fmin(cos(fmax(low, -90) * DEGREE), cos(fmin(high, 90) * DEGREE));
    if (room < 0) {
        return gap * DEGREE > c->angle ? -1 : SLACK;
    }
    return width <= room ? 180 : 2 * asin(sqrt(room / width)) / DEGREE + SLACK;
}

/** The first of lon[begin .. end) that is not below v; `hint` is near. */
static int64_t first_from(const double *lon, int64_t begin, int64_t end, double v, int64_t hint)
{
    int64_t at = hint < begin ? begin : hint > end ? end : hint;
    while (at > begin && lon[at - 1] >= v) {
        at--;
    }
    while (at < end && lon[at] < v) {
        at++;
    }
    return at;
}

/** The points of a band behind i that may be near: one range of longitudes, or two at the date
 *  line. */
static void add_band(const conley *c, int64_t i, int64_t band, int64_t hint[2])
{
    const int64_t begin = band == c->places[i].band ? i + 1 : c->start[band],
                  end = c->start[band + 1];
    const double lon = c->lon[i], wide = reach(c, c->places[i].lat, band);
    if (wide < 0 || begin >= end) {
        return;
    }
    if (wide >= 180) {
        add_range(c, i, begin, end);
        return;
    }
    hint[0] = first_from(c->lon, begin, end, lon - wide, hint[0]);
    hint[1] = first_from(c->lon, begin, end, nextafter(lon + wide, INFINITY), hint[1]);
    add_range(c, i, hint[0], hint[1]);
    if (lon - wide < -180) {
        const int64_t from = first_from(c->lon, begin, end, lon - wide + 360, end);
        add_range(c, i, from > hint[1] ? from : hint[1], end);
    }
    if (lon + wide > 180) {
        const int64_t to = first_from(c->lon, begin, end, lon + wide - 360, begin);
        add_range(c, i, begin, to < hint[0] ? to : hint[0]);
    }
}

static void add_chunk(const conley *c, int64_t begin, int64_t end)
{
    int64_t hints[BANDS + 2][2], band = -1;
    for (int64_t i = begin; i < end; i++) {
        for (int b = 0; b <= BANDS + 1; b++) {
            if (band != c->places[i].band) {
                hints[b][0] = hints[b][1] = 0;
            }
            if (c->places[i].band + b < c->bands) {
                add_band(c, i, c->places[i].band + b, hints[b]);
            }
        }
        band = c->places[i].band;
    }
}

/** T, each point by one thread. */
static void add_neighbours(conley *c)
{
    const frg_context *const ctx = c->w->f->ctx;
    const int64_t chunks = (c->n + CHUNK - 1) / CHUNK;
#pragma omp parallel for schedule(dynamic, 1) num_threads(frgi_pass_threads(ctx, c->n * 16))
    for (int64_t k = 0; k < chunks; k++) {
        if (frgi_stopped(ctx) == FRG_OK) {
            add_chunk(c, k * CHUNK, (k + 1) * CHUNK < c->n ? (k + 1) * CHUNK : c->n);
        }
    }
    c->w->ended = frgi_stopped(ctx) != FRG_OK ? frgi_stopped(ctx) : c->w->ended;
}

/* ---- the meat -------------------------------------------------------------------------------- */

static frg_status prepare(conley *c)
{
    frg_context *const ctx = c->w->f->ctx;
    const int64_t k = c->w->f->fit.k;
    TRY(frgi_vcov_scores(c->w));
    TRY(frgi_vcov_gross(c->w));
    TRY(NEW(ctx, &c->places, c->n, "places"));
    TRY(NEW(ctx, &c->lon, c->n, "places"));
    TRY(NEW(ctx, &c->sphere, 3 * c->n, "places"));
    TRY(NEW(ctx, &c->s, k * c->n, "scores"));
    TRY(NEW0(ctx, &c->t, k * c->n, "scores of neighbours"));
    TRY(read_places(c));
    TRY(sort_places(c));
#pragma omp parallel for schedule(static) num_threads(frgi_pass_threads(ctx, c->n))
    for (int64_t i = 0; i < c->n; i++) {
        const int64_t row = c->places[i].row;
        for (int64_t j = 0; j < k; j++) {
            c->s[j * c->n + i] = c->w->scores[row] * c->w->x[j][row];
        }
    }
    return FRG_OK;
}

static frg_status add_meat(const conley *c)
{
    const int k = c->w->f->fit.k;
    const double scale = c->w->ended > 0 ? (double)NAN : 1;
    const double **columns;
    TRY(NEW(c->w->f->ctx, &columns, 2 * (int64_t)k, "a covariance"));
    for (int j = 0; j < k; j++) {
        columns[j] = c->s + j * c->n;
        columns[k + j] = c->t + j * c->n;
    }
    frg_status status = frgi_vcov_add_gram(c->w, columns, NULL, c->n, scale);
    status = status < 0 ? status : frgi_vcov_add_cross(c->w, columns, columns + k, c->n, scale);
    DROP(c->w->f->ctx, &columns);
    return status;
}

frg_status frgi_vcov_conley_meat(frgi_vcov_work *w)
{
    static const frgi_conley_ops *const table[ISA_COUNT] = EACH_LEVEL(&frgi_conley_ops);
    frg_context *const ctx = w->f->ctx;
    conley c = {.w = w, .n = w->f->data.frame.n, .ops = table[frgi_context_isa(ctx)]};
    frg_status status;
    w->v->v.cutoff = w->v->request.choice[VCOV_CUTOFF];
    w->v->v.kernel = frgi_vcov_word(&w->v->request, VCOV_KERNEL);
    c.bartlett = strcmp(w->v->v.kernel, "bartlett") == 0;
    c.angle = w->v->v.cutoff / RADIUS;
    c.c2 = 4 * hav(c.angle / DEGREE);
    TRY_TO(done, prepare(&c));
    add_neighbours(&c);
    status = add_meat(&c);
done:
    DROP(ctx, &c.places);
    DROP(ctx, &c.start);
    DROP(ctx, &c.lon);
    DROP(ctx, &c.sphere);
    DROP(ctx, &c.s);
    DROP(ctx, &c.t);
    return status;
}
