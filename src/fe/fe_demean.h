/* fe_demean.h - the demeaner for callers inside the library. */
#ifndef FRGI_FE_DEMEAN_H
#define FRGI_FE_DEMEAN_H

#include "fourge/fe.h"

#pragma GCC visibility push(hidden)

/** frg_demean_run as a part of a run that has begun already: the clock of the time limit goes
 *  on. */
frg_status frgi_fe_demean_run(frg_demean *d, frg_array in, frg_array out,
                              frg_demean_column columns[], frg_info *info);

#pragma GCC visibility pop
#endif
