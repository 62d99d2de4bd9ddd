"""Judges a framework's network: is it the specified one, and if not, what differs.

A framework's numbers come from `worker.tasks.proof.collect`, ours from `prove.golden.expect`. The check that explains
most comes first: a missing layer changes every number after it, so names and shapes are looked at first.
"""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from shared import data
from shared.limits import LOGARITHM
from shared.narrow import CALLS, RECOVERY_RATE
from steptime import networks
from steptime.networks.layers import LAYERS
from steptime.prove import golden, training
from steptime.prove.golden import Expected

# Limits for float32. `parameters` is ||w - w*|| / ||w*|| of a tensor after a step at the specification's rate. `update`
# and `later_update` are ||w - w*|| / ||w* - w0||: they measure the step itself, however small it is beside the weight.
# Products of TF32, with 10 bits, are off by 7e-4 of an update in an LSTM. `middle_update` is for the median of
# parameters: Adam whose averages are kept in bfloat16 is off by 1e-3, and right frameworks by 1e-5.
TOLERANCES = {
    "loss": 1e-5,
    "cosine": 0.9999,
    "update": 1e-4,
    "parameters": 1e-4,
    "later_loss": 1e-4,
    "later_update": 1e-2,
    "middle_update": 5e-4,
}
# How far off running averages may be: a hundredth of a variance of 1 is added in float32.
STATISTICS = 1e-3
# Half a unit in the last place of a float32, relative.
ROUNDING = 2.0**-24
# A step that misses is compared with so many right ways of rounding; with fewer where none of the first turns anything.
ROUNDINGS = 128
FIRST = 16


@dataclass(frozen=True)
class Proof:
    """The verdict: the `check` that failed ("" when none did) and what differs, in one sentence."""

    passed: bool
    check: str
    reason: str
    details: dict = field(default_factory=dict)


def read(path: Path) -> dict:
    """Reads what `worker.tasks.proof.write` wrote."""
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def judge(spec: dict, expected: Expected, measured: dict) -> Proof:
    """Compares a framework's numbers with the golden run's. The first check that fails gives the reason."""
    details = {
        "parameters": int(measured["parameters"]),
        "frozen_parameters": int(measured["frozen_parameters"]),
    }
    for name, check in (CHECKS | training.CHECKS).items():
        reason = check(spec, expected, measured, details)
        if reason:
            return Proof(False, name, reason, details)
    return Proof(True, "", "", details)


def proof_id(
    spec: dict, mode: str, device: str, environment_digest: str, worker_digest: str, proof: Proof
) -> str:
    """Returns 16 hexadecimal digits: the same for the same proof with the same outcome in the same environment.

    They are made of what was proven, and of the code of adapter and worker (`worker_digest`). How it was judged is no
    part of them, so that a stricter proof with the same verdict times no cell again. Nor are measured numbers, whose
    last digits change from run to run.
    """
    facts = {
        "spec": spec,
        "mode": mode,
        "device": device,
        "environment": environment_digest,
        "worker": worker_digest,
        "seed": data.SEED,
        "failed_check": proof.check,
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def _check_parameters(spec, expected, measured, details):
    """Checks count, names and shapes of parameters; beyond them, a framework may have second biases in recurrent
    layers.

    Like every check here, it returns a reason, or None where all is well, and notes numbers in `details`.
    """
    ours = {name: values.shape for name, values in expected.start.items()}
    theirs = {
        name.split("/", 1)[1]: values.shape
        for name, values in measured.items()
        if name.startswith("recovery/")
    }
    count = networks.count_parameters(spec)
    missing = _layers(name for name in ours if name not in theirs)
    extra = _layers(name for name in theirs if name not in ours)
    problems = [f"the framework lacks {_join(missing)}"] if missing else []
    problems += [f"the specification lacks {_join(extra)}"] if extra else []
    # One for each layer: where a weight has another shape, its bias mostly has too.
    misshaped = {
        name.split("/")[0]: name
        for name in reversed(ours)
        if theirs.get(name, ours[name]) != ours[name]
    }
    problems += [
        f"{name} has shape {ours[name]} in the specification and {theirs[name]} in the framework"
        for name in reversed(misshaped.values())
    ]
    if problems:
        details["structure"] = problems
    if measured["parameters"] != count:
        reason = (
            f"the network has {count:,} trainable parameters in the specification "
            f"and {int(measured['parameters']):,} in the framework"
        )
        return "; ".join([reason, *problems[:3]])
    if problems:
        return "the parameters differ: " + "; ".join(problems[:3])
    spare = networks.spare_parameters(spec)
    if int(measured["frozen_parameters"]) not in spare:
        return (
            f"the framework carries {int(measured['frozen_parameters']):,} parameters that are not trained; "
            f"only second biases of recurrent layers may be, {max(spare):,} here"
        )
    return None


def _check_finite(spec, expected, measured, details):
    steps = np.cumsum(CALLS)
    details["losses"] = [float(loss) for loss in measured["losses"]]
    for step, loss in zip(
        [1, *steps], [measured["first_losses"][0], *measured["losses"]], strict=True
    ):
        if not np.isfinite(loss):
            return f"the loss of step {step} is {loss}"
    for name, values in measured.items():
        if not np.isfinite(values).all():
            return f"{name.split('/', 1)[-1]} is not finite after a training step"
    return None


def _check_updates(spec, expected, measured, details):
    """Checks that the first step changes each parameter that has a gradient, in each way of running it."""
    driven = driven_by(expected.first.gradients)
    for when in ("recovery", "after1"):
        still = [
            name
            for name in driven
            if np.array_equal(measured[f"{when}/{name}"], expected.start[name])
        ]
        if len(still) == len(driven):
            return "the weights did not change in a training step"
        if still and when == "recovery":
            return (
                f"the loss does not depend on {_join(_layers(still))}: {len(still)} of {len(expected.start)} "
                "parameters did not change in a training step"
            )
    return None


def _check_repeats(spec, expected, measured, details):
    """Checks that two trainers with the same start values have the same first loss."""
    one, other = measured["first_losses"]
    if abs(one - other) > TOLERANCES["loss"] * abs(one):
        return (
            f"two builds from the same weights and data have different losses, {one:.6g} and {other:.6g}: "
            "something random is in the network, such as dropout"
        )
    return None


def _check_first_loss(spec, expected, measured, details):
    loss, wanted = measured["first_losses"][0], expected.first.loss
    details["loss_error"] = _relative(loss, wanted)
    if details["loss_error"] <= TOLERANCES["loss"]:
        return None
    difference = (
        f"the first loss is {loss:.6g} in the framework and {wanted:.6g} in the specification: "
    )
    return difference + _explain_loss(spec, expected, measured)


def _explain_loss(spec, expected, measured):
    """Explains a wrong loss of a network with the right parameters, by its gradients."""
    gradients = gradients_of(expected, measured)
    bias = spec["nodes"][-1]["name"] + "/bias"
    # The probabilities of a softmax and the labels both sum to one, so their difference sums to zero.
    off = bias in gradients and abs(gradients[bias].sum()) > 1e-3 * np.abs(gradients[bias]).sum()
    if off and spec["loss"] == "softmax_cross_entropy":
        return f"the gradient of {bias} is not that of a softmax cross-entropy"
    # A normalisation by the mini-batch takes the length of the weights before it away, so their gradient is at right
    # angles to them (van Laarhoven 2017, section 2). With fixed statistics it is not.
    for node in spec["nodes"]:
        name = node["inputs"][0] + "/weight"
        taken = LAYERS[node["op"]].normalises_by
        if taken and name in gradients:
            start = expected.start[name]
            if (
                abs(
                    _cosine(start, gradients[name]) - _cosine(start, expected.first.gradients[name])
                )
                > 1e-2
            ):
                return f"{node['name']} does not use {taken}"
    return "all shapes are right, so a layer without parameters differs (activation, padding, pooling, dropout)"


def _check_gradients(spec, expected, measured, details):
    found, true = gradients_of(expected, measured), expected.first.gradients
    driven, largest = driven_by(expected.first.gradients), max(map(np.linalg.norm, true.values()))
    cosines = {name: _cosine(found[name], true[name]) for name in driven}
    lengths = {name: np.linalg.norm(found[name]) / np.linalg.norm(true[name]) for name in driven}
    distances = {name: np.linalg.norm(found[name] - wanted) for name, wanted in true.items()}
    scales = {
        name: np.linalg.norm(wanted) if name in driven else largest for name, wanted in true.items()
    }
    errors = {name: distances[name] / scale for name, scale in scales.items()}
    worst = min(cosines, key=cosines.get)
    farthest = max(errors, key=errors.get)
    details.update(worst_cosine=float(cosines[worst]), worst_cosine_of=worst)
    details.update(worst_update=float(errors[farthest]), worst_update_of=farthest)
    factor = float(np.median(list(lengths.values())))
    if abs(factor - 1) > 1e-2 and all(
        abs(length / factor - 1) < 0.1 for length in lengths.values()
    ):
        return (
            f"every update is {factor:.4g} times the specification's: the learning rate differs, "
            "or the loss is not the mean over all labels"
            + (", or gradients are summed and not averaged" if expected.shares > 1 else "")
        )
    details["worst_share"] = float(errors[farthest] / TOLERANCES["update"])
    if details["worst_share"] <= 1:
        return None
    # Where parts of a gradient cancel, what float32 leaves of it is no more than noise.
    reach = golden.reach(spec, expected.start, expected.batch, expected.shares)
    limits = {name: TOLERANCES["update"] * size + reach[name] for name, size in scales.items()}
    details["worst_share"] = float(max(distances[name] / limits[name] for name in limits))
    if details["worst_share"] <= 1:
        return None
    if cosines[worst] < TOLERANCES["cosine"]:
        bad = sum(value < TOLERANCES["cosine"] for value in cosines.values())
        more = f", and of {bad - 1} more of the {len(cosines)} parameters" if bad > 1 else ""
        return f"the gradient of {worst} differs (cosine {cosines[worst]:.4g}){more}"
    return f"the update of {farthest} differs by {errors[farthest]:.2g} of the length that it must have"


def _check_steps(spec, expected, measured, details):
    """Checks the weights and the loss at the end of each call, and that the loss falls. One call has several steps."""
    calls = [
        {name: measured[f"after{step}/{name}"].astype(np.float64) for name in expected.start}
        for step in np.cumsum(CALLS)
    ]
    followed = golden.follow(spec, expected.start, calls, expected.batch, expected.shares)
    driven, errors = driven_by(expected.first.gradients), []
    for steps, step, reached, loss, call in zip(
        CALLS, np.cumsum(CALLS), calls, measured["losses"], followed, strict=True
    ):
        exactly, off = hold(driven, steps, reached, loss, call)
        if exactly.reason:
            details[f"after{step}_exactly"] = exactly.update[0]
        for what, (share, name) in (("parameters", off.size), ("update", off.update)):
            details.update({f"after{step}_{what}": share, f"after{step}_{what}_of": name})
        if off.reason:
            when = "one step" if step == 1 else f"step {step}"
            when = f"one step and then a call of {steps} steps" if steps > 1 else when
            return off.reason.format(when=when, step=step)
        errors.append(off.loss)
        details["later_loss_error"] = max(errors)
    first, last = measured["losses"][[0, -1]]
    if not last < first:
        return f"the loss does not fall: {first:.6g} in the first step, {last:.6g} in step {sum(CALLS)}"
    return None


def _check_statistics(spec, expected, measured, details):
    """Checks that batch normalisation has added a share of the mini-batch's means and variances to its running
    averages.

    Frameworks differ in how large this share is, where the network does not say, and in whether they divide a variance
    by n or by n - 1.
    """
    if expected.shares > 1 or not any(name.startswith("statistics/") for name in measured):
        return None
    momenta = {node["name"]: node["momentum"] for node in spec["nodes"] if "momentum" in node}
    for name, mean, variance, count in golden.statistics(spec, expected):
        kept, spread = (measured[f"statistics/{name}/{role}"] for role in ("mean", "variance"))
        share = float(kept @ mean / (mean @ mean))
        if not 0 < share <= 1 + STATISTICS:
            return f"{name} adds {share:.3g} times the mini-batch's means to its running averages"
        asked = momenta.get(name, share)
        if abs(share - asked) > STATISTICS * asked:
            return f"{name} adds {share:.3g} of the mini-batch's means, and not {asked:g}"
        off = np.linalg.norm(kept - share * mean) / np.linalg.norm(share * mean)
        changes = [share * (variance * by - 1) for by in (1, count / max(count - 1, 1))]
        off = max(off, min(_distance(spread - 1, change) for change in changes))
        details["statistics"] = max(float(off), details.get("statistics", 0.0))
        if not off <= STATISTICS:
            return (
                f"the running averages of {name} are off by {off:.2g} of what a step adds to them"
            )
    return None


def _distance(found, wanted):
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


@dataclass(frozen=True)
class Off:
    """Says how far a call's weights and loss are from the right ones.

    `update` and `size` are (share, parameter) of the parameter that is farthest off: as a share of the way that it
    should have gone, and of its own length. `loss` is a share of the loss; `reason` names the first limit that is
    passed, or is "".
    """

    update: tuple[float, str]
    size: tuple[float, str]
    loss: float
    reason: str


def hold(driven, steps, reached, loss, call: golden.Followed) -> tuple[Off, Off]:
    """Says how far a call of so many steps is from the golden one, and from the nearest that is as right.

    In front of a ReLU or a pooling, the last bits of float32 may turn a sign, and then another step is as right as
    ours. So where a call is off, several such steps are computed, and it is enough to be near to one of them.
    """
    exactly = off = _hold(driven, call.before, steps, reached, loss, call.step)
    turned, noise = 0.0, call.noise() if exactly.reason else {}
    if exactly.reason:
        off = _hold(driven, call.before, steps, reached, loss, call.step, noise)
    for number in range(ROUNDINGS if off.reason else 0):
        rounded = call.rounded(golden.right_in_float32(number))
        other = _hold(driven, call.before, steps, reached, loss, rounded, noise)
        turned = max(turned, abs(other.update[0] - exactly.update[0]))
        off = min(off, other, key=lambda off: (bool(off.reason), off.update))
        if not off.reason or (number == FIRST and turned < TOLERANCES["later_update"] / 10):
            break
    return exactly, off


def _hold(driven, before, steps, reached, loss, wanted, noise=None):
    near, strict = {}, {}
    for name, updated in wanted.updated.items():
        size, distance = np.linalg.norm(updated), np.linalg.norm(reached[name] - updated)
        by_noise = noise[name] if noise else 0.0
        near[name] = float(max(0.0, distance - by_noise) / size)
        if name in driven:
            unexplained = max(0.0, distance - steps * ROUNDING * size - by_noise)
            strict[name] = float(unexplained / np.linalg.norm(updated - before[name]))
    worst, moved = max(near, key=near.get), max(strict, key=strict.get)
    # In a loss that is almost 0, an error of the logarithm may be large.
    error, reason = max(0.0, abs(loss - wanted.loss) - LOGARITHM) / abs(wanted.loss), ""
    if strict[moved] > TOLERANCES["later_update"]:
        reason = f"{moved} is wrong after {{when}}: off by {strict[moved]:.2g} of the way it should have gone"
    elif (middle := float(np.median([*strict.values()]))) > TOLERANCES["middle_update"]:
        reason = f"updates are wrong after {{when}}: off by {middle:.2g} of their way in the median"
    elif near[worst] > TOLERANCES["parameters"]:
        reason = f"{worst} is wrong after {{when}}: off by {near[worst]:.2g} of its size"
    elif error > TOLERANCES["later_loss"]:
        reason = f"the loss of step {{step}} is {loss:.6g} in the framework and {wanted.loss:.6g} in the specification"
    return Off((strict[moved], moved), (near[worst], worst), error, reason)


CHECKS = {
    "parameters": _check_parameters,
    "finite": _check_finite,
    "updates": _check_updates,
    "repeats": _check_repeats,
    "first_loss": _check_first_loss,
    "gradients": _check_gradients,
    "statistics": _check_statistics,
    "steps": _check_steps,
}


def gradients_of(expected: Expected, measured: dict) -> dict[str, np.ndarray]:
    """Returns the framework's own gradients, from the step that it took at `RECOVERY_RATE`."""
    return {
        name: (start.astype(np.float64) - measured[f"recovery/{name}"]) / RECOVERY_RATE
        for name, start in expected.start.items()
    }


def driven_by(gradients: dict[str, np.ndarray]) -> list[str]:
    """Returns the parameters whose gradient is more than noise, as that of a bias before a batch normalisation is."""
    longest = max(map(np.linalg.norm, gradients.values()))
    return [name for name, found in gradients.items() if not golden.is_faint(found, longest)]


def _cosine(one, other):
    one, other = (np.asarray(values, np.float64).ravel() for values in (one, other))
    return one @ other / (np.linalg.norm(one) * np.linalg.norm(other))


def _relative(value, wanted):
    return float(abs(value - wanted) / abs(wanted))


def _layers(names):
    return list(dict.fromkeys(name.split("/")[0] for name in names))


def _join(words):
    return ", ".join(words[:4]) + (f" and {len(words) - 4} more" if len(words) > 4 else "")
