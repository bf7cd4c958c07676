"""What an object shows of itself: lines of text when it is printed, a table of HTML in a notebook."""

import html
from typing import Any


def _shown(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


class Summary:
    """A class with `_facts`, which gives a title, pairs of a name and a value, and a table as (heads, rows)."""

    def _facts(self) -> tuple[str, list[tuple[str, Any]], tuple[list[str], list[list[Any]]]]:
        raise NotImplementedError

    def _text(self) -> str:
        title, facts, (heads, rows) = self._facts()
        width = max((len(name) for name, _ in facts), default=0)
        lines = [title, *(f"{name.ljust(width)}  {_shown(value)}" for name, value in facts)]
        table = [heads, *([_shown(v) for v in row] for row in rows)] if rows else []
        widths = [max(len(row[k]) for row in table) for k in range(len(heads))] if table else []
        lines += ["  ".join(c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths))).rstrip() for row in table]
        return "\n".join(lines)

    def summary(self) -> None:
        """Prints what this is, in lines."""
        print(self._text())

    def _repr_html_(self) -> str:
        title, facts, (heads, rows) = self._facts()
        cells = lambda tag, values: "".join(f"<{tag}>{html.escape(_shown(v))}</{tag}>" for v in values)
        out = ['<table class="fourge">', f"<caption>{html.escape(title)}</caption>", "<tbody>"]
        out += [f"<tr>{cells('th', [name])}{cells('td', [value])}</tr>" for name, value in facts]
        out += ["</tbody>", "</table>"]
        if rows:
            out += ['<table class="fourge">', f"<thead><tr>{cells('th', heads)}</tr></thead>", "<tbody>",
                    *(f"<tr>{cells('th', row[:1])}{cells('td', row[1:])}</tr>" for row in rows), "</tbody>", "</table>"]
        return "\n".join(out)
