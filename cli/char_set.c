/* char_set.c - a text as a table of what stands before a character and what it is.
 *
 * A row has the 32 characters before a place, each as seven numbers +-1, the bits of its code; its
 * class is the character that follows, among those that the text has.  The network reads them as it
 * reads any table: a model of a language without attention, which examples/char_transformer.c
 * has. */
#include <stdlib.h>

#include "soap/mlp.h"

enum { CONTEXT = 32, BITS = 7, CODES = 1 << BITS, ROWS_MOST = 40000 };

/** classes[code]: the number of a character among those that occur. */
static int number_characters(const unsigned char *text, int64_t length, int32_t classes[CODES])
{
    int32_t n = 0;
    int occurs[CODES] = {0};
    for (int64_t i = 0; i < length; i++) {
        occurs[text[i] % CODES] = 1;
    }
    for (int code = 0; code < CODES; code++) {
        classes[code] = occurs[code] ? n++ : -1;
    }
    return n;
}

int training_set_text(training_set *set, const cli *c, const char *path)
{
    *set = (training_set){.inputs = CONTEXT * BITS};
    size_t length;
    int code;
    char *const owned = cli_read_text(c, path, &length, &code);
    if (owned && length <= CONTEXT) {
        code = cli_fail(c, "E_NO_INPUT", path, NULL, "'%s' has no more than %d characters", path,
                        CONTEXT);
    }
    if (code) {
        free(owned);
        return code;
    }
    const unsigned char *const text = (const unsigned char *)owned;
    int32_t classes[CODES];
    const int64_t places = (int64_t)length - CONTEXT;
    set->classes = number_characters(text, (int64_t)length, classes);
    set->rows = places < ROWS_MOST ? places : ROWS_MOST;
    set->x = malloc((size_t)(set->rows * set->inputs) * sizeof *set->x);
    set->label = malloc((size_t)set->rows * sizeof *set->label);
    for (int64_t r = 0; set->x && set->label && r < set->rows; r++) {
        const unsigned char *const at = text + r * places / set->rows; /* spread over the text */
        for (int k = 0; k < CONTEXT * BITS; k++) {
            set->x[r * set->inputs + k] = at[k / BITS] >> k % BITS & 1 ? 1 : -1;
        }
        set->label[r] = classes[at[CONTEXT] % CODES];
    }
    free(owned);
    return set->x && set->label ? 0 : cli_fail_memory(c);
}
