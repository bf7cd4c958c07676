/* test_json.c - the JSON writer: layout, escaping, misuse, and a parser that reads it all back. */
#include "fourge/report.h"
#include "hostile.h"

static const char *finish(frg_context *ctx, frg_json *j)
{
    const char *text = "";
    int64_t length = 0;
    CHECK_OK(ctx, frg_json_finish(j, &text, &length));
    CHECK_INT(length, strlen(text));
    return text;
}

static void write_sample(frg_json *j)
{
    frg_json_open_object(j, NULL);
    frg_json_string(j, "schema", "fourge.fe/1");
    frg_json_integer(j, "n", INT64_MIN);
    frg_json_number(j, "r2", 0.1);
    frg_json_number(j, "bound", (double)NAN);
    frg_json_bool(j, "converged", 7);
    frg_json_string(j, "missing", NULL);
    frg_json_open_array(j, "audit");
    frg_json_number(j, NULL, 1e-11);
    frg_json_number(j, NULL, -(double)INFINITY);
    frg_json_close_array(j);
    frg_json_open_array(j, "rows");
    frg_json_open_object(j, NULL);
    frg_json_string(j, "term", "x\"\\\n");
    frg_json_close_object(j);
    frg_json_open_array(j, NULL);
    frg_json_close_array(j);
    frg_json_close_array(j);
    frg_json_open_object(j, "empty");
    frg_json_close_object(j);
    frg_json_close_object(j);
}

static void layout(void)
{
    frg_context *ctx = test_context();
    frg_json *j;
    CHECK_OK(ctx, frg_json_create(&j, ctx));
    write_sample(j);
    CHECK_TEXT(finish(ctx, j), "{\n"
                               "  \"schema\": \"fourge.fe/1\",\n"
                               "  \"n\": -9223372036854775808,\n"
                               "  \"r2\": 0.1,\n"
                               "  \"bound\": null,\n"
                               "  \"bound_note\": \"not a number\",\n"
                               "  \"converged\": true,\n"
                               "  \"missing\": null,\n"
                               "  \"audit\": [1e-11, null],\n"
                               "  \"rows\": [\n"
                               "    {\n"
                               "      \"term\": \"x\\\"\\\\\\n\"\n"
                               "    },\n"
                               "    []\n"
                               "  ],\n"
                               "  \"empty\": {}\n"
                               "}\n");
    CHECK_TEXT(finish(ctx, j), finish(ctx, j)); /* finishing twice is one text */
    frg_json_destroy(j);
    frg_context_destroy(ctx);
}

static void compact(void)
{
    frg_context *ctx = test_context();
    frg_json *j;
    CHECK_OK(ctx, frg_json_create(&j, ctx));
    frg_json_compact(j, 1);
    write_sample(j);
    CHECK_TEXT(finish(ctx, j), "{\"schema\":\"fourge.fe/1\",\"n\":-9223372036854775808,\"r2\":0.1,"
                               "\"bound\":null,\"bound_note\":\"not a number\",\"converged\":true,"
                               "\"missing\":null,\"audit\":[1e-11,null],"
                               "\"rows\":[{\"term\":\"x\\\"\\\\\\n\"},[]],\"empty\":{}}\n");
    frg_json_destroy(j);
    frg_json_destroy(NULL);
    frg_context_destroy(ctx);
}

/** A line for each scalar; words are quoted, names where csv wants it, and what is null is
 *  empty. */
static void flat(void)
{
    frg_context *ctx = test_context();
    frg_json *j;
    CHECK_OK(ctx, frg_json_create(&j, ctx));
    frg_json_flat(j, 1);
    write_sample(j);
    CHECK_TEXT(finish(ctx, j), "name,value\n"
                               "schema,\"fourge.fe/1\"\n"
                               "n,-9223372036854775808\n"
                               "r2,0.1\n"
                               "bound,\n"
                               "bound_note,\"not a number\"\n"
                               "converged,true\n"
                               "missing,\n"
                               "audit.0,1e-11\n"
                               "audit.1,\n"
                               "rows.0.term,\"x\"\"\\\n\"\n");
    CHECK_TEXT(finish(ctx, j), finish(ctx, j));
    frg_json_destroy(j);
    CHECK_OK(ctx, frg_json_create(&j, ctx));
    frg_json_flat(j, 1);
    frg_json_open_object(j, NULL);
    frg_json_open_object(j, "a,b");
    frg_json_integer(j, "q\"", 1);
    frg_json_close_object(j);
    frg_json_open_array(j, "deep");
    for (int i = 0; i < 12; i++) {
        frg_json_open_array(j, NULL);
        frg_json_bool(j, NULL, i % 2);
        frg_json_close_array(j);
    }
    frg_json_close_array(j);
    frg_json_close_object(j);
    static const char begin[] = "name,value\n\"a,b.q\"\"\",1\ndeep.0.0,false\ndeep.1.0,true\n";
    const char *const text = finish(ctx, j);
    CHECK_SAYS(strncmp(text, begin, sizeof begin - 1) == 0 && strstr(text, "\ndeep.11.0,true\n"),
               "%s", text);
    frg_json_destroy(j);
    frg_context_destroy(ctx);
}

/* ---- misuse ---------------------------------------------------------------------------------- */

static void key_in_array(frg_json *j)
{
    frg_json_open_array(j, NULL);
    frg_json_integer(j, "k", 1);
    frg_json_close_array(j);
}

static void no_key(frg_json *j)
{
    frg_json_open_object(j, NULL);
    frg_json_integer(j, NULL, 1);
    frg_json_close_object(j);
}

static void crossed(frg_json *j)
{
    frg_json_open_object(j, NULL);
    frg_json_close_array(j);
}

static void too_often(frg_json *j)
{
    frg_json_integer(j, NULL, 1);
    frg_json_integer(j, NULL, 2);
}

static void never_closed(frg_json *j)
{
    frg_json_open_object(j, NULL);
}

static void nothing(frg_json *j)
{
    (void)j;
}

static void too_deep(frg_json *j)
{
    for (int i = 0; i < 65; i++)
        frg_json_open_array(j, NULL);
    for (int i = 0; i < 65; i++)
        frg_json_close_array(j);
}

static void misuse(void)
{
    static void (*const ways[])(frg_json *) = {key_in_array, no_key,  crossed, too_often,
                                               never_closed, nothing, too_deep};
    frg_context *ctx = test_context();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        frg_json *j;
        CHECK_OK(ctx, frg_json_create(&j, ctx));
        ways[i](j);
        const char *text = "untouched";
        CHECK_STATUS(frg_json_finish(j, &text, NULL), FRG_BAD_ARG);
        CHECK_TEXT(text, "untouched");
        CHECK_STATUS(frg_json_finish(j, &text, NULL), FRG_BAD_ARG);
        CHECK(*frg_message(ctx));
        frg_json_destroy(j);
    }
    frg_context_destroy(ctx);
}

/* ---- reading back ---------------------------------------------------------------------------- */

/** Decodes one JSON string at *p into out, by RFC 8259; false when it is none. */
static bool read_string(const char **p, char *out)
{
    const char *s = *p;
    if (*s++ != '"')
        return false;
    while (*s != '"') {
        if ((unsigned char)*s < 0x20)
            return false;
        if (*s != '\\') {
            *out++ = *s++;
            continue;
        }
        s++;
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        const char *const known = strchr(from, *s);
        if (known && *s) {
            *out++ = to[known - from];
            s++;
            continue;
        }
        if (*s++ != 'u')
            return false;
        unsigned c, low;
        if (sscanf(s, "%4x", &c) != 1)
            return false;
        s += 4;
        if (c >= 0xd800 && c < 0xdc00) {
            if (sscanf(s, "\\u%4x", &low) != 1 || low < 0xdc00 || low > 0xdfff)
                return false;
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
            s += 6;
        }
        if (c >= 0x10000)
            *out++ = (char)(0xf0 | c >> 18);
        if (c >= 0x800)
            *out++ = c >= 0x10000 ? (char)(0x80 | (c >> 12 & 0x3f)) : (char)(0xe0 | c >> 12);
        if (c >= 0x80)
            *out++ = c >= 0x800 ? (char)(0x80 | (c >> 6 & 0x3f)) : (char)(0xc0 | c >> 6);
        *out++ = c >= 0x80 ? (char)(0x80 | (c & 0x3f)) : (char)c;
    }
    *out = '\0';
    *p = s + 1;
    return true;
}

static void hostile(void)
{
    frg_context *ctx = test_context();
    char *const name = malloc(HOSTILE_ROOM), *const back = malloc(HOSTILE_ROOM);
    for (int i = 0; i < HOSTILE_NAMES; i++) {
        hostile_name(i, name);
        frg_json *j;
        CHECK_OK(ctx, frg_json_create(&j, ctx));
        frg_json_compact(j, 1);
        frg_json_open_object(j, NULL);
        frg_json_string(j, name, name);
        frg_json_close_object(j);
        const char *text = finish(ctx, j);
        CHECK_SAYS(harmless(text), "name %d acts in JSON", i);
        const char *p = text + 1;
        CHECK_SAYS(read_string(&p, back) && same_but_broken(back, name),
                   "key %d does not read back", i);
        CHECK(*p++ == ':');
        CHECK_SAYS(read_string(&p, back) && same_but_broken(back, name),
                   "value %d does not read back", i);
        CHECK_TEXT(p, "}\n");
        frg_json_destroy(j);
    }
    free(name);
    free(back);
    frg_context_destroy(ctx);
}

static void numbers(void)
{
    frg_context *ctx = test_context();
    frg_json *j;
    double want[2000];
    CHECK_OK(ctx, frg_json_create(&j, ctx));
    frg_json_open_array(j, NULL);
    for (int i = 0; i < 2000; i++) {
        const uint64_t bits = test_random();
        memcpy(&want[i], &bits, sizeof bits);
        if (!isfinite(want[i]))
            want[i] = -0.0;
        frg_json_number(j, NULL, want[i]);
    }
    frg_json_close_array(j);
    char *p = (char *)(uintptr_t)finish(ctx, j);
    for (int i = 0; i < 2000; i++) {
        const double got = strtod(p + 1, &p);
        CHECK_BITS(&got, &want[i], sizeof got);
        p += *p == ',';
    }
    CHECK_TEXT(p, "]\n");
    frg_json_destroy(j);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"layout", layout}, {"compact", compact},       {"flat", flat},
    {"misuse", misuse}, {"hostile names", hostile}, {"numbers", numbers},
};
TEST_MAIN(cases)
