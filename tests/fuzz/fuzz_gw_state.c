/* fuzz_gw_state.c - any numbers and arrays as the state of an alignment: an error, or a run that
 * ends.
 *
 * The first byte chooses the kind of run.  The bytes behind it, where there are enough, take the
 * place of those of a sound state from its end on; the hashes stay, which is all that keeps strange
 * states out of an honest run.
 */
#include <stdlib.h>
#include <string.h>

#include "fourge/gw.h"

#include "fuzz.h"

enum { N = 12, M = 11, SECTIONS = 32 };

typedef struct {
    frg_context *ctx;
    frg_checkpoint *state;
    const uint8_t *data;
    size_t size;
    char *bytes[SECTIONS]; /* copies of sections, changed */
    int count, calls, at;
} saver;

static const char *const names[] = {
    "run", "F",      "G",  "age0", "age1",   "past", "past_h", "past_g", "f0",
    "g0",  "pairs0", "f1", "g1",   "pairs1", "plan", "core",   "q",      "w",
    "h",   "lowest", "f2", "g2",   "pairs2", "age2", "age3",   "age4",   "age5"};
enum { CHANGED = 20 }; /* of them; the rest are copied, as the bytes of a checkpoint are borrowed */
enum { ASIDE = 20, LIKE = 8 }; /* the start set aside is changed as the first one kept is */

/** The sections of the state, some bytes of theirs replaced. */
static frg_status take(void *user, const frg_gw *s, int stopped)
{
    saver *const k = user;
    if (stopped || ++k->calls != k->at)
        return FRG_OK;
    frg_status status = frg_gw_save(s, k->state);
    for (size_t i = 0; status >= 0 && i < sizeof names / sizeof *names; i++) {
        int64_t bytes = 0;
        const void *const from = frg_checkpoint_get(k->state, names[i], &bytes);
        if (!from)
            continue;
        char *const copy = k->bytes[k->count++] = malloc((size_t)bytes + 1);
        memcpy(copy, from, (size_t)bytes);
        /* three bytes a change: which section, where, what */
        for (size_t at = 1; at + 3 <= k->size; at += 3) {
            const size_t head = i == 0 ? 16 : 0; /* the hashes */
            const size_t named = i >= ASIDE && i < ASIDE + 3 ? i - ASIDE + LIKE : i;
            if (k->data[at] % CHANGED == named && (size_t)bytes > head)
                copy[head + (size_t)(k->data[at + 1] * 7) % ((size_t)bytes - head)] =
                    (char)k->data[at + 2];
        }
        status = frg_checkpoint_put(k->state, names[i], copy, bytes);
    }
    return status < 0 ? status : FRG_IO; /* ends the run */
}

static frg_gw *open_run(frg_context *ctx, int which)
{
    static double x[N * 2], y[M * 2];
    for (int i = 0; i < N * 2; i++)
        x[i] = (double)((i * 37) % 19) / 7;
    for (int i = 0; i < M * 2; i++)
        y[i] = (double)((i * 29) % 23) / 9;
    const frg_array ax = frg_matrix(x, FRG_F64, N, 2, 2), ay = frg_matrix(y, FRG_F64, M, 2, 2);
    frg_gw_opts o;
    frg_gw_defaults(&o, sizeof o);
    o.distance = FRG_GW_DISTANCE_EUCLIDEAN;
    o.epsilon = 0.05;
    const int draws =
        which != 2 &&
        which != 3; /* the modes exact and landmark do not, and have one start and one size */
    o.anchors = draws ? 5 : o.anchors;
    o.max_iter = which == 0 ? 42 : 12;
    o.min_iter = 2;
    o.polish_passes = 5;
    o.n_coarse = which == 1 ? 5 : draws ? 0 : o.n_coarse;
    o.multiscale = which == 1 ? FRG_GW_MULTISCALE_ON : draws ? FRG_GW_MULTISCALE_OFF : o.multiscale;
    o.mode = which == 2 ? FRG_GW_EXACT : which == 3 ? FRG_GW_LANDMARK : FRG_GW_SAMPLED;
    o.rank = which == 4 ? 3 : 0;
    o.lr_dykstra_max_iter = o.rank > 0 ? 5 : o.lr_dykstra_max_iter;
    o.max_inner = 3;
    frg_gw *s = NULL;
    insist(frg_gw_create(&s, ctx, (frg_gw_side){.data = &ax}, (frg_gw_side){.data = &ay}, NULL,
                         &o) == FRG_OK);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    frg_context *const ctx = fuzz_context(0);
    if (!ctx)
        return 0;
    const int which = size > 0 ? data[0] % 5 : 0;
    saver k = {.ctx = ctx, .data = data, .size = size, .at = size > 0 ? 1 + data[0] / 5 : 1};
    frg_gw *s = open_run(ctx, which);
    insist(frg_checkpoint_create(&k.state, ctx, "gw", 0, 0) == FRG_OK);
    frg_gw_keep(s, take, &k);
    const frg_status first = frg_gw_run(s, NULL);

    insist(first == FRG_IO || k.calls < k.at);
    frg_gw_destroy(s);
    if (first == FRG_IO) {
        s = open_run(ctx, which);
        frg_status status = frg_gw_resume(s, k.state);
        if (status >= 0) {
            status = frg_gw_run(s, NULL);
            insist(status < 0 || frg_gw_plan(s));
        }
        insist(status >= 0 || *frg_message(ctx));
        frg_gw_destroy(s);
    }
    frg_checkpoint_destroy(k.state);
    for (int i = 0; i < k.count; i++)
        free(k.bytes[i]);
    frg_warnings_clear(ctx);
    insist(frg_bytes_held(ctx) == 0);
    frg_context_destroy(ctx);
    return 0;
}
