"""What fourge raises.

Every exception is an :class:`Error` and, besides, the built-in exception that fits its kind, so that
``except ValueError`` and ``except MemoryError`` work as usual.  ``code`` is a row of the library's catalogue
(``FRG-FE-001``), ``where`` the place (column, row, argument), ``hint`` the remedy.
"""

import re


class Error(Exception):
    """A call of the library failed; nothing was changed."""

    def __init__(self, message, code="", where="", hint=""):
        super().__init__(f"{code}: {message}" + (f"; hint: {hint}" if hint else "") if code else message)
        self.message, self.code, self.where, self.hint = message, code, where, hint

    def __reduce__(self):
        return type(self), (self.message, self.code, self.where, self.hint)


class BadArgument(Error, ValueError):
    """An argument is invalid."""


class BadData(Error, ValueError):
    """The data are invalid."""


class OutOfMemory(Error, MemoryError):
    """Memory could not be had, or a limit forbids it."""


class Unsupported(Error, NotImplementedError):
    """Recognised, but not built."""


class NoDevice(Error, RuntimeError):
    """The device is not there."""


class NotPositiveDefinite(Error, ArithmeticError):
    """A matrix is not positive definite."""


class BrokeDown(Error, ArithmeticError):
    """The computation broke down."""


class FileError(Error, OSError):
    """A file cannot be opened, made, read or written."""


class Mismatch(Error, ValueError):
    """A saved object does not belong to these data."""


class Internal(Error, RuntimeError):
    """A fault of fourge, or an object that was called out of its own callback."""


class Stopped(Error, RuntimeError):
    """A progress function or the time limit stopped the call before it had a result."""


class NotConverged(UserWarning):
    """A result that stopped early; it is marked."""


_classes = {
    "FRG_BAD_ARG": BadArgument,
    "FRG_NO_MEMORY": OutOfMemory,
    "FRG_NO_DEVICE": NoDevice,
    "FRG_UNSUPPORTED": Unsupported,
    "FRG_NOT_POSDEF": NotPositiveDefinite,
    "FRG_BROKE_DOWN": BrokeDown,
    "FRG_BUG": Internal,
    "FRG_BAD_DATA": BadData,
    "FRG_NO_INPUT": FileError,
    "FRG_CANNOT_CREATE": FileError,
    "FRG_IO": FileError,
    "FRG_MISMATCH": Mismatch,
    "FRG_BUSY": Internal,
    "FRG_INTERRUPTED": Stopped,
    "FRG_TIME_LIMIT": Stopped,
}


#: What hints say to the command line, and what they say here.
_hints = (
    (r"see ROADMAP\.md for what is there", ""),
    (r"see the function's documentation in the header|see (fourge \w+ )?--help for the allowed values", "see help() of the function"),
    (r"; see fourge \w+ --help( for the densities)?|; --dry-run prints what is needed| as in --help|; fourge doctor lists the devices", ""),
    (r"--(\w+) (mask|f64|f32|mixed|exact|cpu)\b", r'\1="\2"'),
    (r"--(\w+)-(\w+)", r"\1_\2"),
    (r"--(\w+)", r"\1"),
)


def from_status(status, message, code, where, hint):
    """The exception for a status of the library."""
    for pattern, here in _hints:
        hint = re.sub(pattern, here, hint)
    if code.startswith("FRG-GP-"):
        hint = hint.replace("dtype", "precision")
    if "Arrow type" in message:
        hint = "cast the column, to Float64 or String"
    if where and not re.search("row|column|value|entry|item", message):
        message = f"{message} ({where})"
    return _classes.get(status, Internal)(message, code, where, hint)
