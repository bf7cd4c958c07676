/* cli_tables.c - the options of input tables as the library takes them. */
#include <string.h>

#include "cli.h"

int cli_table_options(cli *c)
{
    settings *s = &c->set;
    if (s->delimiter) {
        const int tab = strcmp(s->delimiter, "\\t") == 0 || strcmp(s->delimiter, "tab") == 0;
        if (!tab && strlen(s->delimiter) != 1) {
            return cli_fail(c, "E_OPTION", "--delimiter", "",
                            "--delimiter takes one character or tab, got '%s'", s->delimiter);
        }
        s->table.delimiter = tab ? '\t' : s->delimiter[0];
    }
    if (s->n_na) {
        s->table.na = s->na;
        s->table.n_na = s->n_na;
    }
    return 0;
}
