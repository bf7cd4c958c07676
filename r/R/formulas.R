# Formulas: macros, which are written out before the library reads them, and parts that update() changes.

# The terms that a macro stands for: texts or numbers, and what stands before them, as a list of expressions.
pieces <- function(values, before = "") {
  if (inherits(values, "formula")) return(list(values[[length(values)]]))
  if (!(is.character(values) || is.numeric(values)) || !length(values) || anyNA(values)) {
    stop("fml: a macro wants texts or numbers, and found ", if (length(values)) class(values)[1L] else "none", call. = FALSE)
  }
  lapply(paste0(before, values), str2lang)
}

# a + (b + c) as a + b + c
plus <- function(a, b) {
  nested <- is.call(b) && length(b) == 3L && identical(b[[1L]], as.name("+"))
  if (nested) call("+", plus(a, b[[2L]]), b[[3L]]) else call("+", a, b)
}
summed <- function(terms) Reduce(plus, terms)

# `.[x]` and `z.[1:3]`: a name that ends in a point, with one index
is_indexed <- function(e) is.call(e) && identical(e[[1L]], as.name("[")) && is.name(e[[2L]]) && endsWith(as.character(e[[2L]]), ".")
# `.[, x]`: arguments of the call that it stands in
is_spliced <- function(e) is_indexed(e) && length(e) == 4L && identical(e[[3L]], quote(expr = ))

indexed <- function(e, known) {
  pieces(eval(e[[length(e)]], known$env), sub("\\.$", "", as.character(e[[2L]])))
}

# ..("^x") and regex("^x"): the columns that match
matching <- function(e, known) {
  pattern <- eval(e[[2L]], known$env)
  found <- grep(pattern, known$columns, value = TRUE, perl = TRUE)
  if (!length(found)) stop("fml: no column of the data matches \"", pattern, "\"", call. = FALSE)
  lapply(found, as.name)
}
is_matching <- function(e) is.call(e) && length(e) == 2L && as.character(e[[1L]])[1L] %in% c("..", "regex")

written_out <- function(e, known) {
  if (is.name(e) && startsWith(as.character(e), "..") && !is.null(known$macros[[as.character(e)]])) {
    return(written_out(summed(pieces(known$macros[[as.character(e)]])), known))
  }
  if (!is.call(e)) return(e)
  if (is_matching(e)) return(summed(matching(e, known)))
  if (is_indexed(e)) return(summed(indexed(e, known)))
  arguments <- lapply(seq_along(e)[-1L], function(k) {
    if (identical(e[[k]], quote(expr = ))) return(list(quote(expr = )))
    if (is_spliced(e[[k]])) return(indexed(e[[k]], known))
    stats::setNames(list(written_out(e[[k]], known)), names(e)[k])
  })
  arguments <- unlist(arguments, recursive = FALSE)
  if (identical(e[[1L]], as.name("+"))) summed(arguments) else as.call(c(e[[1L]], arguments))
}

macros_of <- function(given) {
  if (length(given) && (is.null(names(given)) || !all(startsWith(names(given), "..")))) {
    stop("macros: expected names that begin with two points, as in ..controls = ~ x1 + x2", call. = FALSE)
  }
  given
}

xpd <- function(fml, ..., lhs = NULL, rhs = NULL, data = NULL) {
  columns <- if (is.data.frame(data)) names(data) else data
  known <- list(macros = with_new(setting("fml"), macros_of(list(...))), columns = columns)
  if (missing(fml)) fml <- NULL
  if (is.character(fml)) fml <- stats::as.formula(fml, parent.frame())
  env <- if (is.null(fml)) parent.frame() else environment(fml)
  known$env <- if (is.null(env)) parent.frame() else env
  one <- function(x, old) if (is.null(x)) old else if (inherits(x, "formula")) x[[length(x)]] else summed(pieces(x))
  left <- one(lhs, if (length(fml) == 3L) fml[[2L]])
  right <- one(rhs, if (is.null(fml)) 1 else fml[[length(fml)]])
  out <- if (is.null(left)) call("~", right) else call("~", left, right)
  stats::as.formula(written_out(out, known), known$env)
}

# The formula without macros.  A text that has none stays what it is.
without_macros <- function(fml, data, env) {
  text <- is.character(fml) && length(fml) == 1L
  if (!text && !inherits(fml, "formula")) return(fml)
  if (!grepl(".[", formula_text(fml), fixed = TRUE) && !grepl("..", formula_text(fml), fixed = TRUE) &&
        !grepl("regex(", formula_text(fml), fixed = TRUE)) return(fml)
  xpd(outcomes(if (text) stats::as.formula(fml, env) else fml), data = data)
}

# several outcomes of one macro are c(y1, y2), not their sum
outcomes <- function(fml) {
  left <- if (length(fml) == 3L) fml[[2L]]
  if (is.call(left) && identical(left[[1L]], as.name("~"))) fml[[2L]] <- outcomes(left)
  else if (is_indexed(left) && !is_spliced(left)) fml[[2L]] <- call("c", call("[", left[[2L]], quote(expr = ), left[[3L]]))
  fml
}

# ---- update ----

# a^b is one effect, not a power
swapped <- function(e, from, to) {
  if (!is.call(e)) return(e)
  if (identical(e[[1L]], as.name(from))) e[[1L]] <- as.name(to)
  e[-1L] <- lapply(as.list(e)[-1L], swapped, from, to)
  e
}

# list(left, linear, effects, instruments): effects and instruments ("~", endogenous, instruments) NULL where there are none
formula_parts <- function(fml) {
  bars <- bars_of(fml)
  parts <- bars$parts
  out <- list(left = NULL, linear = parts[[1L]], effects = NULL, instruments = NULL)
  if (bars$instruments) {
    out$instruments <- call("~", parts[[length(parts)]], fml[[3L]])
    fml <- fml[[2L]]
    parts <- parts[-length(parts)]
  }
  if (length(fml) == 3L) out$left <- fml[[2L]]
  if (length(parts) > 1L) out$effects <- parts[[2L]]
  if (length(parts) > 2L) out$instruments <- parts[[3L]]
  out
}

updated <- function(old, new) {
  out <- stats::update.formula(stats::as.formula(swapped(old, "^", "power_")), stats::as.formula(swapped(new, "^", "power_")))
  swapped(as.call(as.list(out)), "power_", "^")
}

# nothing is left of a part: 0, 1, -1
is_nothing <- function(e) !length(all.vars(e))

joined <- function(parts) {
  right <- parts$linear
  if (!is.null(parts$effects)) right <- call("|", right, parts$effects)
  if (is.null(parts$instruments)) return(call("~", parts$left, right))
  call("~", call("~", parts$left, call("|", right, parts$instruments[[2L]])), parts$instruments[[3L]])
}

updated_formula <- function(old, new) {
  a <- formula_parts(old)
  b <- formula_parts(new)
  main <- updated(call("~", a$left, a$linear), if (is.null(b$left)) call("~", quote(.), b$linear) else call("~", b$left, b$linear))
  a[c("left", "linear")] <- as.list(main)[-1L]
  if (!is.null(b$effects)) {
    effects <- updated(call("~", if (is.null(a$effects)) 1 else a$effects), call("~", b$effects))[[2L]]
    a["effects"] <- list(if (!is_nothing(effects)) effects)
  }
  if (is.null(b$instruments)) return(stats::as.formula(joined(a), environment(old)))
  if (is_nothing(b$instruments)) a["instruments"] <- list(NULL)
  else if (is.null(a$instruments)) a$instruments <- b$instruments
  else a$instruments <- updated(a$instruments, b$instruments)
  stats::as.formula(joined(a), environment(old))
}

update.fourge <- function(object, fml.update = NULL, ..., evaluate = TRUE) {
  call <- object$call
  if (is.null(call$fml)) {
    stop("update: the fit was made by ", deparse(call[[1L]]), "(), which has no formula of its own", call. = FALSE)
  }
  call$fml <- if (is.null(fml.update)) object$asked else updated_formula(object$asked, fml.update)
  given <- match.call(expand.dots = FALSE)$...
  all_named(given, "update: expected arguments by name, as in vcov = \"hetero\"")
  for (name in names(given)) call[[name]] <- given[[name]]
  if (evaluate) eval(call, parent.frame()) else call
}

update.fourge_multi <- function(object, fml.update = NULL, ..., evaluate = TRUE) {
  call <- match.call()
  call[[1L]] <- quote(stats::update)
  call$object <- unclass(object)[[1L]]
  eval(call, parent.frame())
}
