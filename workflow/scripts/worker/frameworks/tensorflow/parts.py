"""Matrix products and convolutions of TensorFlow 2, one at a time (see `worker.parts`)."""

import tensorflow as tf

from shared.operations import Operation, latest

from ...contract import Unsupported
from . import LAYERS

PRECISIONS = ("float32", "tf32")
TASKS = ("products", "convolutions")


def start(job):
    """Sets the threads."""
    tf.config.threading.set_intra_op_parallelism_threads(job["threads"])
    tf.config.threading.set_inter_op_parallelism_threads(1)
    threads = tf.config.threading.get_intra_op_parallelism_threads()
    return {"threads": threads, "settings": {"called": "one operator at a time"}}


def build(part):
    if part.kind == "convolution":
        return _convolution(part)
    left, right = tf.constant(part.left), tf.constant(part.right)

    def multiply():
        return tf.matmul(left, right, *part.turned)

    if not part.calls:
        return latest(multiply)
    if part.calls == 1:
        raise Unsupported("TensorFlow has no product that adds to what is there")
    weights = tf.Variable(part.weights)

    def update():
        tf.raw_ops.ResourceApplyGradientDescent(
            var=weights.handle, alpha=part.rate, delta=multiply()
        )
        return weights

    return latest(update)


def _convolution(part):
    if part.way == "fft":
        return _fft(part)
    if part.way != "own choice":
        raise Unsupported(
            "TensorFlow takes oneDNN or Eigen for the whole process, and neither lets one choose"
        )
    images = tf.transpose(tf.constant(part.inputs), [0, 2, 3, 1])
    weights = tf.transpose(tf.constant(part.weights), [2, 3, 1, 0])
    operation = latest(lambda: LAYERS["conv"](part.node, {"weight": weights}, images))
    return Operation(operation.run, lambda: operation.value().transpose(0, 3, 1, 2))


def _fft(part):
    """Convolves by TensorFlow's own transforms of whole images; a product for each frequency adds up the channels."""
    images, weights = tf.constant(part.inputs), tf.constant(part.weights)
    extent = [each + 2 * part.padding for each in part.inputs.shape[2:]]
    around = [[0, 0], [0, 0], [part.padding] * 2, [part.padding] * 2]
    rows, columns = part.shape[2:]

    @tf.function
    def convolve(images, weights):
        spectra = tf.signal.rfft2d(tf.pad(images, around), extent)
        kernels = tf.signal.rfft2d(weights, extent)
        # (row, column, sample, from) and (row, column, to, from).
        mixed = tf.matmul(
            tf.transpose(spectra, [2, 3, 0, 1]), tf.transpose(kernels, [2, 3, 0, 1]), adjoint_b=True
        )
        found = tf.signal.irfft2d(tf.transpose(mixed, [2, 3, 0, 1]), extent)
        step = part.stride
        return found[:, :, : step * rows : step, : step * columns : step]

    return latest(lambda: convolve(images, weights))
