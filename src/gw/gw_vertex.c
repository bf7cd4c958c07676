/* gw_vertex.c - conditional gradient (Frank and Wolfe 1956) on the energy of a plan, without
 * entropy and without sampling.
 *
 *     J(P) = (1 - theta) E(P) + 2 theta <M, P>,     K(P) = -2 (1 - theta) C P D + theta M,
 *     dJ(P)[S] = 2 <K(P), S>
 *
 * for S of zero marginals (the terms of rows and of columns in E's gradient vanish there).  With
 * M the cost between features this is the fused problem of Vayer, Chapel, Flamary, Tavenard and
 * Courty (2019), their alpha being (1 - theta) / (1 + theta).  V is the vertex of the transport
 * polytope where <K(P), V> is least, by an assignment or the network simplex from the last duals or
 * tree.  On the segment J is a quadratic,
 *
 *     J(P + t (V - P)) = J(P) + 2 t <K(P), V - P> + t^2 <K(V) - K(P), V - P>
 *
 * whose minimiser t in [0, 1] is in closed form.  Where C and D are of negative type (Euclidean
 * distances, trees), it is concave: t = 1, and the plan goes from vertex to vertex (Rioux, Goldfeld
 * and Kato 2023).
 *
 * Plans are lists: a vertex has at most n + m - 1 entries, P those of the vertices that it is made
 * of.  K(V) is kept and moved by the entries that V has changed, those of a row a product of a
 * column of C and a sum of rows of D; K(P) mixes as P does.  A step costs n m times the changed
 * rows (or columns), on a device where there is one, a linear problem and looks at n m costs.
 * Costs of many points are floats; the energies that decide are sums over lists in double.
 * Costs are used where they are only rounded in floats: a step that gains less than their
 * rounding is the last one.
 */
#include "gw/gw_vertex.h"

#include <math.h>
#include <string.h>

enum { GATHERED = 256, SWEEPS = 50 };
#define NO_GAIN      1e-9 /* of J, that a step has to gain */
#define FLOOR_SINGLE 1e-7 /* the same of J's constant: rounding of costs */
#define FLOOR_DOUBLE 1e-13
#define MOST_AHEAD   2.0 /* beta of the costs of a plan further on, frgi_descent_rough */

/* ---- memory ---------------------------------------------------------------------------------- */

size_t frgi_descent_bytes(int64_t n, int64_t m, bool single)
{
    return frgi_costs_size(single) * (size_t)(2 * n * frgi_costs_ld(m) + n * m / 3);
}

static frgi_costs take_costs(frgi_arena *a, const frgi_spaces *s)
{
    frgi_costs c = {NULL, s->n, s->m, frgi_costs_ld(s->m), s->single};
    c.at = frgi_take(a, frgi_costs_bytes(&c));
    return c;
}

static void lay_out(frgi_arena *a, frgi_descent *d)
{
    const frgi_spaces *const s = d->s;
    const size_t row = frgi_mul(GATHERED, frgi_costs_size(s->single));
    d->k_plan = take_costs(a, s);
    d->k_vertex = take_costs(a, s);
    d->plan.entries = TAKE(a, frgi_entry, d->most);
    d->scratch.entries = TAKE(a, frgi_entry, d->most);
    d->vertex.entries = TAKE(a, frgi_entry, s->n + s->m);
    d->last.entries = TAKE(a, frgi_entry, s->n + s->m);
    d->left = frgi_take(a, frgi_mul((size_t)s->x.ld, row));
    d->right = frgi_take(a, frgi_mul((size_t)s->y.ld, row));
    if (s->assigns) {
        d->swaps.found = TAKE(a, frgi_exchange, s->n);
        d->swaps.images = TAKE(a, int32_t, s->n);
        d->swaps.taken = TAKE(a, bool, s->n);
    }
}

static void clear(frgi_descent *d)
{
    const size_t row = GATHERED * frgi_costs_size(d->s->single);
    memset(d->left, 0, (size_t)d->s->x.ld * row);
    memset(d->right, 0, (size_t)d->s->y.ld * row);
}

frg_status frgi_descent_open(frgi_descent *d, const frgi_spaces *s, int threads)
{
    const char *const what = "a descent";
    frg_context *const ctx = s->ctx;
    *d = (frgi_descent){.s = s,
                        .steps = s->steps ? s->steps : &frgi_transport_host_steps,
                        .energy = (double)INFINITY,
                        .most = 12 * (s->n + s->m)};
    lay_out(&d->memory, d);
    TRY(d->steps->open(&d->memory, ctx, what));
    lay_out(&d->memory, d);
    d->steps->descent->clear(d);
    if (s->dev) {
        TRY(frgi_descent_device_open(d));
    }
    TRY(frgi_products_open(&d->products, ctx, threads, s->single));
    return s->assigns ? frgi_assign_open(&d->assign, ctx, s->n, s->single)
                      : frgi_simplex_open(&d->simplex, ctx, s->a, s->n, s->b, s->m, s->single);
}

void frgi_descent_close(frgi_descent *d)
{
    if (!d->s) {
        return;
    }
    frg_context *const ctx = d->s->ctx;
    if (d->memory.bytes > 0) {
        d->steps->close(&d->memory, ctx);
    }
    frgi_descent_device_close(d);
    frgi_assign_close(&d->assign, ctx);
    frgi_simplex_close(&d->simplex, ctx);
    frgi_products_close(&d->products);
    *d = (frgi_descent){0};
}

/* ---- costs ----------------------------------------------------------------------------------- */

/** The point of an entry by which entries are grouped. */
static int32_t key_of(const frgi_entry *e, bool by_column)
{
    return by_column ? e->j : e->i;
}

static int in_columns(const void *p, const void *q, const void *user)
{
    const frgi_entry *const a = p, *const b = q;
    (void)user;
    return a->j != b->j ? a->j - b->j : a->i - b->i;
}

/** Row q of left and right <- C_i and sum_e m_e D_je of entries of one row i, or sum_e m_e C_ie and
 *  D_j of those of one column j. */
static void gather_group(frgi_descent *d, const frgi_entry *e, int64_t count, bool by_column,
                         int64_t q)
{
    const frgi_spaces *const s = d->s;
    const size_t size = frgi_costs_size(s->single), bytes_x = (size_t)s->x.ld * size,
                 bytes_y = (size_t)s->y.ld * size;
    char *const left = (char *)d->left + (size_t)q * bytes_x;
    char *const right = (char *)d->right + (size_t)q * bytes_y;
    memset(left, 0, bytes_x);
    memset(right, 0, bytes_y);
    for (int64_t k = 0; k < count; k++) {
        if (by_column || k == 0) {
            frgi_costs_add_row(&s->x, e[k].i, by_column ? e[k].mass : 1, left);
        }
        if (!by_column || k == 0) {
            frgi_costs_add_row(&s->y, e[k].j, by_column ? 1 : e[k].mass, right);
        }
    }
}

/** Entries of one row, or column, are a group: the next ones from starts[0] on, `most` at most;
 *  returns how many, whose end is behind their starts. */
static int64_t list_groups(const frgi_entry *e, int64_t count, bool by_column, int64_t most,
                           int64_t *starts)
{
    int64_t many = 0, at = starts[0];
    while (many < most && at < count) {
        const int32_t key = key_of(&e[at], by_column);
        starts[many++] = at;
        while (at < count && key_of(&e[at], by_column) == key) {
            at++;
        }
    }
    starts[many] = at;
    return many;
}

/** to <- to + K of the entries without the linear cost, their masses times scale: a product
 *  C_i (sum_e m_e D_je)' for all entries of a row i, or of a column where these are fewer, in whose
 *  order the list is left then. */
static void add_entries(frgi_descent *d, frgi_entry *e, int64_t count, double scale, frgi_costs *to)
{
    const frgi_spaces *const s = d->s;
    const bool by_column = s->m < s->n;
    const double share = -2 * (1 - s->theta) * scale;
    int64_t starts[GATHERED + 1] = {0};
    if (by_column) {
        frgi_sort(e, count, sizeof *e, in_columns, NULL);
    }
    if (d->there) {
        int64_t *const all = frgi_descent_device_starts(d);
        all[0] = 0;
        const int64_t groups = list_groups(e, count, by_column, count, all);
        frgi_descent_device_add(d, e, groups, by_column, share, to);
        return;
    }
    while (starts[0] < count) {
        const int64_t many = list_groups(e, count, by_column, GATHERED, starts);
#pragma omp parallel for schedule(static)                                                          \
    num_threads(frg_threads(s->ctx)) if (many * (s->n + s->m) > 100000)
        for (int64_t q = 0; q < many; q++) {
            gather_group(d, e + starts[q], starts[q + 1] - starts[q], by_column, q);
        }
        frgi_costs_add(&d->products, to, d->left, s->x.ld, d->right, s->y.ld, many, share);
        starts[0] = starts[many];
    }
}

void frgi_descent_costs(frgi_descent *d, const frgi_sparse *p, int64_t every, frgi_costs *to)
{
    double mass = 0;
    int64_t count = 0;
    for (int64_t e = 0; e < p->count; e++) {
        if (p->entries[e].i % every == 0) {
            mass += p->entries[e].mass;
            d->scratch.entries[count++] = p->entries[e];
        }
    }
    frgi_costs_linear(d->s, to);
    add_entries(d, d->scratch.entries, count, every > 1 ? 1 / mass : 1, to);
}

/** K(P) of a list, of some of its rows or on distances of low rank where d has them. */
static void rough_costs(frgi_descent *d, const frgi_sparse *p, int64_t every)
{
    if (d->lifted) {
        frgi_lifted_costs(d->lifted, p, d);
    } else {
        frgi_descent_costs(d, p, every, &d->k_plan);
    }
}

static void linearise(frgi_descent *d, const frgi_sparse *p)
{
    rough_costs(d, p, 1);
}

static void put_costs(frgi_descent *d, const frgi_costs *from)
{
    memcpy(d->k_plan.at, from->at, frgi_costs_bytes(from));
}

static void get_costs(const frgi_descent *d, frgi_costs *to)
{
    memcpy(to->at, d->k_plan.at, frgi_costs_bytes(to));
}

/** to <- (1 - t) to + t from */
static void mix(frgi_costs *to, const frgi_costs *from, double t)
{
    const int64_t count = to->rows * to->ld;
    if (to->single) {
        float *const x = to->at;
        const float *const y = from->at, share = (float)t;
        for (int64_t q = 0; q < count; q++) {
            x[q] += share * (y[q] - x[q]);
        }
    } else {
        double *const x = to->at;
        const double *const y = from->at;
        for (int64_t q = 0; q < count; q++) {
            x[q] += t * (y[q] - x[q]);
        }
    }
}

/** sum of the costs of a list */
static double cost_of(const frgi_costs *c, const frgi_sparse *p)
{
    double sum = 0;
    for (int64_t e = 0; e < p->count; e++) {
        sum += p->entries[e].mass * frgi_costs_get(c, p->entries[e].i, p->entries[e].j);
    }
    return sum;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void get_plan(const frgi_descent *d, frgi_entry *out)
{
    memcpy(out, d->plan.entries, (size_t)d->plan.count * sizeof *out);
}

static void copy_list(frgi_sparse *to, const frgi_sparse *from)
{
    memcpy(to->entries, from->entries, (size_t)from->count * sizeof *from->entries);
    to->count = from->count;
}

/** out <- scale_p p + scale_q q, by rows, entries of both added, those of no mass left out; `most`
 *  at most: -1 where that does not do. */
static int64_t add_lists(const frgi_sparse *p, double scale_p, const frgi_sparse *q, double scale_q,
                         frgi_entry *out, int64_t most)
{
    int64_t count = 0, at = 0, to = 0;
    while (at < p->count || to < q->count) {
        const int32_t of_p = at < p->count ? p->entries[at].i : INT32_MAX;
        const int32_t of_q = to < q->count ? q->entries[to].i : INT32_MAX;
        const int32_t row = of_p < of_q ? of_p : of_q;
        const int64_t first = count;
        for (; at < p->count && p->entries[at].i == row && count < most; at++) {
            out[count] = p->entries[at];
            out[count++].mass *= scale_p;
        }
        for (; to < q->count && q->entries[to].i == row && count < most; to++) {
            int64_t same = first;
            while (same < count && out[same].j != q->entries[to].j) {
                same++;
            }
            if (same == count) {
                out[count++] = (frgi_entry){row, q->entries[to].j, 0};
            }
            out[same].mass += scale_q * q->entries[to].mass;
        }
        if (count >= most) {
            return -1;
        }
        int64_t kept = first;
        for (int64_t e = first; e < count; e++) {
            if (fabs(out[e].mass) > 1e-17) {
                out[kept++] = out[e];
            }
        }
        count = kept;
    }
    return count;
}

void frgi_descent_first(const frgi_spaces *s, frgi_sparse *plan)
{
    int64_t i = 0, j = 0;
    double has = s->a[0], wants = s->b[0];
    plan->count = 0;
    while (i < s->n && j < s->m) {
        const bool row_ends = has <= wants || j + 1 == s->m;
        const double sent = i + 1 == s->n ? wants : j + 1 == s->m ? has : fmin(has, wants);
        plan->entries[plan->count++] = (frgi_entry){(int32_t)i, (int32_t)j, sent};
        has -= sent;
        wants -= sent;
        if (row_ends && i + 1 < s->n) {
            has = s->a[++i];
        } else if (j + 1 < s->m) {
            wants = s->b[++j];
        } else {
            break;
        }
    }
}

/* ---- the host's steps ------------------------------------------------------------------------ */

/** V <- the vertex of least <K(P), V>; false: the simplex has run out of pivots before it.  moved:
 *  frgi_assign_solve. */
static bool least_vertex(frgi_descent *d, bool moved)
{
    const frgi_spaces *const s = d->s;
    if (!s->assigns) {
        return frgi_simplex_solve(d->simplex, &d->k_plan, d->vertex.entries, &d->vertex.count);
    }
    frgi_assign_solve(&d->assign, &d->k_plan, moved);
    const int32_t *const image = frgi_assign_image(&d->assign);
    d->vertex.count = s->n;
    for (int64_t i = 0; i < s->n; i++) {
        d->vertex.entries[i] = (frgi_entry){(int32_t)i, image[i], s->a[i]};
    }
    return true;
}

/** k_vertex <- K(V), from that of the last vertex by the entries that differ where that is less
 *  work. */
static void vertex_costs(frgi_descent *d)
{
    const int64_t changed =
        d->last.count > 0 ? add_lists(&d->last, -1, &d->vertex, 1, d->scratch.entries, d->most)
                          : -1;
    if (changed >= 0 && changed < d->vertex.count) {
        add_entries(d, d->scratch.entries, changed, 1, &d->k_vertex);
    } else {
        frgi_descent_costs(d, &d->vertex, 1, &d->k_vertex);
    }
    copy_list(&d->last, &d->vertex);
}

/** What comes next goes on from nothing, or with the duals and the tree that there are. */
static void forget(frgi_descent *d, bool follows)
{
    d->stationary = d->known = false;
    d->follows = follows;
    d->last.count = d->done = 0;
    if (!follows) {
        frgi_assign_forget(&d->assign);
        if (d->simplex) {
            frgi_simplex_forget(d->simplex);
        }
    }
}

void frgi_host_begin(frgi_descent *d)
{
    forget(d, false); /* what a start finds does not depend on those before */
    (void)least_vertex(d, false);
    copy_list(&d->plan, &d->vertex);
    d->is_vertex = true;
    d->energy = graph_tasks_poll(d->tasks, d->s->ctx) ? frgi_sparse_energy(d->s, &d->plan)
                                                      : (double)INFINITY;
}

static void resume(frgi_descent *d, const frgi_sparse *plan, double energy, bool is_vertex,
                   bool follows)
{
    forget(d, follows);
    copy_list(&d->plan, plan);
    d->energy = energy;
    d->is_vertex = is_vertex;
}

static double dual(const frgi_descent *d)
{
    return cost_of(&d->k_plan, &d->vertex);
}

static void duals(const frgi_descent *d, double *f, double *g)
{
    if (d->s->assigns) {
        frgi_assign_duals(&d->assign, &d->k_plan, f, g);
    } else {
        frgi_simplex_duals(d->simplex, f, g);
    }
}

/** P + beta (P - P_before); P itself where there is none before. */
static frgi_sparse extrapolate(frgi_descent *d, double beta)
{
    const int64_t count =
        beta > 0 ? add_lists(&d->plan, 1 + beta, &d->last, -beta, d->scratch.entries, d->most) : -1;
    return count > 0 ? (frgi_sparse){d->scratch.entries, count} : d->plan;
}

/** The plan before, and V instead of it. */
static void move_to_vertex(frgi_descent *d, double energy)
{
    if (d->is_vertex) {
        copy_list(&d->last, &d->plan);
    }
    copy_list(&d->plan, &d->vertex);
    d->energy = energy;
    d->is_vertex = true;
}

/** V of least <K, V>, K that of P + beta (P - P_before) from every `every`th row. */
static bool rough_vertex(frgi_descent *d, int64_t every, double beta)
{
    frgi_host_step(d->s->ctx, FRGI_HOST_LINEAR);
    const frgi_sparse at = extrapolate(d, beta);
    rough_costs(d, &at, every);
    return least_vertex(d, d->follows);
}

static double vertex_energy(const frgi_descent *d)
{
    return frgi_sparse_energy(d->s, &d->vertex);
}

/** The t of least J along the segment from the plan to the vertex (formula above). */
static double line_search(const frgi_descent *d, double *gain)
{
    const double k_v = cost_of(&d->k_plan, &d->vertex), k_p = cost_of(&d->k_plan, &d->plan);
    const double slope = 2 * (k_v - k_p);
    const double square =
        cost_of(&d->k_vertex, &d->vertex) - k_v - cost_of(&d->k_vertex, &d->plan) + k_p;
    const double t = square > 0 ? fmin(1, fmax(0, -slope / (2 * square))) : 1;
    *gain = -(t * slope + t * t * square);
    return t;
}

/** plan <- vertex, whose costs k_vertex has. */
static void become_vertex(frgi_descent *d, double energy)
{
    copy_list(&d->plan, &d->vertex);
    d->energy = energy;
    d->is_vertex = true;
    frgi_costs_copy(d->s->ctx, &d->k_plan, &d->k_vertex);
}

/** plan <- vertex, if that is lower. */
static bool take_vertex(frgi_descent *d)
{
    const double energy = frgi_sparse_energy(d->s, &d->vertex);
    if (!(energy < d->energy)) {
        return false;
    }
    become_vertex(d, energy);
    return true;
}

bool frgi_host_take(frgi_descent *d)
{
    const double energy = frgi_sparse_energy(d->s, &d->vertex);
    if (!(energy < d->energy - NO_GAIN * fabs(d->energy))) {
        return false;
    }
    vertex_costs(d);
    become_vertex(d, energy);
    d->stationary = false;
    return true;
}

/** The plan, its costs and its energy after a step inside the segment; false: its list is full. */
static bool move_inside(frgi_descent *d, double t, double gain)
{
    const int64_t count = add_lists(&d->plan, 1 - t, &d->vertex, t, d->scratch.entries, d->most);
    if (count < 0) {
        return false;
    }
    const frgi_sparse mixed = {d->scratch.entries, count};
    copy_list(&d->plan, &mixed);
    mix(&d->k_plan, &d->k_vertex, t);
    d->energy -= gain;
    d->is_vertex = false;
    return true;
}

/** k_plan <- K(P), and k_vertex where the plan is a vertex. */
static void know_costs(frgi_descent *d)
{
    frgi_descent_costs(d, &d->plan, 1, &d->k_plan);
    if (d->is_vertex) {
        copy_list(&d->last, &d->plan);
        frgi_costs_copy(d->s->ctx, &d->k_vertex, &d->k_plan);
    }
    d->known = true;
}

/** V of least <K(P), V>, and K(V). */
static bool vertex(frgi_descent *d, bool moved)
{
    frgi_host_step(d->s->ctx, FRGI_HOST_LINEAR);
    const bool least = least_vertex(d, moved);
    vertex_costs(d);
    return least;
}

/** Behind a step inside a segment: is the last vertex as low? */
static void take_last(frgi_descent *d)
{
    const double energy = frgi_sparse_energy(d->s, &d->last);
    if (energy <= d->energy) {
        copy_list(&d->vertex, &d->last);
        become_vertex(d, energy);
    }
}

const struct frgi_descent_steps frgi_descent_host_steps = {.clear = clear,
                                                           .start = frgi_host_start,
                                                           .linearise = linearise,
                                                           .put_costs = put_costs,
                                                           .get_costs = get_costs,
                                                           .begin = frgi_host_begin,
                                                           .resume = resume,
                                                           .get_plan = get_plan,
                                                           .dual = dual,
                                                           .duals = duals,
                                                           .rough_vertex = rough_vertex,
                                                           .vertex_energy = vertex_energy,
                                                           .move_to_vertex = move_to_vertex,
                                                           .know_costs = know_costs,
                                                           .vertex = vertex,
                                                           .line_search = line_search,
                                                           .take_vertex = take_vertex,
                                                           .move_inside = move_inside,
                                                           .take_last = take_last,
                                                           .exchange = frgi_host_exchange};

/* ---- the iteration --------------------------------------------------------------------------- */

/** One more step is done. */
static void count_step(frgi_descent *d)
{
    d->done++;
    graph_tasks_count(d->tasks, d->s->ctx, "vertex", 1, 0);
}

void frgi_descent_rough(frgi_descent *d, int64_t every, int64_t most)
{
    const struct frgi_descent_steps *const steps = d->steps->descent;
    /* > 0: the costs of a plan further on, where steps are many; back to 0 where J does not fall */
    double beta = 0;
    d->last.count = 0;
    for (int64_t step = 0; step < most && graph_tasks_go_on(d->tasks); step++) {
        const bool least = steps->rough_vertex(d, every, beta);
        if (!graph_tasks_poll(d->tasks, d->s->ctx)) {
            break;
        }
        const double energy = steps->vertex_energy(d);
        count_step(d);
        if (energy < d->energy * (1 - 1e-6)) {
            steps->move_to_vertex(d, energy);
            beta = d->simplex && d->last.count > 0 ? fmin(beta > 0 ? 2 * beta : 1, MOST_AHEAD) : 0;
        } else if (beta > 0) {
            beta = 0;
        } else {
            d->stationary = least;
            break;
        }
    }
    d->last.count = 0; /* k_vertex is of no plan */
}

void frgi_descend(frgi_descent *d, int64_t most)
{
    const struct frgi_descent_steps *const steps = d->steps->descent;
    const double floor = d->s->constant * (d->s->single ? FLOOR_SINGLE : FLOOR_DOUBLE);
    bool moved = d->follows && !d->known;
    if (!d->known) {
        steps->know_costs(d);
    }
    for (int64_t step = 0; step < most && !d->stationary && graph_tasks_go_on(d->tasks); step++) {
        double gain;
        const bool least = steps->vertex(d, moved);
        moved = false;
        if (!graph_tasks_poll(d->tasks, d->s->ctx)) { /* costs or vertex may be unfinished */
            break;
        }
        const double t = steps->line_search(d, &gain);
        count_step(d);
        const bool rests =
            !(gain > fmax(NO_GAIN * fabs(d->energy), floor)) || (t >= 1 && !steps->take_vertex(d));
        d->stationary = rests && least;
        if (rests || (t < 1 && !steps->move_inside(d, t, gain))) {
            break;
        }
    }
    if (!d->is_vertex && d->last.count > 0 && graph_tasks_go_on(d->tasks)) {
        steps->take_last(d);
    }
}

bool frgi_descent_swap(frgi_descent *d)
{
    bool any = false, lower = true;
    for (int sweep = 0; sweep < SWEEPS && lower && graph_tasks_go_on(d->tasks); sweep++) {
        lower = d->steps->descent->exchange(d);
        any = any || lower;
    }
    return any;
}
