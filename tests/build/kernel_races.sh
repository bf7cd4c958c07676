#!/bin/sh
# The kernels of gw and fe, in groups of eight or 32, under oclgrind's checker of races: kernel_races.sh BUILD.  Two work-items that write one
# place are a race even where both write the same value, which the checker leaves out unless it is asked.  Races that are planted show that
# the checker sees either kind, asked by the same words of the environment.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
. "$here/tap.sh"
scratch=$(mktemp -d)
library=/usr/lib/oclgrind/liboclgrind-rt-icd.so

cat >"$scratch/racy.cl" <<'END'
kernel void racy(global int *x)
{
    x[get_local_id(0) / 2] = get_local_id(0);
}
END
cat >"$scratch/uniform_write.cl" <<'END'
kernel void uniform_write(global int *x)
{
    x[0] = 0;
}
END
for kernel in racy uniform_write; do
    cat >"$scratch/$kernel.sim" <<END
$kernel.cl
$kernel
16 1 1
8 1 1
<size=64 fill=0 int>
END
done
# checked LOG COMMAND...: with what the checker finds in LOG.
checked() {
    log=$1
    shift
    OCL_ICD_VENDORS=$scratch/vendors OCLGRIND_DATA_RACES=1 OCLGRIND_UNIFORM_WRITES=1 OCLGRIND_LOG=$log "$@"
}
# planted KERNEL: is its race found?
planted() {
    (cd "$scratch" && checked "$scratch/planted" oclgrind-kernel "$1.sim") && grep -q 'data race' "$scratch/planted"
}
# The case itself is not to be skipped; what the checker writes, of any kind, is a finding.
clean() {
    into "$scratch/printed" checked "$scratch/found" "$build/$1" --only "$2"
    cat "$scratch/printed"
    grep -q '^ok .* - '"$2"'$' "$scratch/printed" || return 1
    [ ! -s "$scratch/found" ] || { head -n 20 "$scratch/found" && return 1; }
}

if command -v oclgrind-kernel >/dev/null && [ -f "$library" ]; then
    mkdir "$scratch/vendors"
    echo "$library" >"$scratch/vendors/oclgrind.icd"
    check "a planted race is found" planted racy
    check "a planted race of equal values is found" planted uniform_write
    check "alignments have none" clean test_gw_align_device "small groups on OpenCL"
    check "distances in place have none" clean test_gw_align_device "opened in place on OpenCL"
    check "plans of low rank have none" clean test_gw_lowrank_device "small groups on OpenCL"
    check "Sinkhorn of a given cost has none" clean test_gw_device "small groups on OpenCL"
    check "fixed effects have none" clean test_fe_device "small groups on OpenCL"
    check "passes over columns have none" clean test_fe_device_passes "small groups on OpenCL"
    check "passes with slopes have none" clean test_fe_slopes_device "small groups on OpenCL"
else
    skip "races of kernels" "no oclgrind: install oclgrind"
fi
finish
