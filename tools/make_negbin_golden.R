# make_negbin_golden.R - prints the numbers of negative binomial models that tests/property/test_negbin.c holds.
#
#     Rscript tools/make_negbin_golden.R            from the root of the sources
#
# MASS on data/wage_panel.csv with dummies: glm.nb, then glm() of its family and theta.ml() by turns until theta stands still, as
# glm.nb itself stops at 1e-4 of a step of theta.
library(MASS)
wages <- read.csv("data/wage_panel.csv")
cat("R", paste(R.version$major, R.version$minor, sep = "."), "MASS", as.character(packageVersion("MASS")), "\n")

show <- function(formula, term, weights = rep(1, nrow(wages))) {
  model <- list(formula, data = wages, weights = weights)
  fit <- do.call(glm.nb, c(model, control = list(glm.control(epsilon = 1e-10, maxit = 50))))
  theta <- fit$theta
  for (turn in 1:100) {
    fit <- do.call(glm, c(model, list(family = negative.binomial(theta), etastart = fit$linear.predictors,
                                      control = glm.control(epsilon = 1e-14, maxit = 50))))
    before <- theta
    theta <- theta.ml(fit$y, fitted(fit), sum(weights), weights, limit = 50, eps = 1e-12)
    if (abs(theta - before) < 1e-12 * theta) break
  }
  log_likelihood <- sum(weights * dnbinom(fit$y, size = theta, mu = fitted(fit), log = TRUE))
  errors <- sqrt(diag(summary(fit, dispersion = 1)$cov.scaled))
  cat(deparse(formula), "\n")
  cat(sprintf("  theta %.17g %.17g log-likelihood %.17g deviance %.17g null %.17g\n", theta, attr(theta, "SE"), log_likelihood,
              deviance(fit), fit$null.deviance))
  cat(sprintf("  %s %.17g %.17g\n", term, coef(fit)[[term]], errors[[term]]))
}

show(hours ~ union + married + factor(year) + factor(occupation), "union")
show(hours ~ educ + exper + factor(year) + offset(log(exper + 1)), "educ")
show(hours ~ union + exper + factor(year), "union", weights = wages$educ)
