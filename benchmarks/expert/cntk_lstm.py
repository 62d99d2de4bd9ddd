"""LSTM-32 and LSTM-64 in CNTK by its layers.

python cntk_lstm.py {lstm32,lstm64} THREADS < commands
"""

import sys

import blocks
import cntk
import numpy as np
from cntk.layers import LSTM, Dense, Embedding, Recurrence, Sequential

STEPS = {"lstm32": 32, "lstm64": 64}[sys.argv[1]]
cntk.device.try_set_default_device(cntk.device.cpu())
cntk.cntk_py.set_max_num_cputhreads(int(sys.argv[2]))

batch, answers = (cntk.sequence.input_variable(10000, is_sparse=True) for _ in range(2))
scores = Sequential([Embedding(256), Recurrence(LSTM(256)), Recurrence(LSTM(256)), Dense(10000)])(
    batch
)
loss = cntk.cross_entropy_with_softmax(scores, answers)
learner = cntk.sgd(
    scores.parameters, cntk.learning_parameter_schedule(0.01, minibatch_size=128 * STEPS)
)
trainer = cntk.Trainer(scores, (loss, None), [learner])
words, labels = np.random.randint(0, 10000, (2, 128, STEPS))
data = {
    batch: cntk.Value.one_hot(words.tolist(), 10000),
    answers: cntk.Value.one_hot(labels.tolist(), 10000),
}


def train(steps):
    for _ in range(steps):
        trainer.train_minibatch(data)
    return trainer.previous_minibatch_loss_average


blocks.obey(train, sum(np.prod(parameter.shape) for parameter in scores.parameters))
