coef.fourge <- function(object, ...) with_terms(object, chosen_vcov(object)$errors[, 1L])

with_terms <- function(object, x) {
  names(x) <- object$terms
  x
}

# the covariance that a method is asked for: the fit's first, or a new one without another fit
chosen_vcov <- function(object, vcov = NULL, ssc = NULL) {
  if (is.null(vcov) && is.null(ssc)) return(object$vcovs[[1L]])
  spec <- if (is.null(vcov)) object$vcovs[[1L]]$spec else vcov_spec(vcov, effects_of(object$formula))
  found <- .Call(R_fourge_vcov, object$pointer, spec, ssc)
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

residuals.fourge <- function(object, na.rm = TRUE, ...) without_dropped(.Call(R_fourge_residuals, object$pointer)$residuals, na.rm)
fitted.fourge <- function(object, na.rm = TRUE, ...) without_dropped(.Call(R_fourge_residuals, object$pointer)$fitted, na.rm)
without_dropped <- function(x, na.rm) if (na.rm) x[!is.nan(x)] else x

predict.fourge <- function(object, newdata = NULL, ...) {
  if (is.null(newdata)) return(.Call(R_fourge_residuals, object$pointer)$fitted)
  response <- all.vars(object$formula[[2L]])
  names <- setdiff(all.vars(object$formula), response)
  result <- .Call(R_fourge_predict, object$pointer, columns_of(newdata, names))
  if (result$unseen) warning(result$unseen, " rows have a level that the fit has not seen: NaN", call. = FALSE)
  result$values
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
  table <- as.data.frame(.Call(R_fourge_effects, object$pointer))
  lapply(split(table, factor(table$factor, unique(table$factor))), function(t) stats::setNames(t$effect, t$level))
}

coefficient_table <- function(object, vcov = NULL, ssc = NULL) {
  v <- chosen_vcov(object, vcov, ssc)
  out <- v$errors[, 1:4, drop = FALSE]
  letter <- if (is.infinite(v$df_t)) "z" else "t"
  dimnames(out) <- list(object$terms, c("Estimate", "Std. Error", paste(letter, "value"), paste0("Pr(>|", letter, "|)")))
  structure(list(table = out, vcov = v, fit = object), class = "fourge_table")
}

summary.fourge <- function(object, vcov = NULL, ssc = NULL, ...) coefficient_table(object, vcov, ssc)
print.fourge <- function(x, ...) print(coefficient_table(x), ...)

print.fourge_table <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  fit <- x$fit
  kind <- if (is.null(fit$glm)) "OLS" else paste0("GLM (", fit$glm$family, ", ", fit$glm$link, ")")
  if (length(all.names(fit$formula)[all.names(fit$formula) == "~"]) > 1L) kind <- "TSLS"
  cat(kind, ", dependent variable: ", fit$depvar, "\n", sep = "")
  cat("Observations: ", format(fit$numbers[["n"]], big.mark = ","), "\n", sep = "")
  if (length(fit$levels)) {
    cat("Fixed effects: ", paste0(names(fit$levels), " (", format(fit$levels, big.mark = ",", trim = TRUE), ")", collapse = ", "),
        "\n", sep = "")
  }
  cat("Standard errors: ", x$vcov$spec, "\n", sep = "")
  stats::printCoefmat(x$table, digits = digits, ...)
  if (length(fit$dropped)) cat("Left out: ", paste0(names(fit$dropped), " (", fit$dropped, ")", collapse = "; "), "\n", sep = "")
  cat("R2: ", format(fit$numbers[["r2"]], digits = digits), ", RMSE: ", format(fit$numbers[["rmse"]], digits = digits), sep = "")
  if (length(fit$levels)) {
    cat(", within R2: ", format(fit$numbers[["r2_within"]], digits = digits), "\nDemeaned by ", fit$method, ", largest level mean ",
        format(fit$audit, digits = 2), if (fit$converged) "" else ": NOT CONVERGED", sep = "")
  }
  cat("\n")
  invisible(x)
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
  data.frame(r.squared = x$numbers[["r2"]], adj.r.squared = x$numbers[["r2_adjusted"]], within.r.squared = x$numbers[["r2_within"]],
             sigma = sqrt(x$numbers[["rss"]] / x$numbers[["df_residual"]]), nobs = x$numbers[["n"]],
             df.residual = x$numbers[["df_residual"]], converged = x$converged)
}

augment.fourge <- function(x, data, ...) {
  both <- .Call(R_fourge_residuals, x$pointer)
  if (nrow(data) != length(both$fitted)) stop("augment: these are not the data of the fit", call. = FALSE)
  cbind(data, .fitted = both$fitted, .resid = both$residuals)
}
