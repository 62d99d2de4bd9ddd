"""How an expert trains a network in each framework: the part of every script that is not the network."""

import functools
import sys

import blocks

ADAMW = sys.argv[1].endswith("-adamw")


def torch(model, inputs, labels):
    """Trains a module by `torch.optim.SGD`, or by AdamW."""
    import torch

    criterion = torch.nn.CrossEntropyLoss()
    if ADAMW:
        groups = [
            {"params": [value for value in model.parameters() if value.dim() > 1]},
            {"params": [value for value in model.parameters() if value.dim() < 2]},
        ]
        groups[1]["weight_decay"] = 0.0
        optimiser = torch.optim.AdamW(
            groups, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1, fused=True
        )
    else:
        optimiser = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)

    def train(steps):
        for _ in range(steps):
            loss = criterion(model(inputs), labels)
            loss.backward()
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        return loss.item()

    blocks.obey(train, sum(parameter.numel() for parameter in model.parameters()))


def tensorflow(model, inputs, labels):
    """Trains a Keras model in a `tf.function` by SGD, or by AdamW."""
    import keras
    import numpy as np
    import tensorflow as tf

    criterion = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
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


def mxnet(net, inputs, labels, batch_axis=0):
    """Trains a Gluon block, hybridized, with gradients that need only be subtracted."""
    import mxnet as mx
    from mxnet import autograd, gluon

    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True, static_shape=True)
    criterion = gluon.loss.SoftmaxCrossEntropyLoss(batch_axis=batch_axis)
    criterion.hybridize(static_alloc=True, static_shape=True)
    net(inputs)  # The shapes of some parameters are known only now.
    parameters = [
        parameter for parameter in net.collect_params().values() if parameter.grad_req != "null"
    ]
    # Gradients that hold the learning rate: Trainer and sgd_update take several times as long.
    batch = inputs.shape[batch_axis]
    learning_rates = mx.nd.full((batch,), 0.01 / batch)

    def train(steps):
        for _ in range(steps):
            with autograd.record():
                loss = criterion(net(inputs), labels)
            loss.backward(learning_rates)
            for parameter in parameters:
                value = parameter.data()
                value -= parameter.grad()
        mx.nd.waitall()
        return loss.mean().asscalar()

    blocks.obey(train, sum(parameter.data().size for parameter in parameters))


def jax(parameters, compute_loss, inputs, labels):
    """Trains by the gradient of `compute_loss(parameters, inputs, labels)`, in one compiled step, by SGD or AdamW."""
    import jax
    import jax.numpy as jnp

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
        loss, gradients = jax.value_and_grad(compute_loss)(state[0], inputs, labels)
        return (adamw if ADAMW else descend)(*state, gradients), loss

    zeros = [jax.tree.map(jnp.zeros_like, parameters) for _ in range(2 * ADAMW)]
    reached = [(parameters, (*zeros, jnp.zeros(())) if ADAMW else ())]

    def train(steps):
        for _ in range(steps):
            reached[0], loss = step(reached[0], inputs, labels)
        return jax.block_until_ready((reached[0], loss))[1].item()

    blocks.obey(train, sum(value.size for value in jax.tree.leaves(parameters)))
