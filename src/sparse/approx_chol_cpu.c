/* approx_chol_cpu.c - the sweeps of approx_chol_ops.h; compiled once per CPU level. */
#include "sparse/approx_chol_ops.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b)  JOIN_(a, b)

typedef double v8 __attribute__((vector_size(64), may_alias));
typedef double v4 __attribute__((vector_size(32), may_alias));

#define vec   v4
#define FN(f) f##_4
#include "sparse/approx_chol_cpu.tmpl.h"
#undef vec
#undef FN
#define vec   v8
#define FN(f) f##_8
#include "sparse/approx_chol_cpu.tmpl.h"

const frgi_ac_ops JOIN(frgi_ac_ops, ISA) = {
    .forward = {[AC_WIDTH_4] = forward_4, [AC_WIDTH_8] = forward_8},
    .backward = {[AC_WIDTH_4] = backward_4, [AC_WIDTH_8] = backward_8},
};
