# Calls that R's fixest has, too, on data/: Rscript beside_fixest.R ROOT compares the R package's numbers with those of fixest in
# r_methods.tsv; Rscript beside_fixest.R ROOT record loads fixest and prints that table.
#
# Bounds: 1e-9 of the largest number of a call for least squares (fixest's tolerance is 1e-11 here, its rounding below it),
# 1e-6 for iteratively reweighted fits, whose last step either package takes at its own change of the deviance.
root <- commandArgs(TRUE)[[1L]]
record <- identical(commandArgs(TRUE)[2L], "record")
suppressMessages(library(if (record) "fixest" else "fourge", character.only = TRUE))
wages <- read.csv(file.path(root, "data/wage_panel.csv"))
cigar <- read.csv(file.path(root, "data/cigar.csv"))
if (record) {
  setFixest_notes(FALSE)
  setFixest_nthreads(1)
  setFixest_estimation(fixef.tol = 1e-11, glm.tol = 1e-11, fixef.iter = 1e5)
  set_vcov <- setFixest_vcov
  set_ssc <- setFixest_ssc
  set_fml <- setFixest_fml
} else {
  setFourge_estimation(fixef.rm = "none", dof = "naive")
  set_vcov <- setFourge_vcov
  set_ssc <- setFourge_ssc
  set_fml <- setFourge_fml
}
options(warn = -1) # that levels are counted
adjustment <- intersect(c("K.adj", "adj"), names(formals(ssc))) # the second before fixest 0.13
as_ssc <- function(adj) do.call(ssc, stats::setNames(list(adj), adjustment))
set_vcov(all = "iid")
some <- function(x) as.numeric(x)[seq(1L, length(x), length.out = min(length(x), 12L))]
all_coefs <- function(fits) unlist(lapply(as.list(fits), coef))
controls <- c("married", "hours")
ols <- feols(lwage ~ union + married | nr + year, wages)
plain <- feols(lwage ~ union + married + exper, wages)
weighted <- feols(lwage ~ union + married | year, wages, weights = ~hours)
poisson <- fepois(hours ~ union + married | year, wages)
iv <- feols(sales ~ ndi | state | price ~ pimin + cpi, cigar)
several <- feols(c(lwage, hours) ~ sw(union, married) | csw0(year, nr), wages)
two <- feols(lwage ~ sw(union, married) | nr, wages)
calls <- list(
  r2.ols = quote(r2(ols)),
  r2.plain = quote(r2(plain, c("cor2", "r2", "ar2", "pr2", "apr2"))),
  r2.weighted = quote(r2(weighted, c("r2", "wr2", "war2"))),
  r2.poisson = quote(r2(poisson, c("cor2", "pr2", "apr2"))),
  sigma.ols = quote(c(sigma(ols), sigma(plain), sigma(weighted), sigma(poisson))),
  hatvalues.plain = quote(some(hatvalues(plain))),
  estfun.ols = quote(some(sandwich::estfun(ols))),
  estfun.weighted = quote(some(sandwich::estfun(weighted))),
  estfun.poisson = quote(some(sandwich::estfun(poisson))),
  bread.ols = quote(some(sandwich::bread(ols))),
  bread.weighted = quote(some(sandwich::bread(weighted))),
  bread.poisson = quote(some(sandwich::bread(poisson))),
  vcovCL.ols = quote(some(sandwich::vcovCL(ols, wages$nr))),
  update.effects = quote(coef(update(ols, . ~ . + hours | . - year))),
  update.left = quote(coef(update(ols, log(hours + 1) ~ .))),
  update.none = quote(coef(update(ols, . ~ . | 0))),
  update.power = quote(coef(update(feols(lwage ~ union | occupation^year, wages), . ~ . + married | . + nr))),
  update.vcov = quote(se(update(ols, vcov = ~nr))),
  update.instrument = quote(sort(coef(update(iv, . ~ . | . | . ~ . - cpi)))),
  update.several = quote(all_coefs(update(two, . ~ . + hours))),
  macro.terms = quote(coef(feols(lwage ~ union + .[controls] | nr, wages))),
  macro.arguments = quote(all_coefs(feols(lwage ~ sw(.[, controls]) | nr, wages))),
  macro.outcomes = quote(all_coefs(feols(.[c("lwage", "hours")] ~ union | nr, wages))),
  macro.named = quote(coef(feols(lwage ~ ..two | nr, wages))),
  macro.pattern = quote(coef(feols(lwage ~ ..("^(union|marr)") | nr, wages))),
  choice.left = quote(all_coefs(several[lhs = 2:1, fixef = 2])),
  choice.right = quote(all_coefs(several[rhs = "married", lhs = "hours"])),
  choice.not = quote(all_coefs(several[rhs = -1, fixef = 3])),
  sample.keep = quote(all_coefs(feols(lwage ~ married | occupation, wages, split = ~ year %keep% c("1980", "1985")))),
  sample.drop = quote(all_coefs(feols(lwage ~ married | occupation, wages, fsplit = ~ year %drop% "@^198[0-5]"))),
  offset.ols = quote(c(coef(feols(lwage ~ union | year, wages, offset = ~ exper / 20)),
                       se(feols(lwage ~ union | year, wages, offset = ~ exper / 20)))),
  offset.fitted = quote(some(fitted(feols(lwage ~ union | year, wages, offset = ~ exper / 20)))),
  offset.predicted = quote(some(predict(feols(lwage ~ union | year, wages, offset = ~ exper / 20), wages[1:40, ]))),
  matrix.fit = quote(coef(feols.fit(wages$lwage, as.matrix(wages[c("union", "married")]), wages[c("nr", "year")]))),
  panel.lag = quote(coef(feols(lwage ~ l(union) + f(married) | nr, panel(wages, ~ nr + year)))),
  setting.vcov = quote({
    set_vcov(no_FE = "hetero", one_FE = "cluster", two_FE = "twoway")
    on.exit(set_vcov(all = "iid"))
    c(se(feols(lwage ~ union, wages)), se(feols(lwage ~ union | nr, wages)), se(feols(lwage ~ union | nr + year, wages)))
  }),
  setting.ssc = quote({
    set_ssc(as_ssc(FALSE))
    on.exit(set_ssc(as_ssc(TRUE)))
    se(feols(lwage ~ union | nr, wages, vcov = ~nr))
  }),
  errors.plain = quote(some(predict(plain, wages[1:30, ], se.fit = TRUE)$se.fit))
)
# local projections: fixest's regressions of changes that are made here, and lpdid()
study <- expand.grid(year = 1:9, unit = 1:40)
study$cohort <- c(0, 4, 6, 7)[study$unit %% 4 + 1]
study$x <- sin(study$unit * 1.7 + study$year)
study$y <- study$unit / 9 + cos(study$unit * study$year) + study$x / 3 + (study$cohort > 0 & study$year >= study$cohort)
projected <- function(h) {
  at <- function(column, step) study[[column]][match(paste(study$unit, study$year + step), paste(study$unit, study$year))]
  treated <- function(step) ifelse(is.na(at("year", step)), NA, study$cohort > 0 & at("year", step) >= study$cohort)
  study$begins <- treated(0) - treated(-1)
  study$change <- at("y", h) - at("y", -1)
  fit <- feols(change ~ begins + x | year, study[which(study$begins == 1 | !treated(max(h, 0))), ], vcov = ~unit)
  c(coef(fit)[["begins"]], se(fit)[["begins"]])
}
horizons <- c(-3, -2, 0:2)
staggered <- feols(y ~ x + sunab(cohort, year) | unit + year, study, vcov = ~unit)
shown_by <- function(agg) {
  s <- summary(staggered, agg = agg)
  table <- if (record) s$coeftable else s$table
  table[grep("x", rownames(table), invert = TRUE), 1:2]
}
calls$aggregated <- quote(c(shown_by("att"), shown_by("period"), colSums(shown_by(FALSE))))
calls$lpdid <- if (record) quote(unlist(lapply(horizons, projected))) else quote({
  found <- lpdid(study, "y", "unit", "year", "cohort", pre_window = -3, post_window = 2, att = FALSE, xfml = ~x)
  t(summary(found)[, 1:2])
})
set_fml(..two = ~ union + married)
value <- function(name) as.numeric(eval(as.call(list(as.call(list(quote(`function`), NULL, calls[[name]]))))))
if (record) {
  cat("call\tplace\tvalue\n")
  for (name in names(calls)) {
    v <- value(name)
    cat(sprintf("%s\t%d\t%.17g\n", name, seq_along(v), v), sep = "")
  }
} else {
  golden <- read.delim(file.path(root, "tests/golden/r_methods.tsv"))
  stopifnot(setequal(golden$call, names(calls)))
  if (!requireNamespace("sandwich", quietly = TRUE)) calls <- calls[!vapply(calls, function(e) "sandwich" %in% all.names(e), NA)]
  for (name in names(calls)) {
    theirs <- golden$value[golden$call == name]
    ours <- value(name)
    bound <- if (grepl("poisson", name) || name == "sigma.ols") 1e-6 else 1e-9
    apart <- if (length(ours) == length(theirs)) max(abs(ours - theirs)) / max(abs(theirs)) else Inf
    shown <- function(v) paste(signif(v, 8), collapse = " ")
    if (!isTRUE(apart <= bound)) stop(name, ": ", shown(ours), "; fixest has ", shown(theirs))
  }
  cat(nrow(golden), "numbers of fixest\n")
}
