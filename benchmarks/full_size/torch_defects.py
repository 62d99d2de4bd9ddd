"""Ways of training another network with PyTorch, at full size only, each planted in the project's own adapter."""

import torch
from torch import nn
from torch.nn import functional

from worker import data

RECURRENT = ("tokens", "one_hot")


def plant(name, adapter, spec, batch):
    """Puts a defect into the adapter's module; returns what takes it out again."""
    trainer, layers = adapter._Trainer, dict(adapter.LAYERS)
    kept = {key: vars(trainer)[key] for key in ("__init__", "_forward", "_update", "_descend")}

    def undo():
        for key, value in kept.items():
            setattr(trainer, key, value)
        adapter.LAYERS.update(layers)

    DEFECTS[name](adapter, spec, batch, kept)
    return undo


def bfloat16(adapter, spec, batch, kept):
    def forward(self, inputs, labels):
        with torch.autocast(inputs.device.type, dtype=torch.bfloat16):
            logits = self.network(inputs)
        return functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), labels)

    adapter._Trainer._forward = forward


def cut(values):
    """As TF32 has it: ten bits behind the point."""
    return ((values.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


class CutForward(torch.autograd.Function):
    @staticmethod
    def forward(context, values):
        return cut(values)

    @staticmethod
    def backward(context, gradient):
        return gradient


class CutBackward(torch.autograd.Function):
    @staticmethod
    def forward(context, values):
        return values.clone()

    @staticmethod
    def backward(context, gradient):
        return cut(gradient)


def tf32(place):
    """One layer's products in TF32, forward and backward."""

    def plant_it(adapter, spec, batch, kept):
        names = [node["name"] for node in spec["nodes"] if node["op"] in ("dense", "conv", "lstm")]
        name = names[int(place * (len(names) - 1))]

        def begin(self, network, job, settings):
            kept["__init__"](self, network, job, settings)
            module = getattr(network, name)
            right = module.forward

            def forward(values):
                module.forward = right
                matrices = {
                    key: CutForward.apply(value)
                    for key, value in module.named_parameters()
                    if value.dim() > 1
                }
                found = torch.func.functional_call(module, matrices, (CutForward.apply(values),))
                module.forward = forward
                return CutBackward.apply(found)

            module.forward = forward

        adapter._Trainer.__init__ = begin

    return plant_it


def sample_left_out(adapter, spec, batch, kept):
    def forward(self, inputs, labels):
        if spec["input"]["kind"] in RECURRENT:
            labels = labels.reshape(len(inputs), -1)[:, :-1].flatten()
            return kept["_forward"](self, inputs[:, :-1], labels)
        return kept["_forward"](self, inputs[:-1], labels[:-1])

    adapter._Trainer._forward = forward


def class_left_out(adapter, spec, batch, kept):
    def forward(self, inputs, labels):
        logits = self.network(inputs)
        logits = logits.reshape(-1, logits.shape[-1])
        left = next(
            number for number in reversed(range(logits.shape[-1])) if not (labels == number).any()
        )
        away = torch.arange(logits.shape[-1]) == left
        return functional.cross_entropy(logits.masked_fill(away, float("-inf")), labels)

    adapter._Trainer._forward = forward


def step_less(adapter, spec, batch, kept):
    """Nothing flows back into the first step of the second half: the sequence is cut there."""
    right = adapter.LAYERS["lstm"]

    def make(node, in_place):
        module = right(node, in_place)

        class Cut(type(module)):
            def forward(self, values):
                with torch.no_grad():
                    first, state = nn.LSTM.forward(self, values[:1])
                return torch.cat([first, nn.LSTM.forward(self, values[1:], state)[0]])

        module.__class__ = Cut
        return module

    adapter.LAYERS["lstm"] = make


def not_trained(choose):
    def plant_it(adapter, spec, batch, kept):
        chosen = choose(spec["parameters"])["name"]

        def descend(self):
            for name, module, attribute, _ in self.network.homes:
                if name == chosen:
                    getattr(module, attribute).grad.zero_()
            kept["_descend"](self)

        adapter._Trainer._descend = descend

    return plant_it


def skipping(period):
    def plant_it(adapter, spec, batch, kept):
        def update(self):
            self.taken = getattr(self, "taken", 0) + 1
            if self.taken % period:
                kept["_update"](self)
            else:
                self._forget_gradients()

        adapter._Trainer._update = update

    return plant_it


def stale_batch(adapter, spec, batch, kept):
    def begin(self, network, job, settings):
        inputs, labels = data.synthetic_batch(spec, batch, data.BATCH_SEED + 1)
        job.inputs, job.labels = job.layout.inputs(inputs), job.layout.labels(labels)
        kept["__init__"](self, network, job, settings)

    adapter._Trainer.__init__ = begin


class Kept(torch.autograd.Function):
    @staticmethod
    def forward(context, values, kept):
        return kept.clone()

    @staticmethod
    def backward(context, gradient):
        return gradient, None


def first_product_kept(adapter, spec, batch, kept):
    name = spec["nodes"][0]["name"]

    def begin(self, network, job, settings):
        kept["__init__"](self, network, job, settings)
        module, first = getattr(network, name), {}
        right = module.forward

        def forward(values):
            found = right(values)
            return Kept.apply(found, first.setdefault("product", found.detach().clone()))

        module.forward = forward

    adapter._Trainer.__init__ = begin


def _largest(parameters):
    return max(parameters, key=lambda parameter: torch.Size(parameter["shape"]).numel())


def _first_vector(parameters):
    return next(parameter for parameter in parameters if len(parameter["shape"]) == 1)


DEFECTS = {
    "bfloat16 products": bfloat16,
    "TF32, first layer": tf32(0),
    "TF32, middle layer": tf32(0.5),
    "TF32, last layer": tf32(1),
    "a sample left out": sample_left_out,
    "a class left out": class_left_out,
    "a time step less": step_less,
    "largest weight kept": not_trained(_largest),
    "first vector kept": not_trained(_first_vector),
    "every 2nd update": skipping(2),
    "every 20th update": skipping(20),
    "another batch": stale_batch,
    "first product kept": first_product_kept,
}
# What a network without recurrent layers cannot have.
RECURRENT_ONLY = ("a time step less",)
