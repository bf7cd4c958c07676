# make_vcov_golden.R - CR2 and CR3 with Satterthwaite's degrees of freedom, by clubSandwich; lines of vcov.tsv.
#
#     Rscript tools/make_vcov_golden.R            from the root of the sources; make_vcov_golden.py calls it

suppressMessages(library(clubSandwich))

emit <- function(name, formula, vcov, quantity, term, value)
    cat(paste(c(paste0(name, ":", gsub(" ", "", formula), ":", vcov), paste0("data/", name, ".csv"), formula, vcov, "-", "-", "-", "drop", "any",
                "clubSandwich", quantity, term, sprintf("%.17g", value)), collapse = "\t"), "\n", sep = "")

# Where clusters nest an effect, its CR3 has a singular block: CR2 alone.
case <- function(name, formula, dummies, cluster, terms, types = c("CR2", "CR3")) {
    table <- read.csv(file.path("data", paste0(name, ".csv")))
    fit <- lm(as.formula(dummies), table)
    for (type in types) {
        spec <- paste0(tolower(type), "=", cluster)
        V <- vcovCR(fit, cluster = table[[cluster]], type = type)
        test <- coef_test(fit, vcov = V, test = "Satterthwaite")
        for (term in terms) {
            shown <- if (term == "(Intercept)") term else term
            emit(name, formula, spec, "std_error", shown, sqrt(V[term, term]))
            if (type == "CR2") emit(name, formula, spec, "df", shown, test[term, if ("df_Satt" %in% names(test)) "df_Satt" else "df"])
        }
    }
}

case("grunfeld", "invest ~ value + capital", "invest ~ value + capital", "firm", c("(Intercept)", "value", "capital"))
case("grunfeld", "invest ~ value + capital | firm + year", "invest ~ value + capital + firm + factor(year)", "firm",
     c("value", "capital"), "CR2")
case("grunfeld", "invest ~ value + capital | firm", "invest ~ value + capital + firm", "year", c("value", "capital"))
case("cigar", "sales ~ price + pimin | year", "sales ~ price + pimin + factor(year)", "state", c("price", "pimin"))
case("munnell", "GSP ~ P_CAP + PC | ST_ABB + YR", "GSP ~ P_CAP + PC + ST_ABB + factor(YR)", "ST_ABB", c("P_CAP", "PC"),
     "CR2")
