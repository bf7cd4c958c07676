#!/bin/sh
# Every program of examples/ compiles against the public headers without a warning and ends with status 0,
# every script there does too: test_examples.sh BUILD.  They run in an empty folder beside a link to data/.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
. "$here/tap.sh"
scratch=$(mktemp -d)
ln -s "$root/data" "$scratch/data"
export LD_LIBRARY_PATH="$build" PATH="$build:$PATH"

compiles() {
    gcc -std=c11 -Wall -Wextra -Werror -I"$root/include" "$1" -o "$2" -L"$build" -lfourge -lm
}
inside() {
    (cd "$scratch" && "$@")
}
any=
for source in "$root"/examples/*.c; do
    [ -f "$source" ] || continue
    any=1
    name=$(basename "$source" .c)
    check "$name.c compiles" compiles "$source" "$scratch/$name"
    check "$name.c runs" inside "$scratch/$name"
done
for script in "$root"/examples/*.sh; do
    [ -f "$script" ] || continue
    any=1
    check "$(basename "$script") runs" inside sh "$script"
done
[ -n "$any" ] || skip "examples" "there are none"
finish
