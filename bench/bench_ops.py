#!/usr/bin/env python3
"""Single ops and their gradients beside TensorFlow, on one core.

    python3 bench/bench_ops.py [--tfc build/tfc] [--rounds 3] [--seconds 0.3] [PART OF A NAME...]

Runs in a Python that has the package tensorflow, which writes the graphs and is the peer. Operands and results are variables on both sides:
nothing is fed or fetched. Times are of processor, both sides in turn in each round; ours is the difference of two runs, with one step and
with many.

Prints our time and the ratio of TensorFlow's to it (above 1: ours is faster), of both the least of the rounds, and whether the sums of what
both computed agree.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow.compat.v1 as tf  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
RANDOM = np.random.RandomState(3)


def held(array):
    """What a variable holds."""
    name = "v%d" % len(tf.global_variables())
    return tf.get_variable(name, initializer=tf.constant(array), use_resource=True).read_value()


def floats(*shape):
    return held(RANDOM.uniform(0, 1, shape).astype(np.float32))


def indices(below, *shape):
    return held(RANDOM.randint(0, below, shape).astype(np.int32))


def symmetric(*shape):
    """Positive definite matrices."""
    a = RANDOM.uniform(0, 1, shape).astype(np.float32)
    return held(a @ np.swapaxes(a, -1, -2) + shape[-1] * np.eye(shape[-1], dtype=np.float32))


def gradient(f, *shapes):
    """Of the first of f's operands."""
    operands = [floats(*shape) for shape in shapes]
    y = f(*operands)
    return tf.gradients(y, operands[0], floats(*y.shape.as_list()))[0]


def rows():
    """Pairs of a name and what makes the op's value."""
    for way in ("bilinear", "bicubic", "area", "nearest"):
        for shape, to in (((2, 64, 64, 16), (200, 200)), ((2, 64, 64, 3), (200, 200)), ((2, 32, 32, 256), (64, 64)),
                          ((2, 256, 256, 3), (100, 100))):
            def resize(x, way=way, to=to):
                return tf.image.resize(x, to, method=way)
            name = "resize %s %s to %dx%d" % (way, "x".join(map(str, shape[1:])), *to)
            yield name, lambda shape=shape, resize=resize: resize(floats(*shape))
            if way != "area":
                yield name + ", gradient", lambda shape=shape, resize=resize: gradient(resize, shape)
    for kind in ("max", "avg"):
        for size, stride, shape in ((3, 1, (4, 56, 56, 64)), (3, 2, (4, 56, 56, 64)), (2, 2, (4, 56, 56, 64)), (13, 1, (1, 13, 13, 512)),
                                    (3, 2, (4, 128, 128, 3)), (3, 1, (2, 16, 28, 28, 32)), (3, 2, (2, 16, 28, 28, 32))):
            def pool(x, kind=kind, size=size, stride=stride):
                return getattr(tf.nn, "%s_pool%dd" % (kind, len(x.shape) - 2))(x, size, stride, "SAME")
            name = "pool %s %d by %d of %s" % (kind, size, stride, "x".join(map(str, shape[1:])))
            yield name, lambda shape=shape, pool=pool: pool(floats(*shape))
            yield name + ", gradient", lambda shape=shape, pool=pool: gradient(pool, shape)
    for shape, taps, outputs, stride in (((8, 96, 96, 16), 3, 64, 4), ((8, 224, 224, 3), 16, 192, 16), ((4, 96, 96, 3), 4, 96, 4),
                                         ((8, 96, 96, 16), 8, 32, 4), ((8, 96, 96, 16), 2, 64, 2), ((8, 96, 96, 16), 5, 64, 2)):
        yield ("conv %dx%d by %d of %s, gradient" % (taps, taps, stride, "x".join(map(str, shape[1:]))),
               lambda s=shape, t=taps, o=outputs, by=stride: gradient(lambda x, w: tf.nn.conv2d(x, w, by, "SAME"), s, (t, t, s[3], o)))
    yield "pad 64x64x16 by 3", lambda: tf.pad(floats(4, 64, 64, 16), [[0, 0], [3, 3], [3, 3], [0, 0]])
    yield "roll 1000x1000", lambda: tf.roll(floats(1000, 1000), [3, 5], [0, 1])
    yield "roll 56x56x96", lambda: tf.roll(floats(4, 56, 56, 96), [-3, -3], [1, 2])
    yield "in_top_k 512x1000", lambda: tf.cast(tf.nn.in_top_k(floats(512, 1000), indices(1000, 512), 5), tf.int32)
    yield "top_k 1000x1000", lambda: tf.math.top_k(floats(1000, 1000), 10)[0]
    yield "sort 100000", lambda: tf.sort(floats(100000))
    yield "cumsum 1000x1000", lambda: tf.cumsum(floats(1000, 1000), 1)
    yield "segment sums", lambda: tf.math.unsorted_segment_sum(floats(10000, 64), indices(100, 10000), 100)
    yield "scatter_nd", lambda: tf.scatter_nd(indices(1000, 100000, 2), floats(100000), [1000, 1000])
    yield "where", lambda: tf.size(tf.where(floats(1000, 1000) > 0.5))
    yield "cholesky 256", lambda: tf.linalg.cholesky(symmetric(256, 256))
    yield "cholesky 64 of 32", lambda: tf.linalg.cholesky(symmetric(64, 32, 32))
    yield "inverse 256", lambda: tf.linalg.inv(symmetric(256, 256))
    yield "solve 256", lambda: tf.linalg.solve(symmetric(256, 256), floats(256, 16))
    yield "determinant 256", lambda: tf.linalg.det(symmetric(256, 256) / 256)
    yield "lu 256", lambda: tf.linalg.lu(symmetric(256, 256))[0]
    yield "qr 128", lambda: tf.linalg.qr(floats(128, 128))[1]
    for size in (64, 128, 256):
        yield "eigenvalues %d" % size, lambda n=size: tf.linalg.eigh(symmetric(n, n))[0]
    yield "eigenvalues alone 128", lambda: tf.linalg.eigvalsh(symmetric(128, 128))
    yield "singular values 4 of 64", lambda: tf.linalg.svd(floats(4, 64, 64), compute_uv=False)
    for shape in ((64, 64), (150, 150), (256, 256), (500, 20), (20, 500)):
        yield "singular vectors %dx%d" % shape, lambda shape=shape: tf.linalg.svd(floats(*shape))[0]
    yield "pseudo-inverse 100x60", lambda: tf.linalg.pinv(floats(100, 60))
    yield "hsv to rgb", lambda: tf.image.hsv_to_rgb(floats(4, 128, 128, 3))
    yield "adjust_contrast", lambda: tf.image.adjust_contrast(floats(4, 128, 128, 3), 1.5)


# ---- both sides ----

def write_graph(make, path):
    graph = tf.Graph()
    with graph.as_default():
        value = make()
        to = tf.get_variable("to", shape=value.shape, dtype=value.dtype, initializer=tf.zeros_initializer(), use_resource=True)
        step = tf.group(to.assign(value, read_value=False), name="step")
        tf.reduce_sum(tf.cast(to.read_value(), tf.float64), name="sum")
        tf.group(tf.global_variables_initializer(), name="init")
    with open(path, "wb") as f:
        f.write(graph.as_graph_def().SerializeToString())
    session = tf.Session(graph=graph, config=tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1))
    session.run("init")
    return session, session.make_callable([step])


class Ours:
    def __init__(self, tfc, folder):
        self.folder, self.task = folder, os.path.join(folder, "out", "localhost_0")
        subprocess.run([tfc, "build", os.path.join(folder, "graph.pb"), "--quiet", "-o", os.path.dirname(self.task), "--entry",
                        "init: -> | init", "--entry", "step: -> | step", "--entry", "sum: -> sum"], check=True)

    def run(self, steps, *more):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([self.task, "--threads", "1", "--entry", "init", "--entry", "step", "--steps", str(steps), *more], check=True,
                       stdout=subprocess.DEVNULL, cwd=self.folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    def sum(self):
        self.run(1, "--entry", "sum", "--fetch", "sum=sum.npy")
        return float(np.load(os.path.join(self.folder, "sum.npy")))


def theirs(call, steps):
    begin = time.process_time()
    for _ in range(steps):
        call()
    return (time.process_time() - begin) / steps


def measure(options, name, make):
    with tempfile.TemporaryDirectory() as folder:
        session, call = write_graph(make, os.path.join(folder, "graph.pb"))
        ours = Ours(options.tfc, folder)
        theirs(call, 1)
        want, got = float(session.run("sum:0")), ours.sum()
        steps = max(5, int(options.seconds / max(theirs(call, 3), 1e-6)))
        rounds = [(ours.run(steps + 1), ours.run(1), theirs(call, steps)) for _ in range(options.rounds)]
        session.close()
    many, one, other = [min(times) for times in zip(*rounds)]
    us = (many - one) / steps
    agrees = abs(want - got) <= 1e-3 * abs(want) + 1e-3
    print("%-52s%10.1f%8.2f%s" % (name, us * 1e6, other / us, "" if agrees else "   sums %g, %g" % (got, want)), flush=True)


def main():
    parser = argparse.ArgumentParser(description="Single ops beside TensorFlow on one core.")
    parser.add_argument("--tfc", default=os.path.join(HERE, "..", "build", "tfc"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3, help="that each side steps in a round")
    parser.add_argument("parts", nargs="*")
    options = parser.parse_args()
    options.tfc = os.path.abspath(options.tfc)
    tf.disable_v2_behavior()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    print("one core; TensorFlow's time over ours\n%-52s%10s%8s" % ("op", "us", "ratio"))
    for name, make in rows():
        if not options.parts or any(part in name for part in options.parts):
            measure(options, name, make)
    return 0


if __name__ == "__main__":
    sys.exit(main())
