"""Tables as LaTeX: pdflatex sets all of a run, and none is wider than its page."""

import re
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.alone

DOCUMENT = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage{array,booktabs,graphicx,longtable,lscape}
\begin{document}
%s
\end{document}
"""
# What nobody sees, in points (a page's width has 345).
SLIGHT = 3.0


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="there is no pdflatex on PATH")
def test_pdflatex_sets_every_table_within_its_page(whole_run, tmp_path):
    tables = sorted((whole_run[0].root / "results/tables").glob("*.tex"))
    assert len(tables) > 10
    for path in tables:
        shutil.copy(path, tmp_path)
    inputs = "\n".join(rf"\input{{{path.name}}}\clearpage" for path in tables)
    (tmp_path / "all.tex").write_text(DOCUMENT % inputs)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="latin-1")
    assert done.returncode == 0, done.stdout[-3000:]
    beyond = [match for match in re.finditer(r"Overfull \\hbox \((\S+)pt too wide\)", done.stdout)]
    assert not [match[0] for match in beyond if float(match[1]) > SLIGHT]
