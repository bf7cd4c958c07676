/* cli_text.c - a file, or standard input, as one text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { STEP = 4096 };

char *cli_read_text(const cli *c, const char *path, size_t *length, int *code)
{
    FILE *const file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    char *text = NULL;
    size_t room = 0;
    *length = 0;
    if (!file) {
        *code =
            cli_fail(c, "E_NO_INPUT", path, NULL, "cannot open '%s': %s", path, strerror(errno));
        return NULL;
    }
    *code = 0;
    for (size_t got = 1; got > 0;) {
        if (*length + STEP + 1 > room) {
            room = 2 * room + 2 * STEP;
            char *const bigger = realloc(text, room);
            if (!bigger) {
                *code = cli_fail_memory(c);
                break;
            }
            text = bigger;
        }
        got = fread(text + *length, 1, STEP, file);
        *length += got;
    }
    if (!*code && ferror(file)) {
        *code = cli_fail(c, "E_READ", path, NULL, "'%s' cannot be read to its end", path);
    }
    if (file != stdin) {
        (void)fclose(file);
    }
    if (*code) {
        free(text);
        return NULL;
    }
    text[*length] = '\0';
    return text;
}
