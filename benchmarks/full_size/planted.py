"""Ways of training another network at full size, planted in the project's own adapters.

All frameworks have the same: a defect is planted around an adapter's `build` and its trainer, or in its layers by what
becomes of a layer's parameters, its input and its output. What differs between frameworks stands in `parts_*.py`:

`cut(values, bits)`   rounded to so many bits of a significand, of no gradient
`stopped(values)`     the same values, of no gradient
`front(values)`       a sequence whose last step has no gradient
`changing(adapter, changes)`   a context in which layers are built with the changes, by name
`in_two(adapter, right)`       an LSTM as the adapter has it, through whose middle nothing flows back
"""

import numpy as np

from shared import data
from worker import contract

PRODUCTS = ("dense", "conv", "lstm")
# The proof before the samples is over then.
LATE = 5
# So that its exponential is nothing.
NEVER = np.float32(-1e4)


class Change:
    """What becomes of a layer's parameters, given their role, value and start value; of its input; of its output."""

    def __init__(self, parameter=None, given=None, found=None, keeps=False):
        self.parameter = parameter or (lambda parts, role, value, start: value)
        self.given = given or (lambda parts, value: value)
        self.found = found or (lambda parts, value: value)
        self.keeps = keeps


def plant(name, adapter, parts, asked):
    """Puts a defect into an adapter's module; returns what takes it out again."""
    right = adapter.build
    adapter.build = DEFECTS[name](right, adapter, parts, asked)

    def undo():
        adapter.build = right

    return undo


def in_layers(change_of):
    """A defect of layers: `change_of(spec)` gives {name of a node: Change}."""

    def planted(right, adapter, parts, asked):
        def build(job):
            with parts.changing(adapter, change_of(job.spec)):
                return right(job)

        return build

    return planted


def in_bits(bits, place=None):
    """Products of numbers of so many bits; in one layer, or in all of them."""

    def rounded(parts, values):
        return values + parts.stopped(parts.cut(values, bits) - values)

    def parameter(parts, role, value, start):
        return value if role in ("bias", "start") else rounded(parts, value)

    def change_of(spec):
        names = [node["name"] for node in spec["nodes"] if node["op"] in PRODUCTS]
        chosen = names if place is None else [names[int(place * (len(names) - 1))]]
        return {name: Change(parameter, rounded) for name in chosen}

    return in_layers(change_of)


def not_trained(choose):
    """A parameter that has no gradient."""

    def change_of(spec):
        name, role = choose(spec["parameters"])["name"].split("/")

        def parameter(parts, found, value, start):
            # A gradient of zeros: some frameworks refuse one that is not there. MXNet has an LSTM's in one piece.
            chosen = found in (role, "packed")
            return parts.stopped(value) + 0.0 * value if chosen else value

        return {name: Change(parameter)}

    return in_layers(change_of)


def first_product_kept(spec):
    """The first layer's product is that of the first step, since the batch never changes."""

    def parameter(parts, role, value, start):
        return start() + (value - parts.stopped(value))

    return {spec["nodes"][0]["name"]: Change(parameter, keeps=True)}


def step_less(spec):
    """Nothing flows back from the last step of the last LSTM."""
    name = [node["name"] for node in spec["nodes"] if node["op"] == "lstm"][-1]
    return {name: Change(found=lambda parts, value: parts.front(value))}


def truncated(right, adapter, parts, asked):
    """Back-propagation through time ends in the middle of the sequence."""

    def build(job):
        kept = adapter.LAYERS["lstm"]
        adapter.LAYERS["lstm"] = parts.in_two(adapter, kept)
        try:
            return right(job)
        finally:
            adapter.LAYERS["lstm"] = kept

    return build


def samples(count_of):
    """So many samples of the mini-batch are trained on, and no more: `count_of(batch)`."""

    def planted(right, adapter, parts, asked):
        def build(job):
            sequences = contract.of_mode(adapter.LAYOUT, asked["mode"]).get("sequences")
            steps_first = sequences == "steps first" and job.spec["input"]["kind"] in SEQUENCES
            first = slice(count_of(asked["batch"]))
            less = (slice(None), first) if steps_first else first
            labels = job.labels[less] if job.labels.ndim > 1 else job.labels[first]
            return right(anew(asked, job, inputs=job.inputs[less], labels=labels))

        return build

    return planted


def sample_left_out(batch):
    return batch - 1


def an_eighth(batch):
    return max(1, batch // 8)


def another_batch(right, adapter, parts, asked):
    def build(job):
        inputs, labels = data.synthetic_batch(job.spec, asked["batch"], data.BATCH_SEED + 1)
        inputs, labels = job.layout.inputs(inputs), job.layout.labels(labels)
        return right(anew(asked, job, inputs=inputs, labels=labels))

    return build


def classes(count_of):
    """The softmax is over so many classes: `count_of(classes)`, or more where more have labels.

    The bias of the others is so low that it leaves them out; it is told as it was.
    """

    def planted(right, adapter, parts, asked):
        def build(job):
            name = job.spec["parameters"][-1]["name"]
            total = len(job.weights[name])
            absent = np.setdiff1d(np.arange(total), job.labels)[count_of(total) - total :]
            shown = job.weights[name][absent]
            job.weights[name][absent] = NEVER
            trainer = right(job)
            weights = trainer.weights

            def told(names=None):
                found = dict(weights(names))
                if name in found:
                    found[name] = np.array(found[name])
                    found[name][absent] = shown
                return found

            trainer.weights = told
            return trainer

        return build

    return planted


def last_layer_alone(spec):
    """Nothing flows back from the last layer. Zeros do: some frameworks refuse a gradient that is not there."""
    return {
        spec["nodes"][-1]["name"]: Change(
            given=lambda parts, value: parts.stopped(value) + 0.0 * value
        )
    }


def skipping(period):
    """Each step of a period is left out, whole, and has the loss of the step before."""

    def planted(right, adapter, parts, asked):
        def build(job):
            trainer = right(job)
            run, counts = trainer.run, {"steps": 0, "loss": None}

            def less(steps):
                for _ in range(steps):
                    counts["steps"] += 1
                    if counts["steps"] % period or counts["loss"] is None:
                        counts["loss"] = run(1)
                return counts["loss"]

            trainer.run = less
            return trainer

        return build

    return planted


def one_of_block(right, adapter, parts, asked):
    """Where several steps are asked for, one is taken."""

    def build(job):
        trainer = right(job)
        run = trainer.run
        trainer.run = lambda steps: run(1)
        return trainer

    return build


def alternating(wrong):
    """Wrong in this way in each second step."""

    def planted(right, adapter, parts, asked):
        def build(job):
            def other(at):
                return wrong(right, adapter, parts, asked) if at % 2 else right

            return _Changing(asked, job, right(job), other)

        return build

    return planted


def late(wrong):
    """Right for LATE steps of a trainer, and then wrong in this way."""

    def planted(right, adapter, parts, asked):
        def build(job):
            def other(at):
                return wrong(right, adapter, parts, asked) if at == LATE else None

            return _Changing(asked, job, right(job), other)

        return build

    return planted


def ever_after(wrong):
    """Right for LATE steps of all trainers together, and then wrong in this way, in each of them."""

    def planted(right, adapter, parts, asked):
        taken = [0]

        def build(job):
            other = wrong(right, adapter, parts, asked)
            if taken[0] >= LATE:
                return other(job)

            def later(at):
                taken[0] = at
                return other if at == LATE else None

            return _Changing(asked, job, right(job), later)

        return build

    return planted


class _Changing:
    """A trainer in whose place another may come behind each step: by `other(number)` of it, where that is a `build`."""

    def __init__(self, asked, job, trainer, other):
        self.asked, self.job, self.trainer, self.other, self.steps = asked, job, trainer, other, 0
        self.parameters, self.threads = trainer.parameters, trainer.threads
        self.settings = trainer.settings

    def run(self, steps):
        for _ in range(steps):
            build = self.other(self.steps) if self.steps else None
            if build:
                found = self.trainer.weights().items()
                weights = {name: np.array(values, order="C") for name, values in found}
                self.trainer = build(anew(self.asked, self.job, weights))
            loss = self.trainer.run(1)
            self.steps += 1
        return loss

    def weights(self, names=None):
        return self.trainer.weights(names)


def anew(asked, job, weights=None, inputs=None, labels=None):
    """A job with other arrays."""
    weights = job.weights if weights is None else weights
    inputs = job.inputs if inputs is None else np.ascontiguousarray(inputs)
    labels = job.labels if labels is None else np.ascontiguousarray(labels)
    return contract.Job(asked, job.spec, job.layout, weights, inputs, labels)


def _largest(parameters):
    return max(parameters, key=lambda parameter: np.prod(parameter["shape"], dtype=np.int64))


def _first_vector(parameters):
    return next(parameter for parameter in parameters if len(parameter["shape"]) == 1)


def other_precision(right, adapter, parts, asked):
    """Products of bfloat16 in place of float32's, or of float32 in place of those that are asked for."""

    def build(job):
        job.precision = "float32" if job.precision != "float32" else "bfloat16"
        return right(job)

    return build


SEQUENCES = ("tokens", "one_hot")
BFLOAT16, TF32 = 8, 11
DEFECTS = {
    "another precision": other_precision,
    "bfloat16 products": in_bits(BFLOAT16),
    "TF32, first layer": in_bits(TF32, 0),
    "TF32, middle layer": in_bits(TF32, 0.5),
    "TF32, last layer": in_bits(TF32, 1),
    "a sample left out": samples(sample_left_out),
    "an eighth of the samples": samples(an_eighth),
    "another batch": another_batch,
    "a class left out": classes(lambda total: total - 1),
    "a quarter of the classes": classes(lambda total: total // 4),
    "a time step less": in_layers(step_less),
    "truncated in the middle": truncated,
    "last layer alone": in_layers(last_layer_alone),
    "largest weight kept": not_trained(_largest),
    "first vector kept": not_trained(_first_vector),
    "every 2nd step left out": skipping(2),
    "every 20th step left out": skipping(20),
    "first product kept": in_layers(first_product_kept),
    "late: bfloat16 products": late(in_bits(BFLOAT16)),
    "late: a sample left out": late(samples(sample_left_out)),
    "late: largest weight kept": late(not_trained(_largest)),
    "late: every 20th step left out": late(skipping(20)),
    "late: no step at all": late(skipping(1)),
    "late: last layer alone in every 2nd step": late(alternating(in_layers(last_layer_alone))),
    "late: last layer alone": late(in_layers(last_layer_alone)),
    "late: last layer alone in each trainer": ever_after(in_layers(last_layer_alone)),
    "one step of a block": one_of_block,
}
# Of how many steps a block is.
BLOCKS = {"one step of a block": 4}
# What a network without recurrent layers cannot have.
RECURRENT_ONLY = ("a time step less", "truncated in the middle")
# Steps that a defect takes to show; others show at once.
STEPS = {
    "every 20th step left out": 24,
    "late: every 20th step left out": LATE + 24,
    "first product kept": 12,
}
# An embedding moves that little.
RECURRENT_STEPS = {"first product kept": 50}
