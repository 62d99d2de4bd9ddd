"""How sure a number is, and what may be said of two: the one place that decides what a difference is.

`spreads` says how much processes differ, estimated once for all results of a run; `intervals` and `ratios` give times
and ratios their intervals; `verdicts` says faster, slower or equal, and `words` does for the fastest of each place.
"""
