#!/bin/sh
# A sanitizer that sees nothing proves nothing: a program with a race must be reported, the same program
# without it must not.  Needs clang-14 and the environment of the thread-sanitizer run.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch=$(mktemp -d)

cat >"$scratch/race.c" <<'END'
#include <stdio.h>
int main(void)
{
    double a[1000], sum = 0;
#pragma omp parallel for num_threads(4)
    for (int i = 0; i < 1000; i++)
        a[i] = i;
#pragma omp parallel for num_threads(4)
    for (int i = 0; i < 1000; i++) {
#ifdef RACE
        sum += a[999 - i];
#else
        a[999 - i] += 1;
#endif
    }
    printf("%g %g\n", sum, a[3]);
    return 0;
}
END

compile() {
    clang-14 -g -O1 -fopenmp -fsanitize=thread "$@" "$scratch/race.c" -o "$scratch/program"
}
reported() {
    "$scratch/program" >"$scratch/said" 2>&1
    grep -q 'WARNING: ThreadSanitizer: data race' "$scratch/said"
}
silent() {
    "$scratch/program" >"$scratch/said" 2>&1 && ! grep -q 'WARNING: ThreadSanitizer' "$scratch/said"
}
check "compiles with a race" compile -DRACE
check "the race is seen" reported
check "compiles without" compile
check "barriers and joins are understood" silent
finish
