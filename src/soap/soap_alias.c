/* soap_alias.c - which arrays share memory: W of two parameters, or W and a gradient.
 *
 * Arrays that interleave, as blocks of columns of one matrix do, reach over each other and share
 * nothing.  So reaches are compared first, by a search over the parameters in the order of their
 * addresses, and where two meet, the numbers themselves: every run of one is looked for in the
 * other, axis by axis from the longest stride down.  Where the blocks of an axis lie apart, those
 * in the middle of the run lie in it whole: only the first and the last one need a look inside. */
#include <string.h>

#include "core/search.h"
#include "soap/soap_state.h"

/** Axes of more than one element with strides >= 1 in bytes, longest first, from the lowest address
 *  on. */
typedef struct {
    intptr_t base;
    int axes;
    /* one more than there are axes; span: bytes from an axis on, behind the last those of an
     * element */
    intptr_t count[FRG_MAX_DIM + 1], stride[FRG_MAX_DIM + 1], span[FRG_MAX_DIM + 1];
} lattice;

bool frgi_soap_is_empty(const frg_array *a)
{
    bool empty = false;
    for (int d = 0; d < a->ndim; d++) {
        empty |= a->shape[d] == 0;
    }
    return empty;
}

static lattice lattice_of(const frg_array *a)
{
    const intptr_t size = (intptr_t)frg_sizeof(a->dtype);
    lattice l = {.base = (intptr_t)frgi_array_base(a)};
    for (int d = 0; d < a->ndim; d++) {
        const intptr_t count = (intptr_t)a->shape[d], step = (intptr_t)a->stride[d] * size;
        const intptr_t length = step < 0 ? -step : step;
        if (count <= 1 || step == 0) {
            continue;
        }
        l.base += step < 0 ? (count - 1) * step : 0;
        int at = l.axes++;
        for (; at > 0 && l.stride[at - 1] < length; at--) {
            l.stride[at] = l.stride[at - 1];
            l.count[at] = l.count[at - 1];
        }
        l.stride[at] = length;
        l.count[at] = count;
    }
    l.span[l.axes] = size;
    for (int d = l.axes - 1; d >= 0; d--) {
        l.span[d] = (l.count[d] - 1) * l.stride[d] + l.span[d + 1];
    }
    return l;
}

soap_range frgi_soap_range(const frg_array *a)
{
    const lattice l = lattice_of(a);
    const char *const first = (const char *)l.base;
    return frgi_soap_is_empty(a) ? (soap_range){NULL, NULL}
                                 : (soap_range){first, first + l.span[0]};
}

static bool meet(soap_range a, soap_range b)
{
    return a.first < b.last && b.first < a.last;
}

/** Does the lattice from axis d on, at `base`, have a byte in first .. last - 1? */
static bool has_byte(const lattice *l, int d, intptr_t base, intptr_t first, intptr_t last)
{
    if (base >= last || base + l->span[d] <= first) {
        return false;
    }
    if (d == l->axes || base >= first ||
        base + l->span[d] <= last) { /* its first byte, or its last */
        return true;
    }
    const intptr_t step = l->stride[d], before = first - base - l->span[d + 1];
    intptr_t from = before < 0 ? 0 : before / step + 1, to = (last - 1 - base) / step;
    to = to < l->count[d] ? to : l->count[d] - 1;
    bool found = false;
    for (; from <= to && !found; from++) {
        found = has_byte(l, d + 1, base + from * step, first, last);
    }
    return found;
}

/** Is a run of `a` in b?  The last axes of a are one run as long as nothing lies between their
 *  elements. */
static bool runs_meet(const lattice *a, int d, intptr_t base, const lattice *b)
{
    intptr_t bytes = a->span[a->axes];
    for (int k = a->axes - 1; k >= d; k--) {
        bytes = bytes == a->stride[k] ? bytes * a->count[k] : 0;
    }
    if (bytes == a->span[d]) {
        return has_byte(b, 0, b->base, base, base + bytes);
    }
    bool found = false;
    for (intptr_t i = 0; i < a->count[d] && !found; i++) {
        found = runs_meet(a, d + 1, base + i * a->stride[d], b);
    }
    return found;
}

static bool share_memory(const frg_array *a, const frg_array *b)
{
    const lattice x = lattice_of(a), y = lattice_of(b);
    return runs_meet(&x, 0, x.base, &y);
}

static int by_address(const void *a, const void *b, const void *unused)
{
    const uintptr_t x = (uintptr_t)((const soap_range *)a)->first,
                    y = (uintptr_t)((const soap_range *)b)->first;
    (void)unused;
    return (x > y) - (x < y);
}

void frgi_soap_note_ranges(frg_soap *soap)
{
    soap_range *const r = soap->plan.ranges;
    for (int64_t i = 0; i < soap->n_params; i++) {
        r[i] = soap->params[i]->range;
    }
    frgi_sort(r, soap->n_params, sizeof *r, by_address, NULL);
    for (int64_t i = 1; i < soap->n_params; i++) {
        r[i].last = r[i].last > r[i - 1].last ? r[i].last : r[i - 1].last;
    }
}

/** Does it reach into any parameter's range?  The last that begins before its end is the one whose
 *  range ends last. */
static bool may_share(const frg_soap *soap, soap_range g)
{
    const soap_range end = {.first = g.last};
    const int64_t before =
        frgi_count_before(soap->plan.ranges, soap->n_params, sizeof end, &end, by_address, NULL);
    return before > 0 && soap->plan.ranges[before - 1].last > g.first;
}

const soap_param *frgi_soap_owner(const frg_soap *soap, const frg_array *a)
{
    const soap_range range = frgi_soap_range(a);
    if (!range.first || (soap->plan.ready && !may_share(soap, range))) {
        return NULL;
    }
    for (int64_t i = 0; i < soap->n_params; i++) {
        const soap_param *const p = soap->params[i];
        if (meet(range, p->range) && share_memory(a, &p->w)) {
            return p;
        }
    }
    return NULL;
}
