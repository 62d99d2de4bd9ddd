"""LeNet-5, a convolutional autoencoder and a deconvolutional network for MNIST in PyTorch.

python torch_conv.py {lenet,autoencoder-conv,deconv} THREADS < commands
"""

import sys

import loops
import torch
from torch import nn

torch.set_num_threads(int(sys.argv[2]))
# Products by oneDNN, which is faster than MKL on processors that are not Intel's; without AMX they stay in float32.
torch.set_float32_matmul_precision("medium")


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5),
        nn.Sigmoid(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.Sigmoid(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.Sigmoid(),
        nn.Linear(120, 84),
        nn.Sigmoid(),
        nn.Linear(84, 10),
    )


def convolution(before, behind, padding, resize):
    return nn.Conv2d(before, behind, 3, padding=padding), nn.ReLU(inplace=True), resize


def autoencoder():
    return nn.Sequential(
        *convolution(1, 16, 1, nn.MaxPool2d(2)),
        *convolution(16, 8, 1, nn.MaxPool2d(2)),
        *convolution(8, 8, 1, nn.MaxPool2d(2, padding=1)),
        *convolution(8, 8, 1, nn.Upsample(scale_factor=2)),
        *convolution(8, 8, 1, nn.Upsample(scale_factor=2)),
        *convolution(8, 16, 0, nn.Upsample(scale_factor=2)),
        nn.Conv2d(16, 1, 3, padding=1),
        nn.Flatten(),
    )


def transposed(before, behind, *window):
    layer = nn.ConvTranspose2d(before, behind, *window, bias=False)
    return layer, nn.BatchNorm2d(behind), nn.ReLU(inplace=True)


def deconv():
    return nn.Sequential(
        *transposed(100, 256, 4),
        *transposed(256, 128, 3, 2, 1),
        *transposed(128, 64, 4, 2, 1),
        nn.ConvTranspose2d(64, 1, 4, 2, 1),
        nn.Flatten(),
    )


make, shape, criterion = {
    "lenet": (lenet, (1, 32, 32), nn.CrossEntropyLoss()),
    "autoencoder-conv": (autoencoder, (1, 28, 28), nn.BCEWithLogitsLoss()),
    "deconv": (deconv, (100, 1, 1), nn.MSELoss()),
}[sys.argv[1]]
inputs = (torch.rand(64, *shape) * 2 - 1).contiguous(memory_format=torch.channels_last)
answers = torch.randint(10, (64,)) if make is lenet else torch.rand(64, 784)
loops.torch(make().to(memory_format=torch.channels_last), inputs, answers, criterion)
