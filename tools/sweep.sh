#!/bin/sh
# Random tests over many seeds at every CPU level of the machine: sweep.sh [--quick] [--seeds FIRST-LAST] [--levels LIST] [NAME...]
#
# Runs the programs of tests/property and tests/unit that draw random numbers, or those whose names contain a NAME, with
# the seeds 1 to 100 at the levels of LIST ("plain v3 v4"; v3 with OpenBLAS held to its AVX2 kernels), on all cores.
# Prints the command that repeats each failure, and ends with "N passed, N failed".  `./test.sh` has built them.  All of it
# takes a night.
#
# --quick: only the cases that draw random numbers, which a first run of each program finds, in the sizes that they take
# under the thread sanitizer (FOURGE_TEST_SIZE=tiny), of long lists of kernels, designs or shapes a part with each seed
# (FOURGE_TEST_TURNS=1).  Bounds and checks are the same.  Not swept: calls that fail one after the other, which numbers do
# not change, and OpenCL at levels that are not the machine's own.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$root/build}
seeds=1-100
levels="plain v3 v4"
quick=
while [ $# != 0 ]; do
    case $1 in
    --quick) quick=1 ;;
    --seeds) seeds=${2:?sweep.sh: --seeds takes FIRST-LAST} && shift ;;
    --levels) levels=${2:?sweep.sh: --levels takes a list in quotes} && shift ;;
    -*) echo "sweep.sh: unknown option $1" >&2 && exit 2 ;;
    *) break ;;
    esac
    shift
done
[ -z "$quick" ] || export FOURGE_TEST_SIZE=tiny FOURGE_TEST_TURNS=1
export OMP_WAIT_POLICY=passive
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
own=$("$build/fourge" --version | sed -n 's/^CPU level: //p')
results=$(mktemp)
scratch=$(mktemp -d)
trap 'rm -rf "$results" "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# programs NAME...: what draws random numbers
programs() {
    for source in "$root"/tests/property/test_*.c "$root"/tests/unit/test_*.c; do
        name=$(basename "$source" .c)
        grep -qE 'test_(random|uniform|normal|below)\(|_data\.h"' "$source" || continue
        [ $# != 0 ] || { echo "$name" && continue; }
        for part in "$@"; do
            case $name in *"$part"*) echo "$name" && break ;; esac
        done
    done
}

# drawn PROGRAM LEVEL: the options that choose its cases that draw random numbers: what stands behind the lines "# random"
drawn() {
    [ -f "$scratch/$1" ] || "$build/$1" --seed "${seeds%-*}" 2>/dev/null | sed -nE "/^# random\$/{n; s/^(not )?ok [0-9]+ - //p}" |
        grep -vE "memory|faults|each call .* fails" | sed "s/'/'\\\\''/g; s/.*/--only '&'/" >"$scratch/$1" || true
    if [ "$2" = "$own" ]; then cat "$scratch/$1"; else grep -v OpenCL "$scratch/$1"; fi | tr '\n' ' '
}

# commands: one a line
commands() {
    for level in $levels; do
        kernels=
        [ $level != v3 ] || kernels="OPENBLAS_CORETYPE=Haswell "
        for name in $(programs "$@"); do
            [ -x "$build/$name" ] || { echo "sweep.sh: $build/$name is not there: ./test.sh $name builds it" >&2 && continue; }
            cases=
            if [ -n "$quick" ]; then
                cases=$(drawn "$name" "$level")
                [ -n "$cases" ] || continue
            fi
            for seed in $(seq "${seeds%-*}" "${seeds#*-}"); do
                echo "${kernels}$build/$name --isa $level --seed $seed $cases"
            done
        done
        [ "$level" != "$own" ] || break # the machine has none above it
    done
}

# shellcheck disable=SC2016 # the inner shell's variables
commands "$@" | xargs -d '\n' -P "$(nproc)" -I{} sh -c '
    if out=$(env {} 2>&1); then
        echo passed >>"$0"
    else
        echo failed >>"$0"
        cat <<\END
{}
END
        printf "%s\n" "$out" | grep -E "^not ok|^# .*(:[0-9]+|expected)" | head -n 8 | sed "s/^/    /"
    fi' "$results"
passed=$(grep -c passed "$results" || true)
failed=$(grep -c failed "$results" || true)
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
