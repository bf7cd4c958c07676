"""What the modules share: contexts, arrays, warnings."""

import os
import re
import sys
import warnings

import numpy as np

from . import _fourge, _progress, errors

CONTEXT_OPTIONS = ("threads", "seed", "memory_limit", "time_limit", "device", "spool")

_HOSTS = (1, 3, 11)  # DLPack's kinds of memory of the host: the CPU's, pinned for CUDA or ROCm or not

_size = re.compile(r"(\d+\.?\d*(?:e\d+)?|\.\d+)(?:([KMGT])i?)?B?", re.IGNORECASE)


def bytes_of(limit):
    """A memory_limit in bytes: numbers as they are, and the program's words "200M", "1.5G", "2GiB", powers of 1024."""
    if not isinstance(limit, str):
        return limit
    found = _size.fullmatch(limit.strip())
    size = float(found[1]) * 1024.0 ** " KMGT".index((found[2] or " ").upper()) if found else float("inf")
    if size > 9e18:
        raise errors.BadArgument(f"memory_limit={limit!r}: expected bytes, or a number with K, M, G or T such as '200M'")
    return int(size)


#: How an option of contexts is written by who does not know the library's types.
_spelled = {"memory_limit": bytes_of, "spool": lambda folder: folder if folder is None else os.fsdecode(folder)}


def context(options, progress=None, stream=0):
    """A context from the options that are its own; takes them out of `options`.  Progress is a function, None, or
    True for a bar; stream the handle of the caller's queue of the device, 0: none.  A negative seed raises BadArgument: the generator's key is an unsigned word."""
    seed = options.get("seed")
    if isinstance(seed, (int, np.integer)) and seed < 0:
        raise errors.BadArgument(f"seed: expected 0 or more, got {seed}")
    return _fourge.Context({k: _spelled.get(k, lambda v: v)(options.pop(k)) for k in CONTEXT_OPTIONS if k in options}, _progress.of(progress),
                           stream)


def place_of(x):
    """Whose memory x says that it lies in: "CUDA's" and "OpenCL's" by attributes, else DLPack's kind of device; None: the host's."""
    if hasattr(x, "__array_interface__"):
        return None
    if hasattr(x, "__cuda_array_interface__"):
        return "CUDA's"
    if hasattr(x, "base_data") and hasattr(x, "queue"):
        return "OpenCL's"
    kind = x.__dlpack_device__()[0] if hasattr(x, "__dlpack_device__") else _HOSTS[0]
    return None if kind in _HOSTS else kind


def on_cpu(x, name="the array"):
    """Refuses, by its name, what says that its memory is a device's; some such arrays would let NumPy copy them unasked."""
    place = place_of(x)
    if place is not None:
        owner = place if isinstance(place, str) else "a device's"
        raise TypeError(f"{name}: {type(x).__name__} in {owner} memory is not taken, and never copied unasked: copy it to the CPU's "
                        "memory first, as .get(), .cpu() or .copy_to_host() do")


def array(x, name="the array"):
    """float32 and float64 arrays and tensors as they are (no copy), other real numbers as float64."""
    kind = getattr(x, "dtype", type(x).__name__)
    if hasattr(x, "detach"):
        x = x.detach()
        if str(kind) == "torch.bfloat16":  # NumPy has no such type
            x = x.float()
        if getattr(x, "is_neg", bool)():  # the sign is a flag (the imaginary part of a conjugate), and DLPack has none
            x = x.resolve_neg()
    if hasattr(x, "__array_interface__") or not hasattr(x, "__dlpack__"):
        on_cpu(x, name)
        a = np.asarray(x)
    else:
        try:
            a = np.from_dlpack(x)
        except (BufferError, RuntimeError, TypeError, ValueError) as e:
            place = getattr(x, "device", "this device")
            raise TypeError(f"{name}: {kind} on {place} is not taken; expected real numbers in the CPU's memory, float32 or "
                            f"float64 ({e})") from None
    if np.ma.is_masked(x):
        raise TypeError(f"{name}: masked values are not taken; fill them or drop their rows")
    if a.dtype in (np.float32, np.float64):
        return a
    try:
        if a.dtype.kind not in "fiubO" or (a.dtype == object and (a.ndim == 0 or any(isinstance(v, (str, bytes)) for v in a.flat))):
            raise TypeError
        return a.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: expected an array of real numbers, got {kind}") from None


class Report(dict):
    """Results under the keys of the program's JSON; a name of before is still found, with a DeprecationWarning that names the new
    place.  `places` maps an old name to that place, `old` holds the values; `name` is what users call it."""

    def __init__(self, results, old, places, name="report"):
        super().__init__(results)
        self._old, self._places, self._name = {k: old[k] for k in places if k in old}, places, name

    @property
    def moved(self):
        """(old, places), for a report made of this one."""
        return self._old, self._places

    def __missing__(self, key):
        if key not in self._old:
            raise KeyError(key)
        warnings.warn(f"{self._name}[{key!r}] is now {self._places[key]}", DeprecationWarning, stacklevel=2)
        return self._old[key]


def seconds(old):
    """{part: seconds} of the names PART_seconds in `old`."""
    return {k.removesuffix("_seconds"): v for k, v in old.items() if k.endswith("_seconds")}


def moved_seconds(*parts, name="report"):
    """The places of the names PART_seconds."""
    return {f"{part}_seconds": f"{name}['seconds'][{part!r}]" for part in parts}


_warned: set[str] = set()


def warn_once(key, message):
    """A warning that a process gives once for each `key`, at the first caller outside the package: of what another
    package's option becomes here."""
    if key in _warned:
        return
    _warned.add(key)
    warnings.warn(message, UserWarning, stacklevel=outside())


def outside():
    """The stacklevel, for a warning in the function that asks, of the first caller outside the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("fourge."):
        frame, level = frame.f_back, level + 1
    return level


def warn(context_, stacklevel=None, expected=()):
    """The library's warnings since the last call, less those of the codes `expected`, as Python's,
    at the first caller outside the package where no level is given."""
    for code, message in context_.warnings():
        if code in expected:
            continue
        kind = errors.NotConverged if code in ("FRG-FE-101", "FRG-GW-108", "FRG-GW-109") else UserWarning
        warnings.warn(f"{code}: {message}", kind, stacklevel=outside() if stacklevel is None else stacklevel)
