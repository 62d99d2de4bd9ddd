"""What the worker and an adapter agree on.

An adapter is the framework's own idiomatic, fastest way to train a specification (see
`steptime.networks.specification`). It knows layers and never a network's name. A module `frameworks/<name>/__init__.py`
declares what it has, as plain data that `shared.declarations` reads without importing the framework. What it does not
declare is as in `DEFAULTS` there. Without `LAYERS`, its `build` must refuse what it lacks.

`MODES`       the ways in which it can run ("eager", "graph", "compiled" ...)
`LAYERS`, `LOSSES`, `OPTIMISERS`
              the layer kinds, losses and optimisers that it has: a dict from each to what builds it, or a tuple
`OPTIONS`     {layer kind: the options of such layers that it has}, as `specify` names them
`DEVICES`     the kinds of devices that it has
`PRECISIONS`  {precision: what is set for it on a GPU}; or a tuple, where environment variables are all that is set
`EXCHANGES`   how several devices share gradients: {name: the module of the folder for it}
`TASKS`       the tasks of its trainers: "training" needs `train` and `scores`; in "follow", ranks do what the first
              one says; "turns" shows the steps of each rank, or group, alone
`LAYOUT`      how it wants its arrays (`worker.layout`)
`KERNELS`     the library whose code must be chosen before the framework loads it (`worker.kernels`)
`KERNELS_OF`  the layer kinds that this library computes, if not all
`REASONS`     {what is missing, or "layer" for every layer that is: why, in one sentence}; it becomes the row's reason

`LAYOUT` and `KERNELS` may be dicts of one entry for each mode. A framework may take over what another one
declares: `LAYERS = torch.LAYERS`. Another module of the folder has what `__init__` declares unless it says otherwise;
its `TASKS` are its own. Besides, a module offers, unless its framework's `__init__` does so for it:

`versions()` -> dict
    What a reader must know of the software, as strings: "framework_version", and where they are known "blas", "cuda",
    "cudnn", "build".

`build(job)` -> trainer
    Builds the network of a `Job` with its start values, sets the framework's thread knobs (the environment variables of
    `config/frameworks.yaml` are already set), and puts the batch into the memory of the device. Raises `Unsupported`
    for what the framework cannot do and no declaration can say.

A trainer offers:

`parameters`
    Number of trainable parameters, counted from the framework's own list.
`threads`
    Number of threads that the framework says it uses.
`settings`
    dict of strings: what was chosen of the framework's performance knobs (memory format, compiler ...).
`run(steps)` -> float
    Trains `steps` steps on the batch - forward, loss, backward, update of every parameter - waits until the last update
    is done, and returns the loss of the last step (computed before its update).
`weights(names=None)` -> dict
    The parameters, or those of these names, as float32 arrays in the neutral layout, under the specification's names.
    A few names are read in little time: after the samples, this shows whether `run` had waited for its last update.
`frozen_parameters` (0 where it is missing)
    Number of parameters that the framework also has and holds at zero, such as a redundant second bias of an LSTM.

`statistics()` -> dict
    The running averages of batch normalisation as float32 arrays, "<node>/mean" and "<node>/variance": they begin at 0
    and 1, and each step of `run` adds a share of the mini-batch's. A trainer without it shows none.

For the task "training" also:

`train(batches)` -> float
    Trains one step on each (inputs, labels, learning_rate) of an iterable: arrays in the neutral layout, of the shapes
    that `build` got, which it must have copied when it asks for the next. Waits until the last update is done and
    returns the mean of the losses.
`scores(inputs)` -> array
    What the last layer gives for inputs in the neutral layout, float32 (batch, classes), with dropout off.

Optimisers, at learning rate r, with the gradient g, and a, d and v that begin at 0:

- "sgd": w = w - r g.
- "adadelta" (rho, epsilon): a = rho a + (1 - rho) g^2; s = g sqrt(d + epsilon) / sqrt(a + epsilon);
  d = rho d + (1 - rho) s^2; w = w - r s (Zeiler 2012, with Keras's learning rate).
- "rmsprop" (rho, epsilon): v = rho v + (1 - rho) g^2; w = w - r g / (sqrt(v) + epsilon), as in Keras 2.0.
- "momentum" (momentum): v = momentum v + g; w = w - r v.
- "adam" (beta1, beta2, epsilon): a = beta1 a + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; after t steps
  w = w - r (a / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) (Kingma and Ba 2015).
- "adamw" (beta1, beta2, epsilon, weight_decay): what "adam" does, and beside it w = w - r weight_decay w for each
  parameter of two axes or more, with w as it was before the step (Loshchilov and Hutter 2019).

The layer "dropout": its masks are drawn anew in every step of `run` and `train`, from `job.seed` on. A `rate` of 0
leaves the numbers as they are: without dropout, networks are proven to be the same.
"""

from shared.declarations import DEFAULTS, Unsupported

# The axis of a job that each declaration has the words of.
AXES = {
    "MODES": "mode",
    "DEVICES": "device",
    "PRECISIONS": "precision",
    "EXCHANGES": "exchange",
    "TASKS": "task",
}
OFFERED = ("versions", "build")
# What a trainer has; a task that needs something else says so in its own OFFERED.
TRAINED = ("parameters", "threads", "settings", "run", "weights")


class NotEquivalent(Exception):
    """The framework built or trained another network; the text says what differs."""


class Job(object):
    """What an adapter needs to build a trainer.

    `spec` is the specification; `inputs` and `labels` are the batch, in the adapter's `layout`; `mode`, `precision`,
    `threads`, `device`, `rank`, `ranks` and `exchange` say how it is to run; `seed` is that of dropout.
    """

    def __init__(self, asked, spec, layout, weights, inputs, labels):
        self.spec, self.layout, self.weights = spec, layout, weights
        self.inputs, self.labels = inputs, labels
        self.mode, self.precision = asked["mode"], asked["precision"]
        self.threads, self.device = asked["threads"], asked["device"]
        self.rank, self.ranks, self.exchange = asked["rank"], asked["ranks"], asked["exchange"]
        self.seed = spec.get("seed", 0)
        self.learning_rate = spec["optimiser"]["learning_rate"]

    def take(self, name):
        """Returns a parameter's start value in the adapter's layout and lets go of it: large ones take memory."""
        return self.layout.enter(name, self.weights.pop(name))

    def own(self, node):
        """Returns {role: name} of a node's parameters, in the specification's order."""
        names = [name for name in self.layout.names if name.split("/")[0] == node["name"]]
        return {name.split("/")[1]: name for name in names}


def require(adapter, has, job):
    """Raises Unsupported, with one sentence, where an adapter does not declare what a job asks for."""
    reasons, spec, axes = has["REASONS"], job["spec"], dict(job, task=task_of(job))
    asked = [(name, axis, axes[axis]) for name, axis in sorted(AXES.items())]
    asked.append(("LOSSES", "loss", spec.get("loss", DEFAULTS["LOSSES"][0])))
    asked.append(("OPTIMISERS", "optimiser", spec["optimiser"]["name"]))
    # Single operations are of no layer.
    if has["LAYERS"] is not None and not adapter.endswith(".parts"):
        asked += [("LAYERS", "layer", node["op"]) for node in spec["nodes"]]
    for name, kind, wanted in asked:
        if wanted in has[name]:
            continue
        missing = "the {} '{}' is not written here, since no grid asks for it".format(kind, wanted)
        if name in AXES:
            missing = "the adapter {} has no {} '{}'; it has {}"
            listed = ", ".join(has[name]) or "none"
            missing = missing.format(adapter, kind, wanted, listed)
        raise Unsupported(reasons.get(wanted) or reasons.get(kind) or missing)
    for wanted in spec.get("options", ()):
        kind, _, option = wanted.partition(" ")
        if option not in has["OPTIONS"].get(kind, ()):
            missing = (
                "the option '{}' of the layer '{}' is not written here, since no grid asks for it"
            )
            raise Unsupported(missing.format(option, kind))


def task_of(job):
    """Returns the task of a job; for a proof, the task whose networks it proves."""
    return job.get("proves") or job["task"]


def complete(made, what, wanted):
    """Raises NotImplementedError where `made`, an adapter's `what`, lacks something that it must have."""
    missing = ", ".join(repr(name) for name in wanted if not hasattr(made, name))
    if missing:
        raise NotImplementedError("{} has no {}".format(what, missing))


def of_mode(value, mode):
    """Returns a declaration's value in a mode."""
    return value[mode] if isinstance(value, dict) and mode in value else value
