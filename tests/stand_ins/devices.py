"""A GPU's stand-in for each adapter: another device that is here takes its name, so that every line of an adapter that
is for GPUs runs, and a wrong name, a wrong argument or a value on another device is seen.

    python devices.py ADAPTER [elsewhere] < jobs.json
    python devices.py ADAPTER -m worker PIPE < job.json

Runs in a framework's environment, with the worker on its path. Collects what the proof of each job needs into its
`output`, and prints the names of the functions for GPUs that were called, as JSON. Those are wrapped, so that they must
exist and take the arguments that they are given. With `-m worker` it is a worker, such as one of several ranks. Each
call is printed as a line, "called NAME".
"""

import inspect
import json
import os
import runpy
import sys


class Called(list):
    """Names, which are printed as they come: a worker ends without a last word."""

    def append(self, name):
        print("called " + name, flush=True)
        super().append(name)


CALLED = Called()
# Whether products are rounded to TF32, as the framework itself says.
ROUNDED = {}


def noted(owner, name, result=None, checked=True):
    """In place of a function that needs a GPU: notes that an adapter called it, with arguments that the real one takes.
    Whoever else asks gets the real answer.
    """
    real = getattr(owner, name)

    def stand_in(*arguments, **named):
        if not sys._getframe(1).f_globals["__name__"].startswith("worker."):
            return real(*arguments, **named)
        if checked:
            inspect.signature(real).bind(*arguments, **named)
        CALLED.append(name)
        return result

    setattr(owner, name, stand_in)


def torch():
    """The CPU, under the name of CUDA's device."""
    import torch

    real = torch.nn.Module.to
    noted(torch.cuda, "is_available", True)
    noted(torch.cuda, "synchronize")

    def to(module, *place, **named):
        return real(module, *("cpu" if each == "cuda" else each for each in place), **named)

    ROUNDED["torch"] = lambda: (
        torch.backends.cuda.matmul.allow_tf32 and torch.backends.cudnn.allow_tf32
    )
    torch.nn.Module.to = to
    torch.Tensor.cuda = lambda values: values

    class Event:
        def record(self):
            CALLED.append("record")

        def synchronize(self):
            assert CALLED.pop() == "record"
            CALLED.append("synchronize")

    torch.cuda.Event = Event
    join = torch.distributed.init_process_group

    def over_gloo(backend, **named):
        CALLED.append(backend)
        return join({"nccl": "gloo"}[backend], **named)

    torch.distributed.init_process_group = over_gloo


def tensorflow():
    """The second of two logical CPUs: what an adapter leaves on the first one is refused by TensorFlow."""
    import tensorflow

    config, real = tensorflow.config, tensorflow.device
    (cpu,) = config.list_physical_devices("CPU")
    parts = [config.LogicalDeviceConfiguration() for _ in range(2)]
    config.set_logical_device_configuration(cpu, parts)
    listed = config.list_physical_devices
    config.list_physical_devices = lambda kind=None: [cpu] if kind == "GPU" else listed(kind)
    noted(config.experimental, "set_memory_growth")
    ROUNDED["tensorflow"] = config.experimental.tensor_float_32_execution_enabled
    tensorflow.device = lambda name: real(name.replace("/GPU:0", "/CPU:1"))
    collectives = tensorflow.distribute.experimental
    ring = collectives.CommunicationOptions(
        implementation=collectives.CommunicationImplementation.RING
    )

    class ByRing(tensorflow.distribute.MultiWorkerMirroredStrategy):
        def __init__(self, communication_options):
            CALLED.append(communication_options.implementation.name)
            super().__init__(communication_options=ring)

    tensorflow.distribute.MultiWorkerMirroredStrategy = ByRing


def jax():
    """The second of two host devices, of each process."""
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = flags + " --xla_force_host_platform_device_count=2"
    import jax

    real = jax.devices, jax.local_devices

    def devices(kind=None):
        return [each for each in real[0]("cpu") if each.id % 2] if kind == "gpu" else real[0](kind)

    def local_devices(backend=None):
        return real[1](backend="cpu")[1:] if backend == "gpu" else real[1](backend=backend)

    jax.devices, jax.local_devices = devices, local_devices
    noted(jax, "default_backend", "gpu")
    ROUNDED["jax"] = lambda: jax.config.jax_default_matmul_precision == "default"


def mxnet():
    """The second of MXNet's contexts of the CPU, whose arrays no operator mixes with those of the first."""
    import mxnet

    noted(mxnet.context, "num_gpus", 1)
    mxnet.gpu = lambda index=0: mxnet.cpu(index + 1)
    # It has no switch of its own.
    ROUNDED["mxnet"] = lambda: os.environ.get("NVIDIA_TF32_OVERRIDE") == "1"


def tensorflow1():
    """The second of two CPUs, in a session that lists a GPU."""
    import tensorflow

    class Gpu:
        device_type = "GPU"

    noted(tensorflow.Session, "list_devices", [Gpu()])
    settings, real = tensorflow.ConfigProto, tensorflow.device
    tensorflow.ConfigProto = lambda **named: settings(device_count={"CPU": 2}, **named)
    places = {"/gpu:0": "/cpu:1"}
    tensorflow.device = lambda name: real(places.get(name, name))
    if "elsewhere" in sys.argv:
        add = tensorflow.nn.bias_add

        def on_the_host(*arguments):
            with real("/cpu:0"):
                return add(*arguments)

        tensorflow.nn.bias_add = on_the_host


def cntk():
    """The CPU, under the name of the first GPU."""
    import cntk

    class Gpu:
        def type(self):
            return cntk.device.DeviceKind.GPU

    noted(cntk.device, "all_devices", [Gpu()])
    noted(cntk.device, "gpu", cntk.device.cpu())


def chainer():
    """NumPy under the name of CuPy, which is not asked for memory of a GPU."""
    import numpy
    from chainer.backends import cuda

    noted(cuda, "check_cuda_available")
    cuda.cupy = numpy

    def to_gpu(array):
        CALLED.append("to_gpu")
        return array

    cuda.to_gpu = to_gpu
    ROUNDED["chainer"] = lambda: os.environ.get("CUPY_TF32") == "1"


def paddle():
    """The CPU, under the name of the first GPU."""
    import paddle

    real = paddle.set_device
    noted(paddle.device.cuda, "device_count", 1)
    noted(paddle.device.cuda, "synchronize")
    switches = [paddle.base.core.set_cublas_switch, paddle.base.core.set_cudnn_switch]
    states = dict.fromkeys(each.__name__ for each in switches)

    def switch(name):
        def stand_in(rounded):
            CALLED.append(name)
            states[name] = rounded

        return stand_in

    for name in states:
        setattr(paddle.base.core, name, switch(name))
    ROUNDED["paddle"] = lambda: all(states.values())
    paddle.set_device = lambda name: real({"gpu:0": "cpu"}[name])


def keras3():
    """That of its backend."""
    backend = os.environ["KERAS_BACKEND"]
    globals()[backend]()
    if backend == "torch":
        from keras.src.backend.torch import core

        noted(core, "get_device", "cuda")


def fastai():
    """PyTorch's."""
    torch()


def replace(adapter):
    """Puts the stand-in in place of an adapter's GPU."""
    globals()[adapter]()
    from shared.precisions import PRECISIONS
    from worker import rounding

    real = rounding.kept_bits

    def kept_bits(product):
        """What of the real product is left where the framework says that it may be rounded."""
        found = real(product)
        (rounded,) = ROUNDED.values()
        return min(found, PRECISIONS["tf32"].bits) if rounded() else found

    rounding.kept_bits = kept_bits


def main():
    """Command line."""
    replace(sys.argv[1])
    from shared.precisions import PRECISIONS
    from worker import building
    from worker.tasks import proof

    if "-m" in sys.argv:
        sys.argv = sys.argv[-2:]
        runpy.run_module("worker", run_name="__main__")
        return
    for job in json.load(sys.stdin):
        os.environ.update(PRECISIONS[job["precision"]].variables)
        loaded = building.load(job)
        proof.write(job["output"], proof.collect(loaded.adapter, job))
    print(json.dumps(sorted(set(CALLED))))


if __name__ == "__main__":
    main()
