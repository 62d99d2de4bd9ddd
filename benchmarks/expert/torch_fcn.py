"""FCN-5 and FCN-8 in PyTorch.

python torch_fcn.py {fcn5,fcn8} THREADS < commands
"""

import sys

import loops
import torch
from torch import nn

HIDDEN_LAYERS = {"fcn5": 3, "fcn8": 6}[sys.argv[1]]
torch.set_num_threads(int(sys.argv[2]))
# Products by oneDNN, which is faster than MKL on processors that are not Intel's; without AMX they stay in float32.
torch.set_float32_matmul_precision("medium")

layers, features = [], 26752
for _ in range(HIDDEN_LAYERS):
    layers += [nn.Linear(features, 2048), nn.Sigmoid()]
    features = 2048
model = nn.Sequential(*layers, nn.Linear(features, 26752))
inputs, labels = torch.rand(64, 26752) * 2 - 1, torch.randint(26752, (64,))
loops.torch(model, inputs, labels)
