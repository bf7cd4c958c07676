#!/bin/sh
# What `fourge doctor` says of a machine that others use: test_doctor.sh BUILD. The machine is made up: a library loaded
# before the others answers for /proc, the control groups and the load average with what lies in a folder.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
. "$here/tap.sh"
scratch=$(mktemp -d)
cd "$scratch" || exit 1
unset OMP_NUM_THREADS OMP_WAIT_POLICY GOMP_SPINCOUNT FOURGE_ISA
mkdir -p machine/proc/self machine/sys/fs/cgroup

cat >machine.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static const char *made_up(const char *path, char *room, size_t bytes)
{
    if (strcmp(path, "/proc/stat") && strcmp(path, "/proc/self/cgroup") && strncmp(path, "/sys/fs/cgroup", 14))
        return path;
    snprintf(room, bytes, "%s%s", getenv("MACHINE"), path);
    return room;
}
#define FORWARD(name)                                                                    \
    FILE *name(const char *path, const char *mode)                                       \
    {                                                                                    \
        char room[4096];                                                                 \
        FILE *(*real)(const char *, const char *) = dlsym(RTLD_NEXT, #name);             \
        return real(made_up(path, room, sizeof room), mode);                             \
    }
FORWARD(fopen)
FORWARD(fopen64)
#define FORWARD_OPEN(name)                                                               \
    int name(const char *path, int flags, ...)                                           \
    {                                                                                    \
        char room[4096];                                                                 \
        int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, #name);                   \
        return real(made_up(path, room, sizeof room), flags, 0600);                      \
    }
FORWARD_OPEN(open)
FORWARD_OPEN(open64)
int __open_2(const char *path, int flags) /* what a fortified open is */
{
    return open(path, flags);
}
int getloadavg(double load[], int n)
{
    load[0] = atof(getenv("LOAD"));
    return n > 0 ? 1 : n;
}
END
check "the machine is made up" cc -shared -fPIC -D_FORTIFY_SOURCE=0 -o machine.so machine.c

# machine QUOTA STEAL: the control group's cores, and jiffies of 1000 that the host took.
machine() {
    echo "cpu 100 0 100 $((800 - $2)) 0 0 0 $2 0 0" >machine/proc/stat
    echo "0::/" >machine/proc/self/cgroup
    echo "$1 100000" >machine/sys/fs/cgroup/cpu.max
}
# says WORDS LOAD [VARIABLE=VALUE] OPTION...: the advice has these words on that load; never WORDS: it has not.
advice() {
    load=$1
    shift
    variable=
    case $1 in [A-Z]*=*) variable=$1; shift ;; esac
    # shellcheck disable=SC2086 # a variable or none
    env LD_PRELOAD="$scratch/machine.so" MACHINE="$scratch/machine" LOAD="$load" $variable \
        "$build/fourge" doctor --format json "$@" >"$scratch/said" || return 1
    cat "$scratch/said"
}
says() {
    words=$1
    shift
    advice "$@" && grep -qF "$words" "$scratch/said"
}
never() {
    words=$1
    shift
    advice "$@" && ! grep -qF "$words" "$scratch/said"
}
cores=$(nproc)
machine max 0
check "a quiet machine is none that others use" never "cores busy" 0.1 --threads 1
check "nor does it ask for fewer threads" never "use --threads" 0.1 --threads 1
check "programs at work are told" says "other programs keep $cores.0 of $cores cores busy" "$cores.0" --threads 1
check "threads that find no core, and how many do" says \
    "$((cores + 1)) threads and a load of $cores.0 share $cores cores: --threads 1 leaves" "$cores" --threads "$((cores + 1))"
check "threads that spin beside them" says "OMP_WAIT_POLICY=active lets threads spin" 2 OMP_WAIT_POLICY=active --threads 1
check "or for long" says "GOMP_SPINCOUNT=300000 lets threads spin" 2 GOMP_SPINCOUNT=300000 --threads 1
check "and not where they sleep soon" never "lets threads spin" 2 --threads 1
check "programs of one's own, which spin beside them" says "start them with GOMP_SPINCOUNT=2000" "$cores" --threads 1
check "and not where nobody else works" never "start them with GOMP_SPINCOUNT" 0.1 --threads 1
machine 150000 0
check "a control group of fewer cores" says "3 threads share a control group's 1.5 CPUs (cpu.max) and will be stopped in turn: use --threads 1" \
    0.1 --threads 3
machine max 200
check "a host that takes the cores away" says "has given 20 % of its cores' time to others" 0.1 --threads 1
finish
