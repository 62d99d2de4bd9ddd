"""A restricted Boltzmann machine and a deep belief network by CD-1 in PyTorch; their noise is given.

python torch_rbm.py {rbm,dbn} THREADS < commands
"""

import sys

import blocks
import torch
from torch.nn import functional

UNITS, BATCH, RATE = {"rbm": (784, 500), "dbn": (784, 500, 500)}[sys.argv[1]], 64, 0.01
torch.set_num_threads(int(sys.argv[2]))
# Products by oneDNN, which is faster than MKL on processors that are not Intel's; without AMX they stay in float32.
torch.set_float32_matmul_precision("medium")


class Machine(torch.nn.Module):
    def __init__(self, visible, hidden):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(visible, hidden) * 0.01)
        self.visible = torch.nn.Parameter(torch.zeros(visible))
        self.hidden = torch.nn.Parameter(torch.zeros(hidden))
        self.noise = torch.rand(BATCH, hidden)

    def forward(self, data):
        """The free energy of the data less that of the chain's end, which is given, and hidden chances."""
        scores = torch.addmm(self.hidden, data, self.weight)
        with torch.no_grad():
            chances = scores.sigmoid()
            drawn = (chances > self.noise).float()
            end = torch.addmm(self.visible, drawn, self.weight.t()).sigmoid_()
        again = torch.addmm(self.hidden, end, self.weight)
        energy = (functional.softplus(again) - functional.softplus(scores)).sum()
        return energy + ((end - data) @ self.visible).sum(), chances


machines = [Machine(*pair) for pair in zip(UNITS, UNITS[1:], strict=False)]
parameters = [each for machine in machines for each in machine.parameters()]
optimiser = torch.optim.SGD(parameters, RATE)
pixels = torch.rand(BATCH, UNITS[0]) * 2 - 1


def train(steps):
    for _ in range(steps):
        data, loss = pixels.sigmoid(), 0.0
        for machine in machines:
            energy, data = machine(data)
            loss = loss + energy / BATCH
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    return loss.item()


blocks.obey(train, sum(parameter.numel() for parameter in parameters))
