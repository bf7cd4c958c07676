# Settings of a session: what calls take where they are not told otherwise.
settings <- new.env(parent = emptyenv())

unset <- list(vcov = list(no_FE = "iid", one_FE = "iid", two_FE = "iid", panel = "iid"), ssc = NULL, nthreads = 0L, dict = NULL,
              fml = list(), estimation = list(),
              etable = list())

setting <- function(name) if (exists(name, settings, inherits = FALSE)) settings[[name]] else unset[[name]]
with_new <- function(old, new) {
  old[names(new)] <- new
  old
}
keep_setting <- function(name, value) {
  before <- setting(name)
  assign(name, value, settings)
  invisible(before)
}

setFourge_vcov <- function(no_FE = "iid", one_FE = "cluster", two_FE = "cluster", panel = "cluster", all = NULL, reset = FALSE) {
  if (reset) return(keep_setting("vcov", unset$vcov))
  chosen <- list(no_FE = no_FE, one_FE = one_FE, two_FE = two_FE, panel = panel)
  if (!is.null(all)) chosen[] <- list(all)
  for (v in chosen) vcov_spec(v, c("a", "b"))
  keep_setting("vcov", chosen)
}
getFourge_vcov <- function() setting("vcov")

setFourge_ssc <- function(ssc.type = NULL) {
  if (!is.null(ssc.type) && !(is.character(ssc.type) && length(ssc.type) == 1L)) {
    stop("ssc.type: expected what ssc() makes", call. = FALSE)
  }
  keep_setting("ssc", ssc.type)
}
getFourge_ssc <- function() setting("ssc")

setFourge_nthreads <- function(nthreads = 0L) {
  if (!is.numeric(nthreads) || length(nthreads) != 1L || is.na(nthreads) || nthreads < 0 || nthreads != round(nthreads)) {
    stop("nthreads: expected a whole number, 0 for all cores", call. = FALSE)
  }
  keep_setting("nthreads", as.integer(nthreads))
}
getFourge_nthreads <- function() setting("nthreads")

setFourge_dict <- function(dict = NULL, ...) {
  dict <- c(dict, ...)
  if (length(dict) && (!is.character(dict) || is.null(names(dict)) || !all(nzchar(names(dict))))) {
    stop("dict: expected words with names, as in c(x = \"Dose\")", call. = FALSE)
  }
  keep_setting("dict", dict)
}
getFourge_dict <- function() setting("dict")

setFourge_fml <- function(..., reset = FALSE) {
  found <- macros_of(list(...))
  keep_setting("fml", if (reset) found else with_new(setting("fml"), found))
}
getFourge_fml <- function() setting("fml")

setFourge_estimation <- function(..., reset = FALSE) {
  given <- all_named(list(...), "setFourge_estimation: expected arguments by name, as in fixef.rm = \"none\"")
  keep_setting("estimation", if (reset) given else with_new(setting("estimation"), given))
}
getFourge_estimation <- function() setting("estimation")

setFourge_etable <- function(..., reset = FALSE) {
  given <- style_of(list(...), "setFourge_etable")
  keep_setting("etable", if (reset) given else with_new(setting("etable"), given))
}
getFourge_etable <- function() setting("etable")

all_named <- function(given, message) {
  if (length(given) && (is.null(names(given)) || !all(nzchar(names(given))))) stop(message, call. = FALSE)
  given
}

# the covariance of a fit that names none
usual_vcov <- function(effects, panel) {
  chosen <- setting("vcov")
  if (!is.null(panel)) {
    by_unit <- identical(chosen$panel, "cluster") && !length(effects)
    return(if (by_unit) paste0("cluster=", panel[1L]) else chosen$panel)
  }
  chosen[[min(length(effects), 2L) + 1L]]
}

panel <- function(data, panel.id) {
  if (!is.data.frame(data)) stop("data: expected a data frame", call. = FALSE)
  names <- panel_names(panel.id)
  gone <- setdiff(names, names(data))
  if (length(gone)) stop("panel.id: the data have no column '", gone[1L], "'", call. = FALSE)
  attr(data, "panel.id") <- names
  class(data) <- unique(c("fourge_panel", class(data)))
  data
}

unpanel <- function(data) {
  attr(data, "panel.id") <- NULL
  class(data) <- setdiff(class(data), "fourge_panel")
  data
}

# ~ unit + time, or two names
panel_names <- function(panel.id) {
  names <- if (inherits(panel.id, "formula")) all.vars(panel.id) else panel.id
  if (!is.character(names) || length(names) != 2L) stop("panel.id: expected unit and period, as in ~ unit + time", call. = FALSE)
  names
}

# rows and columns of a panel are one as long as both of its keys are there
`[.fourge_panel` <- function(x, ...) {
  id <- attr(x, "panel.id")
  out <- NextMethod()
  if (is.data.frame(out) && all(id %in% names(out))) panel(out, id) else if (is.data.frame(out)) unpanel(out) else out
}
