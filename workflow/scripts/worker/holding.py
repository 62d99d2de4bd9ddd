"""Judges a proof at full size: compares each distance with its limit. A distance above its limit ends the proof."""

import numpy as np

from shared import limits, sketch
from shared.precisions import PRECISIONS
from shared.sketch import in_one_piece

from .contract import NotEquivalent
from .reference import BLURS, Reference

# The last place of a float32, as a part of it, at most.
PLACE = 2.0**-23


class Judge(object):
    """Compares losses and changes of weights with the network's reference.

    `held` has (kind, what, distance, limit) of all comparisons, as shares. Without a reference nothing is compared.
    """

    def __init__(self, job):
        self.job, self.spec = job, job["spec"]
        self.precision = PRECISIONS[job["precision"]]
        self.held = []
        found = Reference(job["reference"], self.spec) if job.get("reference") else None
        self.reference = found if found and not found.reason else None

    def refuse(self, words):
        """Ends the proof."""
        raise NotEquivalent(words)

    def largest(self, kind):
        """Returns the largest distance of a kind that has a limit, or None."""
        # Without a limit nothing was compared.
        distances = [
            distance for own, _, distance, limit in self.held if own == kind and limit < np.inf
        ]
        return max(distances or [None])

    def last(self, kind):
        """Returns the last distance of a kind, or None."""
        distances = [distance for own, _, distance, _ in self.held if own == kind]
        return distances[-1] if distances else None

    def limit_of_loss(self, *of, **named):
        return limits.of_loss(*of, precision=self.job["precision"], **named)

    def hold_loss(self, kind, what, loss, wanted, limit, whose="the reference"):
        distance, size = abs(loss - wanted), max(abs(wanted), limits.LOGARITHM)
        self.held.append((kind, what, float(distance / size), float(limit / size)))
        if not distance <= limit:
            words = "at full size, {} is {:.9g} in the framework and {:.9g} in {}"
            self.refuse(words.format(what, loss, wanted, whose))

    def hold_changes(self, what, parameters, changes, rate):
        """Compares (name, before, after) of parameters at a rate; returns {name: distance} of those with a limit."""
        found = []
        for name, before, after in changes:
            distance, limit = self.reference.off(parameters, name, before, after, rate)
            if limit < np.inf:
                found.append(nearness(name, distance, limit))
        self.hold_nearest("change", what, found)
        return {name: distance for _, name, distance, _ in found}

    def hold_nearest(self, kind, what, found):
        """Notes the parameter that is nearest to its limit, of several `nearness`; refuses it where it is beyond."""
        if not found:
            return
        share, name, distance, limit = max(found)
        self.held.append((kind, what + name, float(distance), float(limit)))
        if not share <= 1:
            others = sum(not each[0] <= 1 for each in found) - 1
            more = ", and of {} more of {}".format(others, len(found)) if others else ""
            words = "at full size, {}{} is off by {:.2g} of its length (limit {:.2g}){}"
            self.refuse(words.format(what, name, distance, limit, more))

    def hold_median(self, distances, middle):
        """Compares the median of {name: distance} of all gradients, over those that the reference counts."""
        counted = [
            distance for name, distance in distances.items() if name in self.reference.counted
        ]
        if not counted:
            return
        distance = float(np.median(counted))
        limit = middle + BLURS * sketch.READING
        self.held.append(("middle", "the median gradient", distance, limit))
        words = "at full size, the gradients are off by {:.2g} of their length in the median"
        if distance < self.precision.least:
            words += ": products keep more bits than those of {}"
            self.refuse(words.format(distance, self.job["precision"]))
        if not distance <= limit:
            words += " (limit {:.2g})"
            self.refuse(words.format(distance, limit))


def nearness(name, distance, limit):
    """Returns a tuple that is largest for the parameter nearest to its limit; NaN is the worst."""
    return (distance / limit if distance == distance else np.inf, name, distance, limit)


def copies(trainer, names):
    """Returns {name: values} of weights, as copies: some frameworks return a view that the next step writes to.

    They are copied one by one, so that a framework can use the same pages each time: fresh ones cost more than the
    copy.
    """
    return {name: _copied(trainer.weights([name])[name]) for name in names}


def _copied(values):
    if values.flags.c_contiguous:
        return np.array(values, np.float32)
    return in_one_piece(values).astype(np.float32, copy=False)


def places(before, after):
    """Returns the largest change of a value, in last places of the largest value."""
    largest = float(np.abs(after).max()) or 1.0
    return float(np.abs(after - before).max()) / (PLACE * largest)


def sketched(name, values):
    return sketch.take(name, values.shape, sketch.pieces(values))


def ends(trainer, start):
    """Returns {name: (sketch, length of the change, length before)} of the weights, from (name, values) before."""
    found = {}
    for name, before in start:
        after = in_one_piece(trainer.weights([name])[name])
        found[name] = (sketched(name, after), _length(after, before), _length(before))
    return found


def _length(values, others=None):
    """Returns the length of an array, or of its difference from another one."""
    values, squares = values.ravel(), 0.0
    others = None if others is None else others.ravel()
    for start in range(0, values.size, sketch.PART):
        part = values[start : start + sketch.PART]
        part = part if others is None else part - others[start : start + sketch.PART]
        squares += float(np.einsum("i,i->", part, part))
    return np.sqrt(squares)
