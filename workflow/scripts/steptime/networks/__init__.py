"""Networks: the neutral specification that adapters build and proofs are compared with."""

# Names for those who import the package.
# ruff: noqa: F401
from shared.specification import count_classes, count_labels
from steptime.networks import masks
from steptime.networks.counts import (
    bytes_of_reference,
    bytes_per_step,
    count_layers,
    count_parameters,
    flops_per_step,
    normalises,
    single_values,
    spare_parameters,
)
from steptime.networks.specification import RECORDS, resolve, specify, tiny, used_records
