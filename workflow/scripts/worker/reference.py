"""Reads what `prove.reference.compute` wrote of a network and mini-batch; `worker.full_size` judges by it."""

import numpy as np

from shared import data, sketch

# How often what float32 weights take from a change at the specification's own rate it may be off.
BLURS = 3.0
# A parameter moves for certain whose change float32 weights tell to this part.
SURE = 0.1


class Reference(object):
    """The content of a reference. `reason` says why there are no numbers; '' where there are.

    `parameters` has the gradients at the usual start values. `shown` has those that a step at `rate` shows, perhaps at
    start values that differ by `shifts`; for them, there are `loss`, `spread`, and `middle`, the limit of the median
    over those that are `counted`. `masked` and `masked_loss` say how far masks take gradients and loss.
    """

    def __init__(self, path, spec):
        # Before NumPy 1.16.3 the default runs what a file holds, and this one may have been carried here.
        with np.load(str(path), allow_pickle=False) as content:
            self.reason = str(content["reason"])
            if self.reason:
                return
            for name in ("losses", "spreads", "dropout"):
                setattr(self, name, content[name])
            self.labels = int(content["labels"])
            self.parameters = self.shown = _table(content, "", spec)
            self.rate, self.middle = content["rate"], content["middle"]
            self.loss, self.spread = self.losses[0], self.spreads[0]
            names = [parameter["name"] for parameter in spec["parameters"]]
            self.later = dict(zip(names, content["later_blurs"]))
            self.shifts = {}
            if self.dropout:
                self.masked = dict(zip(names, content["masked"]))
                self.masked_loss = float(content["masked_loss"])
            self.counted = {name for name, one in zip(names, content["counted"]) if one}
            if content["steady"]:
                self._show_steady(content, spec)

    def _show_steady(self, content, spec):
        self.shown = _table(content, "steady_", spec)
        self.rate, self.middle = content["steady_rate"], content["steady_middle"]
        names = [parameter["name"] for parameter in spec["parameters"]]
        self.counted = {name for name, one in zip(names, content["steady_counted"]) if one}
        self.loss, self.spread = content["steady_loss"], content["steady_spread"]
        shifts = content["steady_shifts"]
        for parameter, moved in zip(spec["parameters"], content["steady_moved"]):
            if moved:
                count = parameter["shape"][0]
                self.shifts[parameter["name"]], shifts = shifts[:count], shifts[count:]

    def start_values(self, spec):
        """Yields name and start values of each parameter, at which each gradient is shown."""
        for name, values in data.start_values(spec):
            # In a kernel, each of its channels is moved.
            moved = (values.T + self.shifts[name]).T if name in self.shifts else values
            yield name, np.ascontiguousarray(moved)

    def off(self, parameters, name, before, after, rate):
        """Returns how far a parameter's change is from its gradient, as a share of the gradient, and the limit."""
        true, share, limit, blur = parameters[name]
        parts = sketch.pieces(before, after, 1.0 / rate)
        found = sketch.take(name, before.shape, parts)
        return sketch.distance(found, true, share), limit + BLURS * blur / rate

    def moving(self, rate):
        """Returns the parameters that the first and the second step at this rate surely change."""
        return [
            name
            for name, (_, _, limit, blur) in self.parameters.items()
            if limit < np.inf and max(blur, self.later[name]) < SURE * rate
        ]


def _table(content, prefix, spec):
    """Returns {name: (sketch, share of the entries that are kept, limit, blur)} of the parameters."""
    names = ("norms", "projections", "limits", "blurs")
    columns = [content[prefix + name] for name in names]
    entries = content[prefix + "entries"].astype(np.float64)
    start = 0
    table = {}
    for parameter, norm, projections, limit, blur in zip(spec["parameters"], *columns):
        count, share = sketch.count_entries(parameter["shape"])
        own = entries[start : start + count]
        true = sketch.Sketch(norm, projections.astype(np.float64), own)
        table[parameter["name"]] = (true, share, float(limit), float(blur))
        start += count
    return table
