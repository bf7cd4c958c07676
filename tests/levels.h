/* levels.h - a check at every CPU level of this machine: a context made within it takes that
 * level. */
#ifndef FOURGE_TEST_LEVELS_H
#define FOURGE_TEST_LEVELS_H

#include <stdio.h>
#include <stdlib.h>

/** Runs body with FOURGE_ISA at plain, v3 and v4; what was set before is set again. */
static void test_at_levels(void (*body)(void))
{
    static const char *const names[] = {"plain", "v3", "v4"};
    const char *const before = getenv("FOURGE_ISA");
    char kept[16] = "";
    if (before)
        snprintf(kept, sizeof kept, "%s", before);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        setenv("FOURGE_ISA", names[i], 1);
        body();
    }
    if (before)
        setenv("FOURGE_ISA", kept, 1);
    else
        unsetenv("FOURGE_ISA");
}

#endif
