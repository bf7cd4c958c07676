/* mesh_read.c - points and edges of OFF, OBJ and PLY files.
 *
 *     OFF   "OFF", then "points faces edges"; a point a line, its first three numbers; a face a
 *           line, "k i1 .. ik"
 *     OBJ   "v x y z", "f i1/.. i2/.. ..", "l i1 i2 ..", counted from 1, or from the last point
 *           backwards where < 0; a line of corners goes on below where a backslash ends it
 *     PLY   a header of elements and their properties; then the elements, a line each or in binary
 *
 * A face gives its sides, closed.  Memory grows with what is there, never with a number in the
 * file; every refusal names the line, or the byte in binary parts.
 */
#include <math.h>
#include <string.h>

#include "io/decimal.h"
#include "io/mesh_bytes.h"

struct frg_mesh {
    frg_context *ctx;
    double *xyz;
    int32_t *ends;
    int64_t n, n_edges;
};

typedef struct {
    const char *text;
    int64_t length;
} word;

typedef struct {
    frg_context *ctx;
    const char *name, *begin;
    const char *at, *stop, *next,
        *end;     /* the rest of the line; the next one; the end of the file */
    int64_t line; /* counted from 1; 0: binary, the place is a byte */
    const frgi_decimal *decimal;
    frg_mesh *mesh;
    int64_t capacity, edge_capacity;
} parser;

static const int64_t POINTS_MOST = INT32_MAX - 2;

static frg_status refuse(const parser *p, frgi_error id, const char *why, const word *w)
{
    const int length = w ? (int)(w->length < 40 ? w->length : 40) : 0;
    if (p->line > 0) {
        frgi_at(p->ctx, "%s:%lld", p->name, (long long)p->line);
    } else {
        frgi_at(p->ctx, "%s, byte %lld", p->name, (long long)(p->at - p->begin) + 1);
    }
    FAIL(p->ctx, id, "%s%s%.*s%s", why, w ? ", got '" : "", length, w ? w->text : "", w ? "'" : "");
}

/* ---- words ----------------------------------------------------------------------------------- */

static void step_line(parser *p)
{
    const char *const newline = memchr(p->next, '\n', (size_t)(p->end - p->next));
    p->line++;
    p->at = p->next;
    p->stop = newline ? newline : p->end;
    p->next = newline ? newline + 1 : p->end;
}

/** The next line that holds anything but a comment; false at the end. */
static bool next_line(parser *p, char comment)
{
    while (p->next < p->end) {
        step_line(p);
        while (p->at < p->stop && (*p->at == ' ' || *p->at == '\t' || *p->at == '\r')) {
            p->at++;
        }
        if (p->at < p->stop && *p->at != comment) {
            return true;
        }
    }
    return false;
}

static bool next_word(parser *p, word *w)
{
    const char *s = p->at;
    while (s < p->stop && (*s == ' ' || *s == '\t' || *s == '\r')) {
        s++;
    }
    w->text = s;
    while (s < p->stop && *s != ' ' && *s != '\t' && *s != '\r' && *s != '#') {
        s++;
    }
    w->length = s - w->text;
    p->at = s;
    return w->length > 0;
}

static bool word_is(const word *w, const char *text)
{
    return (size_t)w->length == strlen(text) && memcmp(w->text, text, (size_t)w->length) == 0;
}

static frg_status number_of(const parser *p, const word *w, double *out)
{
    char text[64];
    if (w->length >= (int64_t)sizeof text) {
        return refuse(p, E_FORMAT, "a number of at most 63 characters is expected", w);
    }
    memcpy(text, w->text, (size_t)w->length);
    text[w->length] = '\n';
    if (!frgi_decimal_parse(p->decimal, text, text + w->length, out)) {
        return refuse(p, E_FORMAT, "a number is expected", w);
    }
    return FRG_OK;
}

static frg_status next_number(parser *p, double *out)
{
    word w;
    if (!next_word(p, &w)) {
        return refuse(p, E_FORMAT, "a number is missing at the end of the line", NULL);
    }
    return number_of(p, &w, out);
}

static frg_status next_count(parser *p, const char *what, int64_t *out)
{
    double x;
    TRY(next_number(p, &x));
    if (!(x >= 0 && x <= (double)POINTS_MOST && x == floor(x))) {
        return refuse(p, E_FORMAT, what, NULL);
    }
    *out = (int64_t)x;
    return FRG_OK;
}

/* ---- points and edges ------------------------------------------------------------------------ */

static frg_status add_point(parser *p, const double x[3])
{
    frg_mesh *const m = p->mesh;
    if (!(isfinite(x[0]) && isfinite(x[1]) && isfinite(x[2]))) {
        return refuse(p, E_FORMAT, "a coordinate is not finite", NULL);
    }
    if (m->n >= POINTS_MOST) {
        return refuse(p, E_FORMAT, "there are more points than can be counted", NULL);
    }
    if (m->n == p->capacity) {
        const int64_t capacity = p->capacity ? 2 * p->capacity : 1024;
        TRY(GROW(p->ctx, &m->xyz, 3 * capacity, "points of a file"));
        p->capacity = capacity;
    }
    memcpy(m->xyz + 3 * m->n++, x, 3 * sizeof *x);
    return FRG_OK;
}

static frg_status add_edge(parser *p, int64_t from, int64_t to)
{
    frg_mesh *const m = p->mesh;
    if (m->n_edges == p->edge_capacity) {
        const int64_t capacity = p->edge_capacity ? 2 * p->edge_capacity : 1024;
        TRY(GROW(p->ctx, &m->ends, 2 * capacity, "edges of a file"));
        p->edge_capacity = capacity;
    }
    m->ends[2 * m->n_edges] = (int32_t)from;
    m->ends[2 * m->n_edges++ + 1] = (int32_t)to;
    return FRG_OK;
}

/** A corner of a face or curve: an edge from the last one, remembered in seen[0] first, seen[1]
 *  last. */
static frg_status add_corner(parser *p, int64_t corner, int64_t seen[2])
{
    if (!(corner >= 0 && corner < p->mesh->n)) {
        return refuse(p, E_FORMAT, "a face names a point that is not there", NULL);
    }
    if (seen[0] < 0) {
        seen[0] = corner;
    } else {
        TRY(add_edge(p, seen[1], corner));
    }
    seen[1] = corner;
    return FRG_OK;
}

static frg_status close_face(parser *p, const int64_t seen[2])
{
    return seen[0] >= 0 && seen[0] != seen[1] ? add_edge(p, seen[1], seen[0]) : FRG_OK;
}

static frg_status three_numbers(parser *p)
{
    double x[3];
    for (int c = 0; c < 3; c++) {
        TRY(next_number(p, &x[c]));
    }
    return add_point(p, x);
}

/** "k i1 .. ik" in what is left of the line. */
static frg_status listed_face(parser *p)
{
    int64_t corners = 0, corner = 0, seen[2] = {-1, -1};
    TRY(next_count(p, "a face begins with its number of corners", &corners));
    for (int64_t k = 0; k < corners; k++) {
        TRY(next_count(p, "a corner is the number of a point", &corner));
        TRY(add_corner(p, corner, seen));
    }
    return close_face(p, seen);
}

/* ---- OFF ------------------------------------------------------------------------------------- */

static frg_status read_off(parser *p)
{
    word w;
    int64_t counts[3] = {0};
    if (!next_word(p, &w) || (!word_is(&w, "OFF") && !word_is(&w, "COFF") && !word_is(&w, "NOFF") &&
                              !word_is(&w, "CNOFF") && !word_is(&w, "STOFF"))) {
        return refuse(p, E_FORMAT, "OFF, COFF, NOFF, CNOFF or STOFF is expected", &w);
    }
    word ahead;
    parser peek = *p;
    if (!next_word(&peek, &ahead) && !next_line(p, '#')) {
        return refuse(p, E_TRUNCATED, "the file ends before its counts", NULL);
    }
    for (int c = 0; c < 3; c++) {
        TRY(next_count(p, "the numbers of points, faces and edges are expected", &counts[c]));
    }
    for (int64_t i = 0; i < counts[0] + counts[1]; i++) {
        if (!next_line(p, '#')) {
            return refuse(p, E_TRUNCATED, "the file ends before its points and faces do", NULL);
        }
        TRY(i < counts[0] ? three_numbers(p) : listed_face(p));
    }
    return FRG_OK;
}

/* ---- OBJ ------------------------------------------------------------------------------------- */

/** A corner "i", "i/t", "i//n": from 1 on, or backwards from the points so far. */
static frg_status obj_corner(const parser *p, const word *w, int64_t *out)
{
    word head = {w->text, 0};
    double x;
    while (head.length < w->length && head.text[head.length] != '/') {
        head.length++;
    }
    TRY(number_of(p, &head, &x));
    if (!(fabs(x) >= 1 && fabs(x) <= (double)POINTS_MOST && x == floor(x))) {
        return refuse(p, E_FORMAT, "a corner is the number of a point, from 1 on", w);
    }
    *out = x > 0 ? (int64_t)x - 1 : p->mesh->n + (int64_t)x;
    return FRG_OK;
}

/** The next word of a line, which goes on below where a backslash ends it. */
static bool obj_word(parser *p, word *w)
{
    while (next_word(p, w)) {
        const bool more = w->text[w->length - 1] == '\\' &&
                          (p->at == p->stop || (p->stop - p->at == 1 && *p->at == '\r'));
        if (!more) {
            return true;
        }
        w->length--;
        if (p->next < p->end) {
            step_line(p);
        }
        if (w->length > 0) {
            return true;
        }
    }
    return false;
}

static frg_status read_obj(parser *p)
{
    do {
        word w;
        if (!next_word(p, &w)) {
            continue;
        }
        const bool face = word_is(&w, "f");
        if (word_is(&w, "v")) {
            TRY(three_numbers(p));
        } else if (face || word_is(&w, "l")) {
            int64_t corner = 0, seen[2] = {-1, -1};
            while (obj_word(p, &w)) {
                TRY(obj_corner(p, &w, &corner));
                TRY(add_corner(p, corner, seen));
            }
            TRY(face ? close_face(p, seen) : FRG_OK);
        }
    } while (next_line(p, '#'));
    return FRG_OK;
}

/* ---- PLY ------------------------------------------------------------------------------------- */

enum { PLY_ELEMENTS = 8, PLY_PROPERTIES = 64 };
typedef enum { I8, U8, I16, U16, I32, U32, REAL32, REAL64, NO_TYPE } ply_type;
typedef enum { OTHER, X, Y, Z, CORNERS, FIRST_END, SECOND_END } ply_role;
static const int type_bytes[] = {1, 1, 2, 2, 4, 4, 4, 8};

typedef struct {
    ply_type count, type; /* count: of a list, NO_TYPE of a number */
    ply_role role;
} ply_property;

typedef struct {
    int64_t count;
    int n_properties;
    ply_property properties[PLY_PROPERTIES];
} ply_element;

typedef struct {
    bool binary, swapped;
    int n_elements;
    ply_element elements[PLY_ELEMENTS];
} ply_header;

static ply_type type_of(const word *w)
{
    static const char *const names[][2] = {
        {"char", "int8"}, {"uchar", "uint8"}, {"short", "int16"},   {"ushort", "uint16"},
        {"int", "int32"}, {"uint", "uint32"}, {"float", "float32"}, {"double", "float64"}};
    for (int t = 0; t < NO_TYPE; t++) {
        if (word_is(w, names[t][0]) || word_is(w, names[t][1])) {
            return (ply_type)t;
        }
    }
    return NO_TYPE;
}

static ply_role role_of(const word *element, const word *property, bool list)
{
    static const struct {
        const char *element, *property;
        bool list;
        ply_role role;
    } roles[] = {{"vertex", "x", false, X},
                 {"vertex", "y", false, Y},
                 {"vertex", "z", false, Z},
                 {"face", "vertex_indices", true, CORNERS},
                 {"face", "vertex_index", true, CORNERS},
                 {"edge", "vertex1", false, FIRST_END},
                 {"edge", "vertex2", false, SECOND_END}};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (roles[i].list == list && word_is(element, roles[i].element) &&
            word_is(property, roles[i].property)) {
            return roles[i].role;
        }
    }
    return OTHER;
}

static frg_status ply_property_line(parser *p, ply_element *e, const word *element)
{
    ply_property *const q = &e->properties[e->n_properties];
    word w;
    if (e->n_properties == PLY_PROPERTIES) {
        return refuse(p, E_FORMAT, "an element has at most 64 properties", NULL);
    }
    bool here = next_word(p, &w);
    const bool list = here && word_is(&w, "list");
    q->count = NO_TYPE;
    if (list) {
        here = next_word(p, &w);
        q->count = here ? type_of(&w) : NO_TYPE;
        if (q->count >= REAL32) {
            return refuse(p, E_FORMAT, "a list is counted by a whole number's type", &w);
        }
        here = next_word(p, &w);
    }
    q->type = here ? type_of(&w) : NO_TYPE;
    if (q->type == NO_TYPE || !next_word(p, &w)) {
        return refuse(p, E_FORMAT, "a property has a type and a name", &w);
    }
    q->role = role_of(element, &w, list);
    e->n_properties++;
    return FRG_OK;
}

static frg_status ply_format_line(parser *p, ply_header *h)
{
    const uint16_t one = 1;
    const bool little = *(const uint8_t *)&one == 1;
    word w;
    if (!next_word(p, &w)) {
        return refuse(p, E_FORMAT, "a format is expected", NULL);
    }
    h->binary = !word_is(&w, "ascii");
    const bool file_little = word_is(&w, "binary_little_endian");
    if (h->binary && !file_little && !word_is(&w, "binary_big_endian")) {
        return refuse(p, E_FORMAT, "ascii, binary_little_endian or binary_big_endian is expected",
                      &w);
    }
    h->swapped = h->binary && file_little != little;
    return FRG_OK;
}

static frg_status ply_head(parser *p, ply_header *h)
{
    word w, element = {"", 0};
    bool formatted = false;
    while (next_line(p, '\0')) {
        if (!next_word(p, &w) || word_is(&w, "comment") || word_is(&w, "obj_info")) {
            continue;
        }
        if (word_is(&w, "end_header")) {
            return formatted ? FRG_OK : refuse(p, E_FORMAT, "the header names no format", NULL);
        }
        if (word_is(&w, "format")) {
            TRY(ply_format_line(p, h));
            formatted = true;
        } else if (word_is(&w, "element")) {
            if (h->n_elements == PLY_ELEMENTS) {
                return refuse(p, E_FORMAT, "there are at most 8 kinds of elements", NULL);
            }
            if (!next_word(p, &element)) {
                return refuse(p, E_FORMAT, "an element has a name and a count", NULL);
            }
            TRY(next_count(p, "an element has a name and a count",
                           &h->elements[h->n_elements++].count));
        } else if (word_is(&w, "property") && h->n_elements > 0) {
            TRY(ply_property_line(p, &h->elements[h->n_elements - 1], &element));
        } else {
            return refuse(p, E_FORMAT, "element, property, comment or end_header is expected", &w);
        }
    }
    return refuse(p, E_TRUNCATED, "the file ends in its header", NULL);
}

static frg_status binary_value(parser *p, ply_type type, bool swapped, double *out)
{
    const int bytes = type_bytes[type];
    union {
        char raw[8];
        int8_t i8;
        uint8_t u8;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        float f32;
        double f64;
    } v;
    if (p->end - p->at < bytes) {
        return refuse(p, E_TRUNCATED, "the file ends before its elements do", NULL);
    }
    for (int b = 0; b < bytes; b++) {
        v.raw[b] = p->at[swapped ? bytes - 1 - b : b];
    }
    p->at += bytes;
    const double values[] = {type == I8 ? v.i8 : 0,
                             type == U8 ? v.u8 : 0,
                             type == I16 ? v.i16 : 0,
                             type == U16 ? v.u16 : 0,
                             type == I32 ? v.i32 : 0,
                             type == U32 ? v.u32 : 0,
                             type == REAL32 ? (double)v.f32 : 0,
                             type == REAL64 ? v.f64 : 0};
    *out = values[type];
    return FRG_OK;
}

static frg_status ply_value(parser *p, const ply_header *h, ply_type type, double *out)
{
    return h->binary ? binary_value(p, type, h->swapped, out) : next_number(p, out);
}

static frg_status ply_index(const parser *p, double x, int64_t *out)
{
    if (!(x >= 0 && x <= (double)POINTS_MOST && x == floor(x))) {
        return refuse(p, E_FORMAT, "a corner is the number of a point", NULL);
    }
    *out = (int64_t)x;
    return FRG_OK;
}

static frg_status ply_list(parser *p, const ply_header *h, const ply_property *q)
{
    double x;
    int64_t count = 0, corner = 0, seen[2] = {-1, -1};
    TRY(ply_value(p, h, q->count, &x));
    TRY(ply_index(p, x, &count));
    for (int64_t k = 0; k < count; k++) {
        TRY(ply_value(p, h, q->type, &x));
        if (q->role == CORNERS) {
            TRY(ply_index(p, x, &corner));
            TRY(add_corner(p, corner, seen));
        }
    }
    return q->role == CORNERS ? close_face(p, seen) : FRG_OK;
}

static frg_status ply_one(parser *p, const ply_header *h, const ply_element *e)
{
    double point[3] = {0}, ends[2] = {-1, -1}, x;
    int seen = 0;
    for (int q = 0; q < e->n_properties; q++) {
        const ply_property *const property = &e->properties[q];
        if (property->count != NO_TYPE) {
            TRY(ply_list(p, h, property));
            continue;
        }
        TRY(ply_value(p, h, property->type, &x));
        if (property->role >= X && property->role <= Z) {
            point[property->role - X] = x;
            seen++;
        } else if (property->role >= FIRST_END) {
            ends[property->role - FIRST_END] = x;
        }
    }
    if (seen > 0) {
        return seen == 3 ? add_point(p, point)
                         : refuse(p, E_FORMAT, "a vertex has x, y and z", NULL);
    }
    if (ends[0] >= 0 && ends[1] >= 0) {
        int64_t corner = 0, both[2] = {-1, -1};
        for (int k = 0; k < 2; k++) {
            TRY(ply_index(p, ends[k], &corner));
            TRY(add_corner(p, corner, both));
        }
    }
    return FRG_OK;
}

static frg_status read_ply(parser *p)
{
    ply_header h = {0};
    TRY(ply_head(p, &h));
    if (h.binary) {
        p->at = p->next;
        p->line = 0;
    }
    for (int e = 0; e < h.n_elements; e++) {
        if (h.binary && h.elements[e].n_properties == 0) {
            continue; /* nothing of it is in the file */
        }
        for (int64_t i = 0; i < h.elements[e].count; i++) {
            if (!h.binary && !next_line(p, '\0')) {
                return refuse(p, E_TRUNCATED, "the file ends before its elements do", NULL);
            }
            TRY(ply_one(p, &h, &h.elements[e]));
        }
    }
    return FRG_OK;
}

/* ---- any ------------------------------------------------------------------------------------- */

static frg_status parse(parser *p)
{
    if (!next_line(p, '#')) {
        return refuse(p, E_FORMAT, "the file is empty", NULL);
    }
    parser peek = *p;
    word w;
    next_word(&peek, &w);
    if (word_is(&w, "ply")) {
        TRY(read_ply(p));
    } else {
        const bool off =
            w.length >= 3 && w.length <= 5 && memcmp(w.text + w.length - 3, "OFF", 3) == 0;
        TRY(off ? read_off(p) : read_obj(p));
    }
    return p->mesh->n > 0
               ? FRG_OK
               : refuse(p, E_FORMAT, "an OFF, OBJ or PLY file with points is expected", NULL);
}

frg_status frgi_mesh_parse(frg_mesh **out, frg_context *ctx, const char *bytes, int64_t count,
                           const char *name)
{
    *out = NULL;
    frg_mesh *m;
    TRY(NEW0(ctx, &m, 1, "a mesh"));
    m->ctx = ctx;
    frgi_decimal *decimal = NULL;
    frg_status status = frgi_decimal_open(&decimal, ctx);
    if (status >= 0) {
        parser p = {.ctx = ctx,
                    .name = name,
                    .begin = bytes,
                    .at = bytes,
                    .stop = bytes,
                    .next = bytes,
                    .end = bytes + count,
                    .decimal = decimal,
                    .mesh = m};
        status = parse(&p);
    }
    frgi_decimal_close(&decimal, ctx);
    if (status < 0) {
        frg_mesh_destroy(m);
        return status;
    }
    *out = m;
    return FRG_OK;
}

frg_status frg_mesh_read(frg_mesh **out, frg_context *ctx, const char *path)
{
    REQUIRE(ctx, out && path, "frg_mesh_read takes a path and a place for the mesh");
    *out = NULL;
    frgi_run_begins(ctx);
    char *bytes;
    size_t count;
    frg_status status = frgi_read_file(ctx, path, &bytes, &count);
    if (status == FRG_OK) {
        status = frgi_mesh_parse(out, ctx, bytes, (int64_t)count, path);
    }
    DROP(ctx, &bytes);
    return status;
}

frg_array frg_mesh_points(const frg_mesh *m)
{
    if (!m) {
        return (frg_array){0};
    }
    return frg_matrix(m->xyz, FRG_F64, m->n, 3, 3);
}

int64_t frg_mesh_edges(const frg_mesh *m, const int32_t **ends)
{
    if (!m) {
        return 0;
    }
    *ends = m->ends;
    return m->n_edges;
}

void frg_mesh_destroy(frg_mesh *m)
{
    if (m) {
        frg_context *const ctx = m->ctx;
        DROP(ctx, &m->xyz);
        DROP(ctx, &m->ends);
        DROP(ctx, &m);
    }
}
