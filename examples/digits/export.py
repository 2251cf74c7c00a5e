#!/usr/bin/env python3
"""Writes graph.pb and the four .npy files: what TensorFlow (2.18, in its version 1 ways) and scikit-learn are needed for.

A two-layer network that reads handwritten digits, 8x8 pixels each: the UCI set that scikit-learn carries. replica_device_setter puts
the variables on the ps job and the work on the worker job; the graph is one worker's.
"""
import os

import numpy as np
import tensorflow.compat.v1 as tf
from sklearn.datasets import load_digits

tf.disable_v2_behavior()
HERE = os.path.dirname(os.path.abspath(__file__))
TRAIN = 1437  # of 1797; the order is shuffled once, because the set is sorted by writer


def write_data():
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(labels))
    pixels, labels = (pixels[order] / 16).astype(np.float32), labels[order].astype(np.int64)
    for name, rows in (("train", slice(None, TRAIN)), ("test", slice(TRAIN, None))):
        np.save(os.path.join(HERE, name + "_pixels.npy"), pixels[rows])
        np.save(os.path.join(HERE, name + "_labels.npy"), labels[rows])


def layer(inputs, width, name):
    depth = int(inputs.shape[1])
    weights = tf.get_variable(name + "/weights", [depth, width],
                              initializer=tf.glorot_uniform_initializer(seed=len(name)))
    bias = tf.get_variable(name + "/bias", [width], initializer=tf.zeros_initializer())
    return tf.matmul(inputs, weights) + bias


def write_graph():
    with tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker")):
        pixels = tf.placeholder(tf.float32, [None, 64], name="pixels")
        labels = tf.placeholder(tf.int64, [None], name="labels")
        logits = layer(tf.nn.relu(layer(pixels, 64, "hidden")), 10, "output")
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        loss = tf.reduce_mean(losses, name="loss")
        right = tf.equal(tf.argmax(logits, 1), labels)
        tf.reduce_mean(tf.cast(right, tf.float32), name="accuracy")
        global_step = tf.train.get_or_create_global_step()
        tf.train.AdamOptimizer(0.002).minimize(loss, global_step, name="train_op")
        tf.global_variables_initializer()
    tf.train.write_graph(tf.get_default_graph(), HERE, "graph.pb", as_text=False)


write_data()
write_graph()
