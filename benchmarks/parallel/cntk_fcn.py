"""FCN-5 on several ranks as CNTK's own example has it: mpiexec -n RANKS python cntk_fcn.py."""

import ctypes
import os
import sys

import steps

# The wheel of CNTK has a stand-in for MPI beside it, which would be found first.
ctypes.CDLL(os.path.join(sys.prefix, "lib", "libmpi.so.40"), ctypes.RTLD_GLOBAL)
import cntk  # noqa: E402
import numpy as np  # noqa: E402
from cntk import distributed  # noqa: E402
from cntk.layers import Dense, Sequential  # noqa: E402

cntk.device.try_set_default_device(cntk.device.cpu())
cntk.cntk_py.set_max_num_cputhreads(1)
batch, answers = cntk.input_variable(26752), cntk.input_variable(26752, is_sparse=True)
hidden = [Dense(2048, activation=cntk.sigmoid) for _ in range(3)]
scores = Sequential([*hidden, Dense(26752)])(batch)
loss = cntk.cross_entropy_with_softmax(scores, answers)
learner = cntk.sgd(scores.parameters, cntk.learning_parameter_schedule(0.01, minibatch_size=64))
learner = distributed.data_parallel_distributed_learner(learner, num_quantization_bits=32)
trainer = cntk.Trainer(scores, (loss, None), [learner])
samples = 64 // distributed.Communicator.num_workers()
inputs = np.random.uniform(-1, 1, (samples, 26752)).astype("float32")
labels = np.random.randint(0, 26752, samples)
data = {batch: inputs, answers: cntk.Value.one_hot(labels.tolist(), 26752)}


def step():
    trainer.train_minibatch(data)
    return trainer.previous_minibatch_loss_average


steps.clock(step, distributed.Communicator.rank() == 0)
distributed.Communicator.finalize()
