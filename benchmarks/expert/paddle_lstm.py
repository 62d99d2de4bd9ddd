"""LSTM-32 and LSTM-64 in PaddlePaddle.

python paddle_lstm.py {lstm32,lstm64} < commands
"""

import sys

import blocks
import paddle
from paddle import nn

STEPS = {"lstm32": 32, "lstm64": 64}[sys.argv[1]]


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10000, 256)
        self.lstm = nn.LSTM(256, 256, num_layers=2)
        self.classifier = nn.Linear(256, 10000)

    def forward(self, tokens):
        return self.classifier(self.lstm(self.embedding(tokens))[0])


model = Model()
inputs, labels = paddle.randint(0, 10000, (128, STEPS)), paddle.randint(0, 10000, (128, STEPS))
criterion = nn.CrossEntropyLoss()
# Paddle's second bias is redundant, and no part of the network.
trained = [parameter for name, parameter in model.named_parameters() if "bias_hh" not in name]
optimiser = paddle.optimizer.SGD(0.01, parameters=trained)


def train(steps):
    for _ in range(steps):
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimiser.step()
        optimiser.clear_grad()
    return loss.item()


blocks.obey(train, sum(p.size for p in trained))
