# shellcheck shell=sh disable=SC2154
# tap.sh - TAP for the shell tests; sourced.  check NAME COMMAND... runs a command; its output is shown
# when it fails.  finish prints the plan and the closing count.
tap_number=0
tap_failed=0
tap_output=$(mktemp)
trap 'rm -rf "$tap_output" ${scratch:+"$scratch"}' EXIT INT TERM

check() {
    tap_name=$1
    shift
    tap_number=$((tap_number + 1))
    if "$@" >"$tap_output" 2>&1; then
        echo "ok $tap_number - $tap_name"
    else
        tap_failed=$((tap_failed + 1))
        sed 's/^/# /' "$tap_output" | head -n 40
        echo "not ok $tap_number - $tap_name"
    fi
}

skip() {
    tap_number=$((tap_number + 1))
    echo "ok $tap_number - $1 # SKIP $2"
}

finish() {
    echo "1..$tap_number"
    echo "$((tap_number - tap_failed)) passed, $tap_failed failed"
    [ "$tap_failed" = 0 ]
}

# empty FILE: succeeds when the file is empty, else shows it.
empty() {
    cat "$1"
    [ ! -s "$1" ]
}

# source_files: tracked files and new ones that git does not ignore; outside a checkout, or in a folder that another
# repository ignores, all of the source folders.
source_files() {
    tap_files=$(cd "$root" && git ls-files -co --exclude-standard 2>/dev/null)
    [ -n "$tap_files" ] || tap_files=$(cd "$root" && find src kernels cli include tests tools bench examples python -type f)
    printf '%s\n' "$tap_files" | while read -r tap_file; do
        [ ! -f "$root/$tap_file" ] || printf '%s\n' "$tap_file"
    done
}

# declarations: the public functions of the headers below $root, one a line: "FRG_API frg_status frg_x(int n)".
declarations() {
    cat "$root"/include/fourge/*.h | grep -v '^#' | sed 's|/\*.*\*/||' | tr '\n' ' ' | grep -oE 'FRG_API [^;(]*\([^;]*\)'
}

# whole_run_paths FILE...: the loader looks in no folder that depends on where a program is run: no empty and no
# relative part in the run paths.  ELF files alone.
whole_run_paths() {
    readelf -dW "$@" | awk '/^File: / { file = $2 } /\((RPATH|RUNPATH)\)/ {
        sub(/.*\[/, ""); sub(/\][^]]*$/, "")
        n = split($0, parts, ":")
        for (i = 1; i <= n || i == 1; i++) if (parts[i] !~ /^(\/|\$ORIGIN(\/|$))/) { print file ": [" $0 "]"; bad = 1 }
    } END { exit bad }'
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
