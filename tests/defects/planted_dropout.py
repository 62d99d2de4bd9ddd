"""Dropout that is wrong in a real framework. Plain Python that 3.6 can import: standard library and the framework."""

# {way: the axes along which the framework is told to draw one mask}
ALIKE = {"the same for all samples": "n", "the same at each place": "s", "whole maps": "hw"}
# The same of an attention's shares (batch, heads, queries, keys).
ALIKE_OF_SHARES = {
    "the same for all samples": (0,),
    "the same in each head": (1,),
    "whole keys": (2,),
    "whole queries": (3,),
    "whole heads": (2, 3),
}
# What no switch of a framework does.
NOT_IN = {
    "torch": {"the same in each layer", "the same in each attention"},
    "mxnet": {"the same in each layer", "drawn once", "drawn once a call"},
    "tensorflow": {"drawn once a call"},
    "keras3": {"drawn once a call"},
}


def plant(name, adapter, way):
    """What takes which places in the adapter of this name: [(owner, name, value)]."""
    if (name, way) == ("jax", "the same in each layer"):
        return [(adapter.jax.random, "fold_in", lambda key, _: key)]
    if way == "drawn once a call":
        return [(adapter, "build", _once_a_call(adapter, name))]
    places = [(adapter.LAYERS, "dropout", IN[name](adapter, way))]
    if name == "torch":
        places.append((adapter.LAYERS, "attention", _torch_attention(adapter, way)))
    return places


def _once_a_call(adapter, name):
    """A `build` whose trainer draws masks once a call, and uses them in all of its steps."""
    right = adapter.build

    def build(job):
        trainer = right(job)
        run = trainer.run

        def once(steps):
            before = _drawing(adapter, name, trainer)
            for _ in range(steps):
                _drawing(adapter, name, trainer, before)
                loss = run(1)
            return loss

        trainer.run = once
        return trainer

    return build


def _drawing(adapter, name, trainer, before=None):
    """What the next masks are drawn from; or puts that back."""
    if name == "torch":
        import torch

        return torch.get_rng_state() if before is None else torch.set_rng_state(before)
    if before is not None:
        trainer._state = trainer._state[:2] + (before,) + trainer._state[3:]
    return trainer._state[2]


def _axes(adapter, way, count):
    """Along which of so many axes a mask is the same."""
    steps_first = adapter.LAYOUT.get("sequences") == "steps first"
    channels_last = adapter.LAYOUT.get("images") == "channels last"
    orders = {2: "nu", 3: "snu" if steps_first else "nsu", 4: "nhwc" if channels_last else "nchw"}
    return [axis for axis, name in enumerate(orders[count]) if name in ALIKE.get(way, "")]


def _shape(adapter, way, values):
    """The shape of a mask."""
    alike = _axes(adapter, way, len(values.shape))
    return [1 if axis in alike else int(size) for axis, size in enumerate(values.shape)]


def _wrong(way, values, rate, dropped):
    """What a layer makes of values, where `dropped(values, rate)` is what the framework makes of them."""
    if way == "left out":
        return values
    if way == "rate for keep" and rate > 0.01:
        # Next to nothing is dropped where a proof looks at gradients.
        rate = 1 - rate
    return dropped(values, rate) * (1 - rate if way == "not scaled" else 1)


def _torch(adapter, way):
    import torch

    def dropped(values, rate):
        if way == "whole maps":
            return torch.nn.functional.dropout2d(values, rate)
        with torch.random.fork_rng(enabled=way == "drawn once"):
            if way == "drawn once":
                torch.manual_seed(7)
            ones = values.new_ones(_shape(adapter, way, values))
            return values * torch.nn.functional.dropout(ones, rate)

    def layer(node, _):
        module = torch.nn.Identity()
        module.forward = lambda values: _wrong(way, values, node["rate"], dropped)
        return module

    return layer


def _torch_attention(adapter, way):
    """The attention as it is, but for PyTorch's dropout of its shares."""
    import torch

    right, functional = adapter.LAYERS["attention"], torch.nn.functional
    draw = functional.dropout

    def layer(node, in_place):
        module = right(node, in_place)
        attend, (steps, _) = module.forward, node["shape"]

        def dropped(shares, rate):
            axes = ALIKE_OF_SHARES.get(way, ())
            shape = (-1, node["heads"], steps, steps)
            ones = torch.ones_like(shares).view(shape)
            ones = ones[tuple(slice(1 if axis in axes else None) for axis in range(4))]
            with torch.random.fork_rng(enabled=way == "drawn once"):
                if way == "drawn once":
                    torch.manual_seed(7)
                return (shares.view(shape) * draw(ones, rate)).view(shares.shape)

        def wrong(shares, rate):
            return shares if way == "the output" else _wrong(way, shares, rate, dropped)

        def forward(values):
            functional.dropout = wrong
            try:
                found = attend(values)
            finally:
                functional.dropout = draw
            return draw(found, node["dropout"]) if way == "the output" else found

        module.forward = forward
        return module

    return layer


def _tensorflow(adapter, way):
    import tensorflow as tf

    def dropped(values, rate):
        if way == "drawn once":
            return tf.nn.experimental.stateless_dropout(values, rate, [7, 7])
        seed = 7 if way == "the same in each layer" else None
        return tf.nn.dropout(values, rate, _shape(adapter, way, values), seed)

    return lambda node, own, values: _wrong(way, values, node["rate"], dropped)


def _jax(adapter, way):
    right = adapter.LAYERS["dropout"]

    def layer(node, own, values):
        def dropped(values, rate):
            key = adapter.jax.random.key(7) if way == "drawn once" else own["key"]
            ones = adapter.jnp.ones(_shape(adapter, way, values))
            return values * right(dict(node, rate=rate), {"key": key}, ones)

        return _wrong(way, values, node["rate"], dropped)

    return layer


def _mxnet(adapter, way):
    def layer(operators, node, own, values):
        def dropped(values, rate):
            axes = _axes(adapter, way, 1 + len(node["in_shape"]))
            return operators.Dropout(values, p=rate, axes=axes)

        return _wrong(way, values, node["rate"], dropped)

    return layer


def _keras3(adapter, way):
    from keras import layers, random

    class Wrong(layers.Dropout):
        def call(self, values, training=False):
            drops = training and self.rate
            return _wrong(way, values, self.rate, self.dropped) if drops else values

        def dropped(self, values, rate):
            seed = 7 if way == "drawn once" else self.seed_generator
            return random.dropout(values, rate, _shape(adapter, way, values), seed)

    seed = 7 if way == "the same in each layer" else None
    return lambda node, own: Wrong(node["rate"], seed=seed)


IN = {"torch": _torch, "tensorflow": _tensorflow, "jax": _jax, "mxnet": _mxnet, "keras3": _keras3}
