#!/usr/bin/env python3
"""Steps of nets as people have them (tf_keras.applications, layers that step_models.py lacks) beside TensorFlow, on the same cores.

    python3 bench/bench_nets.py [--tfc build/tfc] [--python PYTHON] [--rounds 3] [--seconds 0.5] [--threads 1] [--keep FOLDER]
                                [--open] [PART OF A NAME...]

PYTHON has the packages tensorflow and tf_keras, which write the graphs and are the peer. Both are stepped in turn in each round, fed the
same arrays; ours is the difference of two runs, with few steps and with more. The first losses must agree.

Prints the median time of our step, the median of the ratios of TensorFlow's to it (above 1: ours is faster), their least and greatest, and
the seconds that building took. --keep: graphs and executables stay there, a folder for each net. --open: the graph does not say how many
rows the fed array has, as most graphs that people keep.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
RATE = 1e-3


def image(*shape):
    return np.random.RandomState(3).uniform(0, 1, shape).astype(np.float32)


# Each function gives what a step minimises, or, of a net that only infers, the mean of its outputs' squares.
def application(name, classes=10, **options):
    def build(tf, keras, x):
        net = getattr(keras.applications, name)(weights=None, include_top=True, classes=classes,
                                                input_tensor=keras.layers.Input(tensor=x), classifier_activation=None, **options)
        return tf.reduce_mean(tf.square(net.output))
    return build


def ssim(tf, keras, x):
    y = keras.layers.Conv2D(3, 3, padding="same")(x)
    return 1 - tf.reduce_mean(tf.image.ssim(x, y, 1.0))


def conv_lstm(tf, keras, x):
    return tf.reduce_mean(tf.square(keras.layers.ConvLSTM2D(16, 3, padding="same")(x)))


def grouped(tf, keras, x):
    y = keras.layers.Conv2D(64, 3, padding="same")(x)
    for _ in range(3):
        y = keras.layers.Conv2D(64, 3, padding="same", groups=8, activation="relu")(y)
    return tf.reduce_mean(tf.square(y))


def volumes(tf, keras, x):
    y = keras.layers.Conv3D(16, 3, padding="same", activation="relu")(x)
    y = keras.layers.MaxPool3D(2)(y)
    y = keras.layers.Conv3D(32, 3, padding="same", activation="relu")(y)
    return tf.reduce_mean(tf.square(keras.layers.Dense(10)(keras.layers.GlobalAveragePooling3D()(y))))


def gan(tf, keras, x):
    layers = keras.layers
    z = tf.reduce_mean(x, [1, 3], keepdims=False)
    y = layers.Reshape((7, 7, 128))(layers.Dense(7 * 7 * 128)(z))
    for n, s in ((128, 2), (64, 2)):
        y = layers.LeakyReLU()(layers.BatchNormalization()(layers.Conv2DTranspose(n, 5, strides=s, padding="same", use_bias=False)(y),
                                                           training=True))
    y = tf.tanh(layers.Conv2DTranspose(1, 5, padding="same")(y))
    for n in (64, 128):
        y = layers.LeakyReLU()(layers.Conv2D(n, 5, strides=2, padding="same")(y))
    logit = layers.Dense(1)(layers.Flatten()(y))
    return tf.reduce_mean(tf.nn.softplus(-logit))


def unet(tf, keras, x):
    layers = keras.layers

    def twice(y, n):
        for _ in range(2):
            y = layers.Conv2D(n, 3, padding="same", activation="relu")(y)
        return y
    down = []
    y = x
    for n in (16, 32):
        y = twice(y, n)
        down.append(y)
        y = layers.MaxPool2D()(y)
    y = twice(y, 64)
    for n in (32, 16):
        y = layers.concatenate([layers.Conv2DTranspose(n, 2, strides=2)(y), down.pop()])
        y = twice(y, n)
    return tf.reduce_mean(tf.square(layers.Conv2D(1, 1)(y)))


def gru(tf, keras, x):
    cell = keras.layers.RNN(keras.layers.GRUCell(128, reset_after=False))
    return tf.reduce_mean(tf.square(cell(x)))


def recurrent(layer, units, layers):
    """Layers of which all but the last hand on what each turn gives, with TensorFlow 2's loops and lists."""
    def build(tf, keras, x):
        tf.enable_control_flow_v2()
        for k in range(layers):
            x = getattr(keras.layers, layer)(units, return_sequences=k + 1 < layers)(x)
        return tf.reduce_mean(tf.square(x))
    return build


def dynamic_rnn(units):
    """Two layers of TensorFlow 1, whose cells read input and state as one."""
    def build(tf, keras, x):
        os.environ["TF_USE_LEGACY_KERAS"] = "1"  # which has the cells
        for k in range(2):
            x, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(units), x, dtype=tf.float32, scope="layer%d" % k)
        return tf.reduce_mean(tf.square(x[:, -1]))
    return build


def bidirectional(tf, keras, x):
    y = keras.layers.Bidirectional(keras.layers.RNN(keras.layers.LSTMCell(64)))(x)
    return tf.reduce_mean(tf.square(y))


def attention(tf, keras, x):
    y = keras.layers.MultiHeadAttention(4, 32)(x, x)
    return tf.reduce_mean(tf.square(keras.layers.LayerNormalization()(x + y)))


def encoder(width, heads, layers, words):
    """A language model's layers over rows of word numbers."""
    def build(tf, keras, x):
        make = keras.layers
        y = make.Embedding(words, width)(tf.cast(x, tf.int32)) + make.Embedding(int(x.shape[1]), width)(tf.range(int(x.shape[1])))
        for _ in range(layers):
            z = make.LayerNormalization()(y)
            y = y + make.MultiHeadAttention(heads, width // heads)(z, z)
            y = y + make.Dense(width)(make.Dense(4 * width, activation="gelu")(make.LayerNormalization()(y)))
        logits = make.Dense(words)(make.LayerNormalization()(y))
        labels = tf.zeros(tf.shape(logits)[:2], tf.int32)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    return build


def group_norm(tf, keras, x):
    y = keras.layers.Conv2D(64, 3, padding="same")(x)
    for _ in range(2):
        y = y + keras.layers.Conv2D(64, 3, padding="same")(tf.nn.silu(keras.layers.GroupNormalization(8)(y)))
    return tf.reduce_mean(tf.square(y))


def super_resolution(tf, keras, x):
    def conv(n, y, **options):
        return keras.layers.Conv2D(n, 3, padding="same", **options)(y)
    first = y = conv(32, x)
    for _ in range(4):
        y = y + 0.1 * conv(32, conv(32, y, activation="relu"))
    return tf.reduce_mean(tf.abs(conv(3, tf.nn.depth_to_space(conv(128, y + first), 2))))


def style(tf, keras, x):
    """Layers of one image's statistics, borders that mirror it, and nine taps a side for three colours."""
    def conv(n, taps, y, strides=1):
        y = tf.pad(y, [[0, 0], [taps // 2] * 2, [taps // 2] * 2, [0, 0]], "REFLECT")
        y = keras.layers.Conv2D(n, taps, strides=strides)(y)
        mean, variance = tf.nn.moments(y, [1, 2], keepdims=True)
        return (y - mean) * tf.math.rsqrt(variance + 1e-5)
    y = x
    for n, taps, strides in ((32, 9, 1), (64, 3, 2), (128, 3, 2)):
        y = tf.nn.relu(conv(n, taps, y, strides))
    for _ in range(3):
        y = y + conv(128, 3, tf.nn.relu(conv(128, 3, y)))
    for n in (64, 32):
        y = tf.nn.relu(conv(n, 3, keras.layers.UpSampling2D(2)(y)))
    return tf.reduce_mean(tf.square(tf.tanh(conv(3, 9, y))))


def block_lstm(tf, keras, x):
    from tensorflow.python.ops import gen_rnn_ops
    n = 128
    w = tf.get_variable("w", [2 * n, 4 * n], initializer=tf.random_normal_initializer(stddev=0.05))
    zero = tf.zeros([x.shape[0], n])
    turns = tf.constant(int(x.shape[1]), tf.int64)
    peephole = tf.zeros([n])
    out = gen_rnn_ops.block_lstm(seq_len_max=turns, x=tf.transpose(x, [1, 0, 2]), cs_prev=zero, h_prev=zero, w=w, wci=peephole,
                                 wcf=peephole, wco=peephole, b=tf.zeros([4 * n]))
    return tf.reduce_mean(tf.square(out.h))


# name: the net, the fed array, whether it is trained
NETS = {
    "resnet50v2_64_train": (application("ResNet50V2"), image(2, 64, 64, 3), True),
    "resnet50v2_64": (application("ResNet50V2"), image(2, 64, 64, 3), False),
    "resnet50_224": (application("ResNet50"), image(1, 224, 224, 3), False),
    "inceptionv3_139": (application("InceptionV3"), image(2, 139, 139, 3), False),
    "inceptionv3_75_train": (application("InceptionV3"), image(4, 75, 75, 3), True),
    "mobilenetv2_96_train": (application("MobileNetV2"), image(8, 96, 96, 3), True),
    "mobilenetv2_224": (application("MobileNetV2"), image(1, 224, 224, 3), False),
    "mobilenetv3_224": (application("MobileNetV3Small"), image(1, 224, 224, 3), False),
    "efficientnetb0_96_train": (application("EfficientNetB0"), image(4, 96, 96, 3), True),
    "densenet121_64_train": (application("DenseNet121"), image(2, 64, 64, 3), True),
    "vgg16_64_train": (application("VGG16"), image(4, 64, 64, 3), True),
    "xception_96": (application("Xception"), image(2, 96, 96, 3), False),
    "convnext_64_train": (application("ConvNeXtTiny"), image(2, 64, 64, 3), True),
    "efficientnetv2b0_96_train": (application("EfficientNetV2B0"), image(4, 96, 96, 3), True),
    "regnety004_96_train": (application("RegNetY004"), image(4, 96, 96, 3), True),
    "mobilenet_96_train": (application("MobileNet"), image(16, 96, 96, 3), True),
    "nasnetmobile_224": (application("NASNetMobile"), image(1, 224, 224, 3), False),
    "encoder_train": (encoder(128, 2, 2, 3000), 3000 * image(8, 128), True),
    "group_norm_train": (group_norm, image(4, 32, 32, 16), True),
    "super_resolution_train": (super_resolution, image(4, 48, 48, 3), True),
    "style_256": (style, image(1, 256, 256, 3), False),
    "ssim_train": (ssim, image(4, 64, 64, 3), True),
    "conv_lstm_train": (conv_lstm, image(4, 8, 24, 24, 4), True),
    "grouped_train": (grouped, image(8, 32, 32, 16), True),
    "volumes_train": (volumes, image(2, 16, 32, 32, 3), True),
    "gan_train": (gan, image(32, 28, 28, 1), True),
    "unet_train": (unet, image(4, 64, 64, 3), True),
    "gru_train": (gru, image(32, 24, 64), True),
    "lstm_layers_train": (recurrent("LSTM", 128, 2), image(16, 32, 64), True),
    "gru_layers_train": (recurrent("GRU", 128, 2), image(16, 32, 64), True),
    "gru_small_train": (recurrent("GRU", 64, 1), image(8, 24, 16), True),
    "lstm_small_train": (recurrent("LSTM", 32, 1), image(8, 16, 8), True),
    "lstm_few_rows_train": (recurrent("LSTM", 256, 2), image(4, 32, 256), True),
    "lstm_one_row_train": (recurrent("LSTM", 128, 2), image(1, 32, 128), True),
    "dynamic_rnn_train": (dynamic_rnn(128), image(16, 32, 64), True),
    "dynamic_rnn_few_rows_train": (dynamic_rnn(256), image(4, 32, 256), True),
    "dynamic_rnn_one_row": (dynamic_rnn(128), image(1, 32, 128), False),
    "dynamic_rnn_wide_row": (dynamic_rnn(256), image(1, 32, 256), False),
    "bidirectional_train": (bidirectional, image(32, 24, 64), True),
    "attention_train": (attention, image(16, 64, 128), True),
    "block_lstm_train": (block_lstm, image(32, 24, 128), True),
}


def session_of(name, is_open):
    """The graph of a net, with the operations `init` and, where it is trained, `train_op`."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow.compat.v1 as tf
    import tf_keras as keras
    tf.disable_v2_behavior()
    build, x, trains = NETS[name]
    tf.set_random_seed(1)
    fed = tf.placeholder(tf.float32, ((None,) if is_open else x.shape[:1]) + x.shape[1:], "x")
    keras.backend.set_learning_phase(1 if trains else 0)
    result = tf.identity(build(tf, keras, fed), "result")
    if trains:
        tf.train.GradientDescentOptimizer(RATE).minimize(result, name="train_op")
    tf.group(tf.global_variables_initializer(), name="init")
    return tf, x, trains


def peer(name, folder, threads, is_open):
    """A process: writes graph and checkpoint, prints the first loss, then steps as often as a line asks, and prints the seconds for one."""
    tf, x, trains = session_of(name, is_open)
    saver = tf.train.Saver()
    config = tf.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
    session = tf.Session(config=config)
    session.run("init")
    saver.save(session, os.path.join(folder, "start"))
    tf.train.write_graph(tf.get_default_graph(), folder, "graph.pb", as_text=False)
    call = session.make_callable(["result:0"] + (["train_op"] if trains else []), ["x:0"])
    first = call(x)[0]
    for _ in range(3):
        call(x)
    print("ready %r" % float(first), flush=True)
    for line in sys.stdin:
        begin = time.perf_counter()
        for _ in range(int(line)):
            call(x)
        print((time.perf_counter() - begin) / int(line), flush=True)


class Ours:
    def __init__(self, options, name, folder):
        self.folder, trains = folder, NETS[name][2]
        begin = time.perf_counter()
        subprocess.run([options.tfc, "build", "graph.pb", "--quiet", "-o", "out", "--entry", "init: -> | init", "--entry",
                        "step: x -> result" + (" | train_op" if trains else "")], cwd=folder, check=True)
        self.build_seconds = time.perf_counter() - begin
        np.save(os.path.join(folder, "x.npy"), NETS[name][1])
        self.argv = [os.path.join(folder, "out", "localhost_0"), "--threads", str(options.threads), "--restore",
                     os.path.join(folder, "start"), "--entry", "step", "--feed", "x=x.npy", "--fetch", "result=result.npy"]

    def run(self, steps):
        begin = time.perf_counter()
        subprocess.run(self.argv + ["--steps", str(steps)], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begin

    def first(self):
        self.run(1)
        return float(np.ravel(np.load(os.path.join(self.folder, "result.npy")))[0])

    def step(self, steps):
        few = max(1, steps // 10)
        return (self.run(steps + few) - self.run(few)) / steps


def steps_of(side, seconds):
    """So many steps as take about that long. Few may seem to take no time, as starting varies: twice as many until they do."""
    steps, each = 2, side(2)
    while each * steps < seconds / 10:
        steps *= 2
        each = side(steps)
    return max(2, int(seconds / each))


def measure(options, name, folder):
    argv = [options.python, os.path.abspath(sys.argv[0]), "--peer", name, folder, "--threads", str(options.threads)]
    process = subprocess.Popen(argv + ["--open"] * options.open,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(os.path.join(folder, "peer.log"), "w"), text=True)
    line = process.stdout.readline()
    if not line.startswith("ready "):
        with open(os.path.join(folder, "peer.log")) as log:
            return "%-26s not built: %s" % (name, (log.read().splitlines() or ["no word"])[-1])

    def theirs(steps):
        process.stdin.write("%d\n" % steps)
        process.stdin.flush()
        return float(process.stdout.readline())
    try:
        ours = Ours(options, name, folder)
        want, got = float(line.split()[1]), ours.first()
        if not abs(want - got) <= 3e-3 * abs(want) + 1e-12:  # nets of many batch norms amplify rounding
            return "%-26s starts at %g, TensorFlow at %g" % (name, got, want)
        steps = {side: steps_of(side, options.seconds) for side in (ours.step, theirs)}
        rounds = [(ours.step(steps[ours.step]), theirs(steps[theirs])) for _ in range(options.rounds)]
    finally:
        process.kill()
        process.wait()
    ratios = [b / a for a, b in rounds]
    return "%-26s %10.1f %8.2f   %5.2f .. %-5.2f %6.1f" % (name, 1e6 * statistics.median(a for a, _ in rounds), statistics.median(ratios),
                                                          min(ratios), max(ratios), ours.build_seconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tfc", default="build/tfc")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peer", nargs=2)
    parser.add_argument("--keep", help="a folder that stays, with a folder for each net")
    parser.add_argument("--open", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.peer:
        return peer(*options.peer, options.threads, options.open)
    options.tfc = os.path.abspath(options.tfc)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.threads])
    print("%d core(s); ratios: TensorFlow's time over ours\n%-26s %10s %8s   %-14s %6s" % (options.threads, "net", "tfc us", "median",
                                                                                 "least .. most", "build s"))
    for name in NETS:
        if options.names and not any(part in name for part in options.names):
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = os.path.join(options.keep, name) if options.keep else temporary
            os.makedirs(folder, exist_ok=True)
            try:
                print(measure(options, name, folder), flush=True)
            except (subprocess.CalledProcessError, OSError) as e:
                print("%-26s %s" % (name, e), flush=True)


if __name__ == "__main__":
    main()
