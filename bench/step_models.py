"""The models that bench_steps.py times, each written once over the few operations that TensorFlow and JAX both have (`F`).

A model is a function `loss(F, p, batch)`: `p(name, shape, scale)` gives a parameter, `batch` the fed arrays by name. What it
returns is a scalar, or, of a model that only infers, its output.
"""
import numpy as np


class Model:
    def __init__(self, name, feeds, function, terms, optimizer, rate, infers=False):
        self.name = name
        self.terms = terms          # multiply-adds of the products and convolutions of a step, gradients included
        self.feeds = feeds          # name: array
        self.function = function
        self.optimizer = optimizer  # sgd, momentum, adam, adagrad; "" where nothing is trained
        self.rate = rate
        self.infers = infers


def parameter_value(name, shape, scale):
    """The same numbers for every peer: `scale` 0 and 1 are constants, others the deviation of normal ones."""
    if scale in (0, 1):
        return np.full(shape, scale, np.float32)
    seed = sum(ord(c) * (i + 1) for i, c in enumerate(name))
    return (np.random.RandomState(seed).standard_normal(shape) * scale).astype(np.float32)


def dense(F, p, name, x, inputs, outputs):
    return F.matmul(x, p(name + "_w", (inputs, outputs), inputs ** -0.5)) + p(name + "_b", (outputs,), 0)


def mlp(sizes):
    def function(F, p, batch):
        x = batch["x"]
        for i, (n, m) in enumerate(zip(sizes, sizes[1:])):
            x = dense(F, p, "l%d" % i, x, n, m)
            if i + 2 < len(sizes):
                x = F.relu(x)
        return x if F.infers else F.cross_entropy(x, batch["label"])
    return function


def lenet(F, p, batch):
    x = batch["x"]
    for i, (n, m) in enumerate(((1, 32), (32, 64))):
        x = F.conv(x, p("c%d_w" % i, (5, 5, n, m), (25 * n) ** -0.5), 1) + p("c%d_b" % i, (m,), 0)
        x = F.max_pool(F.relu(x))
    x = F.reshape(x, (-1, 7 * 7 * 64))
    x = F.relu(dense(F, p, "d0", x, 7 * 7 * 64, 1024))
    x = dense(F, p, "d1", x, 1024, 10)
    return x if F.infers else F.cross_entropy(x, batch["label"])


def residual(F, p, batch):
    def conv(name, x, n, m, stride, size=3):
        return F.conv(x, p(name + "_w", (size, size, n, m), (size * size * n) ** -0.5), stride)

    def norm(name, x, n):
        return F.batch_norm(x, p(name + "_g", (n,), 1), p(name + "_s", (n,), 0))

    x = F.relu(norm("n", conv("c", batch["x"], 3, 16, 1), 16))
    n = 16
    for stage in range(3):
        m = 16 << stage
        for block in range(2):
            name, stride = "s%db%d" % (stage, block), 2 if stage and not block else 1
            y = F.relu(norm(name + "n0", conv(name + "c0", x, n, m, stride), m))
            y = norm(name + "n1", conv(name + "c1", y, m, m, 1), m)
            x = x if n == m else conv(name + "p", x, n, m, stride, 1)
            x, n = F.relu(x + y), m
    return F.cross_entropy(dense(F, p, "d", F.mean(x, (1, 2)), n, 10), batch["label"])


def lstm(F, p, batch):
    units = 128
    w, b = p("w", (units + units, 4 * units), (2 * units) ** -0.5), p("b", (4 * units,), 0)

    def cell(state, x):
        c, h = state
        i, j, f, o = F.split(F.matmul(F.concat((x, h), 1), w) + b, 4, 1)
        c = c * F.sigmoid(f + 1.0) + F.sigmoid(i) * F.tanh(j)
        return c, F.tanh(c) * F.sigmoid(o)

    zero = np.zeros((64, units), np.float32)
    c, h = F.scan(cell, (zero, zero), batch["x"], 32)
    return F.cross_entropy(dense(F, p, "d", h, units, 10), batch["label"])


def transformer(F, p, batch):
    rows, tokens, width, heads = -1, 64, 256, 4

    def norm(name, x):
        x = x - F.mean(x, (2,), True)
        return x * F.rsqrt(F.mean(x * x, (2,), True) + 1e-6) * p(name + "_g", (width,), 1) + p(name + "_s", (width,), 0)

    def project(name, x, n, m):
        return F.reshape(dense(F, p, name, F.reshape(x, (-1, n)), n, m), (rows, tokens, m))

    def split(x):
        return F.transpose(F.reshape(x, (rows, tokens, heads, width // heads)), (0, 2, 1, 3))

    x = batch["x"]
    for layer in range(2):
        name = "l%d" % layer
        y = norm(name + "n0", x)
        q, k, v = (split(project(name + part, y, width, width)) for part in "qkv")
        scores = F.softmax(F.matmul_t(q, k) * (width // heads) ** -0.5)
        y = F.reshape(F.transpose(F.matmul(scores, v), (0, 2, 1, 3)), (rows, tokens, width))
        x = x + project(name + "o", y, width, width)
        y = F.relu(project(name + "f", norm(name + "n1", x), width, 4 * width))
        x = x + project(name + "g", y, 4 * width, width)
    logits = dense(F, p, "d", F.reshape(norm("n", x), (-1, width)), width, width)
    return F.cross_entropy(logits, F.reshape(batch["label"], (-1,)))


def embeddings(F, p, batch):
    rows = [F.lookup(p("t%d" % i, (100000, 32), 0.05), batch["id%d" % i]) for i in range(3)]
    x = F.relu(dense(F, p, "d0", F.concat(rows, 1), 96, 64))
    return F.cross_entropy(dense(F, p, "d1", x, 64, 2), batch["label"])


def almost_nothing(F, p, batch):
    y = dense(F, p, "d", batch["x"], 4, 1)
    return F.mean(y * y, (0, 1))


def layer_terms(*sizes):
    """Of dense layers, a row: forward, and both gradients but that of the input."""
    pairs = list(zip(sizes, sizes[1:]))
    return 3 * sum(n * m for n, m in pairs) - sizes[0] * sizes[1]


def residual_terms():
    total, n = 2 * 32 * 32 * 9 * 3 * 16, 16
    for stage in range(3):
        m, side = 16 << stage, 32 >> stage
        first = side * side * (9 * n * m + (n * m if n != m else 0))
        total += 3 * (first + 3 * side * side * 9 * m * m)
        n = m
    return 32 * (total + 3 * 64 * 10)


def lenet_terms(rows, infers):
    first, second, rest = 28 * 28 * 25 * 32, 14 * 14 * 25 * 32 * 64, 7 * 7 * 64 * 1024 + 1024 * 10
    return rows * (first + second + rest if infers else 2 * first + 3 * (second + rest))


def _feeds(shape, batch, classes):
    r = np.random.RandomState(1)
    return {"x": r.standard_normal(shape).astype(np.float32), "label": r.randint(0, classes, batch).astype(np.int32)}


def _ids():
    r = np.random.RandomState(2)
    feeds = {"id%d" % i: r.randint(0, 100000, 512).astype(np.int32) for i in range(3)}
    return dict(feeds, label=r.randint(0, 2, 512).astype(np.int32))


def _only_x(shape):
    return {"x": _feeds(shape, 1, 10)["x"]}


_TRANSFORMER_ROW = 2 * (4 * 256 * 256 + 2 * 64 * 256 + 8 * 256 * 256) + 256 * 256

MODELS = {m.name: m for m in (
    Model("mlp", _feeds((128, 784), 128, 10), mlp((784, 128, 10)), 128 * layer_terms(784, 128, 10), "adam", 1e-3),
    Model("large_mlp", _feeds((256, 1024), 256, 1000), mlp((1024, 2048, 2048, 1000)), 256 * layer_terms(1024, 2048, 2048, 1000),
          "sgd", 1e-2),
    Model("lenet", _feeds((64, 28, 28, 1), 64, 10), lenet, lenet_terms(64, False), "momentum", 1e-2),
    Model("residual", _feeds((32, 32, 32, 3), 32, 10), residual, residual_terms(), "momentum", 1e-2),
    Model("lstm", _feeds((32, 64, 128), 64, 10), lstm, 3 * 32 * 64 * 256 * 512, "sgd", 1e-2),
    Model("transformer", _feeds((16, 64, 256), (16, 64), 256), transformer, 3 * 16 * 64 * _TRANSFORMER_ROW, "adam", 1e-3),
    Model("embeddings", _ids(), embeddings, 3 * 512 * (96 * 64 + 64 * 2), "adagrad", 1e-1),
    Model("lenet_inference", _only_x((1, 28, 28, 1)), lenet, lenet_terms(1, True), "", 0, True),
    Model("mlp_inference", _only_x((1, 784)), mlp((784, 128, 10)), 784 * 128 + 128 * 10, "", 0, True),
    Model("served_mlp", _only_x((32, 1024)), mlp((1024, 2048, 1024, 100)), 32 * (1024 * 2048 + 2048 * 1024 + 1024 * 100), "", 0, True),
    Model("served_row", _only_x((1, 1024)), mlp((1024,) * 25), 24 * 1024 * 1024, "", 0, True),
    Model("almost_nothing", _only_x((16, 4)), almost_nothing, 2 * 16 * 4, "sgd", 1e-2),
)}
