/* replay.c - runs a fuzz target over its corpus without a fuzzer, as an ordinary test.
 *
 * Linked with one tests/fuzz/fuzz_NAME.c; the inputs are the files of tests/fuzz/corpus/NAME, or
 * the files and folders named on the command line.  Each input is fed whole, cut short at up to 32
 * places, and with up to 32 bytes changed one at a time, both deterministic: a reader that trusts
 * its input dies here, long before the fuzzer runs.  Prints TAP; the last "# file" line names the
 * input that killed the program.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PLACES = 32, PATH_ROOM = 4096 };

/** A block of exactly `size` bytes, so that a sanitizer sees the first byte read beyond. */
static void feed(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    if (size)
        memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static uint8_t *slurp(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    uint8_t *data = NULL;
    size_t room = 0, got = 0;
    *size = 0;
    do {
        *size += got;
        if (*size == room) {
            room = room ? 2 * room : 4096;
            uint8_t *const more = realloc(data, room);
            if (!more)
                abort();
            data = more;
        }
        got = fread(data + *size, 1, room - *size, f);
    } while (got > 0);
    fclose(f);
    return data;
}

static int replay_file(const char *path)
{
    size_t size = 0;
    uint8_t *data = slurp(path, &size);
    if (!data)
        return 0;
    printf("# %s\n", path);
    fflush(stdout);
    feed(data, size);
    const size_t step = size / PLACES + 1;
    for (size_t cut = 0; cut < size; cut += step)
        feed(data, cut);
    for (size_t at = 0; at < size; at += step) {
        const uint8_t was = data[at];
        data[at] = (uint8_t)(was ^ (1u << (at % 8)));
        feed(data, size);
        data[at] = was;
    }
    free(data);
    return 1;
}

/** Files in the order of their names, so that a run can be repeated. */
static int replay(const char *path)
{
    struct dirent **entries;
    const int n = scandir(path, &entries, NULL, alphasort);
    if (n < 0)
        return replay_file(path);
    int fed = 0;
    for (int i = 0; i < n; i++) {
        char inside[PATH_ROOM];
        const int length = snprintf(inside, sizeof inside, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && length < (int)sizeof inside)
            fed += replay(inside);
        free(entries[i]);
    }
    free(entries);
    return fed;
}

int main(int argc, char **argv)
{
    printf("1..1\n");
    int fed = argc > 1 ? 0 : replay(FUZZ_CORPUS);
    for (int i = 1; i < argc; i++)
        fed += replay(argv[i]);
    printf("%sok 1 - %d inputs, each whole, cut and changed\n", fed ? "" : "not ", fed);
    printf("%d passed, %d failed\n", fed > 0, fed == 0);
    return fed ? 0 : 1;
}
