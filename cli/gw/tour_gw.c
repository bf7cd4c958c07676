/* tour_gw.c - the tour's job on alignment: pixels whose places are lost, found again.
 *
 * The 1797 digits are split at random into two halves with no image in common.  Of each half
 * nothing is kept but how its pixels go together, the distances 1 - r (r: correlation of two
 * pixels over the half's images), and the pixels of the second half are shuffled.  The alignment
 * of the two spaces, by its defaults, says which pixel is which.  The truth is known.  Ten
 * splits, and ever fewer images of each half: where the least energy is no longer that of the
 * truth, no method that goes by energy can find it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fourge/gw.h"
#include "soap/mlp.h"
#include "tour.h"

enum { SIDE = 8, PIXELS = SIDE * SIDE, SPLITS = 10, SIZES = 5 };
/** Images of each half; those that the data have not are left out, the last is all of a half. */
static const int64_t IMAGES[SIZES] = {25, 50, 100, 200, INT64_MAX};
/** A pixel that hardly changes has no correlations: it takes part where its standard deviation is
 *  above this in both halves (grey values are 0 .. 16). */
static const double LEAST_SD = 0.3;

/** One alignment: pixels[i] of the first half is really shuffled[i] of the second's order. */
typedef struct {
    int done;
    int64_t images, n, right;
    int64_t pixels[PIXELS], truth[PIXELS], match[PIXELS];
    double energy, true_energy, seconds;
    const char *mode;
} trial;

typedef struct {
    int64_t n;
    double *grey; /* n x PIXELS */
    int64_t *order;
    trial trials[SIZES][SPLITS];
    int64_t shown; /* an image of the second half of the first split */
    frg_status status;
} part;

static void release(void *state)
{
    part *const p = state;
    if (p) {
        free(p->grey);
        free(p->order);
        free(p);
    }
}

/* ---- data ------------------------------------------------------------------------------------ */

static int read_digits(cli *c, part *p)
{
    char path[4096];
    frg_table *t = NULL;
    int code = tour_find_data(c, "digits.csv", path, sizeof path);
    code = code ? code : cli_read_table(c, path, &t);
    if (!code && frg_table_columns(t) != PIXELS + 1) {
        code = cli_fail(c, "E_SHAPE", path, NULL, "%s: 64 pixels and a digit are expected", path);
    }
    if (!code) {
        p->n = frg_table_rows(t);
        p->grey = malloc((size_t)p->n * PIXELS * sizeof *p->grey + 1);
        p->order = malloc((size_t)p->n * sizeof *p->order + 1);
        code = p->grey && p->order ? 0 : cli_fail_memory(c);
    }
    for (int64_t k = 0; !code && k < PIXELS; k++) {
        for (int64_t i = 0; i < p->n; i++) {
            p->grey[i * PIXELS + k] = cli_number_at(frg_table_column(t, k), i);
        }
    }
    frg_table_destroy(t);
    return code;
}

static void shuffle(int64_t *items, int64_t n, uint64_t *random)
{
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = (int64_t)(mlp_random(random) % (uint64_t)(i + 1)), held = items[i];
        items[i] = items[j];
        items[j] = held;
    }
}

/** z (images x PIXELS) <- the pixels of those images, mean 0 and sum of squares 1; sd <- their
 *  standard deviations. */
static void standardise(const part *p, const int64_t *images, int64_t n, double *z,
                        double sd[PIXELS])
{
    for (int64_t k = 0; k < PIXELS; k++) {
        double mean = 0, square = 0;
        for (int64_t i = 0; i < n; i++) {
            mean += p->grey[images[i] * PIXELS + k] / (double)n;
        }
        for (int64_t i = 0; i < n; i++) {
            square += pow(p->grey[images[i] * PIXELS + k] - mean, 2);
        }
        sd[k] = sqrt(square / (double)n);
        for (int64_t i = 0; i < n; i++) {
            z[i * PIXELS + k] =
                square > 0 ? (p->grey[images[i] * PIXELS + k] - mean) / sqrt(square) : 0;
        }
    }
}

/** out (n x n) <- 1 - correlation of the pixels in `which`. */
static void distances(const double *z, int64_t images, const int64_t *which, int64_t n, double *out)
{
    for (int64_t a = 0; a < n; a++) {
        for (int64_t b = 0; b <= a; b++) {
            double r = 0;
            for (int64_t i = 0; i < images; i++) {
                r += z[i * PIXELS + which[a]] * z[i * PIXELS + which[b]];
            }
            out[a * n + b] = out[b * n + a] = a == b ? 0 : fmax(0, 1 - r);
        }
    }
}

/* ---- alignments ------------------------------------------------------------------------------ */

/** Both spaces of a trial; random draws the order of the second's pixels. */
static int make_spaces(const part *p, trial *t, double *c, double *d, uint64_t *random)
{
    double sd[2][PIXELS], *const z = malloc((size_t)(2 * t->images + 1) * PIXELS * sizeof *z);
    int64_t place[PIXELS], shuffled[PIXELS];
    if (!z) {
        return 0;
    }
    double *const second = z + t->images * PIXELS;
    standardise(p, p->order, t->images, z, sd[0]);
    standardise(p, p->order + p->n / 2, t->images, second, sd[1]);
    for (int64_t k = 0; k < PIXELS; k++) {
        if (fmin(sd[0][k], sd[1][k]) > LEAST_SD) {
            place[t->n] = t->n;
            t->pixels[t->n++] = k;
        }
    }
    shuffle(place, t->n, random);
    for (int64_t i = 0; i < t->n; i++) {
        t->truth[i] = place[i];
        shuffled[place[i]] = t->pixels[i];
    }
    distances(z, t->images, t->pixels, t->n, c);
    distances(second, t->images, shuffled, t->n, d);
    free(z);
    return 1;
}

/** Energy of a matching, a plan of mass 1/n at each (i, to[i]). */
static double energy_of(const trial *t, const int64_t *to, const double *c, const double *d)
{
    double sum = 0;
    for (int64_t i = 0; i < t->n; i++) {
        for (int64_t k = 0; k < t->n; k++) {
            sum += pow(c[i * t->n + k] - d[to[i] * t->n + to[k]], 2);
        }
    }
    return sum / (double)(t->n * t->n);
}

static void score(trial *t, const double *c, const double *d)
{
    t->done = t->n > 0;
    for (int64_t i = 0; i < t->n; i++) {
        t->right += t->match[i] == t->truth[i];
        t->done = t->done && t->match[i] >= 0; /* a row without mass: the run was stopped */
    }
    if (!t->done) {
        return;
    }
    t->energy = energy_of(t, t->match, c, d);
    t->true_energy = energy_of(t, t->truth, c, d);
}

static frg_status align(part *p, frg_context *ctx, trial *t, const double *c, const double *d)
{
    const frg_array x = frg_matrix((double *)c, FRG_F64, t->n, t->n, t->n),
                    y = frg_matrix((double *)d, FRG_F64, t->n, t->n, t->n);
    frg_gw_opts o;
    frg_gw *s = NULL;
    frg_gw_defaults(&o, sizeof o);
    o.distance = FRG_GW_DISTANCE_MATRIX;
    frg_status status =
        frg_gw_create(&s, ctx, (frg_gw_side){.data = &x}, (frg_gw_side){.data = &y}, NULL, &o);
    status = status < 0 ? status : frg_gw_run(s, NULL);
    if (status >= 0) {
        p->status = status > p->status ? status : p->status;
        t->seconds = frg_gw_get(s)->total_seconds;
        t->mode = frg_gw_mode_name(frg_gw_get(s)->mode);
        if (frg_gw_plan(s)) {
            status = frg_plan_argmax(frg_gw_plan(s), t->match);
            score(t, c, d);
        }
    }
    frg_gw_destroy(s);
    return status < 0 ? status : FRG_OK;
}

static int try(cli *c, part *p, int size, int split)
{
    trial *const t = &p->trials[size][split];
    double *const both = malloc(2 * sizeof(double) * PIXELS * PIXELS);
    uint64_t random = 1000003 * c->set.context.seed + (uint64_t)(split + 1);
    for (int64_t i = 0; i < p->n; i++) {
        p->order[i] = i;
    }
    shuffle(p->order, p->n, &random);
    p->shown = split == 0 ? p->order[p->n / 2] : p->shown;
    t->images = IMAGES[size] < p->n / 2 ? IMAGES[size] : p->n / 2;
    int code =
        both && make_spaces(p, t, both, both + PIXELS * PIXELS, &random) ? 0 : cli_fail_memory(c);
    if (!code && t->n > 2) {
        const frg_status status = align(p, c->ctx, t, both, both + PIXELS * PIXELS);
        code = status < 0 ? cli_fail_library(c, status) : 0;
    }
    free(both);
    return code;
}

static int run(cli *c, void **state)
{
    part *const p = calloc(1, sizeof *p);
    *state = p;
    int code = p ? read_digits(c, p) : cli_fail_memory(c);
    for (int size = SIZES - 1; size >= 0 && !code; size--) { /* the one that matters first */
        if (size + 1 < SIZES && IMAGES[size] >= p->n / 2) {
            continue;
        }
        for (int split = 0; split < SPLITS && !code && p->status == FRG_OK; split++) {
            code = try(c, p, size, split);
        }
    }
    return code;
}

/* ---- what is shown --------------------------------------------------------------------------- */

/** What the splits of a size come to; shares in per cent. */
typedef struct {
    int64_t images, pixels;
    int splits;        /* that were done */
    int all;           /* with every pixel right */
    int below, missed; /* with less energy than the truth, and with more */
    double share[SPLITS], mean, least, seconds;
} summary;

static void add_trial(summary *s, const trial *t)
{
    const double share = 100 * (double)t->right / (double)t->n, gap = t->energy - t->true_energy;
    s->images = t->images;
    s->pixels += t->n;
    s->all += t->right == t->n;
    s->below += t->right < t->n && gap < 0;
    s->missed += t->right < t->n && gap > 0;
    s->share[s->splits++] = share;
    s->mean += (share - s->mean) / s->splits;
    s->least = fmin(s->least, share);
    s->seconds += t->seconds;
}

static summary sum_up(const part *p, int size)
{
    summary s = {.least = 100};
    for (int split = 0; split < SPLITS; split++) {
        if (p->trials[size][split].done) {
            add_trial(&s, &p->trials[size][split]);
        }
    }
    return s;
}

static void say_how_many(frg_report *r, const part *p, const summary *s)
{
    char text[512];
    if (s->splits == 0) {
        frg_report_paragraph(r, p->status == FRG_OK ? "There are too few images to split."
                                                    : frg_status_sentence(p->status));
        return;
    }
    snprintf(text, sizeof text,
             "Two halves of the images have none in common, and the pixels of the second are "
             "shuffled.  From how pixels go together inside each half the alignment found the "
             "place of every pixel in %d of %d splits, with %lld images a half; of all pixels "
             "%.4g %%, in the worst split %.4g %%.",
             s->all, s->splits, (long long)s->images, s->mean, s->least);
    frg_report_paragraph(r, text);
}

/** from[k] <- the place in the second half's order whose pixel stands at k, -1: none. */
static void fill_panel(const trial *t, int panel, int64_t from[PIXELS])
{
    for (int64_t k = 0; k < PIXELS; k++) {
        from[k] = -1;
    }
    for (int64_t i = 0; i < t->n; i++) { /* as it is, shuffled, put back */
        from[t->pixels[i]] = panel == 0 ? t->truth[i] : panel == 1 ? i : t->match[i];
    }
}

/** The grey value at each place of a panel, 0 .. 16. */
static void grey_of(const part *p, int panel, double grey[PIXELS])
{
    const trial *const t = &p->trials[SIZES - 1][0];
    int64_t from[PIXELS], pixel[PIXELS];
    fill_panel(t, panel, from);
    for (int64_t i = 0; i < t->n; i++) {
        pixel[t->truth[i]] = t->pixels[i];
    }
    for (int64_t k = 0; k < PIXELS; k++) {
        grey[k] = from[k] < 0 ? 0 : p->grey[p->shown * PIXELS + pixel[from[k]]];
    }
}

enum { PANELS = 3, DARK = 10, PALE = 4 };
static const char *const PANEL[PANELS] = {"as it is", "shuffled", "put back"};

/** Four dots a dark pixel, one a pale one. */
static void draw_image(frg_report *r, const part *p)
{
    double x[PANELS * PIXELS * 4], y[PANELS * PIXELS * 4], grey[PIXELS];
    int64_t n = 0;
    for (int panel = 0; panel < PANELS; panel++) {
        grey_of(p, panel, grey);
        for (int k = 0; k < PIXELS; k++) {
            const int dots = grey[k] >= DARK ? 4 : grey[k] >= PALE ? 1 : 0;
            for (int dot = 0; dot < dots; dot++) {
                const double aside = dots == 4 ? 0.25 - 0.5 * (dot % 2) : 0,
                             up = dots == 4 ? 0.25 - 0.5 * (dot / 2) : 0;
                x[n] = k % SIDE + panel * (SIDE + 3) + aside;
                y[n++] = up - k / SIDE;
            }
        }
    }
    const frg_series series = {.name = "ink", .n = n, .x = x, .y = y, .style = FRG_POINTS};
    const frg_plot plot = {
        .caption =
            "An image of the second half: as it is, with its pixels shuffled, and with each at "
            "the place that the alignment gave it",
        .reference = (double)NAN,
        .n_series = 1,
        .series = &series,
        .map = 1};
    frg_report_plot(r, &plot);
}

/** The same in letters. */
static void write_image(frg_report *r, const part *p)
{
    double grey[PANELS][PIXELS];
    frg_report_table_open(r, "An image of the second half");
    for (int panel = 0; panel < PANELS; panel++) {
        frg_report_table_column(r, PANEL[panel], FRG_LEFT);
        grey_of(p, panel, grey[panel]);
    }
    for (int row = 0; row < SIDE; row++) {
        for (int panel = 0; panel < PANELS; panel++) {
            char text[SIDE * 8] = "";
            for (int q = 0; q < SIDE; q++) {
                const double g = grey[panel][row * SIDE + q];
                strcat(text, g >= DARK ? "██" : g >= PALE ? "▒▒" : "··");
            }
            frg_report_cell_text(r, text);
        }
    }
    frg_report_table_close(r);
}

static void draw_shares(frg_report *r, const part *p)
{
    double x[SIZES * SPLITS], y[SIZES * SPLITS], images[SIZES], mean[SIZES];
    int64_t n = 0, sizes = 0;
    for (int size = 0; size < SIZES; size++) {
        const summary s = sum_up(p, size);
        for (int split = 0; split < s.splits; split++) {
            x[n] = (double)s.images;
            y[n++] = s.share[split];
        }
        images[sizes] = (double)s.images;
        mean[sizes] = s.mean;
        sizes += s.splits > 0;
    }
    const frg_series series[] = {
        {.name = "mean", .n = sizes, .x = images, .y = mean, .style = FRG_LINE},
        {.name = "each split", .n = n, .x = x, .y = y, .style = FRG_POINTS}};
    const frg_plot plot = {
        .caption = "Pixels whose place was found, by how many images of each half were looked at",
        .x_label = "images of each half",
        .y_label = "per cent",
        .reference = (double)NAN,
        .n_series = 2,
        .series = series};
    frg_report_plot(r, &plot);
}

static void picture(frg_report *r, const cli *c, const void *state, int full)
{
    const part *const p = state;
    const summary s = sum_up(p, SIZES - 1);
    frg_report_heading(r, "Shuffled pixels find their places");
    say_how_many(r, p, &s);
    if (p->trials[SIZES - 1][0].done && full) {
        draw_image(r, p);
    } else if (p->trials[SIZES - 1][0].done && c->set.format != FORMAT_CSV) {
        write_image(r, p);
    }
    draw_shares(r, p);
}

static void table(frg_report *r, const part *p)
{
    static const char *const columns[] = {"images", "pixels",    "right, %", "worst, %",
                                          "splits", "all right", "below",    "missed"};
    enum { COLUMNS = sizeof columns / sizeof *columns };
    frg_report_table_open(
        r, "Right: pixels at their places, over all splits and in the worst; all right: splits "
           "without a wrong one; below, missed: splits with less energy than the truth, and with "
           "more");
    for (int k = 0; k < COLUMNS; k++) {
        frg_report_table_column(r, columns[k], FRG_RIGHT);
    }
    for (int size = 0; size < SIZES; size++) {
        const summary s = sum_up(p, size);
        if (s.splits == 0) {
            continue;
        }
        frg_report_cell_integer(r, s.images);
        frg_report_cell_number(r, (double)s.pixels / s.splits, 3);
        frg_report_cell_number(r, s.mean, 3);
        frg_report_cell_number(r, s.least, 3);
        frg_report_cell_integer(r, s.splits);
        frg_report_cell_integer(r, s.all);
        frg_report_cell_integer(r, s.below);
        frg_report_cell_integer(r, s.missed);
    }
    frg_report_table_close(r);
}

static void report(frg_report *r, cli *c, void *state, int full)
{
    const part *const p = state;
    const char *const mode = p->trials[SIZES - 1][0].mode;
    (void)c;
    (void)full;
    frg_report_heading(r, "Pixels of two halves of the digits: an alignment with a known answer");
    frg_report_paragraph(r, "Handwritten digits of 8 x 8 pixels, split at random into two halves.  "
                            "The distance of two pixels is 1 less their correlation over images "
                            "of a half; pixels that hardly vary take no part.  The halves share "
                            "no image, and labels are not looked at.  Where a plan has less "
                            "energy than the truth, the images are too few to tell; where it has "
                            "more, the search missed the truth.");
    const summary s = sum_up(p, SIZES - 1);
    char a[32], text[160];
    snprintf(text, sizeof text, "all by default, which is the mode %s", mode ? mode : "auto");
    frg_report_fact(r, "Settings", text);
    snprintf(text, sizeof text, "%s for the %d alignments of the last row",
             seconds_text(s.seconds, a), s.splits);
    frg_report_fact(r, "Time", text);
    table(r, p);
}

static void json(frg_json *j, const cli *c, const void *state)
{
    const part *const p = state;
    (void)c;
    frg_json_open_object(j, NULL);
    frg_json_string(j, "job", "shuffled pixels");
    frg_json_string(j, "status", frg_status_name(p->status));
    frg_json_open_array(j, "alignments");
    for (int size = 0; size < SIZES; size++) {
        const summary s = sum_up(p, size);
        if (s.splits == 0) {
            continue;
        }
        frg_json_open_object(j, NULL);
        frg_json_integer(j, "images", s.images);
        frg_json_integer(j, "splits", s.splits);
        frg_json_number(j, "pixels", (double)s.pixels / s.splits);
        frg_json_number(j, "per_cent_right", s.mean);
        frg_json_number(j, "per_cent_right_worst", s.least);
        frg_json_integer(j, "all_right", s.all);
        frg_json_integer(j, "below_true_energy", s.below);
        frg_json_integer(j, "above_true_energy", s.missed);
        frg_json_number(j, "seconds", s.seconds);
        frg_json_close_object(j);
    }
    frg_json_close_array(j);
    frg_json_close_object(j);
}

static int exit_code(const void *state)
{
    const part *const p = state;
    return frg_status_exit_code(p->status);
}

const tour_part tour_gw = {.run = run,
                           .picture = picture,
                           .report = report,
                           .json = json,
                           .exit_code = exit_code,
                           .release = release};
