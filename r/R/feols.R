# The names of covariances: fixest's spellings to those of the library.
#
#   "iid", "hetero", ~ a + b, "cluster", NW(2) ~ unit + time, DK(2) ~ time, conley(100) ~ lat + lon,
#   cluster ~ a, or the library's own text, as "cluster=a+b"
vcov_spec <- function(v, effects = character()) {
  if (inherits(v, "formula")) return(vcov_formula(v))
  if (!is.character(v) || length(v) != 1L || is.na(v)) stop("vcov: expected a text or a formula", call. = FALSE)
  switch(v,
    iid = , standard = "iid",
    hetero = , white = , HC1 = , hc1 = "hc1",
    cluster = vcov_of_effects(effects, 1L),
    twoway = vcov_of_effects(effects, 2L),
    if (grepl("=", v, fixed = TRUE)) v else tolower(v))
}

vcov_of_effects <- function(effects, ways) {
  if (length(effects) < ways) stop("vcov: the formula has no ", ways, " fixed effects to cluster by", call. = FALSE)
  paste0("cluster=", paste(effects[seq_len(ways)], collapse = "+"))
}

# the names in a + b + c^d
summands <- function(e) {
  if (is.call(e) && identical(e[[1L]], as.name("+")) && length(e) == 3L) c(summands(e[[2L]]), summands(e[[3L]]))
  else gsub(" ", "", paste(deparse(e, backtick = TRUE), collapse = ""))
}

vcov_formula <- function(v) {
  names <- summands(v[[length(v)]])
  if (length(v) == 2L) return(paste0("cluster=", paste(names, collapse = "+")))
  kind <- v[[2L]]
  value <- if (is.call(kind)) vapply(as.list(kind)[-1L], function(a) format(eval(a), digits = 17), "") else character()
  kind <- tolower(as.character(if (is.call(kind)) kind[[1L]] else kind))
  switch(kind,
    cluster = paste0("cluster=", paste(names, collapse = "+")),
    nw = , neweywest = , newey_west = paste0("nw=", paste(c(names, value), collapse = ",")),
    dk = , driscollkraay = , driscoll_kraay = paste0("dk=", paste(c(names, value), collapse = ",")),
    conley = paste0("conley=", paste(c(names, value), collapse = ",")),
    paste0(kind, "=", paste(c(names, value), collapse = ",")))
}

ssc <- function(K.adj = TRUE, K.fixef = c("nonnested", "full", "none"), G.adj = TRUE, G.df = c("min", "conventional"),
                t.df = c("min", "conventional")) {
  logical <- function(x) if (isTRUE(x)) "true" else "false"
  paste0("adj=", logical(K.adj), ",fixef=", match.arg(K.fixef), ",cluster.adj=", logical(G.adj), ",cluster.df=",
         match.arg(G.df), ",t.df=", match.arg(t.df))
}

formula_text <- function(fml) {
  if (inherits(fml, "formula") || is.language(fml)) paste(trimws(deparse(fml, width.cutoff = 500L)), collapse = " ")
  else if (is.character(fml) && length(fml) == 1L) fml
  else stop("fml: expected a formula or one text", call. = FALSE)
}

# one-sided formula or text -> the name of a column
column_name <- function(x, what) {
  if (is.null(x)) return(NULL)
  name <- if (inherits(x, "formula")) all.vars(x) else x
  if (!is.character(name) || length(name) != 1L) stop(what, ": expected one column, as in ~ w or \"w\"", call. = FALSE)
  name
}

# the columns as the library reads them: text as factors in order of appearance, dates as numbers
readable <- function(column) {
  if (is.character(column)) {
    words <- unique(column)
    column <- factor(column, levels = words[!is.na(words)])
    attr(column, "unordered") <- TRUE
    column
  } else if (is.factor(column)) {
    if (nlevels(column) != length(unique(column[!is.na(column)]))) droplevels(column) else column
  } else if (inherits(column, "integer64")) {
    stop("columns of bit64 are not read; as.numeric() or as.character() first", call. = FALSE)
  } else column
}

# The columns that a fit reads, and the others but text, so that a later covariance finds its clusters; doubles are not copied.
columns_of <- function(data, names) {
  if (!is.data.frame(data)) stop("data: expected a data frame", call. = FALSE)
  known <- vapply(data, function(x) is.numeric(x) || is.logical(x) || is.factor(x), NA)
  text <- vapply(data, is.character, NA) & names(data) %in% names
  lapply(unclass(data)[known | text], readable)
}

tell <- function(warnings) for (w in warnings) warning(w, call. = FALSE)

feols <- function(fml, data, vcov = "iid", weights = NULL, subset = NULL, ssc = NULL, fixef.rm = c("singleton", "none"),
                  threads = 0L, time_limit = 0, ...) {
  fit(match.call(), fml, data, vcov, weights, subset, ssc, match.arg(fixef.rm), threads, time_limit, list(...))
}

feglm <- function(fml, data, family = c("poisson", "logit", "probit", "gaussian", "gamma", "negbin"), vcov = "iid", weights = NULL,
                  offset = NULL, subset = NULL, ssc = NULL, fixef.rm = c("singleton", "none"), threads = 0L, time_limit = 0, ...) {
  offset <- if (inherits(offset, "formula")) formula_text(offset[[2L]]) else offset
  fit(match.call(), fml, data, vcov, weights, subset, ssc, match.arg(fixef.rm), threads, time_limit,
      c(list(family = match.arg(family), offset = offset), list(...)))
}

fepois <- function(fml, data, vcov = "iid", ...) {
  out <- feglm(fml, data, "poisson", vcov, ...)
  out$call <- match.call()
  out
}

fit <- function(call, fml, data, vcov, weights, subset, ssc, fixef.rm, threads, time_limit, options) {
  text <- formula_text(fml)
  specs <- if (is.list(vcov)) vcov else list(vcov)
  effects <- effects_of(fml)
  options$vcov <- vapply(specs, vcov_spec, "", effects = effects)
  options$weights <- column_name(weights, "weights")
  options$subset <- if (inherits(subset, "formula")) formula_text(subset[[2L]]) else subset
  options$ssc <- ssc
  options$keep_singletons <- fixef.rm == "none"
  options$keep_effects <- TRUE
  options <- options[!vapply(options, is.null, NA)]
  names <- .Call(R_fourge_columns, text, options)
  result <- .Call(R_fourge_fit, text, columns_of(data, names), options, as.integer(threads), as.double(time_limit))
  tell(result$warnings)
  result$call <- call
  result$text <- text
  result$formula <- if (inherits(fml, "formula")) fml else stats::as.formula(fml)
  structure(result, class = "fourge")
}

# the fixed effects of y ~ x | a + b, for vcov = "cluster"
effects_of <- function(fml) {
  if (is.character(fml)) fml <- stats::as.formula(fml)
  e <- fml[[length(fml)]]
  parts <- list()
  while (is.call(e) && identical(e[[1L]], as.name("|"))) {
    parts <- c(list(e[[3L]]), parts)
    e <- e[[2L]]
  }
  if (!length(parts)) character() else summands(parts[[1L]])
}

demean <- function(X, f, weights = NULL, threads = 0L, ...) {
  shape <- X
  X <- as.matrix(X)
  storage.mode(X) <- "double"
  f <- if (is.data.frame(f) || is.list(f)) f else if (is.matrix(f)) lapply(seq_len(ncol(f)), function(j) f[, j]) else list(f)
  if (!length(f)) stop("f: expected at least one factor", call. = FALSE)
  codes <- vapply(f, function(x) match(x, unique(x)) - 1L, integer(length(f[[1L]])))
  codes <- matrix(codes, ncol = length(f))
  if (anyNA(unlist(lapply(f, anyNA))) || any(vapply(f, anyNA, NA))) stop("f: missing values", call. = FALSE)
  if (nrow(codes) != nrow(X)) stop("X has ", nrow(X), " rows and f ", nrow(codes), call. = FALSE)
  result <- .Call(R_fourge_demean, X, codes, if (!is.null(weights)) as.double(weights), list(...), as.integer(threads))
  tell(result$warnings)
  if (!all(result$converged)) {
    warning("columns ", paste(which(!result$converged), collapse = ", "), " did not converge", call. = FALSE)
  }
  out <- result$values
  dimnames(out) <- dimnames(X)
  attr(out, "audit") <- result$audit
  attr(out, "method") <- result$method
  if (is.data.frame(shape)) as.data.frame(out) else if (is.null(dim(shape))) drop(out) else out
}
