#!/usr/bin/env python3
"""Input beside the step: a training step that is fed by pictures which a dataset decodes, with and without reading ahead.

    python3 bench/bench_input.py [--tfc build/tfc] [--rounds 3] [--threads 1] [--steps 200]

The graph is a perceptron of one hidden layer on batches of 32 pictures; the dataset is PNG strings, repeated, mapped (decoded, scaled),
batched. It is built in several ways: the map one element at a time, without and with `prefetch`; two calls at once and `prefetch`; and with one batch that is always the
same, which is the step alone. A step of ours is the difference of two runs of the same phase with few and with many steps, one of
TensorFlow's the mean of as many Session.run calls, its rewriting of datasets off, so that both run the same. Prints the median over the rounds.
Needs the package tensorflow (2.18 is what the table in README.md was made with).
"""
import argparse
import os
import statistics
import subprocess
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
v1 = tf.compat.v1
SIDE, BATCH, PICTURES = 48, 32, 128
WAYS = ["step alone", "map", "map, prefetch", "2 calls, prefetch"]


def pictures():
    random = np.random.default_rng(1)
    for _ in range(PICTURES):
        smooth = np.cumsum(random.integers(-9, 10, (SIDE, SIDE, 3)), 0) % 256
        yield tf.io.encode_png(smooth.astype(np.uint8)).numpy()


def parse(text):
    return tf.reshape(tf.cast(tf.io.decode_png(text, 3), tf.float32) / 255.0, [SIDE * SIDE * 3])


def dataset(strings, way):
    d = tf.data.Dataset.from_tensor_slices(strings).repeat()
    d = d.map(parse, num_parallel_calls=2 if way.startswith("2") else None).batch(BATCH, drop_remainder=True)
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.autotune.enabled = False
    return (d.prefetch(2) if "prefetch" in way else d).with_options(options)


def graph_of(strings, way):
    graph = tf.Graph()
    with graph.as_default():
        v1.set_random_seed(1)
        iterator = v1.data.make_initializable_iterator(dataset(strings, way))
        x = tf.constant(np.full((BATCH, SIDE * SIDE * 3), 0.5, np.float32)) if way == WAYS[0] else iterator.get_next()
        w1 = v1.get_variable("w1", [SIDE * SIDE * 3, 64])
        w2 = v1.get_variable("w2", [64, 10])
        logits = tf.nn.relu(x @ w1) @ w2
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[i % 10 for i in range(BATCH)], logits=logits), name="loss")
        v1.train.GradientDescentOptimizer(0.01).minimize(loss, name="train")
        tf.group(v1.global_variables_initializer(), iterator.initializer, name="begin")
    return graph


class Ours:
    def __init__(self, tfc, graph, folder, threads):
        with open(os.path.join(folder, "graph.pb"), "wb") as f:
            f.write(graph.as_graph_def().SerializeToString())
        subprocess.run([tfc, "build", "graph.pb", "-o", "out", "--entry", "init: -> | begin", "--entry", "train: -> loss | train"], cwd=folder, check=True)
        self.argv = [os.path.join(folder, "out", "localhost_0")] + (["--threads", str(threads)] if threads else [])
        self.argv += ["--entry", "init", "--entry", "train", "--steps"]

    def run(self, steps):
        begin = time.perf_counter()
        subprocess.run(self.argv + [str(steps)], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begin

    def step(self, steps):
        return (self.run(steps + 5) - self.run(5)) / steps


class Theirs:
    def __init__(self, graph, threads):
        config = v1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
        self.session, self.graph = v1.Session(graph=graph, config=config), graph
        self.session.run("begin")
        self.step(5)

    def step(self, steps):
        train, loss = self.graph.get_operation_by_name("train"), self.graph.get_tensor_by_name("loss:0")
        begin = time.perf_counter()
        for _ in range(steps):
            self.session.run([loss, train])
        return (time.perf_counter() - begin) / steps


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--tfc", default=os.path.join(HERE, "..", "build", "tfc"))
    args.add_argument("--rounds", type=int, default=3)
    args.add_argument("--threads", type=int, default=1)
    args.add_argument("--steps", type=int, default=200)
    args = args.parse_args()
    strings = list(pictures())
    print("%-20s %12s %12s %8s" % ("input", "tfc", "TensorFlow", "ratio"))
    with tempfile.TemporaryDirectory() as top:
        sides = []
        for way in WAYS:
            folder = os.path.join(top, way.replace(" ", "_").replace(",", ""))
            os.mkdir(folder)
            graph = graph_of(strings, way)
            sides.append((Ours(os.path.abspath(args.tfc), graph, folder, args.threads), Theirs(graph, args.threads)))
        times = [[(ours.step(args.steps), theirs.step(args.steps)) for ours, theirs in sides] for _ in range(args.rounds)]
    for i, way in enumerate(WAYS):
        ours, theirs = (statistics.median(r[i][side] for r in times) * 1e3 for side in (0, 1))
        print("%-20s %9.2f ms %9.2f ms %8.2f" % (way, ours, theirs, theirs / ours))


main()
