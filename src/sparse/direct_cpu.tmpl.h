/* direct_cpu.tmpl.h - the triangular solves of one panel for right-hand sides 4 and 8 wide:
 * `vec` is one row of them.  Included by direct_cpu.c once per width.  Every column sees the
 * same operations in the same order at both widths; there is no scalar version, for compilers
 * contract that one differently. */

/** z <- z - L_ik x_k, summed over the n columns k before the panel. */
static inline void FN(below)(ptrdiff_t n, const double *restrict a, const vec *y, vec *restrict z)
{
    vec z0 = z[0], z1 = z[1], z2 = z[2], z3 = z[3], z4 = z[4], z5 = z[5], z6 = z[6], z7 = z[7];
    for (ptrdiff_t k = 0; k < n; k++) {
        const vec t = y[k];
        const double *const l = a + PANEL * k;
        z0 -= t * l[0];
        z1 -= t * l[1];
        z2 -= t * l[2];
        z3 -= t * l[3];
        z4 -= t * l[4];
        z5 -= t * l[5];
        z6 -= t * l[6];
        z7 -= t * l[7];
    }
    z[0] = z0;
    z[1] = z1;
    z[2] = z2;
    z[3] = z3;
    z[4] = z4;
    z[5] = z5;
    z[6] = z6;
    z[7] = z7;
}

/** x_i <- L_ii^-1 (x_i - sum_k L_ik x_k); a panel below the last block has no L_ii. */
static void FN(forward)(const frgi_panels *s, ptrdiff_t i, double *x)
{
    const ptrdiff_t first = panel_start(s, i);
    const ptrdiff_t n = PANEL * ((i < s->blocks ? i : s->blocks) - first);
    const double *const restrict a = panel_values(s, i);
    const vec *const y = (const vec *)x + PANEL * first;
    vec *const restrict z = (vec *)x + PANEL * i;
    FN(below)(n, a, y, z);
    const ptrdiff_t left = s->columns - PANEL * i;
    const ptrdiff_t columns = left < PANEL ? left : PANEL;
    const double *const restrict d = a + PANEL * n;
    for (ptrdiff_t c = 0; c < columns; c++) {
        const vec t = z[c] * s->inverse[PANEL * i + c];
        z[c] = t;
        for (ptrdiff_t r = c + 1; r < PANEL; r++)
            z[r] -= t * d[PANEL * c + r];
    }
}

/** x_i <- L_ii^-T x_i, then x_k -= L_ik' x_i for the columns k before. */
static void FN(backward)(const frgi_panels *s, ptrdiff_t i, double *x)
{
    const ptrdiff_t first = panel_start(s, i);
    const ptrdiff_t n = PANEL * ((i < s->blocks ? i : s->blocks) - first);
    const double *const restrict a = panel_values(s, i);
    vec *const restrict y = (vec *)x + PANEL * first;
    vec *const restrict z = (vec *)x + PANEL * i;
    const ptrdiff_t left = s->columns - PANEL * i;
    const ptrdiff_t columns = left < PANEL ? left : PANEL;
    const double *const restrict d = a + PANEL * n;
    for (ptrdiff_t c = columns - 1; c >= 0; c--) {
        vec t = z[c];
        for (ptrdiff_t r = c + 1; r < PANEL; r++)
            t -= z[r] * d[PANEL * c + r];
        z[c] = t * s->inverse[PANEL * i + c];
    }
    const vec z0 = z[0], z1 = z[1], z2 = z[2], z3 = z[3];
    const vec z4 = z[4], z5 = z[5], z6 = z[6], z7 = z[7];
    for (ptrdiff_t k = 0; k < n; k++) {
        const double *const l = a + PANEL * k;
        vec t = y[k];
        t -= z0 * l[0];
        t -= z1 * l[1];
        t -= z2 * l[2];
        t -= z3 * l[3];
        t -= z4 * l[4];
        t -= z5 * l[5];
        t -= z6 * l[6];
        t -= z7 * l[7];
        y[k] = t;
    }
}
