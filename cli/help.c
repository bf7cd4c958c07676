/* help.c - --help, manual pages, the Markdown reference and --options-json: four readings of one
 * table. */
#include <math.h>
#include <string.h>

#include "cli.h"
#include "completion.h"

enum { INDENT = 28, WIDTH = 80 };

/* ---- shared ---------------------------------------------------------------------------------- */

/** Bytes up to the next blank; a word too long for the line ends after a comma or bar that still
 *  fits. */
static int word_length(const char *text, int room)
{
    const int length = (int)strcspn(text, " ");
    if (length <= room) {
        return length;
    }
    for (int i = room - 1; i > 0; i--) {
        if (text[i] == ',' || text[i] == '|') {
            return i + 1;
        }
    }
    return length;
}

/** Words of `text` from column `column` on, broken before WIDTH, continued at `indent`. */
static void wrapped(const char *text, int column, int indent)
{
    int blank = 0; /* before this word */
    while (*text) {
        const int length = word_length(text, WIDTH - indent);
        if (column > indent && column + blank + length > WIDTH) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (column > indent && blank) {
            putchar(' ');
            column++;
        }
        printf("%.*s", length, text);
        column += length;
        text += length;
        blank = *text == ' ';
        text += strspn(text, " ");
    }
    putchar('\n');
}

/** Help, range, choices and default in one sentence after another. */
static void describe(const option_spec *o, const settings *defaults, char *text, size_t room)
{
    char range[64], initial[128];
    option_range_text(o, range, sizeof range);
    option_default_text(o, defaults, initial, sizeof initial);
    size_t used = (size_t)snprintf(text, room, "%s", o->help);
    if (o->choices && used < room) {
        used += (size_t)snprintf(text + used, room - used, "; %s", o->choices);
    }
    if (*range && used < room) {
        used += (size_t)snprintf(text + used, room - used, "; %s", range);
    }
    if (*initial && used < room) {
        snprintf(text + used, room - used, " [%s]", initial);
    }
}

static void option_head(const option_spec *o, char *text, size_t room)
{
    char letter[8] = "    ";
    if (o->letter) {
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    }
    snprintf(text, room, "%s--%s%s%s", letter, o->name, option_takes_value(o) ? " " : "",
             option_takes_value(o) ? o->value : "");
}

/** Calls `each` for the options of a command, group after group in the table's order. */
static void each_group(unsigned mask, const settings *defaults, void (*heading)(const char *group),
                       void (*each)(const option_spec *o, const settings *defaults))
{
    const char *done[24];
    int n_done = 0;
    for (const option_spec *first = option_table; first->name; first++) {
        int seen = !(first->commands & mask);
        for (int i = 0; i < n_done && !seen; i++) {
            seen = done[i] == first->group;
        }
        if (seen || n_done == 24) {
            continue;
        }
        done[n_done++] = first->group;
        heading(first->group);
        for (const option_spec *o = first; o->name; o++) {
            if (o->commands & mask && o->group == first->group) {
                each(o, defaults);
            }
        }
    }
}

/* ---- text ------------------------------------------------------------------------------------ */

static void text_heading(const char *group)
{
    printf("\n%s\n", group);
}

static void text_option(const option_spec *o, const settings *defaults)
{
    char head[80], body[512];
    option_head(o, head, sizeof head);
    describe(o, defaults, body, sizeof body);
    const int length = printf("  %s", head);
    if (length >= INDENT - 1) {
        printf("\n%*s", INDENT, "");
    } else {
        printf("%*s", INDENT - length, "");
    }
    wrapped(body, INDENT, INDENT);
}

static void each_line(const char *lines, const char *before, const char *after)
{
    for (const char *at = lines; at && *at;) {
        const char *end = strchr(at, '\n');
        const int length = end ? (int)(end - at) : (int)strlen(at);
        printf("%s%.*s%s", before, length, at, after);
        at = end ? end + 1 : NULL;
    }
}

static void usage(const command_spec *k)
{
    printf("fourge %s%s%s [options]", k->name, *k->arguments ? " " : "", k->arguments);
}

static void text_command(const command_spec *k, const settings *defaults)
{
    printf("fourge %s - %s\n\nUsage: ", k->name, k->summary);
    usage(k);
    puts("\n");
    wrapped(k->description, 0, 0);
    each_group(k->bit, defaults, text_heading, text_option);
    puts("\nExamples");
    each_line(k->examples, "  ", "\n");
}

static void text_program(void)
{
    printf("fourge %s - numerical solvers that prove their answers\n\n"
           "Usage: fourge COMMAND [options] [files]\n\nCommands\n",
           frg_version());
    for (const command_spec *k = command_table; k->name; k++) {
        printf("  %-10s %s\n", k->name, k->summary);
    }
    puts("\nfourge COMMAND --help    options and examples of a command\n"
         "fourge tour              see it work on real data\n"
         "fourge doctor            what holds it back on this machine\n"
         "fourge --explain CODE    what an error code means\n\n"
         "Exit codes: 0 done; 1 finished without convergence, the result is marked; 2 usage\n"
         "or not supported; 65 bad data; 66 no input; 69 no such device; 70 internal error;\n"
         "71 out of memory; 73 cannot create output; 74 input/output error; 130, 143 stopped.");
}

/* ---- man ------------------------------------------------------------------------------------- */

/** Text for troff: backslashes, hyphens and leading dots are its own. */
static void troff(const char *text)
{
    if (*text == '.' || *text == '\'') {
        fputs("\\&", stdout);
    }
    for (; *text; text++) {
        if (*text == '\\') {
            fputs("\\e", stdout);
        } else if (*text == '-') {
            fputs("\\-", stdout);
        } else {
            putchar(*text);
        }
    }
}

static void man_heading(const char *group)
{
    fputs(".SS \"", stdout);
    troff(group);
    puts("\"");
}

static void man_option(const option_spec *o, const settings *defaults)
{
    char body[512];
    describe(o, defaults, body, sizeof body);
    fputs(".TP\n", stdout);
    if (o->letter) {
        printf("\\fB\\-%c\\fR, ", o->letter);
    }
    fputs("\\fB\\-\\-", stdout);
    troff(o->name);
    fputs("\\fR", stdout);
    if (option_takes_value(o)) {
        fputs(" \\fI", stdout);
        troff(o->value);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    troff(body);
    putchar('\n');
}

static void man_command(const command_spec *k, const settings *defaults)
{
    printf(".TH FOURGE\\-%s 1 \"\" \"fourge %s\" \"User Commands\"\n.SH NAME\nfourge\\-%s \\- ",
           k->name, frg_version(), k->name);
    troff(k->summary);
    printf("\n.SH SYNOPSIS\n\\fBfourge %s\\fR ", k->name);
    troff(k->arguments);
    puts(" [\\fIoptions\\fR]\n.SH DESCRIPTION");
    troff(k->description);
    puts("\n.SH OPTIONS");
    each_group(k->bit, defaults, man_heading, man_option);
    puts(".SH EXAMPLES\n.nf");
    for (const char *at = k->examples; at && *at;) {
        const char *end = strchr(at, '\n');
        char line[256];
        snprintf(line, sizeof line, "%.*s", end ? (int)(end - at) : (int)strlen(at), at);
        troff(line);
        putchar('\n');
        at = end ? end + 1 : NULL;
    }
    puts(".fi\n.SH EXIT STATUS\n0 done; 1 finished without convergence, the result is marked; 2 "
         "usage or not "
         "supported; 65 bad data; 66 no input; 69 no such device; 70 internal error; 71 out of "
         "memory; 73 cannot "
         "create output; 74 input/output error; 130, 143 stopped by a signal.");
}

static void man_program(void)
{
    printf(".TH FOURGE 1 \"\" \"fourge %s\" \"User Commands\"\n.SH NAME\nfourge \\- "
           "numerical solvers that "
           "prove their answers\n.SH SYNOPSIS\n\\fBfourge\\fR \\fICOMMAND\\fR [\\fIoptions\\fR] "
           "[\\fIfiles\\fR]\n"
           ".SH COMMANDS\n",
           frg_version());
    for (const command_spec *k = command_table; k->name; k++) {
        printf(".TP\n\\fB%s\\fR\n", k->name);
        troff(k->summary);
        printf("; see \\fBfourge\\-%s\\fR(1)\n", k->name);
    }
}

/* ---- Markdown -------------------------------------------------------------------------------- */

static void markdown_heading(const char *group)
{
    printf("\n### %s\n\n| option | meaning |\n|---|---|\n", group);
}

static void markdown_option(const option_spec *o, const settings *defaults)
{
    char body[512];
    describe(o, defaults, body, sizeof body);
    fputs("| ", stdout);
    if (o->letter) {
        printf("`-%c`, ", o->letter);
    }
    printf("`--%s", o->name);
    for (const char *at = option_takes_value(o) ? o->value : ""; *at; at++) {
        printf("%s%s", at == o->value ? " " : "", *at == '|' ? "\\|" : (char[]){*at, '\0'});
    }
    fputs("` | ", stdout);
    for (const char *at = body; *at; at++) {
        printf("%s%c", *at == '|' ? "\\" : "", *at);
    }
    puts(" |");
}

static void markdown_reference(const settings *defaults)
{
    printf("# fourge %s: commands and options\n\nMade by `fourge help --markdown`.\n",
           frg_version());
    for (const command_spec *k = command_table; k->name; k++) {
        printf("\n## fourge %s\n\n%s.\n\n```\n", k->name, k->summary);
        usage(k);
        printf("\n```\n\n%s\n", k->description);
        each_group(k->bit, defaults, markdown_heading, markdown_option);
        fputs("\n```\n", stdout);
        each_line(k->examples, "", "\n");
        puts("```");
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static const char *const kind_names[] = {
    [KIND_FLAG] = "flag",        [KIND_COUNT] = "count",        [KIND_TEXT] = "text",
    [KIND_INPUT] = "input file", [KIND_OUTPUT] = "output file", [KIND_CHOICE] = "choice",
    [KIND_INT] = "integer",      [KIND_INT64] = "integer",      [KIND_UINT64] = "integer",
    [KIND_REAL] = "number",      [KIND_BYTES] = "bytes",        [KIND_SIZE] = "bytes",
    [KIND_LIST] = "list",        [KIND_DEVICE] = "device",
};

/** Those of the words "a|b|c" whose bits are set, as an array. */
static void json_words(const char *name, const char *words, unsigned bits)
{
    int n = 0;
    printf(",\"%s\":[", name);
    for (; words && *words; bits >>= 1) {
        const size_t length = strcspn(words, "|");
        if (bits & 1) {
            printf("%s\"%.*s\"", n++ ? "," : "", (int)length, words);
        }
        words += length + (words[length] == '|');
    }
    putchar(']');
}

static void json_option(const command_spec *k, const option_spec *o, const settings *defaults)
{
    char initial[128];
    option_default_text(o, defaults, initial, sizeof initial);
    printf("{\"name\":\"%s\",\"type\":\"%s\"", o->name, kind_names[o->kind]);
    if (o->letter) {
        printf(",\"letter\":\"%c\"", o->letter);
    }
    if (o->value && option_takes_value(o)) {
        fputs(",\"value\":", stdout);
        write_json_string(stdout, o->value);
    }
    if (o->choices) {
        json_words("choices", o->choices, ~0u);
    }
    if (o->jobs && k->jobs) {
        json_words("subcommands", k->jobs, o->jobs);
    }
    fputs(",\"default\":", stdout);
    if (*initial) {
        write_json_string(stdout, initial);
    } else {
        fputs("null", stdout);
    }
    if (o->low < o->high) {
        printf(",\"range\":{\"low\":%.17g,\"low_open\":%s", o->low, o->open & 1 ? "true" : "false");
        if (isinf(o->high)) {
            fputs(",\"high\":null}", stdout);
        } else {
            printf(",\"high\":%.17g,\"high_open\":%s}", o->high, o->open & 2 ? "true" : "false");
        }
    }
    printf(",\"built\":%s,\"group\":", o->state == OPTION_READY ? "true" : "false");
    write_json_string(stdout, o->group);
    fputs(",\"help\":", stdout);
    write_json_string(stdout, o->help);
    putchar('}');
}

static void options_json(const command_spec *only, const settings *defaults)
{
    printf("{\"schema\":\"fourge.options/1\",\"version\":\"%s\",\"commands\":[", frg_version());
    int n = 0;
    for (const command_spec *k = command_table; k->name; k++) {
        if (only && k != only) {
            continue;
        }
        printf("%s\n{\"name\":\"%s\",\"arguments\":", n++ ? "," : "", k->name);
        write_json_string(stdout, k->arguments);
        if (k->jobs) {
            json_words("subcommands", k->jobs, ~0u);
        }
        fputs(",\"options\":[", stdout);
        int m = 0;
        for (const option_spec *o = option_table; o->name; o++) {
            if (o->commands & k->bit) {
                fputs(m++ ? ",\n " : "\n ", stdout);
                json_option(k, o, defaults);
            }
        }
        fputs("]}", stdout);
    }
    puts("\n]}");
}

/* ---- the command ----------------------------------------------------------------------------- */

static int find_or_fail(cli *c, const char *name, const command_spec **out)
{
    *out = find_command(name);
    if (*out) {
        return 0;
    }
    const char *near = nearest_command(name);
    char hint[80];
    snprintf(hint, sizeof hint, "%s%s", near ? "did you mean " : "fourge help lists the commands",
             near ? near : "");
    return cli_fail(c, "E_OPTION", name, hint, "there is no command '%s'", name);
}

static int manual(cli *c, const settings *defaults)
{
    const command_spec *k;
    if (strcmp(c->set.pages.man, "fourge") == 0) {
        man_program();
        return 0;
    }
    const int code = find_or_fail(c, c->set.pages.man, &k);
    if (code) {
        return code;
    }
    man_command(k, defaults);
    return 0;
}

int command_help(cli *c)
{
    settings defaults;
    settings_defaults(&defaults);
    const command_spec *k = c->command;
    const int asked = k && k->bit == CMD_HELP && !c->set.pages.help;
    const int as_json = c->set.pages.options_json && c->set.format == FORMAT_JSON;
    const int refused = asked && !as_json ? cli_text_alone(c, "a page of the help") : 0;
    if (refused) {
        return refused;
    }
    if (asked && c->set.pages.man) {
        return manual(c, &defaults);
    }
    if (asked && c->set.pages.completion) {
        return print_completion(c, c->set.pages.completion);
    }
    if (asked && c->set.pages.markdown) {
        markdown_reference(&defaults);
        return 0;
    }
    if (asked) {
        k = NULL;
        const int code = c->n_arguments ? find_or_fail(c, c->arguments[0], &k) : 0;
        if (code) {
            return code;
        }
    }
    if (c->set.pages.options_json) {
        options_json(k, &defaults);
    } else if (k) {
        text_command(k, &defaults);
    } else {
        text_program();
        return c->command || c->set.pages.help ? 0 : 2;
    }
    return 0;
}
