"""Deeplearning4j as its quick start has it: the library for every processor; no switch turned."""

from .. import deeplearning4j

MODES = ("plain",)
KERNELS = ""


def build(job):
    return deeplearning4j.build(job, tuned=False)
