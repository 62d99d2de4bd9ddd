"""How sure a number is, and what may be said of two: the one place that decides what a difference is.

`spreads` estimates how much processes differ, once for all results of a run. `intervals` and `ratios` give times and
ratios their intervals. `pairs` is the one table that says slower, equal or not decided of each two results of a place,
and `words` has the word for each result.
"""
