# Statistics of a fit: numbers, and tests as list(stat, p, df1, df2), under the names that fixest has for them.

# What the covariance `v` says of the instruments; NULL where it is none of the fit's own.
tests_of <- function(fit, v) {
  same <- vapply(fit$vcovs, function(own) own$spec == v$spec && own$ssc == v$ssc, NA)
  if (any(same)) fit$iv$tests[[which(same)[1L]]]
}

number_of <- function(name) function(fit, ...) fit$numbers[[name]]
of_family <- function(name) function(fit, v) if (is.null(fit$glm)) NaN else fit$glm[[name]]

# of each endogenous regressor: W / L of the instruments in its first stage
first_stage_tests <- function(fit, v) {
  t <- tests_of(fit, v)
  out <- Map(function(f, p) list(stat = f, p = p, df1 = length(fit$iv$instruments), df2 = t$numbers[["ar_df"]]), t$f, t$p)
  structure(out, names = paste0("ivf::", names(fit$iv$stages)))
}

instrument_test <- function(stat, p, df1, df2 = NULL) function(fit, v) {
  n <- tests_of(fit, v)$numbers
  c(list(stat = n[[stat]], p = n[[p]]), list(df1 = df1(fit, n)), if (!is.null(df2)) list(df2 = n[[df2]]))
}

# name: what it is, how it is found, whether it is of instruments alone
statistics <- list(
  n = list("Observations", number_of("n")),
  r2 = list("R2", number_of("r2")),
  ar2 = list("Adjusted R2", number_of("r2_adjusted")),
  wr2 = list("R2 Within", number_of("r2_within")),
  rmse = list("RMSE", number_of("rmse")),
  df.residual = list("Residual df", number_of("df_residual")),
  wald = list("Wald F", function(fit, v) v$wald_f),
  ll = list("Log-likelihood", function(fit, v) c(logLik.fourge(fit))),
  aic = list("AIC", function(fit, v) stats::AIC(logLik.fourge(fit))),
  bic = list("BIC", function(fit, v) stats::BIC(logLik.fourge(fit))),
  pr2 = list("Pseudo R2", of_family("pseudo_r2")),
  deviance = list("Deviance", function(fit, v) deviance.fourge(fit)),
  ivf = list("First-stage F", first_stage_tests),
  kpr = list("Kleibergen-Paap rk F", function(fit, v) {
    n <- tests_of(fit, v)$numbers
    list(stat = n[["kp_f"]], lm = n[["kp_lm"]], p = n[["kp_p"]], df1 = n[["kp_df"]])
  }),
  effective_f = list("Effective F", function(fit, v) tests_of(fit, v)$numbers[["effective_f"]]),
  cd = list("Cragg-Donald F", function(fit, v) fit$iv$numbers[["cragg_donald_f"]]),
  ar = list("Anderson-Rubin F", function(fit, v) {
    t <- tests_of(fit, v)
    list(stat = t$numbers[["ar_f"]], p = t$numbers[["ar_p"]], df1 = length(fit$iv$instruments), df2 = t$numbers[["ar_df"]],
         set = t$ar_set, low = t$numbers[["ar_low"]], high = t$numbers[["ar_high"]])
  }),
  sargan = list("Sargan, Hansen J", instrument_test("overid", "overid_p", function(fit, n) n[["overid_df"]])),
  wh = list("Wu-Hausman F", function(fit, v) {
    n <- fit$iv$numbers
    list(stat = n[["wu_hausman_f"]], p = n[["wu_hausman_p"]], df1 = length(fit$iv$stages), df2 = n[["wu_hausman_df"]])
  })
)
instrument_tests <- c("ivf", "kpr", "effective_f", "cd", "ar", "sargan", "wh")

# the names that a formula, or a vector of words, has
type_names <- function(type, known, what = "fitstat") {
  if (inherits(type, "formula")) type <- all.vars(type)
  unknown <- setdiff(type, known)
  if (length(unknown)) stop(what, ": there is no '", unknown[1L], "'; there are ", paste(known, collapse = ", "), call. = FALSE)
  type
}

# Of the fit's covariances the one of that name, for which it has tests of the instruments.
own_vcov <- function(fit, vcov) {
  if (is.null(vcov)) return(fit$vcovs[[1L]])
  spec <- vcov_spec(vcov, effects_of(fit$formula))
  found <- Find(function(v) v$spec == spec, fit$vcovs)
  if (is.null(found)) {
    stop("fitstat: the fit has no tests of its instruments under '", spec, "'; name it in the fit's own vcov, as in ",
         "vcov = list(\"iid\", \"", spec, "\")", call. = FALSE)
  }
  found
}

fitstat <- function(x, type = NULL, vcov = NULL, simplify = FALSE) {
  if (!inherits(x, "fourge")) stop("fitstat: expected a fit of feols()", call. = FALSE)
  if (is.null(type)) {
    type <- if (is.null(x$glm)) c("n", "r2", "ar2", "wr2", "rmse") else c("n", "pr2", "deviance", "ll", "aic", "bic")
    type <- c(type, if (!is.null(x$iv)) instrument_tests)
  }
  type <- type_names(type, names(statistics))
  of_instruments <- type %in% instrument_tests
  if (any(of_instruments) && is.null(x$iv)) {
    stop("fitstat: '", type[of_instruments][1L], "' is of a fit with instruments, as in y ~ x | f | endogenous ~ instrument",
         call. = FALSE)
  }
  v <- if (is.null(vcov)) x$vcovs[[1L]] else if (any(of_instruments)) own_vcov(x, vcov) else chosen_vcov(x, vcov)
  out <- list()
  for (name in type) {
    value <- statistics[[name]][[2L]](x, v)
    out <- c(out, if (name == "ivf") value else stats::setNames(list(value), name))
  }
  if (simplify && length(out) == 1L) out[[1L]] else structure(out, class = "fourge_fitstat")
}

# log-likelihoods of a constant alone, and of the effects alone, which least squares knows from the sums of squares
normal_likelihood <- function(n, rss) -n / 2 * (log(2 * pi * rss / n) + 1)
constant_likelihood <- function(fit) {
  if (is.null(fit$glm)) normal_likelihood(fit$numbers[["n"]], fit$numbers[["tss"]]) else fit$glm$null_log_likelihood
}
effects_likelihood <- function(fit) {
  if (is.null(fit$glm)) normal_likelihood(fit$numbers[["n"]], fit$numbers[["rss"]] / (1 - fit$numbers[["r2_within"]])) else NaN
}

# fixest's shares of what is explained: a adjusted, p by log-likelihoods, w beside the effects
squares <- list(
  cor2 = list("Squared Correlation", function(fit) {
    fitted <- fitted.fourge(fit)
    stats::cor(fitted, fitted + residuals.fourge(fit))^2
  }),
  r2 = list("R2", number_of("r2")),
  ar2 = list("Adjusted R2", number_of("r2_adjusted")),
  pr2 = list("Pseudo R2", function(fit) 1 - c(logLik.fourge(fit)) / constant_likelihood(fit)),
  apr2 = list("Adjusted Pseudo R2", function(fit) {
    1 - (c(logLik.fourge(fit)) - length(fit$terms) - fit$numbers[["rank"]] + 1) / constant_likelihood(fit)
  }),
  wr2 = list("Within R2", number_of("r2_within")),
  war2 = list("Adjusted Within R2", function(fit) {
    free <- fit$numbers[["n"]] - fit$numbers[["rank"]]
    1 - (1 - fit$numbers[["r2_within"]]) * free / (free - length(fit$terms))
  }),
  wpr2 = list("Within Pseudo R2", function(fit) 1 - c(logLik.fourge(fit)) / effects_likelihood(fit)),
  wapr2 = list("Adjusted Within Pseudo R2", function(fit) {
    1 - (c(logLik.fourge(fit)) - length(fit$terms)) / effects_likelihood(fit)
  })
)

statistics <- c(statistics, lapply(squares[setdiff(names(squares), names(statistics))], function(s) {
  list(s[[1L]], function(fit, v) s[[2L]](fit))
}))

r2 <- function(x, type = "all", full_names = FALSE) {
  if (!inherits(x, "fourge")) stop("r2: expected a fit of feols()", call. = FALSE)
  type <- if (identical(type, "all")) names(squares) else type_names(type, names(squares), "r2")
  out <- vapply(type, function(name) as.numeric(squares[[name]][[2L]](x)), 0)
  names(out) <- if (full_names) vapply(type, function(name) squares[[name]][[1L]], "") else type
  out
}

print.fourge_fitstat <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  show <- function(value) format(value, digits = digits)
  for (name in names(x)) {
    value <- x[[name]]
    part <- strsplit(name, "::", fixed = TRUE)[[1L]]
    label <- statistics[[part[1L]]][[1L]]
    if (length(part) > 1L) label <- paste0(label, ", ", substring(name, nchar(part[1L]) + 3L))
    cat(label, ": ", if (is.list(value)) test_words(value, show) else show(value), "\n", sep = "")
  }
  invisible(x)
}

test_words <- function(test, show) {
  if (is.nan(test$stat)) return("not available")
  out <- show(test$stat)
  if (!is.null(test$lm)) out <- paste0(out, ", rk LM ", show(test$lm))
  out <- paste0(out, ", p ", if (test$p < 1e-4) "< 0.0001" else paste("=", sprintf("%.4f", test$p)))
  df <- c(test$df1, test$df2)
  out <- paste0(out, ", on ", paste(vapply(df[is.finite(df)], show, ""), collapse = " and "), " df")
  if (is.null(test$set)) return(out)
  set <- switch(test$set,
    interval = paste(show(test$low), "to", show(test$high)),
    rays = paste("below", show(test$low), "and above", show(test$high)),
    line = "every value", empty = "no value", NULL)
  if (is.null(set)) out else paste0(out, "; not rejected: ", set)
}
