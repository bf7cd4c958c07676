# shellcheck shell=sh disable=SC2154
# tap.sh - TAP for the shell tests; sourced.  check NAME COMMAND... runs a command; its output is shown
# when it fails.  finish prints the plan and the closing count.
#
# A file of findings proves nothing unless what wrote it came to its end.  It is written by into or found, and not by a
# pipe, of which the shell knows the last command's end alone.
tap_number=0
tap_failed=0
tap_broken= # steps that failed since the last check, one a line
tap_output=$(mktemp)
trap 'rm -rf "$tap_output" "$tap_output".* ${scratch:+"$scratch"}' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# check NAME COMMAND...: fails, too, where a step before it has.
check() {
    tap_name=$1
    shift
    tap_number=$((tap_number + 1))
    if "$@" >"$tap_output" 2>&1 && [ -z "$tap_broken" ]; then
        echo "ok $tap_number - $tap_name"
    else
        tap_failed=$((tap_failed + 1))
        printf '%s' "$tap_broken" | sed 's/^/# /'
        sed 's/^/# /' "$tap_output" | head -n 40
        echo "not ok $tap_number - $tap_name"
        tap_broken=
    fi
}

# into FILE COMMAND...: the file <- what the command prints; the next check fails where the command does.
into() {
    tap_to=$1
    shift
    "$@" >"$tap_to" || broken $? "$@"
}

# found FILE ARGUMENT...: the same of grep, which may find nothing.
found() {
    tap_to=$1
    shift
    tap_status=0
    grep "$@" >"$tap_to" || tap_status=$?
    [ "$tap_status" -le 1 ] || broken "$tap_status" grep "$@"
}

# broken STATUS COMMAND...: keeps for the next check that a step failed.
broken() {
    tap_status=$1
    shift
    tap_broken="${tap_broken}status $tap_status of: $*
"
}

skip() {
    tap_number=$((tap_number + 1))
    echo "ok $tap_number - $1 # SKIP $2"
}

finish() {
    [ -z "$tap_broken" ] || check "the last steps" true
    echo "1..$tap_number"
    echo "$((tap_number - tap_failed)) passed, $tap_failed failed"
    [ "$tap_failed" = 0 ]
}

# empty FILE: succeeds when the file is there and empty, else shows it.
empty() {
    cat "$1" && [ ! -s "$1" ]
}

# source_files: tracked files and new ones that git does not ignore; outside a checkout, or in a folder that another
# repository ignores, all of the source folders.
source_files() {
    tap_files=$(cd "$root" && git ls-files -co --exclude-standard 2>/dev/null) || tap_files=
    [ -n "$tap_files" ] ||
        tap_files=$(cd "$root" && find src kernels cli include tests tools bench examples python -type f) || return 1
    while read -r tap_file; do
        [ ! -f "$root/$tap_file" ] || printf '%s\n' "$tap_file"
    done <<END
$tap_files
END
}

# declarations: the public functions of the headers below $root, one a line: "FRG_API frg_status frg_x(int n)".
declarations() {
    awk '!/^#/ { sub(/\/\*.*\*\//, ""); text = text $0 " " }
        END { while (match(text, /FRG_API [^;(]*\([^;]*\)/)) {
            print substr(text, RSTART, RLENGTH)
            text = substr(text, RSTART + RLENGTH)
        } }' "$root"/include/fourge/*.h
}

# whole_run_paths FILE...: the loader looks in no folder that depends on where a program is run: no empty and no
# relative part in the run paths.  ELF files alone.
whole_run_paths() {
    readelf -dW "$@" >"$tap_output.paths" && awk '/^File: / { file = $2 } /\((RPATH|RUNPATH)\)/ {
        sub(/.*\[/, ""); sub(/\][^]]*$/, "")
        n = split($0, parts, ":")
        for (i = 1; i <= n || i == 1; i++) if (parts[i] !~ /^(\/|\$ORIGIN(\/|$))/) { print file ": [" $0 "]"; bad = 1 }
    } END { exit bad }' "$tap_output.paths"
}

# kept_environment FOLDER LOG PACKAGE...: an environment of Python with these packages from the index, made once and kept;
# status 1 where the index does not give them, with the reason in LOG.
kept_environment() {
    kept=$1
    kept_log=$2
    shift 2
    [ "$(cat "$kept/installed" 2>/dev/null)" != "$*" ] || return 0
    { rm -rf "$kept" && /usr/bin/python3 -m venv "$kept" &&
        "$kept/bin/pip" install -q --disable-pip-version-check --retries 1 "$@" && echo "$*" >"$kept/installed"; } >"$kept_log" 2>&1
}
