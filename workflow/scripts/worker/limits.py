"""How far a right framework's losses may be from those of float64, on both sides of a proof at full size.

Plain Python that 3.6 can import: standard library.
"""

# Right frameworks' losses are within 1.3e-7 of float64, but for what follows.
LOSS = 4e-7
# oneDNN's logarithm in the log_softmax of MXNet 1.9 is off by up to 3.7e-6, of whatever number; where there are many
# labels, most of it is lost in their mean (docs/reference/measuring.md).
LOGARITHM = 2.0**-18
# The fall of a loss is as exact as what made it.
FALL = 1e-3


def of_loss(loss, first=None):
    """How far off a loss may be; `first` is that of the first step, where this is another one."""
    fall = 0.0 if first is None else abs(loss - first)
    return LOSS * abs(loss) + LOGARITHM + FALL * fall
