"""AlexNet in PyTorch.

python torch_alexnet.py alexnet THREADS < commands
"""

import sys

import loops
import torch
from torch import nn

torch.set_num_threads(int(sys.argv[2]))
# Products by oneDNN, which is faster than MKL on processors that are not Intel's; without AMX they stay in float32.
torch.set_float32_matmul_precision("medium")

model = nn.Sequential(
    nn.Conv2d(3, 96, 11, stride=4, padding=2),
    nn.ReLU(inplace=True),
    nn.MaxPool2d(3, 2),
    nn.Conv2d(96, 256, 5, padding=2),
    nn.ReLU(inplace=True),
    nn.MaxPool2d(3, 2),
    nn.Conv2d(256, 384, 3, padding=1),
    nn.ReLU(inplace=True),
    nn.Conv2d(384, 256, 3, padding=1),
    nn.ReLU(inplace=True),
    nn.Conv2d(256, 256, 3, padding=1),
    nn.ReLU(inplace=True),
    nn.MaxPool2d(3, 2),
    nn.Flatten(),
    nn.Linear(256 * 6 * 6, 4096),
    nn.ReLU(inplace=True),
    nn.Linear(4096, 4096),
    nn.ReLU(inplace=True),
    nn.Linear(4096, 1000),
).to(memory_format=torch.channels_last)
inputs = (torch.rand(16, 3, 224, 224) * 2 - 1).contiguous(memory_format=torch.channels_last)
labels = torch.randint(1000, (16,))
loops.torch(model, inputs, labels)
