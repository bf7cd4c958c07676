#!/bin/sh
# Every public header compiles alone, as C11 and C++17, without a word from the compilers.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/tap.sh"

# alone COMPILER LANGUAGE STANDARD HEADER
alone() {
    echo "#include \"$4\"" | "$1" -x "$2" -std="$3" -Wall -Wextra -Wpedantic -Werror -I"$root/include" -fsyntax-only -
}
for header in "$root"/include/fourge/*.h; do
    name=fourge/$(basename "$header")
    for compiler in gcc clang; do
        if command -v "$compiler" >/dev/null; then
            check "$name as C11, $compiler" alone "$compiler" c c11 "$name"
        fi
    done
    if command -v g++ >/dev/null; then
        check "$name as C++17, g++" alone g++ c++ c++17 "$name"
    else
        skip "$name as C++17" "no g++"
    fi
done
finish
