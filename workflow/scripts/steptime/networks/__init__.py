"""Networks: the neutral specification that adapters build and proofs are held against."""

from steptime.networks.specification import (
    LAYER_KINDS,
    count_layers,
    count_parameters,
    flops_per_step,
    resolve,
    specify,
)
from worker.specification import BATCH_NORM_EPSILON, count_classes, count_labels

__all__ = [
    "BATCH_NORM_EPSILON",
    "LAYER_KINDS",
    "count_classes",
    "count_labels",
    "count_layers",
    "count_parameters",
    "flops_per_step",
    "resolve",
    "specify",
]
