"""What the modules share: contexts, arrays, warnings."""

import warnings

import numpy as np

from . import _fourge, _progress, errors

CONTEXT_OPTIONS = ("threads", "seed", "memory_limit", "time_limit")


def context(options, progress=None):
    """A context from the options that are its own; takes them out of `options`.  Progress is a function, None, or
    True for a bar."""
    return _fourge.Context({k: options.pop(k) for k in CONTEXT_OPTIONS if k in options}, _progress.of(progress))


def array(x):
    """float32 and float64 arrays and tensors as they are (no copy), anything else as float64."""
    if not hasattr(x, "__array_interface__") and hasattr(x, "__dlpack__"):
        return np.from_dlpack(x)
    a = np.asarray(x)
    return a if a.dtype in (np.float32, np.float64) else a.astype(np.float64)


def warn(context_, stacklevel=3):
    """The library's warnings since the last call, as Python's."""
    for code, message in context_.warnings():
        kind = errors.NotConverged if code == "FRG-FE-101" else UserWarning
        warnings.warn(f"{code}: {message}", kind, stacklevel=stacklevel)
