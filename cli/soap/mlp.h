/* mlp.h - a small network with tanh layers and a softmax, to train classifiers: forward, backward,
 * loss. */
#ifndef FOURGE_CLI_MLP_H
#define FOURGE_CLI_MLP_H

#include "cli.h"

enum { MLP_LAYERS_MOST = 8 };

/** Layer l: a_l = tanh(a_{l-1} W_l + b_l), the last one without tanh; W_l is size[l-1] x size[l],
 *  row-major. */
typedef struct {
    int layers; /* matrices */
    int64_t size[MLP_LAYERS_MOST + 1];
    int64_t batch;
    float *memory;
    float *w[MLP_LAYERS_MOST], *b[MLP_LAYERS_MOST];   /* parameters */
    float *gw[MLP_LAYERS_MOST], *gb[MLP_LAYERS_MOST]; /* gradients */
    float *a[MLP_LAYERS_MOST + 1];                    /* batch x size[l]; a[0] is the input */
    float *d[MLP_LAYERS_MOST + 1];                    /* dL/da before the nonlinearity */
} mlp;

/** Weights uniform in +-sqrt(6 / (in + out)), biases 0.  Returns 0 or an exit code. */
int mlp_create(mlp *net, const cli *c, int layers, const int64_t size[], int64_t batch,
               uint64_t seed);
void mlp_destroy(mlp *net);
/** Mean cross-entropy of the rows in a[0] against labels, and its gradient. */
double mlp_loss(mlp *net, const int32_t *labels, int threads);
/** Mean square of output minus target over the first `rows` rows in a[0], and its gradient; target:
 *  rows x outputs. */
double mlp_squares(mlp *net, const float *target, int64_t rows, int threads);
/** Weights and biases by turns, as parameters of the optimizer's group 0; 0 or the exit code. */
int mlp_add_params(const cli *c, frg_soap *soap, const mlp *net);
/** Their gradients in the same order, 2 net->layers of them. */
void mlp_gradients(const mlp *net, frg_array *grads);
/** The next number of a splitmix64 generator. */
uint64_t mlp_random(uint64_t *state);

/** A classifier trained on a table of numbers. */
typedef struct {
    int64_t rows, inputs, classes;
    float *x; /* rows x inputs, standardised */
    int32_t *label;
} training_set;

typedef struct {
    int steps;
    frg_status status;
    double seconds;    /* of the optimizer and the network */
    double *trace;     /* loss of every step, `steps` of them */
    double smoothed;   /* exponential mean of the loss at the end */
    int64_t long_axes; /* of the network's parameters: too long for a factor */
    int shown;         /* warnings that were shown before the first step */
    /* of a run whose worker may be left within a step */
    double began; /* where its clock would have begun without a stop */
    int kept;     /* steps of the state that the file has: 0 for the line alone */
    struct training_moment
        *between; /* the state before the step in hand; NULL: none was put aside */
} training_run;

int training_set_read(training_set *set, cli *c, const char *path, const char *label);
/** From a text: 32 characters as inputs, the next one as class (char_set.c). */
int training_set_text(training_set *set, const cli *c, const char *path);
void training_set_destroy(training_set *set);
struct keeper;
struct worker;
/** Trains 256-256 hidden units on batches of 512 until the smoothed loss is at `target` (0: never)
 *  or `steps`. k: keeps the states between steps, and the run goes on from that of a resumed one;
 *  NULL: none are wanted. w: whose work this is, which may be left within a step and then shows
 *  *run; NULL: nobody's. */
int training_run_make(training_run *run, cli *c, const training_set *set, const frg_soap_opts *o,
                      int steps, double target, struct keeper *k, struct worker *w);
/** --dry-run: what its steps will take; the exit code. */
int training_estimate(cli *c, const training_set *set, const frg_soap_opts *o);
/** Whether a run with states can be left now and loses no step. */
int training_may_stop(const training_run *run);
/** Writes the state before the step that was left, where the file does not have it. */
frg_status training_keep(const training_run *run, struct keeper *k);
void training_run_destroy(training_run *run);

#endif
