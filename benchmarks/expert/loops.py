"""How an expert trains a network in each framework: the part of every script that is not the network."""

import functools
import itertools
import sys

import blocks

ADAMW = sys.argv[1].endswith("-adamw")
# Units of networks that are nothing but dense layers.
UNITS = {
    "fcn5": (26752, *[2048] * 3, 26752),
    "fcn8": (26752, *[2048] * 6, 26752),
    "ffn-shallow": (784, 800, 10),
    "ffn-deep": (784, 500, 500, 2000, 10),
    "autoencoder": (784, 1000, 500, 250, 30, 250, 500, 1000, 784),
}


def dense(network):
    """Units before and behind each layer, and whether a sigmoid follows: none does the code or the last layer."""
    pairs = list(itertools.pairwise(UNITS[network]))
    return [(*pair, pair[1] != 30 and pair is not pairs[-1]) for pair in pairs]


def torch(model, inputs, labels, criterion=None, optimiser=None):
    """Trains a module by `torch.optim.SGD`, or by AdamW."""
    import torch

    criterion = criterion or torch.nn.CrossEntropyLoss()
    trained = [value for value in model.parameters() if value.requires_grad]
    if ADAMW:
        groups = [
            {"params": [value for value in trained if value.dim() > 1]},
            {"params": [value for value in trained if value.dim() < 2], "weight_decay": 0.0},
        ]
        optimiser = torch.optim.AdamW(
            groups, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1, fused=True
        )
    optimiser = optimiser or torch.optim.SGD(trained, lr=0.01, foreach=True)

    def train(steps):
        for _ in range(steps):
            loss = criterion(model(inputs), labels)
            loss.backward()
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        return loss.item()

    blocks.obey(train, sum(value.numel() for value in trained))


def tensorflow(model, inputs, labels, criterion=None):
    """Trains a Keras model in a `tf.function` by SGD, or by AdamW."""
    import keras
    import numpy as np
    import tensorflow as tf

    criterion = criterion or keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimiser = keras.optimizers.SGD(0.01)
    if ADAMW:
        optimiser = keras.optimizers.AdamW(1e-3, weight_decay=0.1, beta_2=0.99, epsilon=1e-8)
        optimiser.exclude_from_weight_decay(
            [variable for variable in model.trainable_variables if len(variable.shape) < 2]
        )
    optimiser.build(model.trainable_variables)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = criterion(labels, model(inputs, training=True))
        optimiser.apply(tape.gradient(loss, model.trainable_variables))
        return loss

    def train(steps):
        for _ in range(steps):
            loss = step()
        return float(loss)

    blocks.obey(train, sum(np.prod(variable.shape) for variable in model.trainable_variables))


def mxnet(net, inputs, labels, criterion=None, batch_axis=0):
    """Trains a Gluon block by a loss behind it."""
    from mxnet import gluon

    criterion = criterion or gluon.loss.SoftmaxCrossEntropyLoss(batch_axis=batch_axis)
    criterion.hybridize(static_alloc=True, static_shape=True)
    mxnet_losses(net, lambda: criterion(net(inputs), labels), inputs.shape[batch_axis])


def mxnet_losses(net, compute_losses, batch, rate=0.01):
    """Trains a Gluon block, hybridized, by the losses of a mini-batch, by SGD or AdamW."""
    import mxnet as mx

    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True, static_shape=True)
    compute_losses()  # The shapes of some parameters are known only now.
    parameters = [
        parameter for parameter in net.collect_params().values() if parameter.grad_req != "null"
    ]
    # Gradients that hold the learning rate: Trainer and sgd_update take several times as long.
    shares = mx.nd.full((batch,), (1 if ADAMW else rate) / batch)

    def descend():
        for parameter in parameters:
            value = parameter.data()
            value -= parameter.grad()

    def train(steps):
        for _ in range(steps):
            with mx.autograd.record():
                losses = compute_losses()
            losses.backward(shares)
            update()
        mx.nd.waitall()
        return losses.mean().asscalar()

    update = _mxnet_adamw(parameters) if ADAMW else descend
    blocks.obey(train, sum(parameter.data().size for parameter in parameters))


def _mxnet_adamw(parameters):
    """GluonNLP's operator, whose epsilon is added to a root that is not corrected."""
    import mxnet as mx

    averages = [[mx.nd.zeros(parameter.shape) for _ in range(2)] for parameter in parameters]
    one, taken = mx.nd.ones((1,)), itertools.count(1)

    def update():
        number = next(taken)
        root = (1 - 0.99**number) ** 0.5
        betas = {"beta1": 0.9, "beta2": 0.99, "epsilon": 1e-8 * root}
        rate = 1e-3 * root / (1 - 0.9**number)
        for parameter, kept in zip(parameters, averages, strict=True):
            value, decay = parameter.data(), 1e-4 * (sum(size > 1 for size in parameter.shape) > 1)
            mx.nd.contrib.adamw_update(
                *(value, parameter.grad(), *kept, one), lr=rate, eta=1, wd=decay, out=value, **betas
            )

    return update


def jax(parameters, compute_loss, inputs, labels):
    """Trains by the gradient of `compute_loss(parameters, inputs, labels)`, in one compiled step, by SGD or AdamW.

    It may give the statistics of batch normalisation behind the loss, whose running averages are kept.
    """
    import jax
    import jax.numpy as jnp

    def aimed(values, inputs, labels):
        found = compute_loss(values, inputs, labels)
        return found if isinstance(found, tuple) else (found, ())

    def descend(values, _, gradients):
        return jax.tree.map(lambda value, gradient: value - 0.01 * gradient, values, gradients), ()

    def adamw(values, averages, gradients):
        means, squares, taken = averages
        taken = taken + 1
        means = jax.tree.map(lambda m, gradient: 0.9 * m + 0.1 * gradient, means, gradients)
        squares = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g**2, squares, gradients)

        def moved(value, mean, square):
            kept = value * (1 - 1e-4) if value.ndim > 1 else value
            root = jnp.sqrt(square / (1 - 0.99**taken)) + 1e-8
            return kept - 1e-3 * mean / (1 - 0.9**taken) / root

        return jax.tree.map(moved, values, means, squares), (means, squares, taken)

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state, inputs, labels):
        values, averages, kept = state
        (loss, fresh), gradients = jax.value_and_grad(aimed, has_aux=True)(values, inputs, labels)
        kept = jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, kept, fresh)
        return (*(adamw if ADAMW else descend)(values, averages, gradients), kept), loss

    zeros = [jax.tree.map(jnp.zeros_like, parameters) for _ in range(2 * ADAMW)]
    statistics = jax.eval_shape(aimed, parameters, inputs, labels)[1]
    kept = jax.tree.map(lambda value: jnp.zeros(value.shape), statistics)
    reached = [(parameters, (*zeros, jnp.zeros(())) if ADAMW else (), kept)]

    def train(steps):
        for _ in range(steps):
            reached[0], loss = step(reached[0], inputs, labels)
        return jax.block_until_ready((reached[0], loss))[1].item()

    blocks.obey(train, sum(value.size for value in jax.tree.leaves(parameters)))
