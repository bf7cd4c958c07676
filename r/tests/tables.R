# Tables and plots of several fits.  That tables are Python's to the byte is tests/build/r_package.sh's, which has both.
library(fourge)
fails <- function(expr, text) stopifnot(grepl(text, tryCatch({expr; "no error"}, error = conditionMessage), fixed = TRUE))

set.seed(5)
d <- data.frame(f = sample(letters[1:6], 200, TRUE), x = rnorm(200), z = rnorm(200), year = sample(2001:2004, 200, TRUE))
d$y <- d$x + rnorm(200)
one <- feols(y ~ x, d)
two <- feols(y ~ x + z | f, d, vcov = ~f)
cell <- function(value, digits = 3) formatC(value, digits = digits, format = "f")

t <- etable(one, two, type = "df")
labels <- c("(Intercept)", "", "x", "", "z", "", "f", "Observations", "S.E. type", "R2", "R2 Within")
stopifnot(identical(names(t), c("", "y (1)", "y (2)")), identical(t[[1]], labels), t[3, 2] == cell(coef(one)[["x"]]),
          t[4, 3] == paste0("(", cell(se(two)[["x"]]), ")"), t[1, 3] == "", t[7, 2] == "-", t[7, 3] == "x", t[8, 2] == "200", t[9, 3] == "by: f", t[10, 2] == cell(summary(lm(y ~ x, d))$r.squared), t[11, 2] == "-")
stopifnot(etable(one, type = "df", vcov = "hetero")[4, 2] == paste0("(", cell(se(one, "hetero")[["x"]]), ")"),
          etable(one, type = "df", digits = 5)[3, 2] == cell(coef(one)[["x"]], 5))
terms <- function(...) Filter(nzchar, etable(one, two, type = "df", fitstat = "n", show_fe = FALSE, ...)[[1]])
stopifnot(identical(terms(keep = c("z", "x")), c("z", "x", "Observations")),
          identical(terms(drop = "Inter"), c("x", "z", "Observations")),
          identical(terms(order = "z"), c("z", "(Intercept)", "x", "Observations")),
          identical(terms(keep = "x", dict = c(x = "Dose")), c("Dose", "Observations")),
          identical(terms(keep = "(x)", exact_match = TRUE), "Observations"))
rows <- etable(one, two, type = "df", fitstat = ~ r2 + vcov + aic + n, keep = "x")
stopifnot(identical(rows[[1]], c("x", "", "f", "R2", "S.E. type", "AIC", "Observations")), rows[6, 2] == cell(AIC(lm(y ~ x, d))))
tight <- feols(y ~ x, transform(d, y = x + rnorm(200) / 10))
stopifnot(endsWith(etable(tight, stars = TRUE, type = "df")[3, 2], "***"), !endsWith(etable(tight, type = "df")[3, 2], "*"),
          endsWith(etable(tight, stars = c(0, 0.5, 0.9), type = "df")[3, 2], "**"))
stopifnot(etable(one, coef_fmt = "b [ci_l, ci_u]", type = "df")[2, 2] ==
            paste0(cell(coef(one)[["x"]]), " [", paste(cell(confint(one)["x", ]), collapse = ", "), "]"))
wide <- etable(one, two, headers = c("short", "long"), notes = "A note.", dict = c(y = "Outcome"))
lines <- strsplit(wide, "\n")[[1]]
stopifnot(inherits(wide, "fourge_text"), grepl("^ +Outcome  Outcome$", lines[2]), grepl("^ +short +long$", lines[3]),
          length(unique(nchar(lines[c(1:3, 7)]))) == 1, lines[length(lines)] == "A note.", identical(capture.output(print(wide)), lines))
file <- tempfile()
tex <- etable(one, two, type = "tex", file = file)
stopifnot(identical(readLines(file), strsplit(tex, "\n")[[1]]), grepl("\\toprule", tex, fixed = TRUE),
          grepl("S.E. type & iid & by: f \\\\", tex, fixed = TRUE))
several <- feols(y ~ csw(x, z) | f, d)
stopifnot(identical(etable(several), etable(several[[1]], several[[2]])),
          identical(etable(list(several, one)), etable(several, list(one))),
          identical(capture.output(print(several)), capture.output(print(etable(several)))))
fails(etable(), "fits of feols()")
fails(etable(one, lm(y ~ x, d)), "fits of feols()")
fails(etable(one, headers = c("a", "b")), "expected 1 names, got 2")
fails(etable(one, coef_fmt = "b (s)"), "'s' is none of")
fails(etable(one, stars = 0.1), "three limits")
fails(etable(one, fitstat = "r3"), "there is no 'r3'")
fails(etable(one, type = "df", file = file), "types that are text")

# ---- plots: what is drawn comes back ----
pdf(NULL)
drawn <- coefplot(one, two, drop = "Inter")
stopifnot(identical(drawn$term, c("x", "x", "z")), identical(drawn$model, c(1L, 2L, 2L)),
          all.equal(drawn$estimate, unname(c(coef(one)["x"], coef(two)))),
          all.equal(drawn$conf.low, unname(c(confint(one)["x", 1], confint(two)[, 1]))), all.equal(drawn$x, c(0.94, 1.06, 2.06)))
stopifnot(all.equal(coefplot(one, level = 0.9, horiz = TRUE)$conf.high, unname(confint(one, level = 0.9)[, 2])))
years <- feols(y ~ i(year, x, ref = 2002) | f, d)
stopifnot(identical(iplot(years)$x, c(2001, 2003, 2004)), identical(fourge:::references_of(years), "2002"))
stopifnot(identical(fourge:::references_of(feols(y ~ i(f, ref = c("b", "c")), d)), c("b", "c")))
words <- iplot(feols(y ~ i(f, ref = "b"), d), dict = c(a = "first"))
stopifnot(identical(words$x, c(1, 2, 3, 4, 5)))
fails(iplot(one), "no coefficients of i()")
fails(coefplot(one, keep = "q"), "no term is left")
invisible(dev.off())
