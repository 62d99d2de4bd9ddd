"""Losses: one record for each, with all about it, in the module of its name in this folder."""

from collections.abc import Callable
from dataclasses import dataclass

from steptime.networks.arrays import Array
from steptime.networks.layers import Shape
from steptime.networks.records import Records


def wants_row(form: str, shape: Shape, source: Shape) -> str:
    """Says what to write where the outputs are not a row; '' where they are."""
    return "" if form == "row" else "write flatten or unstack behind it"


@dataclass(frozen=True)
class Loss:
    """A loss on which networks are trained, in float64."""

    # (logits (batch, ..., classes), labels (batch, ...)) -> the loss, and its gradient for the logits. For a loss
    # without classes: outputs and targets, both of the last layer's shape.
    value: Callable[[Array, Array], tuple[float, Array]]
    # The same -> the loss of each label.
    each: Callable[[Array, Array], Array]
    # How often a step reads or writes a number for each logit.
    moves: int
    # (form and shape of the last layer, shape of the network's input) -> what to write where they do not fit the loss,
    # or ''.
    misfit: Callable[[str, Shape, Shape], str] = wants_row


LOSSES = Records(__name__, __path__, "LOSS")
