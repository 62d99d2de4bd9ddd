"""FCN-5, FCN-8, feed-forward networks and an autoencoder for MNIST in TensorFlow by Keras.

python tensorflow_fcn.py {fcn5,fcn8,ffn-shallow,ffn-deep,autoencoder} THREADS < commands
"""

import sys

import keras
import loops
import tensorflow as tf
from keras import layers

tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[2]))
tf.config.threading.set_inter_op_parallelism_threads(1)

sizes = loops.dense(sys.argv[1])
before, behind = sizes[0][0], sizes[-1][1]
model = keras.Sequential(
    [keras.Input((before,))]
    + [layers.Dense(units, activation="sigmoid" if bent else None) for _, units, bent in sizes]
)
inputs = tf.random.uniform((64, before), -1, 1)
if sys.argv[1] == "autoencoder":
    criterion = keras.losses.BinaryCrossentropy(from_logits=True)
    loops.tensorflow(model, inputs, (inputs + 1) / 2, criterion)
else:
    loops.tensorflow(model, inputs, tf.random.uniform((64,), 0, behind, tf.int32))
