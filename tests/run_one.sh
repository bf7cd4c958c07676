#!/bin/sh
# Runs one program that prints TAP, says what came of it, and counts its lines: run_one.sh LOGS LABEL LIMIT COMMAND...
#
# LOGS/LABEL.log takes what the program prints, LOGS/LABEL.count "passed failed skipped". A program that ends without
# having run all its cases, beyond its limits, or with a status its lines do not explain, counts as one failure more.
# What is said comes in one piece, so that several may run at once; LOGS/LABEL.failed keeps its beginning where one failed.
#
# LIMIT is CPU or CPU:WALL in seconds. A limit is there to end what hangs and must not fail a test on a slow hour, so
# what counts is CPU time: of each process alone, all its threads together, kept by the kernel. A script of many children
# gives each of them the limit. What uses no CPU time, as a deadlock, or starts short children for ever ends after WALL,
# 30 times CPU unless given, but not more than 900: the whole run has 90 minutes, of which it needs 65. The first test
# that runs out of WALL halves what the next ones have, the second halves it again, down to 60: a deadlock that hangs at
# every CPU level and under every sanitizer leaves time to say so.
set -eu
name=$1/$(echo "$2" | tr -d '()' | tr ' /' '__')
label=$2
cpu=${3%%:*}
case $3 in
*:*) wall=${3#*:} ;;
*) wall=$((cpu * 30 < 900 ? cpu * 30 : 900)) ;;
esac
hung=$1/hung # a line for every test that ran out of WALL
shift 3
for _ in $(cat "$hung" 2>/dev/null); do
    wall=$((wall > 120 ? wall / 2 : wall < 60 ? wall : 60))
done
log=$name.log
began=$(date +%s)
status=0
(
    ulimit -S -t "$cpu"
    ulimit -H -t $((cpu + 5)) # ends what catches SIGXCPU
    exec timeout -k 10 "$wall" "$@"
) >"$log" 2>&1 </dev/null || status=$?
seconds=$(($(date +%s) - began))
skips=$(grep -c '^ok .*# SKIP' "$log") || true
good=$(($(grep -c '^ok ' "$log" || true) - skips))
bad=$(grep -c '^not ok ' "$log") || true
plan=$(sed -n 's/^1\.\.\([0-9][0-9]*\).*/\1/p' "$log" | head -n 1)
note=
if [ "$status" = 124 ] || { [ "$status" = 137 ] && [ "$seconds" -ge "$wall" ]; }; then
    note=", ran out of its $wall s (wall time)"
    echo hung >>"$hung"
elif [ "$status" = 152 ]; then # 128 + SIGXCPU
    note=", ran out of its $cpu s (CPU time)"
elif [ -n "$plan" ] && [ $((good + bad + skips)) != "$plan" ]; then
    note=", ended after $((good + bad + skips)) of $plan cases with status $status"
elif [ "$status" != 0 ] && [ "$bad" = 0 ]; then
    note=", ended with status $status"
elif [ -z "$plan" ] && [ $((good + bad + skips)) = 0 ]; then
    note=", said nothing"
fi
[ -z "$note" ] || bad=$((bad + 1))
echo "$good $bad $skips" >"$name.count"
said=$(
    printf '%-34s %4d passed, %d failed%s, %d s\n' "$label" "$good" "$bad" "$note" "$seconds"
    if [ "$bad" != 0 ]; then
        grep -v '^ok ' "$log" | tail -n 40 | sed 's/^/    /'
        echo "    all of it: $log"
    fi
    sed -n 's/^# peers: /    beside: /p' "$log"
    grep '^ok .*# SKIP' "$log" | sed 's/^ok [0-9]* - /    skipped: /' || true
)
printf '%s\n' "$said"
[ "$bad" = 0 ] || printf '%s\n' "$said" | cut -c 1-300 | head -n 24 >"$name.failed"
