# The tables of etable.py as the R package has them, to be the same to the byte: Rscript etable.R ROOT
library(fourge)
root <- commandArgs(TRUE)[[1L]]
wages <- read.csv(file.path(root, "data/wage_panel.csv"))
cigar <- read.csv(file.path(root, "data/cigar.csv"))
several <- feols(c(lwage, hours) ~ csw(union, married) | sw0(nr), wages, vcov = ~nr)
sample <- feols(lwage ~ married | nr, wages, fsplit = ~union)
worker <- feols(lwage ~ union | nr + occupation + year, wages)
iv <- feols(sales ~ ndi | state | price ~ pimin, cigar, vcov = ~state)
poisson <- fepois(hours ~ union | nr, wages, vcov = "hetero")
counted <- feols(lwage ~ union | occupation^year + year + nr, wages, vcov = ~ nr + educ)
i <- 0:15
x <- ifelse(i < 8, 1, -1)
d <- data.frame(y = ifelse((i %/% 4 + i) %% 2 == 1, 1, -1) * (1 + 0.01 * i) + x / 2, x = x, a = i %/% 4, b = i %% 4)
repaired <- suppressWarnings(feols(y ~ x, d, vcov = ~ a + b))
for (type in c("text", "md", "tex")) {
  print(etable(several, type = type, stars = TRUE))
  print(etable(list(worker, iv), poisson, type = type, digits = 5, notes = "5% & more | a_b <c> {d} ~ ^ # $ \\"))
  print(etable(sample, type = type, headers = c("of all", "none", "some"), coef_fmt = "b (se)\nt, p\n[ci_l, ci_u]", vcov = ~nr))
  print(etable(worker, several, type = type, keep = c("mar", "un"), drop = "zzz", show_fe = FALSE, stars = c(1e-4, 1e-3, 0.01)))
  print(etable(worker, several[7:8], type = type, keep = "union", exact_match = TRUE,
               dict = c(union = "Union", nr = "Person", lwage = "Pay"), fe_present = "yes", fe_absent = "no"))
  print(etable(counted, repaired, type = type))
}
