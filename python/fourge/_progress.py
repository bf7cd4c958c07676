"""What progress=True shows: a bar of tqdm where it is installed, else a line on a terminal."""

import sys


class Bar:
    """A progress function; the bar ends with each call that shows one."""

    def __init__(self):
        try:
            from tqdm.auto import tqdm
        except ImportError:
            tqdm = None
        self._tqdm, self._bar, self._at, self._width = tqdm, None, None, 0

    def __call__(self, solver, phase, done, total, residual, target, seconds):
        what = f"{solver} {phase}".strip()
        left = f"{residual:.1e} of {target:.1e}" if residual == residual else ""
        if self._tqdm is None:
            if sys.stderr is not None and sys.stderr.isatty():
                line = f"{what}: {done}" + (f" of {total}" if total > 0 else "") + f", {left}" * bool(left) + f", {seconds:.0f} s"
                sys.stderr.write("\r" + line.ljust(self._width))
                self._width = len(line)
            return False
        if self._at != what:
            self.close()
            self._bar, self._at = self._tqdm(total=total if total > 0 else None, desc=what, leave=False), what
        self._bar.update(done - self._bar.n)
        self._bar.set_postfix_str(left)
        return False

    def close(self):
        if self._bar is not None:
            self._bar.close()
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
        self._bar, self._width = None, 0

    _call_ended = close  # what a context calls after a call that has shown something


def of(progress):
    """The function that a context calls: True (or a number of verbosity) is a bar, a function itself, None and False
    nothing."""
    if callable(progress):
        return progress
    if progress is None or isinstance(progress, int):
        return Bar() if progress else None
    raise TypeError(f"progress: expected a function, True or None, got {type(progress).__name__}")
