/* ext_fortran.c - the one function of Fortran's runtime that the LAPACK part of OpenBLAS calls.
 *
 * With OpenBLAS inside the package this is what is left of libgfortran: sormtr and its relatives
 * put two letters of options together before they ask for a block size.  Twelve lines here save the
 * wheel a library of 3 MB.  The name and the arguments are those of gfortran 8 and later; lengths
 * come before their text.
 */
#include <stddef.h>
#include <string.h>

void _gfortran_concat_string(size_t n, char *to, size_t n_a, const char *a, size_t n_b,
                             const char *b);

/** to = a // b, cut at n or filled up with blanks. */
void _gfortran_concat_string(size_t n, char *to, size_t n_a, const char *a, size_t n_b,
                             const char *b)
{
    const size_t from_a = n_a < n ? n_a : n;
    const size_t from_b = n_b < n - from_a ? n_b : n - from_a;
    memcpy(to, a, from_a);
    memcpy(to + from_a, b, from_b);
    memset(to + from_a + from_b, ' ', n - from_a - from_b);
}
