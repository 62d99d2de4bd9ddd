"""Operators of SINGA's primitives, and layers of them, of rows: generative networks and recurrences.

Sequences are matrices of (steps x batch, features). What was chosen here: docs/adapters/singa.md.

Plain Python that 3.6 can import: standard library, numpy and SINGA.
"""

from singa import autograd
from singa import singa_wrap as core

from . import repair as singa_repair


def is_data(operator):
    """Whether the first argument of an operator is the batch or a part of it, whose gradient nobody asks for."""
    source = operator.src[0][0]
    return isinstance(source, autograd.Dummy) or not source.requires_grad


def once(make):
    """`make` called with the first tensor only: SINGA's handles are made for a shape."""
    made = []

    def get(x):
        if not made:
            made.append(make(x.data))
        return made[0]

    return get


def shares(x, count, axis):
    """Equally large pieces of a tensor."""
    size = x.shape()[axis] // count
    return [core.SliceOn(x, at * size, (at + 1) * size, axis) for at in range(count)]


class _Joined(autograd.Operator):
    """Features, or the channels of images, behind one another."""

    def forward(self, *parts):
        self.sizes = [part.shape()[1] for part in parts]
        return singa_repair.joined(parts)

    def backward(self, dy):
        found, end = [], 0
        for size in self.sizes:
            found.append(core.SliceOn(dy, end, end + size, 1))
            end += size
        return tuple(found)


class _Part(autograd.Operator):
    """Some of the features."""

    def __init__(self, start, size):
        super(_Part, self).__init__()
        self.start, self.size = start, size

    def forward(self, x):
        self.rows, self.whole = x.shape()
        return core.SliceOn(x, self.start, self.start + self.size, 1)

    def backward(self, dy):
        behind = self.whole - self.start - self.size
        sizes = [size for size in (self.start, None, behind) if size != 0]
        return singa_repair.joined(
            [dy if size is None else singa_repair.filled(0.0, self.rows, size) for size in sizes]
        )


def part(trainer, node):
    """Some of the features."""
    return lambda x: _Part(node["start"], node["size"])(x)[0]


class _Stacked(autograd.Operator):
    """Rows below one another: the steps of a sequence."""

    def forward(self, *parts):
        self.count = len(parts)
        return below(parts)

    def backward(self, dy):
        return tuple(shares(dy, self.count, 0))


def below(parts):
    """Tensors of one shape below one another in one."""
    rows, size = parts[0].shape()[0], parts[0].Size()
    made = singa_repair.empty(rows * len(parts), *parts[0].shape()[1:])
    for at, each in enumerate(parts):
        core.CopyDataToFrom(made, each, size, at * size, 0)
    return made


class _Unstacked(autograd.Operator):
    """Steps beside one another: features of a row."""

    def __init__(self, count):
        super(_Unstacked, self).__init__()
        self.count = count

    def forward(self, x):
        return singa_repair.joined(shares(x, self.count, 0))

    def backward(self, dy):
        return below(shares(dy, self.count, 1))


def unstack(trainer, node):
    """Steps beside one another."""
    return lambda x: _Unstacked(node["in_shape"][0])(x)[0]


class _Reversal(autograd.Operator):
    """Its gradient is turned."""

    def forward(self, x):
        return core.MultFloat(x, 1.0)

    def backward(self, dy):
        return core.MultFloat(dy, -1.0)


class _SampledCode(autograd.Operator):
    """Means and logarithms of variances come behind one another; the noise has no gradient."""

    def forward(self, x, noise):
        code = noise.shape()[1]
        deviation = core.Exp(core.MultFloat(core.SliceOn(x, code, 2 * code, 1), 0.5))
        self.drawn = core.__mul__(deviation, noise)
        return core.__add__(core.SliceOn(x, 0, code, 1), self.drawn)

    def backward(self, dy):
        spread = core.MultFloat(core.__mul__(dy, self.drawn), 0.5)
        return singa_repair.joined([dy, spread]), None


class _Rnn(autograd.Operator):
    """Outputs (steps x batch, units) from the products of its inputs, of the same shape."""

    def __init__(self, steps):
        super(_Rnn, self).__init__()
        self.steps = steps

    def forward(self, products, recurrent):
        self.recurrent, self.kept = recurrent, []
        for sums in shares(products, self.steps, 0):
            if self.kept:
                core.MultWithScale(1.0, self.kept[-1], recurrent, 1.0, sums)
            self.kept.append(core.Tanh(sums))
        return below(self.kept)

    def backward(self, dy):
        units = self.recurrent.shape()[0]
        d_recurrent = singa_repair.filled(0.0, units, units)
        turned, arriving = core.DefaultTranspose(self.recurrent), shares(dy, self.steps, 0)
        for step in reversed(range(self.steps)):
            output = self.kept[step]
            arriving[step] = core.__mul__(arriving[step], one_minus(core.Square(output)))
            if step:
                before = core.DefaultTranspose(self.kept[step - 1])
                core.MultWithScale(1.0, before, arriving[step], 1.0, d_recurrent)
                core.MultWithScale(1.0, arriving[step], turned, 1.0, arriving[step - 1])
        return below(arriving), d_recurrent


class _Gru(autograd.Operator):
    """The same with gates; that of the reset multiplies the recurrent product."""

    def __init__(self, steps):
        super(_Gru, self).__init__()
        self.steps = steps

    def forward(self, products, recurrent):
        self.recurrent, self.kept, outputs = recurrent, [], []
        units = recurrent.shape()[0]
        output = singa_repair.filled(0.0, products.shape()[0] // self.steps, units)
        for sums in shares(products, self.steps, 0):
            inner = core.Mult(output, recurrent)
            (r, z, n), (inner_r, inner_z, inner_n) = shares(sums, 3, 1), shares(inner, 3, 1)
            r, z = core.Sigmoid(core.__add__(r, inner_r)), core.Sigmoid(core.__add__(z, inner_z))
            n = core.Tanh(core.__add__(n, core.__mul__(r, inner_n)))
            apart = core.__sub__(output, n)
            self.kept.append((output, r, z, n, inner_n, apart))
            output = core.__add__(n, core.__mul__(z, apart))
            outputs.append(output)
        return below(outputs)

    def backward(self, dy):
        units = self.recurrent.shape()[0]
        d_recurrent = singa_repair.filled(0.0, units, 3 * units)
        turned, found = core.DefaultTranspose(self.recurrent), []
        arriving = shares(dy, self.steps, 0)
        for step in reversed(range(self.steps)):
            before, r, z, n, inner, apart = self.kept[step]
            d_output = arriving[step]
            bent = one_minus(core.Square(n))
            d_n = core.__mul__(core.__mul__(d_output, one_minus(z)), bent)
            d_r = core.__mul__(core.__mul__(d_n, inner), core.__mul__(r, one_minus(r)))
            d_z = core.__mul__(core.__mul__(d_output, apart), core.__mul__(z, one_minus(z)))
            found.append(singa_repair.joined([d_r, d_z, d_n]))
            if step:
                d_inner = singa_repair.joined([d_r, d_z, core.__mul__(d_n, r)])
                core.MultWithScale(1.0, core.DefaultTranspose(before), d_inner, 1.0, d_recurrent)
                core.MultWithScale(1.0, d_inner, turned, 1.0, arriving[step - 1])
                arriving[step - 1] += core.__mul__(d_output, z)
        return below(found[::-1]), d_recurrent


def one_minus(x):
    """1 - x."""
    return core.AddFloat(core.MultFloat(x, -1.0), 1.0)


def recurrent(dense):
    """A recurrence behind one product, by an operator `dense`, of the inputs of all steps."""
    kinds = {"rnn": _Rnn, "gru": _Gru}

    def make(trainer, node):
        entry, recurrent = trainer.own(node, "input", "bias"), trainer.own(node, "recurrent")
        return lambda x: kinds[node["op"]](node["in_shape"][0])(dense()(x, *entry)[0], *recurrent)[
            0
        ]

    return make


class _Rbm(autograd.Operator):
    """A step of CD-1: the free energy, of which the chain's end is held constant, and the chances of hidden units."""

    def forward(self, visible, noise, weight, down, up):
        chances = core.Sigmoid(_scores(visible, weight, up))
        above = core.__sub__(core.AddFloat(core.MultFloat(chances, 2.0), -1.0), noise)
        turned = core.DefaultTranspose(weight)
        end = core.Sigmoid(_scores(core.GTFloat(above, 0.0), turned, down))
        # Up from both, below one another, by one product.
        both = _scores(below([visible, end]), weight, up)
        self.kept = visible, end, core.Sigmoid(both)
        seen, dreamt = shares(core.Sum(softened(both), 1), 2, 0)
        pulled = core.Mult(core.__sub__(end, visible), core.Reshape(down, [down.Size(), 1]))
        energy = core.__add__(core.__sub__(dreamt, seen), core.Reshape(pulled, [pulled.Size()]))
        return singa_repair.joined([core.Reshape(energy, [energy.Size(), 1]), chances])

    def backward(self, dy):
        visible, end, both = self.kept
        flowing = core.SliceOn(dy, 0, 1, 1)
        seen, dreamt = (core.__mul__(each, flowing) for each in shares(both, 2, 0))
        d_weight = core.Mult(core.DefaultTranspose(end), dreamt)
        before = core.DefaultTranspose(visible)
        core.MultWithScale(-1.0, before, seen, 1.0, d_weight)
        d_down = core.Sum(core.__mul__(core.__sub__(end, visible), flowing), 0)
        dx = None if is_data(self) else singa_repair.filled(0.0, *visible.shape())
        return dx, None, d_weight, d_down, core.Sum(core.__sub__(dreamt, seen), 0)


def _scores(rows, weight, bias):
    made = core.Mult(rows, weight)
    core.AddRow(bias, made)
    return made


def softened(x):
    """log(1 + exp(x)), in a form in which no large number overflows."""
    small = core.Log(core.AddFloat(core.Exp(core.MultFloat(core.Abs(x), -1.0)), 1.0))
    return core.__add__(core.ReLU(x), small)


def rbm(trainer, node):
    """A restricted Boltzmann machine."""
    arrays = trainer.own(node, "weight", "visible", "hidden")
    return lambda x, noise: _Rbm()(x, noise, *arrays)[0]


def _operator(kind):
    return lambda trainer, node: lambda *values: kind()(*values)[0]


concat, stack = _operator(_Joined), _operator(_Stacked)
reversal, sampled_code = _operator(_Reversal), _operator(_SampledCode)
