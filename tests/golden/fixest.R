# The R package beside the numbers of R's fixest in tests/golden/fixest.tsv: Rscript fixest.R ROOT
#
# Estimates, errors and covariances of every case to a relative 1e-9, the bound of test_fe_golden for these cases: fixest's own
# tolerance is 1e-11 there, its rounding below it.
library(fourge)
root <- commandArgs(TRUE)[[1L]]
golden <- read.delim(file.path(root, "tests/golden/fixest.tsv"), colClasses = "character")
golden <- golden[golden$quantity %in% c("estimate", "std_error", "p_value"), ]
given <- function(x) if (x == "-") NULL else x
compared <- 0
for (case in split(golden, golden$id)) {
  one <- as.list(case[1L, ])
  if (one$weights_kind != "-") next
  data <- read.csv(file.path(root, one$data))
  options <- if (one$dof %in% c("-", "any")) list() else list(dof = one$dof)
  fit <- do.call(feols, c(list(one$formula, data, vcov = one$vcov, weights = given(one$weights), ssc = given(one$ssc),
                               fixef.rm = if (one$singletons == "keep") "none" else "singleton"), options))
  errors <- fit$vcovs[[1L]]$errors
  column <- c(estimate = 1L, std_error = 2L, p_value = 4L)[case$quantity]
  at <- match(case$term, fit$terms)
  if (anyNA(at)) stop(one$id, ": no coefficient ", case$term[is.na(at)][1L])
  ours <- errors[cbind(at, column)]
  theirs <- as.numeric(case$value)
  wrong <- !(abs(ours - theirs) <= 1e-9 * pmax(abs(theirs), 1e-300))
  if (any(wrong)) stop(one$id, ": ", case$term[wrong][1L], " ", case$quantity[wrong][1L], ": ", ours[wrong][1L], ", fixest has ",
                       theirs[wrong][1L])
  compared <- compared + length(ours)
}
cat(compared, "numbers of fixest\n")
stopifnot(compared > 300)
