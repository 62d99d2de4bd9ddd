"""FCN-5 on several ranks as ChainerMN's own tutorial has it: mpiexec -n RANKS python chainer_fcn.py."""

import warnings

import steps

warnings.simplefilter("ignore")
import chainer  # noqa: E402
import chainermn  # noqa: E402
import numpy as np  # noqa: E402
from chainer import functions, links  # noqa: E402

chainer.config.type_check = False
# The oneDNN inside iDeep takes twice as long for a dense layer as NumPy's BLAS.
chainer.config.use_ideep = "never"
communicator = chainermn.create_communicator("naive")


class Network(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.one = links.Linear(26752, 2048)
            self.two = links.Linear(2048, 2048)
            self.three = links.Linear(2048, 2048)
            self.last = links.Linear(2048, 26752)

    def forward(self, values):
        for layer in (self.one, self.two, self.three):
            values = functions.sigmoid(layer(values))
        return self.last(values)


model = Network()
communicator.bcast_data(model)
batch, learning_rate = 64 // communicator.size, np.array(0.01, np.float32)
inputs = np.random.uniform(-1, 1, (batch, 26752)).astype(np.float32)
labels = np.random.randint(0, 26752, batch).astype(np.int32)


def step():
    loss = functions.softmax_cross_entropy(model(inputs), labels)
    model.cleargrads()
    # Gradients that hold the learning rate: an update in place, as in the experts' scripts of one device.
    loss.grad = learning_rate
    loss.backward()
    communicator.multi_node_mean_grad(model)
    for value in model.params():
        value.array -= value.grad
    return float(loss.array)


steps.clock(step, communicator.rank == 0)
