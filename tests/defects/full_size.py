"""Ways of training another network that begin above the size of the narrow proof, each planted in an adapter."""

from defects.stand_in import RIGHT, Trainer, replacing

from shared import data

NARROW = 8  # the mini-batch of the narrow proof
LATE = 12  # steps after which the proof before the samples is over
NEVER = 10**9


def rounded(values, bits):
    """With so many bits of a significand."""
    high = values * (2.0 ** (53 - bits) + 1)
    return high - (high - values)


def in_bits(bits, *names, kind="dense", rounded=rounded):
    """Layers of a kind, those of these names or all, whose products take rounded numbers."""

    def layer(node, own, x):
        if len(x) <= NARROW or (names and node["name"] not in names):
            return RIGHT[kind](node, own, x)
        own = {role: rounded(values, bits) for role, values in own.items()}
        y, backward = RIGHT[kind](node, own, rounded(x, bits))
        return y, lambda dy: backward(rounded(dy, bits))

    return replacing(**{kind: layer})


def truncated(node, own, x):
    """An LSTM in which nothing flows back into its first step."""
    y, backward = RIGHT["lstm"](node, own, x)

    def shorter(dy):
        (dx,), gradients = backward(dy)
        if len(x) > NARROW:
            dx[:, 0] = 0
        return [dx], gradients

    return y, shorter


class OneLess(Trainer):
    """Leaves out the last sample."""

    def __init__(self, spec, weights, inputs, labels):
        less = slice(None, -1 if len(labels) > NARROW else None)
        super().__init__(spec, weights, inputs[less], labels[less])


class OtherBatch(Trainer):
    """Trains on a mini-batch that was left from another run."""

    def __init__(self, spec, weights, inputs, labels):
        if len(labels) > NARROW:
            inputs, labels = data.synthetic_batch(spec, len(labels), data.BATCH_SEED + 1)
        super().__init__(spec, weights, inputs, labels)


def frozen(name):
    """A trainer that leaves one parameter as it is."""

    class Frozen(Trainer):
        def update(self, taken):
            kept = self.values[name]
            super().update(taken)
            if len(self.labels) > NARROW:
                self.values[name] = kept

    return Frozen


def skipping(period):
    """A trainer that leaves out each update of a period."""

    class Skipping(Trainer):
        steps = 0

        def update(self, taken):
            self.steps += 1
            if self.steps % period or len(self.labels) <= NARROW:
                super().update(taken)

    return Skipping


def last_alone(period):
    """A trainer that trains the last layer alone, but in each step of a period."""

    class LastAlone(Trainer):
        steps = 0

        def update(self, taken):
            self.steps += 1
            kept = self.values
            super().update(taken)
            if self.steps % period and len(self.labels) > NARROW:
                last = list(kept)[-1].split("/")[0]
                self.values |= {name: kept[name] for name in kept if name.split("/")[0] != last}

    return LastAlone


class OneOfBlock(Trainer):
    """Takes one step where several are asked for."""

    def run(self, steps):
        return super().run(1 if len(self.labels) > NARROW else steps)


def keeping_first_product():
    """A trainer that computes the product of the batch once, since the batch never changes."""

    class Keeping(Trainer):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            kept = {}

            def conv(node, own, x):
                y, backward = RIGHT["conv"](node, own, x)
                if node["inputs"] == ["input"] and len(x) > NARROW:
                    y = kept.setdefault("y", y)
                return y, backward

            self.operations = dict(RIGHT, conv=conv)

    return Keeping


def late(wrong, taken=None):
    """A trainer that is right until LATE steps are taken, and then `wrong`; those of all trainers count with a list."""

    class Late(Trainer):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.wrong, self.taken = wrong(*arguments), [] if taken is None else taken

        def step(self):
            self.taken.append(1)
            if len(self.taken) <= LATE:
                return super().step()
            self.wrong.values = self.values
            loss = self.wrong.step()
            self.values = self.wrong.values
            return loss

    return Late


class NoUpdate(Trainer):
    """Computes all, and changes nothing."""

    def update(self, taken):
        pass


LATE_CHANGE = "after the samples"
# {defect: (network, trainer, words of the refusal)}
PLANTED = {
    "bfloat16 products": ("fcn5", in_bits(8), "at full size"),
    "TF32 in the first layer": ("fcn5", in_bits(11, "dense1"), "at full size"),
    "one sample left out": ("fcn5", OneLess, "the first change of"),
    "one time step less": ("lstm32", replacing(lstm=truncated), "the first change of"),
    "a weight not trained": ("fcn5", frozen("dense1/weight"), "dense1/weight"),
    "a bias not trained": ("alexnet", frozen("conv3/bias"), "conv3/bias"),
    "every second update skipped": ("fcn5", skipping(2), "the loss of step 3"),
    "every twentieth update skipped": ("fcn5", skipping(20), "no small parameter changes"),
    "another batch": ("lstm32", OtherBatch, "the first change of"),
    "first product kept": ("alexnet", keeping_first_product(), LATE_CHANGE),
    "one step of a block": ("fcn5", OneOfBlock, LATE_CHANGE),
    "the last layer alone in every second step after a while": (
        *("fcn5", late(last_alone(2)), "stands still in a step between two that change it"),
    ),
    "the last layer alone after a while, by momentum": (
        *("fcn5-momentum", late(last_alone(NEVER)), "stands still, .* though the loss hangs on it"),
    ),
    "the last layer alone after a while, by AdamW": (
        *(
            "gpt-small-adamw",
            late(last_alone(NEVER)),
            "stands still, .* though the loss hangs on it",
        ),
    ),
    "the last layer alone in each trainer after a while": (
        *("fcn5", late(last_alone(NEVER), []), "stands still, .* though the loss hangs on it"),
    ),
    "no update after a while": ("fcn5", late(NoUpdate), "no small parameter changes"),
    "a weight not trained after a while": ("fcn5", late(frozen("dense1/weight")), LATE_CHANGE),
    "bfloat16 products after a while": ("fcn5", late(in_bits(8)), LATE_CHANGE),
    "bfloat16 products of all trainers after a while": (
        *("fcn5", late(in_bits(8), []), "the first loss"),
    ),
}
