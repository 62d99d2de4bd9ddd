"""FCN-5 on several ranks as the guide of TensorFlow 1 has it: python tensorflow1_fcn.py RANK PORT,PORT,PORT.

A parameter server and SyncReplicasOptimizer. The server is the rank `server`, and has the last port.
"""

import os
import sys

import numpy as np
import steps
import tensorflow as tf

role, ports = sys.argv[1], sys.argv[2].split(",")
hosts = ["127.0.0.1:" + port for port in ports]
cluster = tf.train.ClusterSpec({"ps": hosts[-1:], "worker": hosts[:-1]})
count, rank = len(ports) - 1, 0 if role == "server" else int(role)
settings = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
here = f"/job:worker/task:{rank}"
if role == "server":
    tf.train.Server(cluster, job_name="ps", task_index=0, config=settings).join()
settings.device_filters.extend(["/job:ps", here])
server = tf.train.Server(cluster, job_name="worker", task_index=rank, config=settings)

inputs = np.random.uniform(-1, 1, (64 // count, 26752)).astype(np.float32)
labels = np.random.randint(0, 26752, 64 // count)
with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=here)):
    done = tf.train.get_or_create_global_step()
    # Of the rank, and not of the server.
    with tf.device(here):
        batch = tf.get_local_variable("batch", initializer=inputs)
        answers = tf.get_local_variable("answers", initializer=labels)
    values = batch
    for _ in range(3):
        values = tf.layers.dense(values, 2048, tf.sigmoid)
    scores = tf.layers.dense(values, 26752)
    loss = tf.losses.sparse_softmax_cross_entropy(answers, scores)
    optimiser = tf.train.SyncReplicasOptimizer(
        tf.train.GradientDescentOptimizer(0.01),
        replicas_to_aggregate=count,
        total_num_replicas=count,
    )
    train = optimiser.minimize(loss, global_step=done)

hook = optimiser.make_session_run_hook(rank == 0, num_tokens=0)
with tf.train.MonitoredTrainingSession(
    server.target, is_chief=rank == 0, hooks=[hook], config=settings, log_step_count_steps=0
) as session:
    steps.clock(lambda: session.run([train, loss])[1])
    os._exit(0)
