"""MXNet's forward passes: a symbol bound without gradients (`graph`), or operators outside of `autograd` (`eager`)."""

import os

import mxnet as mx

from shared import evaluation

from .. import mxnet as training

TASKS = ("forward",)
KERNELS_OF = ("attention", "conv_transpose", "dense", "dense_within", "layer_norm", "layer_scale")


def build(job):
    """Returns the network of the adapter mxnet, without training."""
    with training.context_of(job) as context:
        return {"graph": _Graph, "eager": _Eager}[job.mode](job, context)


class _Predictor(training.Trainer):
    """What both modes have in common: the arrays, without gradients, and the statistics that a training has left."""

    def __init__(self, job, context):
        super().__init__(job, context)
        self.layers = dict(self.layers, dense=training.dense_in_use)
        for name, values in evaluation.of_network(job.spec).items():
            self.states[name][:] = mx.nd.array(values)
        # Nothing is updated.
        del self.settings["update"]
        self.arrays = dict(self.trained, input=self.data["input"], **self.states)

    def give(self, inputs):
        with self.context:
            training.array_of(self.layout.inputs(inputs), self.data["input"])

    def infer(self, passes):
        with self.context:
            for _ in range(passes):
                self._found = self._pass()
        mx.nd.waitall()

    def outputs(self):
        return self._found.asnumpy()


class _Graph(_Predictor):
    """The whole network as one symbol, whose executor plans its memory once."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        symbol = training.logits(mx.sym, self.layers, self.spec, mx.sym.Variable)
        # oneDNN's fused operators: a convolution with the operators after it. MXNet cannot bind them where two
        # operators have the same argument, such as a recurrent layer's start.
        shares = any(name.endswith("/start") for name in self.states)
        fuses = self.context.device_type == "cpu" and not shares
        # Read when a symbol is bound.
        os.environ["MXNET_SUBGRAPH_BACKEND"] = "MKLDNN" if fuses else "NONE"
        self.settings["subgraphs"] = os.environ["MXNET_SUBGRAPH_BACKEND"]
        self._executor = symbol.bind(
            self.context,
            args={name: self.arrays[name] for name in symbol.list_arguments()},
            grad_req="null",
            aux_states={name: self.arrays[name] for name in symbol.list_auxiliary_states()},
        )

    def _pass(self):
        return self._executor.forward(is_train=False)[0]


class _Eager(_Predictor):
    def _pass(self):
        return training.logits(mx.nd, self.layers, self.spec, self.arrays.__getitem__)
