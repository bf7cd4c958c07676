#!/bin/sh
# The golden files and what is said of them: test_golden.sh BUILD
#  - PROVENANCE.tsv counts the cases and rows that the files have;
#  - every golden file is named there or in README.md;
#  - the worst differences between the peers are those that README.md states.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/tap.sh"
golden=$root/tests/golden

told() {
    awk -F'\t' -v key="$1" '$1 == key { print $2 }' "$golden/PROVENANCE.tsv"
}

# counted KEY-PREFIX: cases and rows of the files that the prefix's row names
counted() {
    for file in $(told "$1files"); do
        tail -n +2 "$golden/$file"
    done | awk -F'\t' '!seen[$1]++ { cases++ } END { print cases, NR }'
}
as_told() {
    got=$(counted "$1")
    [ "$got" = "$(told "$1cases") $(told "$1rows")" ] || { echo "PROVENANCE.tsv says $(told "$1cases") $(told "$1rows"), files have $got" && return 1; }
}
check "cases and rows of the regressions are counted" as_told ""
check "cases and rows of the Gaussian processes are counted" as_told gp.
check "cases and rows of other standard errors are counted" as_told vcov.

named() {
    for file in "$golden"/*.tsv "$golden"/*.txt "$golden"/*.csv; do
        name=$(basename "$file")
        grep -qw "$name" "$golden/PROVENANCE.tsv" "$golden/README.md" || { echo "$name is named nowhere" && return 1; }
    done
}
check "every file says where it is from" named

# worst PATTERN: the largest entry of the columns of agreement.tsv whose names match, as README.md writes it
worst() {
    awk -F'\t' -v pattern="$1" 'NR == 1 { for (i = 2; i <= NF; i++) take[i] = $i ~ pattern; next }
        { for (i = 2; i <= NF; i++) if (take[i] && $i + 0 > most) { most = $i + 0; text = $i } } END { print text }' "$golden/agreement.tsv"
}
states() {
    grep -qF "Worst over all cases: $(worst estimate) for estimates, $(worst std_error) for standard errors" "$golden/README.md" ||
        { echo "agreement.tsv has $(worst estimate) and $(worst std_error)" && return 1; }
}
check "the worst differences are stated" states
finish
