# Against base R: lm() with dummies is the oracle. Bounds: lm's own rounding, 1e-15 times a condition number of a few hundred.
library(fourge)
near <- function(a, b, tol = 1e-10) stopifnot(all(abs(a - b) <= tol * pmax(1, abs(b))))
fails <- function(expr, text) stopifnot(grepl(text, tryCatch({expr; "no error"}, error = conditionMessage), fixed = TRUE))

set.seed(3)
n <- 400
d <- data.frame(a = sample(letters[1:12], n, TRUE), t = factor(sample(2001:2008, n, TRUE)), x = rnorm(n), k = sample(0:3, n, TRUE),
                w = runif(n, .5, 2), flag = runif(n) < .4)
d$y <- 0.5 * d$x + as.integer(d$t) / 3 + match(d$a, letters) / 5 + 0.2 * d$flag + rnorm(n)
d$x[7] <- NA
fit <- feols(y ~ x + flag | a + t, d, weights = ~w)
oracle <- lm(y ~ x + flag + factor(a) + t, d, weights = w)
near(coef(fit), coef(oracle)[c("x", "flagTRUE")])
near(vcov(fit), vcov(oracle)[c("x", "flagTRUE"), c("x", "flagTRUE")])
near(confint(fit), confint(oracle)[c("x", "flagTRUE"), ])
near(residuals(fit), residuals(oracle))
near(fitted(fit), fitted(oracle))
near(predict(fit, d)[-7], fitted(oracle))
near(deviance(fit), deviance(oracle))
stopifnot(nobs(fit) == n - 1, df.residual(fit) == df.residual(oracle), identical(names(coef(fit)), c("x", "flagTRUE")),
          is.nan(residuals(fit, na.rm = FALSE)[7]))
# the effects reproduce the fit
e <- fixef(fit)
near(e$a[d$a[-7]] + e$t[as.character(d$t[-7])] + coef(fit)[["x"]] * d$x[-7] + coef(fit)[["flagTRUE"]] * d$flag[-7], fitted(oracle))
# HC1 by its formula, with B = (X'WX)^-1 of all columns
X <- model.matrix(oracle)
s <- X * residuals(oracle) * d$w[-7]
B <- solve(crossprod(X, X * d$w[-7]))
near(vcov(fit, "hetero"), (B %*% crossprod(s) %*% B * (n - 1) / df.residual(oracle))[2:3, 2:3])
# clusters: fixest's factor, effects not nested
G <- rowsum(s, as.character(d$k[-7]))
near(vcov(fit, ~k), (B %*% crossprod(G) %*% B * 4 / 3 * (n - 2) / df.residual(oracle))[2:3, 2:3])
stopifnot(identical(vcov(fit, ~k), vcov(fit, "cluster=k")), identical(vcov(feols(y ~ x | a, d, cluster = c("k", "a"))),
                                                                     vcov(feols(y ~ x | a, d, vcov = ~ k + a))))
# CR2 has a t distribution for each coefficient, a wild bootstrap an interval of its own
v <- summary(fit, vcov = "cr2=k")$vcov
half <- qt(0.95, v$df) * v$errors[, 2L]
near(confint(fit, level = 0.9, vcov = "cr2=k"), cbind(v$errors[, 1L] - half, v$errors[, 1L] + half))
stopifnot(length(v$df) == 2L, all(v$df != v$df_t))
boot <- feols(y ~ x + flag, d, vcov = "wild=a,199")
near(confint(boot), summary(boot)$vcov$errors[, 5:6])
fails(confint(boot, level = 0.9), "of level 0.95")
# a factor keeps the order of its levels: the first is the reference
d$r <- relevel(d$t, "2003")
near(coef(feols(y ~ x + r, d)), coef(lm(y ~ x + r, d)))
near(coef(feols(y ~ k, d)), coef(lm(y ~ k, d)))
# the same bits on one thread
stopifnot(identical(coef(feols(y ~ x | a + t, d, threads = 1)), coef(feols(y ~ x | a + t, d, threads = 2))))
# demeaning leaves residuals on dummies, in the shape that was given
near(demean(d$y, d$a), residuals(lm(y ~ factor(a), d)))
m <- demean(as.matrix(d[c("y", "w")]), d[c("a", "t")], weights = d$w)
near(m[, "y"], residuals(lm(y ~ factor(a) + t, d, weights = w)))
stopifnot(all(attr(m, "audit") < 1e-10))
# generalised linear models
d$c <- rpois(n, exp(0.3 * rnorm(n) + match(d$a, letters) / 12))
p <- fepois(c ~ x | a + t, d)
g <- glm(c ~ x + factor(a) + t, poisson, d, control = glm.control(epsilon = 1e-14))
near(coef(p), coef(g)["x"], 1e-8)
near(vcov(p)[1, 1] / vcov(g)["x", "x"], (nobs(p) - 1) / df.residual(g), 1e-6) # the small-sample rule
near(deviance(p), deviance(g), 1e-8)
near(c(logLik(p)), c(logLik(g)), 1e-8)
near(fitted(p), fitted(g), 1e-7)
for (type in c("response", "deviance", "pearson", "working")) near(residuals(p, type), residuals(g, type), 1e-6)
near(predict(p, type = "link")[-7], predict(g), 1e-7)
near(predict(p, d, type = "link")[-7], predict(g), 1e-7)
fails(predict(fit, type = "link"), "generalised linear model")
fails(residuals(fit, "pearson"), "least squares")
o <- feglm(c ~ x, d, "poisson", offset = ~ log(w))
near(coef(o), coef(glm(c ~ x + offset(log(w)), poisson, d)), 1e-7)
u <- d[-7, ]
u$c <- rnbinom(n - 1, size = 2, mu = exp(0.3 * u$x + 1))
q <- feglm(c ~ x + t, u, "negbin")
stopifnot(identical(coef(q), coef(fenegbin(c ~ x + t, u))))
near(c(logLik(q)), sum(dnbinom(u$c, size = q$glm$theta, mu = fitted(q), log = TRUE)), 1e-9)
near(sum((u$c - fitted(q)) / (1 + fitted(q) / q$glm$theta) * u$x), 0, 1e-5) # the score of x
stopifnot(q$glm$theta_std_error > 0, attr(logLik(q), "df") == length(coef(q)) + 1)
# two-stage least squares: b = (Z'X)^-1 Z'y on demeaned columns
d$z <- d$x + rnorm(n)
s <- feols(y ~ flag | a | x ~ z, d)
k <- demean(as.matrix(d[-7, c("y", "x", "z", "flag")]), d$a[-7])
near(coef(s)[c(2, 1)], solve(crossprod(k[, c("z", "flag")], k[, c("x", "flag")]), crossprod(k[, c("z", "flag")], k[, "y"])))
if (requireNamespace("generics", quietly = TRUE)) {
  near(generics::tidy(fit)$std.error, sqrt(diag(vcov(fit))))
  near(generics::glance(fit)$r.squared, summary(oracle)$r.squared)
  near(generics::augment(fit, d)$.resid[-7], residuals(oracle))
}
# errors name the culprit, and R goes on
fails(feols(y ~ xx | a, d), "did you mean")
fails(feols(y ~ x | a, as.list(d)), "data frame")
fails(feols(y ~ x | a, d, tol = -1), "tol")
fails(feols(y ~ x | a, d, toll = 1), "there is no option 'toll'")
fails(feols(y ~ x | a, d, weights = ~ w + x), "one column")
fails(feols(y ~ x, d, vcov = "twoway"), "no 2 fixed effects")
fails(feols(y ~ x | a, d, vcov = "hetero", cluster = ~a), "give one of them")
fails(feols(y ~ x | a, d, vcov = "nonsense"), "nonsense")
fails(demean(d$y, list()), "at least one factor")
fails(demean(d$y, d$a[-1]), "rows")
fails(demean(d$x, d$a), "row 7")
# what was saved keeps its estimates, and says what it cannot do
old <- unserialize(serialize(fit, NULL))
stopifnot(identical(coef(old), coef(fit)), identical(vcov(old), vcov(fit)))
fails(residuals(old), "fit it again")
# every routine while each allocation collects: what is not protected is gone
tortured <- function(routine, ...) {
  gctorture(TRUE)
  on.exit(gctorture(FALSE))
  .Call(getFromNamespace(paste0("R_fourge_", routine), "fourge"), ...)
}
columns <- fourge:::columns_of(d[1:60, ], c("y", "x", "z", "c", "a", "t", "k"))
fitted_by <- function(text, ..., several = FALSE) tortured("fit", text, columns, list(...), several, 1L, 0)$fits
one <- fitted_by("y ~ flag | a + k | x ~ z", vcov = c("iid", "cluster=t"), keep_effects = TRUE)[[1]]
two <- fitted_by("y ~ sw(x, flag) | a", several = TRUE)
stopifnot(length(one$iv$tests) == 2, length(two) == 2, length(fitted_by("y ~ x | a", fsplit = "flag", several = TRUE)) == 3)
three <- fitted_by("y ~ x | a + k", connected = "match", keep_effects = TRUE)[[1]]$pointer
counts <- fitted_by("c ~ i(k, ref = 0) + x", family = "poisson")[[1]]
stopifnot(length(counts$events$time) == 4, length(tortured("models", "y ~ csw(x, z)")) == 2,
          all(c("y", "x") %in% tortured("columns", "y ~ x", list())), tortured("vcov", one$pointer, "hc1", NULL)$vcov$type == "hc1",
          tortured("wald", one$pointer, NULL, NULL, diag(2), c(0, 0))[["df1"]] == 2,
          length(tortured("residuals", one$pointer)$fitted) == 60, length(tortured("glm_values", counts$pointer, "pearson")) == 60,
          length(tortured("predict", one$pointer, columns)$values) == 60, ncol(tortured("regressors", one$pointer, columns)$values) == 2,
          length(tortured("effects", one$pointer)) == 4, length(tortured("leave_out", three, list())$corrected) == 5,
          ncol(tortured("demean", cbind(d$y[1:60]), cbind(match(d$a[1:60], letters) - 1L), NULL, list(), 1L)$values) == 1)
