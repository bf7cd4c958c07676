#!/bin/sh
# tools/gpu-check.sh with programs that only say how they were called: one job that fails or takes too long ends none of the others,
# a second run makes up for what is missing, and no job begins that may end too late.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch=$(mktemp -d)
mkdir "$scratch/build" "$scratch/bin"
for program in fourge test_device test_fe_device test_fe_device_passes test_fe_slopes_device test_gw_device test_gw_align_device \
    test_gw_lowrank_device test_gw_state_device test_gw_default_device; do
    printf '#!/bin/sh\necho "# $FOURGE_TEST_DEVICE $*"\necho "2 passed, 0 failed"\n' >"$scratch/build/$program"
done
printf '#!/bin/sh\necho "not ok 1 - \\"a\\""\necho "1 passed, 1 failed"\nexit 1\n' >"$scratch/build/test_gw_device"
cat >"$scratch/bin/python3" <<'END'
#!/bin/sh
case "$*" in
*"--parts large"*) [ -f "$MENDED" ] || exit 3 ;;
*"--parts rows"*) [ -f "$MENDED" ] || exec sleep 100 ;;
esac
echo "{\"called\": \"$(echo "$*" | sed 's|.*/bench/||')\"}"
END
mkdir "$scratch/build/python"
touch "$scratch/build/libfourge_opencl.so"
chmod +x "$scratch"/build/* "$scratch/bin/python3"

run() {
    MENDED=$scratch/mended PATH=$scratch/bin:$PATH timeout 60 sh "$here/../../tools/gpu-check.sh" --device opencl \
        --build "$scratch/build" --out "$scratch/out" "$@" >"$scratch/said" 2>&1
}
# jobs STATUS: names of the jobs of the last run that ended with it.
jobs() {
    sed -n "s/.*\"job\": \"\([^\"]*\)\", .*\"status\": $1,.*/\1/p" "$scratch/said" | tr '\n' ' '
}

# same GOT WANTED
same() {
    [ "$1" = "$2" ] || { echo "$1, not $2" && cat "$scratch/said" && return 1; }
}

run --most 2 gw
check "jobs beside one that fails and one that takes too long" same "$(jobs 0)" "gw/sinkhorn gw/quality "
check "these are said" same "$(jobs 3)$(jobs 124)" "gw/large gw/rows "
check "lines are in the file" same "$(grep -c called "$scratch/out")" 2
touch "$scratch/mended"
run gw
check "a second run makes up for what is missing" same "$(jobs 0)" "gw/rows gw/large "
run gw
check "a third finds nothing" empty "$scratch/said"
run --seconds 100 fe
check "jobs that end within 100 seconds" same "$(jobs 0)" "fe/1e6 fe/few fe/1e6_f32 fe/5e6_f32 fe/5e6_5 "
check "the others are said" same "$(grep -c 'no time left' "$scratch/said")" 4
run --pack "$scratch/pack"
check "a pack of the build" test -f "$scratch/pack/ours.tar.gz"
mv "$scratch/build" "$scratch/moved"
check_packed() {
    MENDED=$scratch/mended PATH=$scratch/bin:$PATH sh "$here/../../tools/gpu-check.sh" --device opencl --pack "$scratch/pack" parity
}
check "which runs where there is no build" sh -c 'grep -q "\"job\": \"parity/kernels\".*\"status\": 0"' <<END
$(check_packed)
END
mv "$scratch/moved" "$scratch/build"
run parity again
check "tests are counted" same "$(grep -c '"said": "2 passed, 0 failed"' "$scratch/said")" 16
check "failures are named" same "$(grep -c '"said": "not ok 1 - a"' "$scratch/said")" 2
check "tests that failed" same "$(jobs 1)" "parity/sinkhorn again/sinkhorn "
finish
