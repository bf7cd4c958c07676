/* gp_spd.c - shape, and for now plain loops over single entries behind the interface of gp_spd.h. */
#include "gp/gp_spd.h"

#include <math.h>
#include <string.h>

enum { LINE = 64, ONE_TILE = 320, TILE_ROWS = 288 };

static ptrdiff_t up(ptrdiff_t n, ptrdiff_t to)
{
    return (n + to - 1) / to * to;
}

frgi_spd_shape frgi_spd_plan(ptrdiff_t n, frg_dtype dtype)
{
    const ptrdiff_t size = (ptrdiff_t)frg_sizeof(dtype), group = LINE / size;
    frgi_spd_shape s = {.dtype = dtype, .n = n, .padded = up(n > 0 ? n : 1, group)};
    s.block = n <= 200 ? 16 : n <= 1200 ? 48 : 96;
    s.tile = s.padded <= ONE_TILE ? s.padded : TILE_ROWS;
    s.tiles = (s.padded + s.tile - 1) / s.tile;
    s.ld = s.tile * size % 512 ? s.tile : s.tile + group;
    return s;
}

ptrdiff_t frgi_spd_elements(const frgi_spd_shape *s)
{
    return s->tiles * (s->tiles + 1) / 2 * s->ld * s->tile;
}

size_t frgi_spd_work_bytes(const frgi_spd_shape *s, int threads)
{
    const size_t rows = (size_t)s->padded + (size_t)(threads > 0 ? threads : 1) * 8;
    return frgi_mul(frgi_mul(rows, (size_t)s->block + 16), 2 * frg_sizeof(s->dtype));
}

static ptrdiff_t at(const frgi_spd_shape *s, ptrdiff_t i, ptrdiff_t j)
{
    const ptrdiff_t t = s->tile;
    return frgi_spd_tile(s, i / t, j / t) + i % t + j % t * s->ld;
}

static double get(const frgi_spd_shape *s, const void *a, ptrdiff_t i, ptrdiff_t j)
{
    const ptrdiff_t k = i >= j ? at(s, i, j) : at(s, j, i);
    return s->dtype == FRG_F64 ? ((const double *)a)[k] : (double)((const float *)a)[k];
}

static void set(const frgi_spd_shape *s, void *a, ptrdiff_t i, ptrdiff_t j, double v)
{
    const ptrdiff_t k = at(s, i, j);
    if (s->dtype == FRG_F64)
        ((double *)a)[k] = v;
    else
        ((float *)a)[k] = (float)v;
}

frg_status frgi_spd_factor(frg_context *ctx, const frgi_spd_shape *s, void *a, void *work, double *logdet,
                           frgi_spd_pivots *pivots)
{
    (void)work;
    TRY(frgi_heartbeat(ctx, &(frg_progress){.solver = "gp", .phase = "factor"}));
    *pivots = (frgi_spd_pivots){.pivot = -1, .smallest = HUGE_VAL};
    double sum = 0;
    for (ptrdiff_t j = 0; j < s->n; j++) {
        double p = get(s, a, j, j);
        for (ptrdiff_t k = 0; k < j; k++)
            p -= get(s, a, j, k) * get(s, a, j, k);
        if (!(p > 0) || !isfinite(p)) {
            pivots->pivot = j;
            pivots->value = p;
            return FRG_NOT_POSDEF;
        }
        const double l = sqrt(p);
        set(s, a, j, j, l);
        pivots->smallest = fmin(pivots->smallest, l);
        pivots->largest = fmax(pivots->largest, l);
        sum += 2 * log(l);
        for (ptrdiff_t i = j + 1; i < s->n; i++) {
            double v = get(s, a, i, j);
            for (ptrdiff_t k = 0; k < j; k++)
                v -= get(s, a, i, k) * get(s, a, j, k);
            set(s, a, i, j, v / l);
        }
    }
    *logdet = sum;
    return FRG_OK;
}

frg_status frgi_spd_inverse(frg_context *ctx, const frgi_spd_shape *s, void *l, void *work)
{
    (void)work;
    TRY(frgi_heartbeat(ctx, &(frg_progress){.solver = "gp", .phase = "inverse"}));
    for (ptrdiff_t j = 0; j < s->n; j++) {
        const double d = 1 / get(s, l, j, j);
        for (ptrdiff_t i = j + 1; i < s->n; i++) {
            double v = -get(s, l, i, j) * d;
            for (ptrdiff_t k = j + 1; k < i; k++)
                v -= get(s, l, i, k) * get(s, l, k, j);
            set(s, l, i, j, v / get(s, l, i, i));
        }
    }
    for (ptrdiff_t j = 0; j < s->n; j++)
        set(s, l, j, j, 1 / get(s, l, j, j));
    for (ptrdiff_t j = 0; j < s->n; j++) {
        for (ptrdiff_t i = j; i < s->n; i++) {
            double v = 0;
            for (ptrdiff_t k = i; k < s->n; k++)
                v += get(s, l, k, i) * get(s, l, k, j);
            set(s, l, i, j, v);
        }
    }
    return FRG_OK;
}

static double entry(frg_dtype t, const void *b, ptrdiff_t i)
{
    return t == FRG_F64 ? ((const double *)b)[i] : (double)((const float *)b)[i];
}

static void put(frg_dtype t, void *b, ptrdiff_t i, double v)
{
    if (t == FRG_F64)
        ((double *)b)[i] = v;
    else
        ((float *)b)[i] = (float)v;
}

frg_status frgi_spd_forward(frg_context *ctx, const frgi_spd_shape *s, const void *l, ptrdiff_t q, void *b,
                            ptrdiff_t ldb, void *work)
{
    (void)ctx, (void)work;
    for (ptrdiff_t c = 0; c < q; c++) {
        for (ptrdiff_t i = 0; i < s->n; i++) {
            double v = entry(s->dtype, b, i + c * ldb);
            for (ptrdiff_t k = 0; k < i; k++)
                v -= get(s, l, i, k) * entry(s->dtype, b, k + c * ldb);
            put(s->dtype, b, i + c * ldb, v / get(s, l, i, i));
        }
    }
    return FRG_OK;
}

frg_status frgi_spd_backward(frg_context *ctx, const frgi_spd_shape *s, const void *l, ptrdiff_t q, void *b,
                             ptrdiff_t ldb, void *work)
{
    (void)ctx, (void)work;
    for (ptrdiff_t c = 0; c < q; c++) {
        for (ptrdiff_t i = s->n; i-- > 0;) {
            double v = entry(s->dtype, b, i + c * ldb);
            for (ptrdiff_t k = i + 1; k < s->n; k++)
                v -= get(s, l, k, i) * entry(s->dtype, b, k + c * ldb);
            put(s->dtype, b, i + c * ldb, v / get(s, l, i, i));
        }
    }
    return FRG_OK;
}

frg_status frgi_spd_times(frg_context *ctx, const frgi_spd_shape *s, const void *a, ptrdiff_t q, const void *x,
                          ptrdiff_t ldx, void *y, ptrdiff_t ldy, void *work)
{
    (void)ctx, (void)work;
    for (ptrdiff_t c = 0; c < q; c++) {
        for (ptrdiff_t i = 0; i < s->n; i++) {
            double v = 0;
            for (ptrdiff_t k = 0; k < s->n; k++)
                v += get(s, a, i, k) * entry(s->dtype, x, k + c * ldx);
            put(s->dtype, y, i + c * ldy, v);
        }
    }
    return FRG_OK;
}

frg_status frgi_spd_congruence(frg_context *ctx, const frgi_spd_shape *s, const void *a, const double *w, void *b,
                               void *work)
{
    (void)ctx, (void)work;
    for (ptrdiff_t j = 0; j < s->n; j++) {
        for (ptrdiff_t i = j; i < s->n; i++) {
            double v = 0;
            for (ptrdiff_t k = 0; k < s->n; k++)
                v += get(s, a, i, k) * w[k] * get(s, a, k, j);
            set(s, b, i, j, v);
        }
    }
    return FRG_OK;
}

void frgi_spd_diagonal(const frgi_spd_shape *s, const void *a, double *d)
{
    for (ptrdiff_t i = 0; i < s->n; i++)
        d[i] = get(s, a, i, i);
}

void frgi_spd_set_diagonal(const frgi_spd_shape *s, void *a, const double *d)
{
    for (ptrdiff_t i = 0; i < s->n; i++)
        set(s, a, i, i, d[i]);
}

void frgi_spd_convert(frg_context *ctx, const frgi_spd_shape *from, const void *a, const frgi_spd_shape *to,
                      void *b)
{
    (void)ctx;
    for (ptrdiff_t j = 0; j < from->n; j++)
        for (ptrdiff_t i = j; i < from->n; i++)
            set(to, b, i, j, get(from, a, i, j));
}

int frgi_spd_lanes(const frg_context *ctx, frg_dtype dtype)
{
    const int bytes = frgi_context_isa(ctx) == ISA_V4 ? 64 : frgi_context_isa(ctx) == ISA_V3 ? 32 : 16;
    return bytes / (int)frg_sizeof(dtype);
}
