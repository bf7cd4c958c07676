"""Blocks within which functions of another package are replaced: of several threads, which may end in any order."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Iterator
from typing import Any


class Blocks:
    """The open blocks of one other package.

    Parameters
    ----------
    name : str
        Of the package.
    replace : callable
        Puts our functions where theirs are held, and returns what undoes it; called when the first block begins.
    """

    def __init__(self, name: str, replace: Callable[[], Callable[[], Any]]):
        self._replace, self._lock = replace, threading.Lock()
        #: (options, reports) of all threads, in the order in which they were entered
        self._open: list[tuple[dict[str, Any], list[Any]]] = []
        #: the block that this thread or task is in
        self._own: contextvars.ContextVar[tuple[dict[str, Any], list[Any]] | None] = contextvars.ContextVar(name, default=None)
        self._put_back: Callable[[], Any] | None = None

    def current(self) -> tuple[dict[str, Any], list[Any]] | None:
        """Options and reports of this thread's block, or of the last one: a thread that was started within a block is in none."""
        return self._own.get() or (self._open[-1] if self._open else None)

    @contextlib.contextmanager
    def enter(self, options: dict[str, Any]) -> Iterator[list[Any]]:
        """A block with these options; gives its reports, to which our functions add."""
        block: tuple[dict[str, Any], list[Any]] = options, []
        with self._lock:
            if not self._open:
                self._put_back = self._replace()
            self._open.append(block)
        token = self._own.set(block)
        try:
            yield block[1]
        finally:
            with self._lock:
                self._open[:] = [b for b in self._open if b is not block]
                if not self._open and self._put_back:
                    self._put_back()
                    self._put_back = None
            with contextlib.suppress(ValueError):  # the block ends in another task than it began in
                self._own.reset(token)
