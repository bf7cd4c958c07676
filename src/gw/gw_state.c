/* gw_state.c - saved states of alignments: what is copied before a step, the call of the one who
 * keeps it, and the way back.  The bytes of a file are never believed: sizes, counts and points are
 * checked before a run goes on from them.
 */
#include "gw/gw_state.h"

#include <math.h>
#include <string.h>

/* ---- numbers --------------------------------------------------------------------------------- */

static void numbers_of(const frgi_level *l, int64_t t, frgi_state_numbers *v)
{
    const struct frgi_state *const s = l->state;
    const frgi_sweep *const w = &l->t.s;
    *v = (frgi_state_numbers){.options = s->options,
                              .data = s->data,
                              .phase = l->phase,
                              .turn = l->turn,
                              .t = t,
                              .outer = s->report->outer_iterations,
                              .coarse = s->report->coarse_iterations,
                              .inner = s->report->inner_iterations,
                              .started_from = (int64_t)s->report->started_from,
                              .run = (int64_t)l->run,
                              .step = l->step,
                              .n_ages = l->n_ages,
                              .truncated = l->truncated,
                              .passes = l->inner,
                              .bad = l->bad,
                              .stale = l->stale,
                              .floor_steps = l->floor.steps,
                              .floor_stale = l->floor.stale,
                              .floor_least = l->floor.least,
                              .smooth_from = l->smooth_from,
                              .averaged = l->averaged,
                              .count = l->count,
                              .room = l->room,
                              .epsilon = l->epsilon,
                              .best = l->best,
                              .ema = l->ema,
                              .k = l->t.k,
                              .dummy_g = w->dummy.g,
                              .dummy_f = w->dummy.f,
                              .past_k = w->base.past_k,
                              .vertex_energy = s->report->vertex_energy};
    memcpy(v->age_count, l->age_count, sizeof v->age_count);
    memcpy(v->age_used, l->age_used, sizeof v->age_used);
    for (int q = 0; q < FRGI_STARTS_HELD; q++) {
        v->start_run[q] = (int64_t)l->starts[q].run;
        v->start_energy[q] = l->starts[q].energy;
        v->start_epsilon[q] = l->starts[q].epsilon;
        v->start_information[q] = l->starts[q].information;
        v->start_error[q] = l->starts[q].error;
        v->start_room[q] = l->starts[q].room;
        v->start_filled[q] = l->starts[q].F != NULL;
    }
}

static void numbers_back(frgi_level *l, const frgi_state_numbers *v)
{
    struct frgi_state *const s = l->state;
    frgi_sweep *const w = &l->t.s;
    s->report->outer_iterations = v->outer;
    s->report->coarse_iterations = v->coarse;
    s->report->inner_iterations = v->inner;
    s->report->started_from = (frg_gw_start)v->started_from;
    s->report->vertex_energy = v->vertex_energy;
    l->run = (uint64_t)v->run;
    l->step = v->step;
    l->n_ages = v->n_ages;
    l->truncated = v->truncated;
    l->inner = v->passes;
    l->bad = v->bad;
    l->stale = v->stale;
    l->floor = (frgi_floor){v->floor_least, v->floor_steps, v->floor_stale};
    l->smooth_from = v->smooth_from;
    l->averaged = v->averaged;
    l->count = v->count;
    l->room = v->room;
    l->epsilon = v->epsilon;
    l->best = v->best;
    l->ema = v->ema;
    l->t.k = v->k;
    w->dummy.g = v->dummy_g;
    w->dummy.f = v->dummy_f;
    w->base.past_k = v->past_k;
    memcpy(l->age_count, v->age_count, sizeof v->age_count);
    memcpy(l->age_used, v->age_used, sizeof v->age_used);
    for (int q = 0; q < FRGI_STARTS_HELD; q++) {
        l->starts[q].run = (uint64_t)v->start_run[q];
        l->starts[q].energy = v->start_energy[q];
        l->starts[q].epsilon = v->start_epsilon[q];
        l->starts[q].information = v->start_information[q];
        l->starts[q].error = v->start_error[q];
        l->starts[q].room = v->start_room[q];
    }
}

/** Numbers that a run can go on from: counts in their ranges, nothing that is not a number where it
 *  matters. */
static bool are_sound(const frgi_state_numbers *v, int64_t n_start)
{
    enum { MOST = 1 << 30 };
    const int64_t counts[] = {v->turn,        v->t,           v->outer,      v->coarse,
                              v->inner,       v->step,        v->truncated,  v->passes,
                              v->bad,         v->stale,       v->averaged,   v->run,
                              v->floor_steps, v->floor_stale, v->smooth_from};
    const bool factors = v->phase == FRGI_FACTOR_STARTS || v->phase == FRGI_FACTORS;
    const bool starts =
        v->phase == FRGI_COARSE_STARTS || v->phase == FRGI_STARTS || v->phase == FRGI_FACTOR_STARTS;
    const int64_t turns = starts                    ? n_start
                          : v->phase == FRGI_COARSE ? 1 + FRGI_STARTS_KEPT
                          : v->phase == FRGI_MAIN   ? 2
                                                    : 1;
    bool sound = v->phase > FRGI_PHASE_NONE && v->phase < FRGI_PHASES && v->turn < turns &&
                 v->started_from >= 0 && v->started_from <= (int64_t)FRG_GW_START_GIVEN &&
                 v->n_ages >= !factors && v->n_ages <= FRGI_AGES && v->epsilon > 0 &&
                 isfinite(v->epsilon) && v->k >= 0 && isfinite(v->k) && isfinite(v->dummy_g) &&
                 isfinite(v->dummy_f) && isfinite(v->past_k) && !(v->best < 0 && isinf(v->best));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        sound = sound && counts[i] >= 0 && counts[i] <= INT64_MAX / 4;
    }
    for (int q = 0; q < FRGI_AGES && sound; q++) {
        sound = q >= v->n_ages || (v->age_count[q] >= 1 && v->age_count[q] <= MOST &&
                                   v->age_used[q] >= 0 && v->age_used[q] <= MOST);
    }
    for (int q = 0; q < FRGI_STARTS_HELD; q++) {
        const bool filled = v->start_filled[q] != 0;
        sound = sound && (factors ? !filled : filled == (bool)isfinite(v->start_energy[q])) &&
                (!filled || (v->start_epsilon[q] > 0 && isfinite(v->start_epsilon[q])));
    }
    return sound;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static void add(struct frgi_state *s, const char *name, int number, void *live, size_t bytes)
{
    frgi_part *const p = &s->parts[s->n_parts++];
    *p = (frgi_part){.live = live, .bytes = bytes};
    const size_t length = strlen(name);
    memcpy(p->name, name, length);
    if (number >= 0) {
        p->name[length] = (char)('0' + number);
    }
}

/** Pairs that are kept of the plan q steps ago: as many as this level draws, or as came from a
 *  broad coarse plan. */
static int64_t pairs_of_age(const frgi_level *l, int q)
{
    return l->age_count[q] > l->room ? l->age_count[q] : l->room;
}

/** The arrays that the next step of l depends on. */
static void list_parts(frgi_level *l)
{
    struct frgi_state *const s = l->state;
    const frgi_sweep *const w = &l->t.s;
    s->n_parts = 0;
    add(s, "F", -1, w->F, (size_t)w->n * sizeof *w->F);
    add(s, "G", -1, w->G, (size_t)w->m * sizeof *w->G);
    for (int q = 0; q < FRGI_AGES && q < l->n_ages; q++) {
        add(s, "age", q, l->ages[q], (size_t)pairs_of_age(l, q) * sizeof(frgi_pair));
    }
    if (frgi_level_averages(l)) {
        add(s, "past", -1, l->t.kept, (size_t)w->rows * (size_t)w->ld * sizeof(float));
        add(s, "past_h", -1, w->base.past_h, (size_t)w->rows * sizeof *w->base.past_h);
        add(s, "past_g", -1, w->base.past_g, (size_t)w->ld * sizeof *w->base.past_g);
    }
    for (int q = 0; q < FRGI_STARTS_HELD; q++) {
        if (l->starts[q].F) {
            add(s, "f", q, l->starts[q].F, (size_t)w->n * sizeof *w->F);
            add(s, "g", q, l->starts[q].G, (size_t)w->m * sizeof *w->G);
            add(s, "pairs", q, l->starts[q].pairs, (size_t)l->starts[q].room * sizeof(frgi_pair));
        }
    }
    for (int q = 0; q < l->n_own; q++) {
        add(s, l->own[q].name, -1, l->own[q].live, l->own[q].bytes);
    }
}

/* ---- points ---------------------------------------------------------------------------------- */

frg_status frgi_state_point(frgi_level *l, int64_t t)
{
    struct frgi_state *const s = l->state;
    if (!s || !s->save) {
        return FRG_OK;
    }
    size_t bytes = 0;
    s->filled = false;
    list_parts(l);
    for (int p = 0; p < s->n_parts; p++) {
        bytes += s->parts[p].bytes;
    }
    TRY(GROW(s->ctx, &s->memory, bytes + 1, "the state of an alignment"));
    char *to = s->memory;
    for (int p = 0; p < s->n_parts; p++) {
        memcpy(to, s->parts[p].live, s->parts[p].bytes);
        s->parts[p].live = to;
        to += s->parts[p].bytes;
    }
    numbers_of(l, t, &s->numbers);
    s->filled = true;
    return s->save(s->user, s->owner, 0);
}

frg_status frgi_state_anew(frgi_level *l, frgi_phase phase)
{
    const int before = l->phase;
    int64_t t = 0;
    l->phase = phase;
    l->turn = 0;
    frg_status status = frgi_state_enter(l, 1, &t);
    if (status == FRG_OK) {
        status = frgi_state_point(l, t);
    }
    l->phase = before;
    return status;
}

/* ---- taking up ------------------------------------------------------------------------------- */

bool frgi_state_waits(const frgi_level *l, frgi_phase phase)
{
    return l->state && l->state->from && l->state->numbers.phase == (int64_t)phase;
}

int64_t frgi_state_turn(const frgi_level *l, frgi_phase phase)
{
    return frgi_state_waits(l, phase) ? l->state->numbers.turn : 0;
}

frg_status frgi_state_open(struct frgi_state *s, const frg_checkpoint *c, int64_t n_start)
{
    int64_t bytes;
    const void *const run = frg_checkpoint_get(c, "run", &bytes);
    frgi_state_numbers v;
    if (!run || bytes != (int64_t)sizeof v) {
        FAIL(s->ctx, E_CHECKPOINT, "the checkpoint holds no state of an alignment");
    }
    memcpy(&v, run, sizeof v);
    if (v.options != s->options) {
        FAIL(s->ctx, E_MISMATCH,
             "the checkpoint was written with other options, another version of fourge or on "
             "another kind of machine");
    }
    if (v.data != s->data) {
        FAIL(s->ctx, E_MISMATCH, "the data are not those that the checkpoint was written for");
    }
    if (!are_sound(&v, n_start)) {
        FAIL(s->ctx, E_CHECKPOINT, "the state of the alignment makes no sense");
    }
    s->numbers = v;
    s->from = c;
    s->filled = false;
    return FRG_OK;
}

/** Every pair is one of points, every potential and weight a number. */
static bool arrays_are_sound(const frgi_level *l)
{
    const frgi_sweep *const w = &l->t.s;
    bool sound = true;
    const struct {
        const frgi_pair *pairs;
        const double *F, *G;
    } sets[] = {{NULL, w->F, w->G},
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
    for (int q = 0; q < FRGI_AGES + FRGI_STARTS_HELD; q++) {
        const frgi_pair *const pairs =
            q < FRGI_AGES ? (q < l->n_ages ? l->ages[q] : NULL) : l->starts[q - FRGI_AGES].pairs;
        const int64_t room = q < FRGI_AGES ? (q < l->n_ages ? pairs_of_age(l, q) : 0)
                                           : l->starts[q - FRGI_AGES].room;
        for (int64_t r = 0; pairs && r < room; r++) {
            sound = sound && pairs[r].i >= 0 && pairs[r].i < w->n && pairs[r].j >= 0 &&
                    pairs[r].j < w->m;
        }
    }
    for (int q = 0; q < l->n_own; q++) {
        const bool single = strcmp(l->own[q].name, "plan") == 0;
        const int64_t count =
            (int64_t)(l->own[q].bytes / (single ? sizeof(float) : sizeof(double)));
        for (int64_t i = 0; i < count; i++) {
            sound = sound && isfinite(single ? (double)((const float *)l->own[q].live)[i]
                                             : ((const double *)l->own[q].live)[i]);
        }
    }
    return sound;
}

/** Counts of pairs are the usual ones or those of broad plans. */
static bool rooms_are_sound(const frgi_level *l, const frgi_state_numbers *v)
{
    const int64_t usual = frgi_room_of(l->o, l->o->anchors),
                  most = frgi_room_of(l->o, l->count_most);
    bool sound = (v->room == usual || v->room == most) &&
                 (v->count == l->o->anchors || v->count == l->count_most);
    for (int q = 0; q < FRGI_STARTS_HELD; q++) {
        const int64_t room = v->start_room[q];
        sound = sound && (!v->start_filled[q] || room == usual || room == most);
    }
    for (int64_t q = 0; q < v->n_ages; q++) {
        sound = sound && v->age_count[q] <= most;
    }
    return sound;
}

static frg_status take_up(frgi_level *l)
{
    struct frgi_state *const s = l->state;
    const frg_checkpoint *const c = s->from;
    s->from = NULL;
    frgi_level_forget(l, FRGI_STARTS_HELD);
    for (int q = 0; q < FRGI_STARTS_HELD; q++) {
        if (s->numbers.start_filled[q]) {
            TRY(frgi_start_open(l, &l->starts[q]));
        }
    }
    if (!rooms_are_sound(l, &s->numbers)) {
        FAIL(s->ctx, E_CHECKPOINT, "the state of the alignment makes no sense");
    }
    numbers_back(l, &s->numbers);
    list_parts(l);
    for (int p = 0; p < s->n_parts; p++) {
        int64_t bytes = 0;
        const void *const from = frg_checkpoint_get(c, s->parts[p].name, &bytes);
        if (!from || (size_t)bytes != s->parts[p].bytes) {
            FAIL(s->ctx, E_MISMATCH, "the checkpoint has %lld bytes of '%s', %lld are needed",
                 from ? (long long)bytes : 0LL, s->parts[p].name, (long long)s->parts[p].bytes);
        }
        memcpy(s->parts[p].live, from, s->parts[p].bytes);
    }
    if (!arrays_are_sound(l)) {
        FAIL(s->ctx, E_CHECKPOINT, "the state of the alignment makes no sense");
    }
    return FRG_OK;
}

frg_status frgi_state_enter(frgi_level *l, int64_t most, int64_t *t)
{
    struct frgi_state *const s = l->state;
    if (!frgi_state_waits(l, (frgi_phase)l->phase) || s->numbers.turn != l->turn) {
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
}
