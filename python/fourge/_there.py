"""Arrays on a device: where they lie, whose queue their work is in, and arrays of the caller's library for results.

Three ways to tell of such an array are understood: ``__cuda_array_interface__`` (CuPy, Numba, torch's CUDA tensors), DLPack of CUDA, and
the attributes of pyopencl's arrays (``base_data``, ``offset``, ``queue``).  Nothing is copied to find out."""

import math

import numpy as np

from . import _arrays, _fourge, errors

_CUDA, _OPENCL = 1, 2  # frg_device_kind
_KINDS = ("cpu", "cuda", "opencl")
_DEFAULT_STREAM = 1  # CUDA's, which a handle of 0 means in the interfaces


def _package(x):
    return type(x).__module__.split(".")[0]


class There:
    """An array `x` on a device, the argument `name`: `view` is what the extension takes, `stream` the handle of the queue it is in.  An
    index of None: the array does not name its device's number, and that of the array it is used with holds."""

    def __init__(self, x, name, kind, index, view, stream, keep=None):
        self.x, self.name, self.numbered, self.stream = x, name, index is not None, stream
        self.view = (kind, index or 0, *view, (x, keep))

    @property
    def device(self):
        """ "cuda:0" """
        return f"{_KINDS[self.view[0]]}:{self.view[1]}"

    @property
    def shape(self):
        return self.view[5]

    @property
    def dtype(self):
        return np.dtype(self.view[4])

    def within(self, other, name, whose="the cost"):
        """The view for a context that was made for the array `other` (`whose`), which knows the number of its device."""
        if other is None or other.view[0] != self.view[0]:
            place = "in host memory" if other is None else f"on {other.device}"
            raise errors.BadArgument(f"{name} lies on {self.device}, and {whose} {place}: give a copy of either beside the other")
        return (self.view[0], self.view[1] if self.numbered else other.view[1], *self.view[2:])

    def repeats(self):
        """Whether two elements of a vector or matrix (n, m) lie at one place: with strides s and t i s = j t for 0 < i < n and 0 < |j| < m,
        of which |t| / gcd(s, t) and |s| / gcd(s, t) are the smallest."""
        axes = [(length, step) for length, step in zip(self.view[5], self.view[6]) if length != 1]
        if any(length == 0 for length, _ in axes):
            return False
        if len(axes) < 2 or any(step == 0 for _, step in axes):
            return any(step == 0 for _, step in axes)
        (n, s), (m, t) = axes
        return abs(t) // math.gcd(s, t) < n and abs(s) // math.gcd(s, t) < m

    def clashes(self, other):
        """Whether two arrays have elements in common and are not the same; parts of a buffer of OpenCL with handles of their own are not
        compared."""
        if self.view[0] != other.view[0] or (self.view[0] == _OPENCL and self.view[2] != other.view[2]):
            return False
        one, two = _addresses(self), _addresses(other)
        try:
            return one.__array_interface__ != two.__array_interface__ and np.shares_memory(one, two, max_work=100000)
        except RuntimeError:  # np.exceptions.TooHardError: odd strides
            return True

    def finish(self, context):
        """What the array's queue has to do is done when this returns, and `context` goes on in a queue of its own."""
        with behind(context, self):
            pass

    def beside(self, context, other, name, whose):
        """The view for a context that was made for `other` (`whose`), once the array's own queue has come so far."""
        view = self.within(other, name, whose)
        if self.stream not in (0, other.stream):
            self.finish(context)
        return view

    def fetch(self, context, other, name, whose, expected):
        """A copy in host memory of a vector of `expected`, a number and the word for them, and its bytes."""
        n, what = expected
        if self.shape != (n,):
            raise errors.BadArgument(f"{name}: expected {n} {what}, got shape {self.shape}")
        out, view = np.empty(n), self.within(other, name, whose)
        with behind(context, self):
            context.get(view, out)
        return out, n * self.dtype.itemsize

    def empty(self, shape, dtype):
        """An array of the same library on the same device; None where that is not known how."""
        package, name = _package(self.x), np.dtype(dtype).name
        if package == "torch":
            import torch

            return torch.empty(shape, dtype=getattr(torch, name), device=self.x.device)
        if package == "cupy":
            import cupy

            with cupy.cuda.Device(self.view[1]):
                return cupy.empty(shape, name)
        if package == "numba":
            from numba import cuda

            with cuda.gpus[self.view[1]]:
                return cuda.device_array(shape, dtype)
        if package == "pyopencl":
            import pyopencl.array

            return pyopencl.array.empty(self.x.queue, shape, name)
        return None


def matrix(view):
    """The view with two axes; a vector is a column."""
    return (*view[:5], (*view[5], 1)[:2], (*view[6], 1)[:2], view[7])


class _addresses:
    """What NumPy takes for an array where the view lies, to be asked about addresses: nothing can be read there."""

    def __init__(self, there):
        kind, _, handle, offset, letter, shape, steps, _ = there.view
        begin = offset + (4096 if kind == _OPENCL else handle)  # OpenCL has no addresses: any but 0
        size = np.dtype(letter).itemsize
        self.__array_interface__ = {"shape": shape, "typestr": np.dtype(letter).str, "data": (begin, True), "version": 3,
                                    "strides": tuple(size * step if length > 1 else size for length, step in zip(shape, steps))}


def _steps(shape, strides, size, name):
    """Strides in elements, from bytes or None."""
    if strides is None:
        strides, step = [], size
        for length in reversed(shape):
            strides.append(step)
            step *= length
        strides.reverse()
    if any(s % size for s in strides):
        raise TypeError(f"{name}: strides of {tuple(strides)} bytes are no multiples of {size}, an element's")
    return tuple(s // size for s in strides)


def _format(dtype, name):
    try:
        found = {"<f8": "d", "<f4": "f"}[np.dtype(dtype).str]
    except (KeyError, TypeError):
        raise TypeError(f"{name}: expected float32 or float64 on a device, got {dtype}") from None
    return found


def _index(x):
    """Of the device, None where the array does not tell; the driver is asked in any case."""
    return int(x.__dlpack_device__()[1]) if hasattr(x, "__dlpack_device__") else None


def _by_cuda_interface(x, name, writable):
    told = x.__cuda_array_interface__
    if told.get("mask") is not None:
        raise TypeError(f"{name}: masked values are not taken; fill them or drop their rows")
    address, readonly = told["data"]
    if writable and readonly:
        raise TypeError(f"{name}: the array is read-only")
    shape = tuple(map(int, told["shape"]))
    letter = _format(told["typestr"], name)
    steps = _steps(shape, told.get("strides"), np.dtype(letter).itemsize, name)
    stream = told.get("stream")
    if stream == 0:
        raise errors.BadArgument(f"{name}: its __cuda_array_interface__ names the stream 0, which says neither of two default streams")
    if _package(x) == "torch":
        import torch

        stream = torch.cuda.current_stream(x.device).cuda_stream or _DEFAULT_STREAM
    return There(x, name, _CUDA, _index(x), (address or 0, 0, letter, shape, steps), stream or 0)


def _by_dlpack(x, name):
    """The maker is told the stream that its own work has to come before."""
    try:
        capsule = x.__dlpack__(stream=_DEFAULT_STREAM)
    except (BufferError, RuntimeError, TypeError, ValueError) as e:
        raise TypeError(f"{name}: {getattr(x, 'dtype', type(x).__name__)} on {getattr(x, 'device', 'a device')} is not given by DLPack ({e})") from None
    view = _fourge.tensor_there(capsule)
    if view[4] == "?":
        raise TypeError(f"{name}: expected float32 or float64 on a device, got {getattr(x, 'dtype', type(x).__name__)}")
    return There(x, name, *view[:2], view[2:], _DEFAULT_STREAM, capsule)


def _by_opencl_attributes(x, name):
    letter = _format(x.dtype, name)
    shape = tuple(map(int, x.shape))
    steps = _steps(shape, x.strides, np.dtype(letter).itemsize, name)
    if x.queue is None:
        raise errors.BadArgument(f"{name}: the array has no queue; with_queue(queue) gives it one")
    handle = x.base_data.int_ptr if x.base_data is not None else 0
    return There(x, name, _OPENCL, None, (handle, int(x.offset), letter, shape, steps), x.queue.int_ptr)


def find(x, name, writable=False):
    """What is known of an array on a device; None of one in host memory."""
    if _package(x) == "torch":
        if not getattr(x, "is_cuda", False):
            return None
        x = x.detach()
        if x.is_neg():  # the sign is a flag, which the views of others do not tell
            if writable:
                raise errors.BadArgument(f"{name}: a view with a change of sign is not written to; give its resolve_neg()")
            x = x.resolve_neg()
    place = _arrays.place_of(x)
    if place == "CUDA's":
        return _by_cuda_interface(x, name, writable)
    if place == "OpenCL's":
        return _by_opencl_attributes(x, name)
    if place in (2, 13):  # kDLCUDA, kDLCUDAManaged
        return _by_dlpack(x, name)
    if place == 4:  # kDLOpenCL; what __dlpack__ takes for a stream there, the standard of arrays leaves open
        raise TypeError(f"{name}: DLPack tells no queue of an OpenCL array; give one with base_data, offset and queue, as pyopencl's are")
    return None


def _whole(device):
    return device if ":" in device else f"{device}:0"


def _of_queue(there, options, progress):
    """A context for the OpenCL device of the array's queue, which has no number there: they are tried."""
    for index in range(64):
        given = {**options, "device": f"opencl:{index}"}
        try:
            return _arrays.context(given, progress, there.stream), index
        except errors.BadArgument as e:
            if "queue" not in str(e):
                raise
        except errors.NoDevice:
            if index == 0:
                raise
            break
    raise errors.BadArgument("the queue of the array is of none of OpenCL's devices here, or keeps no order")


def context(there, name, options, progress):
    """A context for the array's device, its work behind the array's own queue; takes its options out of `options`.  `there` is told
    the number of the device."""
    asked, kind = options.get("device"), _KINDS[there.view[0]]
    known = there.device if there.numbered else kind
    if asked is not None and known not in (_whole(asked), asked.split(":")[0]):
        raise errors.BadArgument(f"{name} lies on {known}, and device={asked!r}: leave device out, or give a copy where that device takes it")
    if kind == "opencl" and asked is None:
        made, index = _of_queue(there, options, progress)
    else:
        index = int(_whole(asked or known).split(":")[1])
        made = _arrays.context({**options, "device": f"{kind}:{index}"}, progress, there.stream)
    for key in _arrays.CONTEXT_OPTIONS:
        options.pop(key, None)
    there.view = (*there.view[:1], index, *there.view[2:])
    return made


class behind:
    """Calls in the queue of an array, and in the context's own afterwards, so that no queue has to outlive a call."""

    def __init__(self, made, there):
        self._context, self._there = made, there

    def __enter__(self):
        if self._there is not None:
            try:
                self._context.set_stream(self._there.stream)
            except errors.BadArgument as e:
                raise errors.BadArgument(f"{self._there.name}: {e.message}", e.code, hint=e.hint) from None

    def __exit__(self, failed, *_):
        try:
            if self._there is not None:
                self._context.set_stream(0)
        except errors.Error:
            if failed is None:  # a device that is lost has been told of
                raise
