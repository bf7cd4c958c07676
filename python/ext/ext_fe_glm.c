/* ext_fe_glm.c - what a generalised linear model has beside, as a dict under the JSON's keys. */
#include <math.h>

#include "ext.h"

#define AT(type, field, key) (key), offsetof(type, field)

static const ext_field fields[] = {
    {AT(frg_fe_glm, family, "family"), IS_TEXT, NULL},
    {AT(frg_fe_glm, link, "link"), IS_TEXT, NULL},
    {AT(frg_fe_glm, deviance, "deviance"), IS_DOUBLE, NULL},
    {AT(frg_fe_glm, null_deviance, "null_deviance"), IS_DOUBLE, NULL},
    {AT(frg_fe_glm, log_likelihood, "log_likelihood"), IS_DOUBLE, NULL},
    {AT(frg_fe_glm, null_log_likelihood, "null_log_likelihood"), IS_DOUBLE, NULL},
    {AT(frg_fe_glm, pseudo_r2, "pseudo_r2"), IS_DOUBLE, NULL},
    {AT(frg_fe_glm, aic, "aic"), IS_DOUBLE, NULL},
    {AT(frg_fe_glm, bic, "bic"), IS_DOUBLE, NULL},
    {AT(frg_fe_glm, dispersion, "dispersion"), IS_DOUBLE, NULL},
    {AT(frg_fe_glm, iterations, "glm_iterations"), IS_INT, NULL},
    {AT(frg_fe_glm, converged, "glm_converged"), IS_BOOL, NULL},
    {NULL, 0, IS_INT, NULL}};
static const ext_field negbin_fields[] = {
    {AT(frg_fe_glm, theta, "theta"), IS_DOUBLE, NULL},
    {AT(frg_fe_glm, theta_std_error, "theta_std_error"), IS_DOUBLE, NULL},
    {NULL, 0, IS_INT, NULL}};

/** theta and its error into the dict of a negative binomial model. */
static int put_theta(PyObject *dict, const frg_fe_glm *g)
{
    PyObject *const theta = isnan(g->theta) ? PyDict_New() : ext_fields_get(g, negbin_fields);
    const int status = theta ? PyDict_Update(dict, theta) : -1;
    Py_XDECREF(theta);
    return status;
}

PyObject *ext_fe_glm(const frg_fe_result *r)
{
    const frg_fe_glm *const g = r->glm;
    if (!g) {
        return Py_NewRef(Py_None);
    }
    PyObject *dict = ext_fields_get(g, fields);
    PyObject *const rows = PyList_New(0);
    for (int64_t i = 0; rows && i < g->n_separated; i++) {
        PyObject *const row = PyLong_FromLongLong(g->separated[i]);
        if (row) {
            PyList_Append(rows, row);
            Py_DECREF(row);
        }
    }
    if (dict &&
        (put_theta(dict, g) < 0 || ext_put(dict, "separated_rows", rows) < 0 || PyErr_Occurred())) {
        Py_CLEAR(dict);
    }
    return dict;
}
