#!/bin/sh
# What the library exports and what it calls: test_symbols.sh BUILD.
#  - the shared library exports exactly the FRG_API functions of the headers;
#  - the static library's names begin with frg_ or frgi_;
#  - no call that ends the process, prints, depends on the locale or keeps hidden state;
#  - memory comes from core's allocator alone, the environment is read in one file.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
. "$here/tap.sh"
scratch=$(mktemp -d)

# Declarations that start with FRG_API: the name is what stands before the first bracket.
declarations | grep -oE 'FRG_API [^;(]*\(' | grep -oE 'frgi?_[a-z0-9_]+ *\($' | tr -d ' (' | sort >"$scratch/declared"
nm -D --defined-only "$build/libfourge.so" | awk '{print $3}' | sort >"$scratch/exported"
comm -23 "$scratch/declared" "$scratch/exported" >"$scratch/missing"
comm -13 "$scratch/declared" "$scratch/exported" >"$scratch/extra"
check "the headers declare functions" test "$(wc -l <"$scratch/declared")" -gt 50
check "every declared function is exported" empty "$scratch/missing"
check "nothing else is exported" empty "$scratch/extra"

nm -g --defined-only "$build/libfourge.a" | awk 'NF == 3 {print $3}' | grep -vE '^(\.gomp_critical_user_)?frgi?_' >"$scratch/foreign"
check "global names begin with frg_ or frgi_" empty "$scratch/foreign"

# object: undefined symbol, one a line
nm -A -u "$build/libfourge.a" | sed 's/^[^:]*:\([^:]*\):.* \([^ ]*\)$/\1 \2/; s/@.*//' | sort -u >"$scratch/calls"

# users OBJECTS-ALLOWED NAMES: the calls of NAMES from other objects.
users() {
    pattern=" ($2)\$"
    grep -E "$pattern" "$scratch/calls" | grep -vE "^($1) " >"$scratch/found"
    empty "$scratch/found"
}
none='no such object'
check "nothing ends the process" users "$none" 'exit|_exit|quick_exit|abort|signal|sigaction|system|popen|fork'
check "nothing prints" users "$none" \
    'printf|vprintf|fprintf|vfprintf|puts|putchar|fputs|fputc|putc|perror|stdout|stderr|fwrite|dprintf'
check "nothing depends on the locale or keeps state" users "$none" \
    'strtod|strtof|strtold|atof|atoi|atol|setlocale|localeconv|sscanf|__isoc99_sscanf|fscanf|rand|srand|random|strtok|localtime|gmtime|asctime|ctime'
check "system messages are asked for in one file" users 'files\.c\.o' 'strerror|strerror_r'
check "no unbounded string calls" users "$none" 'gets|strcpy|strcat|sprintf|vsprintf|stpcpy'
# qsort of the C library allocates, and sorts otherwise when it cannot; amd_order allocates, amd_2 does not
check "memory comes from core alone" users 'memory\.c\.o' \
    'malloc|calloc|realloc|free|aligned_alloc|posix_memalign|memalign|strdup|strndup|asprintf|vasprintf|getline|fopen|qsort|qsort_r|amd_order|amd_l_order'
check "files are reached through core alone" users 'files\.c\.o' \
    'open|open64|openat|openat64|creat|read|write|fsync|rename|unlink|close|pread|pwrite|mmap'
check "the environment is read in one file" users 'context\.c\.o' 'getenv|secure_getenv|setenv|putenv'
finish
