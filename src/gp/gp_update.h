/* gp_update.h - a process that takes over a factor which was not made from its points. */
#ifndef FRGI_GP_UPDATE_H
#define FRGI_GP_UPDATE_H

#include "core/core.h"
#include "fourge/gp.h"

#pragma GCC visibility push(hidden)

/** gp->own.matrix holds the n columns of a factor at the jitter of the process: padding, noise and
 *  diagonal, then value and solves. */
FRG_MUST_USE frg_status frgi_gp_adopt_factor(frg_gp *gp);

#pragma GCC visibility pop
#endif
