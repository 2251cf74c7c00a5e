#!/usr/bin/env python3
"""Step times of the models of step_models.py: the executables that tfc builds beside TensorFlow, JAX and ONNX Runtime, in turn in one run.

    python3 bench/bench_steps.py [--tfc build/tfc] [--python PYTHON] [--rounds 5] [--threads 1] [--open] [MODEL...]

PYTHON has the packages tensorflow, jax, onnxruntime and onnx; peers that are missing are left out, but for TensorFlow, which
writes the graphs. All run on the same cores, as many as --threads, and are stepped one after the other in each round. A step of
ours is the difference of two runs of the same phase with few and with many steps (so that starting costs nothing), one of
theirs the mean of as many calls in a process that is warm. The first losses of all must agree.

With --open our graph takes batches of any size, as graphs that were saved mostly do; what the peers step knows its own.

Prints the median time of a step, the median of the ratio of each peer's time to ours over the rounds (above 1: ours is faster),
least and greatest of the best peer's, and what our step reaches of the cores' arithmetic peak with its multiply-adds alone.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from step_models import MODELS  # noqa: E402

PEERS = ("tensorflow", "jax", "onnxruntime")


class Ours:
    def __init__(self, options, model, folder):
        graph = os.path.join(folder, "graph.pb")
        subprocess.run([options.python, os.path.join(HERE, "step_peers.py"), "graph", model.name, graph, *options.open], check=True,
                       stderr=subprocess.DEVNULL)
        spec = "step: %s -> result" % ", ".join(model.feeds) + (" | train_op" if model.optimizer else "")
        begin = time.perf_counter()
        subprocess.run([options.tfc, "build", graph, "--quiet", "-o", os.path.join(folder, "out"), "--entry", "init: -> | init",
                        "--entry", spec], check=True)
        self.build_seconds = time.perf_counter() - begin
        self.folder = folder
        self.argv = [os.path.join(folder, "out", "localhost_0"), "--threads", str(options.threads), "--entry", "step"]
        for name, array in model.feeds.items():
            np.save(os.path.join(folder, name + ".npy"), array)
            self.argv += ["--feed", "%s=%s.npy" % (name, name)]

    def first(self):
        subprocess.run(self.argv + ["--fetch", "result=first.npy"], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        return float(np.ravel(np.load(os.path.join(self.folder, "first.npy")))[0])

    def run(self, steps):
        begin = time.perf_counter()
        subprocess.run(self.argv + ["--steps", str(steps)], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begin

    def step(self, steps):
        few = max(1, steps // 10)
        return (self.run(steps + few) - self.run(few)) / steps


class Peer:
    def __init__(self, options, name, model):
        self.name = name
        self.process = subprocess.Popen([options.python, os.path.join(HERE, "step_peers.py"), name, model.name, str(options.threads)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.first = None

    def is_there(self):
        word, _, rest = self.process.stdout.readline().partition(" ")
        if word == "ready":
            self.first = float(rest)
        return self.first is not None

    def step(self, steps):
        self.process.stdin.write("%d\n" % steps)
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def steps_for(seconds, side):
    """As many as take about that long; each side is warm then."""
    few = 3
    while True:
        took = side.step(few) * few
        if took > seconds / 4 or few >= 100000:
            return max(3, int(few * seconds / max(took, 1e-6)))
        few *= 4


def compare(options, model, folder):
    ours = Ours(options, model, folder)
    peers = [p for p in (Peer(options, name, model) for name in options.peers) if p.is_there()]
    first = ours.first()
    for p in peers:
        if not abs(p.first - first) <= 1e-3 * max(1, abs(first)):
            raise SystemExit("%s: the first result is %g, %s says %g" % (model.name, first, p.name, p.first))
    sides = [ours] + peers
    counts = [steps_for(options.seconds, s) for s in sides]
    times = [[s.step(n) for s, n in zip(sides, counts)] for _ in range(options.rounds)]
    for p in peers:
        p.close()
    return [p.name for p in peers], times


def print_row(model, names, times, peak):
    own = statistics.median(t[0] for t in times)
    ratios = {n: sorted(t[i + 1] / t[0] for t in times) for i, n in enumerate(names)}
    cells = "".join("%12s" % ("%.2f" % statistics.median(ratios[n]) if n in ratios else "-") for n in PEERS)
    best = min(ratios.values(), key=statistics.median) if ratios else None
    span = "%.2f .. %.2f" % (best[0], best[-1]) if best else "-"
    print("%-18s%12.1f%s   %-14s%5.0f%%" % (model.name, own * 1e6, cells, span, 100 * 2e-9 * model.terms / own / peak), flush=True)


def peak_of(options):
    """GFLOP/s of the cores used, as bench_gemm measures one of them."""
    bench = os.path.join(os.path.dirname(options.tfc), "bench_gemm")
    out = subprocess.run([bench, "peak"], check=True, capture_output=True, text=True).stdout
    return options.threads * float(re.search(r"peak of one core: ([0-9.]+)", out)[1])


def main():
    parser = argparse.ArgumentParser(description="Step times of models beside TensorFlow, JAX and ONNX Runtime.")
    parser.add_argument("--tfc", default=os.path.join(HERE, "..", "build", "tfc"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="that each side steps in a round")
    parser.add_argument("--threads", type=int, default=1, help="and cores, of each side")
    parser.add_argument("--open", action="store_const", const=["--open"], default=[], help="our graph is of batches of any size")
    parser.add_argument("--peers", type=lambda s: s.split(","), default=list(PEERS))
    parser.add_argument("models", nargs="*", default=list(MODELS))
    options = parser.parse_args()
    options.tfc = os.path.abspath(options.tfc)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-options.threads:])
    peak = peak_of(options)
    print("%d core(s), %.0f GFLOP/s; ratios: a peer's time over ours" % (options.threads, peak))
    print("%-18s%12s%s   %-14s%6s" % ("model", "tfc us", "".join("%12s" % n for n in PEERS), "best peer's", "peak"))
    for name in options.models:
        with tempfile.TemporaryDirectory() as folder:
            names, times = compare(options, MODELS[name], folder)
        print_row(MODELS[name], names, times, peak)
    return 0


if __name__ == "__main__":
    sys.exit(main())
