"""Prints the numbers of generalised linear models that tests/property/test_glm.c and of instruments that test_iv.c hold.

    python tools/make_glm_golden.py

pyfixest and statsmodels on data/wage_panel.csv, to the tightest tolerances they take; linearmodels on data/cigar.csv.
"""

import pathlib
import warnings

import linearmodels
import numpy as np
import pandas as pd
import pyfixest
import statsmodels
import statsmodels.api as sm
from linearmodels.iv import IV2SLS, IVGMM

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
warnings.filterwarnings("ignore")


def poisson(wages):
    models = [("hours ~ union + married | year + occupation", vcov) for vcov in ("iid", "hetero", {"CRV1": "nr"})]
    for formula, vcov in [*models, ("hours ~ union + married + expersq | nr", "iid")]:
        fit = pyfixest.fepois(formula, wages, vcov=vcov, iwls_tol=1e-14, iwls_maxiter=100, fixef_tol=1e-12)
        print(formula, vcov, f"deviance {fit.deviance:.17g} log-likelihood {fit._loglik:.17g} pseudo R2 {fit._pseudo_r2:.17g}")
        for name, b, se in zip(fit.coef().index, fit.coef(), fit.se()):
            print(f"  {name} {b:.17g} {se:.17g}")


def families(wages):
    years = pd.get_dummies(wages.year, drop_first=True).astype(float)
    x = sm.add_constant(pd.concat([wages[["educ", "exper", "married"]], years], axis=1))
    x.columns = [str(name) for name in x.columns]
    probit = sm.families.Binomial(sm.families.links.Probit())
    for name, family, y in [("poisson", sm.families.Poisson(), wages.hours), ("logit", sm.families.Binomial(), wages.union),
                            ("probit", probit, wages.union), ("gaussian", sm.families.Gaussian(), wages.lwage)]:
        fit = sm.GLM(y, x, family=family).fit(tol=1e-30, tol_criterion="params", maxiter=500)
        print(name, f"educ {fit.params.educ:.17g} {fit.bse.educ:.17g} deviance {fit.deviance:.17g} log-likelihood {fit.llf:.17g}")


def instruments(cigar):
    names = ["sales", "ndi", "price", "pimin", "cpi"]
    d = cigar[names] - cigar.groupby("state")[names].transform("mean")
    plain = IV2SLS(d.sales, d[["ndi"]], d[["price"]], d[["pimin", "cpi"]]).fit(cov_type="unadjusted")
    two_step = IVGMM(d.sales, d[["ndi"]], d[["price"]], d[["pimin", "cpi"]]).fit(iter_limit=2)
    print(f"Sargan {plain.sargan.stat:.17g} Hansen {two_step.j_stat.stat:.17g}")
    for vcov in ("iid", {"CRV1": "state"}):
        fit = pyfixest.feols("sales ~ ndi | state | price ~ pimin", cigar, vcov=vcov)
        print(vcov, *(f"{v:.17g}" for v in np.concatenate([fit.coef(), fit.se()])), f"first stage F {fit._f_stat_1st_stage:.17g}")


if __name__ == "__main__":
    print(f"pyfixest {pyfixest.__version__}, statsmodels {statsmodels.__version__}, linearmodels {linearmodels.__version__}")
    poisson(pd.read_csv(DATA / "wage_panel.csv"))
    families(pd.read_csv(DATA / "wage_panel.csv"))
    instruments(pd.read_csv(DATA / "cigar.csv"))
