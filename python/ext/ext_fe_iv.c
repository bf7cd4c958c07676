/* ext_fe_iv.c - first stages and tests of two-stage least squares as dicts, under the keys of the
 * JSON. */
#include "ext.h"

#define AT(type, field, key) (key), offsetof(type, field)

static const ext_field test_fields[] = {
    {AT(frg_fe_iv_tests, vcov, "vcov"), IS_TEXT, NULL},
    {AT(frg_fe_iv_tests, kp_f, "kleibergen_paap_f"), IS_DOUBLE, NULL},
    {AT(frg_fe_iv_tests, kp_lm, "kleibergen_paap_lm"), IS_DOUBLE, NULL},
    {AT(frg_fe_iv_tests, kp_p, "kleibergen_paap_p"), IS_DOUBLE, NULL},
    {AT(frg_fe_iv_tests, kp_df, "kleibergen_paap_df"), IS_INT64, NULL},
    {AT(frg_fe_iv_tests, effective_f, "effective_f"), IS_DOUBLE, NULL},
    {AT(frg_fe_iv_tests, overid, "overidentification"), IS_DOUBLE, NULL},
    {AT(frg_fe_iv_tests, overid_p, "overidentification_p"), IS_DOUBLE, NULL},
    {AT(frg_fe_iv_tests, overid_df, "overidentification_df"), IS_INT64, NULL},
    {AT(frg_fe_iv_tests, ar_f, "anderson_rubin_f"), IS_DOUBLE, NULL},
    {AT(frg_fe_iv_tests, ar_p, "anderson_rubin_p"), IS_DOUBLE, NULL},
    {AT(frg_fe_iv_tests, ar_df, "anderson_rubin_df"), IS_DOUBLE, NULL},
    {AT(frg_fe_iv_tests, ar_set, "anderson_rubin_set"), IS_CHOICE,
     "unknown|interval|rays|line|empty"},
    {AT(frg_fe_iv_tests, ar_low, "anderson_rubin_low"), IS_DOUBLE, NULL},
    {AT(frg_fe_iv_tests, ar_high, "anderson_rubin_high"), IS_DOUBLE, NULL},
    {NULL, 0, IS_INT, NULL}};

static const ext_field stage_fields[] = {
    {AT(frg_fe_first_stage, endogenous, "endogenous"), IS_TEXT, NULL},
    {AT(frg_fe_first_stage, partial_r2, "partial_r2"), IS_DOUBLE, NULL},
    {AT(frg_fe_first_stage, rss, "rss"), IS_DOUBLE, NULL},
    {NULL, 0, IS_INT, NULL}};

static const ext_field iv_fields[] = {
    {AT(frg_fe_iv, cragg_donald_f, "cragg_donald_f"), IS_DOUBLE, NULL},
    {AT(frg_fe_iv, wu_hausman_f, "wu_hausman_f"), IS_DOUBLE, NULL},
    {AT(frg_fe_iv, wu_hausman_p, "wu_hausman_p"), IS_DOUBLE, NULL},
    {AT(frg_fe_iv, wu_hausman_df, "wu_hausman_df"), IS_INT64, NULL},
    {NULL, 0, IS_INT, NULL}};

static int append(PyObject *list, PyObject *one)
{
    const int failed = !one || PyList_Append(list, one) < 0;
    Py_XDECREF(one);
    return failed ? -1 : 0;
}

static PyObject *numbers(const double *x, int n)
{
    PyObject *const list = PyList_New(0);
    for (int i = 0; list && i < n; i++) {
        append(list, PyFloat_FromDouble(x[i]));
    }
    return list;
}

static PyObject *stage_dict(const frg_fe_first_stage *s)
{
    PyObject *dict = ext_fields_get(s, stage_fields);
    if (dict && ext_put(dict, "coefficients",
                        ext_list_of(s->coefficients, s->n_coefficients, sizeof *s->coefficients,
                                    ext_coefficient_fields)) < 0) {
        Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *tests_dict(const frg_fe_iv_tests *t, int m)
{
    PyObject *dict = ext_fields_get(t, test_fields);
    if (dict && (ext_put(dict, "f", numbers(t->first_stage_f, m)) < 0 ||
                 ext_put(dict, "p_value", numbers(t->first_stage_p, m)) < 0)) {
        Py_CLEAR(dict);
    }
    return dict;
}

PyObject *ext_fe_iv(const frg_fe_result *r)
{
    const frg_fe_iv *const iv = r->iv;
    if (!iv) {
        return Py_NewRef(Py_None);
    }
    PyObject *dict = ext_fields_get(iv, iv_fields);
    PyObject *const instruments = PyList_New(0), *const stages = PyList_New(0),
                    *const tests = PyList_New(0);
    for (int i = 0; instruments && i < iv->n_instruments; i++) {
        append(instruments, PyUnicode_FromString(iv->instruments[i]));
    }
    for (int j = 0; stages && j < iv->n_endogenous; j++) {
        append(stages, stage_dict(&iv->first_stages[j]));
    }
    for (int v = 0; tests && v < r->n_vcov; v++) {
        append(tests, tests_dict(&iv->tests[v], iv->n_endogenous));
    }
    if (dict &&
        (ext_put(dict, "instruments", instruments) < 0 || ext_put(dict, "stages", stages) < 0 ||
         ext_put(dict, "tests", tests) < 0 || PyErr_Occurred())) {
        Py_CLEAR(dict);
    }
    return dict;
}
