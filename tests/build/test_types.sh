#!/bin/sh
# A type checker reads the package: mypy accepts the stub and every module, and refuses what is planted;
# stubtest finds the stub and the extension alike.      test_types.sh BUILD
# mypy comes from the package index once and stays in BUILD/types-env, with a NumPy for its annotations.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
. "$here/tap.sh"
scratch=$(mktemp -d)
tools=$build/types-env
wanted="mypy==2.4.1 numpy==2.4.6"

# shellcheck disable=SC2086 # a list of words
if ! kept_environment "$tools" "$scratch/log" $wanted; then
    skip "the types" "mypy is not here and the package index cannot be reached: $(tail -n 1 "$scratch/log")"
    finish
    exit
fi

# checked WHAT...: what mypy says of it with the settings of pyproject.toml
checked() {
    (cd "$root/python" && MYPYPATH=$root/python "$tools/bin/mypy" --config-file "$root/pyproject.toml" \
        --cache-dir "$build/types-cache" "$@")
}
start='from fourge import fe, gp, gw
x = [[0.0], [1.0]]'

# refused MESSAGE LINE: a program of that line gets that message.  Each has a name of its own, as mypy knows a file that it has
# seen by its name, size and time.
number=0
refused() {
    number=$((number + 1))
    printf '%s\n%s\n' "$start" "$2" >"$scratch/program$number.py"
    ! checked "$scratch/program$number.py" >"$scratch/said" 2>&1 && cat "$scratch/said" && grep -q "$1" "$scratch/said"
}
the_stub_is_the_extension() {
    (cd "$scratch" && PYTHONPATH=$build/python "$tools/bin/python" -m mypy.stubtest fourge._fourge \
        --ignore-disjoint-bases)
}
check "mypy accepts the stub and every module" checked -p fourge
printf '%s\ngw.align(x, x, mode="vertex", threads=2).argmax()\n' "$start" >"$scratch/right.py"
check "and a program that is right" checked "$scratch/right.py"
check "it refuses a misspelt option" refused 'keyword argument "epsilonn"' 'gw.align(x, x, epsilonn=0.1)'
check "and a word that is none of an option's" refused 'incompatible type' 'gw.align(x, x, mode="vertx")'
check "and a method that a result lacks" refused 'no attribute "cof"' 'fe.feols("y ~ x", {}).cof()'
check "stubtest finds the stub and the extension alike" the_stub_is_the_extension
finish
