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

# The columns that a fit reads, and the others, so that a later covariance finds its clusters; doubles are not copied. Text that the
# fit does not read is not coded, and stays beside them.
columns_of <- function(data, names) {
  if (!is.data.frame(data)) stop("data: expected a data frame", call. = FALSE)
  known <- vapply(data, function(x) is.numeric(x) || is.logical(x) || is.factor(x), NA)
  text <- vapply(data, is.character, NA) & names(data) %in% names
  out <- lapply(unclass(data)[known | text], readable)
  attr(out, "text") <- unclass(data)[vapply(data, is.character, NA) & !text]
  out
}

tell <- function(warnings) for (w in warnings) warning(w, call. = FALSE)

feols <- function(fml, data, vcov = "iid", weights = NULL, subset = NULL, split = NULL, fsplit = NULL, cluster = NULL,
                  panel.id = NULL, ssc = NULL, fixef.rm = c("singleton", "none"), threads = 0L, time_limit = 0, ...) {
  given <- list(vcov = vcov, cluster = cluster, weights = weights, subset = subset, split = split, fsplit = fsplit,
                panel = panel.id, ssc = ssc, fixef.rm = match.arg(fixef.rm))
  fit(match.call(), fml, data, given, list(...), threads, time_limit)
}

feglm <- function(fml, data, family = c("poisson", "logit", "probit", "gaussian", "gamma", "negbin"), vcov = "iid", weights = NULL,
                  offset = NULL, subset = NULL, split = NULL, fsplit = NULL, cluster = NULL, panel.id = NULL, ssc = NULL,
                  fixef.rm = c("singleton", "none"), threads = 0L, time_limit = 0, ...) {
  given <- list(vcov = vcov, cluster = cluster, weights = weights, subset = subset, split = split, fsplit = fsplit,
                panel = panel.id, ssc = ssc, fixef.rm = match.arg(fixef.rm))
  more <- list(family = match.arg(family), offset = expression_text(offset), ...)
  fit(match.call(), fml, data, given, more, threads, time_limit)
}

fepois <- function(fml, data, vcov = "iid", ...) with_call(feglm(fml, data, "poisson", vcov, ...), match.call())

fenegbin <- function(fml, data, vcov = "iid", ...) with_call(feglm(fml, data, "negbin", vcov, ...), match.call())

did2s <- function(data, yname, first_stage, second_stage, treatment, cluster_var, weights = NULL, ...) {
  right <- function(stage) sub("^~ *", "", formula_text(stage))
  name <- function(word) if (make.names(word) == word || grepl("`", word, fixed = TRUE)) word else paste0("`", word, "`")
  formula <- paste(name(yname), "~", right(second_stage))
  stage <- paste(name(treatment), "~", right(first_stage))
  out <- feols(formula, data, paste0("cluster=", name(cluster_var)), weights, first_stage = stage, ...)
  with_call(out, match.call())
}

with_call <- function(fits, call) {
  named <- function(f) {
    f$call <- call
    f
  }
  if (inherits(fits, "fourge")) return(named(fits))
  fits[] <- lapply(fits, named)
  fits
}

# One fit, or the fits of the models that formula and samples make: `given` are R's arguments, `more` the library's by name.
fit <- function(call, fml, data, given, more, threads, time_limit) {
  text <- formula_text(fml)
  options <- options_of(given, more, effects_of(fml))
  several <- length(.Call(R_fourge_models, text)) > 1L || !is.null(options$fsplit) ||
    (!is.null(options$split) && is.null(options$split_value))
  if (is.null(options$keep_effects)) options$keep_effects <- !several  # models that keep theirs share nothing
  names <- unique(.Call(R_fourge_columns, text, options))
  resources <- list(as.integer(threads), as.double(time_limit))
  result <- .Call(R_fourge_fit, text, columns_of(data, names), options, several, resources[[1L]], resources[[2L]])
  tell(result$warnings)
  fits <- lapply(result$fits, function(f) {
    f[c("call", "columns", "options", "resources")] <- list(call, names, options, resources)
    f$formula <- if (!several && inherits(fml, "formula")) fml else stats::as.formula(f$text)
    f$again <- new.env(parent = emptyenv())
    structure(f, class = "fourge")
  })
  if (!several) return(fits[[1L]])
  structure(fits, names = vapply(fits, model_name, ""), class = "fourge_multi")
}

model_name <- function(f) if (length(f$sample) < 2L) f$text else paste0(f$text, " [", f$sample[1L], " = ", f$sample[2L], "]")

options_of <- function(given, options, effects) {
  vcov <- given$vcov
  if (!is.null(given$cluster)) {
    if (!identical(vcov, "iid")) stop("vcov and cluster: give one of them", call. = FALSE)
    clusters <- given$cluster
    vcov <- if (inherits(clusters, "formula")) clusters else paste0("cluster=", paste(clusters, collapse = "+"))
  }
  specs <- if (is.list(vcov)) vcov else list(vcov)
  options$vcov <- vapply(specs, vcov_spec, "", effects = effects)
  for (column in c("weights", "split", "fsplit")) options[[column]] <- column_name(given[[column]], column)
  options$subset <- expression_text(given$subset)
  panel <- if (inherits(given$panel, "formula")) all.vars(given$panel) else given$panel
  options$panel <- if (!is.null(panel)) paste(panel, collapse = ",")
  options$ssc <- given$ssc
  options$keep_singletons <- given$fixef.rm == "none"
  options[!vapply(options, is.null, NA)]
}

# ~ expression or its text
expression_text <- function(x) if (inherits(x, "formula")) formula_text(x[[2L]]) else x

# y ~ x | a + b | e ~ z, which R reads as (y ~ x | a + b | e) ~ z, as list(x, a + b, e); without instruments list(x, a + b)
bars_of <- function(fml) {
  if (is.character(fml)) fml <- stats::as.formula(fml)
  instruments <- length(fml) == 3L && is.call(fml[[2L]]) && identical(fml[[2L]][[1L]], as.name("~"))
  e <- if (instruments) fml[[2L]][[3L]] else fml[[length(fml)]]
  parts <- list()
  while (is.call(e) && identical(e[[1L]], as.name("|"))) {
    parts <- c(list(e[[3L]]), parts)
    e <- e[[2L]]
  }
  list(parts = c(list(e), parts), instruments = instruments)
}

# the fixed effects, for vcov = "cluster"
effects_of <- function(fml) {
  bars <- bars_of(fml)
  parts <- bars$parts[-1L]
  if (bars$instruments) parts <- parts[-length(parts)]
  if (length(parts)) summands(parts[[1L]]) else character()
}

# The fit with its effects: the same regression once more where they were not kept.
with_effects <- function(object) {
  if (isTRUE(object$options$keep_effects) || !length(object$levels)) object$pointer else once_more(object, keep_effects = TRUE)
}

# The fit with the text columns that a covariance names: the same regression once more where it has not read them.
with_columns <- function(object, spec) {
  words <- gsub("`", "", regmatches(spec, gregexpr("`[^`]*`|[[:alnum:]._]+", spec))[[1L]], fixed = TRUE)
  text <- attr(.Call(R_fourge_kept, object$pointer), "text")
  text <- text[names(text) %in% words]
  if (length(text)) once_more(object, lapply(text, readable)) else object$pointer
}

once_more <- function(object, columns = list(), keep_effects = object$options$keep_effects) {
  key <- paste(c(keep_effects, names(columns)), collapse = "\n")
  if (is.null(object$again[[key]])) {
    options <- object$options
    options$keep_effects <- keep_effects
    options[c("split", "fsplit", "split_value")] <- NULL
    if (length(object$sample) == 2L) options[c("split", "split_value")] <- as.list(object$sample)
    columns <- c(.Call(R_fourge_kept, object$pointer), columns)
    result <- .Call(R_fourge_fit, object$text, columns, options, FALSE, object$resources[[1L]], object$resources[[2L]])
    tell(result$warnings)
    assign(key, result$fits[[1L]]$pointer, object$again)
  }
  object$again[[key]]
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
