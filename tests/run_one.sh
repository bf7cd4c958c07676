#!/bin/sh
# Runs one program that prints TAP, says what came of it, and counts its lines: run_one.sh LOGS LABEL LIMIT COMMAND...
#
# LOGS/LABEL.log takes what the program prints, LOGS/LABEL.count "passed failed skipped". A program that ends without
# having run all its cases, after more than LIMIT seconds, or with a status its lines do not explain, counts as one
# failure more. What is said comes in one piece, so that several may run at once.
set -eu
name=$1/$(echo "$2" | tr -d '()' | tr ' /' '__')
label=$2
limit=$3
shift 3
log=$name.log
began=$(date +%s)
status=0
timeout "$limit" "$@" >"$log" 2>&1 </dev/null || status=$?
skips=$(grep -c '^ok .*# SKIP' "$log") || true
good=$(($(grep -c '^ok ' "$log" || true) - skips))
bad=$(grep -c '^not ok ' "$log") || true
plan=$(sed -n 's/^1\.\.\([0-9][0-9]*\).*/\1/p' "$log" | head -n 1)
note=
if [ "$status" = 124 ]; then
    note=", ran out of its $limit s"
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
    printf '%-34s %4d passed, %d failed%s, %d s\n' "$label" "$good" "$bad" "$note" "$(($(date +%s) - began))"
    if [ "$bad" != 0 ]; then
        grep -v '^ok ' "$log" | tail -n 40 | sed 's/^/    /'
        echo "    all of it: $log"
    fi
    sed -n 's/^# peers: /    beside: /p' "$log"
    grep '^ok .*# SKIP' "$log" | sed 's/^ok [0-9]* - /    skipped: /' || true
)
printf '%s\n' "$said"
