"""Matrix products and convolutions of PyTorch, one at a time (see `worker.parts`)."""

import torch
from torch.nn import functional

from shared.operations import latest, repeated

from ...contract import Unsupported
from ...settings import torch as torch_settings

TASKS = ("products", "convolutions")
PRECISIONS = ("float32", "tf32")


def start(job):
    """Sets the threads, and the library of PyTorch's products."""
    torch.set_num_threads(job["threads"])
    return {"threads": torch.get_num_threads(), "settings": torch_settings.configure_cpu()}


def build(part):
    if part.kind == "convolution":
        return _convolution(part)
    left, right = (
        _tensor(matrix).t() if turned else _tensor(matrix)
        for matrix, turned in zip((part.left, part.right), part.turned)
    )
    result = torch.empty(left.shape[0], right.shape[1])
    if not part.calls:
        return repeated(lambda: torch.mm(left, right, out=result), result.numpy)
    weights = _tensor(part.weights)
    if part.calls == 1:
        return repeated(
            lambda: weights.addmm_(left, right, beta=1, alpha=-part.rate), weights.numpy
        )

    def update():
        torch.mm(left, right, out=result)
        weights.add_(result, alpha=-part.rate)

    return repeated(update, weights.numpy)


def _tensor(values):
    # Numpy's memory starts 16 bytes behind a cache line.
    return torch.from_numpy(values).clone()


def _convolution(part):
    if part.way in ("winograd", "fft") and part.way != _nnpack_takes(part):
        raise Unsupported("NNPACK chooses by the sizes, and takes {}".format(_nnpack_takes(part)))
    images, weights = _tensor(part.inputs), _tensor(part.weights)
    step = _WAYS[part.way](images, weights, part.stride, part.padding)
    convolve = latest(step, lambda found: found.contiguous().numpy())
    with torch.no_grad():
        convolve.run(1)
    return convolve


def _own_choice(images, weights, stride, padding):
    """Convolves as the adapter does."""
    if hasattr(torch, "channels_last"):
        images = images.contiguous(memory_format=torch.channels_last)
        weights = weights.contiguous(memory_format=torch.channels_last)
    return lambda: functional.conv2d(images, weights, None, stride, padding)


def _direct(images, weights, stride, padding):
    """Convolves by oneDNN, which PyTorch asks for its direct algorithm."""
    around, steps = (padding,) * 2, (stride,) * 2
    return lambda: torch.mkldnn_convolution(images, weights, None, around, steps, (1, 1), 1)


def _im2col(images, weights, stride, padding):
    """Convolves by PyTorch's own code, which unfolds the images and multiplies."""
    window, steps, around = weights.shape[2:], (stride,) * 2, (padding,) * 2
    return lambda: torch._C._nn.thnn_conv2d(images, weights, window, None, steps, around)


def _nnpack_takes(part):
    """Names NNPACK's algorithm, by the rule of its src/convolution-output.c: how many tiles cover the result."""
    if part.stride != 1:
        raise Unsupported("NNPACK transforms no convolution that has a stride")
    if not torch._nnpack_available():
        raise Unsupported("NNPACK does not run on this processor")
    kernel = part.weights.shape[2]
    small, large = (
        [-(-extent // (tile - kernel + 1)) for extent in part.shape[2:]] for tile in (8, 16)
    )
    few = kernel == 3 and small[0] * small[1] <= 4 * large[0] * large[1]
    return "winograd" if few else "fft"


def _nnpack(images, weights, stride, padding):
    """Convolves by Winograd's transform of tiles of 8 x 8, or Fourier's of tiles of 8 x 8 or 16 x 16."""
    return lambda: torch._nnpack_spatial_convolution(images, weights, None, (padding,) * 2)


_WAYS = {
    "own choice": _own_choice,
    "direct": _direct,
    "im2col": _im2col,
    "winograd": _nnpack,
    "fft": _nnpack,
}
