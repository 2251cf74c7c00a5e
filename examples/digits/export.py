#!/usr/bin/env python3
"""Writes graph.pb, pixels.npy and labels.npy: what TensorFlow (2.18, in its version 1 ways) is needed for.

A two-layer network that tells ten kinds of noisy 8x8 pictures apart. replica_device_setter puts the variables on the ps
job and the work on the worker job; the graph is one worker's.
"""
import os

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
HERE = os.path.dirname(os.path.abspath(__file__))


def pictures(count, seed):
    """Ten random pictures, each with noise on it, and which of them it is."""
    random = np.random.default_rng(seed)
    digits = random.uniform(0, 1, (10, 64))
    labels = random.integers(0, 10, count)
    noise = random.normal(0, 0.35, (count, 64))
    return (digits[labels] + noise).astype(np.float32), labels.astype(np.int64)


def layer(inputs, width, name):
    depth = int(inputs.shape[1])
    weights = tf.get_variable(name + "/weights", [depth, width],
                              initializer=tf.random_uniform_initializer(-0.2, 0.2, seed=len(name)))
    bias = tf.get_variable(name + "/bias", [width], initializer=tf.zeros_initializer())
    return tf.matmul(inputs, weights) + bias


with tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker")):
    pixels = tf.placeholder(tf.float32, [None, 64], name="pixels")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    logits = layer(tf.nn.relu(layer(pixels, 32, "hidden")), 10, "output")
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_mean(losses, name="loss")
    right = tf.equal(tf.argmax(logits, 1), labels)
    tf.reduce_mean(tf.cast(right, tf.float32), name="accuracy")
    global_step = tf.train.get_or_create_global_step()
    tf.train.AdamOptimizer(0.005).minimize(loss, global_step, name="train_op")
    tf.global_variables_initializer()

tf.train.write_graph(tf.get_default_graph(), HERE, "graph.pb", as_text=False)
data, kinds = pictures(512, 7)
np.save(os.path.join(HERE, "pixels.npy"), data)
np.save(os.path.join(HERE, "labels.npy"), kinds)
