# Plots of coefficients with their intervals, by base graphics; what is drawn comes back as a data frame.

coefplot <- function(..., keep = NULL, drop = NULL, order = NULL, exact_match = FALSE, dict = getFourge_dict(), level = 0.95,
                     vcov = NULL, ssc = NULL, horiz = FALSE, ref.line = 0, main = "", xlab = "", ylab = "Estimate") {
  fits <- fits_of(list(...), "coefplot")
  terms <- chosen_terms(unlist(lapply(fits, function(f) f$terms)), keep, drop, order, exact_match)
  if (!length(terms)) stop("coefplot: no term is left to plot", call. = FALSE)
  points <- points_of(fits, rep(list(stats::setNames(seq_along(terms), terms)), length(fits)), level, vcov, ssc)
  named <- unname(ifelse(terms %in% names(dict), dict[terms], terms))
  draw(points, seq_along(terms), named, numeric(), horiz, ref.line, main, xlab, ylab)
}

iplot <- function(..., dict = getFourge_dict(), level = 0.95, vcov = NULL, ssc = NULL, horiz = FALSE, ref.line = 0, main = "",
                  xlab = "", ylab = "Estimate") {
  fits <- fits_of(list(...), "iplot")
  levels <- lapply(fits, levels_of_terms)
  if (!any(lengths(levels))) stop("iplot: the fits have no coefficients of i() or sunab()", call. = FALSE)
  references <- unique(unlist(lapply(fits, references_of)))
  words <- unique(c(unlist(levels, use.names = FALSE), references))
  numbers <- suppressWarnings(as.numeric(words))
  numeric <- !anyNA(numbers)
  where <- stats::setNames(if (numeric) numbers else seq_along(words), words)
  points <- points_of(fits, lapply(levels, function(l) stats::setNames(where[l], names(l))), level, vcov, ssc)
  named <- if (numeric) words[words %in% names(dict)] else words
  ticks <- if (length(named)) where[named] else pretty(where)
  labels <- if (length(named)) ifelse(named %in% names(dict), dict[named], named) else ticks
  draw(points, ticks, labels, where[references], horiz, ref.line, main, xlab, ylab)
}

# the levels of "year::1981" and "year::1981:x", with the terms as names
levels_of_terms <- function(fit) {
  pattern <- "^[^:]+::([^:]+)(:.*)?$"
  terms <- grep(pattern, fit$terms, value = TRUE, perl = TRUE)
  stats::setNames(sub(pattern, "\\1", terms, perl = TRUE), terms)
}

# what i(f, ref = ) names, and the periods that have no coefficient
references_of <- function(fit) {
  found <- character()
  visit <- function(e) {
    if (!is.call(e)) return(NULL)
    if (identical(e[[1L]], as.name("i")) && !is.null(e$ref)) found <<- c(found, as.character(eval(e$ref, baseenv())))
    for (part in as.list(e)[-1L]) visit(part)
  }
  visit(fit$formula)
  events <- fit$events$time[fit$events$coefficient == 0L]
  unique(c(found, format(events, digits = 15L, trim = TRUE)[seq_along(events)]))
}

points_of <- function(fits, places, level, vcov, ssc) {
  rows <- Map(function(k, fit, place) {
    at <- match(names(place), fit$terms)
    place <- place[!is.na(at)]
    at <- at[!is.na(at)]
    interval <- confint(fit, level = level, vcov = vcov, ssc = ssc)[at, , drop = FALSE]
    data.frame(model = rep(k, length(at)), term = fit$terms[at], x = unname(place) + 0.12 * (k - (length(fits) + 1) / 2),
               estimate = unname(coef(fit)[at]), conf.low = unname(interval[, 1L]), conf.high = unname(interval[, 2L]))
  }, seq_along(fits), fits, places)
  do.call(rbind, rows)
}

draw <- function(points, ticks, labels, references, horiz, ref.line, main, xlab, ylab) {
  along <- range(points$x, ticks, references) + c(-0.5, 0.5)
  across <- range(points$conf.low, points$conf.high, points$estimate, ref.line, finite = TRUE)
  turned <- function(x, y) if (horiz) list(y, x) else list(x, y)
  limits <- turned(along, across)
  if (horiz) limits[[2L]] <- rev(limits[[2L]])
  graphics::plot.default(NA, NA, xlim = limits[[1L]], ylim = limits[[2L]], main = main, xlab = if (horiz) ylab else xlab,
                         ylab = if (horiz) xlab else ylab, xaxt = if (horiz) "s" else "n", yaxt = if (horiz) "n" else "s")
  graphics::axis(if (horiz) 2L else 1L, at = ticks, labels = labels, las = if (horiz) 1L else 0L)
  if (horiz) graphics::abline(v = ref.line, lty = 2L, col = "grey50") else graphics::abline(h = ref.line, lty = 2L, col = "grey50")
  from <- turned(points$x, points$conf.low)
  to <- turned(points$x, points$conf.high)
  graphics::segments(from[[1L]], from[[2L]], to[[1L]], to[[2L]], col = points$model)
  at <- turned(points$x, points$estimate)
  graphics::points(at[[1L]], at[[2L]], pch = c(16L, 15L, 17L, 18L, 25L)[(points$model - 1L) %% 5L + 1L], col = points$model)
  if (length(references)) {
    at <- turned(references, rep(0, length(references)))
    graphics::points(at[[1L]], at[[2L]], pch = 4L, col = "grey50")
  }
  models <- unique(points$model)
  if (length(models) > 1L) graphics::legend("topright", legend = paste0("(", models, ")"), col = models, lty = 1L, bty = "n")
  invisible(points)
}
