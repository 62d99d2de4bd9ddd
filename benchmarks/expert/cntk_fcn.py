"""FCN-5 and FCN-8 in CNTK by its layers.

python cntk_fcn.py {fcn5,fcn8} THREADS < commands
"""

import sys

import blocks
import cntk
import numpy as np
from cntk.layers import Dense, Sequential

HIDDEN_LAYERS = {"fcn5": 3, "fcn8": 6}[sys.argv[1]]
cntk.device.try_set_default_device(cntk.device.cpu())
cntk.cntk_py.set_max_num_cputhreads(int(sys.argv[2]))

batch, answers = cntk.input_variable(26752), cntk.input_variable(26752, is_sparse=True)
hidden = [Dense(2048, activation=cntk.sigmoid) for _ in range(HIDDEN_LAYERS)]
scores = Sequential([*hidden, Dense(26752)])(batch)
loss = cntk.cross_entropy_with_softmax(scores, answers)
learner = cntk.sgd(scores.parameters, cntk.learning_parameter_schedule(0.01, minibatch_size=64))
trainer = cntk.Trainer(scores, (loss, None), [learner])
inputs = np.random.uniform(-1, 1, (64, 26752)).astype("float32")
labels = np.random.randint(0, 26752, 64)
data = {batch: inputs, answers: cntk.Value.one_hot(labels.tolist(), 26752)}


def train(steps):
    for _ in range(steps):
        trainer.train_minibatch(data)
    return trainer.previous_minibatch_loss_average


blocks.obey(train, sum(np.prod(parameter.shape) for parameter in scores.parameters))
