/* golden_text.h - arrays of a text file of tests/golden: name, rows, columns, then the values in
 * row-major order. */
#ifndef FOURGE_TEST_GOLDEN_TEXT_H
#define FOURGE_TEST_GOLDEN_TEXT_H

#include <stdio.h>
#include <string.h>

#include "test.h"

/** The array `name` of the file at `path` into out; false, after a failed check, where it is not
 *  there. */
static bool golden_array(const char *path, const char *name, double *out)
{
    FILE *const f = fopen(path, "r");
    char word[64];
    long rows, columns;
    bool found = false;
    if (!CHECK(f != NULL))
        return false;
    while (!found && fscanf(f, "%63s %ld %ld", word, &rows, &columns) == 3) {
        found = strcmp(word, name) == 0;
        for (long i = 0; i < rows * columns; i++) {
            double skipped;
            if (fscanf(f, "%lf", found ? &out[i] : &skipped) != 1)
                break;
        }
    }
    fclose(f);
    return CHECK_SAYS(found, "%s is not in the file", name);
}

#endif
