"""Peers on exact Gaussian processes: python gp_peers.py [--job step|fit|invquad|factor|batch] [--out FOLDER] [N ...]

gpytorch: stock model, Cholesky path. tensors: logdet and quadratic form as one autograd function on plain tensors
(backward by the inverse from the Cholesky factor), the least that torch needs. sklearn (step, f64): value and
gradient of GaussianProcessRegressor, which takes three parameters and no mean.

Model and starts are GPyTorch's defaults: scale * RBF + noise above 1e-4 + constant mean, softplus of 0. `fit` is 50
steps of Adam with learning rate 0.1 and prints the value and parameters it ends at. `factor` is the dense value without the backward. `batch` is 200 processes at once,
in GPyTorch's batch mode and as 200 plain steps in a row (gpytorch_loop); seconds are of all 200. FOLDER receives the inputs as
gp_x.npy and gp_y.npy, for bench_gp --data; a problem is their first N rows.
"""
import common
import argparse
import pathlib

import gpytorch
import numpy as np
import torch

torch.set_num_threads(common.THREADS)
DIMS = 5
MEMBERS = 200


def inputs(rows):
    rng = np.random.default_rng(0)
    x = rng.random((rows, DIMS))
    return x, np.sin(2 * np.pi * x).sum(1) / DIMS**0.5 + 0.1 * rng.normal(size=rows)


def stock_model(x, y):
    shape = x.shape[:-2]

    class Model(gpytorch.models.ExactGP):
        def __init__(self, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean(batch_shape=shape)
            rbf = gpytorch.kernels.RBFKernel(batch_shape=shape)
            self.covar_module = gpytorch.kernels.ScaleKernel(rbf, batch_shape=shape)

        def forward(self, at):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(at), self.covar_module(at))

    likelihood = gpytorch.likelihoods.GaussianLikelihood(batch_shape=shape).to(x.dtype)
    model = Model(likelihood).to(x.dtype).train()
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    return model, lambda: -mll(model(x), y)


def stock(x, y):
    model, loss = stock_model(x, y)

    def run():
        with gpytorch.settings.fast_computations(False, False, False), gpytorch.settings.max_cholesky_size(10**9):
            model.zero_grad()
            value = loss()
            value.sum().backward()
        return {"log_likelihood": -value.flatten()[0].item() * y.shape[-1]}

    return run


def stock_batch(x, y):
    return stock(x.expand(MEMBERS, *x.shape).contiguous(), y.expand(MEMBERS, *y.shape).contiguous())


def stock_loop(x, y):
    one = stock(x, y)

    def run():
        for _ in range(MEMBERS):
            result = one()
        return result

    return run


def stock_fit(x, y):
    def run():
        model, loss = stock_model(x, y)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        with gpytorch.settings.fast_computations(False, False, False), gpytorch.settings.max_cholesky_size(10**9):
            for _ in range(50):
                optimizer.zero_grad()
                value = loss()
                value.backward()
                optimizer.step()
            value = loss()
        kernel = model.covar_module
        ends = [kernel.outputscale, kernel.base_kernel.lengthscale, model.likelihood.noise, model.mean_module.constant]
        return {"log_likelihood": -value.item() * len(y), "parameters": [float(f"{e.item():.10g}") for e in ends]}

    return run


class InvQuadLogdet(torch.autograd.Function):
    @staticmethod
    def forward(ctx, k, r):
        factor = torch.linalg.cholesky(k)
        a = torch.cholesky_solve(r.unsqueeze(-1), factor).squeeze(-1)
        ctx.save_for_backward(factor, a)
        return (r * a).sum() + 2 * factor.diagonal().log().sum()

    @staticmethod
    def backward(ctx, grad):
        factor, a = ctx.saved_tensors
        return grad * (torch.cholesky_inverse(factor) - torch.outer(a, a)), 2 * grad * a


def tensor_model(x, y):
    raw = torch.zeros(4, dtype=x.dtype, requires_grad=True)

    def loss():
        e = torch.nn.functional.softplus(raw)
        z = x / e[0]
        k = e[1] * torch.exp(-0.5 * torch.cdist(z, z) ** 2) + (e[2] + 1e-4) * torch.eye(len(y), dtype=x.dtype)
        return 0.5 * (InvQuadLogdet.apply(k, y - raw[3]) / len(y) + np.log(2 * np.pi))

    return raw, loss


def tensors(x, y):
    raw, loss = tensor_model(x, y)

    def run():
        raw.grad = None
        value = loss()
        value.backward()
        return {"log_likelihood": -value.item() * len(y)}

    return run


def tensors_fit(x, y):
    def run():
        raw, loss = tensor_model(x, y)
        optimizer = torch.optim.Adam([raw], lr=0.1)
        for _ in range(50):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
        return {"log_likelihood": -loss().item() * len(y)}

    return run


def dense_inputs(x, y):
    _, loss = tensor_model(x, y)
    z = x / np.log(2.0)
    k = np.log(2.0) * torch.exp(-0.5 * torch.cdist(z, z) ** 2)
    k += (np.log(2.0) + 1e-4) * torch.eye(len(y), dtype=x.dtype)
    return k.requires_grad_(True), y.clone().requires_grad_(True)


def tensors_invquad(x, y):
    k, r = dense_inputs(x, y)

    def run():
        k.grad = r.grad = None
        value = -0.5 * InvQuadLogdet.apply(k, r)
        value.backward()
        return {"log_likelihood": value.item() - 0.5 * len(y) * np.log(2 * np.pi)}

    return run


def stock_invquad(x, y):
    k, r = dense_inputs(x, y)

    def run():
        k.grad = r.grad = None
        with gpytorch.settings.fast_computations(False, False, False), gpytorch.settings.max_cholesky_size(10**9):
            normal = gpytorch.distributions.MultivariateNormal(torch.zeros_like(r), k)
            value = normal.log_prob(r)
            value.backward()
        return {"log_likelihood": value.item()}

    return run


def stock_factor(x, y):
    k, r = (v.detach() for v in dense_inputs(x, y))

    def run():
        with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False), \
                gpytorch.settings.max_cholesky_size(10**9):
            return {"log_likelihood": gpytorch.distributions.MultivariateNormal(torch.zeros_like(r), k).log_prob(r).item()}

    return run


def tensors_factor(x, y):
    k, r = (v.detach() for v in dense_inputs(x, y))

    def run():
        factor = torch.linalg.cholesky(k)
        z = torch.linalg.solve_triangular(factor, r.unsqueeze(-1), upper=False)
        return {"log_likelihood": -0.5 * (z.square().sum().item() + len(r) * np.log(2 * np.pi))
                - factor.diagonal().log().sum().item()}

    return run


def sklearn_step(x, y):
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    if x.dtype != torch.float64:
        return None
    start = float(np.log(2.0))
    kernel = ConstantKernel(start) * RBF(start) + WhiteKernel(start + 1e-4)
    model = GaussianProcessRegressor(kernel, alpha=0, optimizer=None).fit(x.numpy(), y.numpy())
    return lambda: {"log_likelihood": model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True)[0]}


JOBS = {"step": {"gpytorch": stock, "tensors": tensors, "sklearn": sklearn_step},
        "fit": {"gpytorch": stock_fit, "tensors": tensors_fit},
        "invquad": {"gpytorch": stock_invquad, "tensors": tensors_invquad},
        "factor": {"gpytorch": stock_factor, "tensors": tensors_factor},
        "batch": {"gpytorch": stock_batch, "gpytorch_loop": stock_loop}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", choices=JOBS, default="step")
    parser.add_argument("--dtype", choices=("f64", "f32"))
    parser.add_argument("--peer")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("sizes", type=int, nargs="*", default=[50, 100, 500, 1000, 2000, 5000])
    options = parser.parse_args()
    all_x, all_y = inputs(max(10_000, *options.sizes))  # the first rows do not depend on the sizes
    if options.out:
        np.save(options.out / "gp_x.npy", all_x)
        np.save(options.out / "gp_y.npy", all_y)
    for n in options.sizes:
        for name, dtype in (("f64", torch.float64), ("f32", torch.float32)):
            for peer, make in JOBS[options.job].items():
                if (options.dtype or name) != name or (options.peer or peer) != peer:
                    continue
                run = make(torch.tensor(all_x[:n], dtype=dtype), torch.tensor(all_y[:n], dtype=dtype))
                if run is None:
                    continue
                long = n > 500 or options.job == "batch"
                repeats = 1 if n > 2000 else 3 if long or options.job == "fit" else 20
                once = options.job == "fit" and long  # a fit of seconds warms itself
                seconds, result = common.best_of(run, 1 if once else repeats, warm=not once)
                common.report(bench="gp", job=options.job, n=n, d=DIMS, dtype=name, peer=peer,
                              seconds=round(seconds, 6), **result)


if __name__ == "__main__":
    main()
