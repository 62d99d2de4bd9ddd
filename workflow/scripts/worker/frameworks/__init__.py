"""Frameworks: a folder for each, which can build and train networks of the catalogue in it.

What its modules declare and offer is in `worker.contract`; `_template/` is one to copy. What was chosen in each, and by
which measured ratios: docs/adapters/<name>.md.
"""
