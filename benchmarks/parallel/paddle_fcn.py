"""FCN-5 on several ranks as PaddlePaddle's own guide has it: python paddle_fcn.py RANK PORT,PORT."""

import os
import sys

rank, ports = int(sys.argv[1]), sys.argv[2].split(",")
places = [f"127.0.0.1:{port}" for port in ports]
os.environ.update(
    PADDLE_TRAINER_ID=str(rank),
    PADDLE_TRAINERS_NUM=str(len(ports)),
    PADDLE_TRAINER_ENDPOINTS=",".join(places),
    PADDLE_CURRENT_ENDPOINT=places[rank],
    PADDLE_DISTRI_BACKEND="gloo",
    GLOO_SOCKET_IFNAME="lo",
)
import paddle  # noqa: E402
import steps  # noqa: E402
from paddle import distributed, nn  # noqa: E402

distributed.init_parallel_env()
layers, features = [], 26752
for _ in range(3):
    layers += [nn.Linear(features, 2048), nn.Sigmoid()]
    features = 2048
model = paddle.DataParallel(nn.Sequential(*layers, nn.Linear(features, 26752)))
batch = 64 // len(ports)
inputs, labels = paddle.rand((batch, 26752)) * 2 - 1, paddle.randint(0, 26752, (batch,))
criterion = nn.CrossEntropyLoss()
optimiser = paddle.optimizer.SGD(0.01, parameters=model.parameters())


def step():
    loss = criterion(model(inputs), labels)
    loss.backward()
    optimiser.step()
    optimiser.clear_grad(set_to_zero=False)
    return loss.item()


steps.clock(step)
