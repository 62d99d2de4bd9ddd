"""The papers' tables and figures, rebuilt from what was measured here, beside what the papers printed.

A paper is a folder of data, `resources/papers/<paper>/` (its numbers as CSV and `paper.yaml`, which says what its
artefacts are), and one small module that names the kind of each artefact. `kinds` gives the builder of a kind what it
needs; builders (`software`, `networks`, `machines`, `times`, `sweep` ...) know no paper; `render` and `figure` write
what they build.
"""
