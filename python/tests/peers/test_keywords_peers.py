"""Every keyword of the modules that need a peer acts, raises, or says what is done instead: see keywords.py and test_keywords.py."""

import pathlib
import sys
import unittest
import warnings

import matplotlib
import numpy as np
import pandas as pd

warnings.simplefilter("ignore")
import gpytorch  # noqa: E402
import pyfixest as pf  # noqa: E402
import torch  # noqa: E402
from sklearn.gaussian_process import kernels  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import test_keywords as own  # noqa: E402
import test_keywords_gw as own_gw  # noqa: E402
from keywords import Rows, Table, asked, cures, main, prints, raises, threads, warns, watch  # noqa: E402

import fourge.gpytorch  # noqa: E402
import fourge.pyfixest  # noqa: E402
import fourge.sklearn  # noqa: E402
import fourge.torch  # noqa: E402
from fourge import errors, fe, gw  # noqa: E402

matplotlib.use("Agg")
torch.set_num_threads(1)  # of its own work, beside which threads are counted
from matplotlib import pyplot as plt  # noqa: E402

rows = Rows()
of = rows.of

# ---- plots ----


def drawn(ax):
    """The numbers and words of a plot."""
    lines = [np.asarray(line.get_xydata(), float) for line in ax.lines]
    words = [t.get_text() for t in ax.get_xticklabels() + ax.get_yticklabels()] + [ax.get_title()]
    turned = [t.get_rotation() for t in ax.get_xticklabels()]
    size = ax.figure.get_size_inches().tolist()
    plt.close("all")
    return [lines, words, turned, size]


YEARS = own.PANEL | {"year": 2000 + np.arange(own.N) % 4}


def of_years():
    return fe.feols("y ~ i(year, ref=2001) + x + z", YEARS)


OWN = plt.figure().add_subplot()
FIGURE = {
    "yintercept": (3.0, drawn), "coord_flip": (True, drawn), "rotate_xticks": (45, drawn), "title": ("Ours", drawn),
    "figsize": ((9, 2), drawn), "ax": (OWN, lambda ax: ax is OWN),
}
TERMS = {
    **FIGURE, "coord_flip": (False, drawn), "rotate_xticks": (45, drawn, {"coord_flip": False}), "keep": ("x", drawn),
    "drop": ("x", drawn), "exact_match": (True, drawn, {"keep": ["x", "year.*"]}), "labels": ({"x": "Dose"}, drawn),
}
LEVELS = {**FIGURE, "labels": ({"2000": "first"}, drawn)}
of(fe.coefplot, {"fits": of_years()}, **TERMS, fits=([of_years(), own.FIT], drawn))
of(fe.Fit.coefplot, {}, of_years, **TERMS)
of(fe.iplot, {"fits": of_years()}, **LEVELS, fits=(fe.feols("y ~ i(year, ref=2000)", YEARS), drawn))
of(fe.Fit.iplot, {}, of_years, **LEVELS)

# ---- torch ----


def tensors(options):
    """The arrays of params as torch's parameters."""
    given = dict(options() if callable(options) else options)
    arrays = given.get("params", ())
    if len(arrays):
        arrays = arrays.values() if isinstance(arrays, dict) else arrays
        given["params"] = [torch.nn.Parameter(torch.from_numpy(np.array(a))) for a in arrays]
    return given


def of_tensors(row):
    return (*row[:2], (lambda more: lambda: tensors(more))(row[2])) if len(row) > 2 else row


trained = own.trained
PARAMETERS = {"params": own.parameters()}
STEPS = {keyword: [of_tensors(r) for r in row] if isinstance(row, list) else of_tensors(row) for keyword, row in own.STEPS.items()}
of(fourge.torch.SOAP, lambda: tensors(PARAMETERS), **STEPS, params=(tensors({"params": [-own.WEIGHTS]})["params"], trained),
   foreach=(True, warns()), fused=(True, warns()), capturable=(True, raises()), differentiable=(True, raises()))


def optimizer():
    opt = fourge.torch.SOAP(**tensors(PARAMETERS))
    trained(opt, 3)
    return opt


AFTER = optimizer()
trained(AFTER, 2)
of(fourge.torch.SOAP.add_param_group, lambda: {"param_group": tensors({"params": [own.VECTOR]})}, optimizer,
   param_group=(tensors({"params": [own.VECTOR], "lr": 0.5}), trained))
of(fourge.torch.SOAP.step, {}, optimizer, closure=(lambda: torch.tensor(7.0), lambda out: out if isinstance(out, torch.Tensor) else None))
of(fourge.torch.SOAP.load_state_dict, {"state_dict": optimizer().state_dict()}, optimizer, state_dict=(AFTER.state_dict(), trained))
of(fourge.torch.SOAP.save_param, {"param": "param.0"}, optimizer, param=("param.2", len))
of(fourge.torch.SOAP.load_param, {"param": "param.0", "state": optimizer().save_param("param.0")}, optimizer,
   param=("param.2", raises("shape")), state=(AFTER.save_param("param.0"), trained))
GRAM, WAVE = torch.from_numpy(own.GRAM), torch.from_numpy(own.WAVE)
of(fourge.torch.inv_quad_logdet, {"k": GRAM, "r": WAVE}, k=(2 * GRAM, lambda out: [float(v) for v in out]),
   r=(2 * WAVE, lambda out: [float(v) for v in out]))

# ---- the gradients of gw.sampled_gw ----


def slope(plan):
    """The gradient of a loss of the plan in the distances."""
    dist.grad = None
    (plan * torch.from_numpy(own_gw.COST)).sum().backward()
    return dist.grad.numpy().copy()


dist = torch.from_numpy(own_gw.C).requires_grad_()
ALIGNED = {"dist_source": dist, "dist_target": torch.from_numpy(own_gw.D), "epsilon": 0.05}
of(gw.sampled_gw, ALIGNED, differentiable=(True, cures("grad", then=slope)), grad_mode=("frozen", slope, {"differentiable": True}))

# ---- gpytorch ----


class Model(gpytorch.models.ExactGP):
    def __init__(self, n=60):
        x = torch.linspace(0, 1, n, dtype=torch.float64)
        super().__init__(x, torch.sin(6 * x) + 0.1 * torch.cos(37 * x), gpytorch.likelihoods.GaussianLikelihood())
        self.mean_module, self.covar_module = gpytorch.means.ConstantMean(), gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
        self.double()

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def ways(block, n=60):
    """How often each way was taken within a block."""
    fourge.gpytorch.fast_mll.stats.clear()
    model = Model(n)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    with block, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mll(model(*model.train_inputs), model.train_targets)
    return sorted(fourge.gpytorch.fast_mll.stats.items())


def large(block):
    """Above the size that GPyTorch factors; BoTorch, which another file of tests imports, turns its conjugate gradients off."""
    with gpytorch.settings.max_cholesky_size(30), gpytorch.settings.fast_computations.log_prob(True):
        return ways(block)


of(fourge.gpytorch.fast_mll, {}, state=(False, ways), fused=(False, ways), exact=(True, large, {"fused": False}),
   dense_from=(100, ways, {"fused": False}))
of(fourge.gpytorch.use_torch_tensors, {}, state=(False, ways), dense_from=(100, ways))


def value(report):
    return report["log_likelihood"]


def found(report):
    return report["optimizer"]["iterations"]


def model():
    return {"model": Model()}


of(fourge.gpytorch.fit_mll, model, model=(Model(40), value),
   likelihood=(gpytorch.likelihoods.FixedNoiseGaussianLikelihood(torch.full((60,), 0.1).double()), value),
   method=("adam", found), threads=(3, threads(), lambda: {"model": Model(700), "max_iter": 1}),
   seed=(5, lambda r: [s["objective"] for s in r["optimizer"]["start_results"]], {"starts": 3, "max_iter": 2}),
   closure=(lambda: 0, warns()), max_iter=(1, found), tol=(0.5, found),
   learning_rate=(0.01, value, {"method": "adam", "max_iter": 5}), starts=(3, lambda r: len(r["optimizer"]["start_results"])),
   standardize=(False, lambda r: r["optimizer"]["trace"], {"method": "lbfgsb", "max_iter": 3}),
   standard_errors=(False, lambda r: r["standard_errors"]), max_evaluations=(2, lambda r: r["optimizer"]["evaluations"]))

# ---- scikit-learn ----

P, Y = own.P, own.WAVE
KERNEL = kernels.ConstantKernel() * kernels.RBF() + kernels.WhiteKernel(0.1)


def fitted(model):
    return model.fit(P, Y).kernel_.theta


def likelihood(model):
    return model.fit(P, Y).log_marginal_likelihood_value_


def kept(model):
    x = P.copy()
    return model.fit(x, Y).X_train_ is x


def at(model):
    return model.fit(P, Y).predict(P[:4] + 0.1)


def drawn_before(model):
    return model.predict(P[:3])


FAR_OFF = {"kernel": kernels.RBF(1e-3, (1e-4, 1e3)) + kernels.WhiteKernel(1e-3), "random_state": 1,
           "optimizer": lambda f, theta, bounds: (theta, f(theta)[0])}  # the best of the starts
GPR = fourge.sklearn.GaussianProcessRegressor
of(GPR, {"kernel": KERNEL}, kernel=(kernels.Matern() + kernels.WhiteKernel(0.1), likelihood), alpha=(0.5, likelihood),
   optimizer=(None, fitted),
   n_restarts_optimizer=(5, fitted, FAR_OFF),
   normalize_y=(True, fitted), copy_X_train=(False, kept), n_targets=(2, drawn_before),
   random_state=(5, fitted, {**FAR_OFF, "n_restarts_optimizer": 5}),
   precision=("f32", likelihood, {"optimizer": None}),
   threads=(3, threads(then=lambda model: model.fit(own.BIG, own.BIG_Y)), {"optimizer": None}))


HERE = {}


def model_fitted():
    HERE["model"] = GPR(KERNEL).fit(P, Y)
    return HERE["model"]


of(GPR.fit, {"X": P, "y": Y}, lambda: GPR(KERNEL), X=(P**3, lambda m: m.kernel_.theta), y=(-P[:, 1], lambda m: m.kernel_.theta))
THETA = np.log([2.0, 1.0, 0.2])
of(GPR.log_marginal_likelihood, {"theta": THETA}, model_fitted, theta=(THETA + 1, float),
   eval_gradient=(True, lambda out: isinstance(out, tuple)), clone_kernel=(False, lambda _: HERE["model"].kernel_.theta))
of(GPR.predict, {"X": P[:3]}, model_fitted, X=(P[3:6], list), return_std=(True, len), return_cov=(True, len))
of(GPR.sample_y, {"X": P[:3]}, model_fitted, X=(P[3:6], list), n_samples=(2, np.shape), random_state=(5, list))
of(fourge.sklearn.expression, {"kernel": KERNEL}, kernel=(kernels.RBF(), str),
   columns=(2, raises("ExpSineSquared"), {"kernel": kernels.ExpSineSquared()}))

# ---- pyfixest ----


def demeaned(block, fml="y ~ x + z | f + g", data=own.PANEL):
    """The reports of a fit within a block."""
    with block as reports:
        pf.feols(fml, pd.DataFrame(data))
    return reports


def demeaned_long(block):
    return demeaned(block, "y ~ x | f + g", own.LONG)


def result(key):
    return lambda block: [report[key] for report in demeaned(block)]


LSMR = {"method": "lsmr"}
of(fourge.pyfixest.demeaning, {}, backend=("torch_cuda", raises(kind=errors.NoDevice, then=demeaned)),
   progress=(watch, asked(then=demeaned)), threads=(3, threads(then=demeaned_long)),
   seed=(5, result("audit"), {"method": "cg", "precond": "ac"}),
   memory_limit=(1000, raises("memory", errors.OutOfMemory, then=demeaned)), time_limit=(1e-9, raises("failed", then=demeaned)),
   method=("lsmr", result("method")), precond=("off", result("iterations"), {"method": "cg"}), dtype=("f32", result("audit")),
   tol=(1e-2, result("iterations"), LSMR), max_iter=(1, raises("failed", then=demeaned), LSMR),
   cond_limit=(1.0001, raises("failed", then=demeaned), LSMR), block=(1, result("plan_bytes")),
   fill_cap=(100, raises(then=demeaned), {"method": "direct"}), fused=("on", raises("fused", errors.BadArgument, then=demeaned)),
   device=("cuda:99", raises("cuda:99", errors.NoDevice, then=demeaned)),
   max_sweeps=(1, raises("failed", then=demeaned), {"method": "map"}))



def within(show):
    """What a row of fe.feols looks at, of the fit that a fit of pyfixest's names holds."""
    return lambda fit: show(fit.fit)


estimates, errors_of, solved, left_out = map(
    within, (own.estimates, own.errors_of, own.solved, own.left_out)
)
WAYS = {
    k: tuple(within(v) if callable(v) else v for v in own.WAYS[k])
    for k in ("method", "precond", "dtype", "cond_limit", "block", "fill_cap", "fused", "max_sweeps", "seed")
}
REFUSED = {
    "vcov_kwargs": {"lag": 1},
    "drop_intercept": True,
    "copy_data": "yes",
    "store_data": False,
    "lean": True,
    "solver": "jax",
    "use_compression": True,
    "reps": 9,
    "context": {"c": 1},
    "split": "h",
    "fsplit": "h",
}
of(
    fourge.pyfixest.feols,
    {"fml": "y ~ x + z | f + g", "data": own.PANEL},
    **WAYS,
    **{k: (v, raises()) for k, v in REFUSED.items()},
    fml=("y ~ z | f", estimates),
    data=(own.SETS, estimates),
    vcov=[("hetero", errors_of), ({"CRV1": "h"}, errors_of)],
    progress=(watch, asked()),
    threads=(3, threads(), {"data": own.LONG, "fml": "y ~ x | f + g"}),
    device=own.NOWHERE,
    memory_limit=own.SMALL,
    time_limit=own.SAYS_LATE,
    dof=("auto", within(lambda fit: fit.result["k"]), {"data": own.SETS}),
    ssc=({"k_adj": False}, errors_of),
    weights=("w", estimates),
    weights_type=("fweights", lambda fit: fit._N, {"weights": "w"}),
    fixef_rm=("none", left_out, {"fml": "y ~ x | alone"}),
    collin_tol=(1e-2, lambda fit: fit._k, {"fml": "y ~ x + flat | f"}),
    fixef_tol=(1e-2, solved, LSMR),
    fixef_maxiter=(1, warns("FRG-FE-101"), LSMR),
    demeaner=[
        (own.demeaner(), solved, LSMR),
        (own.demeaner(device="cuda"), raises(kind=errors.NoDevice)),
    ],
    demeaner_backend=[("numba", raises()), ("torch_cuda", raises(kind=errors.NoDevice))],
)


def named():
    return fourge.pyfixest.feols("y ~ x + z | f + g", own.PANEL)


Named = fourge.pyfixest.Fit
of(Named.tidy, {}, named, alpha=(0.5, list))
of(
    Named.confint,
    {},
    named,
    alpha=(0.5, list),
    keep=("x", len),
    drop=("x", len),
    exact_match=(True, raises("no coefficient"), {"keep": "(x)"}),
    joint=(True, raises()),
    seed=(1, raises()),
    reps=(9, raises()),
)
of(
    Named.vcov,
    {"vcov": "iid"},
    named,
    vcov=("hetero", errors_of),
    vcov_kwargs=({"lag": 1}, raises()),
    data=(own.PANEL, raises()),
)
of(
    Named.predict,
    {},
    named,
    newdata=({k: v[:9] for k, v in own.PANEL.items()}, np.asarray),
    atol=(1e-9, raises()),
    btol=(1e-9, raises()),
    type=("probability", raises()),
    se_fit=(True, raises()),
    interval=("prediction", raises()),
    alpha=(0.1, raises()),
)
of(Named.fixef, {}, named, atol=(1e-9, raises()), btol=(1e-9, raises()))
of(
    Named.wald_test,
    {},
    named,
    R=(np.array([[1.0, 0.0]]), list),
    q=(1.0, list),
    distribution=("chi2", list),
)
of(Named.etable, {}, named, **own.TABLES)
of(Named.summary, {}, named, digits=(9, prints(f"{own.FIT.coef()[0]:.9f}")))
of(
    fourge.pyfixest.ssc,
    {},
    k_adj=(False, dict),
    k_fixef=("full", dict),
    G_adj=(False, dict),
    G_df=("conventional", dict),
)


class OfKeywords(Table, unittest.TestCase):
    rows, modules, file = rows, (fourge.torch, fourge.gpytorch, fourge.sklearn, fourge.pyfixest), __file__
    beside = own.OfKeywords.elsewhere | own_gw.OfKeywords.elsewhere


if __name__ == "__main__":
    main(rows)
