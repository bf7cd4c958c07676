/* gw_vertex_device.c - the costs K of a descent on a device: its side of vertex_rows and
 * vertex_product in kernels/gw/gw_steps.cl.h.
 *
 * Distances lie there, in the type of the descent.  A list goes over, rows of distances are
 * gathered and multiplied there, and the n x m sums come back in one wait.  Starts, linear
 * problems, line searches and energies of lists are the host's (gw_vertex_run.c, gw_vertex.c), and
 * one descent at a time asks the device.
 */
#include <math.h>

#include "gw/gw_stage_device.h"
#include "gw/gw_vertex.h"

enum { AT_ONCE = 256 }; /* rows that are multiplied in one launch */

struct frgi_descent_device {
    frgi_device *dev;
    int group;
    const frgi_program *program;
    size_t real; /* bytes */
    int64_t batch;
    frgi_device_arena memory;
    frgi_buffer x, y;        /* distances, ld apart */
    frgi_buffer left, right; /* batch rows of each */
    frgi_buffer costs;       /* x.ld x y.ld */
    frgi_buffer of_x, of_y, mass, starts;
    struct { /* what goes over and comes back, the queue's until a wait */
        int32_t *of_x, *of_y;
        double *mass;
        int64_t *starts;
        char *costs; /* n rows of K */
    } host;
};

static void layout(const frgi_spaces *s, int64_t most, frgi_descent_device *t)
{
    frgi_device_arena *const a = &t->memory;
    const size_t x = (size_t)s->x.ld * t->real, y = (size_t)s->y.ld * t->real,
                 batch = (size_t)t->batch, entries = (size_t)most;
    t->x = frgi_device_take(a, frgi_mul((size_t)s->n, x));
    t->y = frgi_device_take(a, frgi_mul((size_t)s->m, y));
    t->left = frgi_device_take(a, frgi_mul(batch, x));
    t->right = frgi_device_take(a, frgi_mul(batch, y));
    t->costs = frgi_device_take(a, frgi_mul((size_t)s->x.ld, y));
    t->of_x = frgi_device_take(a, entries * sizeof(int32_t));
    t->of_y = frgi_device_take(a, entries * sizeof(int32_t));
    t->mass = frgi_device_take(a, entries * sizeof(double));
    t->starts = frgi_device_take(a, (entries + 1) * sizeof(int64_t));
}

static frg_status open_host(frgi_descent_device *t, const frgi_spaces *s, int64_t most)
{
    const char *const what = "costs from a device";
    TRY(NEW(s->ctx, &t->host.of_x, most, what));
    TRY(NEW(s->ctx, &t->host.of_y, most, what));
    TRY(NEW(s->ctx, &t->host.mass, most, what));
    TRY(NEW(s->ctx, &t->host.starts, most + 1, what));
    return NEW(s->ctx, &t->host.costs, frgi_mul((size_t)(s->n * s->y.ld), t->real), what);
}

frg_status frgi_descent_device_open(frgi_descent *d)
{
    const frgi_spaces *const s = d->s;
    const int64_t fewer = s->m < s->n ? s->m : s->n;
    frgi_descent_device *t;
    TRY(NEW0(s->ctx, &t, 1, "a descent on a device"));
    d->there = t;
    t->dev = s->dev;
    t->group = frgi_stage_group(s->dev, s->group);
    t->real = frgi_costs_size(s->single);
    t->batch = fewer < AT_ONCE ? fewer : AT_ONCE;
    TRY(frgi_device_load(t->dev, &frgi_kernels_gw, s->single ? FRGI_MIXED : FRGI_F64, &t->program));
    TRY(open_host(t, s, d->most));
    t->memory.align = frgi_device_is(t->dev)->align;
    layout(s, d->most, t);
    TRY(frgi_device_arena_open(&t->memory, t->dev, "a descent on a device"));
    layout(s, d->most, t);
    TRY(frgi_device_put(t->dev, t->x, s->x.at, t->x.bytes));
    TRY(frgi_device_put(t->dev, t->y, s->y.at, t->y.bytes));
    return frgi_device_wait(t->dev);
}

void frgi_descent_device_close(frgi_descent *d)
{
    frgi_descent_device *const t = d->there;
    frg_context *const ctx = d->s->ctx;
    if (!t) {
        return;
    }
    if (t->memory.block.handle) { /* host memory belongs to the queue until then */
        const frg_status ended = frgi_device_wait(t->dev);
        (void)ended;
    }
    frgi_device_arena_close(&t->memory, t->dev);
    DROP(ctx, &t->host.of_x);
    DROP(ctx, &t->host.of_y);
    DROP(ctx, &t->host.mass);
    DROP(ctx, &t->host.starts);
    DROP(ctx, &t->host.costs);
    DROP(ctx, &d->there);
}

int64_t *frgi_descent_device_starts(const frgi_descent *d)
{
    return d->there->host.starts;
}

static frg_status put_list(const frgi_descent_device *t, const frgi_entry *e, int64_t groups)
{
    const int64_t count = t->host.starts[groups];
    const size_t points = (size_t)count * sizeof(int32_t);
    for (int64_t q = 0; q < count; q++) {
        t->host.of_x[q] = e[q].i;
        t->host.of_y[q] = e[q].j;
        t->host.mass[q] = e[q].mass;
    }
    TRY(frgi_device_put(t->dev, t->of_x, t->host.of_x, points));
    TRY(frgi_device_put(t->dev, t->of_y, t->host.of_y, points));
    TRY(frgi_device_put(t->dev, t->mass, t->host.mass, (size_t)count * sizeof(double)));
    return frgi_device_put(t->dev, t->starts, t->host.starts,
                           (size_t)(groups + 1) * sizeof(int64_t));
}

/** costs <- that of the groups first .. first + count - 1, beside what is there already. */
static frg_status multiply(const frgi_descent *d, int64_t first, int64_t count, bool by_column,
                           double scale)
{
    const frgi_descent_device *const t = d->there;
    const int64_t x = d->s->x.ld, y = d->s->y.ld;
    TRY(LAUNCH(t->dev, t->program, "vertex_rows", count, 1, t->group, BUFFER(t->left), BUFFER(t->x),
               BUFFER(t->of_x), BUFFER(t->mass), BUFFER(t->starts), INT64(first), INT64(x),
               INT32(by_column)));
    TRY(LAUNCH(t->dev, t->program, "vertex_rows", count, 1, t->group, BUFFER(t->right),
               BUFFER(t->y), BUFFER(t->of_y), BUFFER(t->mass), BUFFER(t->starts), INT64(first),
               INT64(y), INT32(!by_column)));
    return LAUNCH(t->dev, t->program, "vertex_product", (x + LV_TILE - 1) / LV_TILE,
                  (y + LV_TILE - 1) / LV_TILE, t->group, BUFFER(t->costs), BUFFER(t->left),
                  BUFFER(t->right), INT64(x), INT64(y), INT64(count), INT32(first > 0),
                  REAL(scale));
}

/** host.costs <- the products of all groups. */
static frg_status costs_of(const frgi_descent *d, const frgi_entry *e, int64_t groups,
                           bool by_column, double scale)
{
    const frgi_descent_device *const t = d->there;
    TRY(put_list(t, e, groups));
    for (int64_t first = 0; first < groups; first += t->batch) {
        const int64_t left = groups - first;
        TRY(multiply(d, first, left < t->batch ? left : t->batch, by_column, scale));
    }
    TRY(frgi_device_get(t->dev, t->host.costs, t->costs, (size_t)(d->s->n * d->s->y.ld) * t->real));
    return frgi_device_wait(t->dev);
}

void frgi_descent_device_add(frgi_descent *d, const frgi_entry *e, int64_t groups, bool by_column,
                             double scale, frgi_costs *to)
{
    if (groups == 0 || !graph_tasks_go_on(d->tasks)) {
        return;
    }
    const frg_status status = costs_of(d, e, groups, by_column, scale);
    if (status < 0) {
        graph_tasks_stop(d->tasks, status);
        return;
    }
    frgi_costs made = *to; /* of the same shape */
    made.at = d->there->host.costs;
    for (int64_t i = 0; i < to->rows; i++) {
        frgi_costs_add_row(&made, i, 1, frgi_costs_row(to, i));
    }
}
