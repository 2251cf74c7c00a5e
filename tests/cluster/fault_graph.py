"""Graphs whose variables count: what a job has applied can be read off them. Written as text, so that no TensorFlow is needed."""
import numpy as np

FLOAT = "type: DT_FLOAT"
WIDE = 512  # floats of a row of the larger counters


def shape(dims):
    return "shape {%s }" % "".join(" dim { size: %d }" % d for d in dims)


def tensor(dims, value):
    return "tensor { dtype: DT_FLOAT tensor_shape {%s } float_val: %g }" % ("".join(" dim { size: %d }" % d for d in dims), value)


class Graph:
    def __init__(self):
        self.lines, self.initialisers = [], []

    def node(self, name, op, inputs=(), device=None, **attrs):
        text = ['node { name: "%s" op: "%s"' % (name, op)] + ['input: "%s"' % i for i in inputs]
        text += ['device: "%s"' % device] if device else []
        text += ['attr { key: "%s" value { %s } }' % a for a in sorted(attrs.items())]
        self.lines.append(" ".join(text) + " }")
        return name

    def placeholder(self, name, dims):
        return self.node(name, "Placeholder", dtype=FLOAT, shape=shape(dims))

    def constant(self, name, dims, value, device=None):
        return self.node(name, "Const", device=device, dtype=FLOAT, value="%s" % tensor(dims, value))

    def variable(self, name, dims, device=None):
        self.node(name, "VariableV2", device=device, dtype=FLOAT, shape=shape(dims))
        zeros = self.constant(name + "/zeros", dims, 0, device)
        self.initialisers.append(self.node(name + "/Assign", "Assign", [name, zeros], device, T=FLOAT))
        return self.node(name + "/read", "Identity", [name], device, T=FLOAT)

    def math(self, name, op, a, b, device=None):
        return self.node(name, op, [a, b], device, T=FLOAT)

    def group(self, name, targets):
        return self.node(name, "NoOp", ["^" + t for t in targets])

    def save(self, path):
        self.group("init", self.initialisers)
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(self.lines) + "\n")


def counters(path, ps, workers):
    """Every worker's step adds its row `mine` (a one in its own place) to two variables of each ps: a short one, and a wide one
    whose increment the worker computes of what it has read. Entries: init, train (mine), look (count0, wide0, count1 ...)."""
    g = Graph()
    mine = g.placeholder("mine", [workers, 1])
    nought = g.constant("nought", [workers, WIDE], 0)
    ones = g.constant("ones", [1, WIDE], 1)
    row = g.math("row", "Mul", mine, ones)
    updates, looks = [], []
    for p in range(ps):
        device = "/job:ps/task:%d" % p
        looks.append(g.variable("count%d" % p, [workers, 1], device))
        looks.append(g.variable("wide%d" % p, [workers, WIDE], device))
    for p in range(ps):
        device = "/job:ps/task:%d" % p
        other = "wide%d/read" % ((p + 1) % ps)
        delta = g.math("delta%d" % p, "AddV2", row, g.math("none%d" % p, "Mul", other, nought))
        updates.append(g.node("add_count%d" % p, "AssignAdd", ["count%d" % p, mine], device, T=FLOAT))
        updates.append(g.node("add_wide%d" % p, "AssignAdd", ["wide%d" % p, delta], device, T=FLOAT))
    g.group("train_op", updates)
    g.save(path)
    return ["--entry", "init: -> | init", "--entry", "train: mine -> | train_op", "--entry", "look: -> " + ", ".join(looks),
            "--replicate", "worker"], looks


def descent(path, dims=WIDE):
    """Gradient descent with the fed row as gradient: after N rounds the variables are -N times the mean of the workers' rows. Entries:
    init, train (x), look (a, b)."""
    g = Graph()
    x = g.placeholder("x", [dims])
    nought, rate = g.constant("nought", [dims], 0), g.constant("rate", [], 1)
    steps = []
    for name in ("a", "b"):
        read = g.variable(name, [dims])
        gradient = g.math(name + "/gradient", "AddV2", x, g.math(name + "/none", "Mul", read, nought))
        steps.append(g.node(name + "/step", "ApplyGradientDescent", [name, rate, gradient], T=FLOAT))
    g.group("train_op", steps)
    g.save(path)
    return ["--entry", "init: -> | init", "--entry", "train: x -> | train_op", "--entry", "look: -> a/read, b/read"], ["a/read", "b/read"]


def rows(workers):
    """What the workers of a `descent` feed: their mean is a whole number."""
    return [np.full(WIDE, 2 * w + 1, np.float32) for w in range(workers)]
