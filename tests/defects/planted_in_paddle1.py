"""Defects in PaddlePaddle 1: each function returns what takes which place, as (owner, name, value)."""

from judging import JUDGE
from paddle.fluid import layers

from worker.frameworks.paddle1 import layers as paddle1_layers
from worker.frameworks.paddle1 import optimisers as paddle1_optimisers


def mask_off_by_one(adapter):
    """Each step sees the next one, too."""
    right = layers.triu
    return layers, "triu", lambda values, diagonal: right(values, diagonal + 1)


def unscaled(adapter):
    """Attention without its division by the root of a head's units."""
    right = layers.matmul

    def product(left, other, transpose_x=False, transpose_y=False, alpha=1.0):
        return right(left, other, transpose_x, transpose_y)

    return layers, "matmul", product


def unbiased(adapter):
    """Layer normalisation by the variance over n - 1."""

    def norm(node, values):
        features = values.shape[-1]
        centred = values - layers.reduce_mean(values, -1, keep_dim=True)
        variance = layers.reduce_sum(layers.square(centred), -1, keep_dim=True) / (features - 1.0)
        normal = centred * layers.rsqrt(variance + node["epsilon"])
        found = normal * paddle1_layers.parameter(node, "weight", [features])
        return found + paddle1_layers.parameter(node, "bias", [features]) if node["bias"] else found

    return adapter.LAYERS, "layer_norm", norm


def without_divergence(adapter):
    """A variational autoencoder whose code is held against nothing."""

    def missed(outputs, targets):
        decoded = paddle1_layers.columns(outputs, 0, targets.shape[1])
        entropy = layers.sigmoid_cross_entropy_with_logits(decoded, targets)
        return outputs, layers.reduce_sum(entropy) / float(outputs.shape[0] * outputs.shape[1])

    return adapter._DISTANCES, "evidence_bound", missed


def detached(adapter):
    """A generator that no gradient reaches."""
    return adapter.LAYERS, "reversal", lambda node, values: _held(values)


def detached_judge(adapter):
    """A judge that no gradient reaches."""
    right = adapter.LAYERS["dense"]

    def dense(node, values):
        if node["name"] not in JUDGE:
            return right(node, values)
        shape = [values.shape[-1], node["units"]]
        weight = _held(paddle1_layers.parameter(node, "weight", shape))
        return layers.matmul(values, weight) + _held(
            paddle1_layers.parameter(node, "bias", shape[1:])
        )

    return adapter.LAYERS, "dense", dense


def _held(values):
    """What the loss depends on by gradients that are all zero."""
    return paddle1_layers.constant(values) + 0.0 * values


def turned(adapter):
    """Transposed convolutions whose kernels stand with rows for columns: those of a turned image, turned back."""
    right = adapter.LAYERS["conv_transpose"]

    def over(values):
        return layers.transpose(values, [0, 1, 3, 2])

    return adapter.LAYERS, "conv_transpose", lambda node, values: over(right(node, over(values)))


def padded_behind(adapter):
    """Pools that are padded behind their last row and column alone, as TensorFlow's SAME does."""

    def pool(node, values):
        edge = 2 * node["padding"]
        wide = layers.pad(values, [0, 0, 0, 0, 0, edge, 0, edge], -1e30)
        return layers.pool2d(wide, node["kernel"], "max", node["stride"])

    return adapter.LAYERS, "max_pool", pool


def half_tied(adapter):
    """No gradient of the scores reaches the table that words share with them."""
    right = adapter.LAYERS["unembedding"]

    def scores(node, values, table):
        return right(node, values, paddle1_layers.constant(table))

    return adapter.LAYERS, "unembedding", scores


class _Dampened(paddle1_optimisers._Written):
    averages = ("moves",)

    def _create_accumulators(self, block, parameters):
        super()._create_accumulators(block, parameters)
        taken = layers.cast(layers.autoincreased_step_counter(), "float32")
        # The first gradient counts whole.
        first = layers.cast(layers.less_than(taken, layers.ones([1], "float32") * 1.5), "float32")
        self._share = 0.1 + 0.9 * first

    def _step(self, value, gradient, moves):
        layers.sums([self._wanted["momentum"] * moves, gradient * self._share], out=moves)
        return moves


class _Decaying(paddle1_optimisers._Adam):
    def _step(self, value, gradient, *averages):
        gradient = layers.sums([gradient, self._wanted["weight_decay"] * value])
        return super()._step(value, gradient, *averages)


def dampened(adapter):
    """Momentum of which a gradient is but a tenth."""
    return adapter.RULES, "momentum", _Dampened


def decaying(adapter):
    """AdamW with its decay in the gradient."""
    return adapter.RULES, "adamw", _Decaying
