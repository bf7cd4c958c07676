"""Arrays on a device through the driver's own calls, as another library makes them; `python there.py cuda|opencl` prints what failed.

It runs in a process of its own, on whatever driver the loader finds: PoCL's, or a stand-in whose memory no host access reaches."""

import contextlib
import ctypes
import sys
import types
import warnings

import numpy as np

from fourge import errors, gw

N, M = 41, 60
EPSILON = 0.1


class Cuda:
    """Memory of CUDA's driver."""

    kind = "cuda"

    def __init__(self):
        self.lib = ctypes.CDLL("libcuda.so.1")
        self.context, self.queue = ctypes.c_void_p(), ctypes.c_void_p()
        for call in (self.lib.cuInit(0), self.lib.cuDevicePrimaryCtxRetain(ctypes.byref(self.context), 0),
                     self.lib.cuCtxPushCurrent_v2(self.context), self.lib.cuStreamCreate(ctypes.byref(self.queue), 1)):
            assert call == 0, call

    def empty(self, bytes_):
        p = ctypes.c_ulonglong()
        assert self.lib.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(bytes_)) == 0
        return p.value

    def write(self, handle, a):
        """On its way in the queue: nobody waits."""
        assert self.lib.cuMemcpyHtoDAsync_v2(ctypes.c_ulonglong(handle), ctypes.c_void_p(a.ctypes.data), ctypes.c_size_t(a.nbytes), self.queue) == 0

    def read(self, handle, a):
        assert self.lib.cuMemcpyDtoHAsync_v2(ctypes.c_void_p(a.ctypes.data), ctypes.c_ulonglong(handle), ctypes.c_size_t(a.nbytes), self.queue) == 0
        assert self.lib.cuStreamSynchronize(self.queue) == 0


class OpenCL:
    """Memory of OpenCL's."""

    kind = "opencl"

    def __init__(self):
        self.lib = lib = ctypes.CDLL("libOpenCL.so.1")
        for name in ("clCreateContext", "clCreateCommandQueue", "clCreateBuffer"):
            getattr(lib, name).restype = ctypes.c_void_p
        platform, device, error, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int(), ctypes.c_uint()
        assert lib.clGetPlatformIDs(1, ctypes.byref(platform), ctypes.byref(count)) == 0
        assert lib.clGetDeviceIDs(platform, ctypes.c_ulonglong(0xFFFFFFFF), 1, ctypes.byref(device), ctypes.byref(count)) == 0
        self.context = ctypes.c_void_p(lib.clCreateContext(None, 1, ctypes.byref(device), None, None, ctypes.byref(error)))
        self.queue = ctypes.c_void_p(lib.clCreateCommandQueue(self.context, device, ctypes.c_ulonglong(0), ctypes.byref(error)))
        self.loose = ctypes.c_void_p(lib.clCreateCommandQueue(self.context, device, ctypes.c_ulonglong(1), ctypes.byref(error)))

    def empty(self, bytes_):
        return self.lib.clCreateBuffer(self.context, ctypes.c_ulonglong(1), ctypes.c_size_t(bytes_), None, ctypes.byref(ctypes.c_int()))

    def write(self, handle, a):
        assert self.lib.clEnqueueWriteBuffer(self.queue, ctypes.c_void_p(handle), 0, ctypes.c_size_t(0), ctypes.c_size_t(a.nbytes),
                                             ctypes.c_void_p(a.ctypes.data), 0, None, None) == 0

    def read(self, handle, a):
        assert self.lib.clEnqueueReadBuffer(self.queue, ctypes.c_void_p(handle), 0, ctypes.c_size_t(0), ctypes.c_size_t(a.nbytes),
                                            ctypes.c_void_p(a.ctypes.data), 0, None, None) == 0
        assert self.lib.clFinish(self.queue) == 0


class Handle:
    def __init__(self, pointer):
        self.int_ptr = pointer


class ByAttributes:
    """As pyopencl's arrays tell themselves."""

    def __init__(self, driver, handle, like, queue):
        self.base_data, self.offset, self.queue = Handle(handle), 0, Handle(queue.value)
        self.dtype, self.shape, self.strides = like.dtype, like.shape, like.strides


class ByInterface:
    """As CuPy's and Numba's do."""

    def __init__(self, driver, handle, like, queue, **more):
        self.__cuda_array_interface__ = {"shape": like.shape, "typestr": like.dtype.str, "data": (handle, False), "version": 3,
                                         "strides": None if like.flags.c_contiguous else like.strides, "stream": queue.value, **more}


class ByDlpack:
    """As others do: the capsule's structure, made by hand."""

    def __init__(self, driver, handle, like, queue):
        class Tensor(ctypes.Structure):
            _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("type", ctypes.c_uint8 * 2),
                        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                        ("offset", ctypes.c_uint64), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]

        self.driver, self.place, self.asked = driver, 2 if driver.kind == "cuda" else 4, []
        self.shape = (ctypes.c_int64 * like.ndim)(*like.shape)
        self.strides = (ctypes.c_int64 * like.ndim)(*(s // like.itemsize for s in like.strides))
        self.tensor = Tensor(handle, (self.place, 0), like.ndim, (2, 8 * like.itemsize), 1, self.shape, self.strides, 0, None, None)

    def __dlpack_device__(self):
        return self.place, 0

    def __dlpack__(self, stream=None):
        self.asked.append(stream)
        self.driver.read(self.tensor.data, np.empty(0))  # its own work ends before
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


def place(driver, a, kind, queue=None, **more):
    handle = driver.empty(max(a.nbytes, 1))
    kept = np.ascontiguousarray(a) if a.flags.c_contiguous else np.ascontiguousarray(a.T)
    if a.size:
        driver.write(handle, kept)
    x = kind(driver, handle, a, queue or driver.queue, **more)
    x.handle, x.kept = handle, kept
    return x


def raises(kind, words, call, *args, **more):
    try:
        call(*args, **more)
    except kind as e:
        assert words in str(e), f"{words!r} is not in {e!r}"
        return
    raise AssertionError(f"no {kind.__name__} with {words!r}")


def solved(driver, kind):
    """A cost in place: the numbers of a copy, to the last bit where it is the same computation."""
    rng = np.random.default_rng(5)
    cost, a, b = rng.random((N, M)), rng.random(N), rng.random(M)
    a, b = a / a.sum(), b / b.sum()
    want = gw.transport(cost, a, b, epsilon=EPSILON, device=driver.kind)
    f, g = want.potentials
    turned = np.asfortranarray(cost)
    for x in (cost, turned):
        there = place(driver, x, kind)
        found = gw.transport(there, place(driver, a, kind), b, epsilon=EPSILON)
        assert found.report["iterations"] == want.report["iterations"]
        assert np.array_equal(found.potentials[0], f) and np.array_equal(found.potentials[1], g)
        plan = found.plan()
        # both make P = p 2^x from the same potentials, |x| < 2 log2(e) / epsilon < 29: three roundings of x and the exponentials' own
        assert np.abs(plan / want.plan() - 1).max() <= 100 * 2.0**-53
        for dtype in (np.float64, np.float32):
            out = place(driver, np.zeros((N, M), dtype), kind)
            assert found.plan(out=out) is out
            got = np.empty((N, M), dtype)
            driver.read(out.handle, got)
            assert np.array_equal(got, plan.astype(dtype))
        assert np.array_equal(found.argmax(), plan.argmax(1))
        assert np.allclose(found.apply(np.ones(M)), a, rtol=0, atol=M * 2.0**-53)
        host = np.zeros((2, M), np.float32)
        assert found.rows(3, 5, out=host) is host and np.array_equal(host, plan[3:5].astype(np.float32))
    warm = gw.transport(there, place(driver, a, kind), place(driver, b, kind), epsilon=EPSILON, start=(place(driver, f, kind), g), device=driver.kind)
    assert warm.report["iterations"] <= 2, warm.report["iterations"]
    counted = [gw.transport(there, *w, epsilon=EPSILON).report for w in ((a, b), (place(driver, a, kind), place(driver, b.astype(np.float32), kind)))]
    assert counted[1]["device_bytes_out"] - counted[0]["device_bytes_out"] == N * 8 + M * 4, counted
    assert counted[1]["device_bytes_in"] == counted[0]["device_bytes_in"] > 0 and gw.transport(cost).report["device_launches"] == 0
    floats = cost.astype(np.float32)
    one, two = gw.transport(place(driver, floats, kind), epsilon=EPSILON), gw.transport(floats, epsilon=EPSILON, device=driver.kind)
    assert np.array_equal(one.potentials[0], two.potentials[0])
    raises(errors.Unsupported, "the derivative of a plan does not run on", found.vjp, np.ones((N, M)))
    import pickle

    again = pickle.loads(pickle.dumps(found))
    assert np.allclose(again.plan(), plan, rtol=0, atol=1e-15)
    raises(errors.BadArgument, "and the cost in host memory", again.plan, out=place(driver, np.zeros((N, M)), kind))


def aligned(driver, kind):
    """Distances and points in place: the plan of copies, and the counts tell what went over."""
    with warnings.catch_warnings():  # random distances have many plans as good
        warnings.simplefilter("ignore", errors.NotConverged)
        aligned_quietly(driver, kind)


def aligned_quietly(driver, kind):
    rng = np.random.default_rng(9)
    n, m = 16, 32  # weights of powers of two, distances of 2^-10: sums are exact in any order, and plans equal to the bit
    x, y = (np.floor(4096 * rng.random((k, k))) / 1024 for k in (n, m))
    x, y = (np.triu(d, 1) + np.triu(d, 1).T for d in (x, y))
    x[0, 1] = x[1, 0] = y[0, 1] = y[1, 0] = 4
    y = y.astype(np.float32)
    linear, start = np.floor(1024 * rng.random((n, m))) / 1024, rng.random((n, m))
    a, b = np.full(n, 1 / n), np.full(m, 1 / m)
    options = {"distance": "matrix", "mode": "sampled", "epsilon": 0.1, "max_iter": 3, "min_iter": 3, "n_start": 1, "linear_weight": 0.25}
    own = gw.align(x, y, a=a, b=b, linear=linear, start=start, device=driver.kind, **options)
    there = gw.align(place(driver, np.asfortranarray(x), kind), place(driver, y, kind), a=place(driver, a, kind), b=b,
                     linear=place(driver, linear, kind), start=place(driver, start, kind), **options)
    mixed = gw.align(x, place(driver, y, kind), linear=linear, start=start, **options)
    assert np.array_equal(there.plan(), own.plan()) and np.array_equal(mixed.plan(), own.plan())
    assert own.report["energy"] == there.report["energy"] and np.array_equal(there.distances(1), y)
    fewer = own.report["device_bytes_in"] - there.report["device_bytes_in"]
    assert 4 * (n * n + m * m) >= fewer >= 4 * (n * n + m * m) - 64 * (n + m), fewer
    f, g = own.potentials
    plain = {**options, "linear_weight": 0}
    one = gw.align(x, y, potentials=(f, g), device=driver.kind, **plain)
    two = gw.align(place(driver, x, kind), place(driver, y, kind), potentials=(place(driver, f, kind), g), **plain)
    assert np.array_equal(one.plan(), two.plan())
    points = rng.random((n, 3)), rng.random(m)
    options = {"distance": "euclidean", "mode": "sampled", "epsilon": 0.1, "max_iter": 3, "min_iter": 3, "n_start": 1}
    own = gw.align(*points, device=driver.kind, **options)
    there = gw.align(*(place(driver, p, kind) for p in points), **options)
    assert np.array_equal(there.plan(), own.plan())
    assert there.report["device_bytes_out"] - own.report["device_bytes_out"] == 8 * (3 * n + m)
    on_it = place(driver, x, kind)
    raises(errors.BadArgument, "linear lies on", gw.align, x, y, linear=place(driver, linear, kind))
    raises(errors.BadArgument, "device='cpu'", gw.align, on_it, y, device="cpu")
    raises(errors.BadArgument, f"a: expected {n} weights", gw.align, on_it, y, a=place(driver, b, kind))
    raises(errors.BadArgument, "expected a matrix", gw.align, place(driver, np.ones((2, 2, 2)), kind), y)
    raises(TypeError, "dist_source lies on", gw.sampled_gw, dist_source=on_it, dist_target=y)
    raises(errors.Unsupported, "dtype f64 with the source distances", gw.align, on_it, y, distance="matrix", dtype="f64")
    x[3, 5] = np.nan
    raises(errors.BadData, "nan", gw.align, place(driver, x, kind), y, distance="matrix")


def refused(driver, kind):
    cost = np.random.default_rng(6).random((N, M))
    there = place(driver, cost, kind)
    other = "opencl" if driver.kind == "cuda" else "cuda"
    raises(errors.BadArgument, f"device='{other}'", gw.transport, there, device=other)
    raises(errors.BadArgument, "device='cpu'", gw.transport, there, device="cpu")
    number = f"{driver.kind}:7"  # a number is taken where the array does not tell its own
    raises(errors.BadArgument if kind is ByDlpack else errors.NoDevice, number, gw.transport, there, device=number)
    raises(errors.BadArgument, "expected a matrix", gw.transport, place(driver, cost[0], kind))
    raises(errors.BadArgument, f"a: expected {N} weights", gw.transport, there, place(driver, cost[0], kind))
    raises(TypeError, "float32 or float64", gw.transport, place(driver, np.ones((N, M), np.int32), kind) if kind is not ByDlpack else
           place(driver, np.ones((N, M), np.float16), kind))
    raises(errors.BadArgument, "a lies on", gw.transport, cost, place(driver, np.ones(N) / N, kind))
    raises(errors.BadArgument, "and the cost in host memory", gw.transport(cost).plan, out=there)
    empty = place(driver, np.empty((0, M)), kind)
    raises(errors.BadArgument, "0 x 60", gw.transport, empty)
    cost[7, 11] = np.nan
    raises(errors.BadData, "nan", gw.transport, place(driver, cost, kind))


def run(driver, kinds):
    warnings.simplefilter("error")
    for kind in kinds:
        solved(driver, kind)
        aligned(driver, kind)
        refused(driver, kind)
    cost = np.random.default_rng(7).random((N, M))
    if driver.kind == "cuda":
        raises(TypeError, "read-only", gw.transport(place(driver, cost, ByInterface)).plan,
               out=place(driver, cost, ByInterface, data=(driver.empty(cost.nbytes), True)))
        raises(TypeError, "masked", gw.transport, place(driver, cost, ByInterface, mask=object()))
        raises(errors.BadArgument, "stream 0", gw.transport, place(driver, cost, ByInterface, stream=0))
        raises(TypeError, "strides", gw.transport, place(driver, cost, ByInterface, strides=(481, 8)))
        raises(errors.BadArgument, "is in no memory of a device", gw.transport, place(driver, cost, ByInterface, data=(cost.ctypes.data, False)))
        probe = place(driver, cost, ByDlpack)
        gw.transport(probe)
        assert probe.asked == [1], probe.asked
    else:
        raises(errors.BadArgument, "queue", gw.transport, place(driver, cost, ByAttributes, queue=driver.loose))
        raises(TypeError, "no queue", gw.transport, place(driver, cost, ByDlpack))


def library(driver, name):
    """What the package uses of a library of arrays, under its name, on the driver: arrays, empty arrays, the current stream."""
    base = ByInterface if driver.kind == "cuda" else ByAttributes

    def empty(shape, dtype):
        like = np.empty(shape, dtype)
        return array(driver, driver.empty(like.nbytes), like, driver.queue)

    array = type("Array", (base,), {"__module__": name, "__init__": lambda self, driver, handle, like, queue, **more: (
        base.__init__(self, driver, handle, like, queue, **more), setattr(self, "handle", handle), setattr(self, "dtype", like.dtype),
        setattr(self, "device", "cuda:0"))[0]})
    made = types.ModuleType(name)
    if name == "torch":
        array.is_cuda, array.requires_grad, array.detach, array.is_neg = True, False, lambda self: self, lambda self: False
        array.__dlpack_device__ = lambda self: (2, 0)
        made.float64, made.float32 = np.float64, np.float32
        made.empty = lambda shape, dtype, device: empty(shape, dtype)
        made.cuda = types.SimpleNamespace(current_stream=lambda device: types.SimpleNamespace(cuda_stream=driver.queue.value))
    elif name == "cupy":
        made.cuda = types.SimpleNamespace(Device=lambda index: contextlib.nullcontext())
        made.empty = empty
    elif name == "numba":
        made.cuda = types.SimpleNamespace(gpus=[contextlib.nullcontext()], device_array=empty)
    else:
        made.array = sys.modules["pyopencl.array"] = types.ModuleType("pyopencl.array")
        made.array.empty = lambda queue, shape, dtype: empty(shape, dtype)
    sys.modules[name] = made
    return array


def given_back(driver, name):
    """Plan and potentials are arrays of the cost's library."""
    kind, cost = library(driver, name), np.random.default_rng(8).random((N, M))
    want = gw.transport(cost, epsilon=EPSILON, device=driver.kind)
    found = gw.transport(place(driver, cost, kind), epsilon=EPSILON)
    for x, y in ((found.plan(), want.plan()), (found.rows(4, 9, np.float32), want.rows(4, 9, np.float32)),
                 (found.potentials[0], want.potentials[0]), (found.potentials[1], want.potentials[1])):
        assert type(x) is kind and found.objective == want.objective == want.report["objective"], type(x)
        got = np.empty(y.shape, y.dtype)
        driver.read(x.handle, got)
        assert np.allclose(got, y, rtol=100 * (2.0**-53 if y.dtype == np.float64 else 2.0**-24), atol=0)


def on_asked(run, given_back, libraries):
    """Both on the driver that the command line names, of CUDA with these libraries; the driver."""
    is_cuda = sys.argv[1] == "cuda"
    driver = Cuda() if is_cuda else OpenCL()
    run(driver, (ByInterface, ByDlpack) if is_cuda else (ByAttributes,))
    for name in libraries if is_cuda else ("pyopencl",):
        given_back(driver, name)
    return driver


if __name__ == "__main__":
    on_asked(run, given_back, ("cupy", "torch"))
    print("done")
