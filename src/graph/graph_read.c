/* graph_read.c - graphs from text: Matrix Market coordinate files and edge lists.
 *
 * Matrix Market (Boisvert, Pozo and Remington 1996): a banner, comments, "rows columns entries",
 * one entry a line, counted from 1.  Edge lists: "from to [weight]" a line, counted from 0; the
 * nodes are 0 .. the largest. Every refusal names the line.  Memory grows with the lines that are
 * there, never with a number in the file.
 */
#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "io/decimal.h"

typedef struct {
    frg_context *ctx;
    const char *name;
    const char *at, *end;
    int64_t line; /* counted from 1 */
    const frgi_decimal *decimal;
    frgi_edge *edges;
    int64_t count, capacity;
} parser;

typedef struct {
    const char *text;
    int64_t length;
} word;

enum { WORDS = 8 };

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == ',' || c == '\r';
}

/** Splits the next line into at most WORDS words; false at the end of the text. */
static bool next_line(parser *p, word words[WORDS], int *n)
{
    if (p->at >= p->end) {
        return false;
    }
    p->line++;
    *n = 0;
    const char *s = p->at;
    while (s < p->end && *s != '\n') {
        while (s < p->end && is_blank(*s)) {
            s++;
        }
        const char *const first = s;
        while (s < p->end && *s != '\n' && !is_blank(*s)) {
            s++;
        }
        if (s > first) {
            if (*n < WORDS) {
                words[*n] = (word){first, s - first};
            }
            ++*n;
        }
    }
    p->at = s < p->end ? s + 1 : s;
    return true;
}

static frg_status refuse(const parser *p, const char *why, const word *w)
{
    const int length = w ? (int)(w->length < 40 ? w->length : 40) : 0;
    frgi_at(p->ctx, "%s:%lld", p->name, (long long)p->line);
    FAIL(p->ctx, E_FORMAT, "%s%s%.*s%s", why, w ? ", got '" : "", length, w ? w->text : "",
         w ? "'" : "");
}

static bool whole_number(const word *w, int64_t most, int64_t *out)
{
    int64_t v = 0;
    for (int64_t i = 0; i < w->length; i++) {
        const char c = w->text[i];
        if (c < '0' || c > '9' || v > most) {
            return false;
        }
        v = 10 * v + (c - '0');
    }
    *out = v;
    return w->length > 0 && v <= most;
}

/** A length: the text of the word, copied so that a byte that ends it can stand behind. */
static frg_status length_of(const parser *p, const word *w, float *out)
{
    char text[64];
    double value;
    if (w->length >= (int64_t)sizeof text) {
        return refuse(p, "a length of at most 63 characters is expected", w);
    }
    memcpy(text, w->text, (size_t)w->length);
    text[w->length] = '\n';
    if (!frgi_decimal_parse(p->decimal, text, text + w->length, &value)) {
        return refuse(p, "a length is expected", w);
    }
    if (!(value >= 0 && value <= FRGI_LENGTH_MAX)) {
        return refuse(p, "a length >= 0 and <= 1e28 is expected", w);
    }
    *out = (float)value;
    return FRG_OK;
}

static frg_status add_edge(parser *p, int64_t from, int64_t to, float length)
{
    if (p->count == p->capacity) {
        const int64_t capacity = p->capacity ? 2 * p->capacity : 1024;
        TRY(GROW(p->ctx, &p->edges, capacity, "edges of a file"));
        p->capacity = capacity;
    }
    p->edges[p->count++] = (frgi_edge){(int32_t)from, (int32_t)to, length};
    return FRG_OK;
}

static bool word_is(const word *w, const char *text)
{
    const size_t length = strlen(text);
    if ((size_t)w->length != length) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        const char c = w->text[i];
        if ((c >= 'A' && c <= 'Z' ? c + 32 : c) != text[i]) {
            return false;
        }
    }
    return true;
}

static frg_status market_banner(const parser *p, const word *w, int n, bool *pattern)
{
    if (n != 5 || !word_is(&w[1], "matrix") || !word_is(&w[2], "coordinate")) {
        return refuse(p,
                      "a Matrix Market graph begins with \"%%MatrixMarket matrix coordinate "
                      "real|integer|pattern general|symmetric\"",
                      NULL);
    }
    *pattern = word_is(&w[3], "pattern");
    if (!*pattern && !word_is(&w[3], "real") && !word_is(&w[3], "integer")) {
        return refuse(p, "real, integer or pattern is expected", &w[3]);
    }
    if (!word_is(&w[4], "general") && !word_is(&w[4], "symmetric")) {
        return refuse(p, "general or symmetric is expected", &w[4]);
    }
    return FRG_OK;
}

static frg_status market(parser *p, const word *banner, int n_banner, int64_t *nodes,
                         bool *symmetric)
{
    word w[WORDS];
    int n = 0;
    bool pattern = false;
    int64_t size[3] = {0}, seen = 0;
    bool have_size = false;
    TRY(market_banner(p, banner, n_banner, &pattern));
    *symmetric = word_is(&banner[4], "symmetric");
    while (next_line(p, w, &n)) {
        if (n == 0 || w[0].text[0] == '%') {
            continue;
        }
        if (!have_size) {
            for (int i = 0; i < 3; i++) {
                if (n != 3 ||
                    !whole_number(&w[i], i < 2 ? INT32_MAX - 2 : INT64_MAX / 20, &size[i])) {
                    return refuse(p, "three numbers are expected: rows, columns, entries", &w[0]);
                }
            }
            if (size[0] != size[1] || size[0] < 1) {
                return refuse(p, "a graph is a square matrix of at least one row", NULL);
            }
            have_size = true;
            continue;
        }
        int64_t end[2];
        float length = 1;
        if (n != (pattern ? 2 : 3)) {
            return refuse(
                p, pattern ? "a line is \"row column\"" : "a line is \"row column value\"", NULL);
        }
        for (int i = 0; i < 2; i++) {
            if (!whole_number(&w[i], size[0], &end[i]) || end[i] < 1) {
                return refuse(p, "a row or column from 1 to the size is expected", &w[i]);
            }
        }
        if (!pattern) {
            TRY(length_of(p, &w[2], &length));
        }
        if (++seen > size[2]) {
            return refuse(p, "there are more entries than the header says", NULL);
        }
        TRY(add_edge(p, end[0] - 1, end[1] - 1, length));
    }
    if (!have_size || seen != size[2]) {
        frgi_at(p->ctx, "%s:%lld", p->name, (long long)p->line);
        FAIL(p->ctx, E_TRUNCATED, "the file ends after %lld of %lld entries", (long long)seen,
             (long long)size[2]);
    }
    *nodes = size[0];
    return FRG_OK;
}

static frg_status edge_line(parser *p, const word *w, int n, int64_t *nodes)
{
    int64_t end[2];
    float length = 1;
    if (n == 0 || w[0].text[0] == '#' || w[0].text[0] == '%') {
        return FRG_OK;
    }
    if (n != 2 && n != 3) {
        return refuse(p, "a line is \"from to [weight]\"", NULL);
    }
    for (int i = 0; i < 2; i++) {
        if (!whole_number(&w[i], INT32_MAX - 2, &end[i])) {
            return refuse(p, "a node counted from 0 is expected", &w[i]);
        }
        *nodes = end[i] + 1 > *nodes ? end[i] + 1 : *nodes;
    }
    if (n == 3) {
        TRY(length_of(p, &w[2], &length));
    }
    return add_edge(p, end[0], end[1], length);
}

static frg_status parse(parser *p, frg_graph **out, int directed)
{
    word w[WORDS];
    int n = 0;
    int64_t nodes = 0;
    bool symmetric = false, first = true;
    while (next_line(p, w, &n)) {
        if (first && n > 0 && word_is(&w[0], "%%matrixmarket")) {
            TRY(market(p, w, n, &nodes, &symmetric));
            break;
        }
        first = false;
        TRY(edge_line(p, w, n, &nodes));
    }
    if (nodes == 0) {
        return refuse(p, "there are no edges", NULL);
    }
    /* isolated nodes cost memory too: an edge to node 2^31 alone is a slip, not a graph */
    if (nodes > 1000 * (p->count + 1000)) {
        return refuse(p, "the largest node is more than 1000 times the number of edges", NULL);
    }
    return frgi_graph_build(out, p->ctx, nodes, p->edges, p->count, directed && !symmetric);
}

frg_status frgi_graph_parse(frg_graph **out, frg_context *ctx, const char *bytes, int64_t count,
                            const char *name, int directed)
{
    *out = NULL;
    frgi_decimal *decimal = NULL;
    TRY(frgi_decimal_open(&decimal, ctx));
    parser p = {.ctx = ctx, .name = name, .at = bytes, .end = bytes + count, .decimal = decimal};
    const frg_status status = parse(&p, out, directed);
    DROP(ctx, &p.edges);
    frgi_decimal_close(&decimal, ctx);
    return status;
}

frg_status frg_graph_read(frg_graph **out, frg_context *ctx, const char *path, int directed)
{
    REQUIRE(ctx, out && path, "frg_graph_read takes a path and a place for the graph");
    *out = NULL;
    frgi_run_begins(ctx);
    char *bytes;
    size_t count;
    frg_status status = frgi_read_file(ctx, path, &bytes, &count);
    if (status == FRG_OK) {
        status = frgi_graph_parse(out, ctx, bytes, (int64_t)count, path, directed);
    }
    DROP(ctx, &bytes);
    return status;
}

frg_status frg_graph_mesh(frg_graph **out, frg_context *ctx, const frg_mesh *mesh)
{
    REQUIRE(ctx, out && mesh, "frg_graph_mesh takes a mesh and a place for the graph");
    *out = NULL;
    const int32_t *ends;
    const int64_t count = frg_mesh_edges(mesh, &ends);
    const frg_array points = frg_mesh_points(mesh);
    const double *const x = points.data;
    REQUIRE(ctx, count > 0,
            "the mesh has points and no edges: take the graph of nearest neighbours");
    frgi_edge *edges;
    TRY(NEW(ctx, &edges, count, "edges of a mesh"));
    frg_status status = FRG_OK;
    for (int64_t e = 0; e < count && status >= 0; e++) {
        const int64_t from = ends[2 * e], to = ends[2 * e + 1];
        const double *const p = x + 3 * from, *const q = x + 3 * to;
        const double length = hypot(hypot(p[0] - q[0], p[1] - q[1]), p[2] - q[2]);
        edges[e] = (frgi_edge){ends[2 * e], ends[2 * e + 1], (float)length};
        if (!(length <= FRGI_LENGTH_MAX)) {
            status = frgi_fail(ctx, E_GRAPH, __FILE__, __LINE__, "edge %lld is %g long",
                               (long long)e + 1, length);
        }
    }
    if (status >= 0) {
        status = frgi_graph_build(out, ctx, points.shape[0], edges, count, false);
    }
    DROP(ctx, &edges);
    return status;
}
