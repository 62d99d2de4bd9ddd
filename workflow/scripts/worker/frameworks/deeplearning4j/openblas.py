"""Loads Deeplearning4j's OpenBLAS without Java, so that `worker.kernels` sees which code it takes."""

import ctypes
import sys
from pathlib import Path

(LIBRARY,) = Path(sys.prefix).glob("javacpp/openblas-*/org/bytedeco/openblas/*/libopenblas.so.0")
ctypes.CDLL(str(LIBRARY))
