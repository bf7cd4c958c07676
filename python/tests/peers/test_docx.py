"""Tables as documents of Word, read back by python-docx."""

import pathlib
import tempfile
import unittest

import docx
import numpy as np
from docx.oxml.ns import qn

from fourge import fe


def fits():
    rng = np.random.default_rng(2)
    d = {"x": rng.normal(size=60), "z": rng.normal(size=60), "firm": np.arange(60) % 6}
    d["y"] = d["x"] + rng.normal(size=60)
    return [fe.feols("y ~ x", d), fe.feols("y ~ x + z | firm", d, vcov={"CRV1": "firm"})]


class Documents(unittest.TestCase):
    def test_cells(self):
        """The cells are those of the table as text, row by row, and the notes stand below."""
        two = fits()
        options = {"signif_code": [0.001, 0.01, 0.05], "notes": "a first line\nand <a> second & one", "labels": {"x": "rate"}}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "table.docx")
            made = fe.etable(two, "docx", file_name=path, **options)
            read = docx.Document(str(path))
        table = read.tables[0]
        rows = [[cell.text for cell in row.cells] for row in table.rows]
        self.assertEqual(rows, [[c.text for c in row.cells] for row in made.tables[0].rows])
        text = [line for line in fe.etable(two, **options).splitlines() if not line.startswith("--")]
        self.assertEqual([" ".join(" ".join(row).split()) for row in rows], [" ".join(line.split()) for line in text[:len(rows)]])
        self.assertEqual([p.text for p in read.paragraphs if p.text], text[len(rows):])
        self.assertEqual({len(row) for row in rows}, {3})
        self.assertIn("rate", [row[0] for row in rows])

    def test_rules(self):
        """A line above the heads, below them, and below each block, and no others."""
        table = fe.etable(fits(), "docx").tables[0]
        sides = [[line.tag.split("}")[1] for line in row.cells[0]._tc.iter() if line.getparent().tag == qn("w:tcBorders")] for row in table.rows]
        blocks = [row.cells[0].text for row, s in zip(table.rows, sides) if "bottom" in s]
        self.assertEqual(sides[0], ["top"])
        self.assertEqual(sum(map(len, sides)), 1 + 4)  # heads, coefficients, effects, statistics
        self.assertEqual(blocks[2], "firm")

    def test_one_fit(self):
        self.assertEqual(len(fits()[0].etable("docx").tables), 1)


if __name__ == "__main__":
    unittest.main()
