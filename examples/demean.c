/* demean.c - takes two sets of fixed effects out of two columns, and reads the certificate.
 *
 *     cc demean.c $(pkg-config --cflags --libs fourge) -o demean
 */
#include <stdio.h>

#include <fourge/fe.h>

enum { ROWS = 8, EFFECTS = 2, COLUMNS = 2 };

int main(void)
{
    /* worker and firm of each row; the third worker moves between the firms */
    const int32_t codes[ROWS][EFFECTS] = {{0, 0}, {0, 0}, {1, 0}, {1, 0},
                                          {2, 0}, {2, 1}, {3, 1}, {3, 1}};
    const double x[ROWS][COLUMNS] = {{1, 2}, {3, 1}, {2, 5}, {4, 4},
                                     {6, 1}, {5, 3}, {7, 2}, {9, 8}};
    double r[ROWS][COLUMNS];
    frg_demean_column column[COLUMNS];

    frg_context *ctx = NULL;
    frg_demean *plan = NULL;
    frg_status status = frg_context_create(&ctx, NULL);
    if (status == FRG_OK) {
        status = frg_demean_create(&plan, ctx, frg_matrix(codes, FRG_I32, ROWS, EFFECTS, EFFECTS),
                                   NULL, NULL, 0, 0, NULL);
    }
    if (status == FRG_OK) {
        status = frg_demean_run(plan, frg_matrix(x, FRG_F64, ROWS, COLUMNS, COLUMNS),
                                frg_matrix(r, FRG_F64, ROWS, COLUMNS, COLUMNS), column, NULL);
    }
    if (status < 0) {
        fprintf(stderr, "%s: %s\n", frg_error_code(ctx), frg_message(ctx));
        return 1;
    }
    for (int i = 0; i < ROWS; i++) {
        printf("%6.3f %6.3f\n", r[i][0], r[i][1]);
    }
    for (int c = 0; c < COLUMNS; c++) {
        printf("column %d: converged %d, largest level mean %.0e of its sd, error at most %.0e\n",
               c + 1, column[c].converged, column[c].audit, column[c].error_bound);
    }
    frg_demean_destroy(plan);
    frg_context_destroy(ctx);
    return 0;
}
