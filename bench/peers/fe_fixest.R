# R's fixest beside fourge: Rscript fe_fixest.R PATH...
#
# A PATH that is a folder of fe_peers.py (columns.npy, codes.npy) is demeaned by fixest::demean; one that ends in .csv
# is read by data.table::fread and fitted by feols, y on x1..x5 with the effects unit and firm, clustered by firm;
# gravity.csv (gravity_frame of python/py_regress.py) by fepois with three effects and iid errors, reading not timed.
# Prints one JSON line for every PATH and tolerance.  TOLS: fixef.tol, separated by blanks ("1e-6 1e-8"; the first is
# fixest's default); THREADS: as many for every package; LIMIT: what is slower than so many seconds runs once only.
suppressMessages({
    library(data.table)
    library(fixest)
})
threads <- as.integer(Sys.getenv("THREADS", parallel::detectCores()))
tolerances <- as.numeric(strsplit(Sys.getenv("TOLS", "1e-6 1e-8"), " ")[[1]])
limit <- as.numeric(Sys.getenv("LIMIT", "20"))
setFixest_nthreads(threads)
setDTthreads(threads)

# One array of NumPy's format 1.0, doubles or int32 in C order: rows of the file are columns of what comes back.
read_npy <- function(path) {
    file <- file(path, "rb")
    on.exit(close(file))
    readBin(file, "raw", 8)
    header <- rawToChar(readBin(file, "raw", readBin(file, "integer", 1, size = 2, endian = "little")))
    shape <- as.numeric(strsplit(gsub("[^0-9,]", "", sub(".*shape': \\(([^)]*)\\).*", "\\1", header)), ",")[[1]])
    stopifnot(length(shape) == 2, grepl("'fortran_order': False", header), grepl("<(f8|i4)", header))
    what <- if (grepl("<f8", header)) "double" else "integer"
    values <- readBin(file, what, prod(shape), size = if (what == "double") 8 else 4, endian = "little")
    matrix(values, nrow = shape[2])
}

# As audit() of fe_peers.py: the largest mean of a level over the standard deviation of the demeaned column.
audit <- function(columns, codes) {
    worst <- 0
    for (factor in seq_len(ncol(codes))) {
        sizes <- tabulate(codes[, factor] + 1L)
        for (column in seq_len(ncol(columns))) {
            sums <- rowsum(columns[, column], codes[, factor], reorder = TRUE)
            spread <- sqrt(mean((columns[, column] - mean(columns[, column]))^2))
            worst <- max(worst, max(abs(sums / sizes[sizes > 0])) / spread)
        }
    }
    worst
}

# The smallest of some wall times, or the first where it is beyond the limit.
best_of <- function(times, run) {
    least <- system.time(result <- run())[["elapsed"]]
    for (again in seq_len(if (least < limit) times - 1 else 0)) {
        least <- min(least, system.time(result <- run())[["elapsed"]])
    }
    list(seconds = least, result = result)
}

report <- function(path, tolerance, seconds, rest) {
    cat(sprintf('{"threads": %d, "peer": "fixest %s", "input": "%s", "fixef_tol": %g, "seconds": %.4f, %s}\n', threads,
                packageVersion("fixest"), basename(path), tolerance, seconds, rest))
}

for (path in commandArgs(trailingOnly = TRUE)) {
    for (tolerance in tolerances) {
        if (basename(path) == "gravity.csv") {
            frame <- fread(path)
            timed <- best_of(5, function() { # the first two take five times as long as those behind
                fepois(trade ~ rta | exp_year + imp_year + pair, frame, vcov = "iid", fixef.tol = tolerance, notes = FALSE)
            })
            report(path, tolerance, timed$seconds,
                   sprintf('"bench": "gravity", "n": %d, "rta": %.12g, "se_rta": %.12g', nobs(timed$result),
                           coef(timed$result)[["rta"]], se(timed$result)[["rta"]]))
        } else if (grepl("\\.csv$", path)) {
            timed <- best_of(2, function() {
                feols(y ~ x1 + x2 + x3 + x4 + x5 | unit + firm, fread(path), cluster = ~firm, fixef.tol = tolerance,
                      notes = FALSE)
            })
            report(path, tolerance, timed$seconds,
                   sprintf('"bench": "fe_csv", "x1": %.12g, "se_x1": %.12g', coef(timed$result)[["x1"]], se(timed$result)[["x1"]]))
        } else {
            columns <- t(read_npy(file.path(path, "columns.npy")))
            codes <- t(read_npy(file.path(path, "codes.npy")))
            effects <- lapply(seq_len(ncol(codes)), function(factor) codes[, factor])
            timed <- best_of(2, function() {
                demean(columns, effects, tol = tolerance, iter = 100000, notes = FALSE)
            })
            report(path, tolerance, timed$seconds,
                   sprintf('"bench": "fe", "n": %d, "columns": %d, "audit": %.1e', nrow(columns), ncol(columns),
                           audit(timed$result, codes)))
        }
    }
}
