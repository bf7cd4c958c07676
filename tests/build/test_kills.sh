#!/bin/sh
# Runs that are killed by SIGKILL at random instants and resumed end with the bits of a run that was left alone:
# test_kills.sh BUILD [KILLS], so many kills for each command (default 3; ./test.sh --full: 60).
#
# A kill comes after a random part of the time that the undisturbed run has taken here; a run that was done before it is
# made again with half of that delay, so that every kill counted hits a run, on machines of any speed.  Every second
# resumed run is killed once more.  A run that was killed before it wrote its file has nothing to resume and is started
# again, as its user would.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
fourge=$(cd "$1" && pwd)/fourge
kills=${2:-3}
. "$here/tap.sh"
scratch=$(mktemp -d)
export FOURGE_DATA="$root/data" LC_ALL=C.UTF-8
unset OMP_NUM_THREADS FOURGE_ISA
cd "$scratch" || exit 1

# uniform: the next random number in (0, 1), of FOURGE_TEST_SEED; a process each would have the seconds as seed.
awk -v seed="${FOURGE_TEST_SEED:-1}" -v count=$((40 * (kills + 4))) \
    'BEGIN { srand(seed); for (i = 0; i < count; i++) print 0.001 + 0.998 * rand() }' >uniforms
exec 3<uniforms
uniform() {
    read -r random <&3
}

# now, and seconds between two of them
now() {
    date +%s.%N
}
since() {
    awk -v a="$1" -v b="$(now)" 'BEGIN { print b - a }'
}

# killed COMMAND...: kills the command within the time of the undisturbed run; fails where it was done each time.
killed() {
    uniform
    delay=$(awk -v u="$random" -v t="$whole" 'BEGIN { print u * t }')
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        code=0
        timeout -s KILL "$delay" "$@" >/dev/null 2>&1 || code=$?
        [ "$code" = 137 ] && return 0
        delay=$(awk -v d="$delay" 'BEGIN { print d / 2 }')
        rm -f run.state run.state~ run.state.*
    done
    return 1
}

# bare FILE: a result without times and memory, which no two runs share, and without warnings: a run that was killed between
# the two names of its state goes on from the older one, and says so.
bare() {
    case $1 in
    *.json)
        awk '/"seconds": \{/ { inside = 1 } /"warnings": \[$/ { inside = 2 }
            !inside && !/"(seconds|peak_bytes)":/ && !/"warnings": \[\]/ { print }
            inside == 1 && /\}/ { inside = 0 } inside == 2 && /\]/ { inside = 0 }' "$1"
        ;;
    *) cat "$1" ;;
    esac
}

# same: the results of the run that was left alone are those of this one.
same() {
    for result in $results; do
        bare "$result" >bare
        cmp "alone.$result" bare || { diff "alone.$result" bare | head -n 5; return 1; }
    done
}

# once COMMAND...: one kill, or two, and the end.
once() {
    rm -f run.state run.state~ run.state.*
    # shellcheck disable=SC2086 # lists of words
    rm -f $results
    killed "$@" || return 1
    hits=$((hits + 1))
    uniform
    if [ -e run.state ] && [ "$(awk -v u="$random" 'BEGIN { print u < 0.5 }')" = 1 ]; then
        delay=$(awk -v u="$random" -v t="$whole" 'BEGIN { print 2 * u * t }')
        timeout -s KILL "$delay" "$fourge" resume run.state >/dev/null 2>&1
    fi
    if [ -e run.state ] || [ -e run.state~ ]; then
        "$fourge" resume run.state >/dev/null 2>said || { cat said; return 1; }
        anew=$((anew + $(grep -c 'started anew' said)))
    else
        unborn=$((unborn + 1))
        "$@" >/dev/null || return 1
    fi
    same
}

# kills_of NAME "RESULT ..." COMMAND...
kills_of() {
    name=$1
    results=$2
    shift 2
    hits=0 anew=0 unborn=0
    rm -f run.state run.state~ run.state.* # of the command before, which this one would not replace
    began=$(now)
    "$@" >/dev/null || return 1
    whole=$(since "$began")
    for result in $results; do
        bare "$result" >"alone.$result" || return 1
    done
    for _ in $(seq "$kills"); do
        once "$@" || return 1
    done
    echo "# $name: $hits kills of a run of $whole s; $anew before the first state, $unborn before the file" >&4
}

exec 4>&1
"$fourge" simulate difficult --rows 3e4 --seed 3 --out d.csv -q
"$fourge" simulate difficult --rows 1e5 --seed 4 --out a -q >/dev/null
# shellcheck disable=SC2046 # lists of numbers
"$root/tests/cli/tools/npy" '<f8' 150,2 $(awk 'BEGIN { for (i = 0; i < 150; i++) print sin(i * i), cos(3 * i) * i / 100 }') >x.npy
# shellcheck disable=SC2046
"$root/tests/cli/tools/npy" '<f8' 140,3 $(awk 'BEGIN { for (i = 0; i < 140; i++) print cos(i * i), sin(7 * i) * i / 90, i % 5 }') >y.npy
awk 'BEGIN { srand(5); print "a,b,y"; for (i = 0; i < 260; i++) { a = rand(); b = rand();
    printf "%.6f,%.6f,%.6f\n", a, b, sin(9 * a) + cos(5 * b) + 0.3 * rand() } }' >gp.csv

check "fe: $kills kills" kills_of fe "kept.csv fe.json" "$fourge" fe 'y ~ x1 + x2 + x1:x2 + exp(x1) | unit + firm' d.csv \
    --vcov cluster=firm --block 2 --method lsmr -q --format json --output fe.json --save-residuals kept.csv --checkpoint run.state
check "fe beyond memory: $kills kills" kills_of "fe beyond memory" "kept.csv fe.json" "$fourge" fe 'y ~ x1 + x2 + exp(x1) | unit + firm' \
    d.csv --block 2 --method lsmr -q --format json --output fe.json --save-residuals kept.csv --memory-limit 4M --spool . \
    --checkpoint run.state
check "demean: $kills kills" kills_of demean kept.npy "$fourge" demean --columns a/columns.npy --codes a/codes.npy \
    --out kept.npy --method lsmr --block 1 -q --checkpoint run.state
check "demean beyond memory: $kills kills" kills_of "demean beyond memory" kept.npy "$fourge" demean --columns a/columns.npy \
    --codes a/codes.npy --out kept.npy --block 1 -q --memory-limit 4M --spool . --checkpoint run.state
check "gw align: $kills kills" kills_of "gw align" "plan.npy kept.csv" "$fourge" gw align x.npy y.npy --distance euclidean \
    --plan plan.npy --matches kept.csv -q --checkpoint run.state
check "gp fit, one start: $kills kills" kills_of "gp fit" "gp.json" "$fourge" gp fit gp.csv --y y \
    --kernel 'scale*matern52(ard) + scale*rbf(ard)*periodic(ard) + noise' --optimizer lbfgsb --max-iter 100 -q --format json \
    --output gp.json --checkpoint run.state
check "gp fit, starts side by side: $kills kills" kills_of "gp fit, starts" "gp.json" "$fourge" gp fit gp.csv --y y \
    --kernel 'scale*matern52(ard) + noise' --starts 8 --threads 2 -q --format json --output gp.json --checkpoint run.state
check "soap train: $kills kills" kills_of "soap train" "soap.json" "$fourge" soap train digits --steps 8 -q --format json \
    --output soap.json --checkpoint run.state
finish
