"""LSTM-32 and LSTM-64 in TensorFlow by Keras.

python tensorflow_lstm.py {lstm32,lstm64} THREADS < commands
"""

import sys

import keras
import loops
import tensorflow as tf
from keras import layers

STEPS = {"lstm32": 32, "lstm64": 64}[sys.argv[1]]
tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[2]))
tf.config.threading.set_inter_op_parallelism_threads(1)

model = keras.Sequential(
    [
        keras.Input((STEPS,), dtype="int32"),
        layers.Embedding(10000, 256),
        layers.LSTM(256, return_sequences=True),
        layers.LSTM(256, return_sequences=True),
        layers.Dense(10000),
    ]
)
inputs = tf.random.uniform((128, STEPS), 0, 10000, tf.int32)
labels = tf.random.uniform((128, STEPS), 0, 10000, tf.int32)
loops.tensorflow(model, inputs, labels)
