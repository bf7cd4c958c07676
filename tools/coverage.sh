#!/bin/sh
# Lines and branches of the library and the program that the tests reach, a row a room: coverage.sh [NAME...]
#
# Builds in build-coverage (gcc's counters, -O1, all CPU levels of this machine run as they are), runs ./test.sh's ordinary
# programs there, those whose names contain a NAME or all, and prints a table; build-coverage/coverage.csv has every file,
# build-coverage/missed.txt the lines that no test reached.  Takes half an hour on two cores.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/tools/build.sh"

# shellcheck disable=SC2086 # lists of words
need_packages $BUILD_PACKAGES gcovr
folder=$root/build-coverage
build "$folder" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_FLAGS_RELEASE=-O1 -g" -DFOURGE_COVERAGE=ON -DFOURGE_TESTS=ON
find "$folder" -name '*.gcda' -delete
mkdir -p "$folder/logs"
export OMP_WAIT_POLICY=passive
for program in "$folder"/test_* "$folder"/replay_*; do
    for name in "${@:-}"; do
        case $(basename "$program") in
        *"$name"*) [ -x "$program" ] && [ -f "$program" ] && echo "'$(basename "$program")' 1200 '$program'" && break ;;
        esac
    done
done | xargs -P "$(cores)" -L 1 sh "$root/tests/run_one.sh" "$folder/logs"
[ $# != 0 ] || sh "$root/tests/run_one.sh" "$folder/logs" run_cli_tests 1200 bash "$root/tests/cli/run_cli_tests.sh" "$folder/fourge"
gcovr --root "$root" --object-directory "$folder" --filter "$root/src/" --filter "$root/cli/" --exclude-unreachable-branches \
    --csv "$folder/coverage.csv" --txt "$folder/missed.txt" -j "$(cores)"
awk -F, 'NR > 1 {
    split($1, part, "/")
    room = part[1] == "src" ? part[2] : part[1]
    for (r = 1; r <= 2; r++) {
        where = r == 1 ? room : "all"
        lines[where] += $2; reached[where] += $3; branches[where] += $5; taken[where] += $6
    }
}
END {
    print "| room | lines | reached | branches | taken |\n|---|---|---|---|---|"
    for (room in lines)
        printf "| %s | %d | %.1f %% | %d | %.1f %% |\n", room, lines[room], 100 * reached[room] / lines[room],
            branches[room], 100 * taken[room] / branches[room] | "sort"
}' "$folder/coverage.csv"
