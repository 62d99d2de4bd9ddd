"""ConvNeXt-tiny in PyTorch, block by block as in torchvision's `convnext_tiny`, without stochastic depth.

python torch_convnext-tiny.py convnext-tiny THREADS < commands
"""

import sys

import loops
import torch
from torch import nn
from torch.nn import functional

WIDTHS, BLOCKS, BATCH = (96, 192, 384, 768), (3, 3, 9, 3), 4
torch.set_num_threads(int(sys.argv[2]))
# Products by oneDNN, which is faster than MKL on processors that are not Intel's; without AMX they stay in float32.
torch.set_float32_matmul_precision("medium")


class Norm(nn.LayerNorm):
    """Over the channels, which lie last in memory."""

    def forward(self, x):
        x = functional.layer_norm(
            x.permute(0, 2, 3, 1), self.normalized_shape, self.weight, self.bias, self.eps
        )
        return x.permute(0, 3, 1, 2)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.scale = nn.Parameter(torch.full((width, 1, 1), 1e-6))

    def forward(self, x):
        y = self.mlp(self.norm(self.depthwise(x).permute(0, 2, 3, 1)))
        return x + self.scale * y.permute(0, 3, 1, 2)


layers = [nn.Conv2d(3, WIDTHS[0], 4, 4), Norm(WIDTHS[0], eps=1e-6)]
for stage, width in enumerate(WIDTHS):
    if stage:
        layers += [Norm(WIDTHS[stage - 1], eps=1e-6), nn.Conv2d(WIDTHS[stage - 1], width, 2, 2)]
    layers += [Block(width) for _ in range(BLOCKS[stage])]
model = nn.Sequential(
    *layers,
    nn.AdaptiveAvgPool2d(1),
    Norm(WIDTHS[-1], eps=1e-6),
    nn.Flatten(),
    nn.Linear(WIDTHS[-1], 1000),
).to(memory_format=torch.channels_last)
inputs = torch.randn(BATCH, 3, 224, 224).contiguous(memory_format=torch.channels_last)
loops.torch(model, inputs, torch.randint(1000, (BATCH,)))
