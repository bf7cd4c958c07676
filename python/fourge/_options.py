"""The options of the library's calls by name: their types, their defaults, and what is said of a name that is none.

Functions that hand ``**options`` on to a struct of the library are typed by a TypedDict of this module, and :func:`takes` writes its
names and the library's own defaults into their signature, so that ``help()``, an editor and a type checker see them.
"""

import difflib
import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypedDict, TypeVar

from . import _fourge

_F = TypeVar("_F", bound=Callable[..., Any])
_defaults = {name: {key: default for key, (default, _) in fields.items()} for name, fields in _fourge.options().items()}


def _keywords(source: Any) -> dict[str, Any]:
    """{name: annotation} of a TypedDict, or {name: parameter} of a function's keywords."""
    if isinstance(source, type):
        return dict(source.__annotations__)
    return {name: p for name, p in inspect.signature(source).parameters.items() if p.kind is not p.VAR_KEYWORD}


def takes(source: Any, *calls: str, without: tuple[str, ...] = ()) -> Callable[[_F], _F]:
    """Decorates a function that ends in ``**options``: they are those of `source`, a TypedDict or another function, less `without`,
    with the defaults of the library's structs for `calls`."""
    def decorate(function: _F) -> _F:
        mine = list(inspect.signature(function).parameters.values())
        known = {p.name for p in mine} | set(without)
        more = [p.replace(kind=p.KEYWORD_ONLY) if isinstance(p, inspect.Parameter)
                else inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=p,
                                       default=next((_defaults[call][name] for call in calls if name in _defaults[call]), None))
                for name, p in _keywords(source).items() if name not in known]
        function.__signature__ = inspect.signature(function).replace(  # type: ignore[attr-defined]
            parameters=[p for p in mine if p.kind is not p.VAR_KEYWORD] + more)
        function._takes = frozenset(p.name for p in more)  # type: ignore[attr-defined]
        return function

    return decorate


def check(function: Any, options: Mapping[str, Any]) -> None:
    """TypeError for an option that `function` has not got, with the nearest name or all of them."""
    for key in options:
        if key not in function._takes:
            names = [name for name in inspect.signature(function).parameters if name != "self"]
            near = difflib.get_close_matches(key, names, 1)
            raise TypeError(f"there is no option {key!r}; " + (f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"))


class Context(TypedDict, total=False):
    """Of every computation."""

    threads: int
    seed: int
    memory_limit: int | str
    time_limit: float


class Unseeded(TypedDict, total=False):
    """Of one in which nothing is random."""

    threads: int
    memory_limit: int | str
    time_limit: float


class Read(TypedDict, total=False):
    """Of one that reads a file."""

    memory_limit: int | str


class Solver(Unseeded, total=False):
    """Of pyfixest.feols, beside pyfixest's names for the tolerance and the steps."""

    device: str | None
    method: Literal["auto", "cg", "lsmr", "mlsmr", "direct", "map"]
    precond: Literal["auto", "off", "diag", "schwarz", "ac"]
    dtype: Literal["f64", "mixed", "f32"]
    cond_limit: float
    block: int
    fill_cap: int
    fused: Literal["auto", "on", "off"]
    max_sweeps: int


class Demean(Solver, total=False):
    """Of fe.demean: ``frg_demean_opts``."""

    tol: float
    max_iter: int
    seed: int


class Feols(Demean, total=False):
    """Of fe.feols: ``frg_demean_opts``, ``frg_fe_opts``, and pyfixest's names."""

    dof: Literal["auto", "naive", "firstpair", "pairwise", "exact"]
    ssc: str | None
    weights: str | None
    weights_kind: Literal["analytic", "frequency", "probability"]
    subset: str | None
    keep_singletons: bool
    collin_tol: float
    collin: Literal["share", "fixest"]
    connected: Literal["all", "largest", "match", "observation"]
    level: float
    keep_effects: bool
    spool: str | os.PathLike[str] | None
    untrusted: bool
    fixef_tol: float | None
    fixef_maxiter: int | None
    fixef_rm: Literal["singleton", "singletons", "none"] | None
    weights_type: Literal["aweights", "fweights"] | None
    demeaner: Any
    demeaner_backend: Any
    solver: Any
    lean: Any
    copy_data: Any
    store_data: Any
    use_compression: Any
    split: str | None
    fsplit: str | None
    split_value: str | None
    panel: str | None
    first_stage: str | None
    plan: str | os.PathLike[str] | None
    reps: Any
    vcov_kwargs: Any
    drop_intercept: Any
    i_ref1: Any
    context: Any


class LeaveOut(TypedDict, total=False):
    """Of fe.Fit.leave_out: ``frg_leave_out_opts``."""

    leave_out: Literal["match", "observation", "none"]
    leverage: Literal["auto", "exact", "approx"]
    draws: int


class Study(Unseeded, total=False):
    """Of fe.did2s, fe.event_study and fe.lpdid: those of fe.feols that go with all of them."""

    ssc: str | None
    weights: str | None
    subset: str | None
    level: float


class Feglm(Feols, total=False):
    """Of fe.feglm, fe.fepois and fe.fenegbin, beside the family."""

    link: Literal["auto", "identity", "log", "inverse", "logit", "probit"]
    offset: str | None
    glm_tol: float
    glm_iter: int
    theta: float
    separation: Literal["auto", "levels", "none"]


class Lsmr(Unseeded, total=False):
    """Of fe.lsmr: ``frg_lsmr_opts``."""

    atol: float
    btol: float
    cond_limit: float
    damp: float
    max_iter: int
    block: int
    precond: Literal["none", "diagonal"]


class Process(Context, total=False):
    """Of gp.GP: ``frg_gp_opts``."""

    device: str | None
    mean: str
    reml: bool
    profile_scale: bool
    priors: str | None
    prior_jacobian: bool
    preset: Literal["none", "gpytorch", "botorch", "sklearn"]
    precision: Literal["f64", "f32", "mixed"]
    storage: Literal["auto", "full", "packed"]
    auto_promote: bool
    accuracy: float
    jitter: Literal["relative", "gpytorch", "none"]
    nan: Literal["error", "mask"]


class ProcessFit(TypedDict, total=False):
    """Of gp.GP.fit: ``frg_gp_fit_opts``."""

    optimizer: Literal["auto", "ai", "lbfgsb", "adam"]
    max_iter: int
    tol: float
    learning_rate: float
    starts: int
    standardize: bool
    standard_errors: bool
    max_evaluations: int


class _Alignment(Context, total=False):
    """What every function that aligns takes."""

    device: str | None
    mode: Literal["auto", "sampled", "exact", "landmark", "vertex"]
    anneal: Literal["progress", "iter", "none"]
    max_inner: int
    marginal_tol: float
    mass: float
    reference: Literal["counting", "product"]
    scale: Literal["fixed", "batch_max", "none"]
    sampling: Literal["systematic", "multinomial"]
    n_start: int
    fine_steps: int
    polish: bool
    round: bool
    polish_tol: float
    polish_passes: int
    cost_store: Literal["auto", "f32", "u16", "u16r", "fly", "f64"]
    rank: int
    lr_max_iter: int
    lr_dykstra_max_iter: int
    preset: Literal["none", "torchgw"]
    store_plan: bool
    diag_exact: bool
    auto_store: bool
    start_from: Literal["auto", "product", "profiles", "vertex"]
    dtype: Literal["auto", "f32", "f64"]


class _Points(TypedDict, total=False):
    """What those of them take whose distances may be of points or graphs, and that may have a cost for each pair."""

    k_clamp: bool
    stitch: bool
    cache_rows: int
    landmark_metric: Literal["l2", "lower", "upper", "mid"]
    lazy: bool
    scale_linear: Literal["none", "max"]


class _Named(TypedDict, total=False):
    """What TorchGW has other names for."""

    anchors: int
    damping: float
    min_iter: int
    rho_source: float
    rho_target: float
    lambda_ema_beta: float
    multiscale: Literal["auto", "on", "off"]
    n_coarse: int


class Align(_Alignment, _Points, _Named, total=False):
    """Of gw.align: ``frg_gw_opts``."""

    k: int
    landmarks: int
    linear_weight: float
    distance: Literal["auto", "landmark", "dijkstra", "precomputed", "euclidean", "matrix", "graph"]
    epsilon: float
    max_iter: int
    tol: float


class Sampled(_Alignment, _Points, total=False):
    """Of gw.sampled_gw, beside TorchGW's names."""

    progress: Any


class Sinkhorn(Unseeded, total=False):
    """Of gw.sinkhorn, beside POT's names."""

    device: str | None
    cost_store: Literal["auto", "f32", "u16", "u16r", "fly", "f64"]
    domain: Literal["auto", "log", "kernel"]
    kernel_store: Literal["auto", "f32", "bf16"]
    accel: Literal["none", "momentum"]
    rho_source: float
    rho_target: float
    reference: Literal["counting", "product"]
    mass: float
    round: bool
    auto_store: bool


class Transport(Sinkhorn, total=False):
    """Of gw.transport: ``frg_sinkhorn_opts``."""

    epsilon: float
    tol: float
    max_iter: int


class Barycenter(Unseeded, total=False):
    """Of gw.barycenter: ``frg_barycenter_opts``."""

    epsilon: float
    max_iter: int
    tol: float
    max_outer: int
    outer_tol: float
    max_inner: int


class Qr(TypedDict, total=False):
    """Of linalg.qr: ``frg_qr_opts``."""

    method: Literal["auto", "householder", "cholesky", "vendor"]
    verify: Literal["none", "probe", "full"]
    ortho_tol: float
    threads: int
    memory_limit: int | str


class SoapOfTorch(Context, total=False):
    """Of torch.SOAP: ``frg_soap_opts``, and other packages' names; the defaults are the profile's."""

    weight_decay_method: str
    nesterov: bool
    correct_bias: bool
    correct_shampoo_beta_bias: bool | None
    max_update_rms: float
    normalize_update: bool
    trace_normalization: bool
    denom_floor: float
    precondition_frequency: int | Callable[[int], int] | list[tuple[int, int]]
    precondition_warmup_steps: int
    adam_warmup_steps: int
    stagger: bool
    refresh_async: bool
    power_iter_steps: int
    use_eigh: bool
    use_adaptive_criteria: bool
    adaptive_tolerance: float
    adaptive_scope: Literal["parameter", "factor"]
    adaptive_form: Literal["diagonal", "offdiagonal"]
    use_kl_shampoo: bool
    kl_init: Literal["reference", "unit"]
    sort_when: Literal["before_qr", "after_qr"]
    moment2_order: Literal["follow", "rank", "rotate"]
    order: Literal["grad_first", "update_first"]
    warmup_v: Literal["keep", "reset", "rotate"]
    moment1_basis: Literal["auto", "eigen", "original"]
    qr_method: Literal["auto", "householder", "cholesky", "vendor"]
    ridge_c: float
    ortho_tol: float
    nonfinite: Literal["skip", "error", "propagate"]
    precondition_1d: bool
    max_precond_dim: int | None
    block_dim: int
    merge_dims: bool
    merge_rule: Literal["left", "fan_in", "stacked"]
    stochastic_rounding: bool
    rounding_seed: int
    adaptive_update_tolerance: float
    normalize_grads: bool
    normalize_gradient: bool
    max_precondition_dim: int
    use_batched_qr: bool | None
    batched_qr_num_streams: int | None
    stream_list: Any
    fp32_matmul_prec: Literal["highest", "high", "medium"]
    qr_fp32_matmul_prec: Literal["highest", "high", "medium"]
    data_format: str


class Soap(SoapOfTorch, total=False):
    """Of soap.SOAP."""

    maximize: bool
