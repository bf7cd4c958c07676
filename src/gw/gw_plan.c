/* gw_plan.c - consumers of a plan that make its rows one after another and never hold it. */
#include "gw/gw_plan.h"

#include <string.h>

#include "core/tree_sum.h"
#include "gw/gw_marginals.h"
#include "gw/gw_sinkhorn.h"

enum { ROW_CHUNKS = 64, SUM_CHUNKS = 8 };

void frgi_plan_set(frg_plan *p, const frgi_transport *t, frgi_marginal_error before,
                   frgi_marginal_error after)
{
    p->ctx = t->ctx;
    p->t = t;
    p->report = (frg_plan_report){.n = t->s.n,
                                  .m = t->s.m,
                                  .mass = after.mass,
                                  .source_error = after.source_l1,
                                  .target_error = after.target_l1,
                                  .source_error_max = after.source_most,
                                  .target_error_max = after.target_most,
                                  .source_before = before.source_l1,
                                  .target_before = before.target_l1,
                                  .rounded = t->rounding.done};
}

frg_plan_report frg_plan_get(const frg_plan *p)
{
    if (!p) {
        return (frg_plan_report){0};
    }
    return p->report;
}

typedef struct {
    const frg_plan *plan;
    int64_t first, k;
    frg_array out, v;
    int64_t *index;
    double *value;
    double threshold;
    int64_t *starts;
    int32_t *columns;
    const int32_t *labels;
    int64_t n_labels;
    int32_t *label_out;
    double *share;
    double *sums; /* by chunk */
} consumer;

/** Calls visit for the rows, as frgi_transport_rows does. */
static frg_status visit_rows(const frg_plan *p, int64_t first, int64_t last, int64_t chunks,
                             frgi_row_visitor visit, void *user)
{
    if (p->away) {
        return frgi_sinkhorn_device_visit(p->there, first, last, chunks, visit, user);
    }
    frgi_transport_rows(p->t, first, last, chunks, visit, user);
    return FRG_OK;
}

static void *element(const frg_array *a, int64_t i, int64_t j)
{
    return frgi_array_base(a) +
           (i * a->stride[0] + j * a->stride[1]) * (int64_t)frg_sizeof(a->dtype);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void copy_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    const consumer *const c = user;
    (void)chunk;
    for (int64_t j = 0; j < c->plan->report.m; j++) {
        void *const to = element(&c->out, i - c->first, j);
        if (c->out.dtype == FRG_F64) {
            *(double *)to = row[j];
        } else {
            *(float *)to = (float)row[j];
        }
    }
}

frg_status frg_plan_rows(const frg_plan *p, int64_t first, int64_t last, frg_array out)
{
    if (!p) {
        return FRG_BAD_ARG;
    }
    REQUIRE(p->ctx, first >= 0 && first <= last && last <= p->report.n,
            "rows %lld to %lld of a plan with %lld rows", (long long)first, (long long)last,
            (long long)p->report.n);
    const frgi_device *const dev = p->there ? frgi_device_of(p->ctx) : NULL;
    TRY(frgi_device_array_check(dev, p->ctx, &out, "out", 2, 1u << FRG_F64 | 1u << FRG_F32));
    if (out.shape[0] != last - first || out.shape[1] != p->report.m) {
        FAIL(p->ctx, E_SHAPE, "out is %lld x %lld, %lld x %lld is needed", (long long)out.shape[0],
             (long long)out.shape[1], (long long)(last - first), (long long)p->report.m);
    }
    if (out.device.kind != FRG_CPU) {
        return frgi_sinkhorn_device_rows(p->there, first, last, &out);
    }
    consumer c = {.plan = p, .first = first, .out = out};
    return visit_rows(p, first, last, ROW_CHUNKS, copy_row, &c);
}

/* ---- largest entries ------------------------------------------------------------------------- */

static void top_of_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    const consumer *const c = user;
    int64_t *const index = c->index + i * c->k;
    double *const value = c->value + i * c->k;
    int64_t have = 0;
    (void)chunk;
    for (int64_t j = 0; j < c->plan->report.m; j++) {
        if (have == c->k && !(row[j] > value[c->k - 1])) {
            continue;
        }
        int64_t at = have < c->k ? have++ : c->k - 1;
        for (; at > 0 && row[j] > value[at - 1]; at--) {
            value[at] = value[at - 1];
            index[at] = index[at - 1];
        }
        value[at] = row[j];
        index[at] = j;
    }
}

frg_status frg_plan_top(const frg_plan *p, int64_t k, int64_t *index, double *value)
{
    if (!p) {
        return FRG_BAD_ARG;
    }
    REQUIRE(p->ctx, index && value, "index and value must not be NULL");
    REQUIRE(p->ctx, k >= 1 && k <= p->report.m, "k is %lld, a row has %lld entries", (long long)k,
            (long long)p->report.m);
    consumer c = {.plan = p, .k = k, .index = index, .value = value};
    return visit_rows(p, 0, p->report.n, ROW_CHUNKS, top_of_row, &c);
}

static void argmax_of_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    const consumer *const c = user;
    int64_t best = -1;
    double most = 0;
    (void)chunk;
    for (int64_t j = 0; j < c->plan->report.m; j++) {
        if (row[j] > most) {
            most = row[j];
            best = j;
        }
    }
    c->index[i] = best;
}

frg_status frg_plan_argmax(const frg_plan *p, int64_t *index)
{
    if (!p) {
        return FRG_BAD_ARG;
    }
    REQUIRE(p->ctx, index, "index must not be NULL");
    consumer c = {.plan = p, .index = index};
    return visit_rows(p, 0, p->report.n, ROW_CHUNKS, argmax_of_row, &c);
}

/* ---- sparse ---------------------------------------------------------------------------------- */

static void count_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    const consumer *const c = user;
    int64_t count = 0;
    (void)chunk;
    for (int64_t j = 0; j < c->plan->report.m; j++) {
        count += row[j] >= c->threshold;
    }
    c->starts[i + 1] = count;
}

static void fill_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    const consumer *const c = user;
    int64_t at = c->starts[i];
    (void)chunk;
    for (int64_t j = 0; j < c->plan->report.m; j++) {
        if (row[j] >= c->threshold) {
            c->columns[at] = (int32_t)j;
            c->value[at++] = row[j];
        }
    }
}

frg_status frg_plan_sparse(const frg_plan *p, double threshold, int64_t *starts, int32_t *columns,
                           double *values)
{
    if (!p) {
        return FRG_BAD_ARG;
    }
    REQUIRE(p->ctx, starts && !columns == !values,
            "starts is needed, and columns and values both or neither");
    consumer c = {
        .plan = p, .threshold = threshold, .starts = starts, .columns = columns, .value = values};
    if (columns) {
        return visit_rows(p, 0, p->report.n, ROW_CHUNKS, fill_row, &c);
    }
    TRY(visit_rows(p, 0, p->report.n, ROW_CHUNKS, count_row, &c));
    starts[0] = 0;
    for (int64_t i = 0; i < p->report.n; i++) {
        starts[i + 1] += starts[i];
    }
    return FRG_OK;
}

/* ---- products -------------------------------------------------------------------------------- */

static void apply_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    const consumer *const c = user;
    (void)chunk;
    for (int64_t q = 0; q < c->v.shape[1]; q++) {
        double sum = 0;
        for (int64_t j = 0; j < c->plan->report.m; j++) {
            sum += row[j] * *(const double *)element(&c->v, j, q);
        }
        *(double *)element(&c->out, i, q) = sum;
    }
}

static void apply_transposed(void *user, int64_t i, const double *row, int64_t chunk)
{
    const consumer *const c = user;
    const int64_t m = c->plan->report.m, width = c->v.shape[1];
    for (int64_t q = 0; q < width; q++) {
        double *const sums = c->sums + (chunk * width + q) * m;
        const double v = *(const double *)element(&c->v, i, q);
        for (int64_t j = 0; j < m; j++) {
            sums[j] += row[j] * v;
        }
    }
}

frg_status frg_plan_apply(const frg_plan *p, frg_array v, int transposed, frg_array out)
{
    if (!p) {
        return FRG_BAD_ARG;
    }
    const int64_t from = transposed ? p->report.n : p->report.m;
    const int64_t to = transposed ? p->report.m : p->report.n;
    TRY(frgi_array_check(p->ctx, &v, "v", 2, 1u << FRG_F64));
    TRY(frgi_array_check(p->ctx, &out, "out", 2, 1u << FRG_F64));
    if (v.shape[0] != from || out.shape[0] != to || out.shape[1] != v.shape[1]) {
        FAIL(p->ctx, E_SHAPE, "v is %lld x %lld and out %lld x %lld, %lld and %lld rows are needed",
             (long long)v.shape[0], (long long)v.shape[1], (long long)out.shape[0],
             (long long)out.shape[1], (long long)from, (long long)to);
    }
    consumer c = {.plan = p, .v = v, .out = out};
    if (!transposed) {
        return visit_rows(p, 0, p->report.n, ROW_CHUNKS, apply_row, &c);
    }
    const int64_t each = v.shape[1] * p->report.m;
    TRY(NEW0(p->ctx, &c.sums, frgi_mul((size_t)each, SUM_CHUNKS), "a product with a plan"));
    const frg_status status = visit_rows(p, 0, p->report.n, SUM_CHUNKS, apply_transposed, &c);
    frgi_tree_rows(c.sums, SUM_CHUNKS, each, each, c.sums);
    for (int64_t q = 0; q < v.shape[1] && status >= 0; q++) {
        for (int64_t j = 0; j < p->report.m; j++) {
            *(double *)element(&out, j, q) = c.sums[q * p->report.m + j];
        }
    }
    DROP(p->ctx, &c.sums);
    return status;
}

/* ---- labels ---------------------------------------------------------------------------------- */

static void label_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    const consumer *const c = user;
    double *const sums = c->sums + chunk * c->n_labels, total = 0;
    int32_t best = -1;
    memset(sums, 0, (size_t)c->n_labels * sizeof *sums);
    for (int64_t j = 0; j < c->plan->report.m; j++) {
        if (c->labels[j] >= 0) {
            sums[c->labels[j]] += row[j];
        }
    }
    for (int64_t l = 0; l < c->n_labels; l++) {
        total += sums[l];
        best = sums[l] > (best < 0 ? 0 : sums[best]) ? (int32_t)l : best;
    }
    c->label_out[i] = best;
    if (c->share) {
        c->share[i] = best < 0 ? 0 : sums[best] / total;
    }
}

frg_status frg_plan_labels(const frg_plan *p, const int32_t *labels, int64_t n_labels, int32_t *out,
                           double *share)
{
    if (!p) {
        return FRG_BAD_ARG;
    }
    REQUIRE(p->ctx, labels && out && n_labels >= 1, "labels, out and n_labels >= 1 are needed");
    for (int64_t j = 0; j < p->report.m; j++) {
        REQUIRE(p->ctx, labels[j] < n_labels, "labels[%lld] is %d, labels are below %lld",
                (long long)j, (int)labels[j], (long long)n_labels);
    }
    consumer c = {
        .plan = p, .labels = labels, .n_labels = n_labels, .label_out = out, .share = share};
    TRY(NEW(p->ctx, &c.sums, frgi_mul((size_t)n_labels, ROW_CHUNKS), "labels"));
    const frg_status status = visit_rows(p, 0, p->report.n, ROW_CHUNKS, label_row, &c);
    DROP(p->ctx, &c.sums);
    return status;
}
