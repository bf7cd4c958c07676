"""Columns on a device demeaned in place; `python there_fe.py cuda|opencl` prints what failed, as there.py does."""

import contextlib
import ctypes
import os
import warnings

import numpy as np
from there import ByAttributes, ByInterface, library, on_asked, place, raises

from fourge import errors, fe

N = 300
RNG = np.random.default_rng(11)
CODES = np.column_stack([RNG.integers(0, 40, N), RNG.integers(0, 12, N)]).astype(np.int32)
WEIGHTS = RNG.random(N) + 0.1


def columns(*shape, dtype=np.float64):
    return RNG.standard_normal(shape).astype(dtype) + dtype(3)


def second_queue(driver):
    """Another queue of the driver's own device and context."""
    if driver.kind == "cuda":
        queue = ctypes.c_void_p()
        assert driver.lib.cuStreamCreate(ctypes.byref(queue), 1) == 0
        return queue
    device = ctypes.c_void_p()
    assert driver.lib.clGetCommandQueueInfo(driver.queue, 0x1091, ctypes.c_size_t(8), ctypes.byref(device), None) == 0  # CL_QUEUE_DEVICE
    return ctypes.c_void_p(driver.lib.clCreateCommandQueue(driver.context, device, ctypes.c_ulonglong(0), ctypes.byref(ctypes.c_int())))


@contextlib.contextmanager
def in_queue(driver, queue):
    kept, driver.queue = driver.queue, queue
    yield
    driver.queue = kept


class Memory:
    """Memory of the device with numbers in it, and views of it."""

    def __init__(self, driver, numbers, kind):
        self.driver, self.kind = driver, kind
        self.numbers, self.handle = numbers.copy(), driver.empty(numbers.nbytes)
        driver.write(self.handle, self.numbers)

    def view(self, like):
        """What lies there as `like`, a view of the numbers (None: all), lies in them."""
        like = self.numbers if like is None else like
        skipped = like.__array_interface__["data"][0] - self.numbers.__array_interface__["data"][0]
        on_cuda = self.driver.kind == "cuda"
        x = self.kind(self.driver, self.handle + skipped if on_cuda else self.handle, like, self.driver.queue)
        x.offset = skipped  # pyopencl's
        return x

    def read(self):
        got = np.empty_like(self.numbers)
        self.driver.read(self.handle, got)
        return got


#: Views of a matrix of 24 columns: all (more than a block), none, side by side, with gaps, column by column, one axis.  They begin
#: where a part of OpenCL's buffers may.
VIEWS = (lambda a: a, lambda a: a[:, :0], lambda a: a[:, :3], lambda a: a[16:, ::16] if a.itemsize == 4 else a[16:, ::8],
         lambda a: a.reshape(24, -1)[16:18].T, lambda a: a.reshape(-1)[128:][:N])


def in_place(driver, kind):
    """The bits of arrays of the host, whatever the layout, and nothing beside the columns is written; of one block of columns what is
    copied is less by the columns' bytes each way (by lsmr but for the sums of a look at their values)."""
    for dtype, method in ((np.float64, "auto"), (np.float32, "auto"), (np.float64, "lsmr")):
        for view in VIEWS:
            memory = Memory(driver, columns(N + 16, 24, dtype=dtype), kind)
            x = view(memory.numbers)
            codes, weights = (np.resize(a, (len(x), *a.shape[1:])) for a in (CODES, WEIGHTS))
            want = memory.numbers.copy()
            view(want)[...], report = fe.demean(x, codes, weights, device=driver.kind, method=method)
            there = memory.view(x)
            found, placed = fe.demean(there, codes, weights, out=there, method=method)
            assert found is there and np.array_equal(memory.read(), want), (dtype, x.shape, x.strides)
            assert all(placed[key] == report[key] for key in ("passes_on", "method", "iterations", "audit")), (placed, report)
            assert placed["passes_on"].startswith(driver.kind), placed["passes_on"]
            if 0 < x[0].size <= 8 and method == "auto":
                for key in ("device_bytes_in", "device_bytes_out"):
                    assert report[key] - placed[key] == x.nbytes, (key, report[key], placed[key], x.nbytes)


def as_on_the_host(driver, kind):
    """Both are within the bounds of their errors of the exact residual r*, || W^(1/2)(r - r*) || <= bound || W^(1/2)(x - mean) ||, and
    within the rounding of values below 8 and of what is taken out of them: 4 roundings each, and one of float32 at the end."""
    for dtype in (np.float64, np.float32):
        for codes in (CODES, CODES[:, :1]):
            x = columns(N, 3, dtype=dtype)
            host, report = fe.demean(x, codes, WEIGHTS, device="cpu")
            memory = Memory(driver, x, kind)
            there, weights = memory.view(None), place(driver, WEIGHTS, kind)
            _, placed = fe.demean(there, codes, weights, out=there)
            centred = x - np.average(x, axis=0, weights=WEIGHTS)
            size = np.sqrt(WEIGHTS @ centred**2)
            bound = np.nan_to_num(report["error_bound"]) + np.nan_to_num(placed["error_bound"])
            rounding = 2 * np.sqrt(WEIGHTS.sum()) * 8 * (4 * 2.0**-53 * np.sqrt(N) + (2.0**-24 if dtype == np.float32 else 0))
            assert np.all(np.sqrt(WEIGHTS @ (memory.read() - host).astype(float) ** 2) <= bound * size + rounding)
            assert all(placed["converged"]) and placed["status"] == "FRG_OK"


def beside(driver, kind):
    """Into an array of another library, whose own queue still has something to write there, and into one of the host."""
    x = columns(N, 2)
    want = fe.demean(x, CODES, device=driver.kind)[0]
    memory, other = Memory(driver, x, kind), Memory(driver, np.zeros((N, 2)), kind)
    queue, junk = second_queue(driver), np.ones((N, 2))
    there, out = memory.view(None), (ByInterface if driver.kind == "cuda" else ByAttributes)(driver, other.handle, x, queue)
    with in_queue(driver, queue):
        for _ in range(2000):  # a stand-in runs as many commands of other queues, by chance, as of the one that is waited for
            driver.write(other.handle, junk)
    assert fe.demean(there, CODES, out=out)[0] is out
    with in_queue(driver, queue):
        assert np.array_equal(other.read(), want)
    assert np.array_equal(memory.read(), x)
    host = np.zeros((N, 2), np.float32)
    assert fe.demean(there, CODES, out=host)[0] is host and np.array_equal(host, want.astype(np.float32))
    halves = Memory(driver, columns(N, 64), kind)  # columns side by side, in rows of one matrix
    left, right = halves.numbers[:, :2], halves.numbers[:, 32:34]
    fe.demean(halves.view(left), CODES, out=halves.view(right))
    assert np.array_equal(halves.read()[:, 32:34], fe.demean(left, CODES, device=driver.kind)[0])
    assert np.array_equal(halves.read()[:, :2], left)


def refused(driver, kind):
    memory = Memory(driver, columns(N + 32, 4), kind)
    whole = memory.numbers
    there = memory.view(whole[:N])
    other = "opencl" if driver.kind == "cuda" else "cuda"

    def demean(words, *given, error=errors.BadArgument, **more):
        raises(error, words, fe.demean, *given, **more)

    demean(f"device='{other}'", there, CODES, device=other)
    demean("x lies on", there, CODES, device="cpu")
    demean("expected (n,) or (n, p)", memory.view(whole.reshape(-1, 2, 2)), CODES)
    demean("fixed_effects: expected a row for each of the 332", memory.view(whole), CODES, out=memory.view(whole))
    demean("weights: expected 300 values", there, CODES, memory.view(whole[:, 0]), out=there)
    demean("out: expected float64 of shape (300, 4), as x, got float64 of shape (300, 3)", there, CODES, out=memory.view(whole[:N, :3]))
    demean("got float32", there, CODES, out=Memory(driver, np.zeros((N, 4), np.float32), kind).view(None))
    demean("out: expected a writable array of shape (300, 4)", there, CODES, out=np.zeros((4, N)))
    demean("a part of x lies in it", there, CODES, out=memory.view(whole[32:]))
    demean("its strides bring several", there, CODES, out=memory.view(np.broadcast_to(whole[0], (N, 4))))
    demean("its strides bring several", there, CODES, out=memory.view(np.lib.stride_tricks.sliding_window_view(whole.reshape(-1), 4)[:N]))
    demean("x: axis 0 runs backwards", memory.view(whole[N - 1 :: -1]), CODES, out=Memory(driver, whole[:N], kind).view(None))
    for method in ("direct", "map", "mlsmr"):
        demean("does not run on", there, CODES, out=there, method=method, error=errors.Unsupported)
    assert np.array_equal(memory.read(), whole)
    lost = Memory(driver, np.where(np.arange(N)[:, None] == 7, np.nan, columns(N, 10)), kind)
    demean("row 8", lost.view(None), CODES, out=lost.view(None), error=errors.BadData)
    assert np.array_equal(lost.read(), lost.numbers, equal_nan=True)
    demean("memory is not taken", there, memory.view(whole[:N]), out=there, error=TypeError)
    demean("is not taken", whole[:N], CODES, out=there, error=TypeError)
    demean("is not taken", whole[:N], CODES, memory.view(whole[:N, 0]), error=TypeError)


def given_back(driver, name):
    """Without out= an array of the library of x."""
    kind = library(driver, name)
    for x in (columns(N, 3, dtype=np.float32), columns(N)):
        want = fe.demean(x, CODES, WEIGHTS, device=driver.kind)[0]
        found = fe.demean(place(driver, x, kind), CODES, place(driver, WEIGHTS, kind))[0]
        assert type(found) is kind, type(found)
        got = np.empty(x.shape, x.dtype)
        driver.read(found.handle, got)
        assert np.array_equal(got, want)


def run(driver, kinds):
    warnings.simplefilter("error")
    for kind in kinds:
        in_place(driver, kind)
        as_on_the_host(driver, kind)
        beside(driver, kind)
        refused(driver, kind)
        raises(errors.BadArgument, "give out=", fe.demean, place(driver, columns(N), kind), CODES)


if __name__ == "__main__":
    used = on_asked(run, given_back, ("cupy", "torch", "numba"))
    if used.kind == "opencl":
        os.environ["FOURGE_OPENCL_F64"] = "0"
        there = Memory(used, columns(N), ByAttributes).view(None)
        raises(errors.BadArgument, "take a device with double", fe.demean, there, CODES, out=there)
    print("done")
