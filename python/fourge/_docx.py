"""Tables of regressions as documents of Word, by python-docx."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def _ruled(row: Any, side: str) -> None:
    """Draws a line at that side of a row, as booktabs has them; python-docx has no call for it."""
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    for cell in row.cells:
        properties = cell._tc.get_or_add_tcPr()
        borders = properties.find(qn("w:tcBorders"))
        if borders is None:
            borders = OxmlElement("w:tcBorders")
            properties.append(borders)
        line = OxmlElement(f"w:{side}")
        for key, value in (("val", "single"), ("sz", "8"), ("color", "000000")):
            line.set(qn(f"w:{key}"), value)
        borders.append(line)


def document(blocks: Iterable[list[list[str]]], notes: str) -> Any:
    """A document with one table: blocks of rows of cells with a line below each, the first above, too; notes as paragraphs."""
    try:
        import docx
        from docx.enum.text import WD_ALIGN_PARAGRAPH
    except ImportError as e:
        raise ImportError('type="docx" needs python-docx: pip install python-docx') from e
    blocks = list(blocks)
    out = docx.Document()
    table = out.add_table(rows=0, cols=len(blocks[0][0]))
    for block in blocks:
        for words in block:
            row = table.add_row()
            for k, (cell, text) in enumerate(zip(row.cells, words)):
                cell.text = text
                cell.paragraphs[0].alignment = WD_ALIGN_PARAGRAPH.CENTER if k else WD_ALIGN_PARAGRAPH.LEFT
                cell.paragraphs[0].paragraph_format.space_after = 0
        _ruled(table.rows[-1], "bottom")
    _ruled(table.rows[0], "top")
    for line in notes.splitlines():
        out.add_paragraph(line)
    return out
