/* registers.h - how wide a vector is at the CPU level that a *_cpu.c is compiled for.
 *
 * GCC 12 takes wider vectors apart, compares them lane by lane and keeps them in memory.
 */
#ifndef FRGI_CORE_REGISTERS_H
#define FRGI_CORE_REGISTERS_H

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#endif
