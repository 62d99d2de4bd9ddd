"""FCN-5 on several ranks as TensorFlow's own tutorial has it: python tensorflow_fcn.py RANK PORT,PORT."""

import json
import os
import sys

rank, ports = int(sys.argv[1]), sys.argv[2].split(",")
workers = [f"127.0.0.1:{port}" for port in ports]
os.environ["TF_CONFIG"] = json.dumps(
    {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
)
import keras  # noqa: E402
import numpy as np  # noqa: E402
import steps  # noqa: E402
import tensorflow as tf  # noqa: E402
from keras import layers  # noqa: E402

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
ring = tf.distribute.experimental.CommunicationOptions(
    implementation=tf.distribute.experimental.CommunicationImplementation.RING
)
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=ring)
batch = 64 // len(ports)
with strategy.scope():
    model = keras.Sequential(
        [keras.Input((26752,))]
        + [layers.Dense(2048, activation="sigmoid") for _ in range(3)]
        + [layers.Dense(26752)]
    )
    inputs = tf.constant(np.random.uniform(-1, 1, (batch, 26752)).astype(np.float32))
    labels = tf.constant(np.random.randint(0, 26752, batch))


def of_rank():
    with tf.GradientTape() as tape:
        scores = model(inputs, training=True)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores))
    gradients = tape.gradient(loss, model.trainable_variables)
    context = tf.distribute.get_replica_context()
    gradients = context.all_reduce(tf.distribute.ReduceOp.MEAN, gradients, ring)
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        variable.value.assign_sub(0.01 * gradient)
    return loss


step = tf.function(lambda: strategy.run(of_rank))
steps.clock(lambda: float(step()))
