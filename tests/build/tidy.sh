#!/bin/sh
# clang-tidy 14 has nothing to say of the library's and the program's sources by the checks of .clang-tidy; of a planted
# mistake it has.  The texts of the CPU levels are written for GCC's vectors.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/tap.sh"
scratch=$(mktemp -d)
cd "$root" || exit 1

if ! command -v clang-tidy-14 >/dev/null; then
    skip "clang-tidy has nothing to say" "clang-tidy-14 is not installed (Debian: apt-get install clang-tidy-14)"
    finish
    exit
fi

# tidy FILE...: fails where clang-tidy warns, or ends before it is done.
tidy() {
    printf '%s\n' "$@" | xargs -P "$(nproc)" -n 8 sh -c 'clang-tidy-14 --quiet --warnings-as-errors="*" "$@" -- -std=gnu11 \
        -fopenmp -D_GNU_SOURCE -DFOURGE_LEVELS=13 -DFOURGE_COMMIT="\"\"" \
        -DFOURGE_PLUGIN_FOLDER="\"\"" -DFOURGE_LINKED_PLUGINS=0 -Iinclude -Isrc -Icli -Ikernels -I/usr/include/suitesparse \
        $(pkg-config --cflags openblas)' tidy
}

seen() {
    cp .clang-tidy "$scratch"
    printf 'int f(int n);\nint f(int n)\n{\n    if (n > 0);\n        n = 1;\n    return n;\n}\n' >"$scratch/planted.c"
    tidy "$scratch/planted.c" | grep bugprone-suspicious-semicolon
}
check "a planted mistake is seen" seen
into "$scratch/sources" find src cli -name '*.c' ! -name '*_cpu.c'
# shellcheck disable=SC2046 # a list of files
check "clang-tidy has nothing to say" tidy $(cat "$scratch/sources")

finish
