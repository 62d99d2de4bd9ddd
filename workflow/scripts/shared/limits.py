"""Says how far a right framework's losses may be from those in float64, for both sides of a proof at full size."""

from .precisions import PRECISIONS, USUAL

# oneDNN's logarithm in the log_softmax of MXNet 1.9 is off by up to 3.7e-6, whatever the number; with many labels, most
# of this is lost in their mean (docs/evidence/proofs.md).
LOGARITHM = 2.0**-18
# Some frameworks add the losses of n labels one by one in float32. Each addition is off by up to this share of the sum
# so far, evenly: the mean by a third of it times sqrt(n), in the root mean square. Three times that is allowed.
ADDITION = 2.0**-24


def of_loss(loss, first=None, labels=0, precision=USUAL):
    """Returns how far off a loss of so many labels may be; `first` is the first step's loss, if that is another."""
    least = PRECISIONS[precision]
    fall = 0.0 if first is None else abs(loss - first)
    return (least.loss + ADDITION * labels**0.5) * abs(loss) + LOGARITHM + least.fall * fall
