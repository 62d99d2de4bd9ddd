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


class Machine:
    def __init__(self, visible, hidden):
        self.weight = torch.randn(visible, hidden) * 0.01
        self.visible, self.hidden = torch.zeros(visible), torch.zeros(hidden)
        self.noise = torch.rand(BATCH, hidden)

    def learn(self, data):
        """Moves the parameters; gives the free energy of the data less that of the chain's end, and hidden chances."""
        scores = torch.addmm(self.hidden, data, self.weight)
        chances = scores.sigmoid()
        drawn = (chances > self.noise).float()
        end = torch.addmm(self.visible, drawn, self.weight.t()).sigmoid_()
        again = torch.addmm(self.hidden, end, self.weight)
        energy = (functional.softplus(again) - functional.softplus(scores)).sum()
        energy += ((end - data) @ self.visible).sum()
        expected, share = again.sigmoid_(), RATE / BATCH
        self.weight.addmm_(data.t(), chances, alpha=share).addmm_(end.t(), expected, alpha=-share)
        self.hidden.add_((chances - expected).sum(0), alpha=share)
        self.visible.add_((data - end).sum(0), alpha=share)
        return energy / BATCH, chances


machines = [Machine(*pair) for pair in zip(UNITS, UNITS[1:], strict=False)]
pixels = torch.rand(BATCH, UNITS[0]) * 2 - 1


@torch.inference_mode()
def train(steps):
    for _ in range(steps):
        data, loss = pixels.sigmoid(), 0.0
        for machine in machines:
            energy, data = machine.learn(data)
            loss += energy
    return loss.item()


arrays = [array for m in machines for array in (m.weight, m.visible, m.hidden)]
blocks.obey(train, sum(array.numel() for array in arrays))
