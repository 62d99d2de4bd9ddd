"""TensorFlow 2: raw `tf.nn` operations traced into a graph, with gradients by `tf.GradientTape`."""

import numpy as np
import tensorflow as tf

from ..networks import BATCH_NORM_EPSILON

MODES = ("graph", "xla", "eager")


def versions():
    return {"framework_version": tf.__version__, "blas": "Eigen, oneDNN"}


def build(spec, weights, inputs, labels, mode, threads, device):
    if tf.config.threading.get_intra_op_parallelism_threads() != threads:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    with tf.device("/GPU:0" if device == "gpu" else "/CPU:0"):
        return Trainer(spec, weights, inputs, labels, mode, threads)


def _to_native(name, shape_of, values):
    role = name.split("/")[1]
    if values.ndim == 4:
        return np.ascontiguousarray(values.transpose(2, 3, 1, 0))
    if role in ("input", "recurrent", "bias") and name.startswith("lstm"):
        # BlockLSTM's gates are i c f o.
        i, f, g, o = np.split(values, 4, axis=-1)
        return np.concatenate([i, g, f, o], axis=-1)
    return values


def _from_native(name, values):
    if values.ndim == 4:
        return values.transpose(3, 2, 0, 1)
    if name.startswith("lstm"):
        i, g, f, o = np.split(values, 4, axis=-1)
        return np.concatenate([i, f, g, o], axis=-1)
    return values


class Trainer(object):
    frozen_parameters = 0

    def __init__(self, spec, weights, inputs, labels, mode, threads):
        self.spec, self.mode = spec, mode
        self.settings = {"memory_format": "NHWC", "mode": mode}
        self.threads = tf.config.threading.get_intra_op_parallelism_threads()
        self.rate = spec["optimiser"]["learning_rate"]
        self.flat = {}
        shapes = {n["name"]: n for n in spec["nodes"]}
        for n in spec["nodes"]:
            if n["op"] == "dense" and n["inputs"][0] in shapes and shapes[n["inputs"][0]]["op"] == "flatten":
                self.flat[n["name"] + "/weight"] = shapes[n["inputs"][0]]["in_shape"]
        self.variables = {}
        for name in list(weights):
            values = weights.pop(name)
            if name in self.flat:
                c, h, w = self.flat[name]
                values = values.reshape(c, h, w, -1).transpose(1, 2, 0, 3).reshape(c * h * w, -1)
            self.variables[name] = tf.Variable(_to_native(name, None, values), name=name.replace("/", "_"))
        self.trained = list(self.variables.values())
        self.parameters = sum(int(np.prod(v.shape)) for v in self.trained)
        if spec["input"]["kind"] == "image":
            inputs = np.ascontiguousarray(inputs.transpose(0, 2, 3, 1))
        self.sequence = labels.ndim == 2
        if self.sequence:
            inputs, labels = np.ascontiguousarray(inputs.swapaxes(0, 1)), np.ascontiguousarray(labels.T)
        self.inputs, self.labels = tf.constant(inputs), tf.constant(labels.reshape(-1))
        self.step = self._step
        if mode != "eager":
            self.step = tf.function(self._step, jit_compile=True if mode == "xla" else None)

    def run(self, steps):
        for _ in range(steps):
            loss = self.step(self.inputs, self.labels)
        return float(loss.numpy())

    def weights(self):
        out = {}
        for name, v in self.variables.items():
            values = v.numpy()
            if name in self.flat:
                c, h, w = self.flat[name]
                values = values.reshape(h, w, c, -1).transpose(2, 0, 1, 3).reshape(c * h * w, -1)
            out[name] = _from_native(name, values)
        return out

    def _step(self, inputs, labels):
        with tf.GradientTape() as tape:
            logits = self._forward(inputs)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        for v, g in zip(self.trained, tape.gradient(loss, self.trained)):
            if isinstance(g, tf.IndexedSlices):
                v.scatter_sub(tf.IndexedSlices(g.values * self.rate, g.indices))
            else:
                tf.raw_ops.ResourceApplyGradientDescent(var=v.handle, alpha=self.rate, delta=g)
        return loss

    def _forward(self, x):
        values = {"input": x}
        for n in self.spec["nodes"]:
            a = [values[s] for s in n["inputs"]]
            values[n["name"]] = getattr(self, "_" + n["op"])(n, *a)
        return values[n["name"]]

    def _v(self, n, role):
        return self.variables[n["name"] + "/" + role]

    def _dense(self, n, x):
        if x.shape.rank == 3:
            x = tf.reshape(x, [-1, n["in_shape"][-1]])
        return tf.nn.bias_add(tf.matmul(x, self._v(n, "weight")), self._v(n, "bias"))

    def _conv(self, n, x):
        p = n["padding"]
        y = tf.nn.conv2d(x, self._v(n, "weight"), n["stride"], [[0, 0], [p, p], [p, p], [0, 0]])
        return tf.nn.bias_add(y, self._v(n, "bias")) if n["bias"] else y

    def _max_pool(self, n, x):
        p = n["padding"]
        if p:
            x = tf.pad(x, [[0, 0], [p, p], [p, p], [0, 0]], constant_values=x.dtype.min)
        return tf.nn.max_pool2d(x, n["kernel"], n["stride"], "VALID")

    def _batch_norm(self, n, x):
        return tf.compat.v1.nn.fused_batch_norm(
            x, self._v(n, "gamma"), self._v(n, "beta"), epsilon=BATCH_NORM_EPSILON, is_training=True
        )[0]

    def _relu(self, n, x):
        return tf.nn.relu(x)

    def _sigmoid(self, n, x):
        return tf.nn.sigmoid(x)

    def _add(self, n, x, y):
        return x + y

    def _flatten(self, n, x):
        return tf.reshape(x, [x.shape[0], -1])

    def _global_average_pool(self, n, x):
        return tf.reduce_mean(x, [1, 2])

    def _embedding(self, n, x):
        return tf.gather(self._v(n, "weight"), x)

    def _lstm(self, n, x):
        u, b = n["units"], x.shape[1]
        zero = tf.zeros([b, u])
        w = tf.concat([self._v(n, "input"), self._v(n, "recurrent")], 0)
        p = tf.zeros([u])
        return tf.raw_ops.BlockLSTM(
            seq_len_max=tf.constant(n["in_shape"][0], tf.int64),
            x=x,
            cs_prev=zero,
            h_prev=zero,
            w=w,
            wci=p,
            wcf=p,
            wco=p,
            b=self._v(n, "bias"),
            forget_bias=0.0,
            cell_clip=-1.0,
            use_peephole=False,
        ).h
