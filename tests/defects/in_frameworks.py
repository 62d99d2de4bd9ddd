"""Defects of layer kinds, losses and optimisers in a real framework: a program that proves several in one process.

    python in_frameworks.py < jobs

Jobs come as a JSON list. Each is that of a proof, and may have `mutated`, another specification that the adapter builds
in place of the job's own, or `planted`, a function below that breaks PyTorch while this job is run. Plain Python that
3.6 can import: standard library and numpy.
"""

import json
import sys
from types import SimpleNamespace

from worker import building, data
from worker.tasks import proof


def main():
    """Command line."""
    for job in json.load(sys.stdin):
        adapter = building.load(job).adapter
        kept = globals()[job["planted"]](adapter) if "planted" in job else []
        if "mutated" in job:
            adapter = mutated(adapter, job, job["mutated"])
        proof.write(job["output"], proof.collect(adapter, job))
        for owner, name, value in kept:
            put(owner, name, value)


def mutated(adapter, asked, other):
    """The adapter, but that it builds `other`, whose parameters start as those of the same name and shape."""

    def build(job):
        # Proofs take their own rates, and a mutation may take another optimiser.
        rate = job.spec["optimiser"]["learning_rate"]
        optimiser = dict(other["optimiser"], learning_rate=rate)
        if job.spec["optimiser"]["name"] == "sgd":
            optimiser = job.spec["optimiser"]
        spec = dict(other, optimiser=optimiser)
        weights = data.initial_weights(spec)
        for name, values in weights.items():
            if name in job.weights and job.weights[name].shape == values.shape:
                weights[name] = job.weights[name]
        return building.make(adapter, asked, spec, weights, job.inputs, job.labels)

    return SimpleNamespace(build=build)


def put(owner, name, value):
    """Sets an attribute or an entry; returns what puts the old one back."""
    if isinstance(owner, dict):
        old, owner[name] = owner[name], value
    else:
        old = getattr(owner, name)
        setattr(owner, name, value)
    return owner, name, old


def mask_off_by_one(adapter):
    """Each step sees the next one, too."""
    import torch

    right = adapter.functional.scaled_dot_product_attention

    def attend(q, k, v, is_causal):
        seen = torch.ones(q.shape[-2], q.shape[-2]).tril(1).bool()
        return right(q, k, v, attn_mask=seen if is_causal else None)

    return [put(adapter.functional, "scaled_dot_product_attention", attend)]


def unscaled(adapter):
    """Attention without its division by the root of a head's units."""
    right = adapter.functional.scaled_dot_product_attention

    def attend(q, k, v, is_causal):
        return right(q, k, v, is_causal=is_causal, scale=1.0)

    return [put(adapter.functional, "scaled_dot_product_attention", attend)]


def unbiased(adapter):
    """Layer normalisation by the variance over n - 1."""

    def norm(values, shape, weight, bias, epsilon):
        centred = values - values.mean(-1, keepdim=True)
        found = weight * centred / (values.var(-1, keepdim=True) + epsilon).sqrt()
        return found if bias is None else found + bias

    return [put(adapter.functional, "layer_norm", norm)]


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    def missed(outputs, targets):
        decoded = outputs[:, : targets.shape[1]]
        share = decoded.shape[1] / outputs.shape[1]
        entropy = adapter.functional.binary_cross_entropy_with_logits
        return share * entropy(decoded, targets) + 0.0 * outputs.sum()

    return [put(adapter._DISTANCES, "evidence_bound", missed)]


def detached(adapter):
    """A generator that no gradient reaches."""

    def held(values):
        # Its parameters have gradients, all of them zero.
        return values.detach() + 0.0 * values

    return [put(adapter.LAYERS, "reversal", lambda node, _: adapter._Call(held))]


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns."""

    class Turned(adapter._ConvTranspose2d):
        def forward(self, values):
            weight = self.weight.transpose(2, 3)
            return adapter.functional.conv_transpose2d(
                *(values, weight, self.bias, self.stride, self.padding)
            )

    return [put(adapter, "_ConvTranspose2d", Turned)]


def padded_behind(adapter):
    """Pools that are padded behind their last row and column alone, as TensorFlow's SAME does."""

    def pool(node, _):
        edge, size, stride = 2 * node["padding"], node["kernel"], node["stride"]

        def largest(values):
            wide = adapter.functional.pad(values, (0, edge, 0, edge), value=float("-inf"))
            return adapter.functional.max_pool2d(wide, size, stride)

        return adapter._Call(largest)

    return [put(adapter.LAYERS, "max_pool", pool)]


def half_tied(adapter):
    """No gradient of the scores reaches the table that words share with them."""

    def scores(values, table):
        return adapter.functional.linear(values, table.detach())

    return [put(adapter.LAYERS, "unembedding", lambda node, _: adapter._Call(scores))]


def dampened(adapter):
    """Momentum of which a gradient is but a tenth."""
    import torch

    def momentum(parameters, wanted):
        rate = wanted["learning_rate"]
        return torch.optim.SGD(parameters, lr=rate, momentum=wanted["momentum"], dampening=0.9)

    return [put(adapter._MOVING, "momentum", momentum)]


def decaying(adapter):
    """AdamW with its decay in the gradient, as Adam's `weight_decay`."""
    import torch

    def adamw(parameters, wanted):
        settings = adapter._averaging(wanted)
        return torch.optim.Adam(parameters, weight_decay=wanted["weight_decay"], **settings)

    return [put(adapter._MOVING, "adamw", adamw)]


if __name__ == "__main__":
    main()
