# Models side by side: estimates above their errors, effects and statistics of the fits, as Python's etable has them.
etable <- function(..., type = c("text", "md", "tex", "df"), digits = 3L, stars = FALSE, coef_fmt = "b \n (se)", keep = NULL,
                   drop = NULL, order = NULL, exact_match = FALSE, dict = getFourge_dict(), headers = NULL, fitstat = NULL,
                   show_fe = TRUE, fe_present = "x", fe_absent = "-", group = NULL, extralines = NULL, title = NULL, label = NULL,
                   notes = NULL, file = NULL, vcov = NULL, ssc = NULL, style = list()) {
  usual <- with_new(setting("etable"), style_of(style, "style"))
  for (name in setdiff(names(usual), names(match.call()))) assign(name, usual[[name]])
  type <- match.arg(type)
  fits <- fits_of(list(...), "etable")
  vcovs <- lapply(fits, chosen_vcov, vcov, ssc)
  check_format(coef_fmt)
  limits <- star_limits(stars)
  if (is.null(headers)) headers <- paste0("(", seq_along(fits), ")")
  if (length(headers) != length(fits)) stop("headers: expected ", length(fits), " names, got ", length(headers), call. = FALSE)
  if (!is.null(label) && type != "tex") stop("label: it goes with type = \"tex\"", call. = FALSE)
  named <- function(words) unname(ifelse(words %in% names(dict), dict[words], words))
  heads <- list(named(vapply(fits, function(f) f$depvar, "")), headers)
  terms <- chosen_terms(unlist(lapply(fits, function(f) f$terms)), keep, drop, order, exact_match)
  present <- function(has) lapply(fits, function(f) if (has(f)) fe_present else fe_absent)
  groups <- grouped(group, terms, exact_match)
  coefficients <- lapply(setdiff(terms, unlist(groups)), function(term) {
    cells <- Map(function(f, v) coefficient_cell(v$errors[match(term, f$terms), ], coef_fmt, digits, limits), fits, vcovs)
    list(named(term), cells)
  })
  effects <- if (show_fe) unique(unlist(lapply(fits, function(f) names(f$levels))))
  effects <- lapply(effects, function(e) list(named(e), present(function(f) e %in% names(f$levels))))
  shared <- Map(function(name, of) list(name, present(function(f) any(of %in% f$terms))), names(groups), groups)
  sections <- list(coefficients, c(unname(shared), effects, extra_rows(extralines, length(fits))),
                   c(sample_rows(fits), statistic_rows(fits, vcovs, fitstat, digits)))
  notes <- c(notes, table_notes(fits, vcovs, limits))
  writer <- switch(type, text = table_text, md = table_md, tex = table_tex, df = table_frame)
  out <- writer(heads, sections[lengths(sections) > 0L], notes)
  if (type == "df") {
    if (!is.null(file) || !is.null(title)) stop("etable: file and title go with the types that are text", call. = FALSE)
    return(out)
  }
  out <- if (type == "tex") floating(out, title, label) else paste(c(title, out), collapse = "\n")
  if (!is.null(file)) writeLines(enc2utf8(out), file, useBytes = TRUE)
  structure(out, class = "fourge_text")
}

# arguments of etable() by name
style_of <- function(given, what) {
  if (!is.list(given)) stop(what, ": expected a list of arguments of etable() by name", call. = FALSE)
  all_named(given, paste0(what, ": expected arguments of etable() by name, as in digits = 2"))
  unknown <- setdiff(names(given), setdiff(names(formals(etable)), c("...", "style")))
  if (length(unknown)) stop(what, ": etable() has no argument '", unknown[1L], "'", call. = FALSE)
  given
}

# list(name = the terms that its patterns match)
grouped <- function(group, terms, exact_match) {
  all_named(group, "group: expected patterns with names, as in list(Controls = c(\"x1\", \"x2\"))")
  lapply(group, function(patterns) chosen_terms(terms, patterns, NULL, NULL, exact_match))
}

extra_rows <- function(extralines, n) {
  all_named(extralines, "extralines: expected rows with names, as in list(Controls = c(\"yes\", \"no\"))")
  for (name in names(extralines)) {
    if (length(extralines[[name]]) != n) {
      stop("extralines: expected ", n, " cells of '", name, "', got ", length(extralines[[name]]), call. = FALSE)
    }
  }
  unname(Map(function(name, cells) list(name, lapply(cells, as.character)), names(extralines), extralines))
}

# with a title or a label the tabular floats
floating <- function(tabular, title, label) {
  if (is.null(title) && is.null(label)) return(tabular)
  caption <- if (!is.null(title)) paste0("\\caption{", tex_safe(title), "}")
  mark <- if (!is.null(label)) paste0("\\label{", label, "}")
  paste(c("\\begin{table}[htbp]", "\\centering", caption, mark, tabular, "\\end{table}"), collapse = "\n")
}

print.fourge_text <- function(x, ...) {
  cat(x, "\n", sep = "")
  invisible(x)
}

# fits, lists of fits and what a formula of several models gave, as one list
fits_of <- function(given, what) {
  flat <- flattened(given)
  if (!length(flat) || !all(vapply(flat, inherits, NA, "fourge"))) stop(what, ": expected fits of feols()", call. = FALSE)
  flat
}
flattened <- function(x) {
  if (inherits(x, "fourge") || !is.list(x) || (is.object(x) && !inherits(x, "fourge_multi"))) return(list(x))
  unlist(lapply(unname(unclass(x)), flattened), recursive = FALSE)
}

# The terms that stay, in the order of `keep` where it is given, then of `order`: regular expressions, those after ! for the terms
# that do not match; or names.
chosen_terms <- function(terms, keep, drop, order, exact_match) {
  match_one <- function(pattern, term) {
    if (exact_match) return(term == pattern)
    pattern <- sub("^(!?)%", "\\1", pattern)
    if (startsWith(pattern, "!")) !grepl(substring(pattern, 2L), term, perl = TRUE) else grepl(pattern, term, perl = TRUE)
  }
  matches <- function(patterns, term) Reduce(`|`, lapply(patterns, match_one, term), logical(length(term)))
  first <- function(patterns, terms) unlist(lapply(patterns, function(p) terms[matches(p, terms)]))
  if (length(keep)) terms <- first(keep, terms)
  terms <- unique(c(first(order, terms), terms))
  terms[!matches(drop, terms)]
}

tokens <- c(b = 1L, se = 2L, t = 3L, p = 4L, ci_l = 5L, ci_u = 6L)

check_format <- function(coef_fmt) {
  words <- regmatches(coef_fmt, gregexpr("[a-z_]+", coef_fmt))[[1L]]
  unknown <- setdiff(words, names(tokens))
  if (length(unknown)) stop("coef_fmt: '", unknown[1L], "' is none of ", paste(names(tokens), collapse = ", "), call. = FALSE)
}

# p-values of three stars, two and one; NULL: none
star_limits <- function(stars) {
  if (is.logical(stars) && length(stars) == 1L && !is.na(stars)) return(if (stars) c(0.001, 0.01, 0.05))
  if (!is.numeric(stars) || length(stars) != 3L || anyNA(stars)) {
    stop("stars: expected TRUE, FALSE or three limits of p-values", call. = FALSE)
  }
  stars
}

# The lines of one coefficient: the tokens of `coef_fmt` are replaced by numbers.
coefficient_cell <- function(row, coef_fmt, digits, limits) {
  if (all(is.na(row))) return(character())
  below <- limits[!is.na(row[4L]) & row[4L] < limits]
  mark <- if (length(below)) strrep("*", length(below)) else ""
  number <- function(token) paste0(decimal(row[tokens[token]], digits), if (token == "b") mark)
  lines <- trimws(strsplit(coef_fmt, "\n", fixed = TRUE)[[1L]])
  at <- gregexpr("\\b(ci_l|ci_u|se|b|t|p)\\b", lines, perl = TRUE)
  regmatches(lines, at) <- lapply(regmatches(lines, at), function(found) vapply(found, number, ""))
  lines
}

decimal <- function(x, digits) ifelse(is.na(x), "NA", sprintf("%.*f", as.integer(digits), x))

sample_rows <- function(fits) {
  samples <- lapply(fits, function(f) f$sample)
  columns <- unique(unlist(lapply(samples, function(s) s[1L])))
  lapply(columns, function(column) {
    list(paste0("Sample: ", column), lapply(samples, function(s) if (length(s) == 2L && s[1L] == column) s[2L] else "all"))
  })
}

# the least F of the first stages, under the covariance shown, or the fit's first
least_first_stage <- function(fit, v) {
  if (is.null(fit$iv)) return(NaN)
  t <- tests_of(fit, v)
  min(if (is.null(t)) fit$iv$tests[[1L]]$f else t$f)
}

statistic_rows <- function(fits, vcovs, fitstat, digits) {
  some <- function(what) any(vapply(fits, what, NA))
  least_squares <- some(function(f) is.null(f$glm))
  usual <- c("n", "vcov", if (least_squares) "r2", if (least_squares && some(function(f) length(f$levels) > 0L)) "wr2",
             if (some(function(f) !is.null(f$iv))) "ivf", if (some(function(f) !is.null(f$glm))) "pr2")
  type <- if (is.null(fitstat)) usual else type_names(fitstat, c("vcov", names(statistics)))
  lapply(type, function(name) {
    label <- if (name == "vcov") "S.E. type" else statistics[[name]][[1L]]
    list(label, Map(function(f, v) if (name == "vcov") vcov_words(v) else statistic_cell(f, v, name, digits), fits, vcovs))
  })
}

vcov_words <- function(v) {
  words <- if (startsWith(v$spec, "cluster=")) sub("cluster=", "by: ", v$spec, fixed = TRUE) else v$spec
  if (v$projected) paste0(words, " \u2020") else words
}

statistic_cell <- function(fit, v, name, digits) {
  value <- if (name == "ivf") least_first_stage(fit, v)
  else if (name %in% instrument_tests && is.null(tests_of(fit, v)) && name != "cd") NaN
  else statistics[[name]][[2L]](fit, v)
  if (is.list(value)) value <- value$stat
  if (is.null(value) || is.na(value)) return("-")
  if (name %in% c("n", "df.residual")) sprintf("%.0f", value) else decimal(value, digits)
}

# what is to be known of standard errors beside their formula, in lines
remarks <- function(v, n) {
  out <- if (v$projected) {
    paste("\u2020 a variance was not positive: that coefficient has no standard error (NA), the others come from the matrix",
          "with its negative eigenvalues set to 0")
  }
  if (v$k_naive %in% c(0, v$k)) return(out)
  ratio <- if (startsWith(v$ssc, "adj=true") && n > max(v$k, v$k_naive)) {
    paste0(", with ", sprintf("%.6g", sqrt((n - v$k) / (n - v$k_naive))), " times these errors")
  }
  c(out, sprintf("K counts %.0f independent parameters; fixest and pyfixest count %.0f%s (dof=\"naive\")", v$k, v$k_naive,
                 if (is.null(ratio)) "" else ratio))
}

table_notes <- function(fits, vcovs, limits) {
  number <- paste0("(", seq_along(fits), ")")
  marks <- if (length(limits)) {
    shown <- paste(rev(c("***", "**", "*")), "p <", sprintf("%g", rev(limits)))
    paste("Significance levels:", paste(shown, collapse = ", "))
  }
  known <- Map(function(i, f, v) {
    lines <- remarks(v, f$numbers[["n"]])
    if (length(lines)) paste0(i, ": ", lines)
  }, number, fits, vcovs)
  marked <- number[!vapply(fits, function(f) f$converged, NA)]
  c(marks, unlist(known, use.names = FALSE), if (length(marked)) paste("Not converged:", paste(marked, collapse = ", ")))
}

# ---- writers: heads (dependent variables, numbers), sections of rows list(label, lines of each fit), notes ----

# the rows of a section as vectors of cells, one a line of text
lines_of <- function(section) {
  unlist(lapply(section, function(row) {
    lapply(seq_len(max(1L, lengths(row[[2L]]))), function(k) {
      c(if (k == 1L) row[[1L]] else "", vapply(row[[2L]], function(cell) if (k <= length(cell)) cell[k] else "", ""))
    })
  }), recursive = FALSE)
}

table_text <- function(heads, sections, notes) {
  blocks <- c(list(lapply(heads, function(h) c("", h))), lapply(sections, lines_of))
  cells <- do.call(rbind, unlist(blocks, recursive = FALSE))
  widths <- apply(nchar(cells, "chars"), 2L, max)
  show <- function(row) {
    pad <- strrep(" ", widths - nchar(row, "chars"))
    sub(" +$", "", paste(c(paste0(row[1L], pad[1L]), paste0(pad[-1L], row[-1L])), collapse = "  "))
  }
  rule <- strrep("-", sum(widths) + 2L * length(heads[[1L]]))
  body <- unlist(lapply(blocks, function(block) c(vapply(block, show, ""), rule)))
  paste(c(rule, body, notes), collapse = "\n")
}

table_md <- function(heads, sections, notes) {
  safe <- function(cells) gsub("([\\\\|*])", "\\\\\\1", cells)
  show <- function(cells) paste0("| ", paste(safe(cells), collapse = " | "), " |")
  out <- c(show(c("", paste(heads[[1L]], heads[[2L]]))), paste0("|:--", strrep("|--:", length(heads[[1L]])), "|"))
  rows <- unlist(lapply(sections, function(s) vapply(lines_of(s), show, "")))
  paste(c(out, rows, if (length(notes)) c("", notes)), collapse = "\n")
}

tex_words <- c("\\" = "\\textbackslash{}", "&" = "\\&", "%" = "\\%", "$" = "\\$", "#" = "\\#", "_" = "\\_", "{" = "\\{",
               "}" = "\\}", "~" = "\\textasciitilde{}", "^" = "\\textasciicircum{}", "<" = "$<$", ">" = "$>$", "|" = "$|$")

tex_safe <- function(text) {
  letters <- strsplit(text, "", fixed = TRUE)
  vapply(letters, function(l) paste(ifelse(l %in% names(tex_words), tex_words[l], l), collapse = ""), "")
}

# the package booktabs has these rules
table_tex <- function(heads, sections, notes) {
  show <- function(cells) paste(paste(tex_safe(cells), collapse = " & "), "\\\\")
  n <- length(heads[[1L]])
  out <- c(paste0("\\begin{tabular}{l", strrep("c", n), "}"), "\\toprule", vapply(heads, function(h) show(c("", h)), ""))
  body <- unlist(lapply(sections, function(s) c("\\midrule", vapply(lines_of(s), show, ""))))
  below <- if (length(notes)) sprintf("\\multicolumn{%d}{l}{\\footnotesize %s} \\\\", n + 1L, tex_safe(notes))
  paste(c(out, body, "\\bottomrule", below, "\\end{tabular}"), collapse = "\n")
}

table_frame <- function(heads, sections, notes) {
  out <- as.data.frame(do.call(rbind, unlist(lapply(sections, lines_of), recursive = FALSE)), stringsAsFactors = FALSE)
  names(out) <- c("", paste(heads[[1L]], heads[[2L]]))
  out
}
