"""Optimisers of Paddle 1: fluid's own, and in its operators the rules that it has otherwise or not at all.

What was chosen here: docs/adapters/paddle.md.

Plain Python that 3.6 can import: standard library and Paddle.
"""

from paddle import fluid
from paddle.fluid import layers

_ROWS = fluid.core.VarDesc.VarType.SELECTED_ROWS


class _Written(fluid.optimizer.Optimizer):
    """A rule in fluid's operators: `_step` is what a rate of 1 takes from a parameter."""

    averages = ("squares",)

    def __init__(self, wanted):
        super(_Written, self).__init__(wanted["learning_rate"])
        self._wanted = wanted

    def _create_accumulators(self, block, parameters):
        for value in parameters:
            for kind in self.averages:
                self._add_accumulator(kind, value)

    def _append_optimize_op(self, block, param_and_grad):
        value, gradient = param_and_grad
        if gradient.type == _ROWS:
            gradient = layers.sums([0.0 * value, gradient])
        averages = [self._get_accumulator(kind, value) for kind in self.averages]
        rate = self._create_param_lr(param_and_grad)
        step = self._step(value, gradient, *averages)
        layers.sums([value, -1.0 * step * rate], out=value)


class _Adadelta(_Written):
    """Fluid's own takes its step by an average that it has just written."""

    averages = ("squares", "steps")

    def _step(self, value, gradient, squares, steps):
        rho, epsilon = self._wanted["rho"], self._wanted["epsilon"]
        _move(squares, rho, layers.square(gradient))
        step = gradient * layers.sqrt((steps + epsilon) / (squares + epsilon))
        _move(steps, rho, layers.square(step))
        return step


class _RMSProp(_Written):
    """The epsilon of fluid's own stands inside of the root."""

    def _step(self, value, gradient, squares):
        _move(squares, self._wanted["rho"], layers.square(gradient))
        return gradient / (layers.sqrt(squares) + self._wanted["epsilon"])


class _Adam(_Written):
    """The epsilon of fluid's own is added to a root that is not corrected."""

    averages = ("means", "squares")

    def _create_accumulators(self, block, parameters):
        super(_Adam, self)._create_accumulators(block, parameters)
        taken = layers.cast(layers.autoincreased_step_counter(), "float32")
        left = [
            1.0 - layers.elementwise_pow(layers.fill_constant([1], "float32", beta), taken)
            for beta in (self._wanted["beta1"], self._wanted["beta2"])
        ]
        # Once for all parameters: what the averages, which begin at zero, lack.
        root = layers.sqrt(left[1])
        self._raised, self._epsilon = root / left[0], self._wanted["epsilon"] * root

    def _step(self, value, gradient, means, squares):
        _move(means, self._wanted["beta1"], gradient)
        _move(squares, self._wanted["beta2"], layers.square(gradient))
        return means / (layers.sqrt(squares) + self._epsilon) * self._raised


class _AdamW(_Adam):
    """The decay that fluid can extend an optimiser with does not follow the rate."""

    def _step(self, value, *averages):
        step = super(_AdamW, self)._step(value, *averages)
        decays = len(value.shape) > 1
        return layers.sums([step, self._wanted["weight_decay"] * value]) if decays else step


def _move(average, kept, value):
    """A running average, in its place."""
    layers.sums([kept * average, (1 - kept) * value], out=average)


OPTIMISERS = {
    "sgd": lambda wanted: fluid.optimizer.SGD(wanted["learning_rate"]),
    "adadelta": _Adadelta,
    "rmsprop": _RMSProp,
    "momentum": lambda wanted: fluid.optimizer.Momentum(
        wanted["learning_rate"], wanted["momentum"]
    ),
    "adam": _Adam,
    "adamw": _AdamW,
}
