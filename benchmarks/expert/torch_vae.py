"""VAE in PyTorch, as in the example `vae` of pytorch/examples; its noise is given.

python torch_vae.py vae THREADS < commands
"""

import sys

import blocks
import torch
from torch import nn
from torch.nn import functional

PIXELS, HIDDEN, CODE, BATCH = 784, 400, 20, 64
torch.set_num_threads(int(sys.argv[2]))
# Products by oneDNN, which is faster than MKL on processors that are not Intel's; without AMX they stay in float32.
torch.set_float32_matmul_precision("medium")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc21 = nn.Linear(PIXELS, HIDDEN), nn.Linear(HIDDEN, CODE)
        self.fc22 = nn.Linear(HIDDEN, CODE)
        self.fc3, self.fc4 = nn.Linear(CODE, HIDDEN), nn.Linear(HIDDEN, PIXELS)

    def forward(self, x, noise):
        h = functional.relu(self.fc1(x))
        mu, logvar = self.fc21(h), self.fc22(h)
        z = mu + torch.exp(0.5 * logvar) * noise
        return self.fc4(functional.relu(self.fc3(z))), mu, logvar


model = Model()
optimiser = torch.optim.SGD(model.parameters(), lr=0.001, foreach=True)
images, noise = torch.rand(BATCH, PIXELS), torch.randn(BATCH, CODE)


def train(steps):
    for _ in range(steps):
        made, mu, logvar = model(images, noise)
        loss = functional.binary_cross_entropy_with_logits(made, images, reduction="sum")
        loss = (loss - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())) / BATCH
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
    return loss.item()


blocks.obey(train, sum(parameter.numel() for parameter in model.parameters()))
