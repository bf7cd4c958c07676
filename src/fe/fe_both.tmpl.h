/* fe_both.tmpl.h - all texts at one width, for both types of columns and of search directions. */
#include "fe/fe_lanes.tmpl.h"

#define real double
#define coef double
#define SUF  f64
#include "fe/fe_cg.tmpl.h"
#include "fe/fe_rows.tmpl.h"
#undef real
#undef coef
#undef SUF
#define real float
#define coef float
#define SUF  f32
#include "fe/fe_cg.tmpl.h"
#include "fe/fe_rows.tmpl.h"
#undef real
#undef coef
#undef SUF
