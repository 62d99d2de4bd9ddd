"""FCN-5 and FCN-8 in Theano.

python theano_fcn.py {fcn5,fcn8} THREADS < commands
"""

import sys

import blocks
import numpy as np
import theano
from theano import tensor

WIDTHS = [26752] + [2048] * {"fcn5": 3, "fcn8": 6}[sys.argv[1]] + [26752]
random = np.random.RandomState(0)


def variable(*shape):
    return theano.shared((random.uniform(-1, 1, shape) / np.sqrt(shape[0])).astype("float32"))


inputs = theano.shared(random.uniform(-1, 1, (64, 26752)).astype("float32"))
labels = theano.shared(random.randint(0, 26752, 64).astype("int32"))
parameters = []
value = inputs
for layer, units in enumerate(WIDTHS[1:]):
    weight, bias = variable(WIDTHS[layer], units), variable(units)
    parameters += [weight, bias]
    value = tensor.dot(value, weight) + bias
    value = value if units == 26752 else tensor.nnet.sigmoid(value)
loss = tensor.nnet.categorical_crossentropy(tensor.nnet.softmax(value), labels).mean()
updates = [
    (parameter, parameter - np.float32(0.01) * tensor.grad(loss, parameter))
    for parameter in parameters
]
step = theano.function([], loss, updates=updates)


def train(steps):
    for _ in range(steps):
        last = step()
    return last


blocks.obey(train, sum(parameter.get_value(borrow=True).size for parameter in parameters))
