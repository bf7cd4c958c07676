/* completion.h - shell completions made from the option table. */
#ifndef FOURGE_CLI_COMPLETION_H
#define FOURGE_CLI_COMPLETION_H

#include "cli.h"

/** Prints the completions for bash, zsh or fish; returns the exit code. */
int print_completion(const cli *c, const char *shell);

#endif
