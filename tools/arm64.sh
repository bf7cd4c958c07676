#!/bin/sh
# Builds fourge for arm64 with Debian's cross compiler and runs its tests under qemu, in tiny sizes: arm64.sh [NAME...]
#
# NAME: test_NAME is run (default: those of $ARM64_TESTS below, five minutes on two cores with the build).  Debian's arm64
# packages of what fourge links with are unpacked into a folder that is kept ($XDG_CACHE_HOME/fourge); nothing of arm64 is
# installed in the system.  Needs root or sudo once, for the compiler and qemu.  LOGS takes the logs and counts; the last line counts.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tools/build.sh"

ARM64_PACKAGES="libc6-dev libopenblas-openmp-dev libsuitesparse-dev zlib1g-dev libgomp1"
ARM64_TESTS="core csv npy table formula fe_rows lsmr cg approx_chol direct rank vcov fe_columns qr small cholesky elementary \
    gp gp_expr gp_value gp_forms gp_predict gp_invquad gw_sinkhorn gw_paths gw_vertex gw_grad soap soap_corners soap_eigh"

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
    rm -rf "$state"
}

logs=${LOGS:-$root/build-arm64/logs}
mkdir -p "$logs"
need_packages gcc-aarch64-linux-gnu qemu-user make cmake pkg-config
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
build "$root/build-arm64" all -DCMAKE_TOOLCHAIN_FILE="$root/tools/arm64.cmake" -DCMAKE_BUILD_TYPE=RelWithDebInfo

# ---- the tests, one on each core ----
export FOURGE_TEST_SIZE=tiny OMP_WAIT_POLICY=passive OPENBLAS_CORETYPE=ARMV8
# shellcheck disable=SC2086 # lists of words
for name in ${*:-$ARM64_TESTS}; do
    echo "'test_$name (arm64)' 300 qemu-aarch64 -L '$FOURGE_ARM64_ROOT' '$root/build-arm64/test_$name' --seed ${FOURGE_TEST_SEED:-1}"
done | xargs -r -P "$(cores)" -L 1 sh "$root/tests/run_one.sh" "$logs"
cat "$logs"/*arm64.count | awk '{ p += $1; f += $2; s += $3 } END { print p + 0 " passed, " f + 0 " failed, " s + 0 " skipped"; exit f > 0 }'
