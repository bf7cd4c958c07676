"""The tables of etable.R as Python has them."""

import numpy as np

from fourge import datasets, fe

wages, cigar = datasets.load("wage_panel"), datasets.load("cigar")
several = fe.feols("c(lwage, hours) ~ csw(union, married) | sw0(nr)", wages, vcov={"CRV1": "nr"})
sample = fe.feols("lwage ~ married | nr", wages, fsplit="union")
worker = fe.feols("lwage ~ union | nr + occupation + year", wages)
iv = fe.feols("sales ~ ndi | state | price ~ pimin", cigar, vcov={"CRV1": "state"})
poisson = fe.fepois("hours ~ union | nr", wages, vcov="hetero")
counted = fe.feols("lwage ~ union | occupation^year + year + nr", wages, vcov={"CRV1": "nr+educ"})
i = np.arange(16)
x = np.where(i < 8, 1.0, -1.0)
d = {"y": np.where((i // 4 + i) % 2, 1, -1) * (1 + 0.01 * i) + x / 2, "x": x, "a": i // 4, "b": i % 4}
repaired = fe.feols("y ~ x", d, "~a+b")
by_person = [fit.vcov({"CRV1": "nr"}) for fit in sample]
for kind in ("text", "md", "tex"):
    print(fe.etable(several, kind, signif_code=[0.001, 0.01, 0.05]))
    print(fe.etable([worker, iv, poisson], kind, digits=5, notes="5% & more | a_b <c> {d} ~ ^ # $ \\"))
    print(fe.etable(by_person, kind, model_heads=["of all", "none", "some"], coef_fmt="b (se)\nt, p\n[ci_l, ci_u]"))
    print(fe.etable([worker, *several], kind, keep=["mar", "un"], drop="zzz", show_fe=False, signif_code=[1e-4, 1e-3, 0.01]))
    print(fe.etable([worker, *several[6:8]], kind, keep="union", exact_match=True, labels={"union": "Union", "lwage": "Pay"},
                    felabels={"nr": "Person"}, fe_present="yes", fe_absent="no"))
    print(fe.etable([counted, repaired], kind))
