"""How far a right framework's losses may be from those of float64, on both sides of a proof at full size.

Plain Python that 3.6 can import: standard library.
"""

# Right frameworks' losses are within 1.3e-7 of float64, but for what follows.
LOSS = 4e-7
# oneDNN's logarithm in the log_softmax of MXNet 1.9 is off by up to 3.7e-6, of whatever number; where there are many
# labels, most of it is lost in their mean (docs/reference/measuring.md).
LOGARITHM = 2.0**-18
# Some frameworks add the losses of n labels one by one in float32. Each addition is off by up to so much of the sum so
# far, evenly: the mean by a third of it times sqrt(n), in the root of the mean square. Three times that is allowed.
ADDITION = 2.0**-24
# The fall of a loss is as exact as what made it.
FALL = 1e-3


def of_loss(loss, first=None, labels=0):
    """How far off a loss of so many labels may be; `first` is that of the first step, where this is another one."""
    fall = 0.0 if first is None else abs(loss - first)
    return (LOSS + ADDITION * labels**0.5) * abs(loss) + LOGARITHM + FALL * fall
