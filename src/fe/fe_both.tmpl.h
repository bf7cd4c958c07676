/* fe_both.tmpl.h - all templates at one width, for both types of columns and search directions. */
#include "fe/fe_lanes.tmpl.h"

#define real  double
#define preal double
#define SUF   f64
#include "fe/fe_cg.tmpl.h"
#include "fe/fe_rows.tmpl.h"
#undef real
#undef preal
#undef SUF
#define real  float
#define preal float
#define SUF   f32
#include "fe/fe_cg.tmpl.h"
#include "fe/fe_rows.tmpl.h"
#undef real
#undef preal
#undef SUF
