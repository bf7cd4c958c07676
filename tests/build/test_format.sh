#!/bin/sh
# The form of C files: what clang-format 14 makes of them by .clang-format, and 100 columns in the library, the program and
# the extension, comments included (clang-format moves no comment).
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/tap.sh"
scratch=$(mktemp -d)
cd "$root" || exit 1

into "$scratch/sources" source_files
found "$scratch/files" -E '\.[ch]$' "$scratch/sources"
check "there are files" test -s "$scratch/files"

formatted() {
    xargs -P "$(nproc)" -n 16 clang-format-14 --dry-run -Werror <"$scratch/files"
}
if command -v clang-format-14 >/dev/null; then
    check "clang-format has nothing to change" formatted
else
    skip "clang-format has nothing to change" "clang-format-14 is not installed (Debian: apt-get install clang-format-14)"
fi

LC_ALL=C.UTF-8 found "$scratch/wide" -rnE '^.{101,}' src include cli python/ext --include='*.[ch]'
check "no line is wider than 100 columns" empty "$scratch/wide"

finish
