/* gw_state_device.c - what a saved state has on a device.
 *
 * Before every step the arrays there that the step depends on are copied beside themselves, on the
 * device: they come over when somebody saves the state, and only then.  The bits of what follows
 * are those of one device and one driver, whose names the state has; it goes on there alone.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/checkpoint_bytes.h"
#include "gw/gw_level_there.h"
#include "gw/gw_state.h"

/* ---- which arrays ---------------------------------------------------------------------------- */

static frgi_array array_there(const char *name, frgi_buffer one, frgi_buffer two)
{
    frgi_array a = {.bytes = one.bytes + two.bytes, .there = {one, two}};
    snprintf(a.name, sizeof a.name, "%s", name);
    return a;
}

/** level_renew reads no more of the passes than G0 and g, H0 and lp, and their last state. */
int frgi_level_device_arrays(const frgi_level *l, frgi_array *out)
{
    const frgi_level_device *const d = l->device;
    const int64_t n = l->x->n, m = l->y->n;
    const frgi_stage *const loop = &d->loop;
    const frgi_buffer none = {0}, states = frgi_stage_vector(loop, SK_STATES, 2 * SKS_COUNT);
    const size_t state = SKS_COUNT * loop->real;
    int count = 0;
    out[count++] =
        array_there("rows", frgi_stage_vector(loop, SK_H0, n), frgi_stage_vector(loop, SK_LP, n));
    out[count++] =
        array_there("columns", frgi_stage_vector(loop, SK_G0, m), frgi_stage_vector(loop, SK_G, m));
    out[count++] =
        array_there("numbers", frgi_device_slice(states, (size_t)loop->slot * state, state), none);
    for (int q = 0; q < l->sampled.n_lagged; q++) {
        const int64_t pairs = l->sampled.lagged_count[q];
        const int area = l->sampled.area[q];
        const char name[] = {'a', 'g', 'e', (char)('0' + q), 0};
        out[count++] = array_there(name, frgi_level_device_area(d, d->pairs.row, area, pairs),
                                   frgi_level_device_area(d, d->pairs.column, area, pairs));
    }
    if (frgi_level_averages(l)) {
        out[count++] = array_there("past", d->costs, none);
    }
    return count;
}

size_t frgi_level_device_arrays_most(const frgi_level *l)
{
    const frgi_level_device *const d = l->device;
    const size_t reals = 2 * (size_t)(l->x->n + l->y->n) + SKS_COUNT,
                 pairs = 2 * FRGI_LAGS * (size_t)d->pairs.count;
    return reals * d->loop.real + pairs * sizeof(int32_t) +
           (frgi_level_may_average(l) ? d->costs.bytes : 0);
}

/* ---- copies there, and back ------------------------------------------------------------------ */

frg_status frgi_state_reserve_there(struct frgi_state *s, size_t bytes)
{
    if (bytes <= s->copy.bytes) {
        return FRG_OK;
    }
    frgi_device_free(s->dev, &s->copy);
    return frgi_device_alloc(s->dev, bytes, "the state of an alignment", &s->copy);
}

frg_status frgi_state_copy_there(struct frgi_state *s, frgi_array *a, size_t from)
{
    const frgi_buffer copy = frgi_device_slice(s->copy, from, a->bytes);
    size_t done = 0;
    for (int q = 0; q < FRGI_PIECES && done < a->bytes; q++) {
        const frgi_buffer to = frgi_device_slice(copy, done, a->there[q].bytes);
        TRY(frgi_device_copy(s->dev, to, a->there[q], to.bytes));
        done += to.bytes;
        a->there[q] = (frgi_buffer){0};
    }
    a->there[0] = copy;
    return FRG_OK;
}

frg_status frgi_state_fetch(const struct frgi_state *s)
{
    bool any = false;
    for (int p = 0; p < s->n_arrays; p++) {
        const frgi_array *const a = &s->arrays[p];
        if (a->there[0].handle) {
            TRY(frgi_device_get(s->dev, a->live, a->there[0], a->bytes));
            any = true;
        }
    }
    return any ? frgi_device_wait(s->dev) : FRG_OK;
}

frg_status frgi_state_put_there(const struct frgi_state *s, const frgi_array *a, const char *from)
{
    for (int q = 0; q < FRGI_PIECES && a->there[q].bytes > 0; q++) {
        TRY(frgi_device_put(s->dev, a->there[q], from, a->there[q].bytes));
        from += a->there[q].bytes;
    }
    return frgi_device_wait(s->dev);
}

bool frgi_state_is_sound_there(const frgi_level *l, const frgi_array *a, const char *from)
{
    const bool pairs = strncmp(a->name, "age", 3) == 0;
    bool sound = true;
    for (size_t at = 0; at < a->bytes; at += sizeof(float)) {
        const int64_t points = at < a->there[0].bytes ? l->x->n : l->y->n;
        int32_t point = 0;
        float x = 0;
        memcpy(pairs ? (void *)&point : (void *)&x, from + at, sizeof x);
        sound = sound && isfinite(x) && point >= 0 && point < points;
    }
    return sound;
}

/* ---- whose state it is ----------------------------------------------------------------------- */

void frgi_state_name_device(struct frgi_state *s)
{
    if (s->dev) {
        const frgi_device_properties *const is = frgi_device_is(s->dev);
        const char *const name = frgi_device_name(s->dev); /* "opencl:0": which one is no matter */
        snprintf(s->device, sizeof s->device, "%.*s: %s, %s", (int)strcspn(name, ":"), name,
                 is->name, is->driver);
    }
}

frg_status frgi_state_check_device(const struct frgi_state *s, const frg_checkpoint *c)
{
    int64_t bytes = 0;
    const char *const saved = frg_checkpoint_get(c, "device", &bytes);
    if (saved && (bytes < 1 || saved[bytes - 1] != 0)) {
        return frgi_checkpoint_unsound(c, "device");
    }
    const char *const of = saved ? saved : "";
    if (strcmp(of, s->device) != 0) {
        FAIL(s->ctx, E_MISMATCH,
             "the state in the checkpoint is of a run on %s, and this run is on %s, whose sums end "
             "with other bits: go on where it began, or begin anew",
             of[0] ? of : "the cpu", s->device[0] ? s->device : "the cpu");
    }
    return FRG_OK;
}
