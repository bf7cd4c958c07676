#!/bin/sh
# Every public header compiles alone, as C11 and C++17, without a word from the compilers, and says of every function
# that returns a status how it fails.
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

# nameless HEADER...: their status functions whose comment (or that of the declarations they stand with) names no error and no
# status but FRG_OK.
nameless() {
    awk '
        BEGIN { names = "(^|[^A-Z_])E_[A-Z]|FRG_(MAX_ITER|TIME_LIMIT|INTERRUPTED|STALLED|PARTIAL|BAD_ARG|NO_|UNSUPPORTED|NOT_POSDEF)" }
        /^\/\*\*/ { text = ""; inside = 1 }
        inside { text = text $0; if (/\*\//) inside = 0; next }
        /^FRG_API/ { declaration = "" ; open = 1 }
        open {
            declaration = declaration " " $0
            if (!/;/) next
            open = 0
            if (declaration ~ /FRG_MUST_USE frg_status/ && text !~ names) {
                sub(/\(.*/, "", declaration); sub(/.* /, "", declaration); print declaration
            }
            next
        }
        { text = "" }' "$@"
}
scratch=$(mktemp -d)
into "$scratch/nameless" nameless "$root"/include/fourge/*.h
check "every status function names its errors" empty "$scratch/nameless"
finish
