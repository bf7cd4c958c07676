# Instruments, several models, event studies, joint tests and errors of predictions against base R on matrices.
library(fourge)
near <- function(a, b, tol = 1e-9) stopifnot(length(a) == length(b), all(abs(a - b) <= tol * pmax(1, abs(b))))
fails <- function(expr, text) stopifnot(grepl(text, tryCatch({expr; "no error"}, error = conditionMessage), fixed = TRUE))

set.seed(11)
n <- 300
d <- data.frame(a = sample(letters[1:9], n, TRUE), h = sample(c("low", "high"), n, TRUE), z1 = rnorm(n),
                z2 = rnorm(n), x = rnorm(n))
shock <- rnorm(n)
d$e <- 0.4 * d$z1 + 0.3 * d$z2 + 0.2 * d$x + shock + rnorm(n)
d$y <- 0.7 * d$e - 0.3 * d$x + match(d$a, letters) / 4 + shock + rnorm(n)
d$y2 <- d$x + rnorm(n)

# ---- two-stage least squares: the residual maker of x and the effects, and the formulas in this space ----
fit <- feols(y ~ x | a | e ~ z1 + z2, d, vcov = list("iid", "hetero"))
X1 <- model.matrix(~ x + factor(a), d)
out <- function(M) as.matrix(M) - X1 %*% solve(crossprod(X1), crossprod(X1, as.matrix(M)))
y <- out(d$y)
e <- out(d$e)
Z <- out(d[c("z1", "z2")])
P <- Z %*% solve(crossprod(Z), t(Z))
b <- c(crossprod(e, P %*% y) / crossprod(e, P %*% e))
u <- y - e * b
K <- ncol(X1)
near(coef(fit)[["e"]], b)
near(se(fit)[["e"]], c(sqrt(sum(u^2) / (n - K - 1) / crossprod(e, P %*% e))))
v <- e - P %*% e
pi <- solve(crossprod(Z), crossprod(Z, e))
F <- c(crossprod(e, P %*% e)) / 2 / (sum(v^2) / (n - K - 2))
s <- fitstat(fit)
near(c(s[["ivf::e"]]$stat, s$kpr$stat, s$cd, s$effective_f), rep(F, 4))
near(s[["ivf::e"]]$p, pf(F, 2, n - K - 2, lower.tail = FALSE))
near(s$kpr$lm, n * c(crossprod(e, P %*% e)) / sum(e^2)) # Anderson's: n times the canonical correlation
near(s$sargan$stat, n * c(crossprod(u, P %*% u)) / sum(u^2))
near(s$sargan$p, pchisq(s$sargan$stat, 1, lower.tail = FALSE))
stopifnot(s$sargan$df1 == 1, s$kpr$df1 == 2)
near(s$ar$stat, c(crossprod(y, P %*% y)) / 2 / (sum((y - P %*% y)^2) / (n - K - 2)))
at_end <- y - e * s$ar$low # the end of the interval is just not rejected
near(c(crossprod(at_end, P %*% at_end)) / 2 / (sum((at_end - P %*% at_end)^2) / (n - K - 2)), qf(0.95, 2, n - K - 2), 1e-7)
augmented <- lm(d$y ~ X1 + d$e + v - 1)
near(s$wh$stat, unname(coef(summary(augmented))["v", "t value"]^2))
for (test in s[c("ivf::e", "ar", "wh")]) near(test$p, pf(test$stat, test$df1, test$df2, lower.tail = FALSE))
# of other errors: W / 2 with the sandwich of HC1
B <- solve(crossprod(Z))
V <- B %*% crossprod(Z * c(v)) %*% B * n / (n - K - 2)
near(fitstat(fit, "ivf", "hetero", simplify = TRUE)$stat, c(crossprod(pi, solve(V, pi))) / 2)
S <- crossprod(Z * c(u)) # Hansen's J at the estimate that minimises it: two steps, the second weighted by S
A <- solve(S)
b2 <- c(crossprod(e, Z) %*% A %*% crossprod(Z, y) / (crossprod(e, Z) %*% A %*% crossprod(Z, e)))
g <- crossprod(Z, y - e * b2)
near(fitstat(fit, "sargan", "hetero", simplify = TRUE)$stat, c(crossprod(g, A %*% g)))
first <- summary(fit, stage = 1)$e
oracle <- summary(lm(e ~ x + z1 + z2 + factor(a), d))$coefficients[c("x", "z1", "z2"), ]
near(first[, 1:4], oracle[, 1:4])
stopifnot(identical(rownames(first), c("x", "z1", "z2")), any(grepl("Wu-Hausman F", capture.output(print(fit)))),
          any(grepl("by the errors of iid", capture.output(print(summary(fit, ~a))))))
near(predict(fit, d), fitted(fit))
near(predict(fit, d[c("x", "a", "e")]), fitted(fit)) # neither outcome nor instruments are needed
near(vcov(fit, "cluster"), vcov(fit, ~a))
fails(fitstat(fit, "ivf", ~a), "vcov = list(\"iid\", \"cluster=a\")")
fails(fitstat(fit, "nonsense"), "there are n, r2")
fails(fitstat(feols(y ~ x, d), "kpr"), "instruments")
fails(summary(feols(y ~ x, d), stage = 1), "instruments")

# ---- several models ----
m <- feols(c(y, y2) ~ sw(x, z1) | csw0(a, h), d, vcov = "hetero")
stopifnot(inherits(m, "fourge_multi"), length(m) == 12, names(m)[12] == "y2 ~ z1 | a + h", inherits(m[2:3], "fourge_multi"))
for (i in c(1, 6, 12)) {
  alone <- feols(names(m)[i], d, vcov = "hetero")
  for (what in list(coef, vcov, residuals)) stopifnot(identical(what(alone), what(m[[i]])))
}
# effects are there once they are asked for
stopifnot(identical(fixef(m[[12]]), fixef(alone)), identical(predict(m[[12]], d), predict(alone, d)))
near(vcov(m[[12]], ~a), vcov(alone, ~a))
halves <- feols(y ~ x | a, d, fsplit = ~h)
high <- feols(y ~ x | a, d[d$h == "high", ])
stopifnot(length(halves) == 3, identical(names(halves)[2:3], paste0("y ~ x | a [h = ", c("high", "low"), "]")))
near(coef(halves[[2]]), coef(high))
near(unlist(fixef(halves[[2]])), unlist(fixef(high)))
near(coef(halves[[1]]), coef(feols(y ~ x | a, d)))
stopifnot(identical(coef(feols(y ~ x | a, d, split = "h", split_value = "high")), coef(halves[[2]])))
d$count <- rpois(n, exp(d$z1 / 3))
counts <- fepois(count ~ sw(x, z1), d)
near(coef(counts[[2]]), coef(glm(count ~ z1, poisson, d)), 1e-7)
stopifnot(length(summary(m)) == 12, identical(counts[[1]]$call[[1]], as.name("fepois")))
fails(feols(y ~ sw(sw(x, z1), z2), d), "sw")

# ---- event studies ----
p <- expand.grid(unit = 1:30, time = 1:8)
p$cohort <- c(4, 6, 99)[p$unit %% 3 + 1]
p$y <- p$unit / 9 + p$time / 5 + (p$time >= p$cohort) * (1 + (p$time - p$cohort) / 3) + rnorm(nrow(p))
sa <- feols(y ~ sunab(cohort, time) | unit + time, p, vcov = "iid")
p$cell <- ifelse(p$cohort == 99 | p$time == p$cohort - 1, "0", paste0(p$cohort, ":", p$time - p$cohort))
cells <- lm(y ~ relevel(factor(cell), "0") + factor(unit) + factor(time), p)
at <- grep("relevel", names(coef(cells)))
rel <- as.numeric(sub(".*:", "", names(coef(cells))[at]))
by_hand <- sapply(sort(unique(rel)), function(r) mean(coef(cells)[at[rel == r]])) # cohorts of one size
near(coef(sa), by_hand)
S <- t(sapply(sort(unique(rel)), function(r) (rel == r) / sum(rel == r)))
mean_of_treated <- summary(sa, agg = "att")$table
in_them <- tapply(p$time >= p$cohort, p$cell, sum)[sub(".*)", "", names(coef(cells))[at])] # rows of each cell that are treated
near(mean_of_treated[1, 1], sum(coef(cells)[at] * in_them) / sum(in_them))
near(mean_of_treated[1, 2], sqrt(c(in_them %*% vcov(cells)[at, at] %*% in_them)) / sum(in_them))
near(sort(summary(sa, agg = FALSE)$table[, 1]), sort(coef(cells)[at]))
near(summary(sa, agg = "period")$table[, 1], coef(sa))
fails(summary(sa, agg = "cohort"), "\"att\", \"period\" or FALSE")
fails(summary(feols(y ~ time | unit, p), agg = "att"), "no sunab()")
near(vcov(sa), S %*% vcov(cells)[at, at] %*% t(S))
stopifnot(sa$events$time[sa$events$coefficient == 0] == -1)
p$treated <- as.numeric(p$time >= p$cohort)
two <- did2s(p, "y", ~ 0 | unit + time, ~ i(treated, ref = 0), "treated", "unit")
before <- lm(y ~ factor(unit) + factor(time), p, subset = treated == 0)
near(coef(two)[[1]], mean((p$y - predict(before, p))[p$treated == 1]))
lagged <- p$treated[match(paste(p$unit, p$time - 1), paste(p$unit, p$time))]
for (panel in list(~ unit + time, c("unit", "time"))) {
  near(coef(feols(y ~ l(treated) | unit, p, panel.id = panel)), coef(lm(y ~ lagged + factor(unit), p))[["lagged"]])
}

# ---- joint tests, errors of predictions, regressors ----
o <- feols(y ~ x + z1 + z2, d)
l <- lm(y ~ x + z1 + z2, d)
w <- wald(o, "z")$wald
a <- anova(lm(y ~ x, d), l)
near(c(w$stat, w$p, w$df1, w$df2), c(a$F[2], a$`Pr(>F)`[2], 2, n - 4))
near(wald(o)$wald$stat, fitstat(o, "wald", simplify = TRUE))
V <- vcov(o, ~a)[c("z1", "z2"), c("z1", "z2")]
near(wald(o, c("z1", "z2"), exact_match = TRUE, vcov = ~a)$wald$stat, c(coef(o)[3:4] %*% solve(V, coef(o)[3:4])) / 2)
fails(wald(o, "nothing"), "no term is left")
new <- data.frame(x = 1:3, z1 = 0, z2 = 2)
for (kind in c("confidence", "prediction")) {
  ours <- predict(o, new, interval = kind, level = 0.9)[c("fit", "ci_low", "ci_high")]
  near(as.matrix(ours), predict(l, new, interval = kind, level = 0.9))
}
near(predict(o, se.fit = TRUE)$se.fit, predict(l, se.fit = TRUE)$se.fit)
near(model.matrix(o), model.matrix(l))
near(model.matrix(o, new), cbind(1, 1:3, 0, 2))
# text that the fit has not read is a cluster all the same
near(vcov(o, ~a), vcov(feols(y ~ x + z1 + z2, transform(d, a = factor(a))), ~a))
near(vcov(feols(y ~ csw(x, z1), d)[[2]], ~ a^h), vcov(feols(y ~ x + z1, d, vcov = ~ a^h)))
fails(vcov(o, ~q), "column 'q' is not in the data")
fails(predict(m[[12]], d, se.fit = TRUE), "vcov = \"iid\" asks for them")
fails(predict(feols(y ~ x, cbind(d, w = 1), weights = ~w), new, interval = "prediction"), "weights")
near(c(AIC(o), BIC(o)), c(AIC(l), BIC(l)))
near(unlist(fitstat(o, ~ n + r2 + ar2 + ll)), c(n, summary(l)$r.squared, summary(l)$adj.r.squared, logLik(l)))
near(coeftable(o), summary(l)$coefficients)
near(pvalue(o, "hetero"), 2 * pt(-abs(coef(o) / se(o, "hetero")), n - 4))
near(tstat(o), coef(l) / sqrt(diag(vcov(l))))

# ---- variance components: the plug-in is the variance of the effects, over the rows ----
f <- feols(y ~ 1 | a + h, d, connected = "match")
k <- leave_out(f)
a <- fixef(f)$a[as.character(d$a)]
near(k$plug_in[["first"]], mean(a^2) - mean(a)^2)
stopifnot(all(k$sampling_error[c("first", "second")] > 0), k$converged, k$corrected[["first"]] < k$plug_in[["first"]], identical(k$effects, c("a", "h")), k$leverage == "exact")
stopifnot(leave_out(f, leave_out = "observation", leverage = "approx", draws = 50)$sizes[["draws"]] == 50)
fails(leave_out(f, draw = 3), "there is no option 'draw'")
fails(leave_out(feols(y ~ 1 | a + h, d)), "connected")
