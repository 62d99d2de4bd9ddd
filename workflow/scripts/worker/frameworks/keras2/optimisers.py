"""Optimisers of Keras 2.0: its own, and its Adam with the epsilon beside the corrected root.

What was chosen here: docs/adapters/keras2.md.

Plain Python that 3.6 can import: standard library and Keras.
"""

from keras import backend, optimizers


class _Adam(optimizers.Adam):
    """Keras adds its epsilon to a root that is not corrected."""

    def __init__(self, lr, weight_decay=0.0, **own):
        super(_Adam, self).__init__(lr=lr, **own)
        self._weight_decay = weight_decay

    def get_updates(self, params, constraints, loss):
        gradients, now = self.get_gradients(loss, params), self.iterations + 1.0
        # The averages begin at zero.
        first, second = (1.0 - backend.pow(beta, now) for beta in (self.beta_1, self.beta_2))
        self.updates = [backend.update(self.iterations, now)]
        for value, gradient in zip(params, gradients):
            shape = backend.get_variable_shape(value)
            means, squares = backend.zeros(shape), backend.zeros(shape)
            mean = self.beta_1 * means + (1.0 - self.beta_1) * gradient
            square = self.beta_2 * squares + (1.0 - self.beta_2) * backend.square(gradient)
            step = mean / first / (backend.sqrt(square / second) + self.epsilon)
            if self._weight_decay and len(shape) > 1:
                step = step + self._weight_decay * value
            self.updates += [
                backend.update(means, mean),
                backend.update(squares, square),
                backend.update(value, value - self.lr * step),
            ]
        return self.updates


# The maker of each, and Keras's words for what it takes.
_MADE = {
    "sgd": (optimizers.SGD, {}),
    "adadelta": (optimizers.Adadelta, {"rho": "rho", "epsilon": "epsilon"}),
    "rmsprop": (optimizers.RMSprop, {"rho": "rho", "epsilon": "epsilon"}),
    "momentum": (optimizers.SGD, {"momentum": "momentum"}),
    "adam": (_Adam, {"beta1": "beta_1", "beta2": "beta_2", "epsilon": "epsilon"}),
}
_MADE["adamw"] = _Adam, dict(_MADE["adam"][1], weight_decay="weight_decay")


def made(mode, wanted):
    """The optimiser and the variable of its rate: Keras's own, but for SGD on TensorFlow, which has one of its own.

    On TensorFlow, Keras lets a weight be updated while the gradient of the layer's input still reads it, and the layers
    below get the gradient of another step. TensorFlow's own optimiser waits; Keras's are made to.
    """
    rate, name = wanted["learning_rate"], wanted["name"]
    if name == "sgd" and mode == "tensorflow":
        import tensorflow as tf

        rate = backend.variable(rate)
        return optimizers.TFOptimizer(tf.train.GradientDescentOptimizer(rate)), rate
    kind, words = _MADE[name]
    optimiser = kind(lr=rate, **{word: wanted[key] for key, word in words.items()})
    if mode == "tensorflow":
        optimiser.get_gradients = _all_gradients
    return optimiser, optimiser.lr


def _all_gradients(loss, parameters):
    """Gradients that are handed on when all of them are there."""
    import tensorflow as tf

    return tf.tuple(tf.gradients(loss, parameters))
