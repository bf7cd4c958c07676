/* completion.c - completions for bash, zsh and fish. */
#include "completion.h"

#include <string.h>

#include "simulate/designs.h"

static void words_of(const char *choices)
{
    for (; *choices; choices++) {
        putchar(*choices == '|' ? ' ' : *choices);
    }
}

static int is_file(const option_spec *o)
{
    return o->kind == KIND_INPUT || o->kind == KIND_OUTPUT;
}

static void command_words(void)
{
    for (const command_spec *k = command_table; k->name; k++) {
        printf("%s%s", k == command_table ? "" : " ", k->name);
    }
}

/** Whether one of a few words stands right behind a command, and which. */
static int has_first_words(const command_spec *k)
{
    return k->jobs || k->bit == CMD_HELP || k->bit == CMD_SIMULATE;
}

static void first_words(const command_spec *k)
{
    if (k->jobs) {
        words_of(k->jobs);
    } else if (k->bit == CMD_HELP) {
        command_words();
    } else {
        for (const design *d = design_table; d->name; d++) {
            printf("%s%s", d == design_table ? "" : " ", d->name);
        }
    }
}

/* ---- bash ------------------------------------------------------------------------------------ */

/** One case for each option whose value has words, which are not the same for all commands; the
 *  rest completes to files. */
static void bash_values(void)
{
    for (const option_spec *o = option_table; o->name; o++) {
        if (!o->choices) {
            continue;
        }
        fputs("    ", stdout);
        if (o->commands == CMD_ALL) {
            printf("*:--%s", o->name);
        }
        int n = 0;
        for (const command_spec *k = command_table; k->name && o->commands != CMD_ALL; k++) {
            if (o->commands & k->bit) {
                printf("%s%s:--%s", n++ ? "|" : "", k->name, o->name);
            }
        }
        fputs(") COMPREPLY=($(compgen -W \"", stdout);
        words_of(o->choices);
        puts("\" -- \"$cur\")); return ;;");
    }
    puts("    *:--completion) COMPREPLY=($(compgen -W \"bash zsh fish\" -- \"$cur\")); return ;;");
}

/** One case for each command with such words, for the word right behind it. */
static void bash_first_words(void)
{
    puts("    if [[ $cur != -* && $prev == \"$command\" ]]; then\n"
         "        case $command in");
    for (const command_spec *k = command_table; k->name; k++) {
        if (has_first_words(k)) {
            printf("        %s) COMPREPLY=($(compgen -W \"", k->name);
            first_words(k);
            puts("\" -- \"$cur\")); return ;;");
        }
    }
    puts("        esac\n"
         "    fi");
}

static void bash(void)
{
    fputs("# bash completion for fourge\n"
          "_fourge() {\n"
          "    local cur prev command i\n"
          "    cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        case ${COMP_WORDS[i]} in -*) ;; *) command=${COMP_WORDS[i]}; break ;; esac\n"
          "    done\n"
          "    if [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
          "    if [[ $cur == = ]]; then prev=${COMP_WORDS[COMP_CWORD-1]} cur=; fi\n"
          "    case $command:$prev in\n",
          stdout);
    bash_values();
    puts("    esac");
    bash_first_words();
    fputs("    if [[ $cur != -* ]]; then\n"
          "        if [[ -z $command ]]; then COMPREPLY=($(compgen -W \"",
          stdout);
    command_words();
    fputs("\" -- \"$cur\"))\n"
          "        else COMPREPLY=($(compgen -f -- \"$cur\")); fi\n"
          "        return\n"
          "    fi\n"
          "    case $command in\n",
          stdout);
    for (const command_spec *k = command_table; k->name; k++) {
        printf("    %s) COMPREPLY=($(compgen -W \"", k->name);
        for (const option_spec *o = option_table; o->name; o++) {
            if (o->commands & k->bit && o->state == OPTION_READY) {
                printf("--%s ", o->name);
            }
        }
        puts("\" -- \"$cur\")) ;;");
    }
    puts("    *) COMPREPLY=($(compgen -W \"--help --version --explain\" -- \"$cur\")) ;;\n"
         "    esac\n"
         "}\n"
         "complete -o filenames -F _fourge fourge");
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/** A description inside single quotes and brackets: both are taken out of the text. */
static void zsh_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '[' || *text == ']' || *text == ':' || *text == '\\') {
            putchar('\\');
        }
        if (*text == '\'') {
            fputs("'\\''", stdout);
        } else {
            putchar(*text);
        }
    }
}

static void zsh_option(const option_spec *o)
{
    printf("        '%s--%s%s[", o->kind == KIND_LIST || o->kind == KIND_COUNT ? "*" : "", o->name,
           option_takes_value(o) ? "=" : "");
    zsh_text(o->help);
    putchar(']');
    if (o->choices) {
        printf(":%s:(", o->name);
        words_of(o->choices);
        putchar(')');
    } else if (is_file(o)) {
        printf(":%s:_files", o->name);
    } else if (option_takes_value(o)) {
        printf(":%s: ", o->name);
    }
    puts("' \\");
}

/** The second word of the line. */
static void zsh_first_words(const command_spec *k)
{
    if (has_first_words(k)) {
        fputs("        '2:what:(", stdout);
        first_words(k);
        puts(")' \\");
    }
}

static void zsh(void)
{
    puts("#compdef fourge\n"
         "_fourge() {\n"
         "    local -a commands\n"
         "    commands=(");
    for (const command_spec *k = command_table; k->name; k++) {
        printf("        '%s:", k->name);
        zsh_text(k->summary);
        puts("'");
    }
    puts("    )\n"
         "    if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
         "    case $words[2] in");
    for (const command_spec *k = command_table; k->name; k++) {
        printf("    %s) _arguments \\\n", k->name);
        for (const option_spec *o = option_table; o->name; o++) {
            if (o->commands & k->bit && o->state == OPTION_READY) {
                zsh_option(o);
            }
        }
        zsh_first_words(k);
        puts("        '*:file:_files' ;;");
    }
    puts("    esac\n"
         "}\n"
         "_fourge \"$@\"");
}

/* ---- fish ------------------------------------------------------------------------------------ */

static void fish_text(const char *text)
{
    putchar('\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') {
            putchar('\\');
        }
        putchar(*text);
    }
    putchar('\'');
}

static void fish_option(const command_spec *k, const option_spec *o)
{
    printf("complete -c fourge -n '__fish_seen_subcommand_from %s' -l %s", k->name, o->name);
    if (o->letter) {
        printf(" -s %c", o->letter);
    }
    if (option_takes_value(o)) {
        fputs(is_file(o) ? " -r -F" : " -x", stdout);
    }
    if (o->choices) {
        fputs(" -a '", stdout);
        words_of(o->choices);
        putchar('\'');
    }
    fputs(" -d ", stdout);
    fish_text(o->help);
    putchar('\n');
}

static void fish_first_words(const command_spec *k)
{
    if (has_first_words(k)) {
        printf("complete -c fourge -n 'test (count (commandline -opc)) -eq 2; and "
               "__fish_seen_subcommand_from %s' -x -a '",
               k->name);
        first_words(k);
        puts("'");
    }
}

static void fish(void)
{
    puts("# fish completion for fourge");
    for (const command_spec *k = command_table; k->name; k++) {
        printf("complete -c fourge -n __fish_use_subcommand -x -a %s -d ", k->name);
        fish_text(k->summary);
        putchar('\n');
        fish_first_words(k);
        for (const option_spec *o = option_table; o->name; o++) {
            if (o->commands & k->bit && o->state == OPTION_READY) {
                fish_option(k, o);
            }
        }
    }
}

int print_completion(const cli *c, const char *shell)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(shells[i].name, shell) == 0) {
            shells[i].print();
            return 0;
        }
    }
    return cli_fail(c, "E_OPTION", "--completion", "",
                    "--completion takes bash, zsh or fish, got '%s'", shell);
}
