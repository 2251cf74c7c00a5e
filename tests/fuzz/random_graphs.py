#!/usr/bin/env python3
"""Random well-formed graphs: what tfc compiles against what it evaluates while compiling.

    random_graphs.py --tfc PATH [--seconds S] [--seed N] [--keep]

Each graph holds the same random computation twice: once over placeholders of (partly) unknown shape, which becomes machine
code with its fusions, and once over constants, which the reference evaluator folds. All values are small integers, in
floats too, so that no order of a sum matters and every element must be equal. A graph in which tfc still takes two
unknown sizes for equal where one of them is to be stretched (none in a thousand) is left out. Prints a line for each graph that fails
or is left out, then `N passed, N failed`; --seed with the number in that line and --seconds 0 repeats it alone.
"""
import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

TYPES = {"f32": ("DT_FLOAT", np.float32), "f64": ("DT_DOUBLE", np.float64), "f16": ("DT_HALF", np.float16),
         "i32": ("DT_INT32", np.int32), "i64": ("DT_INT64", np.int64), "bool": ("DT_BOOL", np.bool_)}
FLOATS = ("f32", "f64", "f16")
NUMBERS = ("f32", "f64", "f16", "i32", "i64")
LIMIT = 64          # of absolute values: a sum of 4096 of them is exact even so; products are clipped back
ELEMENTS_MAX = 600
STRETCHED = re.compile(r"INVALID_ARGUMENT: .*broadcast: (1 and \d+|\d+ and 1) must agree")
LEFT_OUT = "left out: two sizes are taken for equal"


class Tensor:
    def __init__(self, name, dtype, shape, bound):
        self.name, self.dtype, self.shape, self.bound = name, dtype, tuple(shape), bound

    def size(self):
        return int(np.prod(self.shape, dtype=np.int64))


def tensor_proto(value):
    dtype = next(t for t, n in TYPES.values() if n == value.dtype.type)
    dims = "".join(" dim { size: %d }" % d for d in value.shape)
    content = "".join("\\%03o" % b for b in value.tobytes())
    return 'tensor { dtype: %s tensor_shape {%s } tensor_content: "%s" }' % (dtype, dims, content)


class Graph:
    """Writes nodes; those of the computation under two prefixes."""

    def __init__(self, rng):
        self.rng, self.lines, self.count, self.tensors, self.feeds = rng, [], 0, [], {}

    def node(self, name, op, inputs, attrs):
        text = ['node { name: "%s" op: "%s"' % (name, op)]
        text += ['input: "%s"' % i for i in inputs]
        text += ['attr { key: "%s" value { %s } }' % a for a in sorted(attrs.items())]
        self.lines.append(" ".join(text) + " }")

    def constant(self, value):
        self.count += 1
        name = "k%d" % self.count
        value = np.asarray(value)
        self.node(name, "Const", [], {"dtype": "type: " + tensor_proto(value).split()[3], "value": tensor_proto(value)})
        return name

    def source(self, dtype, shape):
        self.count += 1
        name = "x%d" % self.count
        low = 0 if dtype == "bool" else -4
        value = np.array([self.rng.randint(low, 1 if dtype == "bool" else 4) for _ in range(int(np.prod(shape, dtype=np.int64)))])
        value = value.reshape(shape).astype(TYPES[dtype][1])
        kind = "type: " + TYPES[dtype][0]
        dims = "".join(" dim { size: %d }" % (-1 if d != 1 and self.rng.random() < 0.5 else d) for d in shape)
        self.node("a/" + name, "Placeholder", [], {"dtype": kind, "shape": "shape {%s }" % dims})
        self.node("b/" + name, "Const", [], {"dtype": kind, "value": tensor_proto(value)})
        self.feeds["a/" + name] = value
        return self.add(Tensor(name, dtype, shape, 4))

    def add(self, tensor):
        self.tensors.append(tensor)
        return tensor

    def op(self, op, inputs, dtype, shape, bound, port=0, **attrs):
        """inputs: tensors, or names of constants that both halves share."""
        self.count += 1
        name = "n%d" % self.count
        for half in "ab":
            self.node(half + "/" + name, op, [half + "/" + i.name if isinstance(i, Tensor) else i for i in inputs],
                      {k.rstrip("_"): v for k, v in attrs.items()})
        result = Tensor(name + (":%d" % port if port else ""), dtype, shape, bound)
        if dtype != "bool" and bound > LIMIT:
            return self.clip(result)
        return self.add(result)

    def clip(self, x):
        kind = "type: " + TYPES[x.dtype][0]
        y = x
        for op, edge in (("Minimum", 8), ("Maximum", -8)):
            y = self.op(op, [y, self.constant(np.array(edge, TYPES[x.dtype][1]))], x.dtype, x.shape, 8, T=kind)
        return y


def kind(x):
    return "type: " + TYPES[x.dtype][0]


def pick(g, dtypes=NUMBERS, rank_min=0, rank_max=5):
    found = [t for t in g.tensors if t.dtype in dtypes and rank_min <= len(t.shape) <= rank_max]
    return g.rng.choice(found[-12:]) if found else None


def partner(g, x):
    """A tensor that broadcasts with x."""
    same = [t for t in g.tensors if t.dtype == x.dtype and broadcast(t.shape, x.shape) is not None]
    return g.rng.choice(same)


def broadcast(a, b):
    try:
        shape = np.broadcast_shapes(a, b)
    except ValueError:
        return None
    return shape if np.prod(shape, dtype=np.int64) <= ELEMENTS_MAX else None


def unary(g):
    x = pick(g)
    if not x:
        return
    ops = [("Neg", x.bound), ("Abs", x.bound), ("Square", x.bound ** 2), ("Sign", 1), ("Identity", x.bound), ("ZerosLike", 0),
           ("OnesLike", 1)]
    if x.dtype in FLOATS:
        ops += [("Relu", x.bound), ("Floor", x.bound), ("Relu6", 6)]
    op, bound = g.rng.choice(ops)
    g.op(op, [x], x.dtype, x.shape, bound, T=kind(x))


def binary(g):
    x = pick(g)
    if not x:
        return
    y = partner(g, x)
    shape = broadcast(x.shape, y.shape)
    top = max(x.bound, y.bound)
    op, bound = g.rng.choice([("AddV2", x.bound + y.bound), ("Sub", x.bound + y.bound), ("Mul", x.bound * y.bound),
                              ("Maximum", top), ("Minimum", top), ("SquaredDifference", (x.bound + y.bound) ** 2)])
    if x.dtype == "f16" and bound > 1024:
        return
    g.op(op, [x, y] if g.rng.random() < 0.5 else [y, x], x.dtype, shape, bound, T=kind(x))


def remainder(g):
    x = pick(g)
    if x:
        by = g.constant(np.array(g.rng.choice([2, 3, 5]), TYPES[x.dtype][1]))
        g.op(g.rng.choice(["FloorMod", "FloorDiv"]), [x, by], x.dtype, x.shape, max(x.bound, 5), T=kind(x))


def compare(g):
    x = pick(g)
    if x:
        y = partner(g, x)
        op = g.rng.choice(["Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"])
        g.op(op, [x, y], "bool", broadcast(x.shape, y.shape), 1, T=kind(x))


def logic(g):
    x = pick(g, ("bool",))
    if x:
        y = partner(g, x)
        if g.rng.random() < 0.3:
            g.op("LogicalNot", [x], "bool", x.shape, 1)
        else:
            g.op(g.rng.choice(["LogicalAnd", "LogicalOr"]), [x, y], "bool", broadcast(x.shape, y.shape), 1)


def select(g):
    c, x = pick(g, ("bool",)), pick(g)
    if not c or not x or broadcast(c.shape, x.shape) is None:
        return
    y = partner(g, x)
    shape = broadcast(broadcast(c.shape, x.shape), y.shape)
    if shape is not None:
        g.op("SelectV2", [c, x, y], x.dtype, shape, max(x.bound, y.bound), T=kind(x))


def cast(g):
    x, to = pick(g, NUMBERS + ("bool",)), g.rng.choice(NUMBERS + ("bool",))
    if x:
        g.op("Cast", [x], to, x.shape, 1 if to == "bool" else x.bound, SrcT=kind(x), DstT="type: " + TYPES[to][0])


def reduce(g):
    x = pick(g, NUMBERS + ("bool",), 1)
    if not x:
        return
    axes = sorted(g.rng.sample(range(len(x.shape)), g.rng.randint(0, len(x.shape))))
    keep = g.rng.random() < 0.4
    shape = [1 if i in axes else d for i, d in enumerate(x.shape) if keep or i not in axes]
    terms = int(np.prod([x.shape[i] for i in axes], dtype=np.int64))
    written = [a - len(x.shape) if g.rng.random() < 0.3 else a for a in axes]
    inputs = [x, g.constant(np.array(written, np.int32))]
    if x.dtype == "bool":
        g.op(g.rng.choice(["All", "Any"]), inputs, "bool", shape, 1, keep_dims="b: %s" % str(keep).lower())
        return
    op = g.rng.choice(["Sum", "Max", "Min"])
    if (op != "Sum" and terms == 0) or (x.dtype == "f16" and x.bound * terms > 1024):
        return
    g.op(op, inputs, x.dtype, shape, x.bound * max(terms, 1) if op == "Sum" else x.bound, T=kind(x),
         keep_dims="b: %s" % str(keep).lower())


def argmax(g):
    x = pick(g, NUMBERS, 1)
    axis = g.rng.randrange(len(x.shape)) if x else 0
    if x and x.shape[axis]:
        shape = x.shape[:axis] + x.shape[axis + 1:]
        g.op(g.rng.choice(["ArgMax", "ArgMin"]), [x, g.constant(np.array(axis, np.int32))], "i64", shape, x.shape[axis], T=kind(x))


def reshape(g):
    x = pick(g, NUMBERS + ("bool",))
    if not x:
        return
    left, shape = x.size(), []
    while left > 1 and len(shape) < 3:
        parts = [d for d in range(1, left + 1) if left % d == 0]
        shape.append(g.rng.choice(parts))
        left //= shape[-1]
    shape += [left] if left != 1 or not shape else []
    written = list(shape)
    if x.size() and g.rng.random() < 0.4:
        written[g.rng.randrange(len(written))] = -1
    g.op("Reshape", [x, g.constant(np.array(written, np.int32))], x.dtype, shape, x.bound, T=kind(x))


def transpose(g):
    x = pick(g, NUMBERS + ("bool",), 1)
    if x:
        order = list(range(len(x.shape)))
        g.rng.shuffle(order)
        g.op("Transpose", [x, g.constant(np.array(order, np.int32))], x.dtype, [x.shape[i] for i in order], x.bound, T=kind(x))


def expand(g):
    x = pick(g, NUMBERS + ("bool",), 0, 4)
    if x:
        axis = g.rng.randint(0, len(x.shape))
        g.op("ExpandDims", [x, g.constant(np.array(axis, np.int32))], x.dtype, x.shape[:axis] + (1,) + x.shape[axis:], x.bound,
             T=kind(x))


def concat(g):
    x = pick(g, NUMBERS + ("bool",), 1)
    if not x:
        return
    axis = g.rng.randrange(len(x.shape))
    fits = [t for t in g.tensors if t.dtype == x.dtype and len(t.shape) == len(x.shape) and
            t.shape[:axis] + t.shape[axis + 1:] == x.shape[:axis] + x.shape[axis + 1:]]
    parts = [x] + [g.rng.choice(fits) for _ in range(g.rng.randint(1, 2))]
    shape = list(x.shape)
    shape[axis] = sum(t.shape[axis] for t in parts)
    if np.prod(shape) <= ELEMENTS_MAX:
        g.op("ConcatV2", parts + [g.constant(np.array(axis, np.int32))], x.dtype, shape, max(t.bound for t in parts), T=kind(x),
             N="i: %d" % len(parts))


def pack(g):
    x = pick(g, NUMBERS + ("bool",), 0, 4)
    if x:
        axis = g.rng.randint(0, len(x.shape))
        if x.size() * 2 <= ELEMENTS_MAX:
            g.op("Pack", [x, x], x.dtype, x.shape[:axis] + (2,) + x.shape[axis:], x.bound, T=kind(x), N="i: 2", axis="i: %d" % axis)


def strided(g):
    x = pick(g, NUMBERS + ("bool",), 1)
    if not x:
        return
    begin, end, step, shape = [], [], [], []
    for d in x.shape:
        s = g.rng.choice([1, 1, 2, -1])
        a, b = sorted((g.rng.randint(0, d), g.rng.randint(0, d)))
        a, b = (a, b) if s > 0 else (b - 1, a - 1)
        if s < 0 and (b < 0 or a < 0):
            s, a, b = 1, 0, d
        begin.append(a), end.append(b), step.append(s)
        shape.append(len(range(a, b, s)))
    inputs = [x] + [g.constant(np.array(v, np.int32)) for v in (begin, end, step)]
    g.op("StridedSlice", inputs, x.dtype, shape, x.bound, T=kind(x), Index="type: DT_INT32")


def pad(g):
    x = pick(g, NUMBERS, 1)
    if x:
        sides = [[g.rng.randint(0, 2), g.rng.randint(0, 2)] for _ in x.shape]
        shape = [d + a + b for d, (a, b) in zip(x.shape, sides)]
        if np.prod(shape) <= ELEMENTS_MAX:
            g.op("Pad", [x, g.constant(np.array(sides, np.int32))], x.dtype, shape, x.bound, T=kind(x))


def tile(g):
    x = pick(g, NUMBERS + ("bool",), 1)
    if x:
        times = [g.rng.randint(1, 2) for _ in x.shape]
        shape = [d * t for d, t in zip(x.shape, times)]
        if np.prod(shape) <= ELEMENTS_MAX:
            g.op("Tile", [x, g.constant(np.array(times, np.int32))], x.dtype, shape, x.bound, T=kind(x))


def reverse(g):
    x = pick(g, NUMBERS + ("bool",), 1)
    if x:
        axes = g.rng.sample(range(len(x.shape)), g.rng.randint(1, len(x.shape)))
        g.op("ReverseV2", [x, g.constant(np.array(axes, np.int32))], x.dtype, x.shape, x.bound, T=kind(x))


def gather(g):
    x = pick(g, NUMBERS, 1)
    axis = g.rng.randrange(len(x.shape)) if x else 0
    if not x or not x.shape[axis]:
        return
    index = np.array([g.rng.randrange(x.shape[axis]) for _ in range(g.rng.randint(0, 4))], np.int32)
    shape = x.shape[:axis] + index.shape + x.shape[axis + 1:]
    if np.prod(shape) <= ELEMENTS_MAX:
        g.op("GatherV2", [x, g.constant(index), g.constant(np.array(axis, np.int32))], x.dtype, shape, x.bound, Tparams=kind(x),
             Tindices="type: DT_INT32", Taxis="type: DT_INT32")


def cumsum(g):
    x = pick(g, NUMBERS, 1)
    axis = g.rng.randrange(len(x.shape)) if x else 0
    if x and x.bound * x.shape[axis] < 1024:
        g.op("Cumsum", [x, g.constant(np.array(axis, np.int32))], x.dtype, x.shape, x.bound * max(x.shape[axis], 1), T=kind(x),
             exclusive="b: %s" % g.rng.choice(["true", "false"]), reverse="b: %s" % g.rng.choice(["true", "false"]))


def matmul(g):
    x = pick(g, ("f32", "f64", "i32", "i64"), 2, 2)
    if not x:
        return
    fits = [(t, a, b) for t in g.tensors for a in (0, 1) for b in (0, 1)
            if t.dtype == x.dtype and len(t.shape) == 2 and x.shape[1 - a] == t.shape[b]]
    if not fits:
        return
    y, a, b = g.rng.choice(fits)
    shape = (x.shape[a], y.shape[1 - b])
    if shape[0] * shape[1] <= ELEMENTS_MAX:
        g.op("MatMul", [x, y], x.dtype, shape, x.bound * y.bound * max(x.shape[1 - a], 1), T=kind(x),
             transpose_a="b: %s" % ("true" if a else "false"), transpose_b="b: %s" % ("true" if b else "false"))


MAKERS = [unary, unary, binary, binary, binary, remainder, compare, logic, select, cast, reduce, reduce, argmax, reshape, transpose,
          expand, concat, pack, strided, pad, tile, reverse, gather, cumsum, matmul, matmul]


def make(seed):
    rng = random.Random(seed)
    g = Graph(rng)
    sizes = [rng.choice([0, 1, 1, 2, 3, 4, 5, 7, 8, 13]) for _ in range(3)]
    dtype = rng.choice(NUMBERS)
    for _ in range(rng.randint(2, 4)):
        shape = [rng.choice(sizes) for _ in range(rng.randint(0, 3))]
        while np.prod(shape) > ELEMENTS_MAX:
            shape.pop()
        g.source(dtype if rng.random() < 0.8 else rng.choice(NUMBERS + ("bool",)), shape)
    for _ in range(rng.randint(3, 25)):
        rng.choice(MAKERS)(g)
    made = [t for t in g.tensors if not t.name.startswith("x")] or g.tensors
    return g, rng.sample(made, min(len(made), rng.randint(1, 4)))


def attempt(tfc, seed, folder):
    """None when both halves agree, else why not, or LEFT_OUT."""
    g, fetches = make(seed)
    with open(os.path.join(folder, "graph.pbtxt"), "w", encoding="utf-8") as f:
        f.write("\n".join(g.lines) + "\n")
    args = []
    for i, (name, value) in enumerate(sorted(g.feeds.items())):
        np.save(os.path.join(folder, "feed%d.npy" % i), value)
        args += ["--feed", "%s=feed%d.npy" % (name, i)]
    names = [half + "/" + t.name for t in fetches for half in "ab"]
    for i, name in enumerate(names):
        args += ["--fetch", "%s=got%d.npy" % (name, i)]
    entry = "main: %s -> %s" % (", ".join(sorted(g.feeds)), ", ".join(names))
    for argv in ([tfc, "build", "graph.pbtxt", "-o", "out", "--entry", entry], ["out/localhost_0", "--entry", "main"] + args):
        try:
            done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
        except subprocess.TimeoutExpired:
            return "%s takes more than 60 s" % argv[0]
        if STRETCHED.search(done.stderr):
            return LEFT_OUT
        if done.returncode:
            return "exit code %d: %s" % (done.returncode, (done.stderr.strip().splitlines() or ["(nothing)"])[-1][:300])
    for i, t in enumerate(fetches):
        compiled, folded = (np.load(os.path.join(folder, "got%d.npy" % k)) for k in (2 * i, 2 * i + 1))
        if compiled.shape != t.shape or folded.shape != t.shape:
            return "%s: shapes %s and %s, want %s" % (t.name, compiled.shape, folded.shape, t.shape)
        if compiled.dtype != folded.dtype or not np.array_equal(compiled, folded):
            return "%s: the values differ: %s and %s" % (t.name, compiled.ravel()[:6], folded.ravel()[:6])
    return None


def main():
    parser = argparse.ArgumentParser(description="Random graphs, compiled and evaluated.")
    parser.add_argument("--tfc", default="build/tfc")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the folder of a graph that fails")
    options = parser.parse_args()
    tfc = os.path.abspath(options.tfc)
    end, seed, failed, left_out = time.monotonic() + options.seconds, options.seed, 0, 0
    while True:
        folder = tempfile.mkdtemp(prefix="random-graph-")
        why = attempt(tfc, seed, folder)
        if why:
            failed += why != LEFT_OUT
            left_out += why == LEFT_OUT
            kept = " (kept in %s)" % folder if options.keep else ""
            print("%s--seed %d: %s%s" % ("" if why == LEFT_OUT else "FAIL ", seed, why, kept), flush=True)
        if not (why and options.keep):
            shutil.rmtree(folder)
        seed += 1
        if time.monotonic() > end:
            break
    print("%d passed, %d failed" % (seed - options.seed - failed - left_out, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
