#!/usr/bin/env python3
"""Ops on axes whose sizes only the step knows, and the same of known sizes, beside TensorFlow, on one core.

    python3 bench/bench_open.py [--tfc build/tfc] [PART OF A NAME...]

Runs in a Python that has the package tensorflow, which writes the graphs and is the peer. A step is y = f(x) and the sum of y: x is fed
from a file, the sum is fetched; TensorFlow's makes y alone. Prints microseconds of a step, the least of several (ours: differences of two
runs).
"""
import argparse
import os
import subprocess
import tempfile
import time

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow.compat.v1 as tf  # noqa: E402

tf.disable_v2_behavior()


def gradient(y, x):
    return tf.gradients(y, x)[0]


def one_by_one(x):
    return tf.map_fn(lambda i: (i - tf.reduce_mean(i)) / tf.math.reduce_std(i), x)


def weights(*shape):
    return tf.constant(np.sin(np.arange(np.prod(shape)).reshape(shape) * 0.37).astype(np.float32) * 0.1)


def weights_gradient(x):
    return tf.matmul(x, tf.nn.relu(x), transpose_a=True)


def recurrent_gradients(x):
    rows, (turns, n) = tf.shape(x)[0], x.shape.as_list()[1:]
    w, u = weights(n, 4 * n), weights(n, 4 * n)
    inputs = tf.TensorArray(tf.float32, turns).unstack(tf.transpose(x, [1, 0, 2]))

    def turn(i, h, s):
        gate, forget, out, new = tf.split(tf.matmul(inputs.read(i), w) + tf.matmul(h, u), 4, 1)
        s = tf.sigmoid(forget) * s + tf.sigmoid(gate) * tf.tanh(new)
        return i + 1, tf.sigmoid(out) * tf.tanh(s), s
    h = tf.while_loop(lambda i, *_: i < turns, turn, (0, tf.zeros([rows, n]), tf.zeros([rows, n])))[1]
    return tf.stack([tf.reduce_sum(d) for d in tf.gradients(tf.reduce_sum(h * h), [w, u])])


# name: the shape of x, axes of known size, y
OPS = {
    "softmax": ((50000, 20), (), tf.nn.softmax),
    "softmax of 10": ((50000, 10), (), tf.nn.softmax),
    "log softmax of 10": ((50000, 10), (), tf.nn.log_softmax),
    "softmax, gradient": ((50000, 20), (), lambda x: gradient(tf.nn.softmax(x) ** 2, x)),
    "cross entropy, one-hot": ((20000, 12), (), lambda x: tf.nn.softmax_cross_entropy_with_logits_v2(
        labels=tf.one_hot(tf.argmax(x, -1), tf.shape(x)[1]), logits=x)),
    "squares over 3": ((200000, 3), (), lambda x: tf.reduce_sum(x * x, -1)),
    "squares over 20": ((50000, 20), (), lambda x: tf.reduce_sum(x * x, -1)),
    "per_image_standardization": ((8, 128, 128, 3), (3,), tf.image.per_image_standardization),
    "images one by one": ((8, 128, 128, 3), (), one_by_one),
    "attention": ((32, 4, 20, 16), (), lambda x: tf.matmul(tf.nn.softmax(tf.matmul(x, x, transpose_b=True)), x)),
    "range, relu": ((100000, 7), (), lambda x: tf.nn.relu(x + tf.range(tf.cast(tf.shape(x)[1], tf.float32)))),
    "distances of pairs": ((300, 8), (), lambda x: tf.reduce_sum((x[:, None] - x[None]) ** 2, -1)),
    "bilinear resizing": ((4, 64, 64, 3), (), lambda x: tf.image.resize(x, [96, 96])),
    "max pool": ((4, 64, 64, 8), (3,), lambda x: tf.nn.max_pool2d(x, 2, 2, "SAME")),
    "max pool, gradient": ((4, 64, 64, 8), (3,), lambda x: gradient(tf.nn.max_pool2d(x, 2, 2, "SAME") ** 2, x)),
    "segment sums": ((100000, 4), (), lambda x: tf.math.segment_sum(x, tf.range(tf.shape(x)[0]) // 10)),
    "segment sums, unsorted": ((100000, 4), (), lambda x: tf.math.unsorted_segment_sum(x, tf.range(tf.shape(x)[0]) % 1000, 1000)),
    "tile": ((50000, 4), (), lambda x: tf.tile(x, [1, 3])),
    "sort": ((50000, 16), (), lambda x: tf.sort(x, -1)),
    "weights' gradient, 16 rows": ((16, 1024), (1,), weights_gradient),
    "weights' gradient, 128 rows": ((128, 1024), (1,), weights_gradient),
    "weights' gradient, 512 rows": ((512, 1024), (1,), weights_gradient),
    "filter's gradient, one tap": ((32, 24, 24, 128), (1, 2, 3), lambda x: tf.nn.conv2d_backprop_filter(
        x, [1, 1, 128, 128], tf.nn.relu(x), [1, 1, 1, 1], "SAME")),
    "one tap, stride 2": ((4, 14, 14, 1024), (1, 2, 3), lambda x: tf.nn.conv2d(x, weights(1, 1, 1024, 2048), 2, "SAME")),
    "recurrent, gradients": ((4, 32, 128), (1, 2), recurrent_gradients),
}
SECONDS = 0.15  # of our longer run, at least


def graph_of(name, is_open):
    shape, known, f = OPS[name]
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [None if is_open and i not in known else d for i, d in enumerate(shape)], "x")
        y = f(x)
        tf.reduce_sum(y, name="total")
    return graph, y


def peer(graph, y, x):
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    least = float("inf")
    with tf.Session(graph=graph, config=config) as session:
        call = session.make_callable(y.op, ["x:0"])
        for _ in range(12):
            begin = time.perf_counter()
            call(x)
            least = min(least, time.perf_counter() - begin)
    return least


def ours(tfc, graph, x):
    with tempfile.TemporaryDirectory() as folder:
        tf.train.write_graph(graph, folder, "graph.pb", as_text=False)
        np.save(os.path.join(folder, "x.npy"), x)
        subprocess.run([tfc, "build", "graph.pb", "-o", "out", "--quiet", "--entry", "main: x -> total"], cwd=folder, check=True)
        argv = [os.path.join(folder, "out", "localhost_0"), "--threads", "1", "--log-every", "0", "--entry", "main", "--feed", "x=x.npy",
                "--fetch", "total=total.npy", "--steps"]

        def run(steps):
            begin = time.perf_counter()
            subprocess.run(argv + [str(steps)], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            return time.perf_counter() - begin
        steps = 20
        while run(steps) < SECONDS:
            steps *= 2
        few = steps // 10
        return min((run(steps) - run(few)) / (steps - few) for _ in range(3))


def main():
    parser = argparse.ArgumentParser(description="Ops of open sizes beside TensorFlow on one core.")
    parser.add_argument("--tfc", default="build/tfc")
    parser.add_argument("parts", nargs="*")
    options = parser.parse_args()
    tfc = os.path.abspath(options.tfc)
    print("%-28s %9s %9s %11s %7s" % ("op", "open us", "known us", "TensorFlow", "ratio"))
    for name in OPS:
        if options.parts and not any(part in name for part in options.parts):
            continue
        x = np.random.RandomState(1).standard_normal(OPS[name][0]).astype(np.float32)
        graph, y = graph_of(name, True)
        theirs, mine, known = peer(graph, y, x), ours(tfc, graph, x), ours(tfc, graph_of(name, False)[0], x)
        print("%-28s %9.1f %9.1f %11.1f %7.2f" % (name, mine * 1e6, known * 1e6, theirs * 1e6, theirs / mine), flush=True)


if __name__ == "__main__":
    main()
