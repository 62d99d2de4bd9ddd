"""The steps of a sequence in succession, as features of one row."""

from dataclasses import replace

from steptime.networks.layers import EMBEDDING, WORDS, moved_by_copy
from steptime.networks.layers.flatten import LAYER as FLATTEN

# Steps come first in memory, so that it is a copy.
LAYER = replace(
    FLATTEN,
    takes=("sequence",),
    numbers_moved=moved_by_copy,
    example=(WORDS, [EMBEDDING, "unstack"]),
)
