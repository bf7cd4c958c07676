/* approx_chol_cpu.tmpl.h - the sweeps for right-hand sides 4 and 8 wide: `vec` is one row of
 * them. */

/** For v in order: a fraction f of what is left of x_v goes to each neighbour, the remainder to the
 *  last one. */
static void FN(forward)(const frgi_ac_factor *a, double *values)
{
    vec *const x = (vec *)values;
    for (int64_t v = 0; v < a->n; v++) {
        const int64_t last = a->starts[v + 1] - 1;
        vec y = x[v];
        for (int64_t e = a->starts[v]; e < last; e++) {
            x[a->rows[e]] += y * a->f[e];
            y -= y * a->f[e];
        }
        if (last >= a->starts[v])
            x[a->rows[last]] += y;
        x[v] = y * a->inverse[v];
    }
}

/** For v in reverse: the transposed steps. */
static void FN(backward)(const frgi_ac_factor *a, double *values)
{
    vec *const x = (vec *)values;
    for (int64_t v = a->n - 1; v >= 0; v--) {
        const int64_t first = a->starts[v], last = a->starts[v + 1] - 1;
        vec y = x[v];
        if (last >= first)
            y += x[a->rows[last]];
        for (int64_t e = last - 1; e >= first; e--)
            y += (x[a->rows[e]] - y) * a->f[e];
        x[v] = y;
    }
}
