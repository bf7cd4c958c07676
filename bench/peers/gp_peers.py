"""Peers on exact Gaussian processes: python gp_peers.py [--job step|value|fit|invquad|factor|batch] [--device cpu|cuda]
       [--out FOLDER] [N ...]

gpytorch: stock model, Cholesky path. tensors: logdet and quadratic form as one autograd function on plain tensors
(backward by the inverse from the Cholesky factor, the scheme of GPyTorch's pull request 2682), the least that torch needs.
cholesky: the same tensors with torch's own backward through the Cholesky factor. sklearn (step, f64, cpu): value and
gradient of GaussianProcessRegressor, which takes three parameters and no mean.

Model and starts are GPyTorch's defaults: scale * RBF + noise above 1e-4 + constant mean, softplus of 0. `step` is value
and gradient, `value` its forward half, with what a backward would need kept. `fit` is 50
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


def stock(x, y, backward=True):
    model, loss = stock_model(x, y)

    def run():
        with gpytorch.settings.fast_computations(False, False, False), gpytorch.settings.max_cholesky_size(10**9):
            model.zero_grad()
            value = loss()
            if backward:
                value.sum().backward()
        return {"log_likelihood": -value.flatten()[0].item() * y.shape[-1]}

    return run


def stock_value(x, y):
    return stock(x, y, backward=False)


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


def through_cholesky(k, r):
    """r'K^-1 r + log |K| with torch's own backward."""
    factor = torch.linalg.cholesky(k)
    z = torch.linalg.solve_triangular(factor, r.unsqueeze(-1), upper=False)
    return z.square().sum() + 2 * factor.diagonal().log().sum()


def tensor_model(x, y, inv_quad_logdet):
    raw = torch.zeros(4, dtype=x.dtype, device=x.device, requires_grad=True)

    def loss():
        e = torch.nn.functional.softplus(raw)
        z = x / e[0]
        eye = torch.eye(len(y), dtype=x.dtype, device=x.device)
        k = e[1] * torch.exp(-0.5 * torch.cdist(z, z) ** 2) + (e[2] + 1e-4) * eye
        return 0.5 * (inv_quad_logdet(k, y - raw[3]) / len(y) + np.log(2 * np.pi))

    return raw, loss


def tensors(x, y, inv_quad_logdet=InvQuadLogdet.apply, backward=True):
    raw, loss = tensor_model(x, y, inv_quad_logdet)

    def run():
        raw.grad = None
        value = loss()
        if backward:
            value.backward()
        return {"log_likelihood": -value.item() * len(y)}

    return run


def tensors_value(x, y):
    return tensors(x, y, backward=False)


def cholesky(x, y):
    return tensors(x, y, through_cholesky)


def cholesky_value(x, y):
    return tensors(x, y, through_cholesky, backward=False)


def cholesky_fit(x, y):
    return tensors_fit(x, y, through_cholesky)


def tensors_fit(x, y, inv_quad_logdet=InvQuadLogdet.apply):
    def run():
        raw, loss = tensor_model(x, y, inv_quad_logdet)
        optimizer = torch.optim.Adam([raw], lr=0.1)
        for _ in range(50):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
        return {"log_likelihood": -loss().item() * len(y)}

    return run


def dense_inputs(x, y):
    z = x / np.log(2.0)
    k = np.log(2.0) * torch.exp(-0.5 * torch.cdist(z, z) ** 2)
    k += (np.log(2.0) + 1e-4) * torch.eye(len(y), dtype=x.dtype, device=x.device)
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

    if x.dtype != torch.float64 or x.device.type != "cpu":
        return None
    start = float(np.log(2.0))
    kernel = ConstantKernel(start) * RBF(start) + WhiteKernel(start + 1e-4)
    model = GaussianProcessRegressor(kernel, alpha=0, optimizer=None).fit(x.numpy(), y.numpy())
    return lambda: {"log_likelihood": model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True)[0]}


JOBS = {"step": {"gpytorch": stock, "cholesky": cholesky, "tensors": tensors, "sklearn": sklearn_step},
        "value": {"gpytorch": stock_value, "cholesky": cholesky_value, "tensors": tensors_value},
        "fit": {"gpytorch": stock_fit, "cholesky": cholesky_fit, "tensors": tensors_fit},
        "invquad": {"gpytorch": stock_invquad, "tensors": tensors_invquad},
        "factor": {"gpytorch": stock_factor, "tensors": tensors_factor},
        "batch": {"gpytorch": stock_batch, "gpytorch_loop": stock_loop}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", choices=JOBS, default="step")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
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
                x, y = (torch.tensor(v[:n], dtype=dtype, device=options.device) for v in (all_x, all_y))
                run = make(x, y)
                if run is None:
                    continue
                # a fit of more than 2000 points runs once, cold, as ours does
                repeats = 0 if options.job == "fit" and n > 2000 else 1 if n > 2000 else 3 if n > 500 or options.job in (
                    "fit", "batch") else 20
                figures, result = common.timed(run, repeats, common.waiter(options.device))
                common.report(bench="gp", job=options.job, n=n, d=DIMS, dtype=name, device=options.device, peer=peer,
                              **figures, **result)


if __name__ == "__main__":
    main()
