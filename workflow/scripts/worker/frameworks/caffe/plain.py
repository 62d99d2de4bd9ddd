"""Caffe as its own tutorial has it: `SGDSolver`, with OpenBLAS's own choice of code; no switch turned."""

import os
import tempfile

import caffe as library
from caffe.proto import caffe_pb2

from .. import caffe

MODES = ("plain",)
KERNELS = ""


def build(job):
    """Returns a trainer of the specification. The BLAS reads its thread number from the environment."""
    return caffe.build(job, _Trainer)


class _Trainer(caffe.Trainer):
    settings = {"plain": "SGDSolver"}

    def load(self, net, rate):
        wanted = caffe_pb2.SolverParameter(base_lr=rate, lr_policy="fixed", type="SGD")
        wanted.net_param.CopyFrom(net)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "solver.prototxt")
            with open(path, "w") as file:
                file.write(str(wanted))
            self._solver = library.SGDSolver(path)
        return self._solver.net

    def run(self, steps):
        self._solver.step(steps)
        return float(self.net.blobs["loss"].data)
