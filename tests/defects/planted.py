"""The known ways of training another network (docs/reference/networks.md) and some more, each planted in an adapter."""

import copy
from pathlib import Path

import numpy as np
import yaml
from defects.full_size import rounded
from defects.stand_in import RIGHT, Trainer, adapter

from steptime import networks
from steptime.networks import optimisers
from steptime.networks.layers import attention, channel_shuffle, rbm, sigmoid
from steptime.networks.losses import LOSSES
from steptime.prove import golden

CATALOGUE = yaml.safe_load((Path(__file__).parents[2] / "config/networks.yaml").read_text())


def changed(network, narrow=None, **entry):
    """A mutation: the narrow specification of the network with other sizes or layers."""
    catalogue = copy.deepcopy(CATALOGUE)
    catalogue[network].update(entry)
    catalogue[network]["narrow"].update(narrow or {})
    return lambda spec: networks.specify(network, catalogue, narrow=True)


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
    layers = copy.deepcopy(CATALOGUE["alexnet"]["layers"])
    for layer in layers:
        if "max_pool" in layer:
            layer["max_pool"]["padding"] = 1
    layers[0]["conv"]["padding"] = 4
    return layers


def skipping(spec):
    """AlexNet whose last layer reads the third convolution: conv4, conv5, dense1 and dense2 lead nowhere."""
    layers = CATALOGUE["alexnet"]["layers"]
    return changed("alexnet", layers=layers[:8] + layers[12:14] + layers[-1:])(spec)


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

    def wrong(dy):
        dx, gradients = backward(dy)
        i, f, g, o = np.split(gradients["bias"], 4)
        return dx, dict(gradients, bias=np.concatenate([i, g, f, o]))

    return y, wrong


def in_tf32(kind):
    """A layer kind whose products take numbers of 11 bits, as a GPU's TF32 does."""

    def computed(node, own, x):
        own = {
            role: values if role == "bias" else rounded(values, 11) for role, values in own.items()
        }
        y, backward = RIGHT[kind](node, own, rounded(x, 11))
        return y, lambda dy: backward(rounded(dy, 11))

    return {kind: computed}


def replacing(**operations):
    """A trainer in which some operations are others."""
    return type("Replaced", (Trainer,), {"operations": dict(RIGHT, **operations)})


class RepeatableDropout(Trainer):
    """Dropout whose masks are the same in every build."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.operations = dict(RIGHT, relu=dropping(np.random.default_rng(5)))


class NoUpdate(Trainer):
    def update(self, taken):
        pass


class NoLoss(Trainer):
    """Pushes ones into the last layer and calls the mean of what comes out a loss."""

    def step(self):
        rightful = golden.loss_of
        golden.loss_of = lambda spec: (
            lambda logits, labels: (
                logits.mean(),
                np.full_like(logits, 1 / logits.size),
            )
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


def seeing(offset):
    """Attention in which a step sees those up to so many behind it, and no mask where it is None."""

    def attend(node, own, x):
        if offset is None:
            return RIGHT["attention"]({key: node[key] for key in node if key != "causal"}, own, x)
        rightful, attention.seen = attention.seen, lambda steps: np.tri(steps, k=offset, dtype=bool)
        try:
            return RIGHT["attention"](node, own, x)
        finally:
            attention.seen = rightful

    return attend


def unscaled(node, own, x):
    """Attention without its division by the root of the units of a head: queries are as much longer."""
    queries = x.shape[-1] // 3
    scale = np.ones(x.shape[-1])
    scale[:queries] = np.sqrt(queries / node["heads"])
    y, backward = RIGHT["attention"](node, own, x * scale)
    return y, lambda dy: ([backward(dy)[0][0] * scale], {})


def with_epsilon(kind, epsilon):
    """A normalisation with another epsilon."""
    return {kind: lambda node, own, x: RIGHT[kind](dict(node, epsilon=epsilon), own, x)}


def unbiased(node, own, x):
    """Layer normalisation by the variance over n - 1."""
    share = (x.shape[-1] - 1) / x.shape[-1]
    scale = np.sqrt(share)
    node = dict(node, epsilon=share * node["epsilon"])
    y, backward = RIGHT["layer_norm"](node, dict(own, weight=scale * own["weight"]), x)

    def wrong(dy):
        dx, gradients = backward(dy)
        return dx, dict(gradients, weight=scale * gradients["weight"])

    return y, wrong


def normed_before():
    """BERT's layers with each normalisation in front of what it stands behind."""
    layers = copy.deepcopy(CATALOGUE["bert-base"]["layers"])
    block = next(layer for layer in layers if "repeat" in layer)
    block["layers"] = [
        {"residual": {"layers": [norm, *residual["residual"]["layers"]]}}
        for residual, norm in zip(block["layers"][::2], block["layers"][1::2], strict=True)
    ]
    return layers


def untied():
    """GPT with a matrix of its own for the scores of words."""
    last = {"dense": {"units": "vocabulary", "bias": False}}
    return [*CATALOGUE["gpt-small"]["layers"][:-1], last]


def half_tied(node, own, x, table):
    """Scores by the table, but no gradient of theirs reaches it."""
    y, backward = RIGHT["unembedding"](node, own, x, table)
    return y, lambda dy: ([backward(dy)[0][0], 0.0], {})


def swapped_gates(node, own, x):
    """A GRU whose gates stand in Keras's order: update, reset, new."""

    def swapped(values):
        r, z, n = np.split(values, 3, axis=-1)
        return np.concatenate([z, r, n], axis=-1)

    y, backward = RIGHT["gru"](node, {role: swapped(values) for role, values in own.items()}, x)

    def wrong(dy):
        dx, gradients = backward(dy)
        return dx, {role: swapped(values) for role, values in gradients.items()}

    return y, wrong


def forgetting(node, own, x):
    """A recurrence whose steps know nothing of those before them."""
    return RIGHT["rnn"](node, dict(own, recurrent=0.0 * own["recurrent"]), x)


class Updating(Trainer):
    """Takes another step than its optimiser, but for plain SGD, by which a proof reads gradients."""

    def update(self, taken):
        if self.spec["optimiser"]["name"] == "sgd":
            return super().update(taken)
        kept = self.__dict__.setdefault("kept", {})
        found = self.updated(taken.gradients, kept)
        self.values = {name: values.astype(np.float32) for name, values in found.items()}


class Dampened(Updating):
    """Momentum of which a gradient is but a tenth, as PyTorch's `dampening` of 0.9 makes it."""

    def updated(self, gradients, kept):
        found = {}
        for name, gradient in gradients.items():
            kept[name] = 0.9 * kept[name] + 0.1 * gradient if name in kept else gradient
            found[name] = self.values[name] - self.spec["optimiser"]["learning_rate"] * kept[name]
        return found


class Decaying(Updating):
    """AdamW with its decay in the gradient, as Adam's `weight_decay` in PyTorch."""

    def updated(self, gradients, kept):
        rule = self.spec["optimiser"]
        decayed = {
            name: gradient + rule["weight_decay"] * self.values[name] * (gradient.ndim > 1)
            for name, gradient in gradients.items()
        }
        return optimisers.update(dict(rule, name="adam"), self.values, decayed, kept)


class DecayingAll(Updating):
    """AdamW that lets biases and the weights of norms decay, too."""

    def updated(self, gradients, kept):
        rule = self.spec["optimiser"]
        found = optimisers.update(dict(rule, name="adam"), self.values, gradients, kept)
        lost = rule["learning_rate"] * rule["weight_decay"]
        return {name: values - lost * self.values[name] for name, values in found.items()}


class Uncorrected(Updating):
    """Adam whose averages are not corrected for their start at zero."""

    def updated(self, gradients, kept):
        rule = self.spec["optimiser"]
        for name in gradients:
            # After so many steps there is nothing to correct.
            kept.setdefault(name, [0.0, 0.0])[2:] = [10**6]
        return optimisers.update(rule, self.values, gradients, kept)


def turned(kind):
    """A layer kind whose kernels stand with rows for columns."""

    def wrong(node, own, x):
        y, backward = RIGHT[kind](node, own | {"weight": own["weight"].swapaxes(2, 3)}, x)

        def back(dy):
            dx, gradients = backward(dy)
            return dx, gradients | {"weight": gradients["weight"].swapaxes(2, 3)}

        return y, back

    return wrong


def padded_behind(kind):
    """A layer kind whose images are padded behind their last row and column alone, as TensorFlow's SAME does."""

    def wrong(node, own, x):
        edge = (0, 2 * node["padding"])
        filling = -np.inf if kind == "max_pool" else 0.0
        wide = np.pad(x, ((0, 0), (0, 0), edge, edge), constant_values=filling)
        y, backward = RIGHT[kind](node | {"padding": 0}, own, wide)
        height, width = x.shape[2:]

        def back(dy):
            (dx,), gradients = backward(dy)
            return [dx[:, :, :height, :width]], gradients

        return y, back

    return wrong


def mean_without_padding(node, own, x):
    """Average pooling whose padding does not count."""
    y, backward = RIGHT["avg_pool"](node, own, x)
    count = RIGHT["avg_pool"](node, own, np.ones_like(x))[0]
    return y / count, lambda dy: backward(dy / count)


def interleaved(node, own, x):
    """A convolution in groups that takes every so manyeth channel for a group."""
    order = channel_shuffle.shuffled(np.arange(x.shape[1])[None, :, None], node["groups"]).ravel()
    y, backward = RIGHT["grouped_conv"](node, own, x[:, order])

    def back(dy):
        (dx,), gradients = backward(dy)
        return [dx[:, np.argsort(order)]], gradients

    return y, back


def shuffled_back(node, own, x):
    """The channels in the order that undoes a shuffle."""
    return RIGHT["channel_shuffle"](node | {"groups": x.shape[1] // node["groups"]}, own, x)


def undivided(node, own, x):
    """Local response normalisation whose alpha is not divided by the size, as TensorFlow has it."""
    whole = node | {"inverse_alpha": node["inverse_alpha"] / node["size"]}
    return RIGHT["local_response_norm"](whole, own, x)


def unbiased_groups(node, own, x):
    """Group normalisation by the variance over n - 1."""
    count = x[0].size // node["groups"]
    share = np.sqrt((count - 1) / count)
    y, backward = RIGHT["group_norm"](node, own | {"gamma": own["gamma"] * share}, x)

    def back(dy):
        dx, gradients = backward(dy)
        return dx, gradients | {"gamma": gradients["gamma"] * share}

    return y, back


def reversed_concat(node, own, *inputs):
    y, backward = RIGHT["concat"](node, own, *reversed(inputs))

    def back(dy):
        gradients, _ = backward(dy)
        return gradients[::-1], {}

    return y, back


def losing(value):
    """A trainer whose loss is another one."""

    class Losing(Trainer):
        def step(self):
            rightful = golden.loss_of
            golden.loss_of = lambda spec: value
            try:
                return super().step()
            finally:
                golden.loss_of = rightful

    return Losing


def half_squares(outputs, targets):
    """Caffe's Euclidean loss."""
    loss, gradient = LOSSES["mean_squares"].value(outputs, targets)
    return loss / 2, gradient / 2


def squashed_twice(outputs, targets):
    """Binary cross entropy of logits, given what was squashed already."""
    chances = sigmoid.logistic(outputs)
    loss, gradient = LOSSES["binary_cross_entropy"].value(chances, targets)
    return loss, gradient * chances * (1.0 - chances)


def without_divergence(outputs, targets):
    """An autoencoder whose code is drawn, and held against nothing."""
    decoded = targets.shape[1]
    loss, gradient = LOSSES["binary_cross_entropy"].value(outputs[:, :decoded], targets)
    share, code = decoded / outputs.shape[1], np.zeros_like(outputs[:, decoded:])
    return loss * share, np.concatenate([gradient * share, code], 1)


def drawn_by_the_variance(node, own, x, noise):
    """The logarithm of the variance taken for that of the standard deviation."""
    units = noise.shape[1]
    doubled = np.concatenate([x[:, :units], 2.0 * x[:, units:]], 1)
    y, backward = RIGHT["sampled_code"](node, own, doubled, noise)

    def wrong(dy):
        (dx, d_noise), gradients = backward(dy)
        return [np.concatenate([dx[:, :units], 2.0 * dx[:, units:]], 1), d_noise], gradients

    return y, wrong


def untied_machine(node, own, visible, noise):
    """A Boltzmann machine whose weight is held constant in the energy of the chain's end."""
    y, backward = RIGHT["rbm"](node, own, visible, noise)

    def half(dy):
        to_inputs, gradients = backward(dy)
        _, _, end = rbm.chain(own, visible, noise)
        again = dy[:, :1] * sigmoid.logistic(end @ own["weight"] + own["hidden"])
        return to_inputs, gradients | {"weight": gradients["weight"] - end.T @ again}

    return y, half


def undrawn(node, own, visible, noise):
    """The chances of hidden units in place of units that are drawn by them."""
    rightful = rbm.chain

    def chain(own, visible, noise):
        visible, chances, _ = rightful(own, visible, noise)
        end = sigmoid.logistic(chances @ own["weight"].T + own["visible"])
        return visible, chances, end

    rbm.chain = chain
    try:
        return RIGHT["rbm"](node, own, visible, noise)
    finally:
        rbm.chain = rightful


def detached(node, own, x):
    """A generator that no gradient reaches."""
    return x, lambda dy: ([np.zeros_like(dy)], {})


def two_judges():
    """A discriminator for what is real and another one for what is generated."""
    layers = copy.deepcopy(CATALOGUE["gan"]["layers"])
    judging = ["judged", "judged", 1]
    end = layers.index("unstack")
    branches = []
    for name in ("real", "made"):
        before = name
        for number, units in enumerate(judging):
            last = number == len(judging) - 1
            own = {"units": units, "inputs": [before]}
            branches.append({"dense": own | {"name": f"{name}{number}"}})
            before = f"{name}{number}"
            if not last:
                branches.append({"relu": {"name": before}})
    stacked = {"stack": {"inputs": ["real2", "made2"]}}
    start = next(number for number, layer in enumerate(layers) if "stack" in layer)
    return [*layers[:start], *branches, stacked, *layers[end:]]


# {defect: (network, adapter, words of the refusal)}
PLANTED = {
    "KL left out": ("vae", adapter(losing(without_divergence)), "the first loss is"),
    "a log variance taken for a deviation's": (
        "vae",
        adapter(replacing(sampled_code=drawn_by_the_variance)),
        "the first loss is",
    ),
    "noise that is left out": (
        "vae",
        adapter(
            replacing(
                sampled_code=lambda node, own, x, noise: RIGHT["sampled_code"](
                    node, own, x, np.zeros_like(noise)
                )
            )
        ),
        "the first loss is",
    ),
    "a detached generator": (
        "gan",
        adapter(replacing(reversal=detached)),
        "the loss does not depend on dense1, dense2, dense3",
    ),
    "a generator that helps its judge": (
        "gan",
        adapter(replacing(reversal=lambda node, own, x: (x, lambda dy: ([dy], {})))),
        "the gradient of dense",
    ),
    "two judges": ("gan", adapter(mutate=changed("gan", layers=two_judges())), "lacks"),
    "a machine's weight untied": ("rbm", adapter(replacing(rbm=untied_machine)), "the gradient of"),
    "hidden units that are not drawn": (
        "dbn",
        adapter(replacing(rbm=undrawn)),
        "the first loss is",
    ),
    "half of the squares": ("deconv", adapter(losing(half_squares)), "the first loss is"),
    "squashed twice": ("autoencoder", adapter(losing(squashed_twice)), "the first loss is"),
    "a turned kernel in groups": (
        "mobilenet",
        adapter(replacing(grouped_conv=turned("grouped_conv"))),
        "the first loss is",
    ),
    "a turned transposed kernel": (
        "deconv",
        adapter(replacing(conv_transpose=turned("conv_transpose"))),
        "the first loss is",
    ),
    "padding behind a pool": (
        "densenet121",
        adapter(replacing(max_pool=padded_behind("max_pool"))),
        "the first loss is",
    ),
    "padding behind a convolution in groups": (
        "xception",
        adapter(replacing(grouped_conv=padded_behind("grouped_conv"))),
        "the first loss is",
    ),
    "padding that does not count": (
        "shufflenet",
        adapter(replacing(avg_pool=mean_without_padding)),
        "the first loss is",
    ),
    "groups of other channels": (
        "shufflenet",
        adapter(replacing(grouped_conv=interleaved)),
        "the first loss is",
    ),
    "channels shuffled back": (
        "shufflenet",
        adapter(replacing(channel_shuffle=shuffled_back)),
        "the first loss is",
    ),
    "responses normalised by the whole sum": (
        "googlenet",
        adapter(replacing(local_response_norm=undivided)),
        "the first loss is",
    ),
    "unbiased variance of groups": (
        "resnet50-group-norm",
        adapter(replacing(group_norm=unbiased_groups)),
        "the first loss is",
    ),
    "inputs the other way round": (
        "densenet121",
        adapter(replacing(concat=reversed_concat)),
        "the first loss is",
    ),
    "D1 basic blocks": (
        "resnet50",
        adapter(mutate=changed("resnet50", layers=basic_blocks())),
        "conv2/weight has shape (4, 4, 1, 1) in the specification and (4, 4, 3, 3)",
    ),
    "D2 small softmax on one-hot words": (
        "lstm32",
        adapter(
            mutate=changed(
                "lstm32",
                input={"kind": "one_hot", "shape": ["steps", "vocabulary"]},
                layers=[*CATALOGUE["lstm32"]["layers"][1:3], {"dense": {"units": 5}}],
            ),
            feed=one_hot,
        ),
        "dense1/weight has shape (8, 30) in the specification and (8, 5) in the framework",
    ),
    "D3 five hidden layers": (
        "fcn8",
        adapter(
            mutate=changed(
                "fcn8",
                layers=[
                    dict(CATALOGUE["fcn8"]["layers"][0], repeat=5),
                    {"dense": {"units": "classes"}},
                ],
            )
        ),
        "the framework lacks dense7",
    ),
    "D4 frozen statistics": (
        "resnet50",
        adapter(replacing(batch_norm=frozen_batch_norm)),
        "batch_norm1 does not use the mean and variance",
    ),
    "D5 narrow conv4 and conv5, larger image": (
        "alexnet",
        adapter(
            mutate=changed("alexnet", narrow={"image": 99, "c4": 6, "c5": 6}),
            feed=lambda images, labels: (np.pad(images, ((0, 0), (0, 0), (0, 3), (0, 3))), labels),
        ),
        "conv4/weight has shape (8, 12, 3, 3) in the specification and (6, 12, 3, 3)",
    ),
    "D6 SAME padding": (
        "alexnet",
        adapter(mutate=changed("alexnet", layers=same_padding())),
        "dense1/weight has shape (32, 24) in the specification and (72, 24)",
    ),
    "D7 other widths": (
        "alexnet",
        adapter(mutate=changed("alexnet", narrow={"c2": 6, "c3": 8, "c4": 12})),
        "conv2/weight has shape (8, 6, 5, 5) in the specification and (6, 6, 5, 5)",
    ),
    "D8 dropout": (
        "alexnet",
        adapter(replacing(relu=dropping(np.random.default_rng()))),
        "something random is in the network, such as dropout",
    ),
    "D8 dropout, repeatable": ("alexnet", adapter(RepeatableDropout), "the first loss is"),
    "D9 no update": ("alexnet", adapter(NoUpdate), "the weights did not change in a training step"),
    "D9 no loss": ("alexnet", adapter(NoLoss), "not that of a softmax cross-entropy"),
    "D10 layers left out": (
        "alexnet",
        adapter(mutate=skipping),
        "the framework lacks conv4, conv5, dense2, dense3",
    ),
    "D10 layers without gradient": (
        "alexnet",
        adapter(Detached),
        "the loss does not depend on conv4, conv5, dense1, dense2",
    ),
    "D11 first step skipped": (
        "alexnet",
        adapter(SkipsFirst),
        "the weights did not change in a training step",
    ),
    "D14 momentum": ("fcn5", adapter(Momentum), "a call of 3 steps"),
    "wrong gradient of the gates": (
        "lstm32",
        adapter(replacing(lstm=swapped_gate_gradients)),
        "the gradient of lstm",
    ),
    "TF32 in an LSTM": ("lstm32", adapter(replacing(**in_tf32("lstm"))), "the update of"),
    "TF32 behind an LSTM": ("lstm64", adapter(replacing(**in_tf32("dense"))), "the update of"),
    "TF32 in convolutions": ("alexnet", adapter(replacing(**in_tf32("conv"))), ""),
    "one step a call": ("fcn5", adapter(OneStepACall), "a call of 3 steps"),
    "summed gradient": ("fcn5", adapter(SummedLoss), "every update is 8 times"),
    "fixed learning rate": ("fcn5", adapter(FixedRate), "the learning rate"),
    "NaN": ("fcn5", adapter(Diverges), "the loss of step 4 is nan"),
    "second bias trained": ("lstm32", adapter(SpareBias), "1,598 trainable parameters"),
    "gates of a GRU in another order": (
        "gru32",
        adapter(replacing(gru=swapped_gates)),
        "the first loss is",
    ),
    "no recurrence": ("rnn32", adapter(replacing(rnn=forgetting)), "the first loss is"),
    "no causal mask": (
        "gpt-small",
        adapter(replacing(attention=seeing(None))),
        "the first loss is",
    ),
    "mask off by one, with the next step": (
        "gpt2",
        adapter(replacing(attention=seeing(1))),
        "the first loss is",
    ),
    "no division by the root of a head's units": (
        "vit-tiny",
        adapter(replacing(attention=unscaled)),
        "the first loss is",
    ),
    "pre-norm for post-norm": (
        "bert-base",
        adapter(mutate=changed("bert-base", layers=normed_before())),
        "the first loss is",
    ),
    "an epsilon of a tenth": (
        "gpt-small",
        adapter(replacing(**with_epsilon("layer_norm", 1e-6))),
        "the first loss is",
    ),
    "an epsilon of Keras's layer": (
        "vit-tiny",
        adapter(replacing(**with_epsilon("layer_norm", 1e-3))),
        "the first loss is",
    ),
    "another epsilon of RMSNorm": (
        "gpt-small-rms",
        adapter(replacing(**with_epsilon("rms_norm", 1e-6))),
        "the gradient of positions1/weight",
    ),
    "GELU by tanh": (
        "vit-tiny",
        adapter(replacing(gelu=RIGHT["gelu_tanh"])),
        "the first loss is",
    ),
    "GELU not by tanh": (
        "gpt2",
        adapter(replacing(gelu_tanh=RIGHT["gelu"])),
        "the update of layer_norm",
    ),
    "unbiased variance": (
        "gpt-small",
        adapter(replacing(layer_norm=unbiased)),
        "the first loss is",
    ),
    "untied weights": (
        "gpt-small",
        adapter(mutate=changed("gpt-small", layers=untied())),
        "7,296 in the framework",
    ),
    "no gradient through one of two ties": (
        "gpt-small",
        adapter(replacing(unembedding=half_tied)),
        "the gradient of table1/weight",
    ),
    "layer scale left out": (
        "convnext-tiny",
        adapter(
            replacing(
                layer_scale=lambda node, own, x: (
                    x,
                    lambda dy: ([dy], {"weight": np.zeros_like(own["weight"])}),
                )
            )
        ),
        "does not depend on layer_scale",
    ),
    "momentum with dampening": ("fcn5-momentum", adapter(Dampened), "a call of 3 steps"),
    "weight decay in the gradient": ("gpt-small-adamw", adapter(Decaying), "after one step"),
    "decay of biases and norms": ("gpt-small-adamw", adapter(DecayingAll), "after one step"),
    "Adam without its correction": ("gpt-small-adam", adapter(Uncorrected), "after one step"),
}
