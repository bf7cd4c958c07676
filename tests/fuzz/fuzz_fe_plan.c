/* fuzz_fe_plan.c - any numbers and indices as a saved plan of the demeaner: an error, or a run that
 * ends.
 *
 * The first byte chooses the design.  Three bytes each behind it change a byte of a section of a
 * sound plan: which section, where, what; the hashes of the design stay, which is all that keeps
 * strange plans out of an honest run.
 */
#include <math.h>
#include <string.h>

#include "fe/fe_demean_plan.h"

#include "fuzz.h"

enum { N = 120, SECTIONS = 32, KINDS = 5 };

static const char *const names[] = {
    "cascade",    "s.starts",  "s.columns", "s.values",   "s.inverse", "s.border",    "direct",
    "d.order",    "d.start",   "d.first",   "d.parent",   "d.below",   "d.offset",    "d.rows",
    "d.diagonal", "d.panels",  "d.inverse", "ac",         "a.place",   "a.component", "a.weight",
    "a.starts",   "a.inverse", "a.rows",    "a.fractions"};
enum { NAMES = sizeof names / sizeof *names };

/** A ring, a random graph by its factor, the same by the approximate one, three factors by their
 *  factor and by Schwarz over pairs, of which two are a path and the third meets any of it. */
static frg_demean *open_plan(frg_context *ctx, int kind, int32_t *codes)
{
    const int factors = kind >= 3 ? 3 : 2;
    const bool path = kind == 0 || kind == 4;
    uint32_t random = 12345;
    for (int i = 0; i < N; i++) {
        random = random * 1664525u + 1013904223u;
        codes[i * factors] = i / 2;
        codes[i * factors + 1] = path ? (i + 1) / 2 % (N / 2) : (int32_t)(random >> 16) % 37;
        if (factors == 3) {
            codes[i * factors + 2] = kind == 3 ? i % 5 : (int32_t)(random >> 16) % 37;
        }
    }
    frg_demean_opts o;
    frg_demean_defaults(&o, sizeof o);
    o.max_iter = 50;
    o.method = kind == 1 || kind == 3 ? FRG_FE_DIRECT : FRG_FE_AUTO;
    o.precond = kind == 2   ? FRG_FE_PRECOND_AC
                : kind == 4 ? FRG_FE_PRECOND_SCHWARZ
                            : FRG_FE_PRECOND_AUTO;
    frg_demean *d = NULL;
    insist(frg_demean_create(&d, ctx, frg_matrix(codes, FRG_I32, N, factors, factors), NULL, NULL,
                             0, 0, &o) == FRG_OK);
    return d;
}

static frg_status run(frg_demean *d)
{
    double x[N], r[N] = {0};
    for (int i = 0; i < N; i++) {
        x[i] = sin(i);
    }
    return frg_demean_run(d, frg_matrix(x, FRG_F64, N, 1, 1), frg_matrix(r, FRG_F64, N, 1, 1), NULL,
                          NULL);
}

/** A copy of section i with the changes that are for it. */
static char *changed(const void *from, int64_t bytes, size_t i, const uint8_t *data, size_t size)
{
    char *const copy = malloc((size_t)bytes + 1);
    insist(copy != NULL);
    memcpy(copy, from, (size_t)bytes);
    for (size_t at = 1; at + 3 <= size && bytes > 0; at += 3) {
        if (data[at] % NAMES == i) {
            copy[(size_t)data[at + 1] * 7 % (size_t)bytes] = (char)data[at + 2];
        }
    }
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    frg_context *const ctx = fuzz_context(0);
    if (!ctx) {
        return 0;
    }
    int32_t codes[3 * N];
    char *copies[NAMES] = {NULL};
    fe_plan_facts facts;
    frg_checkpoint *c = NULL;
    frg_demean *const saved = open_plan(ctx, size > 0 ? data[0] % KINDS : 0, codes);
    insist(run(saved) >= 0);
    insist(frgi_fe_plan_put(saved, &facts, &c) == FRG_OK);
    for (size_t i = 0; i < NAMES; i++) {
        int64_t bytes = 0;
        const void *const from = frg_checkpoint_get(c, names[i], &bytes);
        if (from) {
            copies[i] = changed(from, bytes, i, data, size);
            insist(frg_checkpoint_put(c, names[i], copies[i], bytes) == FRG_OK);
        }
    }
    frg_demean *const plan = open_plan(ctx, size > 0 ? data[0] % KINDS : 0, codes);
    const frg_status taken = frgi_fe_plan_take(plan, c, "fuzz");
    insist(taken == FRG_OK || taken == FRG_BAD_DATA);
    insist(run(plan) >= 0 || taken == FRG_OK);
    frg_demean_destroy(plan);
    frg_checkpoint_destroy(c);
    frg_demean_destroy(saved);
    for (size_t i = 0; i < NAMES; i++) {
        free(copies[i]);
    }
    insist(frg_bytes_held(ctx) == 0);
    frg_context_destroy(ctx);
    return 0;
}
