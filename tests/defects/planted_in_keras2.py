"""Defects in Keras 2.0: each function returns what takes which place, as (owner, name, value)."""

import numpy as np
from judging import JUDGE
from keras import backend
from keras.optimizers import SGD

from worker.frameworks.keras2 import layers as keras2_layers
from worker.frameworks.keras2 import optimisers as keras2_optimisers


def _changed(adapter, kind, change):
    """Another form of a layer that is written in functions of the backend, made of the right one."""
    right = adapter.LAYERS[kind]

    def made(node, mode):
        layers = right(node, mode)
        for layer in layers:
            if isinstance(layer, keras2_layers.Written):
                layer._form = change(layer._form)
        return layers

    return adapter.LAYERS, kind, made


def mask_off_by_one(adapter):
    """Each step sees the next one, too."""
    right = np.triu
    return np, "triu", lambda values, diagonal: right(values, diagonal + 1)


def unscaled(adapter):
    """Attention without its division by the root of a head's units."""

    def change(right):
        def attend(node, own, value):
            units = node["in_shape"][-1] // 3
            # The queries come first.
            scale = np.ones(3 * units, np.float32)
            scale[:units] = (units // node["heads"]) ** 0.5
            return right(node, own, value * backend.constant(scale, shape=scale.shape))

        return attend

    return _changed(adapter, "attention", change)


def unbiased(adapter):
    """Layer normalisation by the variance over n - 1."""

    def normal(value, axis, epsilon):
        centred = value - backend.mean(value, axis=axis, keepdims=True)
        count = float(backend.int_shape(value)[axis])
        variance = backend.mean(backend.square(centred), axis=axis, keepdims=True)
        return centred / backend.sqrt(variance * (count / (count - 1.0)) + epsilon)

    return keras2_layers, "normal", normal


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    def missed(targets, outputs):
        decoded, width = (backend.int_shape(value)[-1] for value in (targets, outputs))
        entropy = adapter._missed(targets, outputs[:, :decoded])
        return backend.sum(entropy, axis=-1) / float(width)

    return adapter._DISTANCES, "evidence_bound", missed


def detached(adapter):
    """A generator that no gradient reaches."""
    return _changed(adapter, "reversal", lambda right: lambda node, own, value: _held(value))


def detached_judge(adapter):
    """A judge that no gradient reaches."""
    right = adapter.LAYERS["dense"]

    def form(node, own, value):
        own = {role: _held(each) for role, each in own.items()}
        return keras2_layers.dense(node, own, value)

    def dense(node, mode):
        judging = node["name"] in JUDGE
        return [keras2_layers.Written(node, form)] if judging else right(node, mode)

    return adapter.LAYERS, "dense", dense


def _held(value):
    """What the loss depends on by gradients that are all zero."""
    return backend.stop_gradient(value) + 0.0 * value


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns."""
    enter, leave = adapter._TURNS["conv_transpose"]

    def over(value):
        return value.swapaxes(2, 3) if value.ndim == 4 else value

    ways = lambda value: enter(over(value)), lambda value: over(leave(value))  # noqa: E731
    return adapter._TURNS, "conv_transpose", ways


def padded_behind(adapter):
    """Pools that are padded behind their last row and column alone, as TensorFlow's SAME does."""
    right = adapter.LAYERS["max_pool"]

    def pool(node, mode):
        made = right(node, mode)
        if node["padding"]:
            # It is behind a ReLU.
            made[0].padding = ((0, 2 * node["padding"]),) * 2
        return made

    return adapter.LAYERS, "max_pool", pool


def half_tied(adapter):
    """No gradient of the scores reaches the table that words share with them."""

    def change(right):
        return lambda node, own, value, table: right(node, own, value, backend.stop_gradient(table))

    return _changed(adapter, "unembedding", change)


class _Dampened(SGD):
    def get_updates(self, params, constraints, loss):
        first = backend.variable(1.0)
        updates = [backend.update(first, 0.0 * first)]
        for at, gradient in enumerate(self.get_gradients(loss, params)):
            value = params[at]
            kept = backend.zeros(backend.get_variable_shape(value))
            # The first gradient counts whole.
            after = self.momentum * kept + (0.1 + 0.9 * first) * gradient
            updates += [
                backend.update(kept, after),
                backend.update(value, value - self.lr * after),
            ]
        return updates


class _Decaying(keras2_optimisers._Adam):
    def __init__(self, lr, weight_decay, **own):
        super().__init__(lr=lr, **own)
        self._decay = weight_decay

    def get_updates(self, params, constraints, loss):
        right = self.get_gradients

        def gradients(loss, params):
            for at, gradient in enumerate(right(loss, params)):
                decays = len(backend.get_variable_shape(params[at])) > 1
                yield self._decay * params[at] + gradient if decays else gradient

        self.get_gradients = gradients
        return super().get_updates(params, constraints, loss)


def dampened(adapter):
    """Momentum of which a gradient is but a tenth."""
    return _made_by("momentum", _Dampened)


def decaying(adapter):
    """AdamW with its decay in the gradient."""
    return _made_by("adamw", _Decaying)


def _made_by(name, kind):
    made = keras2_optimisers._MADE
    return made, name, (kind, made[name][1])
