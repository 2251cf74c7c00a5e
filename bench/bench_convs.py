#!/usr/bin/env python3
"""Convolutions of well-known nets, forward (y), backward to the input (dx) and to the filter (dw), beside TensorFlow and oneDNN, on one
core.

    python3 bench/bench_convs.py [--tfc build/tfc] [--python PYTHON] [--rounds 3] [--seconds 0.1] [--batch 2] [--dtype bfloat16]
                                 [PART OF A NAME...]

PYTHON has the package tensorflow, which writes the graph and is the peer. Operands and results are variables on both sides: nothing is fed
or fetched. Times are of processor, both sides in turn in each round; ours is the difference of two runs, with one step and with
many. Products inside of the image alone are counted. Where `ninja onednn_peer` has built it beside tfc (package libdnnl-dev), oneDNN's own
primitives step in turn with both, the faster of TensorFlow's layouts and of those that oneDNN asks for, turning operands not counted.

Prints our time, what it reaches of the core's arithmetic peak for float32, and the ratios of TensorFlow's and of oneDNN's time to ours: of
all runs the least of the rounds, as others use the machine too.
"""
import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FORMS = ("y", "dx", "dw")


class Case:
    """side: of the image; depthwise where outputs is 0."""
    def __init__(self, net, side, channels, outputs, taps, stride=1, padding="SAME"):
        self.side, self.channels, self.outputs, self.stride, self.padding = side, channels, outputs, stride, padding
        self.taps = taps if isinstance(taps, tuple) else (taps, taps)
        to = "dw" if not outputs else outputs
        self.name = "%s_%dx%sx%s_%dx%d%s%s" % (net, side, channels, to, *self.taps, "s%d" % stride if stride > 1 else "",
                                             "" if padding == "SAME" else "v")

    def outputs_of(self, taps):
        return -(-self.side // self.stride) if self.padding == "SAME" else (self.side - taps) // self.stride + 1

    def inside(self, taps):
        """Taps inside of the image, of all outputs of an axis."""
        out = self.outputs_of(taps)
        before = max((out - 1) * self.stride + taps - self.side, 0) // 2 if self.padding == "SAME" else 0
        return sum(0 <= o * self.stride - before + t < self.side for o in range(out) for t in range(taps))

    def terms(self):
        return self.inside(self.taps[0]) * self.inside(self.taps[1]) * self.channels * (self.outputs or 1)


def resnet():
    yield Case("resnet", 224, 3, 64, 7, 2)
    for side, n, before in ((56, 64, 64), (28, 128, 256), (14, 256, 512), (7, 512, 1024)):
        yield Case("resnet", side, n, n, 3)
        yield Case("resnet", side, n, 4 * n, 1)
        yield Case("resnet", side, 4 * n, n, 1)
        if n == 64:
            yield Case("resnet", side, n, n, 1)
        else:
            yield Case("resnet", 2 * side, before, n, 1)
            yield Case("resnet", 2 * side, n, n, 3, 2)
            yield Case("resnet", 2 * side, before, 4 * n, 1, 2)


def mobilenet():
    yield Case("mobilenet", 224, 3, 32, 3, 2)
    for side, n, stride in ((112, 32, 1), (112, 64, 2), (56, 128, 1), (56, 128, 2), (28, 256, 1), (28, 256, 2), (14, 512, 1), (14, 512, 2),
                            (7, 1024, 1)):
        yield Case("mobilenet", side, n, 0, 3, stride)


def others():
    for n in (1, 2, 3):
        yield Case("ssim", 128, n, 0, 11, 1, "VALID")
    yield Case("ssim", 56, 32, 0, 11)
    yield Case("inception", 149, 32, 32, 3, 1, "VALID")
    yield Case("inception", 147, 32, 64, 3)
    yield Case("inception", 73, 80, 192, 3, 1, "VALID")
    yield Case("inception", 35, 48, 64, 5)
    yield Case("inception", 35, 288, 384, 3, 2, "VALID")
    yield Case("inception", 17, 128, 192, (1, 7))
    yield Case("inception", 17, 128, 192, (7, 1))
    yield Case("inception", 8, 448, 384, 3)
    yield Case("vgg", 28, 256, 256, 3)
    yield Case("vgg", 28, 512, 512, 3)
    yield Case("vgg", 7, 512, 512, 3)
    yield Case("vgg", 14, 256, 256, 3)


CASES = [*resnet(), *mobilenet(), *others()]


# ---- TensorFlow: a process that is told what to do by lines ----

def make_graph(tf, c, batch, dtype):
    def variable(name, shape):
        start = tf.cast(tf.random.uniform(shape, -1, 1, seed=1), dtype)
        return tf.get_variable(name, initializer=start, use_resource=True).read_value()

    tail = (c.outputs,) if c.outputs else (1,)
    x_shape, w_shape, out = (batch, c.side, c.side, c.channels), c.taps + (c.channels,) + tail, [c.outputs_of(t) for t in c.taps]
    options = {"strides": [1, c.stride, c.stride, 1], "padding": c.padding}
    nn, kind = tf.nn, "conv2d" if c.outputs else "depthwise_conv2d"
    with tf.Graph().as_default() as graph:
        x, w, g = variable("x", x_shape), variable("w", w_shape), variable("g", (batch, *out, c.outputs or c.channels))
        made = (getattr(nn, kind)(x, w, **options), getattr(nn, kind + "_backprop_input")(x_shape, w, g, **options),
                getattr(nn, kind + "_backprop_filter")(x, w_shape, g, **options))
        for form, y in zip(FORMS, made):
            to = tf.get_variable("to_" + form, shape=y.shape, dtype=dtype, initializer=tf.zeros_initializer(), use_resource=True)
            tf.group(to.assign(y, read_value=False), name=form)
        tf.global_variables_initializer()
    return graph


def peer(batch, dtype):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow.compat.v1 as tf
    tf.disable_eager_execution()
    cases, config = {c.name: c for c in CASES}, tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    for line in sys.stdin:
        word, what = line.split(maxsplit=1)
        if word == "graph":
            name, path = what.split()
            graph = make_graph(tf, cases[name], batch, dtype)
            with open(path, "wb") as f:
                f.write(graph.as_graph_def().SerializeToString())
            session = tf.Session(graph=graph, config=config)
            session.run("init")
            calls = {form: session.make_callable([graph.get_operation_by_name(form)]) for form in FORMS}
            print("ready", flush=True)
            continue
        begin = time.process_time()
        for _ in range(int(what)):
            calls[word]()
        print((time.process_time() - begin) / int(what), flush=True)


class Peer:
    """A process that makes what a line asks for, and answers lines of a form and a number of steps by the seconds of one."""
    def __init__(self, argv):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env=dict(os.environ, OMP_NUM_THREADS="1"))

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def step(self, form, steps):
        return float(self.ask("%s %d" % (form, steps)))


def tensorflow_peer(options):
    return Peer([options.python, __file__, "--peer", "--batch", str(options.batch), "--dtype", options.dtype])


def onednn_peer(options):
    path = os.path.join(os.path.dirname(options.tfc), "onednn_peer")
    return Peer([path]) if os.path.exists(path) else None


def onednn_line(c, options):
    outs = [c.outputs_of(taps) for taps in c.taps]
    before = [max((out - 1) * c.stride + taps - c.side, 0) // 2 if c.padding == "SAME" else 0 for out, taps in zip(outs, c.taps)]
    numbers = (options.batch, c.side, c.side, c.channels, c.outputs, *c.taps, c.stride, *before, *outs)
    return "conv %s %s" % ("bf16" if options.dtype == "bfloat16" else "f32", " ".join(map(str, numbers)))


# ---- all ----

class Ours:
    def __init__(self, options, folder):
        self.task = os.path.join(folder, "out", "localhost_0")
        argv = [options.tfc, "build", os.path.join(folder, "graph.pb"), "--quiet", "-o", os.path.dirname(self.task), "--entry",
                "init: -> | init"]
        subprocess.run(argv + [a for form in FORMS for a in ("--entry", "%s: -> | %s" % (form, form))], check=True)

    def run(self, form, steps):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([self.task, "--threads", "1", "--entry", form, "--steps", str(steps)], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def compare(options, tensorflow, onednn, c, peak):
    with tempfile.TemporaryDirectory() as folder:
        tensorflow.ask("graph %s %s" % (c.name, os.path.join(folder, "graph.pb")))
        peers = [tensorflow] + [onednn] * (onednn is not None and onednn.ask(onednn_line(c, options)) == "ready\n")
        ours = Ours(options, folder)
        for form in FORMS:
            tensorflow.step(form, 1)
            steps = max(5, int(options.seconds / max(tensorflow.step(form, 3), 1e-6)))
            rounds = [(ours.run(form, steps + 1), ours.run(form, 1), *(p.step(form, steps) for p in peers)) for _ in range(options.rounds)]
            many, one, *theirs = [min(times) for times in zip(*rounds)]
            us = (many - one) / steps
            share = 2e-9 * options.batch * c.terms() / us / peak
            print("%-38s%-4s%10.0f%8.2f" % (c.name, form, us * 1e6, share) + "".join("%12.2f" % (t / us) for t in theirs), flush=True)


def peak_of(options):
    out = subprocess.run([os.path.join(os.path.dirname(options.tfc), "bench_gemm"), "peak"], check=True, capture_output=True, text=True)
    return float(re.search(r"peak of one core: ([0-9.]+)", out.stdout)[1])


def main():
    parser = argparse.ArgumentParser(description="Convolutions beside TensorFlow and oneDNN on one core.")
    parser.add_argument("--tfc", default=os.path.join(HERE, "..", "build", "tfc"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1, help="that each side steps in a round")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("parts", nargs="*")
    options = parser.parse_args()
    if options.peer:
        peer(options.batch, options.dtype)
        return 0
    options.tfc = os.path.abspath(options.tfc)
    peak, tensorflow, onednn = peak_of(options), tensorflow_peer(options), onednn_peer(options)
    print("one core, %.0f GFLOP/s; ratios: a peer's time over ours" % peak)
    print("%-42s%10s%8s%12s%12s" % ("convolution", "us", "peak", "tensorflow", "onednn" if onednn else ""))
    for c in CASES:
        if not options.parts or any(p in c.name for p in options.parts):
            compare(options, tensorflow, onednn, c, peak)
    return 0


if __name__ == "__main__":
    sys.exit(main())
