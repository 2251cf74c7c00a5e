#!/usr/bin/env python3
"""Small graphs of one layer or function each, beside TensorFlow on the same cores: options and output are bench_nets.py's.

    python3 bench/bench_layers.py [--tfc build/tfc] [--python PYTHON] [--rounds 3] [--seconds 0.5] [--threads 1] [--keep FOLDER]
                                  [PART OF A NAME...]
"""
import bench_nets
from bench_nets import image


def chain(*parts):
    """Each part makes a layer of the one before."""
    def build(tf, keras, x):
        for part in parts:
            x = part(tf, keras)(x)
        return tf.reduce_mean(tf.square(x))
    return build


def layer(kind, *values, **options):
    return lambda tf, keras: getattr(keras.layers, kind)(*values, **options)


def function(f):
    return lambda tf, keras: lambda y: f(tf, y)


def conv(kind, *values, **options):
    return layer(kind, *values, padding="same", **options)


def mixed(kind, *values, **options):
    """Computes in bfloat16, of variables of float32."""
    return layer(kind, *values, dtype="mixed_bfloat16", **options)


narrowed = function(lambda tf, y: tf.cast(y, tf.bfloat16))
widened = function(lambda tf, y: tf.cast(y, tf.float32))


def of_elements(f):
    return chain(layer("Dense", 512), function(f)), image(256, 32), False


def of_matrices(n, count, f, trains):
    return chain(layer("Dense", n), function(lambda tf, y: f(tf, y + n * tf.eye(n)))), image(count, n, n), trains


def of_signals(n, f):
    return chain(layer("Dense", n), function(lambda tf, y: tf.abs(f(tf, y)))), image(64, 64), False


def of_planes(*sides):
    return chain(layer("Dense", sides[-1]), function(lambda tf, y: tf.abs(tf.signal.fft2d(tf.complex(y, y + 1))))), image(*sides), False


def of_doubles(f):
    return of_elements(lambda tf, y: tf.cast(f(tf, tf.cast(y, tf.float64)), tf.float32))


def attention(images, rows, heads, width, trains=True, causal=False):
    """Scores, softmax and values of some heads, over long rows."""
    def build(tf, keras, x):
        def heads_of(y):
            return tf.transpose(tf.reshape(y, [images, rows, heads, width]), [0, 2, 1, 3])
        q, k, v = (heads_of(keras.layers.Dense(heads * width, use_bias=False)(x)) for _ in range(3))
        scores = tf.matmul(q, k, transpose_b=True) * width ** -0.5
        past = tf.linalg.band_part(tf.ones([rows, rows]), -1, 0)
        weights = tf.nn.softmax(scores + (1 - past) * -1e9 if causal else scores)
        return tf.reduce_mean(tf.square(tf.transpose(tf.matmul(weights, v), [0, 2, 1, 3])))
    return build, image(images, rows, heads * width), trains


bench_nets.NETS = {
    "dilated_train": (chain(conv("Conv2D", 32, 3, dilation_rate=2), conv("Conv2D", 32, 3, dilation_rate=4)), image(4, 32, 32, 32), True),
    "conv1d_train": (chain(conv("Conv1D", 64, 3), conv("Conv1D", 64, 5)), image(16, 128, 32), True),
    "conv3d_strided_train": (chain(conv("Conv3D", 32, 3, strides=2), conv("Conv3D", 32, 3)), image(2, 12, 24, 24, 16), True),
    "few_channels_train": (chain(*(conv("Conv2D", n, 3) for n in (10, 20, 12))), image(16, 28, 28, 1), True),
    "depthwise_2_train": (chain(layer("Conv2D", 32, 1), conv("DepthwiseConv2D", 3, depth_multiplier=2)), image(8, 32, 32, 16), True),
    "lrn_train": (chain(layer("Conv2D", 64, 1), function(lambda tf, y: tf.nn.lrn(y, 5, 1.0, 1e-4, 0.75))), image(8, 32, 32, 16), True),
    "average_3d_train": (chain(layer("Conv3D", 16, 1), layer("AveragePooling3D", 2), layer("MaxPooling3D", 2)), image(2, 16, 32, 32, 8),
                         True),
    "average_train": (chain(layer("Conv2D", 64, 1), conv("AveragePooling2D", 3, strides=1)), image(8, 32, 32, 16), True),
    "maximum_train": (chain(layer("Conv2D", 64, 1), conv("MaxPooling2D", 3, strides=1)), image(8, 32, 32, 16), True),
    "maximum_strided_train": (chain(layer("Conv2D", 64, 1), conv("MaxPooling2D", 3, strides=2)), image(8, 32, 32, 16), True),
    "rfft_256": of_signals(256, lambda tf, y: tf.signal.rfft(y)),
    "rfft_1000": of_signals(1000, lambda tf, y: tf.signal.rfft(y)),
    "rfft_1021": of_signals(1021, lambda tf, y: tf.signal.rfft(y)),
    "irfft": of_signals(513, lambda tf, y: tf.signal.irfft(tf.complex(y, y + 1))),
    "fft_2d": of_planes(16, 64, 64),
    "stft": of_signals(1024, lambda tf, y: tf.signal.stft(y, 256, 128)),
    "inverse": of_matrices(64, 16, lambda tf, y: tf.linalg.inv(y), False),
    "determinant": of_matrices(32, 32, lambda tf, y: tf.linalg.slogdet(y)[1], False),
    "solve_train": of_matrices(32, 16, lambda tf, y: tf.linalg.solve(y, 2 * y + 1), True),
    "qr": of_matrices(32, 16, lambda tf, y: tf.linalg.qr(y)[1], False),
    "cholesky": of_matrices(64, 16, lambda tf, y: tf.linalg.cholesky(tf.matmul(y, y, transpose_b=True)), False),
    "eigenvalues": of_matrices(32, 16, lambda tf, y: tf.linalg.eigvalsh(y + tf.linalg.matrix_transpose(y)), False),
    "singular_values": of_matrices(32, 16, lambda tf, y: tf.linalg.svd(y, compute_uv=False), False),
    "atan": of_elements(lambda tf, y: tf.atan(y)),
    "atan2": of_elements(lambda tf, y: tf.atan2(y, y + 1)),
    "asin": of_elements(lambda tf, y: tf.asin(0.5 * y)),
    "digamma": of_elements(lambda tf, y: tf.math.digamma(tf.abs(y) + 1)),
    "igamma": of_elements(lambda tf, y: tf.math.igamma(tf.abs(y) + 1, tf.abs(y) + 2)),
    "zeta": of_elements(lambda tf, y: tf.math.zeta(tf.abs(y) + 1.5, tf.abs(y) + 2)),
    "ndtri": of_elements(lambda tf, y: tf.math.ndtri(tf.sigmoid(y))),
    "erfinv": of_elements(lambda tf, y: tf.math.erfinv(tf.tanh(y))),
    "i0e": of_elements(lambda tf, y: tf.math.special.bessel_i0e(y)),
    "asinh": of_elements(lambda tf, y: tf.asinh(y)),
    "atanh": of_elements(lambda tf, y: tf.atanh(0.9 * tf.tanh(y))),
    "softmax_of_doubles": of_doubles(lambda tf, y: tf.nn.softmax(y)),
    "tanh_of_doubles": of_doubles(lambda tf, y: tf.tanh(y)),
    "tile": of_elements(lambda tf, y: tf.tile(y, [2, 3])),
    "attention_128_train": attention(8, 128, 8, 64),
    "attention_512": attention(2, 512, 8, 64, trains=False),
    "attention_512_train": attention(2, 512, 8, 64),
    "attention_577_train": attention(4, 577, 12, 64),
    "attention_1024_train": attention(1, 1024, 8, 64),
    "attention_1024_causal_train": attention(1, 1024, 8, 64, causal=True),
    "attention_2048_train": attention(1, 2048, 8, 64),
    "attention_4096_train": attention(1, 4096, 4, 64),
    "mixed_dense": (chain(*(mixed("Dense", 1024, activation="relu") for _ in range(3)), widened), image(256, 1024), False),
    "mixed_dense_train": (chain(*(mixed("Dense", 1024, activation="relu") for _ in range(3)), widened), image(256, 1024), True),
    "mixed_conv_train": (chain(narrowed, *(mixed("Conv2D", 64, 3, padding="same", activation="relu") for _ in range(2)), widened),
                         image(8, 28, 28, 64), True),
    "running_sum": of_elements(lambda tf, y: tf.cumsum(y, 1)),
    "sort": of_elements(lambda tf, y: tf.sort(y)),
}

if __name__ == "__main__":
    bench_nets.main()
