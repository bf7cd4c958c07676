/* ext_fe_leave_out.c - leave-out variance components as a dict under the JSON's keys. */
#include <string.h>

#include "ext.h"

#define AT(type, field, key) (key), offsetof(type, field)

/** The first three are what errors have. */
enum { ERRORS = 3 };
static const ext_field components[] = {
    {AT(frg_variance_components, first, "first"), IS_DOUBLE, NULL},
    {AT(frg_variance_components, second, "second"), IS_DOUBLE, NULL},
    {AT(frg_variance_components, covariance, "covariance"), IS_DOUBLE, NULL},
    {AT(frg_variance_components, correlation, "correlation"), IS_DOUBLE, NULL},
    {AT(frg_variance_components, explained, "explained"), IS_DOUBLE, NULL},
    {NULL, 0, IS_INT, NULL}};

static const ext_field fields[] = {
    {AT(frg_leave_out, leave_out, "unit"), IS_TEXT, NULL},
    {AT(frg_leave_out, first, "first"), IS_TEXT, NULL},
    {AT(frg_leave_out, second, "second"), IS_TEXT, NULL},
    {AT(frg_leave_out, n, "n"), IS_INT64, NULL},
    {AT(frg_leave_out, n_first, "n_first"), IS_INT64, NULL},
    {AT(frg_leave_out, n_second, "n_second"), IS_INT64, NULL},
    {AT(frg_leave_out, n_movers, "n_movers"), IS_INT64, NULL},
    {AT(frg_leave_out, n_matches, "n_matches"), IS_INT64, NULL},
    {AT(frg_leave_out, outcome_variance, "outcome_variance"), IS_DOUBLE, NULL},
    {AT(frg_leave_out, error_variance, "error_variance"), IS_DOUBLE, NULL},
    {AT(frg_leave_out, leverage, "leverage"), IS_TEXT, NULL},
    {AT(frg_leave_out, draws, "draws"), IS_INT64, NULL},
    {AT(frg_leave_out, iterations, "iterations"), IS_INT64, NULL},
    {AT(frg_leave_out, seconds, "seconds"), IS_DOUBLE, NULL},
    {NULL, 0, IS_INT, NULL}};

static int put_components(PyObject *dict, const char *key, const frg_variance_components *v,
                          int errors)
{
    ext_field some[sizeof components / sizeof *components];
    memcpy(some, components, sizeof components);
    if (errors) {
        some[ERRORS].name = NULL;
    }
    return ext_put(dict, key, ext_fields_get(v, some));
}

PyObject *ext_fe_leave_out(const frg_leave_out *l)
{
    PyObject *dict = ext_fields_get(l, fields);
    const int corrected = strcmp(l->leave_out, "none") != 0;
    if (dict && (put_components(dict, "plug_in", &l->plug_in, 0) < 0 ||
                 put_components(dict, "homoscedastic", &l->homoscedastic, 0) < 0 ||
                 put_components(dict, "homoscedastic_error", &l->homoscedastic_error, 1) < 0)) {
        Py_CLEAR(dict);
    }
    if (dict && corrected &&
        (put_components(dict, "corrected", &l->corrected, 0) < 0 ||
         put_components(dict, "corrected_error", &l->corrected_error, 1) < 0 ||
         put_components(dict, "sampling_error", &l->sampling_error, 1) < 0 ||
         ext_put(dict, "leverage_max", PyFloat_FromDouble(l->leverage_max)) < 0)) {
        Py_CLEAR(dict);
    }
    return dict;
}
