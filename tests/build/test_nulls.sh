#!/bin/sh
# Every function of the headers, called with zeros and NULL in each place, comes back: test_nulls.sh BUILD.  What
# returns a status refuses, once without and once with a context.  The program is written from the declarations, so
# that a new function is in it by itself.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
. "$here/tap.sh"
scratch=$(mktemp -d)

# One declaration a line: "FRG_API frg_status frg_x(frg_context *ctx, int n)".
into "$scratch/public" declarations
into "$scratch/declared" sed 's/FRG_[A-Z_]* //g; s/  */ /g' "$scratch/public"

{
    for header in "$root"/include/fourge/*.h; do
        echo "#include \"fourge/$(basename "$header")\""
    done
    cat <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static frg_context *ctx;
C
    awk '
        # What stands in the place of one parameter; given: the context is.
        function zero(parameter, given) {
            if (parameter ~ /frg_context \*[a-z]+$/) { has_context = 1; return given ? "ctx" : "NULL" }
            if (parameter ~ /[*\[]/) return "NULL"
            if (match(parameter, /^(frg_array|frg_gw_side|frg_device )/)) return "(" substr(parameter, 1, RLENGTH) "){0}"
            return "0"
        }
        {
            open = index($0, "("); head = substr($0, 1, open - 1); inside = substr($0, open + 1); sub(/\)$/, "", inside)
            name = head; sub(/.*[ *]/, "", name); returns = head; sub(/ *[a-z0-9_]+$/, "", returns)
            if (name ~ /^frg_context_(create|destroy)$/) next
            for (given = 0; given < 2; given++) {
                has_context = 0; list = ""
                n = inside == "void" ? 0 : split(inside, parameters, /, */)
                for (i = 1; i <= n; i++) list = list (i > 1 ? ", " : "") zero(parameters[i], given)
                if (given && !has_context) continue
                if (given && name == "frg_context_set_stream") continue # NULL is a queue of its own
                call = name "(" list ")"
                printf "static int call_%d(void) { ", count
                if (returns == "frg_status") printf "return %s < 0;", call; else printf "(void)%s; return 1;", call
                print " }"
                calls = calls sprintf("    {\"%s\", call_%d},\n", name (given ? " with a context" : ""), count++)
            }
        }
        END { printf "static const struct { const char *name; int (*refuses)(void); } calls[] = {\n%s};\n", calls }' "$scratch/declared"
    cat <<'C'
int main(void)
{
    const int n = (int)(sizeof calls / sizeof *calls);
    if (frg_context_create(&ctx, NULL) != FRG_OK) {
        return 1;
    }
    printf("1..%d\n", n);
    for (int i = 0; i < n; i++) {
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            exit(calls[i].refuses() ? 9 : 8); /* not _exit: a coverage build counts then */
        }
        int how = 0;
        waitpid(child, &how, 0);
        const int ended = WIFEXITED(how) ? WEXITSTATUS(how) : 0;
        printf("%sok %d - %s%s\n", ended == 9 ? "" : "not ", i + 1, calls[i].name,
               ended == 9 ? "" : ended == 8 ? ": does not refuse" : ": is killed");
    }
    frg_context_destroy(ctx);
}
C
} >"$scratch/nulls.c"

check "the headers declare functions" test "$(wc -l <"$scratch/declared")" -gt 200
check "the program compiles" gcc -std=c11 -D_POSIX_C_SOURCE=200809L -I"$root/include" "$scratch/nulls.c" \
    -o "$scratch/nulls" -L"$build" -lfourge
LD_LIBRARY_PATH="$build" into "$scratch/answers" "$scratch/nulls"
found "$scratch/wrong" '^not ok' "$scratch/answers"
check "every call is made" test "1..$(grep -c 'ok [0-9]' "$scratch/answers")" = "$(head -n 1 "$scratch/answers")"
check "every call with NULL comes back, and statuses refuse" empty "$scratch/wrong"
finish
