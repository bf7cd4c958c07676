# Randomisation inference and local projections, with what is printed and drawn of them.

ritest <- function(object, resampvar, cluster = NULL, reps = 1000L, type = c("randomization-c", "randomization-t"), seed = 0,
                   strata = NULL, vcov = NULL, ssc = NULL, ...) {
  if (!inherits(object, "fourge")) stop("ritest: expected a fit of feols()", call. = FALSE)
  type <- match.arg(type)
  more <- lapply(list(cluster = cluster, strata = strata, ...), function(x) if (inherits(x, "formula")) column_name(x, "ritest") else x)
  statistic <- if (type == "randomization-t") "t" else "estimate"
  asked <- list(variable = column_name(resampvar, "resampvar"), reps = reps, statistic = statistic, seed = seed)
  asked <- c(asked, more[!vapply(more, is.null, NA)])
  options <- own_options(object)
  options$vcov <- if (is.null(vcov)) object$vcovs[[1L]]$spec else vcov_spec(vcov, effects_of(object$formula))
  if (!is.null(ssc)) options$ssc <- ssc
  words <- paste0("`", c(unlist(Filter(is.character, more)), options$vcov), "`", collapse = " ")
  found <- .Call(R_fourge_ritest, with_columns(object, paste(words, options$vcov)), options, asked)
  tell(found$warnings)
  found$warnings <- NULL
  structure(c(found, list(type = type, cluster = more$cluster, strata = more$strata, depvar = object$depvar)), class = "fourge_ritest")
}

print.fourge_ritest <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  show <- function(v) format(v, digits = digits)
  cat("Randomisation inference on ", x$term, ", dependent variable: ", x$depvar, "\n", sep = "")
  statistic <- if (x$type == "randomization-t") paste0(", t statistic ", show(x$observed)) else ""
  cat("Estimate ", show(x$estimate), statistic, ", p = ", show(x$p_value), " (its standard error ", show(x$std_error), ")\n",
      sep = "")
  what <- if (is.null(x$cluster)) "rows" else paste0("groups of ", x$cluster)
  if (!is.null(x$strata)) what <- paste0(what, " within ", x$n_strata, " strata of ", x$strata)
  cat(format(x$reps, big.mark = ","), " permutations of ", format(x$permuted, big.mark = ","), " ", what, "\n", sep = "")
  if (!x$converged) cat("NOT CONVERGED: the statistics are those of the last iterates\n")
  invisible(x)
}

plot.fourge_ritest <- function(x, breaks = "Sturges", main = "", xlab = NULL, ylab = "Permutations", ...) {
  if (is.null(xlab)) xlab <- paste(if (x$type == "randomization-t") "t statistic of" else "Estimate of", x$term)
  bars <- graphics::hist(x$statistics, breaks = breaks, plot = FALSE)
  size <- abs(x$observed)
  graphics::plot(bars, main = main, xlab = xlab, ylab = ylab, xlim = range(bars$breaks, size, -size), ...)
  graphics::abline(v = x$observed, lwd = 2L)
  graphics::abline(v = -x$observed, lty = 2L)
  invisible(bars)
}

lpdid <- function(data, yname, idname, tname, gname, vcov = NULL, pre_window = NULL, post_window = NULL, never_treated = 0,
                  att = TRUE, xfml = NULL, reweight = FALSE, pmd = 1, weights = NULL, subset = NULL, ssc = NULL, threads = NULL,
                  time_limit = 0, ...) {
  if (!identical(pmd, "max") && !(is.numeric(pmd) && length(pmd) == 1L && !is.na(pmd) && pmd >= 1)) {
    stop("pmd: expected a number of periods, 1 or more, or \"max\"", call. = FALSE)
  }
  asked <- list(pre_window = pre_window, post_window = post_window, never_treated = never_treated, pooled = att, reweight = reweight,
                pmd = if (identical(pmd, "max")) 0 else pmd, ...)
  asked <- asked[!vapply(asked, is.null, NA)]
  id <- column_name(idname, "idname")
  time <- column_name(tname, "tname")
  asked$panel <- paste0(back_quoted(c(id, time)), collapse = ",")
  asked$cohort <- column_name(gname, "gname")
  if (is.character(xfml)) xfml <- stats::as.formula(paste("~", sub("^ *~", "", xfml)), parent.frame())
  if (!is.null(xfml)) xfml <- without_macros(xfml, data, parent.frame())
  right <- if (is.null(xfml)) "1" else formula_text(xfml[[length(xfml)]])
  formula <- paste(if (inherits(yname, "formula")) expression_text(yname) else back_quoted(yname), "~", right)
  if (is.null(threads)) threads <- getFourge_nthreads()
  columns <- columns_of(data, c(id, time, asked$cohort, all.vars(stats::as.formula(formula))))
  design <- .Call(R_fourge_lpdid, formula, columns, asked, as.integer(threads))
  tell(design$warnings)
  given <- list(vcov = if (is.null(vcov)) design$vcov else vcov, weights = weights, subset = subset, ssc = ssc,
                panel.id = if (!is.null(xfml) && any(c("l", "f", "d") %in% all.names(xfml))) c(id, time))
  made <- as.data.frame(design$columns, optional = TRUE)
  stages <- if (!is.null(design$first_stage)) list(first_stage = design$first_stage)
  fits <- fit(match.call(), design$formula, cbind(unpanel(data), made), given, as.list(stages), threads, time_limit, NULL,
              parent.frame())
  fits <- if (inherits(fits, "fourge")) list(fits) else unclass(fits)
  at <- match(vapply(fits, function(f) f$depvar, ""), names(design$horizons))
  names(fits) <- design$horizons[at]
  structure(list(fits = fits, horizons = unname(design$horizons[at]), term = design$term, pooled = isTRUE(as.logical(att)),
                 last = design$last, yname = sub(" ~.*", "", formula), call = match.call()), class = "fourge_lpdid")
}

# names as formulas have them
back_quoted <- function(names) ifelse(make.names(names) == names, names, paste0("`", names, "`"))

# the row of each horizon that `table` gives of a fit's terms
of_horizons <- function(x, table) {
  rows <- lapply(x$fits, function(f) table(f)[match(x$term, f$terms), , drop = FALSE])
  out <- do.call(rbind, rows)
  rownames(out) <- if (x$pooled) x$term else paste0("time_to_treatment::", x$horizons)
  out
}

coef.fourge_lpdid <- function(object, ...) of_horizons(object, function(f) cbind(coef(f)))[, 1L]
confint.fourge_lpdid <- function(object, parm, level = 0.95, vcov = NULL, ssc = NULL, ...) {
  out <- of_horizons(object, function(f) confint(f, level = level, vcov = vcov, ssc = ssc))
  if (missing(parm)) out else out[parm, , drop = FALSE]
}
nobs.fourge_lpdid <- function(object, ...) vapply(object$fits, nobs, 0)
summary.fourge_lpdid <- function(object, vcov = NULL, ssc = NULL, ...) {
  out <- of_horizons(object, function(f) coeftable(f, vcov, ssc))
  cbind(out, N = nobs(object))
}

print.fourge_lpdid <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  after <- if (x$pooled) paste0(", mean of the periods 0 to ", x$last) else ""
  cat("Local projections, dependent variable: ", x$yname, after, "\n", sep = "")
  cat("Standard errors: ", x$fits[[1L]]$vcovs[[1L]]$spec, "\n", sep = "")
  print(summary(x), digits = digits, ...)
  marked <- names(x$fits)[!vapply(x$fits, function(f) f$converged, NA)]
  if (length(marked)) cat("NOT CONVERGED: horizons ", paste(marked, collapse = ", "), "\n", sep = "")
  invisible(x)
}

tidy.fourge_lpdid <- function(x, conf.int = FALSE, conf.level = 0.95, vcov = NULL, ssc = NULL, ...) {
  rows <- lapply(x$fits, function(f) {
    row <- tidy.fourge(f, conf.int, conf.level, vcov, ssc)[match(x$term, f$terms), ]
    cbind(row, nobs = nobs(f))
  })
  out <- do.call(rbind, rows)
  out$term <- if (x$pooled) x$term else paste0("time_to_treatment::", x$horizons)
  rownames(out) <- NULL
  out
}

plot.fourge_lpdid <- function(x, level = 0.95, vcov = NULL, ssc = NULL, horiz = FALSE, ref.line = 0, main = "",
                              xlab = "Periods since the treatment", ylab = "Estimate", ...) {
  interval <- confint(x, level = level, vcov = vcov, ssc = ssc)
  points <- data.frame(model = 1L, term = rownames(interval), x = x$horizons, estimate = unname(coef(x)),
                       conf.low = unname(interval[, 1L]), conf.high = unname(interval[, 2L]))
  reference <- if (x$pooled) numeric() else setdiff(-1, x$horizons)
  ticks <- if (x$pooled) 0 else sort(c(x$horizons, reference))
  draw(points, ticks, if (x$pooled) paste0("0..", x$last) else ticks, reference, horiz, ref.line, main, xlab, ylab)
}
