"""GPT-small, BERT-base, ViT-tiny and MLP-Mixer in PyTorch.

python torch_transformer.py {gpt-small,gpt-small-adamw,bert-base,vit-tiny,mlp-mixer} THREADS < commands
"""

import sys

import loops
import torch
from torch import nn
from torch.nn import functional

torch.set_num_threads(int(sys.argv[2]))
# Products by oneDNN, which is faster than MKL on processors that are not Intel's; without AMX they stay in float32.
torch.set_float32_matmul_precision("medium")


class Attention(nn.Module):
    def __init__(self, units, heads, bias=True, causal=False):
        super().__init__()
        self.qkv = nn.Linear(units, 3 * units, bias=bias)
        self.projection = nn.Linear(units, units, bias=bias)
        self.heads, self.causal = heads, causal

    def forward(self, x):
        batch, steps, units = x.shape
        parts = self.qkv(x).view(batch, steps, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = parts.flatten(1, 2)
        # For so few steps, this takes a CPU less time than `scaled_dot_product_attention`.
        scale, k = (units // self.heads) ** -0.5, k.transpose(1, 2)
        if self.causal:
            later = torch.full((steps, steps), -torch.inf).triu(1)
            scores = torch.baddbmm(later, q, k, alpha=scale)
        else:
            scores = torch.bmm(q * scale, k)
        y = torch.bmm(scores.softmax(-1), v).view(batch, self.heads, steps, -1)
        return self.projection(y.transpose(1, 2).reshape(batch, steps, units))


def mlp(units, hidden, bias=True):
    wide, narrow = nn.Linear(units, hidden, bias=bias), nn.Linear(hidden, units, bias=bias)
    return nn.Sequential(wide, nn.GELU(), narrow)


class Mixed(nn.Module):
    """Layers over the patches of each channel."""

    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, x):
        return self.layers(x.transpose(1, 2)).transpose(1, 2)


class Residual(nn.Module):
    """A branch with a layer norm before it, or behind the sum."""

    def __init__(self, branch, norm, behind=False):
        super().__init__()
        self.branch, self.norm, self.behind = branch, norm, behind

    def forward(self, x):
        if self.behind:
            return self.norm(x + self.branch(x))
        return x + self.branch(self.norm(x))


class Language(nn.Module):
    """The words' embedding, which the scores are taken with, too; and those of steps, and of sentences of 64 words."""

    def __init__(self, words, units, steps, sentences, body, bias):
        super().__init__()
        sizes = [size for size in (words, steps, sentences) if size]
        self.embeddings = nn.ParameterList([0.02 * torch.randn(size, units) for size in sizes])
        self.body, self.bias = body, nn.Parameter(torch.zeros(words)) if bias else None

    def forward(self, words):
        table, steps, *sentences = self.embeddings
        x = functional.embedding(words, table) + steps[: words.shape[1]]
        x = x + sentences[0].repeat_interleave(64, 0) if sentences else x
        return functional.linear(self.body(x), table, self.bias).flatten(0, 1)


class Images(nn.Module):
    """Classes by the first step, which is learned, or by the mean of all patches."""

    def __init__(self, units, steps, body):
        super().__init__()
        self.patches, self.body = nn.Conv2d(3, units, 16, 16), body
        self.token = nn.Parameter(torch.zeros(1, 1, units)) if steps else None
        self.positions = nn.Parameter(0.02 * torch.randn(1, steps, units)) if steps else None
        self.head = nn.Linear(units, 1000)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        if self.token is None:
            return self.head(self.body(x).mean(1))
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.positions
        return self.head(self.body(x)[:, 0])


def gpt():
    def norm():
        return nn.LayerNorm(384, bias=False)

    blocks = [
        Residual(branch, norm())
        for _ in range(6)
        for branch in (Attention(384, 6, False, True), mlp(384, 1536, False))
    ]
    return Language(65, 384, 256, 0, nn.Sequential(*blocks, norm()), False)


def bert():
    def norm():
        return nn.LayerNorm(768, eps=1e-12)

    blocks = [
        Residual(branch, norm(), behind=True)
        for _ in range(12)
        for branch in (Attention(768, 12), mlp(768, 3072))
    ]
    head = nn.Linear(768, 768), nn.GELU(), norm()
    return Language(30522, 768, 512, 2, nn.Sequential(norm(), *blocks, *head), True)


def image_blocks(units, count, *makers):
    norms = [nn.LayerNorm(units, eps=1e-6) for _ in range(2 * count + 1)]
    branches = [make() for _ in range(count) for make in makers]
    blocks = map(Residual, branches, norms)
    return nn.Sequential(*blocks, norms[-1])


def vit():
    makers = lambda: Attention(192, 3), lambda: mlp(192, 768)
    return Images(192, 197, image_blocks(192, 12, *makers))


def mixer():
    makers = lambda: Mixed(mlp(196, 256)), lambda: mlp(512, 2048)
    return Images(512, 0, image_blocks(512, 8, *makers))


# The network, its mini-batch, and its steps and words, which images do not have.
make, batch, steps, words = {
    "gpt-small": (gpt, 8, 256, 65),
    "bert-base": (bert, 4, 128, 30522),
    "vit-tiny": (vit, 8, 0, 0),
    "mlp-mixer": (mixer, 8, 0, 0),
}[sys.argv[1].removesuffix("-adamw")]
if words:
    inputs, labels = (torch.randint(words, (batch, steps)) for _ in range(2))
    loops.torch(make(), inputs, labels.flatten())
else:
    inputs = torch.randn(batch, 3, 224, 224).contiguous(memory_format=torch.channels_last)
    model = make().to(memory_format=torch.channels_last)
    loops.torch(model, inputs, torch.randint(1000, (batch,)))
