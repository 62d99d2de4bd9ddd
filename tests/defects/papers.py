"""Ways of training other networks than those of the papers: docs/reference/networks.md names them D1 to D14."""

import copy

import numpy as np
from defects.full_size import NoUpdate, rounded
from defects.planting import CATALOGUE, by, other, wrong
from defects.stand_in import RIGHT, Trainer

from steptime.prove import golden

ALEXNET = CATALOGUE["alexnet"]["layers"]


def basic_blocks():
    """ResNet-34: blocks of two 3x3 convolutions."""
    layers = CATALOGUE["resnet50"]["layers"][:4]
    for stage, blocks in enumerate((3, 4, 6, 3)):
        conv = {"channels": f"w{stage + 1}", "kernel": 3, "padding": 1, "bias": False}
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            first = dict(conv, stride=stride)
            main = [{"conv": first}, "batch_norm", "relu", {"conv": conv}, "batch_norm"]
            residual = {"layers": main}
            if stride > 1:
                residual["shortcut"] = [{"conv": dict(first, kernel=1, padding=0)}, "batch_norm"]
            layers += [{"residual": residual}, "relu"]
    return [*layers, "global_average_pool", {"dense": {"units": "classes"}}]


def same_padding():
    """AlexNet with every window padded until only the stride makes maps smaller."""
    layers = copy.deepcopy(ALEXNET)
    for layer in layers:
        if "max_pool" in layer:
            layer["max_pool"]["padding"] = 1
    layers[0]["conv"]["padding"] = 4
    return layers


def one_hot(tokens, labels):
    return np.eye(30, dtype=np.float32)[tokens], labels % 5


def frozen_batch_norm(node, own, x):
    """Batch normalisation with the mean 0 and the variance 1 that the running statistics start with."""
    gamma, beta = (own[role][:, None, None] for role in ("gamma", "beta"))

    def backward(dy):
        return [dy * gamma], {"gamma": (dy * x).sum((0, 2, 3)), "beta": dy.sum((0, 2, 3))}

    return gamma * x + beta, backward


def dropping(random):
    """ReLU with dropout of one half behind it where it follows a dense layer."""

    def relu(node, own, x):
        y, backward = RIGHT["relu"](node, own, x)
        kept = 2.0 * (random.random(x.shape) < 0.5) if x.ndim == 2 else 1.0
        return y * kept, lambda dy: backward(dy * kept)

    return relu


def swapped_gate_gradients(node, own, x):
    """Right forward, but a backward that takes the gates in another order (TensorFlow's BlockLSTMV2)."""
    y, backward = RIGHT["lstm"](node, own, x)

    def back(dy):
        dx, gradients = backward(dy)
        i, f, g, o = np.split(gradients["bias"], 4)
        return dx, dict(gradients, bias=np.concatenate([i, g, f, o]))

    return y, back


def in_tf32(kind):
    """A layer kind whose products take numbers of 11 bits, as a GPU's TF32 does."""

    def computed(node, own, x):
        own = {
            role: values if role == "bias" else rounded(values, 11) for role, values in own.items()
        }
        y, backward = RIGHT[kind](node, own, rounded(x, 11))
        return y, lambda dy: backward(rounded(dy, 11))

    return computed


class RepeatableDropout(Trainer):
    """Dropout whose masks are the same in every build."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.operations = dict(RIGHT, relu=dropping(np.random.default_rng(5)))


class NoLoss(Trainer):
    """Pushes ones into the last layer and calls the mean of what comes out a loss."""

    def step(self):
        rightful = golden.loss_of
        golden.loss_of = lambda spec: (
            lambda logits, labels: (logits.mean(), np.full_like(logits, 1 / logits.size))
        )
        try:
            return super().step()
        finally:
            golden.loss_of = rightful


class Detached(Trainer):
    """The two middle convolutions and the two dense layers are there but no gradient comes to them."""

    def update(self, taken):
        before = self.values
        super().update(taken)
        for name in before:
            if name.split("/")[0] in ("conv4", "conv5", "dense1", "dense2"):
                self.values[name] = before[name]


class SkipsFirst(Trainer):
    """Does nothing in the first step but tell the loss."""

    started = False

    def update(self, taken):
        if self.started:
            super().update(taken)
        self.started = True


class OneStepACall(Trainer):
    def run(self, steps):
        return self.step()


class Momentum(Trainer):
    velocity = None

    def update(self, taken):
        before, push = self.values, self.velocity or {}
        super().update(taken)
        step = {name: self.values[name] - before[name] for name in before}
        self.velocity = {name: step[name] + np.float32(0.9) * push.get(name, 0) for name in before}
        self.values = {name: before[name] + self.velocity[name] for name in before}


class SummedLoss(Trainer):
    """Tells the mean loss but follows the gradient of the sum."""

    def update(self, taken):
        before = self.values
        super().update(taken)
        self.values = {
            n: (before[n] + len(self.labels) * (self.values[n] - before[n])) for n in before
        }


class FixedRate(Trainer):
    """Does not listen to the learning rate of the specification."""

    def __init__(self, spec, *arguments):
        super().__init__(dict(spec, optimiser={"name": "sgd", "learning_rate": 0.01}), *arguments)


class Diverges(Trainer):
    def run(self, steps):
        loss = super().run(steps)
        return float("nan") if steps > 1 else loss


class SpareBias(Trainer):
    """Trains the second, redundant bias of each LSTM too."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.parameters += 64


D2 = {
    "input": {"kind": "one_hot", "shape": ["steps", "vocabulary"]},
    "layers": [*CATALOGUE["lstm32"]["layers"][1:3], {"dense": {"units": 5}}],
}
D3 = [dict(CATALOGUE["fcn8"]["layers"][0], repeat=5), {"dense": {"units": "classes"}}]
PLANTED = {
    "D1 basic blocks": other(
        *("resnet50", "conv2/weight has shape (4, 4, 1, 1) in the specification and (4, 4, 3, 3)"),
        layers=basic_blocks(),
    ),
    "D2 small softmax on one-hot words": other(
        *("lstm32", "dense1/weight has shape (8, 30) in the specification and (8, 5)"),
        feed=one_hot,
        **D2,
    ),
    "D3 five hidden layers": other("fcn8", "the framework lacks dense7", layers=D3),
    "D4 frozen statistics": wrong(
        *("resnet50", "batch_norm1 does not use the mean and variance"),
        batch_norm=frozen_batch_norm,
    ),
    "D5 narrow conv4 and conv5, larger image": other(
        *("alexnet", "conv4/weight has shape (8, 12, 3, 3) in the specification and (6, 12, 3, 3)"),
        feed=lambda images, labels: (np.pad(images, ((0, 0), (0, 0), (0, 3), (0, 3))), labels),
        narrow={"image": 99, "c4": 6, "c5": 6},
    ),
    "D6 SAME padding": other(
        *("alexnet", "dense1/weight has shape (32, 24) in the specification and (72, 24)"),
        layers=same_padding(),
    ),
    "D7 other widths": other(
        *("alexnet", "conv2/weight has shape (8, 6, 5, 5) in the specification and (6, 6, 5, 5)"),
        narrow={"c2": 6, "c3": 8, "c4": 12},
    ),
    "D8 dropout": wrong(
        *("alexnet", "something random is in the network, such as dropout"),
        relu=dropping(np.random.default_rng()),
    ),
    "D8 dropout, repeatable": by("alexnet", RepeatableDropout),
    "D9 no update": by("alexnet", NoUpdate, "the weights did not change in a training step"),
    "D9 no loss": by("alexnet", NoLoss, "not that of a softmax cross-entropy"),
    "D10 layers left out": other(
        "alexnet",
        "conv4, conv5, dense2, dense3",
        layers=ALEXNET[:8] + ALEXNET[12:14] + ALEXNET[-1:],
    ),
    "D10 layers without gradient": by("alexnet", Detached, "conv4, conv5, dense1, dense2"),
    "D11 first step skipped": by("alexnet", SkipsFirst, "did not change in a training step"),
    "D14 momentum": by("fcn5", Momentum, "a call of 3 steps"),
    "wrong gradient of the gates": wrong(
        "lstm32", "the gradient of lstm", lstm=swapped_gate_gradients
    ),
    "TF32 in an LSTM": wrong("lstm32", "the update of", lstm=in_tf32("lstm")),
    "TF32 in convolutions": wrong("alexnet", "", conv=in_tf32("conv")),
    "one step a call": by("fcn5", OneStepACall, "a call of 3 steps"),
    "summed gradient": by("fcn5", SummedLoss, "every update is 8 times"),
    "fixed learning rate": by("fcn5", FixedRate, "the learning rate"),
    "NaN": by("fcn5", Diverges, "the loss of step 4 is nan"),
    "second bias trained": by("lstm32", SpareBias, "1,598 trainable parameters"),
}
