#!/bin/sh
# Lines and branches of the library and the program that the tests reach, a row a room: coverage.sh [OPTION...] [NAME...]
#
#     --plain        the code for plain x86-64 alone, built in a quarter of the time: lines that only other CPU levels have
#                    are not among those counted
#     --list ROOM    lists the lines of the room that did not run and the arms of branches not taken (may be repeated)
#     --keep         adds to what earlier runs have reached instead of beginning anew
#     NAME           runs the programs alone whose names contain it; "cli" stands for the program: its cases, its options,
#                    its memory, what its doctor says, and for the calls with NULL
#
# Builds in build-coverage (gcc's counters, -O1), runs ./test.sh's ordinary programs and the cases of the program there, and
# prints a table; what is counted stands at the head of coverage_table.py.  coverage.json and coverage.csv in the folder have
# every file.  Takes half an hour on two cores.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tools/build.sh"

levels="plain;v3;v4"
keep=
lists=
while [ $# != 0 ]; do
    case $1 in
    --plain) levels=plain ;;
    --keep) keep=1 ;;
    --list) lists="$lists ${2:?coverage.sh: --list takes a room}" && shift ;;
    -*) die "unknown option $1" ;;
    *) break ;;
    esac
    shift
done

# shellcheck disable=SC2086 # lists of words
need_packages $BUILD_PACKAGES gcovr
folder=$root/build-coverage
build "$folder" all -DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_FLAGS_RELEASE=-O1 -g" -DFOURGE_COVERAGE=ON -DFOURGE_TESTS=ON \
    "-DFOURGE_CPU_LEVELS=$levels"
[ -n "$keep" ] || find "$folder" -name '*.gcda' -delete
mkdir -p "$folder/logs"
export OMP_WAIT_POLICY=passive

# asked PROGRAM NAME...: is it among the names, or is there none?
asked() {
    asked_for=$1 # `program` is the caller's: a shell's variables are global
    shift
    for name in "${@:-}"; do
        case $asked_for in *"$name"*) return 0 ;; esac
    done
    return 1
}

for program in "$folder"/test_* "$folder"/replay_*; do
    [ ! -x "$program" ] || [ ! -f "$program" ] || ! asked "$(basename "$program")" "$@" ||
        echo "'$(basename "$program")' 1200 '$program'"
done | xargs -P "$(cores)" -L 1 sh "$root/tests/run_one.sh" "$folder/logs"
if asked run_cli_tests "$@"; then
    sh "$root/tests/run_one.sh" "$folder/logs" test_nulls 600 sh "$root/tests/build/test_nulls.sh" "$folder"
    sh "$root/tests/run_one.sh" "$folder/logs" test_program_memory 1200 sh "$root/tests/build/test_program_memory.sh" "$folder"
    sh "$root/tests/run_one.sh" "$folder/logs" test_doctor 300 sh "$root/tests/build/test_doctor.sh" "$folder"
    sh "$root/tests/run_one.sh" "$folder/logs" run_option_tests 1200 /usr/bin/python3 "$root/tests/cli/run_option_tests.py" "$folder/fourge"
    sh "$root/tests/run_one.sh" "$folder/logs" run_cli_tests 3600 env FOURGE_CASE_SECONDS=1200 bash "$root/tests/cli/run_cli_tests.sh" "$folder/fourge"
fi
# threads lose counts to each other, and gcov subtracts: an arm with fewer than none is left out
gcovr --gcov-ignore-parse-errors --root "$root" --object-directory "$folder" --filter "$root/src/" --filter "$root/cli/" --exclude-unreachable-branches \
    --csv "$folder/coverage.csv" --json "$folder/coverage.json" -j "$(cores)" "$folder"
# shellcheck disable=SC2086 # a list of words
python3 "$root/tools/coverage_table.py" "$folder/coverage.json" $lists
