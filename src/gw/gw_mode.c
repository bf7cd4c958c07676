/* gw_mode.c - the mode that `auto` takes, and why.
 *
 *     an option is given that the mode vertex has no part in        sampled
 *     marginals are relaxed or partial                              sampled
 *     more points than the mode vertex has time or memory for       sampled
 *     else                                                          vertex
 *
 * and the plan of the mode vertex is what sampled steps begin at, where they are taken because of
 * an option.
 *
 * An option counts as given where its value is not the default, or where frg_gw_give named it.
 */
#include <stdio.h>
#include <string.h>

#include "gw/gw_align.h"

/* Points of the larger side up to which `auto` takes the mode vertex: of an assignment, a run of a
 * minute or two on two cores; of other marginals, whose transport problems take more steps, some
 * ten seconds. */
enum { MOST_ASSIGNED = 30000, MOST_TRANSPORTED = 5000 };

/* Pairs of points up to which sampled steps begin at a vertex: it takes as long as they do, or some
 * times that. */
#define MOST_PAIRS 1e6

/** An option that only the modes with entropy have; frg_gw_opts.given has a bit for each in this
 *  order, so that a new one comes last. */
typedef struct {
    const char *name;
    double now, usual;
} entropic_option;

enum { ENTROPIC_OPTIONS = 27 };

static void list_options(const frg_gw_opts *o, entropic_option list[ENTROPIC_OPTIONS])
{
    frg_gw_opts usual;
    frg_gw_defaults(&usual, sizeof usual);
#define OPTION(name)                                                                               \
    {                                                                                              \
#name, (double)o->name, (double)usual.name                                                 \
    }
    const entropic_option options[ENTROPIC_OPTIONS] = {OPTION(anchors),     OPTION(epsilon),
                                                       OPTION(anneal),      OPTION(damping),
                                                       OPTION(min_iter),    OPTION(tol),
                                                       OPTION(max_inner),   OPTION(marginal_tol),
                                                       OPTION(reference),   OPTION(lambda_ema_beta),
                                                       OPTION(scale),       OPTION(sampling),
                                                       OPTION(multiscale),  OPTION(n_coarse),
                                                       OPTION(n_start),     OPTION(fine_steps),
                                                       OPTION(polish),      OPTION(round),
                                                       OPTION(polish_tol),  OPTION(polish_passes),
                                                       OPTION(cost_store),  OPTION(rank),
                                                       OPTION(store_plan),  OPTION(diag_exact),
                                                       OPTION(auto_store),  OPTION(start_from),
                                                       {"potentials", 0, 0}};
#undef OPTION
    memcpy(list, options, sizeof options);
}

void frg_gw_give(frg_gw_opts *o, const char *option)
{
    if (!o || !option) {
        return;
    }
    entropic_option list[ENTROPIC_OPTIONS];
    list_options(o, list);
    for (int i = 0; i < ENTROPIC_OPTIONS; i++) {
        o->given |= (uint64_t)(strcmp(list[i].name, option) == 0) << i;
    }
}

static bool is_given(const frg_gw_opts *o, const entropic_option *option, int i)
{
    return (o->given >> i & 1) != 0 || option->now < option->usual || option->now > option->usual;
}

const char *frgi_gw_entropic_option(const frg_gw_opts *o)
{
    entropic_option list[ENTROPIC_OPTIONS];
    list_options(o, list);
    for (int i = 0; i < ENTROPIC_OPTIONS; i++) {
        if (is_given(o, &list[i], i)) {
            return list[i].name;
        }
    }
    return NULL;
}

void frgi_gw_take_sampled(frg_gw *s, const char *given)
{
    s->o.mode = FRG_GW_SAMPLED;
    snprintf(s->why, sizeof s->why, "auto: %s is given", given);
}

/** Whether an option is given that decides how sampled steps begin. */
static bool start_is_given(const frg_gw_opts *o)
{
    static const char *const names[] = {"n_start", "multiscale", "n_coarse", "fine_steps", "rank"};
    entropic_option list[ENTROPIC_OPTIONS];
    list_options(o, list);
    bool found = false;
    for (int i = 0; i < ENTROPIC_OPTIONS; i++) {
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            found |= is_given(o, &list[i], i) && strcmp(names[k], list[i].name) == 0;
        }
    }
    return found;
}

/** Sampled steps that auto takes because of an option begin at the plan of the mode vertex, unless
 *  another start is given. */
static void choose_start(frg_gw *s)
{
    frg_gw_opts *const o = &s->o;
    const bool few = (double)s->x.n * (double)s->y.n <= MOST_PAIRS;
    if (o->start_from == FRG_GW_START_AUTO && few && frgi_is_balanced(o) && !start_is_given(o) &&
        frgi_gw_fits_vertex(s)) {
        o->start_from = FRG_GW_START_VERTEX;
    }
}

bool frgi_gw_assigns(const frg_gw *s)
{
    bool equal = s->x.n == s->y.n;
    for (int64_t i = 1; equal && i < s->x.n; i++) {
        equal = s->a[i] == s->a[0] && s->b[i] == s->b[0];
    }
    return equal;
}

/** Whether the larger side is within MOST_ASSIGNED, or MOST_TRANSPORTED. */
static bool is_small(const frg_gw *s)
{
    const int64_t larger = s->x.n > s->y.n ? s->x.n : s->y.n;
    return larger <= (frgi_gw_assigns(s) ? MOST_ASSIGNED : MOST_TRANSPORTED);
}

void frgi_gw_choose_mode(frg_gw *s, const char *option)
{
    s->report.mode_reason = s->why;
    s->by_auto = s->o.mode == FRG_GW_AUTO;
    if (!s->by_auto) {
        snprintf(s->why, sizeof s->why, "asked for");
        return;
    }
    s->o.mode = FRG_GW_SAMPLED;
    if (option) {
        snprintf(s->why, sizeof s->why, "auto: %s is given", option);
        choose_start(s);
    } else if (!frgi_is_balanced(&s->o)) {
        snprintf(s->why, sizeof s->why, "auto: marginals are relaxed or partial");
    } else if (!is_small(s)) {
        snprintf(s->why, sizeof s->why, "auto: too many points for the mode vertex");
    } else if (!frgi_gw_fits_vertex(s)) {
        snprintf(s->why, sizeof s->why, "auto: no memory for the mode vertex");
    } else {
        s->o.mode = FRG_GW_VERTEX;
        snprintf(s->why, sizeof s->why, "auto: no option of the entropic modes is given");
    }
}
