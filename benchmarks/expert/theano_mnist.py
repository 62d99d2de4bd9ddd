"""The CNN for MNIST in Theano, its images in a shared variable.

python theano_mnist.py mnist THREADS IMAGES < commands
"""

import itertools
import sys

import blocks
import images
import numpy as np
import theano
from theano import tensor
from theano.sandbox.rng_mrg import MRG_RandomStreams
from theano.tensor import nnet
from theano.tensor.signal.pool import pool_2d

random, masks, parameters = np.random.RandomState(0), MRG_RandomStreams(1), []


def variable(*shape):
    inputs = np.prod(shape[1:]) if len(shape) == 4 else shape[0]
    found = random.uniform(-1, 1, shape) / np.sqrt(inputs) if len(shape) > 1 else np.zeros(shape)
    parameters.append(theano.shared(found.astype("float32")))
    return parameters[-1]


def convolve(value, size, channels, before):
    weight, bias = variable(channels, before, 3, 3), variable(channels)
    shapes = {"input_shape": (128, before, size, size), "filter_shape": (channels, before, 3, 3)}
    return nnet.relu(nnet.conv2d(value, weight, **shapes) + bias.dimshuffle("x", 0, "x", "x"))


def drop(value, rate):
    keep = np.float32(1 - rate)
    return value * masks.binomial(value.shape, p=keep, dtype="float32") / keep


pictures, digits = (theano.shared(each) for each in images.read(sys.argv[3]))
chosen = tensor.lvector()
value = convolve(convolve(pictures[chosen], 28, 32, 1), 26, 64, 32)
value = drop(pool_2d(value, ws=(2, 2), ignore_border=True), 0.25).flatten(2)
value = drop(nnet.relu(tensor.dot(value, variable(9216, 128)) + variable(128)), 0.5)
value = tensor.dot(value, variable(128, 10)) + variable(10)
loss = nnet.categorical_crossentropy(nnet.softmax(value), digits[chosen]).mean()
updates = []
for number, gradient in enumerate(tensor.grad(loss, parameters)):
    parameter = parameters[number]
    squares, steps = (theano.shared(np.zeros_like(parameter.get_value())) for _ in range(2))
    after = np.float32(0.95) * squares + np.float32(0.05) * gradient**2
    step = gradient * tensor.sqrt(steps + 1e-8) / tensor.sqrt(after + 1e-8)
    later = np.float32(0.95) * steps + np.float32(0.05) * step**2
    updates += [(squares, after), (steps, later), (parameter, parameter - step)]
train_on = theano.function([chosen], loss, updates=updates)
drawn = images.batches(*[np.arange(len(digits.get_value(borrow=True)))] * 2, batch=128)


def train(steps):
    for numbers, _ in itertools.islice(drawn, steps):
        last = train_on(numbers)
    return last


blocks.obey(train, sum(parameter.get_value(borrow=True).size for parameter in parameters))
