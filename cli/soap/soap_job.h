/* soap_job.h - what the files of `fourge soap` share. */
#ifndef FOURGE_CLI_SOAP_JOB_H
#define FOURGE_CLI_SOAP_JOB_H

#include "cli.h"

int soap_bench(cli *c);
int soap_train(cli *c);
/** The defaults of --profile, or of AdamW (no factors, beta2 0.999), and over them what stands on
 *  the line. */
void soap_options(cli *c, frg_soap_opts *o);
/** --dry-run: what the steps of these optimizers, one after the other, will take; the exit code. */
int soap_show_size(cli *c, int n, frg_soap *const soap[]);
/** Takes the memory of steps, and shows the warning of slow ones before they begin; *shown:
 *  warnings that were. */
frg_status soap_prepare(cli *c, frg_soap *soap, int *shown);
/** Element (i, j) of an f32 or f64 matrix. */
double soap_element(const frg_array *a, int64_t i, int64_t j);
/** AdamW: no factors. */
void soap_adamw(frg_soap_opts *o, double lr);

#endif
