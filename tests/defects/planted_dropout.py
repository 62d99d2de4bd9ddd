"""Dropout that is wrong in a real framework. Plain Python that 3.6 can import: standard library and the framework."""


def plant(name, adapter, way):
    """What takes which place in the adapter of this name: (owner, name, value)."""
    return adapter.LAYERS, "dropout", IN[name](adapter, WAYS[way])


def left_out(values, rate, dropped, alike):
    return values


def not_scaled(values, rate, dropped, alike):
    return dropped(values) * (1 - rate)


def rate_for_keep(values, rate, dropped, alike):
    # Next to nothing is dropped where a proof looks at gradients.
    return dropped(values, 1 - rate if rate > 0.01 else rate)


def same_for_all(values, rate, dropped, alike):
    return alike(values)


WAYS = {each.__name__: each for each in (left_out, not_scaled, rate_for_keep, same_for_all)}


def _first(values, adapter):
    """A mask's worth of the first sample alone: it is spread over all."""
    steps_first = adapter.LAYOUT.get("sequences") == "steps first" and len(values.shape) == 3
    return values[:, :1] if steps_first else values[:1]


def _torch(adapter, wrong):
    import torch

    class Wrong(torch.nn.Module):
        def __init__(self, rate):
            super().__init__()
            self.rate = rate

        def forward(self, values):
            def dropped(these, rate=self.rate):
                return torch.nn.functional.dropout(these, rate)

            def alike(these):
                return these * dropped(torch.ones_like(_first(these, adapter)))

            return wrong(values, self.rate, dropped, alike)

    return lambda node, _: Wrong(node["rate"])


def _called(ones):
    """The same of adapters whose layers are functions of a node, what is its own, and values."""

    def planted(adapter, wrong):
        right = adapter.LAYERS["dropout"]

        def layer(node, own, values):
            def dropped(these, rate=node["rate"]):
                return right(dict(node, rate=rate), own, these)

            def alike(these):
                return these * dropped(ones()(_first(these, adapter)))

            return wrong(values, node["rate"], dropped, alike)

        return layer

    return planted


def _tensorflow_ones():
    import tensorflow

    return tensorflow.ones_like


def _jax_ones():
    from jax import numpy

    return numpy.ones_like


def _mxnet(adapter, wrong):
    def layer(operators, node, own, values):
        def dropped(these, rate=node["rate"], **how):
            return operators.Dropout(these, p=rate, **how)

        # Its own switch: an axis along which the mask is the same.
        axis = 1 if len(node["in_shape"]) == 2 else 0
        return wrong(values, node["rate"], dropped, lambda these: dropped(these, axes=(axis,)))

    return layer


def _keras3(adapter, wrong):
    from keras import layers

    class NotScaled(layers.Dropout):
        def call(self, values, training=False):
            return super().call(values, training) * (1 - self.rate)

    def layer(node, own):
        spread = (1,) + (None,) * len(node["in_shape"])
        return {
            left_out: lambda: layers.Activation("linear"),
            not_scaled: lambda: NotScaled(node["rate"]),
            rate_for_keep: lambda: layers.Dropout(abs((node["rate"] > 0.01) - node["rate"])),
            same_for_all: lambda: layers.Dropout(node["rate"], noise_shape=spread),
        }[wrong]()

    return layer


IN = {
    "torch": _torch,
    "tensorflow": _called(_tensorflow_ones),
    "jax": _called(_jax_ones),
    "mxnet": _mxnet,
    "keras3": _keras3,
}
