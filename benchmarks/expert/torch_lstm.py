"""LSTM-32 and LSTM-64 in PyTorch.

python torch_lstm.py {lstm32,lstm64} THREADS < commands
"""

import sys

import blocks
import torch
from torch import nn

STEPS = {"lstm32": 32, "lstm64": 64}[sys.argv[1]]
torch.set_num_threads(int(sys.argv[2]))
# Products by oneDNN, which is faster than MKL on processors that are not Intel's; without AMX they stay in float32.
torch.set_float32_matmul_precision("medium")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10000, 256)
        self.lstm = nn.LSTM(256, 256, num_layers=2)
        self.classifier = nn.Linear(256, 10000)
        # PyTorch's second bias is redundant, and no part of the network.
        for name, parameter in self.lstm.named_parameters():
            if name.startswith("bias_hh"):
                nn.init.zeros_(parameter)
                parameter.requires_grad_(False)

    def forward(self, tokens):
        return self.classifier(self.lstm(self.embedding(tokens))[0])


model = Model()
inputs, labels = torch.randint(10000, (STEPS, 128)), torch.randint(10000, (STEPS, 128))
criterion = nn.CrossEntropyLoss()
trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
optimiser = torch.optim.SGD(trained, lr=0.01, foreach=True)


def train(steps):
    for _ in range(steps):
        loss = criterion(model(inputs).flatten(0, 1), labels.flatten())
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
    return loss.item()


blocks.obey(train, sum(p.numel() for p in trained))
