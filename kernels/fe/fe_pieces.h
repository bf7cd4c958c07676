/* fe_pieces.h - what the kernels of fe and fe_lsmr share: sums of a group column by column, and sums
 * over stretches of the transposed index.
 *
 * K columns lie side by side, any number of them; an item has one of them where a group has K items
 * or more, and items that are left over have no place.  In smaller groups all items share a column.
 */

/** The columns of an item: lane, lane + width, ...; its place among the `per` items of a column,
 *  FE_NO_PLACE: it has none; and the first span of a tree over these. */
typedef struct {
    int lane, width, place, per, span;
} fe_lanes;
#define FE_NO_PLACE (1 << 30) /* beyond the last of anything */

FUNCTION fe_lanes fe_lanes_of(int k, int item, int items)
{
    fe_lanes l;
    l.width = items < k ? 1 : k;
    l.lane = item % l.width;
    l.per = items / l.width;
    l.place = item / l.width < l.per ? item / l.width : FE_NO_PLACE;
    l.span = 0;
    for (int span = 1; span < l.per; span *= 2) {
        l.span = span;
    }
    return l;
}

/** Does the item take another's in, `span` places further? */
FUNCTION int fe_lane_takes(const fe_lanes *l, int span)
{
    return l->place < span && l->place + span < l->per;
}

/** The sum of x over the items of a column, by a tree; every item has it. */
INLINED FUNCTION real fe_lane_sum(LOCAL real *scratch, real x, const fe_lanes *l)
{
    scratch[LID0] = x;
    BARRIER;
    for (int span = l->span; span > 0; span /= 2) {
        if (fe_lane_takes(l, span)) {
            scratch[LID0] += scratch[LID0 + span * l->width];
        }
        BARRIER;
    }
    const real all = scratch[l->lane];
    BARRIER;
    return all;
}

INLINED FUNCTION real fe_lane_max(LOCAL real *scratch, real x, const fe_lanes *l)
{
    scratch[LID0] = x;
    BARRIER;
    for (int span = l->span; span > 0; span /= 2) {
        if (fe_lane_takes(l, span)) {
            scratch[LID0] = FMAX(scratch[LID0], scratch[LID0 + span * l->width]);
        }
        BARRIER;
    }
    const real all = scratch[l->lane];
    BARRIER;
    return all;
}

/** Of column k: the sum of p over the reduced indices of row i. */
FUNCTION real fe_row_value(GLOBAL const real *p, GLOBAL const i32 *index, int remaining, i64 i,
                           int k, int columns)
{
    real e = 0;
    for (int f = 0; f < remaining; f++) {
        e += p[(i64)index[i * remaining + f] * columns + k];
    }
    return e;
}

/** Does any column go on? */
FUNCTION int fe_goes_on(GLOBAL const i32 *counts, int columns, int slot)
{
    int on = 0;
    for (int k = 0; k < columns; k++) {
        on |= counts[(slot * FDC_COUNT + FDC_DONE) * columns + k] == FD_RUNNING;
    }
    return on;
}

/** What entry e of the transposed index adds: z of its row or eliminated level, times the row's value
 *  where it has one. */
FUNCTION real fe_entry(GLOBAL const real *v, GLOBAL const real *values, GLOBAL const i64 *at, i32 e,
                       int k)
{
    GLOBAL const real *const z = v + at[FD_Z];
    return at[FD_VALUED]
               ? values[at[FD_VALUE] + e] * z[(i64)(e / (i32)at[FD_REMAINING]) * at[FD_K] + k]
               : z[(i64)e * at[FD_K] + k];
}

/** The sum of z over entries first + place, first + place + step, ... of a piece. */
FUNCTION real fe_piece_sum(GLOBAL const real *v, GLOBAL const real *values, GLOBAL const i32 *w,
                           GLOBAL const i64 *at, i64 piece, int k, int place, int step)
{
    GLOBAL const i32 *const of = w + at[FD_PIECE] + 2 * piece, *const entry = w + at[FD_ENTRY];
    real sum = 0;
    for (i64 e = (i64)of[0] + place; e < (i64)of[0] + of[1]; e += step) {
        sum += fe_entry(v, values, at, entry[e], k);
    }
    return sum;
}

KERNEL void fe_pieces(ITEM GLOBAL real *v, GLOBAL const real *values, GLOBAL const i32 *w,
                      GLOBAL const i32 *counts, GLOBAL const i64 *at, i32 slot)
{
    LOCAL_MEM(real, scratch, GROUP_MOST);
    const int columns = (int)at[FD_K], on = fe_goes_on(counts, columns, slot);
    const fe_lanes l = fe_lanes_of(columns, LID0, LSIZE0);
    const i64 groups = (at[FD_SHORT] + FD_PIECE_GROUP - 1) / FD_PIECE_GROUP;
    const i64 first = GID0 * FD_PIECE_GROUP;
    const i64 last = on && GID0 < groups ? least(first + FD_PIECE_GROUP, at[FD_SHORT]) : first;
    const i64 piece = at[FD_SHORT] + GID0 - groups;
    for (int k = l.lane; k < columns; k += l.width) {
        for (i64 s = first + l.place; s < last; s += l.per) {
            v[at[FD_SUM] + s * columns + k] = fe_piece_sum(v, values, w, at, s, k, 0, 1);
        }
        real sum = 0;
        if (on && GID0 >= groups) {
            sum = fe_piece_sum(v, values, w, at, piece, k, l.place, l.per);
        }
        sum = fe_lane_sum(scratch, sum, &l);
        if (l.place == 0 && on && GID0 >= groups) {
            v[at[FD_SUM] + piece * columns + k] = sum;
        }
    }
}

/** The sum of z over the rows (or eliminated levels) of reduced unknown l. */
FUNCTION real fe_level_sum(GLOBAL const real *v, GLOBAL const i32 *w, GLOBAL const i64 *at, i64 l,
                           int k)
{
    GLOBAL const i32 *const pieces = w + at[FD_LEVEL_PIECE], *const of = w + at[FD_PIECE_OF];
    real sum = 0;
    for (i32 s = pieces[l]; s < pieces[l + 1]; s++) {
        sum += v[at[FD_SUM] + (i64)of[s] * at[FD_K] + k];
    }
    return sum;
}
