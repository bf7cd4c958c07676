#!/bin/bash
# Runs the program's cases: run_cli_tests.sh PROGRAM [--refresh] [CASE ...]
#
# A case is cases/NAME.case, run in an empty folder of its own with $DATA set to the folder of the real data.
# Lines without indent are words for the reader; two blanks before the others:
#
#   $ fourge fe 'y ~ x' missing.csv          a command, for bash; "  > " goes on with it
#   line of standard output                  exactly
#   took * ms (glob)                         a glob pattern: * ? [ ] as in the shell
#   ! line of standard error
#   = 66                                     exit code, where it is not 0
#   ...                                      any lines, up to where the next expected one matches
#   ? terminal true # no terminal is here    the commands up to the next words run where this one succeeds, and
#                                            are skipped elsewhere, for the reason behind the #
#
# --refresh writes what the program says now into the blocks that no longer match; read the difference before
# committing it.  Ends with "N passed, N failed, N skipped", exit code 0 only without failures.
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '2,17s/^# \{0,1\}//p' "$0"; exit 2; }
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift
refresh=0 chosen=()
for word in "$@"; do
    if [ "$word" = --refresh ]; then refresh=1; else chosen+=("$word"); fi
done
[ -x "$program" ] || { echo "there is no program $program" >&2; exit 2; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin"
ln -s "$program" "$scratch/bin/fourge"
ln -s "$here/tools/"* "$scratch/bin/"
ln -s "$here/../../data" "$scratch/data"
export PATH="$scratch/bin:$PATH" DATA=../data FOURGE_DATA="$here/../../data"
export LC_ALL=C.UTF-8 NO_COLOR= TERM=xterm
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE OMP_NUM_THREADS FOURGE_ISA FOURGE_DEVICE FOURGE_PLUGINS
passed=0 failed=0 skipped=0 number=0

# same_line EXPECTED ACTUAL
same_line() {
    case $1 in
    *" (glob)")
        local pattern=${1% (glob)}
        # shellcheck disable=SC2053,SC2254
        case $2 in $pattern) return 0 ;; esac
        return 1 ;;
    esac
    [ "$1" = "$2" ]
}

# same_block: do the lines of the array `wanted` describe the lines of `found`?
same_block() {
    local i=0 j=0
    while [ $i -lt ${#wanted[@]} ]; do
        if [ "${wanted[i]}" = "..." ]; then
            i=$((i + 1))
            [ $i -eq ${#wanted[@]} ] && return 0
            while [ $j -lt ${#found[@]} ] && ! same_line "${wanted[i]}" "${found[j]}"; do j=$((j + 1)); done
        fi
        [ $j -lt ${#found[@]} ] && same_line "${wanted[i]}" "${found[j]}" || return 1
        i=$((i + 1)) j=$((j + 1))
    done
    [ $j -eq ${#found[@]} ]
}

indented() {
    [ $# -gt 0 ] && printf '%s\n' "$@" | sed 's/^/  /; s/ *$//'
    return 0
}

# run_block: runs `command` and compares with `wanted`; writes the block that stands from now on to `rewritten`.
run_block() {
    [ -n "$command" ] || return 0
    local code line name
    number=$((number + 1))
    name="$case_name: ${command%%$'\n'*}"
    if [ -n "$lacks" ]; then
        skipped=$((skipped + 1))
        echo "ok $number - $name # SKIP $lacks"
        indented "$ ${command//$'\n'/$'\n'> }" ${wanted[@]+"${wanted[@]}"} >>"$rewritten"
        command=''
        return 0
    fi
    (cd "$work" && timeout "${FOURGE_CASE_SECONDS:-150}" bash -c "$command" >"$scratch/out" 2>"$scratch/err" </dev/null)
    code=$?
    found=()
    while IFS= read -r line || [ -n "$line" ]; do found+=("${line%"${line##*[! ]}"}"); done <"$scratch/out"
    while IFS= read -r line || [ -n "$line" ]; do found+=("! $line"); done <"$scratch/err"
    [ $code -ne 0 ] && found+=("= $code")
    indented "$ ${command//$'\n'/$'\n'> }" >>"$rewritten"
    if same_block; then
        passed=$((passed + 1))
        echo "ok $number - $name"
        indented ${wanted[@]+"${wanted[@]}"} >>"$rewritten"
    else
        failed=$((failed + 1))
        echo "not ok $number - $name"
        indented ${found[@]+"${found[@]}"} >>"$rewritten"
        diff <(indented ${wanted[@]+"${wanted[@]}"}) <(indented ${found[@]+"${found[@]}"}) | sed 's/^/#   /'
    fi
    command=''
}

# A blank line belongs to the expected text if more of it follows.
run_case() {
    local line blanks=''
    command='' lacks=''
    case_name=$(basename "$1" .case)
    work=$scratch/$case_name
    rewritten=$scratch/$case_name.new
    mkdir -p "$work"
    : >"$rewritten"
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in
        '  $ '*)
            run_block
            printf '%s' "$blanks" >>"$rewritten"
            command=${line#'  $ '} wanted=() blanks='' ;;
        '  ? '*)
            run_block
            printf '%s%s\n' "$blanks" "$line" >>"$rewritten"
            blanks='' lacks=''
            (cd "$work" && bash -c "${line#'  ? '}" >/dev/null 2>&1 </dev/null) || lacks=${line#*# } ;;
        '  > '*) command=$command$'\n'${line#'  > '} ;;
        '') blanks=$blanks$'\n' ;;
        '  '*)
            while [ -n "$blanks" ]; do wanted+=('') blanks=${blanks#?}; done
            wanted+=("${line#  }") ;;
        *)
            run_block
            printf '%s%s\n' "$blanks" "$line" >>"$rewritten"
            blanks='' lacks='' ;;
        esac
    done <"$1"
    run_block
    if [ $refresh = 1 ] && ! cmp -s "$rewritten" "$1"; then
        cp "$rewritten" "$1"
        echo "# rewrote $case_name"
    fi
}

[ ${#chosen[@]} -gt 0 ] || chosen=("$here"/cases/*.case)
for file in "${chosen[@]}"; do
    [ -e "$file" ] || file=$here/cases/$file.case
    run_case "$file"
done
echo "1..$number"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
