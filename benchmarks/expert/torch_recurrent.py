"""RNN-32, GRU-32, LSTM-32 and LSTM-64 in PyTorch.

python torch_recurrent.py {rnn32,gru32,lstm32,lstm64} THREADS < commands
"""

import sys

import loops
import torch
from torch import nn

KIND, STEPS = getattr(nn, sys.argv[1][:-2].upper()), int(sys.argv[1][-2:])
torch.set_num_threads(int(sys.argv[2]))
# Products by oneDNN, which is faster than MKL on processors that are not Intel's; without AMX they stay in float32.
torch.set_float32_matmul_precision("medium")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10000, 256)
        self.recurrent = KIND(256, 256, num_layers=2)
        self.classifier = nn.Linear(256, 10000)
        # PyTorch's second bias is redundant, and no part of the network.
        for name, parameter in self.recurrent.named_parameters():
            if name.startswith("bias_hh"):
                nn.init.zeros_(parameter)
                parameter.requires_grad_(False)

    def forward(self, tokens):
        return self.classifier(self.recurrent(self.embedding(tokens))[0]).flatten(0, 1)


inputs, labels = torch.randint(10000, (STEPS, 128)), torch.randint(10000, (STEPS, 128))
loops.torch(Model(), inputs, labels.flatten())
