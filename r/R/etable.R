# Models side by side: estimates above their errors in parentheses, then effects and statistics of the fits.
etable <- function(..., digits = 4L, stars = FALSE, vcov = NULL, ssc = NULL) {
  fits <- list(...)
  if (length(fits) == 1L && !inherits(fits[[1L]], "fourge")) fits <- fits[[1L]]
  if (!length(fits) || !all(vapply(fits, inherits, NA, "fourge"))) stop("etable: expected fits of feols()", call. = FALSE)
  terms <- unique(unlist(lapply(fits, function(f) f$terms)))
  effects <- unique(unlist(lapply(fits, function(f) names(f$levels))))
  columns <- vapply(fits, model_column, character(2L * length(terms) + length(effects) + 4L), terms = terms, effects = effects,
                    digits = digits, stars = stars, vcov = vcov, ssc = ssc)
  rows <- c(rbind(terms, rep("", length(terms))), effects, "Std. errors", "Observations", "R2", "Within R2")
  out <- data.frame(rows, columns, stringsAsFactors = FALSE)
  names(out) <- c("", make.unique(vapply(fits, function(f) f$depvar, "")))
  out
}

model_column <- function(fit, terms, effects, digits, stars, vcov, ssc) {
  v <- chosen_vcov(fit, vcov, ssc)
  at <- match(terms, fit$terms)
  show <- function(x) ifelse(is.na(x), "", formatC(x, digits = digits, format = "g", flag = "#"))
  star <- if (stars) ifelse(is.na(at), "", as.character(stats::symnum(ifelse(is.na(v$errors[at, 4L]), 1, v$errors[at, 4L]),
    cutpoints = c(0, .001, .01, .05, 1), symbols = c("***", "**", "*", "")))) else ""
  estimate <- paste0(show(v$errors[at, 1L]), star)
  error <- ifelse(is.na(at), "", paste0("(", show(v$errors[at, 2L]), ")"))
  c(rbind(estimate, error), ifelse(effects %in% names(fit$levels), "yes", "no"), v$spec,
    format(fit$numbers[["n"]], big.mark = ","), show(fit$numbers[["r2"]]), show(fit$numbers[["r2_within"]]))
}
