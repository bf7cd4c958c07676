#!/bin/sh
# Builds fourge and runs its tests; the last line is "N passed, N failed" over all of them.
#
#     ./test.sh           every test program, the tests of the build, of the program, the fuzz corpora
#     ./test.sh --full    besides: the programs at every CPU level that the machine has, all of it under address and
#                         undefined-behaviour sanitizers, the parallel code under the thread sanitizer, 60 s of fresh
#                         fuzzing, 60 kills a command, every kind of page in a browser, races of kernels, tests of every room
#                         on arm64 under qemu; the reference site, the R package, and a part of --peers, where what these need is
#                         installed or can be
#     ./test.sh --peers   besides: the Python package beside pyfixest, scikit-learn, torch, gpytorch, POT, anndata;
#                         installs these, as tools/peers.txt has them, from the package index into a folder that is kept
#     ./test.sh NAME...   test programs whose name contains NAME
#
# Random tests take their seed from FOURGE_TEST_SEED (default 1) and print it.
set -eu
root=$(cd "$(dirname "$0")" && pwd)
. "$root/tools/build.sh"

full=
peers=
names=
small=
setting=
for argument in "$@"; do
    case $argument in
    --full) full=1 ;;
    --peers) peers=1 ;;
    -h | --help) sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) die "unknown option $argument" ;;
    *) names="$names $argument" ;;
    esac
done

logs=$root/build/logs
seed=${FOURGE_TEST_SEED:-1}
export OMP_WAIT_POLICY=passive # tests run more threads than cores on purpose
started=$(date +%s)

# asked NAME: is this program among the names given?
asked() {
    [ -n "$names" ] || return 0
    for wanted in $names; do # `name` is the caller's: a shell's variables are
        case $1 in *"$wanted"*) return 0 ;; esac
    done
    return 1
}

# run LABEL LIMIT COMMAND...: one program that prints TAP. LIMIT is CPU or CPU:WALL in seconds, as tests/run_one.sh tells.
run() {
    sh "$root/tests/run_one.sh" "$logs" "$@"
}

# What takes the longest begins first, so that no core is left without work at the end.
LONG_PROGRAMS="test_gw_fault test_gw test_gw_curves test_gw_align_device test_gw_vertex test_gw_verdict test_spool test_fe_many \
    test_calls_fault test_gw_lowrank test_gp_state test_gp_terrain"

# programs FOLDER LIMIT LABEL [OPTION...]: a line for `pool` of every test program of a build, those of $small in tiny sizes, all of
# them with $setting in the environment.
programs() {
    folder=$1
    limit=$2
    suffix=$3
    shift 3
    {
        for name in $LONG_PROGRAMS; do echo "$folder/$name"; done
        ls -d "$folder"/test_* "$folder"/replay_*
    } | awk '!seen[$0]++' | while IFS= read -r program; do
        name=$(basename "$program")
        if [ -f "$program" ] && [ -x "$program" ] && asked "$name"; then
            options=" --seed $seed${*:+ $*}"
            case $name in
            replay_* | *_fault) [ "${1:-}" = --isa ] && continue ;; # alike at every CPU level
            esac
            case $name in
            replay_*) options= ;;
            esac
            tiny=
            case " $small " in *" $name "*) tiny=FOURGE_TEST_SIZE=tiny ;; esac
            echo "'$name$suffix' $limit env $setting $tiny '$program'$options"
        fi
    done
}

# pool: runs the lines of its input, "'LABEL' LIMIT COMMAND..." each, one on each core and at least two at a time.
pool() {
    xargs -r -P "$(($(cores) < 2 ? 2 : $(cores)))" -L 1 sh "$root/tests/run_one.sh" "$logs"
}

# scripts PATTERN: a line for `pool` of every test of the build, in tests/build, whose name matches
scripts() {
    for script in "$root"/tests/build/test_*.sh; do
        name=$(basename "$script" .sh)
        # shellcheck disable=SC2254 # a pattern
        case $name${full:+ --full} in
        "test_kills --full") ;; # 60 a command, for 3
        $1*) if asked "$name.sh"; then echo "'$name.sh' 120 sh '$script' '$root/build'"; fi ;;
        esac
    done
}

# ---- the ordinary tests, and what of --full keeps a core busy for as long ----
# shellcheck disable=SC2086 # lists of words
need_packages $BUILD_PACKAGES $TEST_PACKAGES ${full:+$FULL_PACKAGES}
if [ -n "$full" ] && asked r_package && command -v R >/dev/null 2>&1; then
    # shellcheck disable=SC2086 # a list of words
    need_packages $R_PACKAGES
fi
rm -rf "$logs"
mkdir -p "$logs"
if [ -n "$peers$full" ] && asked peers; then # they come from the package index while the compiler runs; what fails is told below
    { peers_environment "$logs/pip.log" && peers_sources "$logs/pip.log"; } >&2 &
fi
build "$root/build" all -DCMAKE_BUILD_TYPE=Release -DFOURGE_WERROR=ON -DFOURGE_TESTS=ON -DFOURGE_PYTHON=ON \
    "-DFOURGE_CPU_LEVELS=plain;v3;v4"
{
    if [ -n "$full" ] && asked test_kills; then
        echo "'kills, 60 a command' 60:3600 sh '$root/tests/build/test_kills.sh' '$root/build' 60"
    fi
    if asked run_cli_tests; then
        echo "run_cli_tests 120 bash '$root/tests/cli/run_cli_tests.sh' '$root/build/fourge'"
    fi
    if asked python; then
        echo "python 300 env 'PYTHONPATH=$root/build/python' /usr/bin/python3 '$root/python/tests/run.py'"
    fi
    programs "$root/build" 120 ""
    if asked run_option_tests; then
        echo "run_option_tests 120 /usr/bin/python3 '$root/tests/cli/run_option_tests.py' '$root/build/fourge'"
    fi
    scripts "test_[!w]*"
    scripts test_waiting
} | pool
wait

# ---- what --peers adds, and --full a part of ----
# beside_peers LIMIT LABEL ARGUMENT...: a line for `pool`: python/tests/run.py in the peers' environment.
beside_peers() {
    limit=$1
    label=$2
    shift 2
    echo "'$label' $limit env 'PYTHONPATH=$root/build/python' '$peers_python' '$root/python/tests/run.py' $*"
}

# About six CPU minutes of the peers' tests: what fourge claims of each, and the own tests of scikit-learn and GPyTorch.
PEERS_PART="test_gpytorch_own test_sklearn_own test_torch. test_botorch test_gpytorch.FastMll test_gpytorch.Batches test_sklearn. test_pot test_pyfixest"
# peers_lines: the lines for `pool` of either.
peers_lines() {
    if peers_sources "$logs/pip.log" >&2 && [ -n "$peers" ]; then
        beside_peers 2400:3600 "python in peers" peers
        beside_peers 300 "python with frames"
    else
        for part in $PEERS_PART; do
            beside_peers 480 "peers, $part" peers "$part"
        done
        beside_peers 240 "tutorials" . test_readme.Tutorials
    fi
    echo "'test_readme in peers' 240 sh '$root/tests/build/test_readme.sh' '$root/build' '$peers_python'"
}
peers_python=
if [ -n "$peers$full" ] && asked peers; then
    need_packages python3-venv
    if ! peers_environment "$logs/pip.log"; then
        [ -z "$peers" ] || die "$peers_missing"
        echo "SKIPPED: python in peers: $peers_missing"
        echo "0 0 1" >"$logs/peers.count"
    fi
fi

# level_lines: the lines for `pool` of the levels below the machine's own, one of them with OpenBLAS held to the kernels that it
# has for AVX2.
level_lines() {
    own=$("$root/build/fourge" --version | sed -n 's/^CPU level: //p')
    missing=
    for level in plain v3 v4; do
        if [ "$level" = "$own" ]; then
            missing=1 # the levels above it; it has been run
        elif [ -n "$missing" ]; then
            echo "level $level: skipped: this machine has $own" >&2
            echo "0 0 1" >"$logs/level_$level.count"
        elif [ "$level" = v3 ]; then
            setting=OPENBLAS_CORETYPE=Haswell
            programs "$root/build" 240 " ($level, Haswell)" --isa "$level"
            setting=
        else
            programs "$root/build" 240 " ($level)" --isa "$level"
        fi
    done
}

if [ -n "$full" ] && asked browser_pages; then
    # shellcheck disable=SC2086 # a list of words
    need_packages $BROWSER_PACKAGES
fi
{
    [ -z "$peers_python" ] || peers_lines
    if [ -n "$full" ]; then
        if asked r_package; then
            echo "'R package' 240:1800 sh '$root/tests/build/r_package.sh' '$root/build'"
        fi
        if asked browser_pages; then
            echo "'pages in a browser' 300 /usr/bin/python3 '$root/tests/build/browser_pages.py' '$root/build/fourge'"
        fi
        if asked reference_site; then
            echo "'reference site' 120 sh '$root/tests/build/reference_site.sh' '$root/build'"
        fi
        level_lines
        if asked kernel_races; then
            echo "'races of kernels' 120 sh '$root/tests/build/kernel_races.sh' '$root/build'"
        fi
        if asked tidy; then
            echo "tidy 240 sh '$root/tests/build/tidy.sh'"
        fi
    fi
} | pool

# ---- the wheel, which is linked in the build tree when nothing else uses that, and what --full adds ----
if [ -n "$full" ]; then # on what these leave of the cores; the sanitizers see the level that runs here, and plain
    trap 'kill -s TERM 0' INT # what runs behind a shell's back ignores the key that ends the rest
    (build "$root/build-asan" all -DCMAKE_BUILD_TYPE=RelWithDebInfo -DFOURGE_SANITIZE=address -DFOURGE_CPU_LEVELS=native) &
    builder=$!
fi
scripts test_wheel | pool
if [ -n "$full" ]; then
    if asked arm64; then
        if ! LOGS=$logs sh "$root/tools/arm64.sh" >"$logs/arm64.log" 2>&1 && ! ls "$logs"/*_arm64.failed >/dev/null 2>&1; then
            echo "0 1 0" >"$logs/arm64_itself.count"
            tail -n 24 "$logs/arm64.log" >"$logs/arm64_itself.failed"
        fi
        cat "$logs/arm64.log"
    fi
    wait "$builder" || die "the build in build-asan failed, as told above; all of it is in $root/build-asan/build.log"
    export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1
    export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
    # The same code at sizes that it takes half of the time for; the ordinary build has run the usual ones.
    small="test_gw test_gw_curves test_gw_fault test_gw_vertex test_gw_verdict"
    {
        for file in "$root"/tests/cli/cases/*.case; do
            name=$(basename "$file" .case)
            if asked run_cli_tests; then
                echo "'cli $name (asan)' 120:1800 bash '$root/tests/cli/run_cli_tests.sh' '$root/build-asan/fourge' $name"
            fi
        done
        programs "$root/build-asan" 300 " (asan)"
    } | pool
    small=

    build "$root/build-tsan" all -DCMAKE_BUILD_TYPE=RelWithDebInfo -DFOURGE_SANITIZE=thread \
        -DFOURGE_CPU_LEVELS=native -DCMAKE_C_COMPILER=clang-14
    TSAN_OPTIONS="ignore_noninstrumented_modules=1 exitcode=66"
    export TSAN_OPTIONS
    archer=$(clang-14 -print-file-name=libarcher.so)
    [ -f "$archer" ] || archer=/usr/lib/llvm-14/lib/libarcher.so
    OMP_TOOL_LIBRARIES=$archer
    export OMP_TOOL_LIBRARIES
    run "planted race (tsan)" 30 sh "$root/tests/build/planted_race.sh"
    FOURGE_TEST_SIZE=tiny
    export FOURGE_TEST_SIZE
    programs "$root/build-tsan" 600 " (tsan)" --threads 4 | pool
    unset FOURGE_TEST_SIZE OMP_TOOL_LIBRARIES

    # shellcheck disable=SC2046 # a list of words
    build "$root/build-fuzz" "$(cd "$root/tests/fuzz" && echo fuzz_*.c | sed 's/[.]c//g')" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DFOURGE_SANITIZE=fuzzer \
        -DFOURGE_CPU_LEVELS=plain -DCMAKE_C_COMPILER=clang-14
    run "fresh fuzzing" 300 sh "$root/tests/fuzz/fresh.sh" "$root/build-fuzz" 60
fi

# shellcheck disable=SC2046 # three numbers
set -- $(cat "$logs"/*.count /dev/null | awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }')
passed=$1
failed=$2
skipped=$3
[ "$skipped" = 0 ] || echo "$skipped skipped (reasons above)"
if [ "$failed" != 0 ]; then # once more, as a long run's end is often all that is kept of it
    echo "What failed:"
    cat "$logs"/*.failed 2>/dev/null || true
fi
echo "$(($(date +%s) - started)) s"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
