"""The precisions that products can have, one record each.

What a framework sets for a precision is in its folder: the table `PRECISIONS` of `worker/frameworks/<name>`. A record
says what a GPU's libraries are asked for, and how far off a right framework may be at full size:

`bits`         bits of a factor, after its first one, that products keep
`bytes`        bytes of a number in memory
`devices`      kinds of devices that have this precision
`cublas`       cuBLAS's numbers for the type of the factors (library_types.h) and for its arithmetic (cublas_api.h)
`variables`    environment variables in place of those that keep products in float32, whatever a framework asks for
`significand`  bits to which one run rounds every layer's output and gradient, to show what rounding does to a step.
               Sums of float32 err by some of its last three bits. A GPU may cut off the factors of TF32 where
               it could round them, which costs one bit.
`share`        limits are at least so many times what that does. Noise of float32 turns few signs in front of a
               ReLU, by chance; noise of TF32 turns many, in every framework about as many
`loss`         least limit of a loss, as a share of it
`change`       least limit of a gradient, as a share of its length
`fall`         least limit of the fall of a loss, which is as exact as the step that made it
`least`        by how much gradients must be off in the median: where they are off by less, products kept more bits
"""

import collections

Precision = collections.namedtuple(
    "Precision", "bits bytes devices cublas variables significand share loss change fall least"
)

USUAL = "float32"
# Four times what cutting off takes from one factor, at the most.
_TF32 = 4 * 2.0**-10
_BFLOAT16 = 4 * 2.0**-7
_ASKED = {"NVIDIA_TF32_OVERRIDE": "1", "CUPY_TF32": "1"}

PRECISIONS = {
    # Right frameworks' losses are within 1.3e-7 of float64. Their gradients are off by less than 2e-6 of their length;
    # with one layer in TF32 they are off by more than 2e-4 (benchmarks/full_size).
    "float32": Precision(23, 4, ("cpu", "gpu"), (0, 69), {}, 21, 8.0, 4e-7, 3e-5, 1e-3, 0.0),
    "tf32": Precision(10, 4, ("gpu",), (0, 77), _ASKED, 10, 4.0, _TF32, _TF32, _TF32, 0.0),
    # Gradients of one layer in float32 do not move the median; those of a step in float32 are all below 3e-5.
    "bfloat16": Precision(
        7, 2, ("cpu",), (14, 68), {}, 8, 4.0, _BFLOAT16, _BFLOAT16, _BFLOAT16, 2.0**-12
    ),
}


def marked(precision, before):
    """Returns a precision's name after `before`, for names of things in other than the usual precision; else ""."""
    return "" if precision == USUAL else before + precision
