"""What comes in wrong: taken as it is meant, or refused by the name of the argument; forks, exits, interpreters."""

import copy
import ctypes
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import warnings

import numpy as np

import fourge.anndata
from fourge import _arrays, _fourge, errors, fe, gp, gw, linalg, soap

N = 40
RNG = np.random.default_rng(0)
Y, X, F = RNG.normal(size=N), RNG.normal(size=N), np.arange(N) % 5
P = RNG.normal(size=(20, 2))
KERNEL = "1*rbf(l=1) + noise(0.1)"


def coef(**columns):
    return fe.feols("y ~ x | f", {"y": Y, "x": X, "f": F, **columns}).coef()


class Taken(unittest.TestCase):
    def test_columns(self):
        want = coef()
        for name, columns in {
            "big-endian": {"x": X.astype(">f8"), "f": F.astype(">i8")},
            "strides": {"x": np.stack([X, X], 1)[:, 0], "f": np.repeat(F, 2)[::2]},
            "objects that are numbers": {"x": X.astype(object), "f": F.astype(object)},
            "words": {"f": np.array([f"firm {v}" for v in F], object)},
            "beyond int64": {"f": F.astype(np.uint64) + np.uint64(2**63)},
            "dates": {"f": F.astype("M8[D]")},
            "lists": {"x": list(X), "f": list(F)},
        }.items():
            with self.subTest(name):
                np.testing.assert_allclose(coef(**columns), want, rtol=1e-13)

    def test_missing_values(self):
        """However they are written, the row goes."""
        keep = np.arange(N) != 3
        want = fe.feols("y ~ x | f", {"y": Y[keep], "x": X[keep], "f": F[keep]}).coef()
        put = lambda v, what: np.array([what if i == 3 else x for i, x in enumerate(v.tolist())], object)
        dates = F.astype("M8[D]")
        dates[3] = "NaT"
        for name, columns in {
            "mask": {"x": np.ma.masked_array(X, ~keep)}, "mask of codes": {"f": np.ma.masked_array(F, ~keep)},
            "nan": {"x": np.where(keep, X, np.nan)}, "None": {"x": put(X, None)}, "None among codes": {"f": put(F, None)},
            "None among words": {"f": put(F.astype(str), None)}, "NaT": {"f": dates},
        }.items():
            with self.subTest(name):
                np.testing.assert_allclose(coef(**columns), want, rtol=1e-12)
        self.assertEqual(fe.feols("y ~ f", {"y": Y, "f": dates}).terms, ["(Intercept)", "f"])  # a number, as without NaT
        whole = F.astype(np.int64)
        whole[3] = np.iinfo(np.int64).min
        with self.assertRaisesRegex(errors.BadData, "column 'f', row 4: -9223372036854775808 stands for a missing value"):
            coef(f=whole)

    def test_arrays(self):
        want = gp.GP(P, P[:, 0], KERNEL).log_likelihood()
        for x in (np.asfortranarray(P), P.astype(">f8"), P[::-1][::-1], P.astype(object)):
            self.assertAlmostEqual(gp.GP(x, P[:, 0], KERNEL).log_likelihood(), want, places=12)
        read_only = P.copy()
        read_only.flags.writeable = False
        self.assertEqual(gp.GP(read_only, P[:, 0], KERNEL).log_likelihood(), want)
        self.assertEqual(gp.GP(P, np.c_[P[:, 0], P[:, 1]], KERNEL).sample(P[:3], 2).shape, (2, 3, 2))

    def test_copies(self):
        process = gp.GP(P, P[:, 0], KERNEL, threads=1)
        for other in (copy.deepcopy(process), pickle.loads(pickle.dumps(process))):
            np.testing.assert_array_equal(other.predict(P + 1), process.predict(P + 1))
        w = RNG.normal(size=(4, 3)).astype(np.float32)
        g = RNG.normal(size=(4, 3)).astype(np.float32)
        opt = soap.SOAP({"w": w}, lr=0.1)
        opt.step({"w": g})
        other = pickle.loads(pickle.dumps(opt))
        opt.step({"w": g})
        other.step({"w": g})
        np.testing.assert_array_equal(other.param_groups[0]["params"][0], w)
        self.assertIsNot(other.param_groups[0]["params"][0], w)


class Sparse:
    """As much of a SciPy matrix as is looked at."""

    shape = 20, 5

    def tocsr(self):
        return self


class Tensor(ctypes.Structure):
    """DLTensor; the manager and the deleter behind it are NULL."""

    _fields_ = [("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("index", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


KEPT = []  # what the capsules describe


def tensor(a, kind, index):
    """A capsule of a float64 array that says that it lies on that device."""
    shape = (ctypes.c_int64 * a.ndim)(*a.shape)
    described = Tensor(a.ctypes.data, kind, index, a.ndim, 2, 64, 1, shape)
    KEPT.extend((a, shape, described))
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(ctypes.addressof(described), b"dltensor", None)


def qr_of(capsule):
    q = np.empty((2, 2))
    _fourge.qr(_arrays.context({}), [(capsule, q, np.empty((2, 2)))], {})
    return q


class OnDevice:
    """As much of a tensor on another device as is looked at."""

    device, dtype = "cuda:0", "torch.float32"

    def detach(self):
        return self

    def __dlpack__(self, **_):
        raise BufferError("the memory is the device's")

    def __dlpack_device__(self):
        return 2, 0


class OnCuda:
    """An array of a library that has CUDA's interface and would copy itself for NumPy."""

    __cuda_array_interface__ = {"shape": (20,), "typestr": "<f8", "data": (4096, False), "version": 3}

    def __len__(self):
        return 20

    def __array__(self, *_, **__):
        raise AssertionError("copied unasked")


class Refused(unittest.TestCase):
    """(what the message has to say, the call)"""

    def check(self, calls):
        warnings.simplefilter("ignore")
        for says, call in calls:
            with self.subTest(says):
                with self.assertRaisesRegex((TypeError, ValueError, KeyError, NotImplementedError, OSError, errors.NoDevice), says):
                    call()

    def test_fe(self):
        data = {"y": Y, "x": X, "f": F}
        fit = lambda fml="y ~ x | f", d=data, **o: fe.feols(fml, d, **o)
        read_only = X.copy()
        read_only.flags.writeable = False
        self.check([
            ("fml", lambda: fit(5)), ("data", lambda: fit(d=None)), ("data", lambda: fit(d=[1, 2])), ("vcov", lambda: fit(vcov=3)),
            ("vcov", lambda: fit(vcov={})), ("weights=3", lambda: fit(weights=3)),
            ("tolerance", lambda: fit(tolerance=1)), ("tol='1'", lambda: fit(tol="1")), ("threads='two'", lambda: fit(threads="two")),
            ("threads", lambda: fit(threads=-1)), ("max_iter=", lambda: fit(max_iter=2**70)),
            ("'x'.*complex", lambda: coef(x=X + 0j)), ("'x'.*axis", lambda: coef(x=1.0)), ("lengths", lambda: coef(x=X[1:])),
            ("no column 'f'.*there are", lambda: fit(d={"y": Y, "x": X})), ("no column 'firm'.*did you mean 'firms'", lambda: fit("y ~ x | firm", {**data, "firms": F})),
            ("cannot open 'data.csv'", lambda: fit(d="data.csv")), ("data: .*names of columns", lambda: fit(d=np.ones((3, 2)))),
            ("there is no option 'keep_effect'; did you mean 'keep_effects'|'keep_effect'", lambda: fit(keep_effect=True)),
            ("there is no option 'zzz'; there are .*tol", lambda: fit(zzz=1)), ("method='lu': expected one of 'auto', 'cg'.*'map'", lambda: fit(method="lu")),
            ("keep_effects='no': expected True or False", lambda: fit(keep_effects="no")), ("block=4294967297: .*32 bits", lambda: fit(block=2**32 + 1)),
            ("weights_type='x'.*aweights", lambda: fit(weights_type="x")), ("split=3", lambda: fit(split=3)), ("ssc: 'adjust'", lambda: fit(ssc={"adjust": True})),
            ("CRV5", lambda: fit(vcov={"CRV5": "f"})), ("x: .*complex", lambda: fe.demean(X + 0j, F)),
            ("x: .*NoneType", lambda: fe.demean(None, F)), ("x: .*shape", lambda: fe.demean(np.array(1.0), F)),
            ("x: .*masked", lambda: fe.demean(np.ma.masked_array(X, X > 0), F)), ("x: ", lambda: fe.demean(np.array(["a"] * N), F)),
            ("fixed effects", lambda: fe.demean(X, F * 0.5)), ("weights: ", lambda: fe.demean(X, F, "w")),
            ("fixed effects: row 1 .*missing", lambda: fe.demean(X, np.array(["a", None] * (N // 2), object))),
            ("out: .*writable", lambda: fe.demean(X, F, out=read_only)), ("out: ", lambda: fe.demean(X, F, out=np.zeros(3))),
            ("b: .*complex", lambda: fe.lsmr(((2, 1), [0, 1, 2], [0, 0], [1.0, 1.0]), np.ones(2) * 1j)),
        ])

    def test_covariances(self):
        for vcov in ({}, {"CRV1": "f", "CRV3": "f"}):
            with self.subTest(vcov), self.assertRaisesRegex(ValueError, "expected one covariance"):
                fe.feols("y ~ x | f", {"y": Y, "x": X, "f": F}, vcov=vcov)
        data = {"y": Y, "x": X, "f": F}
        for says, vcov, kwargs in (("time_id", "DK", {"lag": 2}), ("panel_id", "NW", {"time_id": "f"}), ("lags", "DK", {"lags": 2}),
                                   ("vcov_kwargs", "iid", {"lag": 2}), ("nw takes 2 variables", "NW", None), ("lag", "dk=f,x", None)):
            with self.subTest(vcov, kwargs=kwargs), self.assertRaisesRegex((errors.Unsupported, errors.BadArgument), says):
                fe.feols("y ~ x | f", data, vcov=vcov, vcov_kwargs=kwargs)
        fit = fe.feols("y ~ x | f", {"y": Y, "x": X, "f": F}, vcov="IID")
        self.assertEqual(fit.se()[0], fe.feols("y ~ x | f", {"y": Y, "x": X, "f": F}).se()[0])

    def test_rows_of_demean(self):
        x, codes = np.ones((6, 2)), np.zeros((6, 1), int)
        for says, call in (("^fixed_effects: expected a row for each of the 6 of x, got 5", lambda: fe.demean(x, codes[:5])),
                           ("^weights: expected a row for each of the 6 of x, got 1", lambda: fe.demean(x, codes, 2.0))):
            with self.assertRaisesRegex(errors.BadArgument, says):
                call()

    def test_devices(self):
        """A tensor on a device is refused by the name of the argument and that of the device."""
        self.check([
            ("x: .*cuda:0", lambda: gp.GP(OnDevice(), P[:, 0], KERNEL)), ("y: .*cuda:0", lambda: gw.align(P, OnDevice(), k=3)),
            ("column 'x' is on cuda:0.*cpu", lambda: coef(x=OnDevice())), ("x: .*cuda:0", lambda: fe.demean(OnDevice(), F)),
            ("cost: .*cuda:0", lambda: gw.transport(OnDevice())), ("A: .*cuda:0", lambda: linalg.qr(OnDevice())), ("b: .*cuda:0", lambda: fe.lsmr(((2, 1), [0, 1, 2], [0, 0], [1.0, 1.0]), OnDevice())),
            ("w: .*OnDevice", lambda: soap.SOAP({"w": OnDevice()})), ("gradient", lambda: soap.SOAP([np.zeros((2, 2), np.float32)]).step([OnDevice()])),
        ])

    def test_arrays_on_cuda(self):
        """Nobody asks an array in CUDA's memory for a copy."""
        self.check([(f"{name}: OnCuda in CUDA's memory", call) for name, call in (
            ("out", lambda: fe.demean(X, F, out=OnCuda())), ("fixed_effects", lambda: fe.demean(X, OnCuda())), ("weights", lambda: fe.demean(X, F, OnCuda())),
            ("weights", lambda: gw.sinkhorn(OnCuda(), np.full(20, 0.05), np.ones((20, 20)), 0.1)),
        )])

    def test_tensors_on_devices(self):
        """Capsules of DLPack: the device is read, memory of the host that a driver pinned is the CPU's, and what is elsewhere is refused
        by name before anybody looks at its address."""
        ok, elsewhere = (1, 3, 11), ((2, 1, "cuda:1"), (13, 0, "cuda:0"), (4, 2, "opencl:2"))
        for kind in ok:
            with self.subTest(kind=kind):
                self.assertAlmostEqual(abs(qr_of(tensor(np.array([[3.0, 0.0], [4.0, 5.0]]), kind, 0))[0, 0]), 0.6)
        for kind, index, says in elsewhere:
            with self.subTest(kind=kind), self.assertRaisesRegex(errors.NoDevice, f"lies on {says}"):
                qr_of(tensor(np.eye(2), kind, index))
        for kind in (8, 99):
            with self.subTest(kind=kind), self.assertRaisesRegex(TypeError, f"device kind {kind}"):
                qr_of(tensor(np.eye(2), kind, 0))

    def test_hints_speak_python(self):
        """What the command line is told to write is written as an argument; the place is in the message."""
        x = P.copy()
        x[3, 1] = np.nan
        for says, call in (
            ('nan="mask"', lambda: gp.GP(P, np.where(np.arange(20) == 3, np.nan, P[:, 0]), KERNEL)), ("row 4, column 2", lambda: gw.align(x, P, k=3)),
            ("precision|dtype|row", lambda: gp.GP(x, P[:, 0], KERNEL)), (r"help\(\)", lambda: fe.feols("y ~ x", {"y": Y, "x": X}, level=2.0)),
        ):
            with self.subTest(says), self.assertRaisesRegex(errors.Error, says) as caught:
                call()
            self.assertNotIn("--", str(caught.exception))
        for hint in ("raise --memory-limit or fill_cap", "use --dtype mixed or f32, or another device", "see --help for the allowed values",
                     "write it as rbf.l=gamma(3,6); see fourge gp --help for the densities", "raise --max-iter or leave --method at auto"):
            self.assertNotIn("--", str(errors.from_status("FRG_BAD_ARG", "m", "FRG-FE-001", "", hint)))

    def test_options_that_cannot_act(self):
        """Each raises, or says what is done instead: once, and not where its value asks for just that."""
        fit = lambda **o: fe.feols("y ~ x | f", {"y": Y, "x": X, "f": F}, **o)
        elsewhere = types.SimpleNamespace(kind="lsmr", fixef_atol=1e-6, fixef_btol=1e-6, fixef_maxiter=9, backend="torch", device="cuda",
                                          precision="float64", local_size=None)
        for kind, says, options in (
            (errors.NoDevice, "torch_cuda.*device", {"demeaner_backend": "torch_cuda"}), (errors.NoDevice, "cupy32", {"demeaner_backend": "cupy32"}),
            (errors.NoDevice, "cuda", {"demeaner": elsewhere}),
            (ValueError, "expected one of.*'numba'", {"demeaner_backend": "numbra"}), (TypeError, "MapDemeaner", {"demeaner": "rust"}),
            (ValueError, "demeaner has a tolerance", {"demeaner": elsewhere, "fixef_tol": 1e-3}),
            (errors.Unsupported, "columns of the data alone", {"context": {"f": len}}), (errors.Unsupported, "ref=level", {"i_ref1": 0}),
            (errors.Unsupported, "1", {"drop_intercept": True}), (errors.Unsupported, "bootstrap", {"reps": 100}),
            (errors.BadArgument, "cond_limit", {"cond_limit": 1e8}), (errors.BadArgument, "precond", {"method": "lsmr", "precond": "diag"}),
            (errors.BadArgument, "precond", {"method": "direct", "precond": "off"}), (errors.BadArgument, "mixed", {"method": "direct", "dtype": "mixed"}),
        ):
            with self.subTest(options), self.assertRaisesRegex(kind, says), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fit(**options)
        for call in (lambda: fe.demean(X, F, dof="exact"), lambda: fe.lsmr(((2, 1), [0, 1, 2], [0, 0], [1.0, 1.0]), np.ones(2), seed=1)):
            with self.assertRaisesRegex(TypeError, "takes no"):
                call()
        small = types.SimpleNamespace(**{**vars(elsewhere), "device": "auto", "local_size": 5, "precision": "float32"})
        for key, value in {"demeaner_backend": "numba", "copy_data": True, "store_data": False, "lean": True, "use_compression": True,
                           "solver": "scipy.linalg.solve", "demeaner": small}.items():
            with self.subTest(key), warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                _arrays._warned.clear()
                fit(**{key: value})
                fit(**{key: value})
                self.assertEqual(sum(str(w.message).startswith(key) for w in seen), 1)
                self.assertEqual(sum("window" in str(w.message) for w in seen), key == "demeaner")
                self.assertTrue(all(w.filename == __file__ for w in seen))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fit(copy_data=False, store_data=True, lean=False, use_compression=False, drop_intercept=False, context=None)

    def test_names_of_the_peers(self):
        """pyfixest's options by pyfixest's names."""
        data = {"y": Y, "x": X, "f": F, "w": np.abs(X) + 1, "single": np.arange(N) // 2 * (np.arange(N) > 0) + 100 * (np.arange(N) == 0)}
        fit = lambda fml="y ~ x | f", **o: fe.feols(fml, data, **o).se()
        np.testing.assert_array_equal(fit(), fit(vcov=None, demeaner_backend="numba", copy_data=True, fixef_tol=None, seed=None, lean=False))
        np.testing.assert_array_equal(fit(tol=1e-6, max_iter=50), fit(fixef_tol=1e-6, fixef_maxiter=50))
        np.testing.assert_array_equal(fit(weights="w", weights_kind="analytic"), fit(weights="w", weights_type="aweights"))
        np.testing.assert_array_equal(fit(vcov="cluster=f"), fit(vcov="~f"))
        np.testing.assert_array_equal(fit(ssc="adj=false,fixef=none"), fit(ssc={"k_adj": False, "k_fixef": "none"}))
        singles = lambda **o: fe.feols("y ~ x | single", data, **o).nobs
        self.assertEqual((singles(), singles(fixef_rm="singleton"), singles(fixef_rm="none")), (N - 2, N - 2, N))
        demeaner = types.SimpleNamespace(kind="map", fixef_tol=1e-6, fixef_maxiter=50)
        np.testing.assert_array_equal(fit(tol=1e-6, max_iter=50), fit(demeaner=demeaner))
        with self.assertRaisesRegex(AttributeError, "quantreg.*pyfixest.demeaning"):
            fe.quantreg
        with self.assertRaisesRegex(AttributeError, "has no attribute 'nothing'"):
            fe.nothing
        self.assertEqual(fe.feols("y ~ x", np.rec.fromarrays([Y, X], names="y,x")).nobs, N)
        words = np.array(["a", "b", "c", "d", "e"], object)[F]
        np.testing.assert_array_equal(fe.demean(X, words)[0], fe.demean(X, F)[0])

    def test_gp(self):
        process = gp.GP(P, P[:, 0], KERNEL)
        self.check([
            ("x: .*complex", lambda: gp.GP(P + 0j, P[:, 0], KERNEL)), ("y: ", lambda: gp.GP(P, None, KERNEL)),
            ("kernel: .*scikit-learn", lambda: gp.GP(P, P[:, 0], 3)), ("columns", lambda: gp.GP(P, P[:, 0], KERNEL, columns="ab")),
            ("noise_groups", lambda: gp.GP(P, P[:, 0], "1*rbf", noise_groups=np.full(20, 0.5))),
            ("noise_variances: expected 20 values, got 3", lambda: gp.GP(P, P[:, 0], "1*rbf", noise_variances=np.ones(3))),
            ("noise_variances: expected 20 values, got 1", lambda: gp.GP(P, P[:, 0], "1*rbf", noise_variances=0.1)),
            ("mean_values are given", lambda: gp.GP(P, P[:, 0], KERNEL, mean_values=P[:, 1])),
            ("theta: expected 4 values, got 1", lambda: setattr(process, "theta", [1.0])),
            ("theta", lambda: setattr(process, "theta", "abc")), ("count", lambda: process.sample(P, -1)),
            ("NoneType", lambda: process.save(None)), ("NoneType", lambda: gp.load(None)), ("cannot open '/nowhere'", lambda: gp.load(b"/nowhere")),
        ])

    def test_gw(self):
        found = gw.align(P, P, k=3, max_iter=2)
        graph = gw.Graph.knn(P, 3)
        self.check([
            ("x: .*complex", lambda: gw.align(P + 0j, P)), ("y: ", lambda: gw.align(P, None)), ("x: .*shape", lambda: gw.align(P[None], P)),
            ("weight", lambda: gw.align(P, P, k=3, a=-np.ones(20))), ("a: ", lambda: gw.align(P, P, k=3, a=np.ones(20) * 1j)),
            ("labels", lambda: found.labels([1])), ("k is 0", lambda: found.top(0)), ("k is -1", lambda: found.top(-1)),
            ("threshold", lambda: found.sparse(float("nan"))), ("side", lambda: found.distances(5)), ("rows", lambda: found.rows(-1, 2)),
            ("x: a sparse matrix.*toarray", lambda: gw.align(Sparse(), P)), ("a: expected an AnnData.*ndarray", lambda: fourge.anndata.align(P, P)),
            ("device", lambda: gw.sampled_gw(P, P, k=3, device="cuda")), ("sources", lambda: graph.paths([0.5])), ("node 99", lambda: graph.paths([99])), ("count", lambda: graph.landmarks(-1)),
            ("spaces", lambda: gw.barycenter(None, 3)), ("size", lambda: gw.barycenter([P @ P.T], 0)),
            ("queries", lambda: gw.joint_embedding(P, [(P, 3)], k=3)),
        ])

    def test_soap(self):
        w = np.zeros((3, 2), np.float32)
        step = lambda g: soap.SOAP({"w": w}).step([g])
        read_only = w.copy()
        read_only.flags.writeable = False
        self.check([
            ("w: .*writable", lambda: soap.SOAP({"w": read_only})), ("w: ", lambda: soap.SOAP({"w": w.astype(">f4")})),
            ("twice", lambda: soap.SOAP([w, w])), ("gradient 0", lambda: step(w.astype(">f4"))), ("gradient 0", lambda: step([1, 2])),
            ("gradient", lambda: step(w.astype(int))), ("gradient of 'w'", lambda: step(w[:2])), ("shares memory", lambda: step(w)),
            ("w2 shares memory", lambda: soap.SOAP({"w": w, "w2": w[1:]})),
            ("gradients", lambda: soap.SOAP([w]).step([])),
        ])


def run(code, *arguments):
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=100, check=False)


class Processes(unittest.TestCase):
    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork")
    def test_fork_after_use(self):
        """The child computes the same bits by one thread; what the parent made with two is refused, not waited for."""
        x = np.random.default_rng(1).normal(size=(400, 3))
        process = gp.GP(x, x[:, 0], KERNEL, threads=2)
        one = gp.GP(x, x[:, 0], KERNEL, threads=1)
        want = process.log_likelihood(), one.log_likelihood()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            signal.alarm(60)
            code = 1
            try:
                again = gp.GP(x, x[:, 0], KERNEL, threads=2).log_likelihood(), one.log_likelihood()
                process.log_likelihood()
            except RuntimeError as e:
                code = 0 if "fork" in str(e) and again == want else 2
            os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(process.log_likelihood(), want[0])

    def test_exit_with_a_running_thread(self):
        """A daemon's call is stopped before the libraries are taken down, without a word; others are waited for."""
        code = ("import sys, threading, time, numpy as np\nfrom fourge import gw\nx = np.random.default_rng(0).normal(size=(600, 3))\n"
                "n = int(sys.argv[1])\n"
                "work = lambda: gw.align(x, x, distance='euclidean', max_iter=n, min_iter=n, tol=0)\n"
                "threading.Thread(target=work, daemon=n > 1000).start()\ntime.sleep(0.5)\nprint('ends')\n")
        for steps in ("20", "1000000000"):
            done = run(code, steps)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "ends\n", ""))

    def test_two_interpreters(self):
        code = ("try:\n    import _xxsubinterpreters as s\nexcept ImportError:\n    print('done'); raise SystemExit\n"
                "import sys\nfrom fourge import _fourge\ni = s.create()\n"
                "s.run_string(i, 'import sys; sys.path[:] = ' + repr(sys.path) + '''\nfrom fourge import _fourge\n"
                "try:\n    _fourge.Context({'threads': -1}, None)\nexcept ValueError:\n    _fourge.Context({'threads': 1}, None)\n''')\n"
                "s.destroy(i)\n_fourge.Context({'threads': 1}, None)\nprint('done')\n")
        done = run(code)
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done.stderr)

    def test_paths(self):
        process = gp.GP(P, P[:, 0], KERNEL)
        with tempfile.TemporaryDirectory() as folder:
            for path in (pathlib.Path(folder, "a"), os.fsencode(os.path.join(folder, "b"))):
                process.save(path)
                np.testing.assert_array_equal(gp.load(path).predict(P), process.predict(P))

    def test_four_fits_of_one_process(self):
        """Each waits for the other; the callback is called out of all of them."""
        calls = []
        process = gp.GP(P, P[:, 0], KERNEL, progress=lambda *a: calls.append(a) or False)
        threads = [threading.Thread(target=process.fit, kwargs={"max_iter": 3}) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertTrue(np.isfinite(process.log_likelihood()))


if __name__ == "__main__":
    unittest.main()
