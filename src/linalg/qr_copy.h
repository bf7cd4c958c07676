/* qr_copy.h - matrices of any strides and floating-point type into columns of one type, and
 * back. */
#ifndef FRGI_QR_COPY_H
#define FRGI_QR_COPY_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

/** to (f64 or f32, columns ld apart) <- a (two axes); rows and columns beyond a's are set to 0.  By
 *  a team of threads. `then`, unless it is NULL, is called for every column of a's while it is in
 *  the cache. */
void frgi_qr_take(const frg_array *a, bool f64, ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t ld,
                  void *to, int team, void (*then)(void *user, ptrdiff_t j), void *user);
/** a <- the columns at `from`, rounded to nearest. */
void frgi_qr_give(const frg_array *a, bool f64, ptrdiff_t ld, const void *from, int team);
void frgi_qr_fill(const frg_array *a, double value);

#pragma GCC visibility pop
#endif
