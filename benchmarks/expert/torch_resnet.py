"""ResNet-50 in PyTorch, with the stride in the 3 x 3 convolution.

python torch_resnet.py resnet50 THREADS < commands
"""

import sys

import loops
import torch
from torch import nn

torch.set_num_threads(int(sys.argv[2]))
# Products by oneDNN, which is faster than MKL on processors that are not Intel's; without AMX they stay in float32.
torch.set_float32_matmul_precision("medium")


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Identity()
        if channels != 4 * width:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, 4 * width, 1, stride=stride, bias=False),
                nn.BatchNorm2d(4 * width),
            )

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += self.shortcut(x)
        return self.relu(out)


stem = [
    nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False),
    nn.BatchNorm2d(64),
    nn.ReLU(inplace=True),
    nn.MaxPool2d(3, 2, padding=1),
]
body, channels = [], 64
for width, blocks_of_stage, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
    for block in range(blocks_of_stage):
        body.append(Bottleneck(channels, width, stride if block == 0 else 1))
        channels = 4 * width
model = nn.Sequential(*stem, *body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))
model = model.to(memory_format=torch.channels_last)
inputs = (torch.rand(16, 3, 224, 224) * 2 - 1).contiguous(memory_format=torch.channels_last)
labels = torch.randint(1000, (16,))
loops.torch(model, inputs, labels)
