#!/bin/sh
# The wheel of the Python package, built by scikit-build-core in the build tree that is there (nothing of the
# library is compiled again), installed where there is neither a compiler nor anything but NumPy, and tested there.
#     test_wheel.sh BUILD
# scikit-build-core comes from the package index once and stays in BUILD/wheel-env.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
. "$here/tap.sh"
scratch=$(mktemp -d)
tools=$build/wheel-env
backend="scikit-build-core>=0.11"

if [ "$(cat "$tools/installed" 2>/dev/null)" != "$backend" ]; then
    if ! { rm -rf "$tools" && /usr/bin/python3 -m venv "$tools" &&
        "$tools/bin/pip" install -q --disable-pip-version-check --retries 1 "$backend" &&
        echo "$backend" >"$tools/installed"; } >"$scratch/log" 2>&1; then
        skip "the wheel" "scikit-build-core is not here and the package index cannot be reached: $(tail -n 1 "$scratch/log")"
        finish
        exit
    fi
fi

# scikit-build-core sets the prefix of the install for itself; the tree keeps its own.
prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$build/CMakeCache.txt")
make_wheel() {
    CMAKE_GENERATOR=$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$build/CMakeCache.txt") \
        "$tools/bin/pip" wheel "$root" --no-deps --no-build-isolation --no-index --disable-pip-version-check -w "$scratch" \
        --config-settings build-dir="$build" --config-settings cmake.define.FOURGE_TESTS=ON \
        --config-settings cmake.args="-DCMAKE_INSTALL_PREFIX=$prefix"
}
check "pip makes the wheel" make_wheel
wheel=$(echo "$scratch"/fourge-*.whl)
if [ ! -f "$wheel" ]; then
    finish
    exit
fi
check "it is of the stable ABI and below 15 MB" sh -c \
    'case $1 in *-cp311-abi3-*) [ "$(wc -c <"$1")" -lt 15000000 ] ;; *) false ;; esac' sh "$wheel"

check "it goes into an empty environment" sh -c '
    /usr/bin/python3 -m venv --without-pip --system-site-packages "$2" &&
    "$3/bin/pip" --disable-pip-version-check --python "$2/bin/python" install -q --no-index --no-deps --ignore-installed "$1"' \
    sh "$wheel" "$scratch/env" "$tools"

# bare COMMAND...: with this environment alone on the path
bare() {
    (cd "$scratch" && env -i HOME="$scratch" PATH="$scratch/env/bin" OMP_WAIT_POLICY=passive "$@")
}
# Of shared libraries it may need those of every system, and the OpenMP runtime that it carries.
only_system_libraries() {
    readelf -d "$scratch"/env/lib/python3*/site-packages/fourge/_fourge.abi3.so | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
        grep -vxE 'lib(c|m|z|gomp|pthread)\.so\.[0-9]+|ld-linux-.*' >"$scratch/needed"
    empty "$scratch/needed"
}
check "it needs no library that a system lacks" only_system_libraries
check "run paths name whole folders" sh -c '. "$1" && whole_run_paths "$2"/env/lib/python3*/site-packages/fourge/*.so*' \
    sh "$here/tap.sh" "$scratch"
check "its OpenMP runtime is the one beside it" bare python -c '
import fourge
maps = open("/proc/self/maps").read()
assert "/fourge/libgomp.so.1" in maps, maps'
check "licences of what it carries are in it" bare python -c '
from importlib.metadata import files, requires
names = {f.name for f in files("fourge")}
assert {"LICENSE", "third-party.txt", "libgomp.txt", "py.typed", "_fourge.pyi"} <= names, names
assert [r for r in requires("fourge") if "extra" not in r] == ["numpy>=1.24"], requires("fourge")'
check "the tests that need NumPy alone pass" bare python "$root/python/tests/run.py"
finish
