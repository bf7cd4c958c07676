# The R package beside the numbers of other peers that the C library's tests have, on data/: Rscript peers.R ROOT
#
# Two-stage least squares (FixedEffectModels.jl's tests, pyfixest, linearmodels: tests/property/test_iv.c) and generalised
# linear models (pyfixest, statsmodels: tests/property/test_glm.c), to the bounds of those tests.
library(fourge)
root <- commandArgs(TRUE)[[1L]]
compared <- 0
near <- function(ours, theirs, tol) {
  compared <<- compared + length(theirs)
  stopifnot(length(ours) == length(theirs), all(abs(unname(ours) - theirs) <= tol * abs(theirs)))
}

cigar <- read.csv(file.path(root, "data/cigar.csv"))
fit <- feols(sales ~ ndi | state | price ~ pimin, cigar, vcov = list("iid", ~state))
near(coef(fit), c(0.0011021722526916768, -0.3216374943695231), 1e-10)
near(se(fit)[["price"]], 0.04192574175417297, 1e-9)
near(se(fit, ~state)[["price"]], 0.1893395917577243, 1e-9)
near(fitstat(fit, "ivf", simplify = TRUE)$stat, 5499.7494593504898, 1e-9)
near(fitstat(fit, "ivf", ~state, simplify = TRUE)$stat, 683.75620535922508, 1e-9)
fit <- feols(sales ~ ndi | state | price ~ pimin + cpi, cigar, vcov = list("iid", "hetero"))
near(fitstat(fit, "sargan", simplify = TRUE)$stat, 299.2670761372184, 1e-9)
near(fitstat(fit, ~sargan, "hetero", simplify = TRUE)$stat, 147.8784355252748, 1e-9)
# its F has n in the place of n - K
fit <- feols(sales ~ 1 | sw0(state) | price ~ pimin, cigar)
near(vapply(fit, function(f) fitstat(f, "kpr", simplify = TRUE)$stat, 0) * 1380 / c(1378, 1333), c(52248.79247, 100927.75710), 1e-9)

wages <- read.csv(file.path(root, "data/wage_panel.csv"))
fit <- fepois(hours ~ union + married | year + occupation, wages, vcov = list("iid", "hetero", ~nr))
near(coef(fit), c(-0.021458378934170897, 0.068331396698460001), 1e-8)
near(c(se(fit)[[1L]], se(fit, "hetero")[[2L]], se(fit, ~nr)[[1L]]),
     c(0.00078427516804573604, 0.0074404014321226434, 0.011618542738818679), 1e-6)
near(unlist(fitstat(fit, c("deviance", "ll"))), c(593066.07023932133, -317221.44546481752), 1e-9)
binary <- list(logit = c(0.025506143030013459, 4823.6038701908928), probit = c(0.014500326921390277, 4823.3754925641388))
for (family in names(binary)) {
  fit <- feglm(union ~ educ + exper + married + factor(year), wages, family)
  near(c(coef(fit)[["educ"]], deviance(fit)), binary[[family]], 1e-8)
}
cat(compared, "numbers of peers\n")
stopifnot(compared == 21)
