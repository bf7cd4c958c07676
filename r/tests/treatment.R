# Randomisation inference and local projections against base R: every assignment of a small lot, and regressions on changes that
# are made here.
library(fourge)
near <- function(a, b, tol = 1e-9) stopifnot(length(a) == length(b), all(abs(a - b) <= tol * pmax(1, abs(b))))
fails <- function(expr, text) stopifnot(grepl(text, tryCatch({expr; "no error"}, error = conditionMessage), fixed = TRUE))

# ---- a lot of three villages in six ----
set.seed(21)
d <- data.frame(village = rep(1:6, each = 12), area = rep(c("north", "south"), 36), x = rnorm(72))
d$treat <- as.numeric(d$village %in% c(2, 3, 5))
d$y <- 0.4 * d$treat + d$x + rnorm(72) + (d$area == "north")
of_lots <- function(value) apply(combn(6, 3), 2, function(lot) value(lm(y ~ t + x + area, transform(d, t = village %in% lot))))
fit <- feols(y ~ treat + x | area, d)
r <- ritest(fit, "treat", cluster = ~village, reps = 200, seed = 4)
all_of_them <- of_lots(function(l) coef(l)[["tTRUE"]])
distance <- function(s, known) max(vapply(s, function(v) min(abs(v - known)), 0))
stopifnot(distance(r$statistics, all_of_them) < 1e-9, distance(all_of_them, r$statistics) < 1e-9, r$permuted == 6, r$converged,
          length(r$statistics) == 200, r$reps == 200)
near(c(r$estimate, r$observed), rep(coef(fit)[["treat"]], 2))
near(r$p_value, mean(abs(r$statistics) >= abs(r$observed) * (1 - 1e-9)))
near(r$std_error, sqrt(r$p_value * (1 - r$p_value) / 200))
near(r$p_value, mean(abs(all_of_them) >= abs(r$observed) * (1 - 1e-9)), 0.15) # four standard errors of 200 draws
t <- ritest(fit, ~treat, cluster = "village", reps = 50, type = "randomization-t", seed = 4)
stopifnot(distance(t$statistics, of_lots(function(l) summary(l)$coefficients["tTRUE", 3])) < 1e-9)
near(t$observed, tstat(fit)[["treat"]])
h <- ritest(fit, "treat", reps = 5, type = "randomization-t", vcov = "hetero")
near(h$observed, tstat(fit, "hetero")[["treat"]])
stopifnot(h$permuted == 72, is.null(h$cluster))
# groups of text that the fit has not read; the same draws from the same seed
e <- transform(d, village = letters[village])
same <- ritest(feols(y ~ treat + x | area, e), "treat", "village", reps = 200, seed = 4)
stopifnot(identical(same$statistics, r$statistics))
# within areas, three rows of which are one in each: 9 assignments
s <- data.frame(area = rep(1:2, each = 3), treat = c(1, 0, 0, 0, 1, 0), y = rnorm(6))
lots <- apply(expand.grid(1:3, 4:6), 1, function(lot) coef(lm(y ~ t, transform(s, t = seq_len(6) %in% lot)))[["tTRUE"]])
within <- ritest(feols(y ~ treat, s), "treat", strata = ~area, reps = 200)
stopifnot(distance(within$statistics, lots) < 1e-9, distance(lots, within$statistics) < 1e-9, within$n_strata == 2,
          grepl("6 rows within 2 strata of area", capture.output(print(within))[3]))
half <- feols(y ~ treat, d, fsplit = ~area)
near(ritest(half[[2]], "treat", reps = 3)$estimate, coef(lm(y ~ treat, d, subset = area == "north"))[["treat"]])
shown <- capture.output(print(r))
stopifnot(grepl("Randomisation inference on treat, dependent variable: y", shown[1]),
          grepl("200 permutations of 6 groups of village", shown[3]))
pdf(NULL)
bars <- plot(r)
stopifnot(sum(bars$counts) == 200)
invisible(dev.off())
fails(ritest(fit, "z"), "z")
fails(ritest(fit, "treat", reps = 0), "reps")
fails(ritest(fit, "treat", cluster = ~area), "is not the same in all rows")
fails(ritest(fit, "treat", draws = 3), "there is no option 'draws'")
fails(ritest(lm(y ~ treat, d), "treat"), "fit of feols()")

# ---- local projections ----
p <- expand.grid(time = 1:9, unit = 1:40)
p$cohort <- c(0, 4, 6, 7)[p$unit %% 4 + 1]
p$x <- rnorm(360)
p$y <- p$unit / 9 + p$time / 5 + p$x + (p$cohort > 0 & p$time >= p$cohort) * (p$time - p$cohort + 1) / 3 + rnorm(360)
at <- function(v, step) v[match(paste(p$unit, p$time + step), paste(p$unit, p$time))]
on <- p$cohort > 0 & p$time >= p$cohort
by_hand <- function(change, until, formula = change ~ begins + factor(time)) {
  rows <- data.frame(p, change = change, begins = on - at(on, -1), before = at(p$x, -1))
  lm(formula, rows[which((on & !at(on, -1)) | !at(on, until)), ])
}
l <- lpdid(p, "y", "unit", "time", "cohort", pre_window = -3, post_window = 2, att = FALSE)
stopifnot(identical(l$horizons, c(-3L, -2L, 0:2)), identical(names(l$fits), c("-3", "-2", "0", "1", "2")), !l$pooled, l$last == 2)
for (h in l$horizons) {
  oracle <- by_hand(at(p$y, h) - at(p$y, -1), max(h, 0))
  k <- match(h, l$horizons)
  near(coef(l)[[k]], coef(oracle)[["begins"]])
  near(nobs(l)[[k]], nobs(oracle))
  near(se(l$fits[[k]], "iid")[["treat_diff"]], summary(oracle)$coefficients["begins", 2])
}
stopifnot(identical(names(coef(l))[1], "time_to_treatment::-3"), l$fits[[1]]$vcovs[[1]]$spec == "cluster=unit",
          identical(dim(summary(l)), c(5L, 5L)))
near(summary(l, vcov = "hetero")[2, 2], se(l$fits[[2]], "hetero")[["treat_diff"]])
near(confint(l, level = 0.9)[3, ], confint(l$fits[[3]], level = 0.9)["treat_diff", ])
# the mean of the periods since; regressors; an expression for the outcome
mean_change <- (at(p$y, 0) + at(p$y, 1) + at(p$y, 2)) / 3 - at(p$y, -1)
pooled <- lpdid(p, "y", "unit", "time", "cohort", post_window = 2, xfml = ~x, vcov = "hetero")
near(coef(pooled)[["treat_diff"]], coef(by_hand(mean_change, 2, change ~ begins + x + factor(time)))[["begins"]])
stopifnot(pooled$pooled, pooled$horizons == 0, pooled$fits[[1]]$vcovs[[1]]$type == "hc1")
plain <- lpdid(p, "y", "unit", "time", "cohort", post_window = 2)
near(coef(lpdid(p, ~ 2 * y, ~unit, ~time, ~cohort, post_window = 2)), 2 * coef(plain))
lagged <- lpdid(p, "y", "unit", "time", "cohort", post_window = 1, xfml = ~ l(x))
near(coef(lagged), coef(by_hand((p$y + at(p$y, 1)) / 2 - at(p$y, -1), 1, change ~ begins + before + factor(time)))[["begins"]])
fifth <- transform(p, cohort = ifelse(cohort == 0, 5, cohort))
near(coef(lpdid(fifth, "y", "unit", "time", "cohort", post_window = 2, never_treated = 5)), coef(plain))
# the mean over the treated rows: what the periods' means of the untreated leave of their changes; from the mean of two periods
for (pmd in list(1, 2, "max")) {
  found <- lpdid(p, "y", "unit", "time", "cohort", pre_window = -2, post_window = 1, att = FALSE, reweight = TRUE, pmd = pmd)
  stopifnot(identical(found$horizons, if (identical(pmd, 1)) c(-2L, 0:1) else -2:1))
  before <- if (identical(pmd, "max")) {
    vapply(seq_along(p$y), function(i) mean(p$y[p$unit == p$unit[i] & p$time < p$time[i]]), 0)
  } else rowMeans(sapply(seq_len(pmd), function(k) at(p$y, -k)))
  for (h in found$horizons) {
    change <- at(p$y, h) - before
    treated <- which(on & !at(on, -1) & !is.na(change))
    untreated <- which(!at(on, max(h, 0)) & !on & !is.na(change))
    means <- tapply(change[untreated], p$time[untreated], mean)
    near(coef(found)[[match(h, found$horizons)]], mean(change[treated] - means[as.character(p$time[treated])]))
  }
}
fails(lpdid(p, "y", "unit", "time", "cohort", pmd = 0), "pmd: expected")
shown <- capture.output(print(l))
stopifnot(grepl("Local projections, dependent variable: y", shown[1], fixed = TRUE), any(grepl("time_to_treatment::2", shown)))
pdf(NULL)
drawn <- plot(l)
stopifnot(identical(drawn$x, l$horizons), identical(drawn$estimate, unname(coef(l))))
invisible(dev.off())
if (requireNamespace("generics", quietly = TRUE)) {
  tidied <- generics::tidy(l, conf.int = TRUE)
  stopifnot(identical(tidied$term, names(coef(l))), identical(tidied$nobs, unname(nobs(l))))
  near(tidied$conf.low, confint(l)[, 1])
}
fails(lpdid(p, "y", "unit", "time", "gone"), "gone")
fails(lpdid(p, "y", "unit", "time", "cohort", post_window = 12), "post_window")
fails(lpdid(p, "y", "unit", "time", "cohort", windows = 3), "there is no option 'windows'")
fails(lpdid(rbind(p, p[1, ]), "y", "unit", "time", "cohort"), "unit")
fails(lpdid(transform(p, treat_diff = 1), "y", "unit", "time", "cohort", xfml = ~treat_diff), "treat_diff")

# the routines while each allocation collects
tortured <- function(routine, ...) {
  gctorture(TRUE)
  on.exit(gctorture(FALSE))
  .Call(getFromNamespace(paste0("R_fourge_", routine), "fourge"), ...)
}
made <- tortured("lpdid", "y ~ 1", fourge:::columns_of(p[1:72, ], character()),
                 list(panel = "unit,time", cohort = "cohort", pre_window = -2, post_window = 1), 1L)
stopifnot(identical(unname(made$horizons), c(-2L, 0L, 1L)), length(made$columns) == 4)
found <- tortured("ritest", fit$pointer, fit$options, list(variable = "treat", reps = 3, seed = 1))
stopifnot(length(found$statistics) == 3)
