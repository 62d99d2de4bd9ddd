"""GPT-small in PyTorch.

python torch_gpt-small.py gpt-small THREADS < commands
"""

import sys

import loops
import torch
from torch import nn
from torch.nn import functional

STEPS, WORDS, UNITS, HEADS, BLOCKS, BATCH = 256, 65, 384, 6, 6, 8
torch.set_num_threads(int(sys.argv[2]))
# Products by oneDNN, which is faster than MKL on processors that are not Intel's; without AMX they stay in float32.
torch.set_float32_matmul_precision("medium")


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(UNITS, 3 * UNITS, bias=False)
        self.projection = nn.Linear(UNITS, UNITS, bias=False)

    def forward(self, x):
        batch, steps, units = x.shape
        q, k, v = self.qkv(x).view(batch, steps, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.projection(y.transpose(1, 2).reshape(batch, steps, units))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(UNITS, bias=False), Attention()
        self.norm2 = nn.LayerNorm(UNITS, bias=False)
        self.mlp = nn.Sequential(
            nn.Linear(UNITS, 4 * UNITS, bias=False),
            nn.GELU(),
            nn.Linear(4 * UNITS, UNITS, bias=False),
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(WORDS, UNITS), nn.Embedding(STEPS, UNITS)
        for embedding in (self.words, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)
        self.blocks = nn.Sequential(*[Block() for _ in range(BLOCKS)])
        self.norm = nn.LayerNorm(UNITS, bias=False)
        self.head = nn.Linear(UNITS, WORDS, bias=False)
        self.head.weight = self.words.weight

    def forward(self, words):
        x = self.words(words) + self.positions.weight
        return self.head(self.norm(self.blocks(x))).flatten(0, 1)


inputs, labels = (torch.randint(WORDS, (BATCH, STEPS)) for _ in range(2))
loops.torch(Model(), inputs, labels.flatten())
