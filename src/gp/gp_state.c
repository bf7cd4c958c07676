/* gp_state.c - the answers of a process to its search: kept, written, read back, handed out.
 *
 * An answer is a few hundred bytes and p or p^2 numbers beside an n^3/3 that it cost.  Starts that
 * run side by side share one list; each finds its own in it.  The bytes of a file are never
 * believed: lengths, counts and states of the process are checked before a fit goes on from them.
 */
#include "gp/gp_state.h"

#include <math.h>
#include <string.h>

#include "core/checkpoint_bytes.h"
#include "core/opts.h"

/* ---- what a state belongs to ----------------------------------------------------------------- */

static uint64_t hash_numbers(uint64_t h, const double *v, ptrdiff_t n)
{
    return v ? frg_hash(h + 1, v, n * (int64_t)sizeof *v) : h;
}

static frg_status hash_options(const frg_gp *gp, const frg_gp_fit_opts *o, frg_gp_optimizer method,
                               uint64_t *hash)
{
    frg_gp_opts of_process = gp->opts;
    frg_gp_fit_opts of_fit = *o;
    of_process.mean = of_process.priors = NULL; /* the caller's; below as they were read */
    of_fit.optimizer = method;
    const uint64_t others[] = {(uint64_t)gp->mean.kind, frg_seed(gp->ctx)};
    uint64_t h = frgi_options_hash(frg_gp_options(), &of_process, 0);
    h = frgi_options_hash(frg_gp_fit_options(), &of_fit, h);
    h = frg_hash(h, others, sizeof others);
    h = frg_hash(h, frg_version(), (int64_t)strlen(frg_version()));
    h = frg_hash(h, frg_isa(gp->ctx), (int64_t)strlen(frg_isa(gp->ctx)));
    for (int i = 0; i < gp->model.params.count; i++) {
        const frgi_gp_param *const p = &gp->model.params.p[i];
        const double of[] = {
            gp->model.theta[i], p->lower,   p->upper,   (double)p->transform, p->fixed, p->tie,
            p->prior.a,         p->prior.b, p->prior.c, (double)p->prior.kind};
        h = hash_numbers(h, of, sizeof of / sizeof *of);
    }
    frgi_text kernel = {0};
    const frg_status status =
        frgi_gp_kernel_print(gp->model.kernel, gp->ctx, &gp->model.params, &kernel);
    *hash = status < 0 ? 0 : frg_hash(h, kernel.text, (int64_t)strlen(kernel.text));
    frgi_text_free(gp->ctx, &kernel);
    return status;
}

static uint64_t hash_data(const frg_gp *gp)
{
    const int64_t sizes[] = {gp->data.n, gp->data.d, gp->data.q};
    uint64_t h = frg_hash(0, sizes, sizeof sizes);
    h = hash_numbers(h, gp->data.x, gp->data.n * gp->data.d);
    h = hash_numbers(h, gp->data.y, gp->data.n * gp->data.q);
    h = hash_numbers(h, gp->data.known_noise, gp->data.n);
    h = hash_numbers(h, gp->data.given_mean, gp->data.n);
    return gp->data.groups
               ? frg_hash(h + 1, gp->data.groups, gp->data.n * (int64_t)sizeof *gp->data.groups)
               : h;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int64_t length_of(const frgi_gp_answer *a)
{
    return (int64_t)sizeof *a + a->numbers * (int64_t)sizeof(double);
}

static void answer_at(const struct frgi_gp_fit_state *s, int64_t place, frgi_gp_answer *a)
{
    memcpy(a, s->from + place, sizeof *a);
}

static bool could_be_refused(int64_t status)
{
    return status == FRG_NOT_POSDEF || status == FRG_BROKE_DOWN || status == FRG_BAD_DATA;
}

/** An answer that the process could have given: a row or a promotion that it does not have would be
 *  followed. */
static bool is_sound(const struct frgi_gp_fit_state *s, const frgi_gp_answer *a)
{
    const int64_t p = s->free, n = s->gp->data.n, *const rows = a->value.closest;
    const int64_t numbers[GP_QUESTIONS] = {1, p, p * p};
    const bool promotes = s->gp->opts.precision == FRG_GP_F32 && s->gp->opts.auto_promote;
    return a->question >= 0 && a->question < GP_QUESTIONS && a->start >= 0 &&
           a->start < s->head.starts &&
           (a->status == FRG_OK ? a->numbers == numbers[a->question]
                                : could_be_refused(a->status) && a->numbers == 0) &&
           (a->swapped == 0 || (a->swapped == 1 && promotes)) && a->jitter >= 0 &&
           isfinite(a->jitter) && a->value.pivot >= -1 && a->value.pivot < n && rows[0] >= -1 &&
           rows[0] < n && rows[1] >= -1 && rows[1] < n && (rows[0] < 0) == (rows[1] < 0) &&
           (unsigned)a->value.storage <= FRG_GP_PACKED;
}

/** Counts the answers of each start in first[1 + start], checks them all; false where the bytes are
 *  none. */
static bool count_answers(struct frgi_gp_fit_state *s, int64_t *count)
{
    frgi_gp_answer a;
    *count = 0;
    for (int64_t at = 0; at < s->taken; at += length_of(&a), ++*count) {
        if (s->taken - at < (int64_t)sizeof a) {
            return false;
        }
        answer_at(s, at, &a);
        if (!is_sound(s, &a) || s->taken - at < length_of(&a)) {
            return false;
        }
        s->first[a.start + 1]++;
    }
    return true;
}

/** Where the answers of each start lie, in their order. */
static frg_status index_answers(struct frgi_gp_fit_state *s)
{
    int64_t count;
    frgi_gp_answer a;
    TRY(NEW0(s->ctx, &s->first, s->head.starts + 1, "the state of a fit"));
    if (!count_answers(s, &count)) {
        FAIL(s->ctx, E_CHECKPOINT, "the state of the fit makes no sense");
    }
    TRY(NEW(s->ctx, &s->place, count + 1, "the state of a fit"));
    for (int64_t i = 0; i < s->head.starts; i++) {
        s->first[i + 1] += s->first[i];
    }
    for (int64_t at = 0; at < s->taken; at += length_of(&a)) {
        answer_at(s, at, &a);
        s->place[s->first[a.start]++] = at;
    }
    for (int64_t i = s->head.starts; i > 0; i--) { /* each had moved to the end of its own */
        s->first[i] = s->first[i - 1];
    }
    s->first[0] = 0;
    return FRG_OK;
}

static frg_status take_up(struct frgi_gp_fit_state *s, const frg_checkpoint *c)
{
    int64_t bytes = 0;
    const void *const head = frg_checkpoint_get(c, "fit", &bytes);
    frgi_gp_state_head was;
    if (!head || bytes != (int64_t)sizeof was) {
        FAIL(s->ctx, E_CHECKPOINT, "the checkpoint holds no state of a fit");
    }
    memcpy(&was, head, sizeof was);
    if (was.data != s->head.data) { /* first, as starting values come from the data */
        return frgi_checkpoint_other_data(s->ctx, c);
    }
    if (was.options != s->head.options) {
        return frgi_checkpoint_other_options(s->ctx, c);
    }
    s->from = frg_checkpoint_get(c, "answers", &s->taken);
    if (!s->from || s->taken != was.bytes || was.starts != s->head.starts ||
        !(was.seconds >= 0 && isfinite(was.seconds))) {
        FAIL(s->ctx, E_CHECKPOINT, "the state of the fit makes no sense");
    }
    TRY(index_answers(s));
    TRY(GROW(s->ctx, &s->answers, s->taken + 1, "the state of a fit"));
    s->capacity = s->taken + 1;
    memcpy(s->answers, s->from, (size_t)s->taken);
    s->head.bytes = s->taken;
    s->began -= was.seconds;
    return FRG_OK;
}

frg_status frgi_gp_state_open(struct frgi_gp_fit_state *s, frg_gp *gp, const frg_gp_fit_opts *o,
                              frg_gp_optimizer method, int free, double *began)
{
    const frg_checkpoint *const from = gp->saving.from;
    gp->saving.from = NULL;
    *s = (struct frgi_gp_fit_state){.ctx = gp->ctx,
                                    .gp = gp,
                                    .save = gp->saving.save,
                                    .user = gp->saving.user,
                                    .began = *began,
                                    .free = free,
                                    .head = {.starts = o->starts}};
    omp_init_lock(&s->lock);
    if (gp->opts.user_kernel) {
        FAIL(gp->ctx, E_UNSUPPORTED, "the fit of a kernel of the user cannot be kept");
    }
    TRY(hash_options(gp, o, method, &s->head.options));
    s->head.data = hash_data(gp);
    if (from) {
        TRY(take_up(s, from));
    }
    *began = s->began;
    gp->saving.fit_state = s;
    return FRG_OK;
}

void frgi_gp_state_close(struct frgi_gp_fit_state *s)
{
    omp_destroy_lock(&s->lock);
    DROP(s->ctx, &s->answers);
    DROP(s->ctx, &s->place);
    DROP(s->ctx, &s->first);
}

void frgi_gp_state_rewind(struct frgi_gp_fit_state *s)
{
    s->head.bytes = s->taken;
}

/* ---- handing out ----------------------------------------------------------------------------- */

frgi_gp_cursor frgi_gp_state_seek(const struct frgi_gp_fit_state *s, int start)
{
    frgi_gp_cursor c = {.start = start};
    frgi_gp_answer a;
    if (s->first) {
        c.next = s->first[start];
        c.end = s->first[start + 1];
    }
    c.anew = c.next;
    for (int64_t i = c.end - 1; i > c.next; i--) {
        answer_at(s, s->place[i], &a);
        if (a.question == GP_ASKED_VALUE) {
            c.anew = i;
            break;
        }
    }
    return c;
}

/** The next answer of the state, which must be one to the question of a. */
static frg_status next_answer(const struct frgi_gp_fit_state *s, const frgi_gp_cursor *c,
                              const frgi_gp_answer *a, frgi_gp_answer *found)
{
    answer_at(s, s->place[c->next], found);
    if (found->question != a->question || found->point != a->point) {
        FAIL(s->gp->ctx, E_MISMATCH,
             "the state of the fit is that of another search than this one, start %lld answer %lld",
             frgi_nth(s->gp->ctx, c->start), frgi_nth(s->gp->ctx, c->next - s->first[c->start]));
    }
    return FRG_OK;
}

static frg_status noted(struct frgi_gp_fit_state *s, frg_status status)
{
    if (status < 0) {
        atomic_store(&s->failed, (int)status);
    }
    return status < 0 ? status : FRG_OK;
}

static frg_status recall(const struct frgi_gp_fit_state *s, frgi_gp_cursor *c, frgi_gp_answer *a,
                         double *out, bool *known)
{
    *known = c->next < c->anew;
    if (!*known) {
        return FRG_OK;
    }
    frgi_gp_answer found;
    TRY(next_answer(s, c, a, &found));
    memcpy(out, s->from + s->place[c->next] + (int64_t)sizeof found,
           (size_t)found.numbers * sizeof *out);
    *a = found;
    c->next++;
    return FRG_OK;
}

frg_status frgi_gp_state_recall(struct frgi_gp_fit_state *s, frgi_gp_cursor *c, frgi_gp_answer *a,
                                double *out, bool *known)
{
    return noted(s, recall(s, c, a, out, known));
}

static frg_status append(struct frgi_gp_fit_state *s, const frgi_gp_answer *a,
                         const double *numbers)
{
    const int64_t bytes = s->head.bytes + length_of(a);
    if (bytes > s->capacity) {
        TRY(GROW(s->ctx, &s->answers, 2 * bytes, "the state of a fit"));
        s->capacity = 2 * bytes;
    }
    memcpy(s->answers + s->head.bytes, a, sizeof *a);
    memcpy(s->answers + s->head.bytes + sizeof *a, numbers, (size_t)a->numbers * sizeof *numbers);
    s->head.bytes = bytes;
    return FRG_OK;
}

/** The answer that was computed is that of the state. */
static frg_status compare(const struct frgi_gp_fit_state *s, frgi_gp_cursor *c,
                          const frgi_gp_answer *a, const double *numbers)
{
    frgi_gp_answer was;
    TRY(next_answer(s, c, a, &was));
    const char *const bits = s->from + s->place[c->next] + (int64_t)sizeof was;
    c->next++;
    if (was.status != a->status ||
        memcmp(bits, numbers, (size_t)a->numbers * sizeof *numbers) != 0) {
        FAIL(s->gp->ctx, E_MISMATCH,
             "the process gives other bits than when the checkpoint was written: the libraries or "
             "the kind of machine differ");
    }
    return FRG_OK;
}

frg_status frgi_gp_state_add(struct frgi_gp_fit_state *s, frgi_gp_cursor *c,
                             const frgi_gp_answer *a, const double *numbers)
{
    frg_status status = FRG_OK;
    if (c->next < c->end) {
        status = compare(s, c, a, numbers);
    } else if (s->save) {
        omp_set_lock(&s->lock);
        status = append(s, a, numbers);
        omp_unset_lock(&s->lock);
    }
    return noted(s, status);
}

frg_status frgi_gp_state_offer(struct frgi_gp_fit_state *s, int stopped)
{
    frg_status status = FRG_OK;
    if (s->save) {
        omp_set_lock(&s->lock);
        s->head.seconds = frgi_seconds() - s->began;
        status = s->save(s->user, s->gp, stopped);
        omp_unset_lock(&s->lock);
    }
    return noted(s, status);
}

/* ---- the calls ------------------------------------------------------------------------------- */

void frg_gp_fit_keep(frg_gp *gp, frg_gp_saver save, void *user)
{
    if (gp) {
        gp->saving.save = save;
        gp->saving.user = user;
    }
}

frg_status frg_gp_fit_save(const frg_gp *gp, frg_checkpoint *c)
{
    if (!gp) {
        return FRG_BAD_ARG;
    }
    REQUIRE(gp->ctx, c, "c is NULL");
    REQUIRE(gp->ctx, gp->saving.fit_state,
            "there is no state: call frg_gp_fit_keep, and this from its call");
    const struct frgi_gp_fit_state *const s = gp->saving.fit_state;
    TRY(frg_checkpoint_put(c, "fit", &s->head, sizeof s->head));
    return frg_checkpoint_put(c, "answers", s->answers, s->head.bytes);
}

frg_status frg_gp_fit_resume(frg_gp *gp, const frg_checkpoint *c)
{
    if (!gp) {
        return FRG_BAD_ARG;
    }
    REQUIRE(gp->ctx, c, "c is NULL");
    gp->saving.from = c;
    return FRG_OK;
}
