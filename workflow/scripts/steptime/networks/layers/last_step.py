"""The features (units) of the last step of a sequence (steps, units)."""

from steptime.networks.layers.first_step import one_step

LAYER = one_step(-1, [{"lstm": {"units": 4}}, "last_step"])
