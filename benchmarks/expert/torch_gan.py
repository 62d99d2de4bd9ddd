"""A GAN for MNIST in PyTorch, whose players move at once; its codes are given.

python torch_gan.py gan THREADS < commands
"""

import sys

import loops
import torch
from torch import nn

PIXELS, CODE, MADE, JUDGED, BATCH = 784, 100, 1200, 240, 64
torch.set_num_threads(int(sys.argv[2]))
# Products by oneDNN, which is faster than MKL on processors that are not Intel's; without AMX they stay in float32.
torch.set_float32_matmul_precision("medium")


def player(*units):
    first, second, last = (nn.Linear(*pair) for pair in zip(units, units[1:], strict=False))
    relu = nn.ReLU(inplace=True)
    return nn.Sequential(first, relu, second, relu, last)


class Game(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = player(CODE, MADE, MADE, PIXELS).append(nn.Tanh())
        self.judge = player(PIXELS, JUDGED, JUDGED, 1)

    def forward(self, given):
        images, codes = given
        return self.judge(torch.cat([images, self.generator(codes)]))


game = Game()
optimiser = torch.optim.SGD(
    [
        {"params": game.judge.parameters()},
        {"params": game.generator.parameters(), "maximize": True},
    ],
    lr=0.1,
    foreach=True,
)
given = torch.rand(BATCH, PIXELS) * 2 - 1, torch.rand(BATCH, CODE) * 2 - 1
verdicts = torch.cat([torch.ones(BATCH, 1), torch.zeros(BATCH, 1)])
loops.torch(game, given, verdicts, nn.BCEWithLogitsLoss(), optimiser)
