"""FCN-5 and FCN-8 in PaddlePaddle.

python paddle_fcn.py {fcn5,fcn8} < commands
"""

import sys

import blocks
import paddle
from paddle import nn

HIDDEN_LAYERS = {"fcn5": 3, "fcn8": 6}[sys.argv[1]]

layers, features = [], 26752
for _ in range(HIDDEN_LAYERS):
    layers += [nn.Linear(features, 2048), nn.Sigmoid()]
    features = 2048
model = nn.Sequential(*layers, nn.Linear(features, 26752))
inputs, labels = paddle.rand((64, 26752)) * 2 - 1, paddle.randint(0, 26752, (64,))
criterion = nn.CrossEntropyLoss()
optimiser = paddle.optimizer.SGD(0.01, parameters=model.parameters())


def train(steps):
    for _ in range(steps):
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimiser.step()
        optimiser.clear_grad()
    return loss.item()


blocks.obey(train, sum(p.size for p in model.parameters()))
