coef.fourge <- function(object, ...) with_terms(object, chosen_vcov(object)$errors[, 1L])

with_terms <- function(object, x) {
  names(x) <- object$terms
  x
}

# the covariance that a method is asked for: the fit's first, or a new one without another fit
chosen_vcov <- function(object, vcov = NULL, ssc = NULL) {
  if (is.null(vcov) && is.null(ssc)) return(object$vcovs[[1L]])
  spec <- if (is.null(vcov)) object$vcovs[[1L]]$spec else vcov_spec(vcov, effects_of(object$formula))
  found <- .Call(R_fourge_vcov, with_columns(object, spec), spec, ssc)
  tell(found$warnings)
  found$vcov
}

vcov.fourge <- function(object, vcov = NULL, ssc = NULL, ...) {
  v <- chosen_vcov(object, vcov, ssc)$matrix
  dimnames(v) <- list(object$terms, object$terms)
  v
}

confint.fourge <- function(object, parm, level = 0.95, vcov = NULL, ssc = NULL, ...) {
  v <- chosen_vcov(object, vcov, ssc)
  if (v$type == "wild") {  # the bootstrap's own, found with the draws
    if (level != 0.95) stop("confint: the interval of a wild bootstrap is that of level 0.95", call. = FALSE)
    out <- v$errors[, 5:6, drop = FALSE]
  } else {
    half <- qt((1 + level) / 2, if (is.null(v$df)) v$df_t else v$df) * v$errors[, 2L]
    out <- cbind(v$errors[, 1L] - half, v$errors[, 1L] + half)
  }
  dimnames(out) <- list(object$terms, paste(format(100 * c((1 - level) / 2, (1 + level) / 2), trim = TRUE), "%"))
  if (missing(parm)) out else out[parm, , drop = FALSE]
}

residuals.fourge <- function(object, type = c("response", "deviance", "pearson", "working"), na.rm = TRUE, ...) {
  type <- match.arg(type)
  if (type == "response") without_dropped(.Call(R_fourge_residuals, object$pointer)$residuals, na.rm)
  else without_dropped(.Call(R_fourge_glm_values, object$pointer, type), na.rm)
}
fitted.fourge <- function(object, na.rm = TRUE, ...) without_dropped(fitted_rows(object), na.rm)
# one a row of the data
fitted_rows <- function(object) {
  fitted <- .Call(R_fourge_residuals, object$pointer)$fitted
  if (is.null(object$offset)) fitted else fitted + offset_values(object, .Call(R_fourge_kept, object$pointer))
}
without_dropped <- function(x, na.rm) if (na.rm) x[!is.nan(x)] else x

predict.fourge <- function(object, newdata = NULL, type = c("response", "link"), se.fit = FALSE,
                           interval = c("none", "confidence", "prediction"), level = 0.95, vcov = NULL, ssc = NULL, ...) {
  type <- match.arg(type)
  interval <- match.arg(interval)
  if (type == "link" && is.null(object$glm)) stop("predict: type = \"link\" is of a generalised linear model", call. = FALSE)
  mean <- if (!is.null(newdata)) {
    new_values(R_fourge_predict, with_effects(object), object, newdata) + offset_values(object, newdata)
  } else if (type == "link") .Call(R_fourge_glm_values, object$pointer, "link")
  else fitted_rows(object)
  if (type == "link" && !is.null(newdata)) mean <- stats::make.link(object$glm$link)$linkfun(mean)
  if (se.fit || interval != "none") with_errors(object, newdata, mean, interval, level, chosen_vcov(object, vcov, ssc)) else mean
}

# what a routine gives for the rows of other data
new_values <- function(routine, pointer, object, newdata) {
  result <- .Call(routine, pointer, columns_of(newdata, object$columns))
  if (result$unseen) warning(result$unseen, " rows have a level that the fit has not seen: NaN", call. = FALSE)
  result$values
}

# of a new row beside it the variance of an error
with_errors <- function(object, newdata, mean, interval, level, v) {
  if (!is.null(object$glm)) stop("predict: errors of predictions are there for least squares alone", call. = FALSE)
  if (interval == "prediction" && !is.null(object$options$weights)) {
    stop("predict: with weights the variance of a new row is not known", call. = FALSE)
  }
  variance <- if (length(object$levels)) effect_errors(object, newdata, v) else {
    x <- regressors(object, newdata)
    rowSums((x %*% v$matrix) * x)
  }
  out <- data.frame(fit = mean, se.fit = sqrt(variance))
  if (interval == "none") return(out)
  error <- if (interval == "prediction") object$numbers[["rss"]] / object$numbers[["df_residual"]] else 0
  half <- qt((1 + level) / 2, v$df_t) * sqrt(variance + error)
  cbind(out, ci_low = mean - half, ci_high = mean + half)
}

# rows of the data that the fit dropped are NaN
regressors <- function(object, newdata) {
  if (!is.null(newdata)) return(new_values(R_fourge_regressors, object$pointer, object, newdata))
  x <- .Call(R_fourge_regressors, object$pointer, .Call(R_fourge_kept, object$pointer))$values
  x[!used_rows(object), ] <- NaN
  x
}

model.matrix.fourge <- function(object, data = NULL, type = c("rhs", "lhs", "fixef"), na.rm = TRUE, ...) {
  type <- match.arg(type)
  if (type != "rhs" && !is.null(data)) stop("model.matrix: of other data there are the regressors alone", call. = FALSE)
  keep <- if (is.null(data) && na.rm) used_rows(object) else TRUE
  if (type == "lhs") return((fitted_rows(object) + .Call(R_fourge_residuals, object$pointer)$residuals)[keep])
  if (type == "fixef") {
    no_slopes(object, "model.matrix, type = \"fixef\"")
    kept <- .Call(R_fourge_kept, object$pointer)
    effects <- lapply(stats::setNames(nm = names(object$levels)), function(e) sub("\r", "_", keys_of(e, kept), fixed = TRUE))
    return(as.data.frame(effects, optional = TRUE)[keep, , drop = FALSE])
  }
  x <- regressors(object, data)
  colnames(x) <- object$terms
  x[keep, , drop = FALSE]
}

nobs.fourge <- function(object, ...) object$numbers[["n"]]
formula.fourge <- function(x, ...) x$formula
deviance.fourge <- function(object, ...) if (is.null(object$glm)) object$numbers[["rss"]] else object$glm$deviance
logLik.fourge <- function(object, ...) {
  n <- object$numbers[["n"]]
  value <- if (is.null(object$glm)) -n / 2 * (log(2 * pi * object$numbers[["rss"]] / n) + 1) else object$glm$log_likelihood
  dispersed <- is.null(object$glm) || object$glm$family %in% c("gaussian", "gamma") || !is.na(object$glm$theta_std_error)
  structure(value, df = length(object$terms) + object$numbers[["rank"]] + dispersed, nobs = n, class = "logLik")
}
df.residual.fourge <- function(object, ...) object$numbers[["df_residual"]]

fixef <- function(object) {
  if (!inherits(object, "fourge")) stop("fixef: expected a fit of feols()", call. = FALSE)
  table <- as.data.frame(.Call(R_fourge_effects, with_effects(object)))
  if (!all(table$identified != 0)) {
    warning("the effects are not unique: differences between levels of a factor may be the solver's", call. = FALSE)
  }
  lapply(split(table, factor(table$factor, unique(table$factor))), function(t) stats::setNames(t$effect, t$level))
}

# the columns of a table of coefficients
heads_of <- function(v) {
  letter <- if (is.infinite(v$df_t)) "z" else "t"
  c("Estimate", "Std. Error", paste(letter, "value"), paste0("Pr(>|", letter, "|)"))
}

coeftable <- function(object, vcov = NULL, ssc = NULL) {
  if (!inherits(object, "fourge")) stop("expected a fit of feols()", call. = FALSE)
  v <- chosen_vcov(object, vcov, ssc)
  out <- v$errors[, 1:4, drop = FALSE]
  dimnames(out) <- list(object$terms, heads_of(v))
  out
}
se <- function(object, vcov = NULL, ssc = NULL) with_terms(object, coeftable(object, vcov, ssc)[, 2L])
tstat <- function(object, vcov = NULL, ssc = NULL) with_terms(object, coeftable(object, vcov, ssc)[, 3L])
pvalue <- function(object, vcov = NULL, ssc = NULL) with_terms(object, coeftable(object, vcov, ssc)[, 4L])

coefficient_table <- function(object, vcov = NULL, ssc = NULL) {
  v <- chosen_vcov(object, vcov, ssc)
  out <- v$errors[, 1:4, drop = FALSE]
  dimnames(out) <- list(object$terms, heads_of(v))
  structure(list(table = out, vcov = v, fit = object), class = "fourge_table")
}

summary.fourge <- function(object, vcov = NULL, ssc = NULL, stage = 2, agg = NULL, ...) {
  if (!is.null(agg)) object <- aggregated(object, agg)
  if (!identical(as.numeric(stage), 1)) return(coefficient_table(object, vcov, ssc))
  if (is.null(object$iv)) stop("summary: stage = 1 is of a fit with instruments", call. = FALSE)
  if (!is.null(vcov) || !is.null(ssc)) stop("summary: the first stages have the errors of the fit's first vcov", call. = FALSE)
  lapply(object$iv$stages, function(s) {
    out <- s$errors[, 1:4, drop = FALSE]
    dimnames(out) <- list(s$terms, heads_of(object$vcovs[[1L]]))
    out
  })
}
# The fit with its sunab() shown otherwise: the mean of all effects, those of the relative periods, or of each cohort and period.
aggregated <- function(object, agg) {
  kind <- if (identical(agg, FALSE)) "none" else tolower(agg)
  if (length(kind) != 1L || !kind %in% c("att", "period", "none")) stop("agg: expected \"att\", \"period\" or FALSE", call. = FALSE)
  found <- FALSE
  shown_by <- function(e) {
    if (!is.call(e)) return(e)
    if (identical(e[[1L]], as.name("sunab")) || identical(e[[1L]], as.name("sunab_att"))) {
      found <<- TRUE
      e[[1L]] <- as.name("sunab")
      e$att <- e$no_agg <- NULL
      if (kind == "att") e$att <- TRUE
      if (kind == "none") e$no_agg <- TRUE
    }
    e[-1L] <- lapply(as.list(e)[-1L], shown_by)
    e
  }
  text <- formula_text(shown_by(stats::as.formula(object$text)))
  if (!found) stop("agg: the formula has no sunab()", call. = FALSE)
  kept <- .Call(R_fourge_kept, object$pointer)
  result <- .Call(R_fourge_fit, text, kept, own_options(object), FALSE, object$resources[[1L]], object$resources[[2L]])
  tell(result$warnings)
  object[names(result$fits[[1L]])] <- result$fits[[1L]]
  object$formula <- stats::as.formula(text, environment(object$asked))
  object$again <- new.env(parent = emptyenv())
  object
}

print.fourge <- function(x, ...) print(coefficient_table(x), ...)

print.fourge_table <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  fit <- x$fit
  cat(kind_of(fit), ", dependent variable: ", fit$depvar, "\n", sep = "")
  if (length(fit$sample) == 2L) cat("Sample: ", fit$sample[1L], " = ", fit$sample[2L], "\n", sep = "")
  cat("Observations: ", format(fit$numbers[["n"]], big.mark = ","), "\n", sep = "")
  if (length(fit$levels)) {
    cat("Fixed effects: ", paste0(names(fit$levels), " (", format(fit$levels, big.mark = ",", trim = TRUE), ")", collapse = ", "),
        "\n", sep = "")
  }
  offset <- c(fit$offset, fit$options$offset)
  if (length(offset)) cat("Offset: ", offset, "\n", sep = "")
  cat("Standard errors: ", x$vcov$spec, "\n", sep = "")
  stats::printCoefmat(x$table, digits = digits, ...)
  writeLines(as.character(remarks(x$vcov, fit$numbers[["n"]])))
  if (length(fit$dropped)) cat("Left out: ", paste0(names(fit$dropped), " (", fit$dropped, ")", collapse = "; "), "\n", sep = "")
  cat(quality(fit, digits), "\n", sep = "")
  if (!is.null(fit$iv)) {
    known <- !is.null(tests_of(fit, x$vcov))
    if (!known) cat("Instruments, by the errors of ", fit$vcovs[[1L]]$spec, ":\n", sep = "")
    print(fitstat(fit, instrument_tests, if (known) x$vcov$spec), digits = digits)
  }
  invisible(x)
}

kind_of <- function(fit) {
  if (!is.null(fit$glm)) paste0("GLM (", fit$glm$family, ", ", fit$glm$link, ")")
  else if (!is.null(fit$iv)) "TSLS" else if (!is.null(fit$first_stage)) "DID2S" else "OLS"
}

# how well the model fits, and how well it was solved
quality <- function(fit, digits) {
  show <- function(x) format(x, digits = digits)
  out <- if (is.null(fit$glm)) paste0("R2: ", show(fit$numbers[["r2"]]), ", RMSE: ", show(fit$numbers[["rmse"]]))
  else paste0("Deviance: ", show(fit$glm$deviance), ", log-likelihood: ", show(fit$glm$log_likelihood), ", pseudo R2: ",
              show(fit$glm$pseudo_r2))
  if (is.null(fit$glm) && length(fit$levels)) out <- paste0(out, ", within R2: ", show(fit$numbers[["r2_within"]]))
  if (length(fit$levels)) out <- paste0(out, "\nDemeaned by ", fit$method, ", largest level mean ", format(fit$audit, digits = 2))
  if (fit$converged) out else paste0(out, "\nNOT CONVERGED: the numbers are those of the last iterate")
}

# R b = q for the terms that `keep` and `drop` leave, q = 0: the Wald test, as F
wald <- function(x, keep = NULL, drop = NULL, exact_match = FALSE, vcov = NULL, ssc = NULL) {
  if (!inherits(x, "fourge")) stop("wald: expected a fit of feols()", call. = FALSE)
  terms <- if (is.null(keep)) setdiff(x$terms, "(Intercept)") else x$terms
  at <- match(chosen_terms(terms, keep, drop, NULL, exact_match), x$terms)
  if (!length(at)) stop("wald: no term is left to test; there are ", paste(x$terms, collapse = ", "), call. = FALSE)
  spec <- if (!is.null(vcov) || !is.null(ssc)) if (is.null(vcov)) x$vcovs[[1L]]$spec else vcov_spec(vcov, effects_of(x$formula))
  restrictions <- diag(length(x$terms))[, at, drop = FALSE]
  found <- .Call(R_fourge_wald, if (is.null(spec)) x$pointer else with_columns(x, spec), spec, ssc, restrictions, numeric(length(at)))
  out <- list(stat = found[["f"]], p = found[["p_f"]], df1 = found[["df1"]], df2 = found[["df2"]])
  structure(list(wald = c(out, list(terms = x$terms[at]))), class = "fourge_fitstat")
}

leave_out <- function(object, ...) {
  if (!inherits(object, "fourge")) stop("leave_out: expected a fit of feols()", call. = FALSE)
  found <- .Call(R_fourge_leave_out, with_effects(object), list(...))
  tell(found$warnings)
  found$warnings <- NULL
  found
}

tidy.fourge <- function(x, conf.int = FALSE, conf.level = 0.95, vcov = NULL, ssc = NULL, ...) {
  v <- chosen_vcov(x, vcov, ssc)
  out <- data.frame(term = x$terms, estimate = v$errors[, 1L], std.error = v$errors[, 2L], statistic = v$errors[, 3L],
                    p.value = v$errors[, 4L])
  if (conf.int) {
    interval <- confint(x, level = conf.level, vcov = vcov, ssc = ssc)
    out$conf.low <- unname(interval[, 1L])
    out$conf.high <- unname(interval[, 2L])
  }
  out
}

glance.fourge <- function(x, ...) {
  likelihood <- logLik(x)
  data.frame(r.squared = x$numbers[["r2"]], adj.r.squared = x$numbers[["r2_adjusted"]], within.r.squared = x$numbers[["r2_within"]],
             pseudo.r.squared = if (is.null(x$glm)) NaN else x$glm$pseudo_r2,
             sigma = sqrt(x$numbers[["rss"]] / x$numbers[["df_residual"]]), nobs = x$numbers[["n"]], logLik = c(likelihood),
             AIC = stats::AIC(likelihood), BIC = stats::BIC(likelihood), df.residual = x$numbers[["df_residual"]],
             converged = x$converged)
}

augment.fourge <- function(x, data, ...) {
  both <- .Call(R_fourge_residuals, x$pointer)
  if (nrow(data) != length(both$fitted)) stop("augment: these are not the data of the fit", call. = FALSE)
  cbind(data, .fitted = fitted_rows(x), .resid = both$residuals)
}
