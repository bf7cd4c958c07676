/* cpu_level.c - prints the CPU level of this machine, for FOURGE_CPU_LEVELS=native of
 * CMakeLists.txt. */
#include "core/cpu_level.h"

#include <stdio.h>

int main(void)
{
    static const char *const names[] = {"plain", "v2", "v3", "v4"};
    puts(names[frgi_cpu_level()]);
    return 0;
}
