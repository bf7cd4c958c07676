/* gw_state.c - saved states of alignments: what is copied before a step, the call of the one who
 * keeps it, and the way back.  The bytes of a file are never believed: sizes, counts and points are
 * checked before a run goes on from them.
 */
#include "gw/gw_state.h"

#include <math.h>
#include <string.h>

#include "core/checkpoint_bytes.h"
#include "gw/gw_align.h"
#include "gw/gw_level_device.h"

const int64_t frgi_state_format = 2; /* 1: the numbers in another order, without this one */

void frgi_state_begin(struct frgi_state *s, frg_gw *owner, frgi_device *dev)
{
    *s = (struct frgi_state){
        .ctx = owner->ctx, .report = &owner->report, .owner = owner, .dev = dev};
    frgi_state_name_device(s);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static frgi_start_numbers numbers_of_start(const frgi_start *start)
{
    return (frgi_start_numbers){.run = (int64_t)start->run,
                                .filled = start->F != NULL,
                                .drawn = start->drawn,
                                .energy = start->energy,
                                .epsilon = start->epsilon,
                                .information = start->information,
                                .error = start->error};
}

static void numbers_of(const frgi_level *l, int64_t t, frgi_state_numbers *v)
{
    const struct frgi_state *const s = l->saved.state;
    const frgi_sweep *const w = &l->t.s;
    const frgi_stopping *const stopping = &l->stopping;
    *v = (frgi_state_numbers){.options = s->options,
                              .data = s->data,
                              .phase = l->saved.phase,
                              .turn = l->saved.turn,
                              .t = t,
                              .run = (int64_t)l->run,
                              .step = l->step,
                              .passes = l->spent.passes,
                              .smooth_from = l->average.from,
                              .averaged = l->average.steps,
                              .epsilon = l->epsilon,
                              .report = {.outer = s->report->outer_iterations,
                                         .coarse = s->report->coarse_iterations,
                                         .inner = s->report->inner_iterations,
                                         .started_from = (int64_t)s->report->started_from,
                                         .vertex_energy = s->report->vertex_energy},
                              .sampled = {.n_lagged = l->sampled.n_lagged,
                                          .truncated = l->sampled.truncated,
                                          .count = l->sampled.count,
                                          .drawn = l->sampled.drawn},
                              .stopping = {stopping->best, stopping->ema, stopping->bad,
                                           stopping->stale, stopping->floor},
                              .potentials = {l->t.k, w->dummy.g, w->dummy.f, w->base.past_k}};
    memcpy(v->sampled.lagged_count, l->sampled.lagged_count, sizeof v->sampled.lagged_count);
    memcpy(v->sampled.lagged_used, l->sampled.lagged_used, sizeof v->sampled.lagged_used);
    for (int q = 0; q < FRGI_STARTS_HELD; q++) {
        v->starts[q] = numbers_of_start(&l->starts[q]);
    }
}

static void start_back(frgi_start *start, const frgi_start_numbers *v)
{
    start->run = (uint64_t)v->run;
    start->energy = v->energy;
    start->epsilon = v->epsilon;
    start->information = v->information;
    start->error = v->error;
    start->drawn = v->drawn;
}

static void report_back(frg_gw_report *report, const frgi_report_numbers *v)
{
    report->outer_iterations = v->outer;
    report->coarse_iterations = v->coarse;
    report->inner_iterations = v->inner;
    report->started_from = (frg_gw_start)v->started_from;
    report->vertex_energy = v->vertex_energy;
}

static void samples_back(frgi_samples *to, const frgi_sample_numbers *v)
{
    to->n_lagged = v->n_lagged;
    to->truncated = v->truncated;
    to->count = v->count;
    to->drawn = v->drawn;
    memcpy(to->lagged_count, v->lagged_count, sizeof v->lagged_count);
    memcpy(to->lagged_used, v->lagged_used, sizeof v->lagged_used);
}

static void numbers_back(frgi_level *l, const frgi_state_numbers *v)
{
    frgi_sweep *const w = &l->t.s;
    report_back(l->saved.state->report, &v->report);
    samples_back(&l->sampled, &v->sampled);
    l->run = (uint64_t)v->run;
    l->step = v->step;
    l->spent.passes = v->passes;
    l->stopping.best = v->stopping.best;
    l->stopping.ema = v->stopping.ema;
    l->stopping.bad = v->stopping.bad;
    l->stopping.stale = v->stopping.stale;
    l->stopping.floor = v->stopping.floor;
    l->average.from = v->smooth_from;
    l->average.steps = v->averaged;
    l->epsilon = v->epsilon;
    l->t.k = v->potentials.k;
    w->dummy.g = v->potentials.dummy_g;
    w->dummy.f = v->potentials.dummy_f;
    w->base.past_k = v->potentials.past_k;
    for (int q = 0; q < FRGI_STARTS_HELD; q++) {
        start_back(&l->starts[q], &v->starts[q]);
    }
}

/** Numbers that a run can go on from: counts in their ranges, nothing that is not a number where it
 *  matters. */
static bool are_sound(const frgi_state_numbers *v, int64_t n_start)
{
    enum { MOST = 1 << 30 };
    const int64_t counts[] = {v->turn,
                              v->t,
                              v->report.outer,
                              v->report.coarse,
                              v->report.inner,
                              v->step,
                              v->sampled.truncated,
                              v->passes,
                              v->stopping.bad,
                              v->stopping.stale,
                              v->averaged,
                              v->run,
                              v->stopping.floor.steps,
                              v->stopping.floor.stale,
                              v->smooth_from};
    const bool factors = v->phase == FRGI_FACTOR_STARTS || v->phase == FRGI_FACTORS;
    const bool starts =
        v->phase == FRGI_COARSE_STARTS || v->phase == FRGI_STARTS || v->phase == FRGI_FACTOR_STARTS;
    const int64_t turns = starts                    ? n_start
                          : v->phase == FRGI_COARSE ? 1 + FRGI_STARTS_KEPT
                          : v->phase == FRGI_MAIN   ? 2
                                                    : 1;
    bool sound =
        v->phase > FRGI_PHASE_NONE && v->phase < FRGI_PHASES && v->turn < turns &&
        v->report.started_from >= 0 && v->report.started_from <= (int64_t)FRG_GW_START_GIVEN &&
        v->sampled.n_lagged >= !factors && v->sampled.n_lagged <= FRGI_LAGS && v->epsilon > 0 &&
        isfinite(v->epsilon) && v->potentials.k >= 0 && isfinite(v->potentials.k) &&
        isfinite(v->potentials.dummy_g) && isfinite(v->potentials.dummy_f) &&
        isfinite(v->potentials.past_k) && !(v->stopping.best < 0 && isinf(v->stopping.best));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        sound = sound && counts[i] >= 0 && counts[i] <= INT64_MAX / 4;
    }
    for (int q = 0; q < FRGI_LAGS && sound; q++) {
        sound = q >= v->sampled.n_lagged ||
                (v->sampled.lagged_count[q] >= 1 && v->sampled.lagged_count[q] <= MOST &&
                 v->sampled.lagged_used[q] >= 0 && v->sampled.lagged_used[q] <= MOST);
    }
    for (int q = 0; q < FRGI_STARTS_HELD; q++) {
        const bool filled = v->starts[q].filled != 0;
        sound = sound && (factors ? !filled : filled == (bool)isfinite(v->starts[q].energy)) &&
                (!filled || (v->starts[q].epsilon > 0 && isfinite(v->starts[q].epsilon)));
    }
    return sound;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static void add(struct frgi_state *s, const char *name, int number, void *live, size_t bytes)
{
    frgi_array *const p = &s->arrays[s->n_arrays++];
    *p = (frgi_array){.live = live, .bytes = bytes};
    const size_t length = strlen(name);
    memcpy(p->name, name, length);
    if (number >= 0) {
        p->name[length] = (char)('0' + number);
    }
}

/** Pairs that are kept of the plan q steps ago: as many as this level draws, or as came from a
 *  broad coarse plan. */
static int64_t pairs_of_lag(const frgi_level *l, int q)
{
    return l->sampled.lagged_count[q] > l->sampled.drawn ? l->sampled.lagged_count[q]
                                                         : l->sampled.drawn;
}

/** Those of them that the host's steps have and a device's do not. */
static void list_host_arrays(frgi_level *l)
{
    struct frgi_state *const s = l->saved.state;
    const frgi_sweep *const w = &l->t.s;
    for (int q = 0; q < FRGI_LAGS && q < l->sampled.n_lagged; q++) {
        add(s, "age", q, l->sampled.lagged[q], (size_t)pairs_of_lag(l, q) * sizeof(frgi_pair));
    }
    if (frgi_level_averages(l)) {
        add(s, "past", -1, l->t.kept, (size_t)w->rows * (size_t)w->ld * sizeof(float));
        add(s, "past_h", -1, w->base.past_h, (size_t)w->rows * sizeof *w->base.past_h);
        add(s, "past_g", -1, w->base.past_g, (size_t)w->ld * sizeof *w->base.past_g);
    }
}

/** The arrays that the next step of l depends on.  On a device F and G are what came over last:
 *  columns without weight keep theirs. */
static void list_arrays(frgi_level *l)
{
    struct frgi_state *const s = l->saved.state;
    const frgi_sweep *const w = &l->t.s;
    s->n_arrays = 0;
    add(s, "F", -1, w->F, (size_t)w->n * sizeof *w->F);
    add(s, "G", -1, w->G, (size_t)w->m * sizeof *w->G);
    if (l->device) {
        s->n_arrays += frgi_level_device_arrays(l, s->arrays + s->n_arrays);
    } else {
        list_host_arrays(l);
    }
    for (int q = 0; q < FRGI_STARTS_HELD; q++) {
        if (l->starts[q].F) {
            add(s, "f", q, l->starts[q].F, (size_t)w->n * sizeof *w->F);
            add(s, "g", q, l->starts[q].G, (size_t)w->m * sizeof *w->G);
            add(s, "pairs", q, l->starts[q].pairs, (size_t)l->starts[q].drawn * sizeof(frgi_pair));
        }
    }
    for (int q = 0; q < l->saved.n_own; q++) {
        s->arrays[s->n_arrays++] = l->saved.own[q];
    }
}

/* ---- points ---------------------------------------------------------------------------------- */

/** Room for a copy of all arrays: here, and there of those that lie there. */
static frg_status reserve(const frgi_level *l)
{
    struct frgi_state *const s = l->saved.state;
    size_t bytes = 0, own = 0;
    for (int p = 0; p < s->n_arrays; p++) {
        bytes += s->arrays[p].bytes;
    }
    for (int q = 0; q < l->saved.n_own; q++) {
        own += l->saved.own[q].live ? 0 : l->saved.own[q].bytes;
    }
    TRY(GROW(s->ctx, &s->memory, bytes + 1, "the state of an alignment"));
    const size_t there = own + (l->device ? frgi_level_device_arrays_most(l) : 0);
    return there > 0 ? frgi_state_reserve_there(s, there) : FRG_OK;
}

frg_status frgi_state_point(frgi_level *l, int64_t t)
{
    struct frgi_state *const s = l->saved.state;
    if (!s || !s->save) {
        return FRG_OK;
    }
    s->filled = false;
    list_arrays(l);
    TRY(reserve(l));
    char *to = s->memory;
    size_t there = 0;
    for (int p = 0; p < s->n_arrays; p++) {
        frgi_array *const a = &s->arrays[p];
        if (a->live) {
            frgi_transport_copy(&l->t, to, a->live, a->bytes);
        } else {
            TRY(frgi_state_copy_there(s, a, there));
            there += a->bytes;
        }
        a->live = to;
        to += a->bytes;
    }
    numbers_of(l, t, &s->numbers);
    s->filled = true;
    return s->save(s->user, s->owner, 0);
}

frg_status frgi_state_anew(frgi_level *l, frgi_phase phase)
{
    const int before = l->saved.phase;
    int64_t t = 0;
    l->saved.phase = phase;
    l->saved.turn = 0;
    frg_status status = frgi_state_enter(l, 1, &t);
    if (status == FRG_OK) {
        status = frgi_state_point(l, t);
    }
    l->saved.phase = before;
    return status;
}

/* ---- taking up ------------------------------------------------------------------------------- */

bool frgi_state_waits(const frgi_level *l, frgi_phase phase)
{
    return l->saved.state && l->saved.state->from &&
           l->saved.state->numbers.phase == (int64_t)phase;
}

int64_t frgi_state_turn(const frgi_level *l, frgi_phase phase)
{
    return frgi_state_waits(l, phase) ? l->saved.state->numbers.turn : 0;
}

/** The format of a checkpoint that holds a state. */
static int64_t format_of(const frg_checkpoint *c)
{
    int64_t bytes, format = 1;
    const void *const at = frg_checkpoint_get(c, "format", &bytes);
    if (at && bytes == (int64_t)sizeof format) {
        memcpy(&format, at, sizeof format);
    }
    return format;
}

frg_status frgi_state_open(struct frgi_state *s, const frg_checkpoint *c, int64_t n_start)
{
    int64_t bytes;
    const void *const format = frg_checkpoint_get(c, "format", &bytes);
    const void *const run = frg_checkpoint_get(c, "run", &bytes);
    frgi_state_numbers v;
    const bool is_ours = run && (format || bytes == (int64_t)sizeof v); /* no other room's */
    if (is_ours && format_of(c) != frgi_state_format) {
        FAIL(s->ctx, E_MISMATCH,
             "the alignment's state in the checkpoint has format %lld, this fourge reads %lld: "
             "end the run with the fourge that wrote it, or begin it anew",
             (long long)format_of(c), (long long)frgi_state_format);
    }
    if (!run || bytes != (int64_t)sizeof v) {
        FAIL(s->ctx, E_CHECKPOINT, "the checkpoint holds no state of an alignment");
    }
    memcpy(&v, run, sizeof v);
    TRY(frgi_state_check_device(s, c));
    if (v.options != s->options) {
        return frgi_checkpoint_other_options(s->ctx, c);
    }
    if (v.data != s->data) {
        return frgi_checkpoint_other_data(s->ctx, c);
    }
    if (!are_sound(&v, n_start)) {
        FAIL(s->ctx, E_CHECKPOINT, "the state of the alignment makes no sense");
    }
    s->numbers = v;
    s->from = c;
    s->filled = false;
    return FRG_OK;
}

/** An array of the mode has numbers alone: floats of a plan, else doubles. */
static bool own_is_sound(const frgi_array *own, const frg_checkpoint *c)
{
    const bool single = strcmp(own->name, "plan") == 0;
    const size_t size = single ? sizeof(float) : sizeof(double);
    int64_t bytes = 0;
    const char *const from = frg_checkpoint_get(c, own->name, &bytes);
    bool sound = true;
    for (size_t at = 0; at < own->bytes; at += size) {
        float narrow = 0;
        double wide = 0;
        memcpy(single ? (void *)&narrow : (void *)&wide, from + at, size);
        sound = sound && isfinite(wide) && isfinite(narrow);
    }
    return sound;
}

/** pairs NULL: none. */
static bool are_points(const frgi_pair *pairs, int64_t count, const frgi_sweep *w)
{
    bool sound = true;
    for (int64_t r = 0; pairs && r < count; r++) {
        sound =
            sound && pairs[r].i >= 0 && pairs[r].i < w->n && pairs[r].j >= 0 && pairs[r].j < w->m;
    }
    return sound;
}

/** Those on the device but for the mode's own: they come from c, not from there. */
static bool are_sound_there(const frgi_level *l, const frg_checkpoint *c)
{
    frgi_array arrays[FRGI_ARRAYS];
    const int count = l->device ? frgi_level_device_arrays(l, arrays) : 0;
    bool sound = true;
    for (int p = 0; p < count; p++) {
        int64_t bytes;
        const char *const from = frg_checkpoint_get(c, arrays[p].name, &bytes);
        sound = sound && frgi_state_is_sound_there(l, &arrays[p], from);
    }
    return sound;
}

/** Every pair is one of points, every potential and weight a number. */
static bool arrays_are_sound(const frgi_level *l, const frg_checkpoint *c)
{
    const frgi_sweep *const w = &l->t.s;
    double *const F = l->product.row, *const G = F + w->rows;
    bool sound = true;
    frgi_transport_copy(&l->t, F, w->F, (size_t)w->n * sizeof *F);
    frgi_transport_copy(&l->t, G, w->G, (size_t)w->m * sizeof *G);
    sound = are_sound_there(l, c);
    const struct {
        const frgi_pair *pairs;
        const double *F, *G;
    } sets[] = {{NULL, F, G},
                {l->starts[0].pairs, l->starts[0].F, l->starts[0].G},
                {l->starts[1].pairs, l->starts[1].F, l->starts[1].G},
                {l->starts[FRGI_CANDIDATE].pairs, l->starts[FRGI_CANDIDATE].F,
                 l->starts[FRGI_CANDIDATE].G}};
    for (size_t q = 0; q < sizeof sets / sizeof *sets; q++) {
        for (int64_t i = 0; sets[q].F && i < w->n; i++) {
            sound = sound && isfinite(sets[q].F[i]);
        }
        for (int64_t j = 0; sets[q].G && j < w->m; j++) {
            sound = sound && isfinite(sets[q].G[j]);
        }
    }
    for (int q = 0; q < l->sampled.n_lagged && !l->device; q++) {
        const int64_t count = pairs_of_lag(l, q);
        frgi_transport_copy(&l->t, l->sampled.given, l->sampled.lagged[q],
                            (size_t)count * sizeof *l->sampled.given);
        sound = sound && are_points(l->sampled.given, count, w);
    }
    for (int q = 0; q < FRGI_STARTS_HELD; q++) {
        sound = sound && are_points(l->starts[q].pairs, l->starts[q].drawn, w);
    }
    for (int q = 0; q < l->saved.n_own; q++) {
        sound = sound && own_is_sound(&l->saved.own[q], c);
    }
    return sound;
}

/** Counts of pairs are the usual ones or those of broad plans. */
static bool rooms_are_sound(const frgi_level *l, const frgi_state_numbers *v)
{
    const int64_t usual = frgi_drawn_of(l->o, l->o->anchors),
                  most = frgi_drawn_of(l->o, l->sampled.count_most);
    bool sound = (v->sampled.drawn == usual || v->sampled.drawn == most) &&
                 (v->sampled.count == l->o->anchors || v->sampled.count == l->sampled.count_most);
    for (int q = 0; q < FRGI_STARTS_HELD; q++) {
        const int64_t capacity = v->starts[q].drawn;
        sound = sound && (!v->starts[q].filled || capacity == usual || capacity == most);
    }
    for (int64_t q = 0; q < v->sampled.n_lagged; q++) {
        sound = sound && v->sampled.lagged_count[q] <= most;
    }
    return sound;
}

static frg_status take_up(frgi_level *l)
{
    struct frgi_state *const s = l->saved.state;
    const frg_checkpoint *const c = s->from;
    s->from = NULL;
    frgi_level_forget(l, FRGI_STARTS_HELD);
    for (int q = 0; q < FRGI_STARTS_HELD; q++) {
        if (s->numbers.starts[q].filled) {
            TRY(frgi_start_open(l, &l->starts[q]));
        }
    }
    if (!rooms_are_sound(l, &s->numbers)) {
        FAIL(s->ctx, E_CHECKPOINT, "the state of the alignment makes no sense");
    }
    numbers_back(l, &s->numbers);
    list_arrays(l);
    for (int p = 0; p < s->n_arrays; p++) {
        int64_t bytes = 0;
        const void *const from = frg_checkpoint_get(c, s->arrays[p].name, &bytes);
        if (!from || (size_t)bytes != s->arrays[p].bytes) {
            FAIL(s->ctx, E_MISMATCH, "the checkpoint has %lld bytes of '%s', %lld are needed",
                 from ? (long long)bytes : 0LL, s->arrays[p].name, (long long)s->arrays[p].bytes);
        }
        if (s->arrays[p].live) {
            frgi_transport_copy(&l->t, s->arrays[p].live, from, s->arrays[p].bytes);
        } else {
            TRY(frgi_state_put_there(s, &s->arrays[p], from));
        }
    }
    if (!arrays_are_sound(l, c)) {
        FAIL(s->ctx, E_CHECKPOINT, "the state of the alignment makes no sense");
    }
    if (l->device && frgi_keeps_plan(l)) {
        int64_t bytes;
        frgi_level_device_keep_taken(l, frg_checkpoint_get(c, "plan", &bytes));
    }
    return FRG_OK;
}

frg_status frgi_state_enter(frgi_level *l, int64_t most, int64_t *t)
{
    struct frgi_state *const s = l->saved.state;
    if (!frgi_state_waits(l, (frgi_phase)l->saved.phase) || s->numbers.turn != l->saved.turn) {
        return FRG_OK;
    }
    if (s->numbers.t >= most) {
        FAIL(s->ctx, E_MISMATCH, "the checkpoint is of step %lld, there are %lld",
             (long long)s->numbers.t + 1, (long long)most);
    }
    *t = s->numbers.t;
    return take_up(l);
}

void frgi_state_close(struct frgi_state *s)
{
    if (s->ctx) {
        DROP(s->ctx, &s->memory);
    }
    frgi_device_free(s->dev, &s->copy);
}
