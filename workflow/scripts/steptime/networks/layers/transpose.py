"""A sequence (steps, features) as (features, steps): the next layers mix steps."""

from steptime.networks.layers import EMBEDDING, WORDS, LayerKind


def shape(node, source):
    steps, features = source
    return [features, steps]


def forward(node, own, x):
    return x.swapaxes(1, 2), lambda dy: ([dy.swapaxes(1, 2)], {})


LAYER = LayerKind(
    forward,
    takes=("sequence",),
    shape=shape,
    example=(WORDS, [EMBEDDING, "transpose", {"dense": {"units": 3}}, "mean_steps"]),
)
