"""Judges whether a framework's network, in use and not in training, gives the golden run's float64 outputs."""

from collections.abc import Callable
from typing import Any

import numpy as np

from shared import evaluation
from shared.data import initial_weights
from shared.precisions import PRECISIONS, USUAL
from steptime import networks
from steptime.networks.layers import Arrays
from steptime.prove import golden
from steptime.prove.compare import Proof

# Outputs may be off by this share of their spread, which is how far samples differ. Right frameworks are below 1e-6 on
# most narrow networks; with one layer in TF32, they are above 2e-4.
LIMIT = 1e-4
# A limit is at least this many times what rounding does, which is twice as much as for gradients. On a full ResNet-50,
# six frameworks are off by a fifth of it.
SHARE = 2.0


def outputs(
    spec: dict[str, Any],
    weights: Arrays,
    inputs: np.ndarray,
    rounded: Callable[[np.ndarray], np.ndarray] = golden.exact,
) -> np.ndarray:
    """Returns the outputs of a network in use, with no dropout, by the statistics of `shared.evaluation`."""
    known = weights | evaluation.of_network(spec)
    exact = {name: np.asarray(values, np.float64) for name, values in known.items()}
    return golden.forward(spec, exact, inputs, rounded, taped=False)[0]


def known(
    spec: dict[str, Any], batch: int, precision: str = USUAL
) -> tuple[np.ndarray, float, float]:
    """Returns the outputs of a mini-batch and one more sample, their spread, and the limit: how far off they may be.

    The limit is a share of the spread, and no less than some times what rounding takes from the outputs.
    """
    asked, weights = PRECISIONS[precision], initial_weights(spec)
    first, other = evaluation.mini_batches(spec, batch)
    wanted = outputs(spec, weights, np.concatenate([first, other[-1:]]))
    # In use, a sample's outputs depend on no other sample.
    rough = outputs(spec, weights, first[:1], lambda v: golden.coarse(v, asked.significand))
    scale = evaluation.spread(wanted)
    noise = evaluation.distance(rough, wanted[:1], scale)
    return wanted, scale, max(LIMIT, asked.change, SHARE * asked.share * noise)


def reference(spec: dict[str, Any], batch: int, precision: str) -> dict[str, np.ndarray]:
    """Returns what `worker.tasks.forward` reads of a reference, for a mini-batch and one more sample.

    `outputs` are projected, `outputs_spread` is how far samples differ, and `outputs_limit` how far off the outputs may
    be, as a share of the spread.
    """
    wanted, scale, limit = known(spec, batch, precision)
    return {
        "outputs": evaluation.projected(wanted),
        # By the outputs themselves, since two samples may by chance be alike in the one number of a projection.
        "outputs_spread": np.array(scale),
        "outputs_limit": np.array(limit),
    }


def judge(asked: dict[str, Any], measured: dict[str, np.ndarray]) -> Proof:
    """Returns the verdict on what `worker.tasks.outputs.collect` gave."""
    spec = asked["spec"]
    count, found = networks.count_parameters(spec), int(measured["parameters"])
    if count != found:
        reason = f"the network has {count:,} parameters in the specification and {found:,} in the framework"
        return Proof(False, "parameters", reason, {"parameters": found})
    wanted, scale, limit = known(spec, asked["batch"])
    details: dict[str, Any] = {"parameters": found}
    for name, right in (("first", wanted[:-1]), ("other", wanted[1:]), ("again", wanted[:-1])):
        seen = measured[f"outputs/{name}"]
        details[f"outputs_{name}"] = off = evaluation.distance(seen, right, scale)
        if not off <= limit:
            kept = name == "other" and evaluation.distance(seen, wanted[:-1], scale) <= limit
            reason = (
                "other inputs have the outputs of those before: a result is kept"
                if kept
                else f"the outputs are off by {off:.2g} of what samples differ by (limit {limit:.2g})"
            )
            return Proof(False, "outputs", reason, details)
    return Proof(True, "", "", details)
