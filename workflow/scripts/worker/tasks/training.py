"""Trains on real images: epochs of shuffled mini-batches, with the loss and accuracy on the test images after each.

Besides `ready`, events are

    began    kernel: what the kernel counts of the whole machine, when training begins
    epoch    the numbers of an epoch (see `train`)
    trained  stopped (by what), kernel
    done     peak_memory_bytes; of the training: cpu_seconds, wall_seconds, waited_seconds, involuntary_switches

The job has plan (see `train`) and images, the paths of both splits. Of several ranks, each draws its own share of each
mini-batch, and the first one judges.

All times are seconds of a monotonic clock. The timed region of an epoch has all that training does with images that are
in the host's memory as bytes: drawing a mini-batch and turning it to float32 from 0 to 1 (`feed`), what the framework
does to have it (`copy`), and the steps. Images that do not fill a last mini-batch are left out of the epoch. The
network is judged after the epoch's time is taken.
"""

import math

import numpy as np

from shared.specification import learning_rate

from .. import building, contract
from ..timing import Diverged
from ..usage import Usage, cpu_seconds, kernel_counters, peak_memory

OFFERED = contract.TRAINED + ("train", "scores")

WHITE = 255.0
# The seed of what a network is fed besides test images.
JUDGING_SEED = 1
# More than any training has, so that no two epochs of any two seeds are in the same order.
EPOCHS = 10000
_IMAGES = []


def run(loaded, job, emit):
    """Trains until the plan ends it."""
    spec = dict(job["spec"], seed=job["plan"]["seed"])
    splits = {name: read(path) for name, path in job["images"].items()}
    trainer = building.build(loaded, job, spec, emit)
    emit("began", kernel=kernel_counters())
    usage = Usage(building.clock)
    share = (job["rank"], job["ranks"])
    clocks = (building.clock, cpu_seconds)
    stopped = train(trainer, spec, splits, job["batch"], job["plan"], *clocks, emit, share)
    used = usage.so_far()
    if job["ranks"] > 1:
        # The weights of all ranks must be the same.
        trainer.weights()
    emit("trained", stopped=stopped, kernel=kernel_counters())
    emit("done", peak_memory_bytes=peak_memory(), **used)


def read(path):
    """Returns images (uint8: count, channels, height, width) and labels (int32) of a split of `datasets.splits`."""
    with np.load(str(path), allow_pickle=False) as split:
        return split["images"], split["labels"].astype(np.int32)


def prepare(job):
    """Loads the images from which a rank draws; returns them."""
    if not _IMAGES:
        _IMAGES.append(read(job["images"]["train"]))
    return _IMAGES[0]


def fed(job, number):
    """Returns the mini-batches that the rank of a job draws in the epoch of this number."""
    share, plan = (job["rank"], job["ranks"]), job["plan"]
    whole = (job["spec"], prepare(job), job["batch"], plan)
    return Epoch(*whole, number, building.clock, share)


def train(trainer, spec, splits, batch, plan, clock, cpu_clock, emit, share=(0, 1)):
    """Trains until the plan's accuracy, epochs or seconds are reached; returns "accuracy", "epochs" or "seconds".

    `splits` are (images, labels) to train and to test on; `plan` is {seed, epochs, target_accuracy, budget_seconds}.
    `emit("epoch", ...)` gets each epoch's number, steps, seconds, feed_seconds, cpu_seconds (of all threads), loss
    (mean over its steps), and, of the test images, test_loss, accuracy and test_seconds. `accuracy` is None for a
    network that is trained to give its images back. Raises Diverged.
    """
    total = 0.0
    for epoch in range(1, plan["epochs"] + 1):
        feeding = Epoch(spec, splits["train"], batch, plan, epoch, clock, share)
        cpu, start = cpu_clock(), clock()
        loss = trainer.train(feeding)
        seconds, cpu = clock() - start, cpu_clock() - cpu
        total += seconds
        if not math.isfinite(loss):
            raise Diverged("the mean loss of epoch {} was {}".format(epoch, loss))
        test_loss, accuracy = judge(trainer, spec, splits["test"], batch)
        emit(
            "epoch",
            epoch=epoch,
            steps=feeding.steps,
            seconds=seconds,
            feed_seconds=feeding.seconds,
            cpu_seconds=cpu,
            loss=loss,
            test_loss=test_loss,
            accuracy=accuracy,
            test_seconds=clock() - start - seconds,
        )
        if accuracy is not None and accuracy >= plan["target_accuracy"]:
            return "accuracy"
        if total >= plan["budget_seconds"]:
            return "seconds"
    return "epochs"


def judge(trainer, spec, split, batch):
    """Returns mean loss and share of right answers over all images of a split; None for the share without classes."""
    images, labels = split
    asked, lost = _lesson(spec)
    random = np.random.RandomState(JUDGING_SEED)
    losses, right = 0.0, 0
    for start in range(0, len(images), batch):
        count = min(batch, len(images) - start)
        # The last images are filled up to a whole mini-batch, whose other answers do not count.
        chosen = np.resize(np.arange(start, start + count), batch)
        inputs, answers = asked(spec, as_inputs(images[chosen]), labels[chosen], random)
        outputs, answers = np.array(trainer.scores(inputs), np.float64)[:count], answers[:count]
        losses += lost(outputs, answers).sum()
        right += int((outputs.argmax(1) == answers).sum()) if answers.ndim == 1 else 0
    return losses / len(images), right / float(len(images)) if answers.ndim == 1 else None


def as_inputs(images):
    """Returns bytes as float32 from 0 to 1."""
    return images.astype(np.float32) / np.float32(WHITE)


def _lesson(spec):
    return _LESSONS[spec.get("loss", "softmax_cross_entropy")]


def _classified(spec, pixels, labels, random):
    """Returns pixels, and their classes as targets."""
    return pixels.reshape([len(pixels)] + spec["input"]["shape"]), labels


def _given_back(spec, pixels, labels, random):
    """Returns pixels followed by as much noise as the input has room for, and the pixels as targets."""
    flat, shape = pixels.reshape(len(pixels), -1), spec["input"]["shape"]
    noise = random.standard_normal((len(flat), int(np.prod(shape)) - flat.shape[1]))
    inputs = np.concatenate([flat, noise.astype(np.float32)], 1)
    return inputs.reshape([len(flat)] + shape), flat


def _surprise(scores, labels):
    scores = scores - scores.max(1, keepdims=True)
    return np.log(np.exp(scores).sum(1)) - scores[np.arange(len(labels)), labels]


def _entropy(outputs, targets):
    return (np.logaddexp(0.0, outputs) - outputs * targets).mean(1)


def _bound(outputs, targets):
    """Returns each sample's loss from a decoder's outputs, which means and logarithms of variances of a code follow."""
    decoded = targets.shape[1]
    mean, spread = np.split(outputs[:, decoded:], 2, 1)
    apart = 0.5 * (mean**2 + np.exp(spread) - spread - 1.0).sum(1)
    return (decoded * _entropy(outputs[:, :decoded], targets) + apart) / outputs.shape[1]


# For each loss: inputs and targets from pixels and labels, and the loss of each sample.
_LESSONS = {
    "softmax_cross_entropy": (_classified, _surprise),
    "binary_cross_entropy": (_given_back, _entropy),
    "evidence_bound": (_given_back, _bound),
}


class Fed(object):
    """Yields (inputs, labels, learning rate) of so many mini-batches, in the neutral layout, or a rank's share of them.

    `words` tell another rank how to make them.
    """

    def __init__(self, task, number, steps, made=()):
        self.words = {"task": task, "number": number, "steps": steps}
        self.steps, self._made = steps, made

    def __iter__(self):
        return iter(self._made)


class Epoch(Fed):
    """The mini-batches of an epoch, each image once, or a rank's `share`; `seconds` is how long making them took."""

    def __init__(self, spec, split, batch, plan, epoch, clock, share=(0, 1)):
        self._images, self._labels = split
        super(Epoch, self).__init__("training", epoch, len(self._images) // batch)
        self._spec, self._batch, self._epoch = spec, batch, epoch
        seed = EPOCHS * plan["seed"] + epoch
        self._order = np.random.RandomState(seed).permutation(len(self._images))
        self._clock, (self._rank, self._ranks) = clock, share
        self._random = np.random.RandomState([seed, self._rank])
        self.seconds = 0.0

    def __iter__(self):
        each, (asked, _) = self._batch // self._ranks, _lesson(self._spec)
        for step in range(self.steps):
            before = self._clock()
            start = step * self._batch + self._rank * each
            chosen = self._order[start : start + each]
            pixels = as_inputs(self._images[chosen])
            made = asked(self._spec, pixels, self._labels[chosen], self._random)
            taken = (self._epoch - 1) * self.steps + step
            rate = learning_rate(self._spec["optimiser"], self._epoch, taken)
            self.seconds += self._clock() - before
            yield made + (rate,)
