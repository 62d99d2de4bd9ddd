"""Matrix products and convolutions of PaddlePaddle 2 and later, one at a time (see `worker.parts`)."""

import os

import paddle
from paddle.nn import functional

from shared.operations import latest

from ...contract import Unsupported

TASKS = ("products", "convolutions")


def start(job):
    """Paddle reads its thread number from the environment."""
    paddle.set_device("cpu")
    return {"threads": int(os.environ["OMP_NUM_THREADS"]), "settings": {}}


def build(part):
    if part.kind == "convolution":
        return _convolution(part)
    left, right = paddle.to_tensor(part.left), paddle.to_tensor(part.right)

    def multiply():
        return paddle.matmul(left, right, *part.turned)

    if not part.calls:
        return latest(multiply)
    weights = [paddle.to_tensor(part.weights)]
    if part.calls == 1:
        raise Unsupported("PaddlePaddle's product (addmm) takes no factor that lies transposed")

    def update():
        weights[0].subtract_(multiply() * part.rate)
        return weights[0]

    return latest(update)


def _convolution(part):
    if part.way != "own choice":
        raise Unsupported("PaddlePaddle chooses the algorithm of a convolution by itself")
    images, weights = paddle.to_tensor(part.inputs), paddle.to_tensor(part.weights)
    return latest(
        lambda: functional.conv2d(images, weights, stride=part.stride, padding=part.padding)
    )
