"""FCN-5 on several ranks as PyTorch's own tutorial has it: python torch_fcn.py RANK PORT,PORT."""

import os
import sys

import steps
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

rank, ports = int(sys.argv[1]), sys.argv[2].split(",")
torch.set_num_threads(1)
# Products by oneDNN, as in the expert's script of one device.
torch.set_float32_matmul_precision("medium")
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=ports[0], GLOO_SOCKET_IFNAME="lo")
distributed.init_process_group("gloo", rank=rank, world_size=len(ports))

layers, features = [], 26752
for _ in range(3):
    layers += [nn.Linear(features, 2048), nn.Sigmoid()]
    features = 2048
model = DistributedDataParallel(
    nn.Sequential(*layers, nn.Linear(features, 26752)),
    gradient_as_bucket_view=True,
    static_graph=True,
)
batch = 64 // len(ports)
inputs, labels = torch.rand(batch, 26752) * 2 - 1, torch.randint(26752, (batch,))
criterion = nn.CrossEntropyLoss()
optimiser = torch.optim.SGD(model.parameters(), lr=0.01, foreach=True)


def step():
    loss = criterion(model(inputs), labels)
    loss.backward()
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    return loss.item()


steps.clock(step)
