"""Makes of the public headers what Sphinx reads: docs_headers.py [--bare] INCLUDE OUT

A field of ours has its docstring behind it, one comment may be of several declarations, and
comments are plain text.  Sphinx's reader of C (hawkmoth) takes a docstring in reStructuredText
directly before each name.  OUT/include/fourge/NAME.h gets the header with every docstring there,
OUT/c/NAME.rst the page that lists it, with the comment at the header's head.  A declaration without
a docstring is listed as well; --bare prints the functions and types that have none.  A comment
becomes paragraphs, lists of lines that begin with "- ", and formulas where lines are indented by
four.
"""

import pathlib
import re
import sys
import textwrap

from clang.cindex import CursorKind, Index, TokenKind, TranslationUnit
from hawkmoth.util.compiler import get_include_args

FIELDS = (CursorKind.FIELD_DECL, CursorKind.ENUM_CONSTANT_DECL)
NAMED = (
    CursorKind.FUNCTION_DECL,
    CursorKind.TYPEDEF_DECL,
    *FIELDS,
)
BODIES = (CursorKind.STRUCT_DECL, CursorKind.ENUM_DECL, CursorKind.UNION_DECL)
SECTION = re.compile(r"/\* -{2,} (.*?) -+ \*/")


def words(comment):
    """The text of a C comment without its frame of stars."""
    body = re.sub(r"\A/\*+[ \t]?|\s*\*/\Z", "", comment)
    first, _, rest = body.partition("\n")
    rest = "\n".join(re.sub(r"^[ \t]*\*[ \t]?", "", line) for line in rest.split("\n"))
    return (first.strip() + "\n" + textwrap.dedent(rest)).strip("\n")


def escaped(text, functions):
    """Plain text as reStructuredText: names of functions are links, `words` in backticks code."""
    pieces = re.split(r"`([^`]+)`", text)
    for i in range(0, len(pieces), 2):
        plain = re.sub(r"([\\*_|`@])", r"\\\1", pieces[i])
        pieces[i] = re.sub(
            r"\bfrg(?:\\_\w+?)+\b(?!\\_)", lambda m: linked(m.group(), functions), plain
        )
    for i in range(1, len(pieces), 2):
        pieces[i] = rf"\ ``{pieces[i]}``\ "
    text = "".join(pieces)
    return text if text[:1].isalpha() and not re.match(r"\w{1,4}[.)]", text) else "\\ " + text


def linked(name, functions):
    plain = name.replace("\\", "")
    return rf"\ :c:func:`{plain}`\ " if plain in functions else name


def kind_of(line):
    if not line.strip():
        return ""
    if line.startswith("    "):
        return "formula"
    return "item" if re.match(r" ?- ", line) else "text"


def blocks(text):
    """(kind, lines) of paragraphs, items of lists and formulas."""
    out = []
    for line in text.split("\n"):
        kind = kind_of(line)
        before = out[-1][0] if out else ""
        if kind == "text" and line.startswith(" ") and before == "item":
            out[-1][1].append(line)
        elif kind != "item" and kind == before:
            out[-1][1].append(line)
        else:
            out.append((kind, [line]))
    return [(kind, lines) for kind, lines in out if kind]


def restructured(text, functions):
    """A comment's text as lines of reStructuredText."""
    out = []
    for kind, lines in blocks(text):
        joined = " ".join(line.strip() for line in lines)
        if kind == "formula":
            out += ["::", "", *lines, ""]
        elif kind == "item":
            out += ["- " + escaped(joined[2:], functions), ""]
        else:
            out += [escaped(joined, functions), ""]
    return "\n".join(out).strip("\n")


class Header:
    """One header: its text, its comments by place, and the edits to it."""

    def __init__(self, path, arguments):
        self.path, self.text = path, path.read_text(encoding="utf-8")
        self.unit = Index.create().parse(
            str(path),
            args=["-xc-header", *arguments],
            options=TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD,
        )
        wrong = [d.spelling for d in self.unit.diagnostics if d.severity >= 3]
        if wrong:
            sys.exit(f"{path}: {wrong[0]}")
        if not self.text.isascii():
            sys.exit(f"{path}: expected ASCII, where places in bytes are places in the text")
        self.comments = [
            (t.extent.start.offset, t.extent.end.offset)
            for t in self.unit.get_tokens(extent=self.unit.cursor.extent)
            if t.kind == TokenKind.COMMENT
        ]
        self.declarations = list(self.declared(self.unit.cursor))
        self.used, self.inserts, self.bare = set(), [], []

    def declared(self, parent):
        for c in parent.get_children():
            if c.location.file is None or c.location.file.name != str(self.path):
                continue
            opaque = c.kind in BODIES and not c.is_definition()
            named_here = c.kind == CursorKind.TYPEDEF_DECL and any(
                k.kind in BODIES and k.is_definition() for k in c.get_children()
            )
            if c.kind in BODIES and not opaque or c.kind in NAMED and not named_here:
                yield c
            if c.kind in (*BODIES, CursorKind.UNEXPOSED_DECL, CursorKind.LINKAGE_SPEC):
                yield from self.declared(c)

    def before(self, c):
        """The comments before a declaration, the nearest first: its docstring; where it is no field
        also plain comments in the lines directly above, and a docstring above these."""
        start = c.extent.start.offset
        nearest = True
        for a, b in reversed([place for place in self.comments if place[1] <= start]):
            between, line = self.text[b:start], self.text[:a].rsplit("\n", 1)[-1]
            if not re.fullmatch(r"\s*(?:(?:typedef|FRG_\w+)\s+)*", between):
                return
            docstring = self.text.startswith("/**", a)
            plain = c.kind not in FIELDS and not SECTION.fullmatch(self.text[a:b])
            above = "\n\n" not in between and not line.strip()
            if not (docstring and nearest or (docstring or plain) and above):
                return
            yield a, b
            start, nearest = a, False

    def behind(self, c):
        """The comment that begins behind a declaration in its line."""
        end = c.extent.end.offset
        for a, b in self.comments:
            if a >= end and re.fullmatch(
                r"[^\n{}]*" if c.kind in NAMED else r"[^\n]*", self.text[end:a]
            ):
                return [(a, b)]
        return []

    def place(self, functions):
        """Every docstring before its name, sections as titles."""
        for c in self.declarations:
            found = [*reversed(list(self.before(c))), *self.behind(c)]
            self.used.update(found)
            text = "\n\n".join(restructured(words(self.text[a:b]), functions) for a, b in found)
            if not text and c.kind not in FIELDS:
                self.bare.append(c.spelling)
            at = c.extent.start.offset if c.kind in BODIES else c.location.offset
            unnamed = c.type.get_declaration() if c.kind == CursorKind.FIELD_DECL else None
            if unnamed and unnamed.kind == CursorKind.ENUM_DECL and unnamed.is_anonymous():
                behind = unnamed.extent.start.offset + len("enum")
                self.inserts.append((behind, f" {c.semantic_parent.spelling}_{c.spelling}"))
            self.inserts.append((at, f"/**\n{text or '..'}\n*/ "))
        for a, b in self.comments:
            title = SECTION.fullmatch(self.text[a:b])
            if title:
                name = title[1][:1].upper() + title[1][1:]
                self.used.add((a, b))
                self.inserts.append((a, f"/**\n{name}\n{'-' * len(name)}\n*/ /**/"))

    def written(self):
        pieces, at = [], 0
        changes = sorted(
            [(a, 1, b, "") for a, b in self.used] + [(a, 0, a, new) for a, new in self.inserts]
        )
        for a, _, b, new in changes:
            pieces += [self.text[at:a], new]
            at = b
        return "".join(pieces) + self.text[at:]

    def page(self, functions):
        """The page of the header: its first comment, then all declarations."""
        name = "fourge/" + self.path.name
        head = words(self.text[slice(*self.comments[0])])
        head = re.sub(r"\A" + re.escape(self.path.name) + r" - ", "", head)
        head = restructured(head, functions)
        return f"{name}\n{'=' * len(name)}\n\n{head}\n\n.. c:autodoc:: {name}\n"


def main(include, out, bare):
    (out / "c").mkdir(parents=True, exist_ok=True)
    (out / "include/fourge").mkdir(parents=True, exist_ok=True)
    arguments = [f"-I{include}", *get_include_args("gcc", "c")]
    headers = [Header(path, arguments) for path in sorted((include / "fourge").glob("*.h"))]
    functions = {
        c.spelling for h in headers for c in h.declarations if c.kind == CursorKind.FUNCTION_DECL
    }
    for h in headers:
        h.place(functions)
        (out / "include/fourge" / h.path.name).write_text(h.written(), encoding="utf-8")
        (out / f"c/{h.path.stem}.rst").write_text(h.page(functions), encoding="utf-8")
        if bare and h.bare:
            print(f"{h.path.name}: without a docstring: {' '.join(h.bare)}")


if __name__ == "__main__":
    names = [word for word in sys.argv[1:] if word != "--bare"]
    main(*map(pathlib.Path, names), "--bare" in sys.argv)
