/* test_mesh.c - OFF, OBJ and PLY: points and edges, every file cut anywhere, what is refused and
 * where. */
#include "fault.h"
#include "fourge/gw.h"
#include "io/mesh_bytes.h"

#define CORPUS FOURGE_SOURCE_DIR "/tests/fuzz/corpus/mesh/"

/* Two triangles of a 3 x 4 rectangle, their sides in order; then what the file has besides. */
static void squares(void)
{
    static const char *const files[] = {CORPUS "square.off", CORPUS "square.obj",
                                        CORPUS "continued.obj"};
    static const double points[] = {0, 0, 0, 3, 0, 0, 3, 4, 0, 0, 4, 0};
    static const int32_t sides[] = {0, 1, 1, 2, 2, 0, 0, 2, 2, 3, 3, 0, 0, 2};
    frg_context *ctx = test_context();
    for (int f = 0; f < 3; f++) {
        frg_mesh *m = NULL;
        if (!CHECK_OK(ctx, frg_mesh_read(&m, ctx, files[f])))
            continue;
        const frg_array p = frg_mesh_points(m);
        const int32_t *ends;
        const int64_t count = frg_mesh_edges(m, &ends);
        CHECK_INT(p.shape[0], 4);
        CHECK_INT(count, f ? 7 : 6); /* the object has a line, too */
        CHECK_BITS(p.data, points, sizeof points);
        CHECK_BITS(ends, sides, (size_t)count * 2 * sizeof *ends);
        frg_graph *g = NULL;
        float d[16];
        CHECK_OK(ctx, frg_graph_mesh(&g, ctx, m));
        CHECK_OK(ctx, frg_graph_paths(g, NULL, 0, frg_matrix(d, FRG_F32, 4, 4, 4), NULL));
        CHECK(d[1] == 3 && d[2] == 5 && d[3] == 4 && d[1 * 4 + 3] == 7);
        frg_graph_destroy(g);
        frg_mesh_destroy(m);
    }
    frg_context_destroy(ctx);
}

/* One triangle and the edge 0-2, in three encodings. */
static void encodings(void)
{
    static const char *const files[] = {CORPUS "ascii.ply", CORPUS "little.ply", CORPUS "big.ply"};
    frg_context *ctx = test_context();
    for (int f = 0; f < 3; f++) {
        frg_mesh *m = NULL;
        if (!CHECK_OK(ctx, frg_mesh_read(&m, ctx, files[f])))
            continue;
        const double want[] = {0, 0, 0, 1, 0, 0, 0, 1, f ? 5 : 0};
        static const int32_t sides[] = {0, 1, 1, 2, 2, 0, 0, 2};
        const int32_t *ends;
        CHECK_INT(frg_mesh_points(m).shape[0], 3);
        CHECK_BITS(frg_mesh_points(m).data, want, sizeof want);
        CHECK_INT(frg_mesh_edges(m, &ends), 4);
        CHECK_BITS(ends, sides, sizeof sides);
        frg_mesh_destroy(m);
    }
    frg_context_destroy(ctx);
}

static frg_status parse_text(frg_context *ctx, const char *text, int64_t count, int64_t *points)
{
    frg_mesh *m = (frg_mesh *)ctx; /* must become NULL on failure */
    const frg_status s = frgi_mesh_parse(&m, ctx, text, count, "m");
    CHECK((s == FRG_OK) == (m != NULL));
    *points = s == FRG_OK ? frg_mesh_points(m).shape[0] : 0;
    frg_mesh_destroy(s == FRG_OK ? m : NULL);
    return s;
}

/* Files that say how much they hold are refused wherever they are cut, but for the end of the last
 * word. */
static void cut(void)
{
    static const char *const files[] = {CORPUS "square.off", CORPUS "ascii.ply",
                                        CORPUS "little.ply", CORPUS "big.ply"};
    frg_context *ctx = test_context();
    for (int f = 0; f < 4; f++) {
        char text[4096];
        FILE *const file = fopen(files[f], "rb");
        const int64_t count = file ? (int64_t)fread(text, 1, sizeof text, file) : 0;
        CHECK(file && count > 40);
        if (file)
            fclose(file);
        int64_t n;
        const int64_t spare = f < 2 ? 2 : 1; /* text: "0 2\n" without its newline is whole */
        CHECK_STATUS(parse_text(ctx, text, count, &n), FRG_OK);
        for (int64_t k = 0; k <= count - spare; k++)
            CHECK_SAYS(parse_text(ctx, text, k, &n) < 0, "%s cut to %" PRId64 " bytes is taken",
                       files[f], k);
    }
    frg_context_destroy(ctx);
}

static void refusals(void)
{
    static const struct {
        const char *text, *where, *code;
    } bad[] = {{"", "m, byte 1", "FRG-IO-005"},
               {"OFF\n2 1 0\n0 0 0\n1 0 0\n2 0 2\n", "m:5", "FRG-IO-005"},
               {"OFF\n2 1 0\n0 0 x\n", "m:3", "FRG-IO-005"},
               {"OFF\n2 1 0\n0 0 0\n", "m:3", "FRG-IO-007"},
               {"OFF\n9999999999 1 0\n", "m:2", "FRG-IO-005"},
               {"v 0 0 0\nf 0 1\n", "m:2", "FRG-IO-005"},
               {"v 0 0 0\nf -2 1\n", "m:2", "FRG-IO-005"},
               {"v 0 0 1e999\n", "m:1", "FRG-IO-005"},
               {"ply\nelement vertex 1\nend_header\n", "m:3", "FRG-IO-005"},
               {"ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nend_header\n0\n", "m:6",
                "FRG-IO-005"},
               {"ply\nformat binary_little_endian 1.0\nelement vertex 1\nproperty float "
                "x\nend_header\nabc",
                "m, byte 82", "FRG-IO-007"}};
    frg_context *ctx = test_context();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t n;
        CHECK(parse_text(ctx, bad[i].text, (int64_t)strlen(bad[i].text), &n) < 0);
        CHECK_TEXT(frg_error_code(ctx), bad[i].code);
        CHECK_TEXT(frg_error_where(ctx), bad[i].where);
    }
    frg_mesh *m = NULL;
    frg_graph *g = NULL;
    CHECK_STATUS(frg_mesh_read(&m, ctx, "/nowhere/at/all.off"), FRG_NO_INPUT);
    CHECK_OK(ctx, frgi_mesh_parse(&m, ctx, "v 0 0 0\n", 8, "m"));
    CHECK_STATUS(frg_graph_mesh(&g, ctx, m), FRG_BAD_ARG); /* no edges */
    frg_mesh_destroy(m);
    CHECK_OK(ctx, frgi_mesh_parse(&m, ctx, "v 0 0 0\nv 1e40 0 0\nl 1 2\n", 26, "m"));
    CHECK_STATUS(frg_graph_mesh(&g, ctx, m), FRG_BAD_DATA); /* too long */
    frg_mesh_destroy(m);
    frg_context_destroy(ctx);
}

static frg_status read_one(frg_context *ctx, void *user, uint64_t *hash)
{
    frg_mesh *m = (frg_mesh *)user;
    frg_status s = frg_mesh_read(&m, ctx, CORPUS "square.off");
    if (s < 0) {
        CHECK(m == NULL);
        return s;
    }
    frg_graph *g = (frg_graph *)user;
    s = frg_graph_mesh(&g, ctx, m);
    fault_hash(hash, frg_mesh_points(m).data, 12 * sizeof(double));
    if (s >= 0)
        frg_graph_destroy(g);
    else
        CHECK(g == NULL);
    frg_mesh_destroy(m);
    return s;
}

static void faults(void)
{
    fault_sweep("a mesh", read_one, (void *)CORPUS, 1);
    fault_sweep_files("a mesh", read_one, (void *)CORPUS);
}

static const test_case cases[] = {{"squares", squares},
                                  {"encodings", encodings},
                                  {"cut", cut},
                                  {"refusals", refusals},
                                  {"faults", faults}};
TEST_MAIN(cases)
