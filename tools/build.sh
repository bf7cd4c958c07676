# build.sh - what run.sh and test.sh share: the packages a build needs, and the build.
# Sourced by POSIX shells with $root set to the repository; touches nothing by itself.

# Debian 12; git is there already.  libsuitesparse-dev is needed for AMD alone.
BUILD_PACKAGES="gcc libc6-dev make cmake pkg-config libopenblas-openmp-dev libsuitesparse-dev zlib1g-dev libzstd-dev libreadstat-dev"
# For ./test.sh --full: ThreadSanitizer needs LLVM's OpenMP runtime, which tells it of barriers; form and checks of the sources;
# the headers that the OpenCL plug-in's numbers are held against, a checker of races.
FULL_PACKAGES="clang-14 libclang-rt-14-dev libomp-14-dev llvm-14 clang-format-14 clang-tidy-14 opencl-headers oclgrind"
# The browser of the same, and a face for its letters.
BROWSER_PACKAGES="chromium fonts-liberation"
# The tests of the installed headers and package files, and of the Python package and its wheel; OpenCL's loader and a device of it on
# the CPU (39 s to install).
TEST_PACKAGES="g++ python3-dev python3-numpy python3-venv ocl-icd-libopencl1 pocl-opencl-icd"
# What the package r/ suggests, for its tests where R is installed.
R_PACKAGES="r-base-dev r-cran-generics r-cran-sandwich"

die() {
    echo "$(basename "$0"): $*" >&2
    exit 1
}

# need_packages NAME...: installs what is missing; does not touch the network when nothing is.
need_packages() {
    if ! command -v dpkg-query >/dev/null 2>&1; then
        echo "Not a Debian system: please install what corresponds to: $*"
        return 0
    fi
    missing=
    for package in "$@"; do
        case $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) in
        *" installed") ;;
        *) missing="$missing $package" ;;
        esac
    done
    [ -n "$missing" ] || return 0
    echo "Installing:$missing"
    sudo=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null 2>&1 || die "needs root or sudo to install:$missing"
        sudo=sudo
    fi
    log=${TMPDIR:-/tmp}/fourge-apt.$$
    # shellcheck disable=SC2086 # a list of words
    if ! { $sudo apt-get update -q && $sudo env DEBIAN_FRONTEND=noninteractive \
        apt-get install -qy --no-install-recommends $missing; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        die "could not install:$missing"
    fi
    rm -f "$log"
}

cores() {
    nproc 2>/dev/null || echo 2
}

# show_progress LOG: keeps the lines of a build in LOG and tells the share that is done: over itself on a terminal, else in a
# line every ten seconds.
show_progress() {
    told=$(date +%s)
    shown=
    while IFS= read -r line; do
        printf '%s\n' "$line" >>"$1"
        case $line in
        "["*"%] "*) ;;
        *) continue ;;
        esac
        share=${line%%]*}]
        if [ -t 1 ]; then
            printf '\r%s' "$share"
            shown=1
        elif [ $(($(date +%s) - told)) -ge 10 ]; then
            echo "$share"
            told=$(date +%s)
        fi
    done
    [ -z "$shown" ] || printf '\r%8s\r' ''
}

# build FOLDER TARGETS [CMAKE OPTION...]: configures and builds; says little unless it fails.  Through ccache where that is
# installed and no other launcher is named.
build() {
    if [ -z "${CMAKE_C_COMPILER_LAUNCHER+set}" ] && command -v ccache >/dev/null 2>&1; then
        export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
    fi
    folder=$1
    targets=$2 # words
    shift 2
    mkdir -p "$folder"
    log=$folder/build.log
    built=$folder/build.complete
    rm -f "$log" "$built"
    echo "Building in $folder"
    {
        # shellcheck disable=SC2086 # a list of words
        cmake -S "$root" -B "$folder" "$@" && cmake --build "$folder" --target $targets -j "$(cores)" && : >"$built"
    } 2>&1 | show_progress "$log"
    if [ ! -f "$built" ]; then
        grep -n -m 20 -E 'error|Error|undefined reference' "$log" >&2 || tail -n 30 "$log" >&2
        die "the build failed; all of it is in $log"
    fi
}

# listed_environment NAME LOG: makes the environment of tools/NAME.txt, or finds the one made before, and
# sets $listed_python to its interpreter; status 1, with the reason in $missing_environment, where the
# package index gives it not.  It lies outside of the checkout, under a name of its list's, so that it
# is kept until the list changes.
listed_environment() {
    missing_environment=
    made=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/fourge/$1-$(cksum <"$root/tools/$1.txt" | cut -d ' ' -f 1)
    listed_python=$made/bin/python
    [ ! -f "$made/complete" ] || return 0
    echo "Installing the packages of tools/$1.txt in $made"
    mkdir -p "$(dirname "$made")"
    if ! { rm -rf "$made" && /usr/bin/python3 -m venv "$made" && "$made/bin/pip" install -q --disable-pip-version-check \
        --retries 1 --timeout 20 -r "$root/tools/$1.txt"; } >"$2" 2>&1; then
        rm -rf "$made"
        missing_environment="tools/$1.txt could not be installed: $(grep -m 1 "^ERROR" "$2" || tail -n 1 "$2")"
        return 1
    fi
    : >"$made/complete"
}

# peers_environment LOG: sets $peers_python to the interpreter of the environment of tools/peers.txt;
# $FOURGE_PEERS names another.  Status 1, with the reason in $peers_missing, where there is none.
peers_environment() {
    peers_missing=
    peers_python=${FOURGE_PEERS:-}
    [ -z "$peers_python" ] || return 0
    listed_environment peers "$1" || peers_missing="the peers of $missing_environment"
    [ -n "$peers_missing" ] || peers_python=$listed_python
    [ -z "$peers_missing" ]
}

# peers_sources LOG: unpacks the tests of the packages of tools/peers_sources.txt, which their wheels leave out, into
# sources/NAME-VERSION of the peers' environment; what the index does not give now, a later call tries again.
peers_sources() {
    home=$(dirname "$(dirname "$peers_python")")
    grep -v '^#' "$root/tools/peers_sources.txt" | while IFS='=' read -r name _ version; do
        target=$home/sources/$name-$version
        [ ! -d "$target" ] || continue
        scratch=$(mktemp -d)
        if "$peers_python" -m pip download -q --disable-pip-version-check --retries 1 --timeout 20 --no-deps --no-binary "$name" \
            -d "$scratch" "$name==$version" && tar xzf "$scratch"/*.tar.gz -C "$scratch" --strip-components=1 --wildcards '*/test*'; then
            rm -f "$scratch"/*.tar.gz
            mkdir -p "$home/sources" && mv "$scratch" "$target"
        else
            echo "no tests of $name $version: their file would not run"
            rm -rf "$scratch"
        fi
    done >>"$1" 2>&1
    return 0
}
