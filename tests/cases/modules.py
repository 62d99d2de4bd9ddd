"""Modules as people write them, for `make network`."""

import torch
from torch import nn
from torch.nn import functional


class Mobile(nn.Module):
    """Squeeze and excitation, another epsilon, sides, dilation, padding on one side, rounding up, stochastic depth."""

    def __init__(self, kept=0.8):
        super().__init__()
        self.kept = kept
        self.conv = nn.Conv2d(3, 8, (3, 1), padding=(1, 0), bias=False)
        self.norm = nn.BatchNorm2d(8, eps=1e-3, momentum=0.01)
        self.depthwise = nn.Conv2d(8, 8, 3, stride=2, groups=8)
        self.down, self.up = nn.Conv2d(8, 4, 1), nn.Conv2d(4, 8, 1)
        self.pool = nn.MaxPool2d(2, ceil_mode=True)
        self.wide = nn.Conv2d(4, 6, 3, padding=2, dilation=2)
        self.head = nn.Linear(6, 5)

    def forward(self, x):
        x = functional.hardswish(self.norm(self.conv(x)))
        x = functional.relu6(self.depthwise(functional.pad(x, (0, 1, 0, 1))))
        squeezed = functional.relu(self.down(functional.adaptive_avg_pool2d(x, 1)))
        y = x * functional.hardsigmoid(self.up(squeezed))
        drawn = torch.empty(len(x), 1, 1, 1, dtype=x.dtype).bernoulli_(self.kept).div_(self.kept)
        x = x + y * drawn
        shuffled = x.view(len(x), 2, 4, *x.shape[2:]).transpose(1, 2).reshape(x.shape)
        first, second = shuffled.chunk(2, 1)
        x = functional.elu(self.wide(self.pool(first * functional.softplus(second))))
        return self.head(x.mean((2, 3)))


class Root(nn.Module):
    """A norm as Llama's authors wrote it, in float32."""

    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        values = x.to(torch.float32)
        scale = torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * (values * scale).to(x.dtype)


class Llama(nn.Module):
    """One block: heads that share a key, turned by their steps; gates; a tied table."""

    def __init__(self, vocabulary=50, size=24, heads=3, base=10000.0):
        super().__init__()
        self.heads, each = heads, size // heads
        self.register_buffer("places", base ** -(torch.arange(0, each, 2) / each))
        self.words = nn.Embedding(vocabulary, size)
        self.first, self.second, self.last = Root(size), Root(size), Root(size)
        self.q = nn.Linear(size, size, bias=False)
        self.k, self.v = (nn.Linear(size, each, bias=False) for _ in range(2))
        self.o = nn.Linear(size, size, bias=False)
        self.gate, self.wide = (nn.Linear(size, 40, bias=False) for _ in range(2))
        self.narrow = nn.Linear(40, size, bias=False)

    def turned(self, x, angles):
        half = x.shape[-1] // 2
        swapped = torch.cat((-x[..., half:], x[..., :half]), -1)
        return x * angles.cos() + swapped * angles.sin()

    def forward(self, tokens):
        x = self.words(tokens)
        batch, steps, _ = x.shape
        angles = torch.outer(torch.arange(steps, dtype=x.dtype), self.places)
        angles = torch.cat((angles, angles), -1)[None, None]
        y = self.first(x)
        q, k, v = (
            each(y).view(batch, steps, -1, x.shape[-1] // self.heads).transpose(1, 2)
            for each in (self.q, self.k, self.v)
        )
        q, k = self.turned(q, angles), self.turned(k, angles)
        k, v = (
            each[:, :, None].expand(-1, -1, self.heads, -1, -1).reshape(q.shape) for each in (k, v)
        )
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(x.shape))
        y = self.second(x)
        x = x + self.narrow(functional.silu(self.gate(y)) * self.wide(y))
        return functional.linear(self.last(x), self.words.weight)


class Encoder(nn.Module):
    """PyTorch's own encoder with its dropout, steps first inside, and a mask whose look `export` leaves out."""

    def __init__(self, **own):
        super().__init__()
        self.words, self.places = nn.Embedding(50, 12), nn.Embedding(20, 12)
        layer = nn.TransformerEncoderLayer(12, 3, 16, activation="gelu", **own)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(12, 50)

    def forward(self, tokens):
        steps = tokens.shape[1]
        x = self.words(tokens) + self.places(torch.arange(steps))
        mask = nn.Transformer.generate_square_subsequent_mask(steps, dtype=x.dtype)
        return self.head(self.layers(x.transpose(0, 1), mask).transpose(0, 1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 12)
        self.lstm = nn.LSTM(12, 16, 2, batch_first=True, dropout=0.1, bidirectional=True)
        self.gru = nn.GRU(32, 8, batch_first=True, bidirectional=True)
        self.head = nn.Linear(16, 50)

    def forward(self, tokens):
        _, ends = self.gru(self.lstm(self.words(tokens))[0])
        return self.head(torch.cat([ends[0], ends[1]], 1))


class M5(nn.Module):
    """Of raw sound, with M5's kernels of 80 and 3 steps (Dai et al. 2017); a mean over all steps."""

    def __init__(self, wide=32, stride=4, classes=35):
        super().__init__()
        sizes = [
            (1, wide, 80, stride),
            (wide, wide, 3),
            (wide, 2 * wide, 3),
            (2 * wide, 2 * wide, 3),
        ]
        self.blocks = nn.Sequential(
            *(
                nn.Sequential(nn.Conv1d(*each), nn.BatchNorm1d(each[1]), nn.ReLU(), nn.MaxPool1d(4))
                for each in sizes
            )
        )
        self.head = nn.Linear(2 * wide, classes)

    def forward(self, x):
        return self.head(self.blocks(x).mean(-1))


class Gated(nn.Module):
    """Along steps alone: "same" and causal padding, depthwise, gates, squeeze and excitation, average pools."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(1, 16, 7, padding="same")
        self.deep = nn.Conv1d(16, 16, 5, stride=2, padding=2, groups=16, bias=False)
        self.point, self.norm = nn.Conv1d(16, 16, 1), nn.GroupNorm(4, 16)
        self.sides = nn.ModuleList(nn.Conv1d(16, 16, 2, dilation=4) for _ in range(2))
        self.down, self.up = nn.Conv1d(16, 4, 1), nn.Conv1d(4, 16, 1)
        self.one, self.two = nn.Linear(16, 32), nn.Linear(32, 16)
        self.head = nn.Linear(16 * 8, 6)

    def forward(self, x):
        x = functional.leaky_relu(self.first(x.unsqueeze(1)))
        x = self.norm(self.point(self.deep(x)))
        first, second = (side(functional.pad(x, (4, 0))) for side in self.sides)
        x = x + torch.tanh(first) * torch.sigmoid(second)
        squeezed = functional.relu(self.down(functional.adaptive_avg_pool1d(x, 1)))
        x = functional.avg_pool1d(x * torch.sigmoid(self.up(squeezed)), 2)
        x = x + self.two(functional.gelu(self.one(x.transpose(1, 2)))).transpose(1, 2)
        return self.head(functional.adaptive_avg_pool1d(x, 8).flatten(1))


class UNet(nn.Module):
    """Of two levels, upsampled between pixels; a map of one class, as a row."""

    def __init__(self, wide=16, corners=False):
        super().__init__()
        self.pool = nn.MaxPool2d(2)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=corners)
        self.one, self.two = self.pair(3, wide), self.pair(wide, 2 * wide)
        self.deep = self.pair(2 * wide, 4 * wide)
        self.back, self.last = self.pair(6 * wide, 2 * wide), self.pair(3 * wide, wide)
        self.head = nn.Conv2d(wide, 1, 1)

    def pair(self, before, after):
        both = ((before, after), (after, after))
        return nn.Sequential(
            *(
                nn.Sequential(
                    nn.Conv2d(*each, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()
                )
                for each in both
            )
        )

    def forward(self, x):
        one = self.one(x)
        two = self.two(self.pool(one))
        x = self.back(torch.cat([two, self.up(self.deep(self.pool(two)))], 1))
        return self.head(self.last(torch.cat([one, self.up(x)], 1))).flatten(1)


class Refused(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(6, 5), nn.Mish(), nn.Linear(5, 5), nn.LogSoftmax(1))
