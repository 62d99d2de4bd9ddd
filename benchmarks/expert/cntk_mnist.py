"""The CNN for MNIST in CNTK by its layers.

python cntk_mnist.py mnist THREADS IMAGES < commands
"""

import itertools
import sys

import blocks
import cntk
import images
import numpy as np
from cntk.layers import Convolution2D, Dense, Dropout, MaxPooling, Sequential

cntk.device.try_set_default_device(cntk.device.cpu())
cntk.cntk_py.set_max_num_cputhreads(int(sys.argv[2]))

batch, answers = cntk.input_variable((1, 28, 28)), cntk.input_variable(10)
scores = Sequential(
    [
        Convolution2D((3, 3), 32, activation=cntk.relu),
        Convolution2D((3, 3), 64, activation=cntk.relu),
        MaxPooling((2, 2), (2, 2)),
        Dropout(0.25),
        Dense(128, activation=cntk.relu),
        Dropout(0.5),
        Dense(10),
    ]
)(batch)
loss = cntk.cross_entropy_with_softmax(scores, answers)
# By the mean of a mini-batch's gradients: by their sum, and a rate of one sample, the loss does not fall.
mean = {"minibatch_size": cntk.learners.IGNORE}
rate = cntk.learning_parameter_schedule(1.0, **mean)
learner = cntk.adadelta(scores.parameters, rate, rho=0.95, epsilon=1e-8, **mean)
trainer = cntk.Trainer(scores, (loss, None), [learner])
pictures, digits = images.read(sys.argv[3])
drawn = images.batches(pictures, np.eye(10, dtype="float32")[digits], 128)


def train(steps):
    for inputs, labels in itertools.islice(drawn, steps):
        trainer.train_minibatch({batch: inputs, answers: labels})
    return trainer.previous_minibatch_loss_average


blocks.obey(train, sum(np.prod(parameter.shape) for parameter in scores.parameters))
