#!/bin/sh
# The R package r/ on an installed library: R CMD check without errors, warnings and notes, its tests, the numbers of fixest and other
# peers, and Python's tables to the byte.
#
#     r_package.sh BUILD
#
# Skipped where R is not installed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
. "$here/tap.sh"
if ! command -v R >/dev/null 2>&1; then
    skip "the R package" "R is not installed"
    finish
    exit
fi
scratch=$(mktemp -d)
prefix=$scratch/prefix
PKG_CONFIG_PATH=$prefix/lib/pkgconfig
export PKG_CONFIG_PATH
mkdir "$scratch/library"

checked() {
    cd "$scratch" && R CMD build "$root/r" &&
        _R_CHECK_FORCE_SUGGESTS_=false _R_CHECK_SYSTEM_CLOCK_=false R CMD check --no-manual fourge_*.tar.gz >check.log 2>&1
    status=$?
    grep -A 4 '\(^\| \)\(NOTE\|WARNING\|ERROR\)$' check.log
    tail -n 25 check.log
    cat fourge.Rcheck/tests/*.fail 2>/dev/null
    [ "$status" = 0 ] && grep -q '^Status: OK' check.log
}
of_r() {
    R_LIBS=$scratch/library Rscript "$root/tests/golden/$1" "$root"
}
tables() {
    LC_ALL=C.UTF-8
    export LC_ALL
    of_r etable.R >"$scratch/r.txt" &&
        PYTHONPATH=$build/python /usr/bin/python3 -W ignore "$root/tests/golden/etable.py" >"$scratch/python.txt" &&
        [ -s "$scratch/r.txt" ] && diff "$scratch/python.txt" "$scratch/r.txt"
}
check "the library is installed for it" cmake --install "$build" --prefix "$prefix"
check "R CMD check has no error, no warning and no note" checked
check "it is installed" R CMD INSTALL --library="$scratch/library" "$scratch"/fourge_*.tar.gz
check "fixest's own numbers" of_r fixest.R
check "fixest's numbers of its other calls" of_r beside_fixest.R
check "numbers of other peers" of_r peers.R
if [ -d "$build/python" ]; then
    check "tables are Python's to the byte" tables
else
    skip "tables are Python's to the byte" "built without Python"
fi
finish
