#!/bin/sh
# Fresh fuzzing: fresh.sh BUILD SECONDS runs every libFuzzer program of a build for its share of the
# seconds, two at a time, from the corpus in the tree.  New inputs stay in the build folder.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
seconds=$2

programs=
count=0
for program in "$build"/fuzz_*; do
    if [ -f "$program" ] && [ -x "$program" ]; then
        programs="$programs $program"
        count=$((count + 1))
    fi
done
echo "1..$count"
[ "$count" -gt 0 ] || exit 1
share=$((2 * seconds / count))
[ "$share" -ge 5 ] || share=5

# fuzz PROGRAM: leaves its findings in the folder it is started for.
fuzz() {
    name=$(basename "$1" | sed 's/^fuzz_//')
    mkdir -p "$build/corpus/$name" "$build/findings/$name"
    status=0
    OMP_NUM_THREADS=1 "$1" -max_total_time="$share" -timeout=25 -rss_limit_mb=2048 -max_len=65536 \
        -artifact_prefix="$build/findings/$name/" -print_final_stats=1 \
        "$build/corpus/$name" "$here/corpus/$name" >"$build/findings/$name.log" 2>&1 || status=$?
    echo "$status" >"$build/findings/$name.status"
}

number=0
pair=
report() {
    for program in $pair; do
        name=$(basename "$program" | sed 's/^fuzz_//')
        number=$((number + 1))
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/findings/$name.log")
        if [ "$(cat "$build/findings/$name.status")" = 0 ]; then
            echo "ok $number - $name, ${runs:-0} inputs in $share s"
        else
            echo "not ok $number - $name, see $build/findings/$name.log"
            tail -n 30 "$build/findings/$name.log" | sed 's/^/# /'
        fi
    done
    pair=
}
for program in $programs; do
    fuzz "$program" &
    if [ -z "$pair" ]; then
        pair=$program
    else
        pair="$pair $program"
        wait
        report
    fi
done
wait
report
