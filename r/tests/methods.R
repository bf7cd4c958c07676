# What is asked of a fit and of a session: updates, macros, choices of models, settings, scores, leverages, errors of predictions
# with effects, offsets.  lm() and glm() with dummies are the oracles.
library(fourge)
near <- function(a, b, tol = 1e-9) stopifnot(length(a) == length(b), all(abs(a - b) <= tol * pmax(1, abs(b))))
fails <- function(expr, text) stopifnot(grepl(text, tryCatch({expr; "no error"}, error = conditionMessage), fixed = TRUE))
same <- function(fml, text) stopifnot(identical(paste(deparse(fml, width.cutoff = 500L), collapse = ""), text))

set.seed(8)
n <- 300
d <- data.frame(a = sample(letters[1:9], n, TRUE), h = sample(c("low", "mid", "high"), n, TRUE), x = rnorm(n), z = rnorm(n),
                w = runif(n, .5, 2), g = rep(1:30, each = 10))
d$t <- rbinom(30, 1, .5)[d$g]
d$y <- d$x / 2 + match(d$a, letters) / 3 + 0.3 * d$t + rnorm(n)
d$c <- rpois(n, 2)
d$x[7] <- NA
used <- -7

# ---- errors of predictions, and leverages, with effects ----
for (effects in c("a", "a + h", "a^h + t")) {
  for (weight in list(NULL, "w")) {
    f <- feols(paste("y ~ x + z |", effects), d, weights = weight, fixef.rm = "none")
    d$of <- if (is.null(weight)) 1 else d$w
    l <- lm(paste("y ~ x + z +", sub("a^h", "a:h", effects, fixed = TRUE)), d, weights = of)
    theirs <- suppressWarnings(predict(l, d, se.fit = TRUE))
    near(predict(f, d, se.fit = TRUE)$se.fit[used], theirs$se.fit[used])
    near(predict(f, se.fit = TRUE)$se.fit[used], theirs$se.fit[used])
    stopifnot(is.nan(predict(f, se.fit = TRUE)$se.fit[7]))
    near(hatvalues(f), hatvalues(l))
    if (!is.null(weight)) next
    near(as.matrix(predict(f, d[10:20, ], interval = "prediction", level = 0.9)[c("fit", "ci_low", "ci_high")]),
         suppressWarnings(predict(l, d[10:20, ], interval = "prediction", level = 0.9)))
  }
}
bare <- feols(y ~ 1 | a, d)
near(predict(bare, d[1:9, ], se.fit = TRUE)$se.fit, predict(lm(y ~ a, d), d[1:9, ], se.fit = TRUE)$se.fit)
# two-stage least squares: X of the effects and the projected regressor
f <- feols(y ~ z | a + h | x ~ w, d)
X <- model.matrix(~ x + z + a + h, d[used, ])
Z <- model.matrix(~ w + z + a + h, d[used, ])
P <- Z %*% solve(crossprod(Z), crossprod(Z, X))
e <- d$y[used] - X %*% solve(crossprod(P), crossprod(P, d$y[used]))
V <- solve(crossprod(P)) * sum(e^2) / (n - 1 - ncol(X))
near(predict(f, se.fit = TRUE)$se.fit[used], sqrt(rowSums((X %*% V) * X)))
# what the effects do not identify has no error: a level of one component beside one of another, and a level that is new
apart <- data.frame(y = rnorm(40), x = rnorm(40), a = rep(1:4, each = 10), b = c(rep(1:2, 10), rep(3:4, 10)))
f <- feols(y ~ x | a + b, apart)
new <- suppressWarnings(predict(f, data.frame(x = 0, a = c(1, 1, 3, 9), b = c(1, 3, 4, 1)), se.fit = TRUE)$se.fit)
stopifnot(identical(is.nan(new), c(FALSE, TRUE, FALSE, TRUE)))
within <- lm(y ~ x + factor(a) + factor(b), apart)
near(new[c(1, 3)], suppressWarnings(predict(within, data.frame(x = 0, a = c(1, 3), b = c(1, 4)), se.fit = TRUE))$se.fit)
fails(predict(feols(y ~ x | a, d, vcov = ~g), d, se.fit = TRUE), "vcov = \"iid\" asks for them")
fails(predict(fepois(c ~ x | a, d), se.fit = TRUE), "least squares alone")
fails(predict(feols(y ~ x | a[z], d), se.fit = TRUE), "varying slopes")
wide <- data.frame(y = rnorm(9000), x = rnorm(9000), a = rep(1:60, 150), b = rep(1:50, each = 180))
fails(hatvalues(feols(y ~ x | a + b, wide)), "at most 2000")

# ---- scores and bread: the package sandwich takes the fits ----
p <- fepois(c ~ x + z | a, d)
q <- glm(c ~ x + z + a, poisson, d, control = glm.control(epsilon = 1e-14))
near(hatvalues(p), hatvalues(q), 1e-7)
near(sigma(p), sigma(q), 1e-7)
o <- feols(y ~ x + z | a + h, d)
near(sigma(o), sigma(lm(y ~ x + z + a + h, d)))
near(weights(feols(y ~ x, d, weights = ~w)), d$w[used])
stopifnot(is.null(weights(o)), identical(obs(o), seq_len(n)[used]))
if (requireNamespace("sandwich", quietly = TRUE)) {
  library(sandwich)
  l <- feols(y ~ x + z, d)
  m <- lm(y ~ x + z, d)
  for (type in c("HC0", "HC1", "HC2", "HC3")) near(vcovHC(l, type), vcovHC(m, type))
  near(bread(l), bread(m))
  near(estfun(l), estfun(m))
  r <- lm(residuals(lm(cbind(x, z) ~ a + h, d, weights = w)) ~ 1) # by Frisch and Waugh, of the weighted fit
  s <- feols(y ~ x + z | a + h, d, weights = ~w)
  near(estfun(s), residuals(r) * 0 + residuals(lm(cbind(x, z) ~ a + h, d, weights = w)) * d$w[used] * residuals(s))
  near(vcovCL(s, d$g[used], type = "HC0", cadjust = FALSE), vcov(s, ~g, ssc = ssc(K.adj = FALSE, G.adj = FALSE)))
  near(vcovCL(p, d$g[used], type = "HC0", cadjust = FALSE), vcov(p, ~g, ssc = ssc(K.adj = FALSE, G.adj = FALSE)), 1e-7)
  fails(estfun(feols(y ~ z | a | x ~ w, d)), "in two stages")
}

# ---- shares of what is explained ----
l <- lm(y ~ x + z + a + h, d)
none <- lm(y ~ 1, d[used, ])
found <- r2(o)
near(found[c("cor2", "r2", "ar2")], c(rep(summary(l)$r.squared, 2), summary(l)$adj.r.squared))
near(found[["pr2"]], 1 - c(logLik(l) / logLik(none)))
near(found[["apr2"]], 1 - c((logLik(l) - (length(coef(l)) - 1)) / logLik(none)))
alone <- lm(y ~ a + h, d[used, ])
near(found[["wr2"]], 1 - deviance(l) / deviance(alone))
near(found[["war2"]], 1 - deviance(l) / deviance(alone) * df.residual(alone) / df.residual(l))
near(found[["wpr2"]], 1 - c(logLik(l) / logLik(alone)))
stopifnot(is.nan(r2(p, "wr2")), identical(names(r2(o, "ar2", full_names = TRUE)), "Adjusted R2"))
near(fitstat(o, "war2", simplify = TRUE), found[["war2"]])
fails(r2(o, "r3"), "there is no 'r3'")

# ---- offsets of least squares ----
o <- feols(y ~ x | a, d, offset = ~ z + log(w))
l <- lm(y ~ x + a + offset(z + log(w)), d)
near(c(coef(o), vcov(o)), c(coef(l)[["x"]], vcov(l)["x", "x"]))
near(fitted(o), fitted(l))
near(predict(o, d)[used], predict(l, d)[used])
near(residuals(o), residuals(l))
near(model.matrix(o, type = "lhs"), d$y[used])
stopifnot(o$depvar == "y", "Offset: z + log(w)" %in% capture.output(print(o)),
          identical(names(feols(c(y, c) ~ x, d, offset = ~z)), c("y ~ x", "c ~ x")))
same(formula(o), "y ~ x | a")
fails(feols(y ~ x, d, offset = ~qq), "qq")

# ---- macros ----
v <- c("x", "z")
same(xpd(y ~ .[v] + t), "y ~ x + z + t")
same(xpd(y ~ t + .[v]), "y ~ t + x + z")
same(xpd(y ~ z.[1:3] + ..q, ..q = ~ r + s), "y ~ z1 + z2 + z3 + r + s")
same(xpd(lhs = "y", rhs = v), "y ~ x + z")
same(xpd(y ~ i(g, ref = 1) + sw(.[, v]) | .["a"]), "y ~ i(g, ref = 1) + sw(x, z) | a")
same(xpd(y ~ i(.[, c("g", "x")], ref = 1)), "y ~ i(g, x, ref = 1)")
same(xpd(y ~ regex("^[xz]$"), data = d), "y ~ x + z")
same(xpd(y ~ .[v]:w), "y ~ (x + z):w")
near(coef(feols(y ~ .[v] | a, d)), coef(feols(y ~ x + z | a, d)))
near(coef(feols("y ~ .[v] | a", d)), coef(feols(y ~ x + z | a, d)))
within_a_function <- function() {
  own <- c("x", "w")
  coef(fepois("c ~ .[own]", d))
}
near(within_a_function(), coef(fepois(c ~ x + w, d)))
stopifnot(identical(names(feols(.[c("y", "c")] ~ x, d)), c("y ~ x", "c ~ x")),
          identical(names(coef(feols(y ~ .[v]:w, d))), c("(Intercept)", "x:w", "z:w")))
before <- setFourge_fml(..two = ~ x + z)
near(coef(feols(y ~ ..two, d)), coef(lm(y ~ x + z, d)))
setFourge_fml(reset = TRUE)
stopifnot(identical(before, list()), identical(getFourge_fml(), list()))
fails(xpd(y ~ ..("^q"), data = d), "no column of the data matches")
fails(xpd(y ~ .[NULL]), "wants texts or numbers")
fails(setFourge_fml(two = ~x), "begin with two points")

# ---- update ----
f <- feols(y ~ x | a, d, vcov = "hetero")
changed <- function(fit, change) update(fit, change, evaluate = FALSE)$fml
same(changed(f, . ~ . + z), "y ~ x + z | a")
same(changed(f, . ~ . | . + h), "y ~ x | a + h")
same(changed(f, . ~ . | 0), "y ~ x")
same(changed(f, . ~ . | a^h), "y ~ x | a^h")
same(changed(f, log(y + 9) ~ z), "log(y + 9) ~ z | a")
same(changed(f, . ~ . + i(t, ref = 0) + csw(z, w)), "y ~ x + i(t, ref = 0) + csw(z, w) | a")
same(changed(f, . ~ . - x | . | x ~ w), "y ~ 1 | a | x ~ w")
two <- feols(y ~ z | a | x ~ w, d)
same(changed(two, . ~ . | . | . ~ . + t), "y ~ z | a | x ~ w + t")
same(changed(two, . ~ . | . | 0), "y ~ z | a")
same(changed(two, . ~ . + t), "y ~ z + t | a | x ~ w")
u <- update(f, . ~ . | . + h, vcov = ~g)
near(coef(u), coef(feols(y ~ x | a + h, d)))
stopifnot(u$vcovs[[1]]$spec == "cluster=g", identical(coef(update(f)), coef(f)),
          identical(names(update(feols(y ~ sw(x, z), d), . ~ . + t)), c("y ~ x + t", "y ~ z + t")))
fails(update(f, . ~ ., ~g), "arguments by name")
fails(update(did2s(d, "y", ~ 0 | a, ~t, "t", "g"), . ~ .), "no formula of its own")

# ---- the models of one call ----
m <- feols(c(y, c) ~ sw(x, z) | csw0(a, h), d)
k <- models(m)
stopifnot(n_models(m) == 12, n_models(f) == 1, identical(names(k), c("id", "fixef", "lhs", "rhs")), k$fixef[12] == "a + h",
          identical(names(m[lhs = 2:1, fixef = 1]), c("c ~ x", "c ~ z", "y ~ x", "y ~ z")),
          identical(names(m[rhs = "z", lhs = "^c"]), c("c ~ z", "c ~ z | a", "c ~ z | a + h")),
          identical(names(m[rhs = -1, fixef = "!h"]), c("y ~ z", "c ~ z", "y ~ z | a", "c ~ z | a")),
          inherits(m[lhs = 1, rhs = 1, fixef = 1, drop = TRUE], "fourge"), identical(names(m[3]), names(m)[3]))
near(coef(m)$z[2], coef(m[[2]])[["z"]])
stopifnot(is.na(coef(m)$z[1]), identical(unname(nobs(m[1:2])), c(n - 1, n)))
fails(m[lhs = 3], "there are 1 (y), 2 (c)")
fails(m[1, lhs = 1], "numbers of models")
samples <- function(...) vapply(feols(y ~ x, d, ...), function(f) paste(f$sample[-1], collapse = ""), "")
stopifnot(identical(unname(samples(split = ~ h %keep% c("low", "mi"))), c("low", "mid")),
          identical(unname(samples(fsplit = ~ h %drop% "@^(h|l)")), c("", "mid")))
fails(feols(y ~ x, d, split = ~ h %keep% "zz"), "split: no level is or begins with 'zz'; there are high, low, mid")

# ---- matrices, panels, what was left out ----
X <- as.matrix(d[used, c("x", "z")])
k <- feols.fit(d$y[used], X, d[used, c("a", "h")], vcov = "hetero")
same_fit <- feols(y ~ x + z | a + h, d, vcov = "hetero")
near(coef(k), coef(same_fit))
near(se(k), se(same_fit))
k <- feols.fit(as.matrix(d[used, c("y", "c")]), X, weights = d$w[used], offset = d$t[used])
near(coef(k[[1]]), coef(lm(y ~ x + z - 1 + offset(t), d, weights = w)))
stopifnot(identical(names(coef(feols.fit(d$y, unname(as.matrix(d[c("w", "z")]))))), c("x1", "x2")))
fails(feols.fit(d$y[-1], d$w), "different numbers of rows")
fails(feols.fit(d["y"], d["y"]), "two columns are called 'y'")
units <- panel(data.frame(u = rep(1:20, each = 5), s = rep(1:5, 20), y = rnorm(100), x = rnorm(100)), ~ u + s)
near(coef(feols(y ~ l(x) | u, units)), coef(feols(y ~ l(x) | u, unpanel(units), panel.id = c("u", "s"))))
stopifnot(inherits(units[units$s > 1, ], "fourge_panel"), !inherits(units[c("y", "x")], "fourge_panel"), is.numeric(units[, "y"]))
fails(panel(d, ~ a + q), "no column 'q'")
doubled <- suppressWarnings(feols(y ~ x + I(2 * x) + t | g, d))
stopifnot(identical(capture.output(print(collinearity(doubled))),
                    c("'I(2 * x)' is collinear with x", "'t' is absorbed by the fixed effects")))
near(as.matrix(model.matrix(feols(y ~ x | g + t, d), type = "fixef") == cbind(d$g, d$t)[used, ]), TRUE[rep(1, 2 * (n - 1))])
stopifnot(model.matrix(feols(y ~ x | a^h, d), type = "fixef")[1, 1] == paste(d$a[1], d$h[1], sep = "_"))

# ---- settings ----
spec <- function(...) feols(y ~ x, d, ...)$vcovs[[1]]$spec
setFourge_vcov()
stopifnot(spec() == "iid", spec(vcov = "hetero") == "hc1", feols(y ~ x | a + h, d)$vcovs[[1]]$spec == "cluster=a",
          feols(y ~ x, units)$vcovs[[1]]$spec == "cluster=u")
setFourge_vcov(all = "hetero")
stopifnot(spec() == "hc1", spec(cluster = "g") == "cluster=g")
setFourge_vcov(reset = TRUE)
setFourge_ssc(ssc(K.adj = FALSE))
near(vcov(feols(y ~ x, d)), vcov(lm(y ~ x, d)) * (n - 3) / (n - 2))
setFourge_ssc()
setFourge_estimation(data = d, fixef.rm = "none", dof = "naive", vcov = "hetero")
kept <- suppressWarnings(feols(y ~ x | a))
stopifnot(kept$options$keep_singletons, kept$options$dof == "naive", kept$vcovs[[1]]$spec == "hc1",
          !feols(y ~ x, fixef.rm = "singleton")$options$keep_singletons)
near(coef(fepois(c ~ .[v])), coef(fepois(c ~ x + z, d)))
setFourge_estimation(data = d["y"])
stopifnot(identical(getFourge_estimation()$data, d["y"]))
setFourge_estimation(reset = TRUE)
setFourge_nthreads(1)
stopifnot(feols(y ~ x, d)$resources[[1]] == 1L, feols(y ~ x, d, threads = 2)$resources[[1]] == 2L, setFourge_nthreads() == 1L)
named <- feols(y ~ x | a, d, fixef.tol = 1e-9, collin.tol = 1e-8, nthreads = 1)
stopifnot(named$options$tol == 1e-9, named$options$collin_tol == 1e-8, named$resources[[1]] == 1L,
          fepois(c ~ x, d, glm.tol = 1e-9, glm.iter = 30)$options$glm_iter == 30)
setFourge_dict(c(x = "Dose"))
stopifnot("Dose" %in% etable(f, type = "df")[[1]], !"Dose" %in% etable(f, type = "df", dict = NULL)[[1]])
setFourge_dict()
fails(setFourge_vcov(one_FE = 3), "vcov: expected")
fails(setFourge_nthreads(-1), "whole number")
fails(setFourge_dict("Dose"), "words with names")
fails(setFourge_estimation("none"), "arguments by name")
fails(feols(y ~ x), "data frame")

# ---- tables: groups of terms, rows of one's own, patterns, styles, floats ----
one <- feols(y ~ x, d)
two <- feols(y ~ x + z + w | a, d)
first <- function(...) Filter(nzchar, etable(one, two, type = "df", fitstat = "n", ...)[[1]])
t <- etable(one, two, type = "df", group = list(Controls = c("^z", "^w")), extralines = list(Sample = c("all", "some")),
            fe_present = "yes")
stopifnot(identical(t[[1]][c(1, 3, 5:7)], c("(Intercept)", "x", "Controls", "a", "Sample")),
          identical(unlist(t[5, -1], use.names = FALSE), c("-", "yes")),
          identical(unlist(t[7, -1], use.names = FALSE), c("all", "some")),
          identical(first(keep = "!Inter"), c("x", "z", "w", "a", "Observations")),
          identical(first(drop = "!%x"), c("x", "a", "Observations")),
          identical(first(style = list(show_fe = FALSE, keep = "x")), c("x", "Observations")),
          identical(first(style = list(keep = "x"), keep = "w"), c("w", "a", "Observations")))
setFourge_etable(digits = 1, show_fe = FALSE)
stopifnot(etable(one, two, type = "df", keep = "x")[1, 2] == sprintf("%.1f", coef(one)[["x"]]),
          identical(first(keep = "x"), c("x", "Observations")))
setFourge_etable(reset = TRUE)
tex <- strsplit(etable(one, type = "tex", title = "Yield & dose", label = "tab:one"), "\n")[[1]]
stopifnot(identical(tex[1:4], c("\\begin{table}[htbp]", "\\centering", "\\caption{Yield \\& dose}", "\\label{tab:one}")),
          tex[length(tex)] == "\\end{table}", strsplit(etable(one, title = "Yield"), "\n")[[1]][1] == "Yield")
fails(etable(one, label = "tab:one"), "type = \"tex\"")
fails(etable(one, extralines = list(Sample = c("all", "some"))), "expected 1 cells of 'Sample', got 2")
fails(etable(one, style = list(digit = 2)), "no argument 'digit'")
fails(etable(one, group = list("z")), "patterns with names")
