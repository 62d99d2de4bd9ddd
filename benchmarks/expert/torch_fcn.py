"""FCN-5, FCN-8, feed-forward networks and an autoencoder for MNIST in PyTorch.

python torch_fcn.py {fcn5,fcn8,ffn-shallow,ffn-deep,autoencoder} THREADS < commands
"""

import sys

import loops
import torch
from torch import nn

torch.set_num_threads(int(sys.argv[2]))
# Products by oneDNN, which is faster than MKL on processors that are not Intel's; without AMX they stay in float32.
torch.set_float32_matmul_precision("medium")

layers = []
for before, behind, bent in loops.dense(sys.argv[1]):
    layers += [nn.Linear(before, behind)] + [nn.Sigmoid()] * bent
inputs = torch.rand(64, layers[0].in_features) * 2 - 1
if sys.argv[1] == "autoencoder":
    targets, criterion = (inputs + 1) / 2, nn.BCEWithLogitsLoss()
    loops.torch(nn.Sequential(*layers), inputs, targets, criterion)
else:
    loops.torch(nn.Sequential(*layers), inputs, torch.randint(behind, (64,)))
