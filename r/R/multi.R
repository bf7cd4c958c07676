# The fits of several models: which there are, the choice of some, and what is read from all.

# sample, fixef, lhs, rhs and iv of each fit, as texts; "" of what it has not
parts_of_models <- function(x) {
  words <- function(e) if (is.null(e)) "" else paste(trimws(deparse(e, width.cutoff = 500L)), collapse = " ")
  rows <- lapply(unclass(x), function(f) {
    p <- formula_parts(f$formula)
    sample <- if (length(f$sample) == 2L) f$sample[2L] else if (length(f$sample)) "Full sample" else ""
    effects <- if (is.null(p$effects)) "1" else words(p$effects)
    data.frame(sample = sample, fixef = effects, lhs = words(p$left), rhs = words(p$linear), iv = words(p$instruments))
  })
  do.call(rbind, unname(rows))
}

# the parts that differ between the models
models <- function(x) {
  if (!inherits(x, "fourge_multi")) stop("models: expected the fits of several models", call. = FALSE)
  parts <- parts_of_models(x)
  out <- cbind(id = seq_along(x), parts[vapply(parts, function(p) length(unique(p)) > 1L, NA)])
  rownames(out) <- NULL
  out
}
n_models <- function(x) if (inherits(x, "fourge_multi")) length(x) else 1L

# The places among `values`, in the order of their first appearance, that numbers, logicals or regular expressions choose.
chosen_parts <- function(values, choice, name) {
  known <- unique(values)
  if (is.character(choice)) {
    at <- unlist(lapply(choice, function(p) if (startsWith(p, "!")) which(!grepl(substring(p, 2L), known, perl = TRUE)) else
      grep(p, known, perl = TRUE)))
  } else {
    at <- tryCatch(seq_along(known)[choice], error = function(e) NA)
  }
  if (!length(at) || anyNA(at)) {
    stop(name, ": there is no such one; there are ", paste0(seq_along(known), " (", known, ")", collapse = ", "), call. = FALSE)
  }
  known[unique(at)]
}

`[.fourge_multi` <- function(x, i, sample, lhs, rhs, fixef, iv, drop = FALSE) {
  asked <- list()
  if (!missing(sample)) asked$sample <- sample
  if (!missing(lhs)) asked$lhs <- lhs
  if (!missing(rhs)) asked$rhs <- rhs
  if (!missing(fixef)) asked$fixef <- fixef
  if (!missing(iv)) asked$iv <- iv
  if (length(asked) && !missing(i)) stop("[: numbers of models, or their parts by name", call. = FALSE)
  if (length(asked)) {
    parts <- parts_of_models(x)
    chosen <- Map(function(choice, name) chosen_parts(parts[[name]], choice, name), asked, names(asked))
    keep <- Reduce(`&`, Map(function(values, name) parts[[name]] %in% values, chosen, names(chosen)))
    rank <- Map(function(values, name) match(parts[[name]], values)[keep], chosen, names(chosen))
    i <- which(keep)[do.call(order, unname(rank))]
  }
  out <- structure(if (missing(i) && !length(asked)) unclass(x) else unclass(x)[i], class = "fourge_multi")
  if (drop && length(out) == 1L) out[[1L]] else out
}

print.fourge_multi <- function(x, ...) {
  print(etable(x, ...))
  invisible(x)
}
summary.fourge_multi <- function(object, ...) lapply(unclass(object), summary, ...)

# what differs between the models beside a column for each term, NA where a model has it not
of_all <- function(x, values) {
  found <- lapply(unclass(x), values)
  terms <- unique(unlist(lapply(found, names)))
  columns <- lapply(stats::setNames(terms, terms), function(t) unname(vapply(found, function(v) v[t], 0)))
  cbind(models(x), as.data.frame(columns, optional = TRUE))
}
coef.fourge_multi <- function(object, ...) of_all(object, coef)
nobs.fourge_multi <- function(object, ...) vapply(unclass(object), nobs, 0)

collinearity <- function(x) {
  if (!inherits(x, "fourge")) stop("collinearity: expected a fit of feols()", call. = FALSE)
  structure(list(dropped = x$dropped), class = "fourge_collinearity")
}
print.fourge_collinearity <- function(x, ...) {
  cat(if (length(x$dropped)) paste0("'", names(x$dropped), "' is ", x$dropped, "\n") else "No regressor was left out\n", sep = "")
  invisible(x)
}
