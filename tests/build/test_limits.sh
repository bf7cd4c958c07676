#!/bin/sh
# tests/run_one.sh ends what hangs, and nothing else: a busy loop by its CPU time, a deadlock by the clock.
# What the shell tests share (tap.sh) fails a test whose steps do not come to their end.
set -u
here=$(cd "$(dirname "$0")" && pwd)
one=$here/../run_one.sh
. "$here/tap.sh"
scratch=$(mktemp -d)
cd "$scratch" || exit 1
mkdir logs bin

cat >busy.sh <<'END'
echo "ok 1 - before"
while :; do :; done
END
cat >child.sh <<'END'
sh busy.sh >/dev/null && echo "ok 1 - child" || echo "not ok 1 - the child ended with status $?"
echo "1..1"
END
cat >deadlock.sh <<'END'
mkfifo a b # each of two processes waits for a reader of its own pipe before it reads the other's
echo "ok 1 - before"
cat a >b &
cat b >a
END
cat >slow.sh <<'END'
sleep 2
echo "ok 1 - slow"
echo "1..1"
END

# ended COUNT WORDS LIMIT SCRIPT: what run_one.sh counts ("passed failed skipped") and says of a script.
ended() {
    sh "$one" logs planted "$3" sh "$4" >said
    cat said
    [ "$(cat logs/planted.count)" = "$1" ] && grep -qF "$2" said
}
check "a busy loop ends by its CPU time" ended "1 1 0" "ran out of its 1 s (CPU time)" 1:120 busy.sh
check "so does one in a script's child" ended "0 1 0" "the child ended with status 152" 1:120 child.sh
check "waiting costs no CPU time: a slow hour fails nothing" ended "1 0 0" "1 passed, 0 failed, " 1 slow.sh
check "no test has run out of its time by the clock" test ! -e logs/hung
check "a deadlock ends by the clock" ended "1 1 0" "ran out of its 1 s (wall time)" 60:1 deadlock.sh

# `timeout` that says what it was given
printf '#!/bin/sh\necho "ok 1 - wall $3"\necho 1..1\n' >bin/timeout
chmod +x bin/timeout
# has LIMIT WALL HUNG: the wall time that a test of this limit has after so many have hung.
has() {
    rm -f logs/hung
    for _ in $(seq "$3"); do echo hung >>logs/hung; done
    PATH=$scratch/bin:$PATH sh "$one" logs planted "$1" true >/dev/null
    grep -x "ok 1 - wall $2" logs/planted.log
}
check "the wall time is 30 times the CPU time" has 20 600 0
check "or 900 s" has 60 900 0
check "or what is given" has 60:3600 3600 0
check "half after a test that hung" has 60 450 1
check "at least 60 s after many" has 60 60 9
check "or what it had before where that is less" has 1 30 9

# counts COUNT LINE...: what is counted of a script that sources tap.sh; $patience is how long it may take by the clock.
patience=60
counts() {
    want=$1
    shift
    printf '%s\n' ". '$here/tap.sh'" 'scratch=$(mktemp -d)' "$@" finish >planted.sh
    rm -f logs/hung
    ended "$want" "planted" "60:$patience" planted.sh
}
# shellcheck disable=SC2016 # lines of scripts
{
    check "steps that find nothing pass" counts "2 0 0" 'into "$scratch/a" true' 'check "a" empty "$scratch/a"' \
        'found "$scratch/a" nothing /dev/null' 'check "b" empty "$scratch/a"'
    check "a step that is killed fails the check behind it" counts "1 1 0" 'into "$scratch/a" sh -c "kill -9 \$\$"' \
        'check "a" empty "$scratch/a"' 'check "b" true'
    check "so does a grep that cannot read" counts "0 1 0" 'found "$scratch/a" nothing /nowhere' 'check "a" empty "$scratch/a"'
    check "a step at the end fails, too" counts "1 1 0" 'check "a" true' 'into "$scratch/a" false'
    check "what is not there is not empty" counts "0 1 0" 'check "a" empty "$scratch/a"'
    patience=5
    check "a script that is told to end says no more" counts "1 1 0" 'check "a" true' 'sleep 60' 'check "b" true'
}
finish
