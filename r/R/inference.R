# What is found from the demeaned columns of a fit: scores and bread for the package sandwich, leverages, errors of predictions.

# the rows that the fit used
used_rows <- function(object) !is.nan(.Call(R_fourge_residuals, object$pointer)$fitted)
obs <- function(x) which(used_rows(x))

weights.fourge <- function(object, ...) {
  name <- object$options$weights
  if (!is.null(name)) as.numeric(.Call(R_fourge_kept, object$pointer)[[name]])[used_rows(object)]
}

sigma.fourge <- function(object, ...) sqrt(deviance.fourge(object) / df.residual.fourge(object))

# of each row in use w and e, of a generalised linear model those of its last least squares
working_rows <- function(object) {
  if (!is.null(object$glm)) return(list(w = glm_rows(object, "weight"), e = glm_rows(object, "working")))
  e <- residuals.fourge(object)
  w <- weights.fourge(object)
  list(w = if (is.null(w)) rep(1, length(e)) else w, e = e)
}
glm_rows <- function(object, what) without_dropped(.Call(R_fourge_glm_values, object$pointer, what), TRUE)

# the codes of the effects in rows of `columns`, a column an effect; NA: a level that `known` rows of `own` have not
effect_codes <- function(object, columns, known, own = columns) {
  codes <- lapply(names(object$levels), function(effect) {
    keys <- keys_of(effect, columns)
    match(keys, unique(keys_of(effect, own)[known]))
  })
  matrix(unlist(codes), ncol = length(codes))
}

# the keys of an effect, a column or columns joined by ^
keys_of <- function(effect, columns) {
  names <- if (effect %in% names(columns)) effect else all.vars(str2lang(effect))
  parts <- lapply(columns[names], as.character)
  if (length(parts) == 1L) parts[[1L]] else do.call(paste, c(unname(parts), sep = "\r"))
}

no_slopes <- function(object, what) {
  if (any(c("[", "[[") %in% all.names(formula_parts(object$formula)$effects))) {
    stop(what, ": of fits with varying slopes there is none", call. = FALSE)
  }
}

# The fit's regressors with the effects taken out, w and e of its rows.
within_fit <- function(object, what) {
  if (!is.null(object$iv) || !is.null(object$first_stage)) stop(what, ": of fits in two stages there is none", call. = FALSE)
  no_slopes(object, what)
  rows <- working_rows(object)
  used <- used_rows(object)
  kept <- .Call(R_fourge_kept, object$pointer)
  x <- .Call(R_fourge_regressors, object$pointer, kept)$values[used, , drop = FALSE]
  codes <- if (length(object$levels)) effect_codes(object, kept, used)[used, , drop = FALSE]
  if (!is.null(codes) && ncol(x)) x <- demean(x, codes, rows$w)
  attributes(x)[c("audit", "method")] <- NULL
  list(x = x, w = rows$w, e = rows$e, codes = codes)
}

estfun.fourge <- function(x, ...) {
  m <- within_fit(x, "estfun")
  out <- m$x * (m$w * m$e)
  colnames(out) <- x$terms
  out
}

bread.fourge <- function(x, ...) {
  m <- within_fit(x, "bread")
  out <- nrow(m$x) * solve(crossprod(m$x, m$x * m$w))
  dimnames(out) <- list(x$terms, x$terms)
  out
}

hatvalues.fourge <- function(model, ...) {
  m <- within_fit(model, "hatvalues")
  share <- if (ncol(m$x)) rowSums(m$x %*% solve(crossprod(m$x, m$x * m$w)) * m$x) else 0
  effects <- if (is.null(m$codes)) 0 else cell_variances(m$codes, m$w, m$codes, NULL, "hatvalues")$q
  m$w * (share + effects)
}

# ---- d'(D'WD)^- d of rows d of effects ----

# the most solves that one call makes
MOST_CELLS <- 2000L

# For each row d of `new`: q = d'(D'WD)^- d, and the part d'(D'WD)^- D'W x of x that the effects have there; NaN where D does not
# identify it.
cell_variances <- function(codes, w, new, x, what) {
  key <- do.call(paste, as.data.frame(new))
  first <- which(!duplicated(key) & stats::complete.cases(new))
  cells <- new[first, , drop = FALSE]
  if (ncol(codes) > 1L && length(first) > MOST_CELLS) {
    stop(what, ": the rows have ", length(first), " combinations of effects, each of which takes a solve; at most ", MOST_CELLS,
         " are taken", call. = FALSE)
  }
  if (is.null(x)) x <- matrix(0, length(w), 0L)
  found <- if (!length(first)) list(q = numeric(), x = x[0L, , drop = FALSE])
  else if (ncol(codes) == 1L) one_effect(codes[, 1L], w, cells[, 1L], x) else several_effects(codes, w, cells, x)
  at <- match(key, key[first])
  found$q <- c(found$q, NaN)
  found$x <- rbind(found$x, matrix(NaN, 1L, ncol(found$x)))
  at[is.na(at) | !stats::complete.cases(new)] <- length(found$q)
  list(q = found$q[at], x = found$x[at, , drop = FALSE])
}

# means within levels
one_effect <- function(code, w, cells, x) {
  total <- rowsum(w, code)
  at <- match(as.character(cells), rownames(total))
  list(q = 1 / total[at], x = rowsum(w * x, code)[at, , drop = FALSE] / total[at])
}

# N = [d_1 ..]' are m rows more, of weight g.  What the effects leave of their unit vectors is r in these rows and s in those of
# the fit: with A = D'WD and B = A + g N'N
#
#     r = I - g N B^-1 N' = (I + g Q)^-1,   Q = N A^- N',      s = -g D B^-1 N',   D A^- N' = -s r^-1 / g
#
# A row that A does not identify meets the null space of r.
several_effects <- function(codes, w, cells, x) {
  m <- nrow(cells)
  n <- nrow(codes)
  g <- sum(w) / sum(apply(codes, 2L, function(c) length(unique(c))))
  all <- rbind(codes, cells)
  weights <- c(w, rep(g, m))
  r <- matrix(0, m, m)
  sx <- matrix(0, m, ncol(x))
  wide <- max(1, min(64, 2^25 %/% (n + m))) # columns at a time, 256 MB at most
  for (from in seq(1, m, wide)) {
    block <- from:min(from + wide - 1, m)
    unit <- matrix(0, n + m, length(block))
    unit[cbind(n + block, seq_along(block))] <- 1
    left <- demean(unit, all, weights)
    r[, block] <- left[n + seq_len(m), ]
    sx[block, ] <- crossprod(left[seq_len(n), , drop = FALSE], w * x)
  }
  inverse <- inverse_where_known((r + t(r)) / 2)
  q <- (diag(inverse$matrix) - 1) / g
  parts <- -inverse$matrix %*% sx / g
  q[inverse$unknown] <- NaN
  parts[inverse$unknown, ] <- NaN
  list(q = q, x = parts)
}

# The inverse of a symmetric matrix with eigenvalues from 0 to 1: by its Cholesky factor, and on the others' space where some are 0,
# with the unit vectors that lie outside of it.
inverse_where_known <- function(r) {
  root <- tryCatch(chol(r), error = function(error) NULL)
  if (!is.null(root) && min(diag(root))^2 > 1e-6) return(list(matrix = chol2inv(root), unknown = FALSE))
  e <- eigen(r, symmetric = TRUE)
  null <- e$values < 1e-7
  v <- e$vectors[, !null, drop = FALSE]
  list(matrix = v %*% (t(v) / e$values[!null]), unknown = rowSums(e$vectors[, null, drop = FALSE]^2) > 1e-6)
}

# The variance of x'b + d'a under errors that are independent and of one variance s2 / w: with z = x less the effects' part of it
#
#     s2 d'(D'WD)^- d + z'V z
effect_errors <- function(object, newdata, v) {
  if (v$type != "iid") {
    stop("predict: errors of predictions with fixed effects are those of iid errors; vcov = \"iid\" asks for them", call. = FALSE)
  }
  if (!is.null(object$first_stage)) stop("predict: fits of did2s() have no errors of predictions", call. = FALSE)
  no_slopes(object, "predict, errors of predictions")
  used <- used_rows(object)
  kept <- .Call(R_fourge_kept, object$pointer)
  own <- regressors(object, NULL)[used, , drop = FALSE]
  new <- if (is.null(newdata)) kept else columns_of(newdata, object$columns)
  x <- if (is.null(newdata)) regressors(object, NULL) else new_values(R_fourge_regressors, object$pointer, object, newdata)
  codes <- effect_codes(object, kept, used)[used, , drop = FALSE]
  cells <- effect_codes(object, new, used, kept)
  if (is.null(newdata)) cells[!used, ] <- NA
  found <- cell_variances(codes, working_rows(object)$w, cells, own, "predict")
  z <- x - found$x
  n <- object$numbers[["n"]]
  s2 <- object$numbers[["rss"]] / if (startsWith(v$ssc, "adj=true")) n - v$k else n - 1
  s2 * found$q + rowSums((z %*% v$matrix) * z)
}
