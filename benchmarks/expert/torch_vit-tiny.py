"""ViT-tiny in PyTorch.

python torch_vit-tiny.py vit-tiny THREADS < commands
"""

import sys

import loops
import torch
from torch import nn
from torch.nn import functional

UNITS, HEADS, BLOCKS, BATCH = 192, 3, 12, 8
torch.set_num_threads(int(sys.argv[2]))
# Products by oneDNN, which is faster than MKL on processors that are not Intel's; without AMX they stay in float32.
torch.set_float32_matmul_precision("medium")


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.projection = nn.Linear(UNITS, 3 * UNITS), nn.Linear(UNITS, UNITS)

    def forward(self, x):
        batch, steps, units = x.shape
        q, k, v = self.qkv(x).view(batch, steps, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v)
        return self.projection(y.transpose(1, 2).reshape(batch, steps, units))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(UNITS, eps=1e-6), nn.LayerNorm(UNITS, eps=1e-6)
        self.attention = Attention()
        self.mlp = nn.Sequential(
            nn.Linear(UNITS, 4 * UNITS), nn.GELU(), nn.Linear(4 * UNITS, UNITS)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, UNITS, 16, 16)
        self.token = nn.Parameter(torch.zeros(1, 1, UNITS))
        self.positions = nn.Parameter(0.02 * torch.randn(1, 197, UNITS))
        self.blocks = nn.Sequential(*[Block() for _ in range(BLOCKS)])
        self.norm, self.head = nn.LayerNorm(UNITS, eps=1e-6), nn.Linear(UNITS, 1000)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


model = Model().to(memory_format=torch.channels_last)
inputs = torch.randn(BATCH, 3, 224, 224).contiguous(memory_format=torch.channels_last)
loops.torch(model, inputs, torch.randint(1000, (BATCH,)))
