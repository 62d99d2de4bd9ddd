"""Sets up PyTorch before a network is built: the library of its matrix products, and their precision."""

import torch

from .. import kernels, rounding
from ..contract import Unsupported

# Before 2.0: an MKL whose code must be chosen, and gradients that are not in memory as their weights are.
OLD = not hasattr(torch, "compile")


def configure_cpu():
    """Gives matrix products to oneDNN where it keeps them in float32.

    MKL, PyTorch's own choice, uses only half the speed of a processor with AVX-512 that is not Intel's. PyTorch takes
    oneDNN only with permission to round to bfloat16, which oneDNN uses only where there is AMX. So a value whose last
    bit counts is multiplied, and the permission is taken back where the bit is lost.
    """
    matmul = getattr(getattr(torch.backends, "mkldnn", None), "matmul", None)
    if OLD:
        # MKL looks when it is first asked for something, which is later.
        return {"matmul": "PyTorch's choice", "kernels": kernels.choose("mkl")}
    if not hasattr(matmul, "fp32_precision"):
        return {"matmul": "PyTorch's choice"}
    matmul.fp32_precision = "bf16"
    probe = torch.full((64, 256), 1 + 2.0**-23)
    if torch.equal(torch.mm(probe, torch.eye(256)), probe):
        return {"matmul": "oneDNN in float32 (fp32_precision bf16, found to lose no bit)"}
    matmul.fp32_precision = "ieee"
    return {"matmul": "PyTorch's choice"}


def in_bfloat16(function):
    """Makes a function compute in PyTorch's mixed precision, and return float32."""
    mixed = torch.autocast("cpu", torch.bfloat16)(function)
    return lambda *given: mixed(*given).float()


def configure_bfloat16():
    """Returns settings of mixed precision on CPUs; raises NotEquivalent where its products keep other bits."""
    if not hasattr(torch, "autocast"):
        raise Unsupported("PyTorch {} has no mixed precision on CPUs".format(torch.__version__))
    product = in_bfloat16(torch.mm)
    shown = rounding.in_bfloat16(
        lambda left, right: product(torch.from_numpy(left), torch.from_numpy(right)).numpy()
    )
    return dict(shown, autocast="bfloat16")


def _product_on_gpu(left, right):
    left, right = torch.from_numpy(left).cuda(), torch.from_numpy(right).cuda()
    return torch.mm(left, right).cpu().numpy()


def configure_cuda(precision, asked):
    """Lets cuDNN time its algorithms, and sets what a precision needs of the libraries (`asked`)."""
    torch.backends.cudnn.benchmark = True
    for library in (torch.backends.cudnn, getattr(torch.backends.cuda, "matmul", None)):
        if hasattr(library, "allow_tf32"):
            library.allow_tf32 = asked["allow_tf32"]
    rounding.require(precision, _product_on_gpu)
    return {
        "cudnn_benchmark": "on",
        "tf32": "on" if asked["allow_tf32"] else "off",
        "synchronisation": "an event behind the last step",
    }
