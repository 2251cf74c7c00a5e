"""One peer that steps one model of step_models.py, as a process: reads a number of steps from each line, prints the seconds for one.

    python3 bench/step_peers.py tensorflow|jax|onnxruntime MODEL THREADS
    python3 bench/step_peers.py graph MODEL FILE         # writes the model's graph for tfc

Every step is fed its arrays anew and gives its loss (or output) back, on all peers alike.
"""
import os
import sys
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from step_models import MODELS, parameter_value  # noqa: E402


class TensorFlowOps:
    def __init__(self, tf, infers):
        self.tf, self.infers = tf, infers
        self.matmul, self.relu, self.tanh, self.sigmoid, self.softmax = tf.matmul, tf.nn.relu, tf.tanh, tf.sigmoid, tf.nn.softmax
        self.reshape, self.rsqrt, self.concat, self.split, self.lookup = tf.reshape, tf.rsqrt, tf.concat, tf.split, tf.gather

    def transpose(self, x, order):
        return self.tf.transpose(x, order)

    def matmul_t(self, x, y):
        return self.tf.matmul(x, y, transpose_b=True)

    def mean(self, x, axes, keep=False):
        return self.tf.reduce_mean(x, axes, keepdims=keep)

    def conv(self, x, w, stride):
        return self.tf.nn.conv2d(x, w, strides=[1, stride, stride, 1], padding="SAME")

    def max_pool(self, x):
        return self.tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")

    def batch_norm(self, x, scale, shift):
        return self.tf.nn.fused_batch_norm(x, scale, shift, epsilon=1e-3, is_training=True)[0]

    def cross_entropy(self, logits, label):
        return self.tf.reduce_mean(self.tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits))

    def scan(self, cell, state, xs, turns):
        tf = self.tf
        array = tf.TensorArray(tf.float32, turns).unstack(xs)
        state = tuple(tf.constant(s) for s in state)
        body = lambda t, s: (t + 1, cell(s, array.read(t)))  # noqa: E731
        return tf.while_loop(lambda t, s: t < turns, body, (tf.constant(0), state))[1]


def tensorflow_model(model, is_open=False):
    """The graph, its init operation, and what a step fetches and runs; is_open: of a batch of any size."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow.compat.v1 as tf
    tf.disable_eager_execution()
    tf.disable_control_flow_v2()
    graph = tf.Graph()
    with graph.as_default():
        batch = {name: tf.placeholder(a.dtype, [None if is_open else a.shape[0], *a.shape[1:]], name) for name, a in model.feeds.items()}

        def parameter(name, shape, scale):
            return tf.get_variable(name, initializer=lambda: tf.constant(parameter_value(name, shape, scale)), dtype=tf.float32)

        train = tf.train
        optimizer = {"adam": train.AdamOptimizer, "sgd": train.GradientDescentOptimizer, "adagrad": train.AdagradOptimizer,
                     "momentum": lambda rate: train.MomentumOptimizer(rate, 0.9)}.get(model.optimizer)
        with tf.variable_scope("", use_resource=True):
            result = tf.identity(model.function(TensorFlowOps(tf, model.infers), parameter, batch), "result")
            if optimizer:
                optimizer(model.rate).minimize(result, name="train_op")
        tf.global_variables_initializer()  # the operation `init`
    return tf, graph


def tensorflow_peer(model, threads):
    tf, graph = tensorflow_model(model)
    config = tf.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
    session = tf.Session(graph=graph, config=config)
    session.run("init")
    fetches = ["result:0"] + (["train_op"] if model.optimizer else [])
    call = session.make_callable(fetches, [name + ":0" for name in model.feeds])
    arrays = list(model.feeds.values())
    return lambda: call(*arrays)


class JaxOps:
    def __init__(self, jax, infers):
        self.jax, self.infers = jax, infers
        jnp, nn = jax.numpy, jax.nn
        self.matmul, self.relu, self.tanh, self.sigmoid, self.softmax = jnp.matmul, nn.relu, jnp.tanh, nn.sigmoid, nn.softmax
        self.reshape, self.rsqrt, self.concat, self.split = jnp.reshape, jax.lax.rsqrt, jnp.concatenate, jnp.split
        self.transpose = jnp.transpose

    def lookup(self, table, rows):
        return table(rows) if callable(table) else table[rows]

    def matmul_t(self, x, y):
        return self.jax.numpy.einsum("...ik,...jk->...ij", x, y)

    def mean(self, x, axes, keep=False):
        return self.jax.numpy.mean(x, axes, keepdims=keep)

    def conv(self, x, w, stride):
        return self.jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def max_pool(self, x):
        return self.jax.lax.reduce_window(x, -np.inf, self.jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")

    def batch_norm(self, x, scale, shift):
        mean = x.mean((0, 1, 2))
        variance = ((x - mean) ** 2).mean((0, 1, 2))
        return (x - mean) * (scale * self.rsqrt(variance + 1e-3)) + shift

    def cross_entropy(self, logits, label):
        chosen = self.jax.numpy.take_along_axis(self.jax.nn.log_softmax(logits), label[:, None], 1)
        return -chosen.mean()

    def scan(self, cell, state, xs, turns):
        return self.jax.lax.scan(lambda s, x: (cell(s, x), None), state, xs)[0]


def jax_update(jax, kind, rate, value, slots, gradient, step):
    jnp = jax.numpy
    if kind == "sgd":
        return value - rate * gradient, slots
    if kind == "momentum":
        m = 0.9 * slots[0] + gradient
        return value - rate * m, (m,)
    if kind == "adagrad":
        a = slots[0] + gradient * gradient
        return value - rate * gradient * jax.lax.rsqrt(a), (a,)
    m, v = 0.9 * slots[0] + 0.1 * gradient, 0.999 * slots[1] + 0.001 * gradient * gradient
    scaled = rate * jnp.sqrt(1 - 0.999 ** step) / (1 - 0.9 ** step)
    return value - scaled * m / (jnp.sqrt(v) + 1e-8), (m, v)


def jax_rows(jax, rate, table, accumulated, rows, gradient):
    """Adagrad on the rows that a step looked up; what comes twice is added first."""
    count = rows.shape[0]
    unique, inverse = jax.numpy.unique(rows, size=count, fill_value=table.shape[0], return_inverse=True)
    summed = jax.ops.segment_sum(gradient, inverse, count)
    accumulated = accumulated.at[unique].add(summed * summed, mode="drop")
    moved = rate * summed * jax.lax.rsqrt(accumulated.at[unique].get(mode="fill", fill_value=1))
    return table.at[unique].add(-moved, mode="drop"), accumulated


def jax_peer(model, threads):
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=%s intra_op_parallelism_threads=%d" % (str(threads > 1).lower(), threads)
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    ops, values = JaxOps(jax, model.infers), {}
    looked_up = {"t%d" % i: "id%d" % i for i in range(3)} if model.name == "embeddings" else {}

    def note(name, shape, scale):
        values[name] = jax.numpy.asarray(parameter_value(name, shape, scale))
        return values[name]

    model.function(ops, note, model.feeds)
    if model.infers:
        run = jax.jit(lambda values, batch: model.function(ops, lambda name, *_: values[name], batch))
        return lambda: np.asarray(run(values, model.feeds))
    slots = {n: tuple(jax.numpy.full_like(v, 0.1 if model.optimizer == "adagrad" else 0) for _ in
                      range({"sgd": 0, "adam": 2}.get(model.optimizer, 1))) for n, v in values.items()}

    def step(values, slots, batch, count):
        taken = {n: v[batch[looked_up[n]]] if n in looked_up else v for n, v in values.items()}
        parameter = lambda taken: lambda name, *_: (lambda rows: taken[name]) if name in looked_up else taken[name]  # noqa: E731
        loss, gradients = jax.value_and_grad(lambda taken: model.function(ops, parameter(taken), batch))(taken)
        fresh, fresh_slots = {}, {}
        for n, v in values.items():
            if n in looked_up:
                fresh[n], a = jax_rows(jax, model.rate, v, slots[n][0], batch[looked_up[n]], gradients[n])
                fresh_slots[n] = (a,)
            else:
                fresh[n], fresh_slots[n] = jax_update(jax, model.optimizer, model.rate, v, slots[n], gradients[n], count)
        return loss, fresh, fresh_slots

    compiled, state = jax.jit(step, donate_argnums=(0, 1)), [values, slots, 0]

    def run():
        state[2] += 1
        loss, state[0], state[1] = compiled(state[0], state[1], model.feeds, np.float32(state[2]))
        return float(loss)
    return run


class OnnxOps:
    """Only what the models that infer use; builds nodes instead of computing."""
    def __init__(self, helper):
        self.helper, self.nodes, self.constants, self.infers = helper, [], {}, True

    def node(self, op, inputs, **attributes):
        name = "v%d" % len(self.nodes)
        self.nodes.append(self.helper.make_node(op, [i.name for i in inputs], [name], **attributes))
        return OnnxValue(self, name)

    def constant(self, name, value):
        self.constants[name] = value
        return OnnxValue(self, name)

    def matmul(self, x, y):
        return self.node("MatMul", [x, y])

    def relu(self, x):
        return self.node("Relu", [x])

    def conv(self, x, w, stride):
        turned = self.constant(w.name + "_oihw", np.ascontiguousarray(self.constants[w.name].transpose(3, 2, 0, 1)))
        x = self.node("Transpose", [x], perm=[0, 3, 1, 2])
        x = self.node("Conv", [x, turned], auto_pad="SAME_UPPER", strides=[stride, stride])
        return self.node("Transpose", [x], perm=[0, 2, 3, 1])

    def max_pool(self, x):
        x = self.node("Transpose", [x], perm=[0, 3, 1, 2])
        x = self.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER")
        return self.node("Transpose", [x], perm=[0, 2, 3, 1])

    def reshape(self, x, shape):
        return self.node("Reshape", [x, self.constant("shape%d" % len(self.nodes), np.array(shape, np.int64))])


class OnnxValue:
    def __init__(self, ops, name):
        self.ops, self.name = ops, name

    def __add__(self, other):
        return self.ops.node("Add", [self, other])


def onnxruntime_peer(model, threads):
    if not model.infers:
        raise ImportError("onnxruntime only infers")
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
    ops = OnnxOps(helper)
    batch = {name: OnnxValue(ops, name) for name in model.feeds}
    out = model.function(ops, lambda name, shape, scale: ops.constant(name, parameter_value(name, shape, scale)), batch)
    inputs = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, a.shape) for n, a in model.feeds.items()]
    outputs = [helper.make_tensor_value_info(out.name, onnx.TensorProto.FLOAT, None)]
    constants = [numpy_helper.from_array(v, n) for n, v in ops.constants.items()]
    graph = helper.make_graph(ops.nodes, model.name, inputs, outputs, constants)
    whole = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(whole.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, model.feeds)


PEERS = {"tensorflow": tensorflow_peer, "jax": jax_peer, "onnxruntime": onnxruntime_peer}


def main():
    peer, model = sys.argv[1], MODELS[sys.argv[2]]
    if peer == "graph":
        _, graph = tensorflow_model(model, "--open" in sys.argv)
        with open(sys.argv[3], "wb") as f:
            f.write(graph.as_graph_def().SerializeToString())
        return 0
    try:
        step = PEERS[peer](model, int(sys.argv[3]))
    except ImportError as missing:
        print("absent: %s" % missing, flush=True)
        return 0
    result = step()
    print("ready %.9g" % np.ravel(np.asarray(result[0] if isinstance(result, (list, tuple)) else result))[0], flush=True)
    for line in sys.stdin:
        begin = time.perf_counter()
        for _ in range(int(line)):
            step()
        print((time.perf_counter() - begin) / int(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
