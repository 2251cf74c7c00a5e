#!/usr/bin/env python3
"""Step times of sample models: the executables that tfc builds beside TensorFlow's session, in turn in one run.

    python3 bench/bench_steps.py [--tfc build/tfc] [--rounds 5] [--threads 1] [MODEL[:BATCH]...]

A model is a folder of tests/golden/models with an entry `train`. A step of ours is the difference of two runs of the same
phase with few and with many steps (so that starting costs nothing), one of TensorFlow's the mean of as many Session.run
calls. Prints the median of both over the rounds, and the median, least and greatest of their ratios. Without the package
tensorflow (2.18 is what the cases were recorded with) only ours are timed.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "tests", "golden", "models")
DEFAULT = ["linreg_sgd:16", "softmax_mnist:25", "mlp_adam_two_batches:32", "mlp_adam_two_batches:128", "cnn_momentum:16"]


def load_case(name, folder):
    """The case, its train phase, and its fed arrays as files in `folder`."""
    with open(os.path.join(MODELS, name, "case.json"), encoding="utf-8") as f:
        case = json.load(f)
    data = np.load(os.path.join(MODELS, name, "data.npz"))
    args = case["runs"][0]["args"]
    at = args.index("train")
    feeds = {}
    for i in range(at + 1, len(args)):
        if args[i] == "--entry":
            break
        if args[i] == "--feed":
            key, file = args[i + 1].split("=")
            feeds[key] = file
    for key, file in feeds.items():
        np.save(os.path.join(folder, file), data[file[:-4]])
    spec = next(s for s in case["build"] if s.startswith("train:"))
    fetches, _, targets = spec.split("->")[1].partition("|")
    return case, feeds, [n.strip() for n in (fetches + "," + targets).split(",") if n.strip()]


class Ours:
    def __init__(self, tfc, name, case, feeds, batch, folder, threads):
        subprocess.run([tfc, "build", os.path.join(MODELS, name, case.get("graph", "graph.pb")), "-o", "out"] + case["build"],
                       cwd=folder, check=True)
        self.argv = [os.path.join(folder, "out", "localhost_0"), "--threads", str(threads), "--entry", "train", "--batch", str(batch)]
        for key, file in feeds.items():
            self.argv += ["--feed", "%s=%s" % (key, file)]
        self.folder = folder

    def run(self, steps):
        begin = time.perf_counter()
        subprocess.run(self.argv + ["--steps", str(steps)], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begin

    def step(self, steps):
        return (self.run(steps + steps // 10) - self.run(steps // 10)) / steps


class Theirs:
    def __init__(self, name, case, feeds, names, batch, folder, threads):
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
        import tensorflow.compat.v1 as tf
        tf.disable_eager_execution()
        graph, definition = tf.Graph(), tf.GraphDef()
        with open(os.path.join(MODELS, name, "graph.pb"), "rb") as f:
            definition.ParseFromString(f.read())
        with graph.as_default():
            tf.import_graph_def(definition, name="")
        config = tf.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
        self.session = tf.Session(graph=graph, config=config)
        self.session.run("init")
        self.fetches = [n if ":" in n or graph.get_operation_by_name(n).outputs == [] else n + ":0" for n in names]
        self.feed = {}
        for key, file in feeds.items():
            rows = np.load(os.path.join(folder, file))
            rows = np.concatenate([rows] * (batch // len(rows) + 1))[:batch]
            self.feed[key if ":" in key else key + ":0"] = rows
        self.step(20)

    def step(self, steps):
        begin = time.perf_counter()
        for _ in range(steps):
            self.session.run(self.fetches, self.feed)
        return (time.perf_counter() - begin) / steps


def measure(name, batch, options):
    with tempfile.TemporaryDirectory() as folder:
        case, feeds, names = load_case(name, folder)
        ours = Ours(options.tfc, name, case, feeds, batch, folder, options.threads)
        try:
            theirs = Theirs(name, case, feeds, names, batch, folder, options.threads)
        except ImportError:
            theirs = None
        steps = max(50, min(20000, int(0.5 / max(ours.step(50), 1e-6))))
        their_steps = max(20, min(steps, int(0.5 / theirs.step(20)))) if theirs else 0
        a, b = [], []
        for _ in range(options.rounds):
            a.append(ours.step(steps))
            if theirs:
                b.append(theirs.step(their_steps))
        label = "%s, batch %d" % (name, batch)
        if not theirs:
            print("%-34s %10.1f us" % (label, statistics.median(a) * 1e6))
            return
        ratios = sorted(y / x for x, y in zip(a, b))
        print("%-34s %10.1f us %10.1f us   %6.2f   (%.2f .. %.2f)" %
              (label, statistics.median(a) * 1e6, statistics.median(b) * 1e6, statistics.median(ratios), ratios[0], ratios[-1]),
              flush=True)


def main():
    parser = argparse.ArgumentParser(description="Step times of sample models beside TensorFlow's session.")
    parser.add_argument("--tfc", default=os.path.join(HERE, "..", "build", "tfc"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="of either side")
    parser.add_argument("models", nargs="*", default=DEFAULT)
    options = parser.parse_args()
    options.tfc = os.path.abspath(options.tfc)
    print("%-34s %13s %13s   %6s" % ("model", "tfc", "TensorFlow", "ratio"))
    for item in options.models:
        name, _, batch = item.partition(":")
        measure(name, int(batch or 32), options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
