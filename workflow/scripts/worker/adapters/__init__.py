"""Adapters: one module per framework API, each of which can build and train every network of the catalogue.

An adapter is the framework's own idiomatic, fastest way to run a specification (see `worker.networks`). It knows layers
and never a network's name. A module `adapters/<name>.py` offers:

`MODES`
    The names of the ways in which it can run ("eager", "graph", "compiled", "xla" ...); the first is the default.

`versions()` -> dict
    What a reader must know of the software, as strings: "framework_version", and where they are known "blas", "cuda",
    "cudnn", "build".

`build(spec, weights, inputs, labels, mode, threads, device)` -> trainer
    Sets the framework's thread knobs (the environment variables of `config/frameworks.yaml` are already set), builds
    the network with the start values `weights` ({name: float32 array}, neutral layout) and puts the batch into the
    memory of `device` ("cpu" or "gpu"). May free or reuse the arrays that it is given. The learning rate is
    `spec["optimiser"]["learning_rate"]`. Raises `Unsupported` for what the framework cannot do.

A trainer offers:

`parameters`
    Number of trainable parameters, counted from the framework's own list.
`frozen_parameters`
    Number of parameters that the framework carries and holds at zero (a redundant second LSTM bias), counted too.
`threads`
    Number of threads that the framework says it uses.
`settings`
    dict of strings: what was chosen of the framework's performance knobs (memory format, compiler ...).
`run(steps)` -> float
    Trains `steps` steps on the batch - forward, loss, backward, SGD update of every parameter - waits until the last
    update is done, and returns the loss of the last step (computed before its update).
`weights(names=None)` -> dict
    The parameters, or those of these names, as float32 arrays in the neutral layout, under the specification's names.
    A few names are read in little time: after the samples, this shows whether `run` had waited for its last update.

Modules and this file are plain Python that 3.6 can import: standard library, numpy and the framework.
"""


class Unsupported(Exception):
    """The framework cannot do what the specification asks for; the text is the reason, in one sentence."""
