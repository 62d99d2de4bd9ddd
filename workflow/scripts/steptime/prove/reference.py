"""Computes the reference of a network and mini-batch: some steps of it at full size, by the golden run.

All frameworks share it. Where it cannot be had, for want of memory or time, its file says why (`reason`), and cells are
proven by their narrow network only. Read by `worker.full_size`.

The first step is computed twice. How far the two are apart says how far a right framework may be.

    start values ──┬── first step in float64 ──── its loss, sketches of its gradients ──┬── limits
                   └── first step, rounded ────── its loss and gradients ───────────────┘
    first step ─────── later steps in float64 ─── their losses, and how far noise takes them
    start values ───── steady first step ──────── gradients and limits where noise hides too much of the first
"""

import argparse
import json
import math
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from shared import data, sketch
from shared.precisions import PRECISIONS, USUAL, Precision, marked
from shared.specification import drawing, rate_of, without_dropout
from steptime import networks, npz, project
from steptime.atomic import atomic_write
from steptime.networks import optimisers, written
from steptime.networks.losses import LOSSES
from steptime.prove import golden, outputs, steady
from steptime.prove.golden import coarse
from steptime.say import doing

STEPS = 3
# A gradient that is fainter than this beside the longest is not looked at.
FAINT = 1e-6
ROUNDING = 2.0**-24
MOST_RATE = 2.0**20
# Of one label: PaddlePaddle takes a chance below e**-64 for that.
MOST_LOSS = 50.0
# Of so many windows of poolings, one has two largest values that float32 may not tell apart. Their gradients add up as
# random ones do, so that one of n moves those below by 1 / sqrt(n) of their length: seen are 0.5 to 4.2 times that.
MANY_WINDOWS, WINDOW = 2**17, 8.0
# Of fewer values that are dropped, masks take a step as far as chance has it.
MANY_DROPPED = 64
# Operations of a step; with fewer, samples' parts of a gradient may cancel.
SMALL = 1e8
# Sums of frameworks err by up to ten times what numpy's do: these are summed in pairs.
SUMS = 16.0

Arrays = dict[str, Any]


class OutOfTime(Exception):
    """The time limit has passed."""


class _Beside:
    """Some work that is done beside its block, each of the two on half of the threads; on one, when it is asked for."""

    def __init__(self, work: Callable[[], Any], threads: int):
        self._work, self._threads = work, threads
        self._future: Future = Future()
        # Whoever is stopped does not wait for it.
        self._thread = threading.Thread(target=self._do, daemon=True)

    def __enter__(self) -> "_Beside":
        if self._threads > 1:
            # Not where one thread computes it: the check of a GPU runs with NumPy alone.
            from threadpoolctl import threadpool_limits

            self._limits = threadpool_limits(self._threads // 2)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if self._threads > 1 and kind in (None, MemoryError):
            self._thread.join()
            self._limits.restore_original_limits()

    def result(self) -> Any:
        """Says what the work gave, or what it raised. Call it behind the block."""
        return self._future.result() if self._threads > 1 else self._work()

    def _do(self) -> None:
        try:
            self._future.set_result(self._work())
        except BaseException as error:
            self._future.set_exception(error)


def main() -> None:
    """Command line. Exits with 0 when the file was written, with numbers or with a reason."""
    parser = argparse.ArgumentParser(description="Compute a network's reference at full size.")
    parser.add_argument("--job", required=True, type=json.loads, help="network and batch")
    parser.add_argument("--networks", required=True, type=project.path)
    for name in ("seconds", "megabytes"):
        parser.add_argument(f"--{name}", required=True, type=float, help="that it may take")
    parser.add_argument("--threads", required=True, type=int, help="that it computes on")
    for name in ("reference", "log"):
        parser.add_argument(f"--{name}", required=True, type=Path)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    job, began = options.job, time.monotonic()
    precision = job.get("precision", USUAL)
    # What planning holds it against: the file may have been carried here, or renamed.
    known = (
        f"{job['network_digest']} {job['batch']}{marked(precision, ' ')} {job['reference_digest']}"
    )
    options.log.parent.mkdir(parents=True, exist_ok=True)
    if shipped := shipped_with(options.reference.name, known):
        with atomic_write(options.reference) as file:
            file.write(shipped.read_bytes())
        options.log.write_text(f"{shipped.name} comes with the project\n")
        return
    doing(f"computing the float64 reference of {job['network']}, batch {job['batch']}")
    catalogue = written.of_run(options.networks)
    spec = networks.specify(job["network"], catalogue)
    content = attempt(
        spec, job["batch"], options.seconds, options.megabytes, precision, options.threads
    )
    with atomic_write(options.reference) as file:
        np.savez(file, of=np.array(known), **content)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    said = str(content["reason"]) or f"losses {content['losses'].tolist()}"
    options.log.write_text(f"{said}\n{time.monotonic() - began:.1f} s, {peak:.1f} GiB\n")
    if content["reason"]:
        title = f"{job['network']}, batch {job['batch']}"
        title += marked(precision, ", ")
        print(f"    {title} is proven narrow only: {said}", file=sys.stderr)


def shipped_with(name: str, known: str) -> Path | None:
    """Returns the reference of this name that comes with the project, if it is of this network and this code."""
    path = project.path(f"resources/references/{name}")
    with suppress(KeyError, OSError, ValueError):
        if npz.text(path, "of") == known:
            return path
    return None


def attempt(
    spec: dict[str, Any],
    batch: int,
    seconds: float,
    megabytes: float,
    precision: str = USUAL,
    threads: int = 1,
) -> Arrays:
    """Returns the reference, or the reason why there is none within this time and memory."""

    def stop(*_: Any) -> None:
        raise OutOfTime(f"its reference took more than {seconds:g} s")

    signal.signal(signal.SIGALRM, stop)
    before = resource.getrlimit(resource.RLIMIT_AS)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (int(megabytes * 2**20), before[1]))
        signal.setitimer(signal.ITIMER_REAL, seconds)
        if threads > 1:
            # Two steps side by side are sooner done than each on all CPUs, but take twice the memory.
            with suppress(MemoryError):
                return compute(spec, batch, precision, threads)
        return compute(spec, batch, precision)
    except MemoryError:
        return {"reason": np.array(f"its reference needs more than {megabytes / 1024:.3g} GiB")}
    except OutOfTime as error:
        return {"reason": np.array(str(error))}
    except Exception as error:
        # Cells are proven narrow then, and no run ends for it.
        traceback.print_exc()
        return {"reason": np.array(f"its reference ended with {type(error).__name__}: {error}")}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, before)


def compute(spec: dict[str, Any], batch: int, precision: str = USUAL, threads: int = 1) -> Arrays:
    """Computes what `worker.full_size.Reference` reads. On several threads, two steps are computed side by side.

    Numbers are those of float64, limits those of `precision`. Parameters are in the order of the specification.

    `losses`, `spreads` (STEPS)        the losses of the first steps, and how far noise may take each
    `labels`                           how many labels a loss is the mean of
    `rate`                             a learning rate at which a step shows every gradient
    `norms` (parameters), `projections` (parameters, 16), `entries` (of all, end to end)
                                       sketches of the first gradients
    `limits` (parameters)              how far off a first gradient may be, as a share of its norm
    `blurs`, `later_blurs` (parameters)
                                       which share of the norm of a first, or second, gradient is lost where a step at
                                       a rate of 1 is rounded to float32 weights
    `middle`, `counted` (parameters)   how far off the median may be, and of which parameters it is
    `dropout`                          1 where the network has dropout, which is off in all but the next two
    `masked` (parameters), `masked_loss`
                                       how far masks take the first gradients and the loss
    `steady`                           1 where noise hides too much of these gradients, so that those of `_steadied`
                                       stand in their place
    `outputs`                          see `prove.outputs`
    """
    asked, still = PRECISIONS[precision], without_dropout(spec)
    first = _first_step(asked, still, batch, threads)
    limits = _limits(asked, still, first)
    rates = _rates(first, spec["optimiser"]["learning_rate"])
    later, steadied = _later_and_steadied(still, precision, first, limits, threads)
    first_spread = max(abs(first.rough_loss - first.loss), limits.loss_by_sums)
    spreads = asked.share * _spreads(spec["optimiser"], first_spread, later.slope)
    return outputs.reference(spec, batch, precision) | _narrowed(
        reason=np.array(""),
        losses=np.array([first.loss, *later.losses]),
        labels=np.array(first.labels.size),
        spreads=np.nan_to_num(spreads, nan=np.inf, posinf=np.inf),
        rate=np.array(rates.shows_every_gradient),
        norms=first.norms,
        limits=limits.of_gradients,
        counted=limits.counted.astype(np.int8),
        middle=np.array(limits.of_median),
        blurs=rates.blurs,
        # Where a first step has taken most of the loss, a second one changes little.
        later_blurs=np.divide(
            ROUNDING * rates.sizes,
            later.norms,
            np.full(len(later.norms), np.inf),
            where=later.norms > 0,
        ),
        projections=np.array([found.projections for found in first.sketches]),
        entries=np.concatenate([found.entries for found in first.sketches]),
        **_masked(spec, first.inputs, first.labels, first.loss, first.sketches),
        steady=np.array(int(bool(steadied))),
        **steadied,
    )


@dataclass
class _First:
    """The first step: its arrays, in float64; its loss and gradients there, and as the precision rounds them.

    Weights and gradients of large networks take more memory than all the rest: `_later` lets go of them.
    """

    weights: Arrays
    inputs: np.ndarray
    labels: np.ndarray
    loss: float
    gradients: Arrays
    sketches: list[sketch.Sketch]
    rough_loss: float
    rough_gradients: Arrays

    def __post_init__(self) -> None:
        self.norms = np.array([found.norm for found in self.sketches])
        # The gradients that are looked at.
        self.driven = self.norms > FAINT * self.norms.max()


@dataclass
class _Limits:
    """How far off a right framework may be: gradients (parameters), and the median of those that are `counted`."""

    of_gradients: np.ndarray
    counted: np.ndarray
    of_median: float
    # For what noise turns: a sign in front of a ReLU, and the largest value of a pooling's window.
    by_a_sign: float
    by_a_window: float
    below_poolings: np.ndarray
    # For noise in sums: gradients (parameters), and the loss.
    by_sums: np.ndarray
    loss_by_sums: float


@dataclass
class _Rates:
    """The sizes of weights (parameters), the `blurs` of `compute`, and its `rate`."""

    sizes: np.ndarray
    blurs: np.ndarray
    shows_every_gradient: float


class _Later(NamedTuple):
    """What `_later` finds: losses of the later steps, what noise takes from the second, norms of its gradients."""

    losses: list[float]
    slope: float
    norms: np.ndarray


def _first_step(asked: Precision, spec: dict[str, Any], batch: int, threads: int) -> _First:
    weights = {name: values.astype(np.float64) for name, values in data.start_values(spec)}
    inputs, labels = data.synthetic_batch(spec, batch)
    with _Beside(partial(_rough, asked, spec, weights, inputs, labels), threads) as roughly:
        loss, gradients = _step(spec, weights, inputs, labels)
    sketches = _sketches(gradients)
    return _First(weights, inputs, labels, loss, gradients, sketches, *roughly.result())


def _limits(asked: Precision, spec: dict[str, Any], first: _First) -> _Limits:
    driven, batch = first.driven, len(first.inputs)
    off = _off(first.rough_gradients, first.sketches)
    # Which parameters a turned sign reaches is chance: any may be as far off as the farthest, but not half of them.
    by_a_sign = max(asked.change, asked.share * off[driven].max())
    limits = np.full(len(first.norms), by_a_sign)
    by_a_window, below = _of_one_window(spec, batch, first.gradients)
    # The noise of another framework may turn another window, and that may reach more parameters, or most of them.
    limits[below] = np.maximum(limits[below], by_a_window)
    counted = driven & ~below if np.any(driven & ~below) else driven
    noise = _cancelling(spec, first.weights, batch, first.gradients)
    noise = noise / np.maximum(first.norms, 1e-300)
    rounding = partial(coarse, bits=asked.significand)
    loss_by_sums, by_sums = _late_noise(
        spec, first.weights, first.inputs, first.labels, rounding, first.loss, first.sketches
    )
    limits = np.maximum(limits, np.maximum(noise, by_sums))
    limits[~driven] = np.inf
    middle = max(asked.change, asked.share * float(np.median(off[counted])))
    middle = max(middle, _middle_noise(spec, by_sums, counted))
    return _Limits(limits, counted, middle, by_a_sign, by_a_window, below, by_sums, loss_by_sums)


def _rates(first: _First, learning_rate: float) -> _Rates:
    sizes = np.array([np.linalg.norm(first.weights[name]) for name in first.gradients])
    blurs = ROUNDING * sizes / np.where(first.driven, first.norms, np.inf)
    least = 2.0 ** np.ceil(np.log2(blurs.max() / sketch.READING))
    return _Rates(sizes, blurs, max(min(MOST_RATE, least), learning_rate))


def _later_and_steadied(
    spec: dict[str, Any], precision: str, first: _First, limits: _Limits, threads: int
) -> tuple[_Later, Arrays]:
    """The later steps, and beside them `_steadied` where noise hides too much of the first gradients, else {}."""
    turns_windows = precision == USUAL and limits.below_poolings.any()
    turns_signs = limits.by_a_sign > PRECISIONS[precision].change and bool(steady.movable(spec))
    is_hidden = turns_windows or turns_signs
    for name, gradient in first.gradients.items():
        first.rough_gradients[name] -= gradient
    turned = max(limits.by_a_sign, limits.by_a_window)
    moved = partial(_steadied, spec, first.inputs, first.labels, turned, limits.by_sums, precision)
    steadily: Callable[[], Arrays] = moved if is_hidden else dict
    with _Beside(steadily, threads if is_hidden else 1) as steadied:
        later = _later(
            spec, first.weights, first.gradients, first.inputs, first.labels, first.rough_gradients
        )
    return later, steadied.result()


def _spreads(optimiser: dict[str, Any], first: float, slope: float) -> np.ndarray:
    """Says how far off the losses of the steps may be: the first by this, later ones by what the first update adds."""
    own = abs(optimiser["learning_rate"] * slope) if optimiser["name"] == "sgd" else 0.0
    # After two steps it has mostly doubled.
    return np.array([first, *(step * own for step in range(1, STEPS))])


def _cancelling(spec: dict[str, Any], start: Arrays, batch: int, gradients: Arrays) -> np.ndarray:
    """Says how far noise of a framework's logarithm takes each gradient of a small network."""
    small = networks.flops_per_step(spec, batch) < SMALL
    noise = golden.reach(spec, start, batch) if small else {}
    return np.array([noise.get(name, 0.0) for name in gradients])


def _late(spec, batch, rounded):
    """The specification with roundings in batch normalisation of two values a channel, which become about 1 and -1."""
    nodes = [dict(node) for node in spec["nodes"]]
    for node in nodes:
        if node["op"] == "batch_norm" and batch * math.prod(node["in_shape"][1:]) == 2:
            node["rounded"] = rounded
    return dict(spec, nodes=nodes)


def _late_noise(spec, start, inputs, labels, rounded, loss, sketches):
    """Says how far those take the loss, and limits of the gradients with noise in sums (parameters)."""
    late = golden.summing(_late(spec, len(inputs), rounded))
    if late["nodes"] == spec["nodes"]:
        return 0.0, np.zeros(len(sketches))
    other, gradients = _step(late, start, inputs, labels)
    return abs(other - loss), golden.ADDITIONS * _off(gradients, sketches)


def _middle_noise(spec, noise, counted):
    """Says what such noise does to the median: nothing by vectors whose sums no other gradient follows."""
    followed = {node["name"] for node in spec["nodes"] if node["op"] == "batch_norm"}
    alone = [
        len(parameter["shape"]) == 1 and parameter["name"].split("/")[0] not in followed
        for parameter in spec["parameters"]
    ]
    return float(np.median(np.where(alone, 0.0, noise)[counted]))


def _masked(spec, inputs, labels, loss, sketches):
    """Says what `dropout`, `masked` and `masked_loss` of `compute` are."""
    dropping = drawing(spec, np.random.RandomState(data.SEED))
    if all("random" not in node for node in dropping["nodes"]):
        return {"dropout": np.array(0)}
    masked, off = np.zeros(len(sketches)), 0.0
    dropped = sum((rate_of(node) or 0) * networks.masks.count(node) for node in spec["nodes"])
    if len(labels) * dropped >= MANY_DROPPED:
        other, gradients = _step(dropping, data.initial_weights(spec), inputs, labels)
        masked, off = _off(gradients, sketches), abs(other - loss)
    return {"dropout": np.array(1), "masked": masked, "masked_loss": np.array(off)}


def _steadied(spec, inputs, labels, turned, noise, precision):
    """Returns the gradients where no unit in front of a ReLU is near to zero (`prove.steady`).

    `steady_moved` (parameters): 1 for those that are moved for it; `steady_shifts`: by what, end to end.
    `steady_counted` (parameters): 1 for those of which `steady_middle` is the median. The loss, its
    spread, and what else begins with `steady_` are as in `compute`, but that float32's noise is that of a step in it.
    `turned` is how far off gradients may be where noise may still turn something, and `noise` (parameters) by sums.
    """
    start = data.initial_weights(spec)
    moved, pools, logits, tape = steady.forward(spec, start, inputs)
    loss, flowing = golden.loss_of(spec)(logits, labels)
    gradients = golden.backward(spec, tape, flowing)
    start = {name: steady.shifted(values, moved.get(name)) for name, values in start.items()}
    sketches = _sketches(gradients)
    del gradients
    asked, usually = PRECISIONS[precision], precision == USUAL
    rounding = partial(coarse, bits=asked.significand)
    if usually:
        rounding = partial(np.asarray, dtype=np.float32)
    else:
        pools = {node["name"] for node in spec["nodes"] if node["op"] == "max_pool"}
    late = _late(spec, len(inputs), rounding)
    rough, gradients = _rough(asked, late, start, inputs, labels, rounding)
    off = _off(gradients, sketches)
    norms = np.array([found.norm for found in sketches])
    driven = norms > FAINT * norms.max()
    blurs = [
        ROUNDING * np.linalg.norm(values.astype(np.float64)) / norm if seen else 0.0
        for values, norm, seen in zip(start.values(), norms, driven, strict=True)
    ]
    turning = steady.turning(spec, moved, pools)
    turns = np.array([name.split("/")[0] in turning for name in start])
    # One window of a pooling whose largest value is another one moves all gradients below it, which may be most.
    # TF32 turns many, in every framework about as many.
    counted = driven & ~turns if usually and np.any(driven & ~turns) else driven
    usual, middle = (float(np.median(off[those])) for those in (driven, counted))
    # A power of two, since the noise of another machine's sums is another one.
    share = SUMS if usually else asked.share
    limits = np.maximum(asked.change, 2.0 ** np.ceil(np.log2(share * np.maximum(off, usual))))
    limits[turns] = np.maximum(limits[turns], turned)
    limits = np.maximum(limits, noise)
    limits[~driven] = np.inf
    middle = max(asked.share * middle, _middle_noise(spec, noise, counted))
    return {
        "steady_moved": np.array([name in moved for name in start], np.int8),
        "steady_shifts": np.concatenate(
            [np.zeros(0, np.float32), *(moved[name] for name in start if name in moved)]
        ),
        "steady_loss": np.array(loss),
        "steady_spread": np.array(asked.share * abs(rough - loss)),
        "steady_rate": np.array(
            min(MOST_RATE, 2.0 ** np.ceil(np.log2(max(blurs) / sketch.READING)))
        ),
        "steady_norms": norms,
        "steady_limits": limits,
        "steady_counted": counted.astype(np.int8),
        "steady_middle": np.array(max(asked.change, 2.0 ** np.ceil(np.log2(middle)))),
        "steady_blurs": np.array(blurs),
        "steady_projections": np.array([found.projections for found in sketches]),
        "steady_entries": np.concatenate([found.entries for found in sketches]),
    }


def _rough(asked, spec, weights, inputs, labels, rounding=None):
    """Returns a step in a precision: of fewer bytes, products take weights that are rounded as all else is."""
    rounding = rounding or partial(coarse, bits=asked.significand)
    if asked.bytes < PRECISIONS[USUAL].bytes:
        weights = {name: rounding(values) for name, values in weights.items()}
    return _step(spec, weights, inputs, labels, rounding)


def _of_one_window(spec, batch, names):
    """Says how far off gradients below poolings may be for one window whose largest value is another one, as a share.

    And which of these parameters are below (parameters).
    """
    pools = [node for node in spec["nodes"] if node["op"] == "max_pool"]
    windows = batch * sum(math.prod(node["shape"]) for node in pools)
    if windows < MANY_WINDOWS:
        return 0.0, np.zeros(len(names), bool)
    under = steady.below(spec, lambda node: node["op"] == "max_pool")
    return WINDOW / math.sqrt(windows), np.array([name.split("/")[0] in under for name in names])


def _step(spec, weights, inputs, labels, rounded=golden.exact):
    logits, tape = golden.forward(spec, weights, inputs, rounded)
    loss, flowing = golden.loss_of(spec)(logits, labels)
    return float(loss), golden.backward(spec, tape, flowing, rounded)


def _later(spec, weights, gradients, inputs, labels, noise):
    """Returns the losses of the second step and those after it, at the specification's rate, as STEPS has it.

    And how much `noise` in the gradients of the first step takes from the loss of the second, at a rate of 1: by the
    gradients there, since it is small. It is infinite where these losses say nothing any more. At last, the norms of
    the second step's gradients. What this is given is let go.
    """
    state: optimisers.State = {}
    losses, slope, norms = [], np.nan, np.array([])
    for step in range(1, STEPS):
        moved = {}
        # One by one, and each is let go: those of large networks take more memory than all the rest.
        for name in list(gradients):
            own, gradient = {name: weights.pop(name)}, {name: gradients.pop(name)}
            moved |= optimisers.update(spec["optimiser"], own, gradient, state)
        weights = moved
        if step == STEPS - 1:
            logits = golden.forward(spec, weights, inputs, taped=False)[0]
            each = LOSSES[spec["loss"]].each(logits, labels)
            losses.append(float(each.mean()))
            return _Later(losses, slope if each.max() <= MOST_LOSS else np.inf, norms)
        loss, gradients = _step(spec, weights, inputs, labels)
        losses.append(loss)
        if step == 1:
            norms = np.array([np.linalg.norm(values) for values in gradients.values()])
            slope = sum(float(np.vdot(gradients[name], noise.pop(name))) for name in gradients)


def _sketches(gradients):
    return [
        sketch.take(name, values.shape, sketch.pieces(values)) for name, values in gradients.items()
    ]


def _off(gradients, sketches):
    """Says how far gradients are from those of which these are the sketches, as shares of their norms (parameters)."""
    shares = [sketch.count_entries(values.shape)[1] for values in gradients.values()]
    return np.array(list(map(sketch.distance, _sketches(gradients), sketches, shares)))


def _narrowed(**content: np.ndarray) -> Arrays:
    """Rounded, so that the same numbers on another machine, in another order of sums, are mostly the same file."""
    wide = ("losses", "rate", "steady_loss", "steady_rate")
    return {
        name: np.round(values, 9)
        if name in wide
        else values.astype(np.float32)
        if values.dtype == np.float64
        else values
        for name, values in content.items()
    }


if __name__ == "__main__":
    main()
