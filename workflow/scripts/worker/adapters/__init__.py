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

What follows is optional. A network that needs what an adapter lacks is `unsupported` there, and nothing else changes.

`OPTIMISERS`
    Names of the optimisers of `spec["optimiser"]` that it has; where there is no such list, ("sgd",). At learning rate
    r, with the gradient g, and a, d and v that begin at 0:

    - "adadelta" (rho, epsilon): a = rho a + (1 - rho) g^2; s = g sqrt(d + epsilon) / sqrt(a + epsilon);
      d = rho d + (1 - rho) s^2; w = w - r s (Zeiler 2012, with Keras's learning rate).
    - "rmsprop" (rho, epsilon): v = rho v + (1 - rho) g^2; w = w - r g / (sqrt(v) + epsilon), as in Keras 2.0.

The layer "dropout"
    Its masks are drawn anew in every step of `run` and `train`, from `spec["seed"]` on where there is one. A `rate` of
    0 leaves the numbers as they are: without dropout, networks are proven to be the same.

`trainer.train(batches)` -> float
    Trains one step on each (inputs, labels, learning_rate) of an iterable: arrays like those that `build` got, of the
    same shapes, which it must have copied when it asks for the next. Waits until the last update is done and returns
    the mean of the losses.

`trainer.scores(inputs)` -> array
    What the last layer gives for inputs of the shape that `build` got, float32 (batch, classes), with dropout off.

Modules and this file are plain Python that 3.6 can import: standard library, numpy and the framework.
"""

from ..contract import Unsupported

__all__ = ["Unsupported"]
