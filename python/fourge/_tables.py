"""Regression tables and coefficient plots of several fits; reached through :mod:`fourge.fe`."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from . import _docx, errors

_TOKENS = {"b": "estimate", "se": "std_error", "t": "statistic", "p": "p_value", "ci_l": "conf_low", "ci_u": "conf_high"}
_STARS = ("***", "**", "*")


def as_list(fits):
    """One fit or several as a list."""
    fits = list(fits) if isinstance(fits, (list, tuple)) else [fits]
    if not fits or not all(hasattr(f, "result") for f in fits):
        raise TypeError("expected a fit of feols, or a list of them")
    return fits


def chosen(terms, keep, drop, exact_match):
    """The terms that stay, in the order of `keep` where it is given: regular expressions, as pyfixest has them."""
    def matches(patterns, term):
        return any(p == term if exact_match else re.search(p, term) for p in patterns)

    as_patterns = lambda p: [p] if isinstance(p, str) else list(p or [])
    keep, drop = as_patterns(keep), as_patterns(drop)
    if keep:
        terms = [t for p in keep for t in terms if matches([p], t)]
    return [t for t in dict.fromkeys(terms) if not matches(drop, t)]


def _stars(p, levels):
    return next((s for s, limit in zip(_STARS, levels) if p < limit), "") if levels else ""


def _cell(row, coef_fmt, digits, levels):
    """The lines of one coefficient: the tokens of `coef_fmt` are replaced by numbers."""
    def number(match):
        value = row[_TOKENS[match[0]]]
        text = "NA" if value != value else f"{value:.{digits}f}"
        return text + _stars(row["p_value"], levels) if match[0] == "b" else text

    return [re.sub(r"\b(ci_l|ci_u|se|b|t|p)\b", number, line.strip()) for line in coef_fmt.split("\n")]


def _spec_words(spec):
    return f"by: {spec[len('cluster='):]}" if spec.startswith("cluster=") else spec


def remarks(fit):
    """What is to be known of a fit's standard errors beside their formula, in lines."""
    shown, n = fit._shown, fit.result["n"]
    out = []
    if shown["projected"]:
        out.append("\u2020 a variance was not positive: that coefficient has no standard error (NA), the others come from the matrix "
                   "with its negative eigenvalues set to 0")
    if shown["k_naive"] not in (0, shown["k"]):
        ratio = ""
        if shown["ssc"].startswith("adj=true") and n > max(shown["k"], shown["k_naive"]):
            ratio = f", with {((n - shown['k']) / (n - shown['k_naive'])) ** 0.5:.6g} times these errors"
        out.append(f"K counts {shown['k']} independent parameters; fixest and pyfixest count {shown['k_naive']}{ratio} (dof=\"naive\")")
    return out


def _least_first_stage(fit, digits):
    """The least F of the instruments in the first stages, under the covariance shown, or the fit's first."""
    first = fit.result.get("first_stage")
    if not first:
        return "-"
    tests = next((t for t in first["tests"] if t["vcov"] == fit._shown["spec"]), first["tests"][0])
    return f"{min(tests['f']):.{digits}f}"


def etable(fits: Any, type: str = "text", *, digits: int = 3, signif_code: Sequence[float] | None = None,
           coef_fmt: str = "b \n (se)", keep: Any = None, drop: Any = None, exact_match: bool = False,
           labels: Mapping[str, str] | None = None, felabels: Mapping[str, str] | None = None, show_fe: bool = True,
           fe_present: str = "x", fe_absent: str = "-", model_heads: Sequence[str] | None = None, notes: str = "",
           file_name: Any = None) -> Any:
    """Several fits side by side.

    Parameters
    ----------
    fits : Fit or list of Fit
    type : {"text", "md", "tex", "html", "docx", "df"}, default="text"
        "tex" needs the package booktabs; "html" is one table element; "docx" is a document of
        python-docx, for Word; "df" is a frame of pandas.
    digits : int, default=3
        After the point.
    signif_code : list of three numbers, optional
        ``[0.001, 0.01, 0.05]`` puts ``***``, ``**``, ``*`` behind estimates of smaller p-values; none without.
    coef_fmt : str, default="b \\n (se)"
        What a coefficient's cell shows: ``b``, ``se``, ``t``, ``p``, ``ci_l``, ``ci_u``, in lines.
    keep, drop : str or list of str, optional
        Regular expressions of terms (whole names with `exact_match`).
    labels, felabels : dict, optional
        Names to show for terms and dependent variables, and for fixed effects.
    show_fe : bool, default=True
    fe_present, fe_absent : str, default="x" and "-"
    model_heads : list of str, optional
        In place of (1), (2), ...
    notes : str
        Below the table.
    file_name : str, optional
        The text, or the document, is written there as well.

    Returns
    -------
    str, docx.document.Document or pandas.DataFrame
    """
    fits = as_list(fits)
    if type not in _WRITERS:
        raise ValueError(f"type={type!r}: expected one of {list(_WRITERS)}")
    if model_heads is not None and len(model_heads) != len(fits):
        raise ValueError(f"model_heads: expected {len(fits)} names, got {len(model_heads)}")
    unknown = set(re.findall(r"[a-z_]+", coef_fmt)) - set(_TOKENS)
    if unknown:
        raise ValueError(f"coef_fmt: {sorted(unknown)[0]!r} is none of {list(_TOKENS)}")
    named = lambda names, word: (names or {}).get(word, word)
    heads = [[named(labels, f.result["depvar"]) for f in fits], list(model_heads or (f"({i + 1})" for i in range(len(fits))))]
    rows = [{c["term"]: c for c in f._shown["coefficients"]} for f in fits]
    terms = chosen([t for f in fits for t in f.terms], keep, drop, exact_match)
    coefficients = [
        (named(labels, t), [_cell(r[t], coef_fmt, digits, signif_code) if t in r else [] for r in rows]) for t in terms
    ]
    factors = dict.fromkeys(q for f in fits for q in f._factors) if show_fe else ()
    effects = [(named(felabels, q), [[fe_present if q in f._factors else fe_absent] for f in fits]) for q in factors]
    samples = [f.result.get("sample") for f in fits]
    stats = [(f"Sample: {name}", [[s["value"] if s and s["split"] == name else "all"] for s in samples])
             for name in dict.fromkeys(s["split"] for s in samples if s)]
    stats += [
        ("Observations", [[str(f.result["n"])] for f in fits]),
        ("S.E. type", [[_spec_words(f._shown["spec"]) + " \u2020" * f._shown["projected"]] for f in fits]),
    ]
    of = lambda f, key: [f"{f.result[key]:.{digits}f}" if f.result.get(key, math.nan) == f.result.get(key) else "-"]
    if any("family" not in f.result for f in fits):
        stats.append(("R2", [of(f, "r2") for f in fits]))
        if any(f._factors for f in fits):
            stats.append(("R2 Within", [of(f, "r2_within") if f._factors else ["-"] for f in fits]))
    if any("first_stage" in f.result for f in fits):
        stats.append(("First-stage F", [[_least_first_stage(f, digits)] for f in fits]))
    if any("family" in f.result for f in fits):
        stats.append(("Pseudo R2", [of(f, "pseudo_r2") for f in fits]))
    if signif_code:
        marks = ", ".join(f"{s} p < {limit:g}" for s, limit in reversed(list(zip(_STARS, signif_code))))
        notes = f"{notes}\nSignificance levels: {marks}".strip()
    for i, f in enumerate(fits):
        for remark in remarks(f):
            notes = f"{notes}\n({i + 1}): {remark}".strip()
    marked = [f"({i + 1})" for i, f in enumerate(fits) if not f.result["solver"]["converged"]]
    if marked:
        notes = f"{notes}\nNot converged: {', '.join(marked)}".strip()
    out = _WRITERS[type](heads, {k: s for k, s in (("coef", coefficients), ("fe", effects), ("stats", stats)) if s}, notes)
    if file_name is not None:
        if type == "df":
            raise ValueError("file_name goes with the types that are text, and with docx")
        if type == "docx":
            out.save(file_name)
            return out
        with open(file_name, "w", encoding="utf-8") as f:
            f.write(out + "\n")
    return out


# ---- writers: heads (dependent variables, numbers), {name: rows of (label, lines of each fit)}, notes ---------------


def _lines(section):
    """The rows of a section as lists of cells, one a line of text."""
    for label, cells in section:
        for k in range(max(1, *(len(c) for c in cells))):
            yield [label if k == 0 else "", *(c[k] if k < len(c) else "" for c in cells)]


def _text(heads, sections, notes):
    blocks = [[["", *h] for h in heads], *(list(_lines(s)) for s in sections.values())]
    widths = [max(len(row[k]) for b in blocks for row in b) for k in range(len(heads[0]) + 1)]
    show = lambda row: "  ".join(c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths))).rstrip()
    rule = "-" * (sum(widths) + 2 * len(heads[0]))
    out = [rule]
    for block in blocks:
        out += [*map(show, block), rule]
    return "\n".join(out + notes.splitlines())


def _md(heads, sections, notes):
    show = lambda cells: "| " + " | ".join(c.replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*") for c in cells) + " |"
    top = ["", *(f"{a} {b}" for a, b in zip(*heads))]
    out = [show(top), "|:--" + "|--:" * len(heads[0]) + "|"]
    out += [show(row) for s in sections.values() for row in _lines(s)]
    return "\n".join(out + (["", *notes.splitlines()] if notes else []))


_TEX = {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
        "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$", "|": r"$|$"}


def _tex(heads, sections, notes):
    safe = lambda text: "".join(_TEX.get(c, c) for c in text)
    show = lambda cells: " & ".join(map(safe, cells)) + r" \\"
    out = [r"\begin{tabular}{l" + "c" * len(heads[0]) + "}", r"\toprule"]
    out += [show(["", *h]) for h in heads]
    for s in sections.values():
        out += [r"\midrule", *(show(row) for row in _lines(s))]
    out += [r"\bottomrule"]
    out += [rf"\multicolumn{{{len(heads[0]) + 1}}}{{l}}{{\footnotesize {safe(line)}}} \\" for line in notes.splitlines()]
    return "\n".join([*out, r"\end{tabular}"])


def _html(heads, sections, notes):
    cell = lambda tag, lines: f"<{tag}>" + "<br>".join(html.escape(line) for line in lines) + f"</{tag}>"
    out = ['<table class="fourge">', "<thead>"]
    out += ["<tr><th></th>" + "".join(cell("th", [c]) for c in h) + "</tr>" for h in heads]
    out += ["</thead>"]
    for s in sections.values():
        out += ["<tbody>", *("<tr>" + cell("th", [label]) + "".join(cell("td", c) for c in cells) + "</tr>" for label, cells in s),
                "</tbody>"]
    if notes:
        out.append(f'<tfoot><tr><td colspan="{len(heads[0]) + 1}">' + "<br>".join(html.escape(n) for n in notes.splitlines())
                   + "</td></tr></tfoot>")
    return "\n".join([*out, "</table>"])


def _df(heads, sections, notes):
    del notes
    try:
        import pandas as pd
    except ImportError as e:
        raise ImportError('type="df" needs pandas: pip install pandas') from e
    index = [(name, label) for name, s in sections.items() for label, _ in s]
    body = [["\n".join(c) for c in cells] for s in sections.values() for _, cells in s]
    return pd.DataFrame(body, index=pd.MultiIndex.from_tuples(index), columns=pd.MultiIndex.from_arrays(heads))


def _word(heads, sections, notes):
    return _docx.document([[["", *h] for h in heads], *(list(_lines(s)) for s in sections.values())], notes)


_WRITERS = {"text": _text, "md": _md, "tex": _tex, "html": _html, "docx": _word, "df": _df}


# ---- plots ----------------------------------------------------------------------------------------------------------


def _axes(ax, figsize, title):
    try:
        from matplotlib import pyplot as plt
    except ImportError as e:
        raise ImportError("plots need matplotlib: pip install matplotlib (or fourge[plots])") from e
    if ax is None:
        _, ax = plt.subplots(figsize=figsize)
    if title:
        ax.set_title(title)
    return ax


def _points(ax, fits, positions, names, coord_flip, yintercept, rotate_xticks):
    """Estimates with their intervals at positions (one dict of term -> place a fit); fits lie side by side."""
    for k, (fit, place) in enumerate(zip(fits, positions)):
        rows = [c for c in fit._shown["coefficients"] if c["term"] in place]
        shift = 0.12 * (k - (len(fits) - 1) / 2)
        at = [place[c["term"]] + shift for c in rows]
        b = [c["estimate"] for c in rows]
        reach = [[c["estimate"] - c["conf_low"] for c in rows], [c["conf_high"] - c["estimate"] for c in rows]]
        style = {"fmt": "os^Dv"[k % 5], "capsize": 3, "label": f"({k + 1}) {fit.result['depvar']}"}
        if coord_flip:
            ax.errorbar(b, at, xerr=reach, **style)
        else:
            ax.errorbar(at, b, yerr=reach, **style)
    where, words = list(names.values()), list(names)
    if coord_flip:
        if words:
            ax.set_yticks(where, words)
        ax.invert_yaxis()
        ax.axvline(yintercept, color="0.5", linewidth=0.8, linestyle="--")
    else:
        if words:
            ax.set_xticks(where, words)
        ax.tick_params(axis="x", rotation=rotate_xticks)
        ax.axhline(yintercept, color="0.5", linewidth=0.8, linestyle="--")
    if len(fits) > 1:
        ax.legend()
    return ax


def coefplot(fits: Any, *, keep: Any = None, drop: Any = None, exact_match: bool = False,
             labels: Mapping[str, str] | None = None, yintercept: float = 0, coord_flip: bool = True, rotate_xticks: float = 0,
             title: str | None = None, figsize: tuple[float, float] | None = None, ax: Any = None) -> Any:
    """Estimates with the intervals of each fit's level, by matplotlib.

    Parameters
    ----------
    fits : Fit or list of Fit
    keep, drop, exact_match, labels
        As in :func:`etable`.
    yintercept : float, default=0
        Where the line of reference is.
    coord_flip : bool, default=True
        Terms on the vertical axis.
    rotate_xticks : float
        Degrees.
    title : str, optional
    figsize : (width, height) in inches, optional
    ax : matplotlib Axes, optional
        Where to draw; without, a new figure.

    Returns
    -------
    matplotlib Axes
    """
    fits = as_list(fits)
    terms = chosen([t for f in fits for t in f.terms], keep, drop, exact_match)
    if not terms:
        raise ValueError("no term is left to plot")
    place = {t: i for i, t in enumerate(terms)}
    names = {(labels or {}).get(t, t): i for t, i in place.items()}
    return _points(_axes(ax, figsize, title), fits, [place] * len(fits), names, coord_flip, yintercept, rotate_xticks)


#: What i(f, ref=...) names: a value, or c(...) of several.
_REFERENCE = re.compile(r"""\bi\([^()]*?\bref\s*=\s*(?:c\(([^()]*)\)|('[^']*'|"[^"]*"|[^,()\s]+))""")
_VALUE = re.compile(r"""'([^']*)'|"([^"]*)"|([^\s,'"]+)""")


def _references(formula):
    return ["".join(v) for m in _REFERENCE.finditer(formula) for v in _VALUE.findall(m[1] or m[2])]


def iplot(fits: Any, *, labels: Mapping[str, str] | None = None, yintercept: float = 0, coord_flip: bool = False,
          rotate_xticks: float = 0, title: str | None = None, figsize: tuple[float, float] | None = None, ax: Any = None) -> Any:
    """The coefficients of ``i(...)`` or ``sunab(...)``, at the numbers of their levels where all are numbers; references are
    shown at 0.

    Parameters
    ----------
    fits, yintercept, coord_flip, rotate_xticks, title, figsize, ax
        As in :func:`coefplot`.
    labels : dict, optional
        Names to show for levels.

    Returns
    -------
    matplotlib Axes
    """
    fits = as_list(fits)
    levels = [{t: m[1] for t in f.terms if (m := re.fullmatch(r"[^:]+::([^:]+)(:.*)?", t))} for f in fits]
    if not any(levels):
        raise errors.BadArgument("the fits have no coefficients of i(...)")
    references = [word for f in fits for word in _references(f.result["formula"])]
    references += [f"{e['time']:.15g}" for f in fits for e in f.result.get("events", ()) if e["term"] is None]
    words = list(dict.fromkeys([v for each in levels for v in each.values()] + references))
    try:
        where = {w: float(w) for w in words}
        names = {(labels or {})[w]: at for w, at in where.items() if w in (labels or {})}  # else the axis has its own
    except ValueError:
        where = {w: float(i) for i, w in enumerate(words)}
        names = {(labels or {}).get(w, w): at for w, at in where.items()}
    positions = [{t: where[w] for t, w in each.items()} for each in levels]
    ax = _points(_axes(ax, figsize, title), fits, positions, names, coord_flip, yintercept, rotate_xticks)
    for w in dict.fromkeys(references):
        ax.plot(*((0, where[w]) if coord_flip else (where[w], 0)), "x", color="0.5")
    return ax
