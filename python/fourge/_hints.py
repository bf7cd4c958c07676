"""What is said of a keyword that a function has not got: Python before 3.13 names no other."""

import difflib
import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

_UNKNOWN = re.compile(r"got an unexpected keyword argument '(\w+)'$")


def _hinted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose TypeError for a keyword that is none has the nearest name, or all of them."""
    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError as e:
            unknown = _UNKNOWN.search(str(e))
            if unknown is None or e.__traceback__ is None or e.__traceback__.tb_next is not None:  # an error from within
                raise
            names = [n for n in inspect.signature(function).parameters if n != "self"]
            near = difflib.get_close_matches(unknown[1], names, 1)
            more = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}" if names else "there is none"
            raise TypeError(f"{e}; {more}") from None

    return call


def _is_bare(value: Any) -> bool:
    """Is it a Python function that leaves what it makes of its keywords to Python?"""
    return inspect.isfunction(value) and not value.__code__.co_flags & inspect.CO_VARKEYWORDS


def hint(module: Mapping[str, Any]) -> None:
    """Wraps the public functions of a module, and the public methods of its public classes, that take no ``**options``; warnings from
    below them count their frames by :func:`fourge._arrays.outside`."""
    for name in module["__all__"]:
        value = module[name]
        if _is_bare(value):
            module[name] = _hinted(value)  # type: ignore[index]
        if not inspect.isclass(value):
            continue
        for cls in value.__mro__:
            for key, method in list(vars(cls).items()):
                if cls.__module__ == module["__name__"] and not key.startswith("_") and _is_bare(method) and not hasattr(method, "__wrapped__"):
                    setattr(cls, key, _hinted(method))
