# make_fixest_golden.R - the numbers of R's fixest in tests/golden/fixest.tsv.
#
#     Rscript tools/make_fixest_golden.R          from the root of the sources, with fixest installed
#
# What pyfixest cannot show: where R's rules differ from its own (hc1 under adj and cluster.adj), every small-sample
# key by itself, the degrees of freedom of t, fixest's fixed effects, and the levels it leaves out.  Columns as in
# tests/golden/README.md; the options are written as `fourge fe` takes them.  fixest keeps singletons, and a joint key
# is combine by ^ there too.

suppressMessages(library(fixest))
setFixest_notes(FALSE)
setFixest_nthreads(1)

number <- function(x) sprintf("%.17g", x)
lines <- c()

emit <- function(case, quantity, term, value)
    lines[[length(lines) + 1]] <<- paste(c(case, "fixest", quantity, term, number(value)), collapse = "\t")

# "adj=false,fixef=full" -> ssc(K.adj = FALSE, K.fixef = "full")
rule <- function(text) {
    if (text == "-") return(ssc())
    given <- list()
    for (item in strsplit(text, ",")[[1]]) {
        pair <- strsplit(item, "=")[[1]]
        given[[pair[1]]] <- switch(pair[2], true = TRUE, false = FALSE, pair[2])
    }
    names <- c(adj = "K.adj", fixef = "K.fixef", cluster.adj = "G.adj", cluster.df = "G.df", t.df = "t.df")
    if (!"K.adj" %in% names(formals(ssc)))
        names <- c(adj = "adj", fixef = "fixef.K", cluster.adj = "cluster.adj", cluster.df = "cluster.df",
                   t.df = "t.df")
    names(given) <- names[names(given)]
    value <- given[[names[["fixef"]]]]
    if (!is.null(value) && value == "nonnested" && !"K.adj" %in% names(formals(ssc)))
        given[[names[["fixef"]]]] <- "nested"
    do.call(ssc, given)
}

covariance <- function(text) {
    if (startsWith(text, "cluster=")) as.formula(paste("~", sub("cluster=", "", text))) else text
}

table_of <- function(name) read.csv(name, check.names = FALSE)

fit_case <- function(id, data, formula, vcov, weights = "-", ssc = "-", dof = "any", what = "errors") {
    d <- table_of(data)
    w <- if (weights == "-") NULL else as.formula(paste("~", weights))
    f <- feols(as.formula(formula), d, weights = w, fixef.tol = 1e-11, fixef.iter = 100000)
    s <- summary(f, vcov = covariance(vcov), ssc = rule(ssc))
    case <- paste(c(id, data, formula, vcov, weights, if (weights == "-") "-" else "analytic", ssc, "keep", dof),
                  collapse = "\t")
    table <- coeftable(s)
    df <- degrees_freedom(s, "t")
    ends <- confint(s)
    for (i in seq_len(nrow(table))) {
        term <- rownames(table)[i]
        emit(case, "estimate", term, table[i, 1])
        emit(case, "std_error", term, table[i, 2])
        emit(case, "statistic", term, table[i, 3])
        emit(case, "p_value", term, 2 * pt(-abs(table[i, 3]), df))
        emit(case, "conf_low", term, ends[i, 1])
        emit(case, "conf_high", term, ends[i, 2])
        for (j in seq_len(i)) emit(case, "covariance", paste0(term, ",", rownames(table)[j]), vcov(s)[i, j])
    }
    for (term in f$collin.var) emit(case, "dropped", term, 1)
    emit(case, "n", "", nobs(f))
    emit(case, "df_t", "", df)
    if (what == "errors") return(invisible())
    emit(case, "rss", "", f$ssr)
    emit(case, "rmse", "", fitstat(f, "rmse")[[1]])
    emit(case, "r2", "", fitstat(f, "r2")[[1]])
    emit(case, "r2_within", "", fitstat(f, "wr2")[[1]])
    effects <- fixef(f, fixef.tol = 1e-11, fixef.iter = 100000)
    for (q in names(effects))
        for (level in names(effects[[q]]))
            emit(case, "effect", paste0(q, "::", level), effects[[q]][[level]])
}

name_of <- function(model, vcov, k)
    paste0(model, ".", sub("cluster=", "cl-", gsub("+", "-", vcov, fixed = TRUE)), ".ssc", k)

keys <- c("-", "adj=false", "cluster.adj=false", "adj=false,cluster.adj=false", "fixef=none", "fixef=full",
          "cluster.df=conventional", "t.df=conventional",
          "adj=false,fixef=full,cluster.adj=false,cluster.df=conventional,t.df=conventional")

grunfeld <- "data/grunfeld.csv"; cigar <- "data/cigar.csv"; wage <- "data/wage_panel.csv"; jobs <- "data/jobtraining.csv"
for (k in seq_along(keys)) {
    for (vcov in c("iid", "hc1", "cluster=firm", "cluster=firm+year"))
        fit_case(name_of("grunfeld", vcov, k), grunfeld, "invest ~ value + capital | firm + year", vcov,
                 ssc = keys[k])
    for (vcov in c("iid", "hc1", "cluster=state+year"))
        fit_case(name_of("cigar_ols", vcov, k), cigar, "sales ~ price + ndi", vcov, ssc = keys[k])
    for (vcov in c("iid", "hc1", "cluster=state"))
        fit_case(name_of("cigar_weighted", vcov, k), cigar, "sales ~ price | state + year", vcov, "pop",
                 ssc = keys[k])
    # persons change occupation, so that only their own clusters nest them
    for (vcov in c("cluster=nr", "cluster=occupation", "cluster=nr+occupation+year"))
        fit_case(name_of("wage", vcov, k), wage, "lwage ~ union + hours | nr + year", vcov, ssc = keys[k])
}
fit_case("wage_nested", wage, "lwage ~ union + hours | nr", "cluster=educ", dof = "any")
fit_case("wage_three", wage, "lwage ~ union + hours | nr + year + occupation", "cluster=nr", dof = "naive")
fit_case("wage_joint", wage, "lwage ~ union + hours | nr + occupation^year", "cluster=nr")
fit_case("jobs", jobs, "lhrsemp ~ grant + lemploy | fcode + year", "cluster=fcode", dof = "any")
fit_case("grunfeld_effects", grunfeld, "invest ~ value + capital | firm + year", "iid", what = "all")
fit_case("cigar_effects", cigar, "sales ~ price | state + year", "iid", "pop", what = "all")
fit_case("grunfeld_one", grunfeld, "invest ~ value + capital | firm", "hc1", what = "all")
# which level goes where the formula has no intercept and the effects span one
fit_case("wage_no_intercept", wage, "lwage ~ 0 + hours + factor(occupation) | nr", "iid")
fit_case("wage_no_intercept_two", wage, "lwage ~ factor(occupation) + hours + factor(year) - 1 | nr", "cluster=nr", dof = "any")
fit_case("wage_no_intercept_i", wage, "lwage ~ 0 + i(occupation) + hours | nr", "hc1")
# beside an i() the effects stand in for the intercept
fit_case("wage_no_intercept_beside_i", wage, "lwage ~ 0 + factor(year) + i(occupation) | nr", "iid")
# every i() behind another one has a reference, whatever the first one is
fit_case("wage_i_i", wage, "lwage ~ 0 + i(occupation) + i(union) + hours", "hc1")
fit_case("wage_i_slopes_i", wage, "lwage ~ 0 + i(married, hours) + i(union)", "iid")
fit_case("wage_i_ref_i", wage, "lwage ~ 0 + i(occupation, ref = 3) + i(union) + i(black)", "iid")
fit_case("wage_i_cells", wage, "lwage ~ 0 + i(black) + i(married, i.union)", "iid")
# a logical is a factor too; without a factor() fixest would take these for numbers
fit_case("wage_logical", wage, "lwage ~ 0 + hours + I(union == 1) + factor(married)", "hc1")
fit_case("wage_logical_effects", wage, "lwage ~ 0 + I(union == 1) + factor(married) | nr", "iid")
fit_case("wage_logical_slopes", wage, "lwage ~ 0 + I(union == 1):hours + factor(married) | nr", "iid")
fit_case("wage_logical_cells", wage, "lwage ~ factor(year):I(union == 1) + hours", "hc1")

head <- "id\tdata\tformula\tvcov\tweights\tweights_kind\tssc\tsingletons\tdof\tpeer\tquantity\tterm\tvalue"
writeLines(c(head, unlist(lines)), "tests/golden/fixest.tsv")
cat(length(lines), "numbers of fixest", as.character(packageVersion("fixest")), "under", R.version.string, "\n")
