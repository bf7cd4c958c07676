/* denormals.h - denormal numbers as zeros, while a thread computes.
 *
 * Kernels of far points, plans and moments that decay fill whole arrays with numbers below 1e-308
 * (1e-38 in float), or with products that fall there, and a processor that hands these to microcode
 * takes a hundred times as long for each.  Every thread of a parallel region enters and leaves by
 * itself, so that the bits do not depend on who computes and the caller's threads, those of OpenMP
 * among them, keep the mode they had.
 */
#ifndef FRGI_CORE_DENORMALS_H
#define FRGI_CORE_DENORMALS_H

#if defined(__SSE2__)
#include <immintrin.h>
#endif

/** Returns what frgi_restore_denormals() takes. */
static inline unsigned frgi_flush_denormals(void)
{
#if defined(__SSE2__)
    const unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | 0x8040); /* flush to zero, denormals are zero */
    return mode;
#else
    return 0;
#endif
}

static inline void frgi_restore_denormals(unsigned mode)
{
#if defined(__SSE2__)
    _mm_setcsr(mode);
#else
    (void)mode;
#endif
}

/** IEEE's numbers, whatever the caller computes with: for what has an answer for denormal input. */
static inline unsigned frgi_keep_denormals(void)
{
    const unsigned mode = frgi_flush_denormals();
    frgi_restore_denormals(mode & ~0x8040u);
    return mode;
}

#endif
