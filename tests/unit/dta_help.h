/* dta_help.h - files of Stata's format 118 for tests, written by its published description (help
 * dta): marked sections, a map of where they begin, rows of fixed width, long strings, labels.
 */
#ifndef FOURGE_DTA_HELP_H
#define FOURGE_DTA_HELP_H

#include "unit/io_help.h"

enum {
    DTA_STRL = 32768,
    DTA_DOUBLE = 65526,
    DTA_FLOAT = 65527,
    DTA_LONG = 65528,
    DTA_INT = 65529,
    DTA_BYTE = 65530 /* 1 to 2045: a string of so many bytes */
};

typedef struct {
    const char *name;
    unsigned type;
    const char *format, *labels; /* "": none */
} dta_variable;

typedef struct {
    const char *name;
    int n;
    const int32_t *values;
    const char *const *texts;
} dta_labels;

typedef struct {
    const dta_variable *variables;
    int n_variables;
    uint64_t rows;
    byte_string data, strls; /* the sections' contents */
    const dta_labels *labels;
    int n_labels;
} dta_file;

/** A text in a field of `width` bytes. */
TEST_UNUSED static void add_field(byte_string *b, const char *text, size_t width)
{
    add_bytes(b, text, strlen(text));
    add_number(b, 0, (int)(width - strlen(text)));
}

TEST_UNUSED static void add_text(byte_string *b, const char *text)
{
    add_bytes(b, text, strlen(text));
}

/** A long string of variable v (from 1) and row o (from 1). */
TEST_UNUSED static void add_strl(byte_string *b, unsigned v, unsigned o, const char *text)
{
    add_text(b, "GSO");
    add_number(b, v, 4);
    add_number(b, o, 8);
    add_number(b, 130, 1); /* text, ended by NUL */
    add_number(b, strlen(text) + 1, 4);
    add_bytes(b, text, strlen(text) + 1);
}

TEST_UNUSED static void add_label_table(byte_string *b, const dta_labels *l)
{
    size_t length = 0;
    for (int i = 0; i < l->n; i++)
        length += strlen(l->texts[i]) + 1;
    add_text(b, "<lbl>");
    add_number(b, 8 + 8 * (size_t)l->n + length, 4);
    add_field(b, l->name, 129);
    add_number(b, 0, 3);
    add_number(b, (uint64_t)l->n, 4);
    add_number(b, length, 4);
    size_t at = 0;
    for (int i = 0; i < l->n; at += strlen(l->texts[i++]) + 1)
        add_number(b, at, 4);
    for (int i = 0; i < l->n; i++)
        add_number(b, (uint32_t)l->values[i], 4);
    for (int i = 0; i < l->n; i++)
        add_bytes(b, l->texts[i], strlen(l->texts[i]) + 1);
    add_text(b, "</lbl>");
}

/** The text that stands at `offset` in each variable, of fixed width, between tags. */
TEST_UNUSED static void add_fields(byte_string *b, const dta_file *f, const char *tag,
                                   size_t offset, size_t width)
{
    char mark[32];
    snprintf(mark, sizeof mark, "<%s>", tag);
    add_text(b, mark);
    for (int i = 0; i < f->n_variables; i++) {
        const char *text;
        memcpy(&text, (const char *)&f->variables[i] + offset, sizeof text);
        add_field(b, text, width);
    }
    snprintf(mark, sizeof mark, "</%s>", tag);
    add_text(b, mark);
}

TEST_UNUSED static void add_variables(byte_string *b, const dta_file *f, uint64_t map[14])
{
    const dta_variable *const v = f->variables;
    const int n = f->n_variables;
    map[2] = b->count;
    add_text(b, "<variable_types>");
    for (int i = 0; i < n; i++)
        add_number(b, v[i].type, 2);
    add_text(b, "</variable_types>");
    map[3] = b->count;
    add_fields(b, f, "varnames", offsetof(dta_variable, name), 129);
    map[4] = b->count;
    add_text(b, "<sortlist>");
    add_number(b, 0, 2 * (n + 1));
    add_text(b, "</sortlist>");
    map[5] = b->count;
    add_fields(b, f, "formats", offsetof(dta_variable, format), 57);
    map[6] = b->count;
    add_fields(b, f, "value_label_names", offsetof(dta_variable, labels), 129);
    map[7] = b->count;
    add_text(b, "<variable_labels>");
    add_number(b, 0, 321 * n);
    add_text(b, "</variable_labels>");
    map[8] = b->count;
    add_text(b, "<characteristics></characteristics>");
}

TEST_UNUSED static void add_dta(byte_string *b, const dta_file *f)
{
    uint64_t map[14] = {0};
    add_text(b, "<stata_dta><header><release>118</release><byteorder>LSF</byteorder><K>");
    add_number(b, (uint64_t)f->n_variables, 2);
    add_text(b, "</K><N>");
    add_number(b, f->rows, 8);
    add_text(b, "</N><label>");
    add_number(b, 0, 2);
    add_text(b, "</label><timestamp>");
    add_number(b, 0, 1);
    add_text(b, "</timestamp></header>");
    map[1] = b->count;
    add_text(b, "<map>");
    const size_t map_at = b->count;
    add_number(b, 0, 8 * 14);
    add_text(b, "</map>");
    add_variables(b, f, map);
    map[9] = b->count;
    add_text(b, "<data>");
    add_bytes(b, f->data.data, f->data.count);
    add_text(b, "</data>");
    map[10] = b->count;
    add_text(b, "<strls>");
    add_bytes(b, f->strls.data, f->strls.count);
    add_text(b, "</strls>");
    map[11] = b->count;
    add_text(b, "<value_labels>");
    for (int i = 0; i < f->n_labels; i++)
        add_label_table(b, &f->labels[i]);
    add_text(b, "</value_labels>");
    map[12] = b->count;
    add_text(b, "</stata_dta>");
    map[13] = b->count;
    memcpy(b->data + map_at, map, sizeof map);
}

static const char golden_folder[] = FOURGE_SOURCE_DIR "/tests/golden/";

/** A golden file into bytes (room of them); its length, 0 where it cannot be read. */
TEST_UNUSED static size_t read_golden(const char *name, unsigned char *bytes, size_t room)
{
    char path[300];
    snprintf(path, sizeof path, "%s%s", golden_folder, name);
    FILE *const f = fopen(path, "rb");
    if (!CHECK(f != NULL))
        return 0;
    const size_t count = fread(bytes, 1, room, f);
    fclose(f);
    CHECK(count > 0);
    return count;
}

#endif
