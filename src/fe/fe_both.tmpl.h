/* fe_both.tmpl.h - the lanes' text and the rows' text for both column types, at one width. */
#include "fe/fe_lanes.tmpl.h"

#define real double
#define SUF  f64
#include "fe/fe_rows.tmpl.h"
#undef real
#undef SUF
#define real float
#define SUF  f32
#include "fe/fe_rows.tmpl.h"
#undef real
#undef SUF
