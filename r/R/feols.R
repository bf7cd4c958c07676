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

# the data of a call, or those that are set
given_data <- function(data) if (missing(data)) setting("estimation")$data else data

feols <- function(fml, data, vcov = NULL, weights = NULL, offset = NULL, subset = NULL, split = NULL, fsplit = NULL,
                  cluster = NULL, panel.id = NULL, ssc = NULL, fixef.rm = c("singleton", "none"), threads = NULL, time_limit = 0,
                  ...) {
  given <- list(vcov = vcov, cluster = cluster, weights = weights, subset = subset, split = split, fsplit = fsplit,
                panel.id = panel.id, ssc = ssc, fixef.rm = if (!missing(fixef.rm)) match.arg(fixef.rm))
  fit(match.call(), fml, given_data(data), given, list(...), threads, time_limit, offset,
      parent.frame())
}

feglm <- function(fml, data, family = c("poisson", "logit", "probit", "gaussian", "gamma", "negbin"), vcov = NULL, weights = NULL,
                  offset = NULL, subset = NULL, split = NULL, fsplit = NULL, cluster = NULL, panel.id = NULL, ssc = NULL,
                  fixef.rm = c("singleton", "none"), threads = NULL, time_limit = 0, ...) {
  given <- list(vcov = vcov, cluster = cluster, weights = weights, subset = subset, split = split, fsplit = fsplit,
                panel.id = panel.id, ssc = ssc, fixef.rm = if (!missing(fixef.rm)) match.arg(fixef.rm))
  more <- list(family = match.arg(family), offset = expression_text(offset), ...)
  fit(match.call(), fml, given_data(data), given, more, threads, time_limit, NULL,
      parent.frame())
}

fepois <- function(fml, data, vcov = NULL, ...) {
  with_call(feglm(without_macros(fml, given_data(data), parent.frame()), data, "poisson", vcov, ...), match.call())
}

fenegbin <- function(fml, data, vcov = NULL, ...) {
  with_call(feglm(without_macros(fml, given_data(data), parent.frame()), data, "negbin", vcov, ...), match.call())
}

feols.fit <- function(y, X, fixef_df = NULL, weights = NULL, offset = NULL, ...) {
  y <- named_columns(y, "y")
  X <- named_columns(X, "x")
  data <- c(y, X, if (!is.null(fixef_df)) named_columns(fixef_df, "fixef"))
  if (!is.null(weights)) data$.weights <- weights
  if (!is.null(offset)) data$.offset <- offset
  if (length(unique(lengths(data))) > 1L) stop("feols.fit: y, X and the rest have different numbers of rows", call. = FALSE)
  if (anyDuplicated(names(data))) {
    stop("feols.fit: two columns are called '", names(data)[duplicated(names(data))][1L], "'", call. = FALSE)
  }
  columns <- lapply(names(data), as.name)[seq_len(length(data) - (!is.null(weights)) - !is.null(offset))]
  left <- columns[seq_along(y)]
  right <- summed(c(0, columns[length(y) + seq_along(X)]))
  effects <- columns[-seq_len(length(y) + length(X))]
  if (length(effects)) right <- call("|", right, summed(effects))
  fml <- stats::as.formula(call("~", if (length(left) == 1L) left[[1L]] else as.call(c(quote(c), left)), right), parent.frame())
  out <- feols(fml, as.data.frame(data, optional = TRUE), weights = if (!is.null(weights)) ".weights",
               offset = if (!is.null(offset)) ~ .offset, ...)
  with_call(out, match.call())
}

# a vector, matrix or data frame as a list of columns with names
named_columns <- function(x, word) {
  if (!is.list(x)) {
    x <- as.matrix(x)
    names <- colnames(x)
    x <- lapply(seq_len(ncol(x)), function(j) as.vector(x[, j]))
    names(x) <- names
  }
  if (is.null(names(x))) names(x) <- if (length(x) == 1L) word else paste0(word, seq_along(x))
  as.list(x)
}

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

# of R, which are not the library's options
arguments <- c("vcov", "cluster", "weights", "subset", "split", "fsplit", "panel.id", "ssc", "fixef.rm")

# what fixest calls options of the library
fixest_names <- c(fixef.tol = "tol", fixef.iter = "max_iter", collin.tol = "collin_tol", glm.tol = "glm_tol", glm.iter = "glm_iter",
                  nthreads = "threads")

# One fit, or the fits of the models that formula and samples make: `given` are R's arguments, `more` the library's by name.
fit <- function(call, fml, data, given, more, threads, time_limit, offset, env) {
  usual <- setting("estimation")
  own <- intersect(names(usual), arguments)
  own <- own[vapply(own, function(name) is.null(given[[name]]), NA)]
  given[own] <- usual[own]
  others <- setdiff(names(usual), c(arguments, "data", names(more)))
  more[others] <- usual[others]
  translated <- names(more) %in% names(fixest_names)
  names(more)[translated] <- fixest_names[names(more)[translated]]
  if (!is.null(more$threads)) {
    if (is.null(threads)) threads <- more$threads
    more$threads <- NULL
  }
  if (is.null(given$panel.id)) given$panel.id <- attr(data, "panel.id")
  fml <- without_macros(fml, data, env)
  chosen <- split_choice(given)
  given[c("split", "fsplit")] <- list(chosen$split, chosen$fsplit)
  offset <- expression_text(offset)
  read <- if (is.null(offset)) fml else less_offset(fml, offset)
  text <- formula_text(read)
  options <- options_of(given, more, effects_of(fml))
  several <- length(.Call(R_fourge_models, text)) > 1L || !is.null(options$fsplit) ||
    (!is.null(options$split) && is.null(options$split_value))
  if (is.null(options$keep_effects)) options$keep_effects <- !several  # models that keep theirs share nothing
  names <- unique(.Call(R_fourge_columns, text, options))
  if (is.null(threads)) threads <- getFourge_nthreads()
  resources <- list(as.integer(threads), as.double(time_limit))
  result <- .Call(R_fourge_fit, text, columns_of(data, names), options, several, resources[[1L]], resources[[2L]])
  tell(result$warnings)
  asked <- if (inherits(fml, "formula")) fml else stats::as.formula(fml, env)
  fits <- lapply(result$fits, function(f) {
    f[c("call", "columns", "options", "resources", "asked")] <- list(call, names, options, resources, asked)
    f$formula <- if (!several && inherits(fml, "formula")) fml else stats::as.formula(f$text, environment(asked))
    if (!is.null(offset)) f <- with_offset(f, offset)
    f$again <- new.env(parent = emptyenv())
    structure(f, class = "fourge")
  })
  if (!several) return(fits[[1L]])
  if (!is.null(chosen$keep)) fits <- fits[chosen$keep(lapply(fits, function(f) f$sample))]
  structure(fits, names = vapply(fits, model_name, ""), class = "fourge_multi")
}

model_name <- function(f) {
  text <- if (is.null(f$offset)) f$text else formula_text(f$formula)
  if (length(f$sample) < 2L) text else paste0(text, " [", f$sample[1L], " = ", f$sample[2L], "]")
}

# ---- an offset o of least squares: y - o is what is regressed ----

less_offset <- function(fml, offset) {
  parts <- formula_parts(if (is.character(fml)) stats::as.formula(fml) else fml)
  less <- function(y) call("-", y, call("(", str2lang(offset)))
  several <- is.call(parts$left) && identical(parts$left[[1L]], as.name("c"))
  parts$left <- if (several) as.call(c(quote(c), lapply(as.list(parts$left)[-1L], less))) else less(parts$left)
  stats::as.formula(joined(parts), environment(fml))
}

# the fit as one of y
with_offset <- function(f, offset) {
  parts <- formula_parts(stats::as.formula(f$text))
  parts$left <- parts$left[[2L]]
  f$formula <- stats::as.formula(joined(parts), environment(f$formula))
  f$depvar <- paste(deparse(parts$left, backtick = FALSE), collapse = "")
  f$offset <- offset
  f
}

offset_values <- function(object, columns) {
  if (is.null(object$offset)) return(0)
  as.numeric(eval(str2lang(object$offset), columns, environment(object$asked)))
}

# ---- samples ----

# `~ f %keep% c("a", "b")` -> the column, and which of the fits' samples stay
split_choice <- function(given) {
  out <- list(split = given$split, fsplit = given$fsplit)
  for (name in names(out)) {
    e <- if (inherits(out[[name]], "formula")) out[[name]][[2L]]
    if (!is.call(e) || !as.character(e[[1L]])[1L] %in% c("%keep%", "%drop%")) next
    env <- environment(out[[name]])
    values <- as.character(eval(e[[3L]], env))
    out$keep <- sample_choice(name, values, identical(e[[1L]], as.name("%drop%")))
    out[[name]] <- stats::as.formula(call("~", e[[2L]]), env)
  }
  out
}

# Of samples, c(column, level), those whose level is a value, or begins with it, or matches "@pattern"; or the others.
sample_choice <- function(name, values, drops) {
  force(list(name, values, drops))
  function(samples) {
    level <- vapply(samples, function(s) if (length(s) == 2L) s[2L] else NA_character_, "")
    chosen <- lapply(values, function(v) {
      hit <- if (v %in% level) level == v
      else if (startsWith(v, "@")) grepl(substring(v, 2L), level, perl = TRUE) else startsWith(level, v)
      if (any(hit, na.rm = TRUE)) return(hit)
      known <- paste(unique(level[!is.na(level)]), collapse = ", ")
      stop(name, ": no level is or begins with '", v, "'; there are ", known, call. = FALSE)
    })
    is.na(level) | (Reduce(`|`, chosen) != drops)
  }
}

options_of <- function(given, options, effects) {
  vcov <- given$vcov
  if (!is.null(given$cluster)) {
    if (!is.null(vcov) && !identical(vcov, "iid")) stop("vcov and cluster: give one of them", call. = FALSE)
    clusters <- given$cluster
    vcov <- if (inherits(clusters, "formula")) clusters else paste0("cluster=", paste(clusters, collapse = "+"))
  }
  panel <- if (!is.null(given$panel.id)) panel_names(given$panel.id)
  if (is.null(vcov)) vcov <- usual_vcov(effects, panel)
  specs <- if (is.list(vcov)) vcov else list(vcov)
  options$vcov <- vapply(specs, vcov_spec, "", effects = effects)
  for (column in c("weights", "split", "fsplit")) options[[column]] <- column_name(given[[column]], column)
  options$subset <- expression_text(given$subset)
  options$panel <- if (!is.null(panel)) paste(panel, collapse = ",")
  options$ssc <- if (is.null(given$ssc)) getFourge_ssc() else given$ssc
  options$keep_singletons <- identical(given$fixef.rm, "none")
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

# the options of this fit alone
own_options <- function(object) {
  options <- object$options
  options[c("split", "fsplit", "split_value")] <- NULL
  if (length(object$sample) == 2L) options[c("split", "split_value")] <- as.list(object$sample)
  options
}

once_more <- function(object, columns = list(), keep_effects = object$options$keep_effects) {
  key <- paste(c(keep_effects, names(columns)), collapse = "\n")
  if (is.null(object$again[[key]])) {
    options <- own_options(object)
    options$keep_effects <- keep_effects
    columns <- c(.Call(R_fourge_kept, object$pointer), columns)
    result <- .Call(R_fourge_fit, object$text, columns, options, FALSE, object$resources[[1L]], object$resources[[2L]])
    tell(result$warnings)
    assign(key, result$fits[[1L]]$pointer, object$again)
  }
  object$again[[key]]
}

demean <- function(X, f, weights = NULL, threads = getFourge_nthreads(), ...) {
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
