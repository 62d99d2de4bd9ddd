"""A GPU's stand-in for each adapter: another device that is here takes its name, so that every line of an adapter that
is for GPUs runs, and a wrong name, a wrong argument or a value on another device is seen.

    python devices.py ADAPTER < jobs.json

Runs in a framework's environment, with the worker on its path. Collects what the proof of each job needs into its
`output`, and prints the names of the functions for GPUs that were called, as JSON. Those are wrapped, so that they must
exist and take the arguments that they are given.
"""

import inspect
import json
import os
import sys

CALLED = []


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

    torch.nn.Module.to = to
    torch.Tensor.cuda = lambda values: values

    class Event:
        def record(self):
            CALLED.append("record")

        def synchronize(self):
            assert CALLED.pop() == "record"
            CALLED.append("synchronize")

    torch.cuda.Event = Event


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
    tensorflow.device = lambda name: real(name.replace("/GPU:0", "/CPU:1"))


def jax():
    """The second of two host devices."""
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = flags + " --xla_force_host_platform_device_count=2"
    import jax

    real = jax.devices
    jax.devices = lambda kind=None: real("cpu")[1:] if kind == "gpu" else real(kind)
    noted(jax, "default_backend", "gpu")


def mxnet():
    """The second of MXNet's contexts of the CPU, whose arrays no operator mixes with those of the first."""
    import mxnet

    noted(mxnet.context, "num_gpus", 1)
    mxnet.gpu = lambda index=0: mxnet.cpu(index + 1)


def tensorflow1():
    """The CPU, in a session that lists a GPU."""
    import tensorflow

    class Gpu:
        device_type = "GPU"

    noted(tensorflow.Session, "list_devices", [Gpu()])


def cntk():
    """The CPU, under the name of the first GPU."""
    import cntk

    class Gpu:
        def type(self):
            return cntk.device.DeviceKind.GPU

    noted(cntk.device, "all_devices", [Gpu()])
    noted(cntk.device, "gpu", cntk.device.cpu())


def paddle():
    """The CPU, under the name of the first GPU."""
    import paddle

    real = paddle.set_device
    noted(paddle.device.cuda, "device_count", 1)
    noted(paddle.device.cuda, "synchronize")
    noted(paddle.base.core, "set_cublas_switch", checked=False)
    noted(paddle.base.core, "set_cudnn_switch", checked=False)
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


def main():
    """Command line."""
    globals()[sys.argv[1]]()
    from worker import building
    from worker.tasks import proof

    for job in json.load(sys.stdin):
        loaded = building.load(job)
        proof.write(job["output"], proof.collect(loaded.adapter, job))
    print(json.dumps(sorted(set(CALLED))))


if __name__ == "__main__":
    main()
