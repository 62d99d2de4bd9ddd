"""FCN-5 and FCN-8 in TensorFlow by Keras.

python tensorflow_fcn.py {fcn5,fcn8} THREADS < commands
"""

import sys

import keras
import loops
import tensorflow as tf
from keras import layers

HIDDEN_LAYERS = {"fcn5": 3, "fcn8": 6}[sys.argv[1]]
tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[2]))
tf.config.threading.set_inter_op_parallelism_threads(1)

model = keras.Sequential(
    [keras.Input((26752,))]
    + [layers.Dense(2048, activation="sigmoid") for _ in range(HIDDEN_LAYERS)]
    + [layers.Dense(26752)]
)
inputs = tf.random.uniform((64, 26752), -1, 1)
labels = tf.random.uniform((64,), 0, 26752, tf.int32)
loops.tensorflow(model, inputs, labels)
