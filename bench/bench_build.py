#!/usr/bin/env python3
"""How long tfc takes to build, and how much memory, for graphs that grow.

    python3 bench/bench_build.py [--tfc build/tfc] [NODES...]

`mixed`: layers of random widths, each a product, a bias and three functions drawn from fourteen, and an update of its variables: hardly two kernels
are alike. `alike`: layers of one width and one function. Prints for each graph nodes, seconds, seconds of the processor, and megabytes.
"""
import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FUNCTIONS = ("Relu Tanh Sigmoid Elu Softplus Exp Square Abs Softsign Sin Cos Neg Erf Rsqrt").split()


def node(name, op, inputs=(), attrs=""):
    return 'node { name: "%s" op: "%s" %s %s }' % (name, op, " ".join('input: "%s"' % i for i in inputs), attrs)


def attr(key, value):
    return 'attr { key: "%s" value { %s } }' % (key, value)


FLOAT = attr("T", "type: DT_FLOAT")


def shape(*sizes):
    return attr("shape", "shape { %s }" % " ".join("dim { size: %d }" % s for s in sizes)) + " " + attr("dtype", "type: DT_FLOAT")


def graph(nodes, mixed):
    rng = random.Random(nodes)
    rate = attr("dtype", "type: DT_FLOAT") + " " + attr("value", "tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0.01 }")
    lines, last, width, count = [node("x", "Placeholder", (), shape(-1, 8)), node("rate", "Const", (), rate)], "x", 8, 0
    updates = []
    while len(lines) < nodes:
        next_width = rng.randrange(8, 68) if mixed else 32
        w, b, m, h = ("%s%d" % (k, count) for k in "wbmh")
        lines += [node(w, "VariableV2", (), shape(width, next_width)), node(b, "VariableV2", (), shape(next_width)),
                  node(m, "MatMul", (last, w), FLOAT), node(h, "BiasAdd", (m, b), FLOAT)]
        last = h
        for k in range(3 if mixed else 1):
            lines.append(node("%s_%d" % (h, k), rng.choice(FUNCTIONS) if mixed else "Relu", (last,), FLOAT))
            last = "%s_%d" % (h, k)
        lines += [node("g" + w, "MatMul", (h, last), FLOAT + " " + attr("transpose_a", "b: true")),
                  node("s" + w, "MatMul", (w, "g" + w), FLOAT), node("u" + w, "ApplyGradientDescent", (w, "rate", "s" + w), FLOAT),
                  node("g" + b, "BiasAddGrad", (last,), FLOAT), node("u" + b, "ApplyGradientDescent", (b, "rate", "g" + b), FLOAT)]
        updates += ["^u" + w, "^u" + b]
        width = next_width
        count += 1
    lines.append(node("train", "NoOp", updates))
    return lines, last


def build(tfc, nodes, mixed):
    lines, last = graph(nodes, mixed)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.pbtxt")
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
        begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        child = subprocess.Popen([tfc, "build", path, "-o", os.path.join(folder, "out"), "--entry", "train: x -> %s | train" % last])
        _, code, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(code)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if child.returncode:
            sys.exit("tfc ended with %d" % child.returncode)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print("%-6s %8d %8.1f %8.1f %8.0f" % ("mixed" if mixed else "alike", len(lines), time.perf_counter() - begin, cpu, used.ru_maxrss / 1024), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tfc", default=os.path.join(HERE, "..", "build", "tfc"))
    parser.add_argument("nodes", nargs="*", type=int, default=[5000, 25000, 50000])
    options = parser.parse_args()
    print("graph     nodes        s    cpu s       MB")
    for mixed in (False, True):
        for nodes in options.nodes:
            build(os.path.abspath(options.tfc), nodes, mixed)


main()
