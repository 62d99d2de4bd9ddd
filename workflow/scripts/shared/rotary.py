"""The angles by which attention turns queries and keys."""

import numpy as np


def turns(steps, size, base):
    """Returns cosines and sines (steps, size / 2) of rotary attention."""
    angles = np.outer(np.arange(steps), base ** (-np.arange(0, size, 2) / float(size)))
    return np.float32(np.cos(angles)), np.float32(np.sin(angles))
