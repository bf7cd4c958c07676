/* cpu_level.h - which of the levels of x86-64 code this machine runs; nothing else of the library,
 * so that CMake asks it, too (tools/cpu_level.c).
 */
#ifndef FRGI_CORE_CPU_LEVEL_H
#define FRGI_CORE_CPU_LEVEL_H

/** Index of the highest level of this machine: 0 plain, 1 v2, 2 v3, 3 v4. */
static inline int frgi_cpu_level(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
        return 3;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2")) {
        return 2;
    }
    return __builtin_cpu_supports("sse4.2") ? 1 : 0;
#else
    return 0;
#endif
}

#endif
