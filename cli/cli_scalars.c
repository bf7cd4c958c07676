/* cli_scalars.c - a JSON object as csv: a line "name,value" for each number, word and truth value, in its order.
 *
 *     {"n": 3, "seconds": {"total": 0.5}, "notes": ["a"]}    n,3    seconds.total,0.5    notes.0,a
 *
 * It reads what frg_json wrote, and no other JSON: the text is valid. */
#include <string.h>

#include "cli.h"

enum { NAME_ROOM = 256 };

typedef struct {
    const char *at;
    FILE *to;
    char name[NAME_ROOM];
} walk;

static void skip_space(walk *w)
{
    w->at += strspn(w->at, " \n,");
}

static unsigned hexadecimal(walk *w)
{
    unsigned code = 0;
    sscanf(w->at, "%4x", &code);
    w->at += 4;
    return code;
}

/** A character by its number, behind "\\u", in UTF-8. */
static int numbered(walk *w, char out[4])
{
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    unsigned code = hexadecimal(w);
    if (code >= 0xd800 && code < 0xdc00) { /* the first of a pair */
        w->at += 2;
        code = ((code - 0xd7c0) << 10) | (hexadecimal(w) & 0x3ff);
    }
    const int n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, code >>= 6) {
        out[i] = (char)(0x80 | (code & 0x3f));
    }
    out[0] = (char)((n > 1 ? leads[n] : 0) | code);
    return n;
}

/** The bytes of the next character of a string, or a part of it; how many, 0 at the end. */
static int next_of_string(walk *w, char out[4])
{
    static const char letters[] = "bfnrt", meanings[] = "\b\f\n\r\t";
    const char c = *w->at++;
    out[0] = c;
    if (c != '\\') {
        return c != '"';
    }
    const char escape = *w->at++;
    if (escape == 'u') {
        return numbered(w, out);
    }
    const char *const found = strchr(letters, escape);
    out[0] = found ? meanings[found - letters] : escape;
    return 1;
}

static void put_quoted(FILE *to, const char *bytes, int n)
{
    for (int i = 0; i < n; i++) {
        fputs(bytes[i] == '"' ? "\"" : "", to);
        putc(bytes[i], to);
    }
}

static void put_string(walk *w)
{
    char bytes[4];
    putc('"', w->to);
    for (int n; (n = next_of_string(w, bytes)) > 0;) {
        put_quoted(w->to, bytes, n);
    }
    putc('"', w->to);
}

/** Appends ".key" to the name; the length it had. */
static size_t extend(walk *w, const char *key)
{
    const size_t length = strlen(w->name);
    snprintf(w->name + length, sizeof w->name - length, "%s%s", length ? "." : "", key);
    return length;
}

static void read_key(walk *w, char key[NAME_ROOM])
{
    char bytes[4];
    int length = 0;
    w->at++;
    for (int n; (n = next_of_string(w, bytes)) > 0;) {
        if (length + n < NAME_ROOM) {
            memcpy(key + length, bytes, (size_t)n);
            length += n;
        }
    }
    key[length] = '\0';
    w->at += strspn(w->at, ": ");
}

/** A name is quoted where csv wants it: a term of a kernel may hold anything. */
static void put_name(walk *w)
{
    const int quoted = strpbrk(w->name, ",\"\n") != NULL;
    fputs(quoted ? "\"" : "", w->to);
    put_quoted(w->to, w->name, (int)strlen(w->name));
    fputs(quoted ? "\"," : ",", w->to);
}

static void put_scalar(walk *w)
{
    put_name(w);
    if (*w->at == '"') {
        w->at++;
        put_string(w);
    } else {
        const size_t length = strcspn(w->at, ",]} \n");
        if (strncmp(w->at, "null", 4) != 0) { /* an empty cell */
            fwrite(w->at, 1, length, w->to);
        }
        w->at += length;
    }
    putc('\n', w->to);
}

static void put_value(walk *w)
{
    const char open = *w->at;
    if (open != '{' && open != '[') {
        put_scalar(w);
        return;
    }
    w->at++;
    skip_space(w);
    for (int i = 0; *w->at != '}' && *w->at != ']'; i++) {
        char key[NAME_ROOM];
        if (open == '{') {
            read_key(w, key);
        } else {
            snprintf(key, sizeof key, "%d", i);
        }
        const size_t length = extend(w, key);
        put_value(w);
        w->name[length] = '\0';
        skip_space(w);
    }
    w->at++;
}

void json_scalars(FILE *to, const char *json)
{
    walk w = {.at = json, .to = to};
    fputs("name,value\n", to);
    put_value(&w);
}
