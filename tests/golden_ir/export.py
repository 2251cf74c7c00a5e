#!/usr/bin/env python3
"""Writes CASE/graph.pbtxt and CASE/args of the golden IR cases: small graphs, as TensorFlow (2.18) exports them."""
import contextlib
import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = {}


def case(pass_name, *args):
    """A function that fills the default graph; the pass whose input and output are kept; arguments of tfc build."""
    def register(build):
        CASES[build.__name__] = (build, pass_name, args)
        return build
    return register


def x_of(*shape, name="x", dtype=tf.float32):
    return tf.placeholder(dtype, list(shape), name=name)


@contextlib.contextmanager
def control_flow_v2():
    """If and While over functions instead of Switch and Enter."""
    tf.enable_control_flow_v2()
    try:
        yield
    finally:
        tf.disable_control_flow_v2()


@case("fuse", "--entry", "main: x, w, b -> y")
def matmul_bias_relu():
    product = tf.matmul(x_of(None, 64), x_of(64, 32, name="w"))
    tf.nn.relu(tf.nn.bias_add(product, x_of(32, name="b")), name="y")


@case("fuse", "--cpu", "znver4", "--entry", "main: x, w, dy -> y, dx, dw")
def mixed_precision():
    """A layer of Keras's mixed precision, forward and backward: of a CPU that multiplies pairs of bfloat16."""
    x, w, dy = x_of(32, 64, dtype=tf.bfloat16), x_of(64, 96, name="w"), x_of(32, 96, name="dy", dtype=tf.bfloat16)
    narrow = tf.cast(w, tf.bfloat16)
    tf.matmul(x, narrow, name="y")
    tf.matmul(dy, narrow, transpose_b=True, name="dx")
    tf.cast(tf.matmul(x, dy, transpose_a=True), tf.float32, name="dw")


@case("fuse", "--entry", "main: x, w, b -> y")
def product_of_few_rows():
    product = tf.matmul(x_of(6, 128), x_of(128, 48, name="w"))
    tf.nn.relu(tf.nn.bias_add(product, x_of(48, name="b")), name="y")


@case("fuse", "--entry", "main: x, w, b, r, s -> y, z")
def rows_of_batches():
    """Rows of all images are one product's; what follows knows them by images. A scale of rows does not move with columns alone."""
    rows = tf.matmul(tf.reshape(x_of(None, 6, 64), [-1, 64]), x_of(64, 32, name="w"))
    y = tf.nn.relu(tf.reshape(rows, [-1, 6, 32]) + x_of(32, name="b") + x_of(None, 6, 32, name="r"), name="y")
    tf.multiply(tf.reshape(tf.matmul(tf.reshape(y, [-1, 32]), tf.ones([32, 8])), [-1, 6, 8]), x_of(6, 1, name="s"), name="z")


@case("fuse", "--entry", "main: x, w -> y, g")
def activation_with_gradient():
    """The product's kernel stores what the gradient needs, too; what is cheap to compute again nobody stores."""
    x, w = x_of(None, 16), x_of(16, 8, name="w")
    product = tf.matmul(x, w)
    y = tf.multiply(0.5 * product, 1 + tf.tanh(0.8 * product), name="y")
    tf.identity(tf.gradients(y, x)[0], name="g")


@case("fuse", "--entry", "main: x, x_1, w -> y, z")
def value_in_two_shapes():
    """No epilogue takes a product that it loads in another shape, too; no map is computed for each shape; a box is of its own."""
    product = tf.matmul(x_of(6, 8), x_of(8, 4, name="w"))
    y = tf.tanh(product + tf.transpose(tf.reshape(product, [4, 6])))
    tf.tanh(y + tf.transpose(tf.reshape(y, [4, 6])), name="y")
    tf.exp(tf.reshape(tf.matmul(x_of(6, 8, name="x_1"), tf.ones([8, 4])), [4, 6])[:, 2:5], name="z")


@case("fuse", "--entry", "main: x -> mean")
def weights_of_ones():
    """As a normalisation of groups, of an open number of images: what is 1 everywhere is so in any shape, and its sum is known."""
    x = tf.tanh(x_of(None, 4, 6))
    weights = tf.reshape(tf.ones_like(x), [-1, 4, 2, 3])
    total = tf.reduce_sum(weights, [1, 3], keepdims=True)
    tf.divide(tf.reduce_sum(weights * tf.reshape(x, [-1, 4, 2, 3]), [1, 3], keepdims=True), total, name="mean")


@case("fuse", "--cpu", "x86-64-v4", "--entry", "main: q, k, v, g -> y")
def softmax_gradient():
    """Of one image: its loop of one turn repeats nothing. What a product's gradient is multiplied by goes into the sum that takes it."""
    q, k, v, g = (x_of(1, 4, 8, 8, name=name) for name in "qkvg")
    scores = tf.matmul(q, k)
    tf.identity(tf.gradients(tf.matmul(tf.nn.softmax(scores), v), scores, g)[0] * 0.5, name="y")


@case("join", "--cpu", "x86-64-v4", "--entry", "main: q, k, v -> y")
def attention():
    q, k, v = (tf.transpose(x_of(1, 1536, 2, 32, name=name), [0, 2, 1, 3]) for name in "qkv")
    tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), v, name="y")


@case("layout", "--cpu", "x86-64-v3,x86-64-v4", "--entry", "main: x, w -> y")
def invariant_products():
    x, w = x_of(24, 160), x_of(160, 224, name="w")
    step = lambda turn, h: (turn + 1, tf.tanh(tf.matmul(tf.tanh(tf.matmul(h, w)), w, transpose_b=True)))
    tf.identity(tf.while_loop(lambda turn, h: turn < 10, step, [0, x])[1], name="y")


@case("layout", "--cpu", "x86-64-v4", "--entry", "init: -> | init", "--entry", "main: x -> y", "--entry", "look: -> weights")
def served_product():
    """A variable that steps only read lies in panels: init brings it there, who looks at it has it dense."""
    w = tf.get_variable("w", initializer=tf.fill([1024, 1000], 0.25), use_resource=True)
    tf.nn.relu(tf.matmul(x_of(32, 1024), w), name="y")
    tf.identity(w.read_value(), name="weights")
    tf.group(w.initializer, name="init")


@case("layout", "--entry", "main: x -> y, v")
def frozen_products():
    w = tf.constant(np.arange(48 * 60).reshape(48, 60) / 4096, tf.float32, name="w")
    v = tf.constant(np.arange(60 * 96).reshape(60, 96) / 4096, tf.float32, name="v")
    y = tf.matmul(tf.nn.relu(tf.matmul(x_of(None, 48), w)), v)
    tf.matmul(tf.matmul(y, v, transpose_b=True), w, transpose_b=True, name="y")


@case("fuse", "--cpu", "x86-64-v4", "--entry", "main: x, g -> dw")
def conv_filter_gradient():
    x, g = x_of(2, 16, 16, 32), x_of(2, 16, 16, 32, name="g")
    tf.nn.conv2d_backprop_filter(x, [3, 3, 32, 32], g, [1, 1, 1, 1], "SAME", name="dw")


@case("fuse", "--entry", "main: x, y, g -> dx")
def pool_gradient():
    x, y, g = x_of(2, 8, 8, 32), x_of(2, 4, 4, 32, name="y"), x_of(2, 4, 4, 32, name="g")
    tf.raw_ops.MaxPoolGrad(orig_input=x, orig_output=y, grad=g, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME", name="dx")


@case("fuse", "--cpu", "x86-64-v4", "--entry", "main: x, w, b -> h")
def lstm_step():
    x, w, b = x_of(10, 8, 32), x_of(64, 128, name="w"), x_of(128, name="b")

    def step(turn, c, h):
        i, j, f, o = tf.split(tf.nn.bias_add(tf.matmul(tf.concat([x[turn], h], 1), w), b), 4, 1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(j)
        return turn + 1, c, tf.sigmoid(o) * tf.tanh(c)

    last = tf.while_loop(lambda turn, c, h: turn < 10, step, [0, tf.zeros([8, 32]), tf.zeros([8, 32])])
    tf.identity(last[2], name="h")


@case("fuse", "--entry", "main: x, y -> z")
def elementwise_chain():
    x, y = x_of(None), x_of(None, name="y")
    tf.multiply(tf.tanh(x + y), tf.sigmoid(x - y), name="z")


@case("lower", "--entry", "main: x -> y")
def softmax():
    tf.nn.softmax(x_of(None, 10), name="y")


@case("fuse", "--entry", "main: labels, logits -> loss, gradient")
def cross_entropy_gradient():
    labels, logits = x_of(None, 10, name="labels"), x_of(None, 10, name="logits")
    loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.stop_gradient(labels), logits=logits, name="entropy")
    loss = tf.reduce_mean(loss, name="loss")
    tf.identity(tf.gradients(loss, logits)[0], name="gradient")


@case("lower", "--entry", "main: x, b -> gradient")
def broadcast_gradient():
    x, b = x_of(None, 3), x_of(3, name="b")
    tf.identity(tf.gradients(x * b, b)[0], name="gradient")


@case("lower", "--entry", "main: x -> y")
def shape_arithmetic():
    x = x_of(None, 4, 5)
    tf.reshape(x, tf.stack([tf.shape(x)[0], tf.reduce_prod(tf.shape(x)[1:])]), name="y")


@case("dead", "--entry", "main: x -> y")
def unused_output():
    mean, _ = tf.nn.moments(x_of(None, 8), [0])
    tf.add(mean, tf.cast(tf.size(tf.constant([1, 2, 3])), tf.float32), name="y")


@case("lower", "--entry", "main: p, x -> y")
def cond_v1():
    x = x_of(None)
    tf.identity(tf.cond(x_of(name="p", dtype=tf.bool), lambda: x * 2.0, lambda: tf.exp(x)), name="y")


@case("lower", "--entry", "main: n -> y")
def while_v1():
    n = x_of(name="n", dtype=tf.int32)
    _, total = tf.while_loop(lambda i, _: i < n, lambda i, total: (i + 1, total + i), [0, 0])
    tf.identity(total, name="y")


@case("lower", "--entry", "main: p, x -> y")
def cond_v2():
    with control_flow_v2():
        x = x_of(None)
        tf.identity(tf.cond(x_of(name="p", dtype=tf.bool), lambda: x * 2.0, lambda: tf.exp(x)), name="y")


@case("lower", "--entry", "main: n -> y")
def while_v2():
    with control_flow_v2():
        n = x_of(name="n", dtype=tf.int32)
        _, total = tf.while_loop(lambda i, _: i < n, lambda i, total: (i + 1, total + i), [0, 0])
        tf.identity(total, name="y")


@case("fuse", "--entry", "main: x, w -> y, z")
def sliced_product():
    x, w = x_of(6, 4), x_of(4, 8, name="w")
    tf.identity(tf.matmul(x, w)[:, 2:5] * 2.0, name="y")
    twice = tf.matmul(x, w, transpose_b=False) + 1.0
    tf.identity(twice[1:, :4] * twice[:5, 4:], name="z")


def trained_loop():
    """Its gradient takes the weights as they are, and the states of all turns."""
    w = tf.get_variable("w", [2, 2], use_resource=True)
    _, h = tf.while_loop(lambda i, _: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), (0, x_of(5, 2)))
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(h), name="train")


@case("loops", "--entry", "main: x -> | train")
def loop_saves_v1():
    trained_loop()


@case("loops", "--entry", "main: x -> | train")
def loop_saves_v2():
    with control_flow_v2():
        trained_loop()


@case("loops", "--cpu", "x86-64-v4", "--entry", "main: x -> | train")
def loop_sums():
    """The gradient of weights, which each turn added to, is one product behind the loop."""
    w = tf.get_variable("w", [16, 16], use_resource=True)
    _, h = tf.while_loop(lambda i, _: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), (0, x_of(2, 16)))
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(h), name="train")


@case("loops", "--cpu", "x86-64-v4", "--entry", "main: x -> y")
def loop_parts():
    """A cell of TensorFlow 1 reads its input and its state as one: the product with the input is in front of the loop."""
    w = tf.get_variable("w", [3 + 8, 8], use_resource=True)
    x = tf.TensorArray(tf.float32, 5).unstack(x_of(5, 2, 3))
    cell = lambda i, h: (i + 1, tf.tanh(tf.matmul(tf.concat([x.read(i), h], 1), w)))
    tf.identity(tf.while_loop(lambda i, _: i < 5, cell, (0, tf.zeros([2, 8])))[1], name="y")


def recurrent_layer(x, turns, batch):
    with control_flow_v2():
        v, w, u = (tf.get_variable(name, [8, 8], use_resource=True) for name in "vwu")
        rows = tf.TensorArray(tf.float32, turns).unstack(tf.tensordot(x, v, 1))

        def turn(i, h, out):
            h = tf.tanh(tf.matmul(rows.read(i), w) + tf.matmul(h, u))
            return i + 1, h, out.write(i, h)
        _, _, out = tf.while_loop(lambda i, *_: i < turns, turn, (0, tf.zeros([batch, 8]), tf.TensorArray(tf.float32, turns)))
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(out.stack()), name="train")


@case("loops", "--cpu", "x86-64-v4", "--entry", "main: x -> | train")
def loop_lists():
    """A recurrent layer: its lists are rows, the input's part of the products is in front of the loop, that of its gradient behind it."""
    recurrent_layer(x_of(3, 2, 8), 3, 2)


@case("loops", "--cpu", "x86-64-v4", "--entry", "main: x -> | train")
def loop_lists_open():
    """The same of a batch and of turns that the step knows."""
    x = x_of(None, None, 8)
    recurrent_layer(x, tf.shape(x)[0], tf.shape(x)[1])


@case("loops", "--entry", "main: x, w -> h")
def block_lstm():
    """An op that is a loop; nobody takes six of the seven arrays that its turns make."""
    x, w, state, gate = x_of(10, 8, 32), x_of(64, 128, name="w"), tf.zeros([8, 32]), tf.zeros([32])
    cell = tf.raw_ops.BlockLSTM(seq_len_max=tf.constant(10, tf.int64), x=x, cs_prev=state, h_prev=state, w=w, wci=gate, wcf=gate, wco=gate,
                                b=tf.zeros([128]))
    tf.identity(cell.h, name="h")


@case("lower", "--entry", "main: x, mask -> y")
def boolean_mask():
    tf.identity(tf.boolean_mask(x_of(None, 3), x_of(None, name="mask", dtype=tf.bool)), name="y")


@case("lower", "--entry", "main: -> y")
def queue_dequeue():
    queue = tf.queue.FIFOQueue(8, [tf.float32], [[3]], name="queue")
    tf.multiply(queue.dequeue(), 2.0, name="y")


@case("fuse", "--entry", "train: ids, x -> | train")
def sparse_adagrad():
    table = tf.get_variable("table", [100, 4], initializer=tf.zeros_initializer())
    rows = tf.nn.embedding_lookup(table, x_of(None, name="ids", dtype=tf.int32))
    loss = tf.reduce_sum(tf.square(rows - x_of(None, 4)))
    tf.train.AdagradOptimizer(0.1).minimize(loss, name="train")


@case("fuse", "--cpu", "x86-64-v3", "--entry", "main: x, w, b -> y")
def conv_bias_relu():
    conv = tf.nn.conv2d(x_of(None, 8, 8, 3), x_of(3, 3, 3, 16, name="w"), strides=2, padding="SAME")
    tf.nn.relu(tf.nn.bias_add(conv, x_of(16, name="b")), name="y")


@case("partition", "--cluster", '{"ps": ["a:1"], "worker": ["b:1"]}', "--entry", "train: x -> loss | train")
def ps_and_worker():
    with tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:0")):
        w = tf.get_variable("w", [4], initializer=tf.zeros_initializer())
        loss = tf.reduce_sum(tf.square(x_of(4) - w), name="loss")
        tf.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")


@case("hold", "--cluster", '{"ps": ["a:1"], "worker": ["b:1"]}', "--entry", "train: x -> loss | train")
def ps_holds_updates():
    ps_and_worker()


@case("hold", "--cluster", '{"ps": ["a:1", "b:1"], "worker": ["c:1"]}', "--entry", "train: x -> | late")
def ps_promise_changes():
    x, adds, lates = x_of(4), [], []
    for i in range(2):
        with tf.device("/job:ps/task:%d" % i):
            adds.append(tf.assign_add(tf.get_variable("w%d" % i, [4], initializer=tf.zeros_initializer()), x, name="add%d" % i))
    for i in range(2):
        with tf.device("/job:ps/task:%d" % i), tf.control_dependencies(adds):
            lates.append(tf.assign_add(tf.get_variable("n%d" % i, [], initializer=tf.zeros_initializer()), 1.0, name="late%d" % i))
    tf.group(*lates, name="late")


@case("partition", "--cluster", '{"ps": ["a:1"], "worker": ["b:1", "c:1"]}', "--replicate", "worker", "--entry", "main: x -> y")
def two_replicas():
    with tf.device("/job:ps/task:0"):
        w = tf.get_variable("w", [4], initializer=tf.zeros_initializer())
    with tf.device("/job:worker"):
        tf.multiply(x_of(None, 4), w, name="y")


def single_machine_training():
    w = tf.get_variable("w", [4], initializer=tf.zeros_initializer())
    loss = tf.reduce_sum(tf.square(x_of(4) - w), name="loss")
    tf.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")


@case("partition", "--cluster", '{"ps": ["a:1"], "worker": ["b:1", "c:1"]}', "--strategy", "ps-sync", "--entry", "train: x -> | train")
def strategy_ps_sync():
    single_machine_training()


@case("partition", "--cluster", '{"worker": ["b:1", "c:1"]}', "--strategy", "allreduce", "--entry", "train: x -> | train")
def strategy_allreduce():
    single_machine_training()


@case("assign", "--entry", "train: x -> loss | train")
def assigned_step():
    """Keras's momentum; what is turned around cannot be stored where it is read."""
    w, m, t = [tf.get_variable(name, [4], use_resource=True) for name in "wmt"]
    loss = tf.reduce_sum(tf.square(x_of(4) - w), name="loss")
    moved = m.assign(0.9 * m - 0.1 * tf.gradients(loss, w)[0])
    tf.group(w.assign(w + moved), t.assign(tf.reverse(t, [0])), name="train")


@case("assign", "--entry", "train: x -> | train")
def adam_step():
    """As Keras writes it: a moment becomes part of its update, whatever makes the gradient."""
    w, m, v = [tf.get_variable(name, [64, 32], use_resource=True) for name in "wmv"]
    g = tf.matmul(x_of(8, 64), tf.ones([8, 32]), transpose_a=True)
    m_new, v_new = m.assign_add((g - m) * 0.1), v.assign_add((tf.square(g) - v) * 0.01)
    tf.group(w.assign_sub(m_new / (tf.sqrt(v_new) + 1e-7)), name="train")


def main():
    tf.disable_v2_behavior()
    for name, (build, pass_name, args) in CASES.items():
        folder = os.path.join(HERE, name)
        os.makedirs(folder, exist_ok=True)
        with tf.Graph().as_default() as graph:
            build()
            tf.io.write_graph(graph, folder, "graph.pbtxt", as_text=True)
        with open(os.path.join(folder, "args"), "w") as out:
            out.write("\n".join((pass_name,) + args) + "\n")


sys.exit(main())
