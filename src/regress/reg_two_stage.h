/* reg_two_stage.h - two-stage difference in differences: the first stage of a fit. */
#ifndef FRGI_REG_TWO_STAGE_H
#define FRGI_REG_TWO_STAGE_H

#include "regress/regress.h"

#pragma GCC visibility push(hidden)

/** What options.first_stage asks for can be done; E_FORMULA, E_UNSUPPORTED.  Nothing without it. */
FRG_MUST_USE frg_status frgi_two_stage_check(frg_fe *f);
/** Fits the first stage in the untreated rows of f's frame and puts y less what it predicts in the
 *  place of y; *uncompared: rows without a prediction.  E_CONTROLS, E_TREATMENT. */
FRG_MUST_USE frg_status frgi_two_stage_first(frg_fe *f, int64_t *uncompared, frg_status *worst);
/** The scores of both stages, after the estimates; the first stage is dropped.
 *  E_COUNTERFACTUAL. */
FRG_MUST_USE frg_status frgi_two_stage_scores(frg_fe *f, frg_status *worst);
void frgi_two_stage_destroy(frg_fe *f);

#pragma GCC visibility pop
#endif
