"""Steps whose gradients are rows of tables, and some whose weights are made of others. Keras 2's optimizers add up the rows of one word."""
import keras
import numpy as np
import tensorflow as tf
from tf_keras import layers, optimizers

from jobs import F, I, Plain, cross_entropy, floats, ints, mean_squares, rng


def job_of(optimizer, shapes, loss_of, xs, ys):
    """Variables, and their loss of (variables, x, y)."""
    variables = [tf.Variable(floats(*shape), name=name) for name, shape in shapes.items()]
    optimizer.build(variables)

    def step(*rest):
        x, y = rest[-2:]
        with tf.GradientTape() as tape:
            loss = loss_of(variables, x, y)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss
    specs = [((None,) + a.shape[1:], tf.as_dtype(a.dtype)) for a in (xs, ys)]
    job = Plain(variables + list(optimizer.variables), step, specs)
    job.optimizer = optimizer
    return job, xs, ys


def two_words():
    """Two tables whose rows are added have one gradient for their rows."""
    def loss_of(v, x, y):
        return cross_entropy(y, tf.tensordot(tf.gather(v[0], x) + tf.gather(v[1], y), v[2], 1))
    return job_of(optimizers.SGD(0.5), {"a": (9, 4), "b": (9, 4), "w": (4, 5)}, loss_of, ints(9, 24, 2), ints(5, 24, 2))


def recommender():
    """The rows of one table are multiplied with those of another; biases, one wide, are looked up by the same ids."""
    def loss_of(tables, x, y):
        user, item = x[:, 0], x[:, 1]
        u, v, b, c = [tf.gather(t, i) for t, i in zip(tables, (user, item, user, item))]
        return tf.reduce_mean(tf.square(tf.reduce_sum(u * v, 1) + b[:, 0] + tf.reduce_sum(c, 1) - y))
    return job_of(optimizers.Adagrad(0.3), {"u": (9, 4), "v": (7, 4), "b": (9, 1), "c": (7, 1)}, loss_of, ints(7, 24, 2), floats(24))


def decoder():
    """Words are looked up one after the other, in between values as wide as their rows: most such values are on the way forward."""
    def loss_of(v, x, y):
        table, w, u, out = v
        state, loss = tf.zeros([tf.shape(x)[0], 4]), 0.0
        for t in range(5):
            seen = tf.gather(table, x[:, t])
            state = tf.tanh(seen @ w + tf.sigmoid(state) * (state @ u)) + 0.1 * seen
            loss += cross_entropy(y[:, t], state @ out)
        return loss
    shapes = {"table": (9, 4), "w": (4, 4), "u": (4, 4), "out": (4, 9)}
    return job_of(optimizers.Adam(0.05), shapes, loss_of, ints(9, 24, 5), ints(9, 24, 5))


def bags(optimizer=None):
    """embedding_lookup_sparse looks up each word of a batch once: its rows are no more apart on any worker, but those of several are."""
    def loss_of(v, x, y):
        words = tf.sparse.from_dense(x)
        weights = tf.SparseTensor(words.indices, 1 / tf.cast(1 + words.indices[:, 1], F), words.dense_shape)
        bag = tf.nn.safe_embedding_lookup_sparse(v[0], words, weights, combiner="sqrtn", default_id=0)
        return tf.reduce_mean(tf.square(bag @ v[1] - y))
    words = ints(9, 24, 4) * (ints(3, 24, 4) > 0)
    return job_of(optimizer or optimizers.Adam(0.05), {"table": (9, 4), "w": (4, 2)}, loss_of, words, floats(24, 2))


def bags_apart():
    """Keras 3's Adam squares rows as they come: those of one word on several workers must have been added up."""
    return bags(keras.optimizers.Adam(0.05))


def bags_joined():
    """Such rows behind those of single words, squared each by itself: refused (its case is written by hand)."""
    def loss_of(v, x, y):
        bag = tf.nn.safe_embedding_lookup_sparse(v[0], tf.sparse.from_dense(x), None, combiner="mean", default_id=0)
        return tf.reduce_mean(tf.square((bag + tf.gather(v[0], x[:, 0])) @ v[1] - y))
    return job_of(keras.optimizers.Adam(0.05), {"table": (9, 4), "w": (4, 2)}, loss_of, ints(9, 24, 4), floats(24, 2))


def summed_tables():
    """Rows of three tables are added: one value is the gradient of all of them, each by indices of its own."""
    def loss_of(v, x, y):
        h = tf.gather(v[0], x[:, 0]) + tf.gather(v[1], x[:, 1]) + tf.gather(v[2], x[:, 2])
        return tf.reduce_mean(tf.square(tf.math.l2_normalize(h, 1) * v[3] @ v[4] - y))
    shapes = {"words": (9, 4), "places": (5, 4), "parts": (3, 4), "scale": (4,), "out": (4, 2)}
    return job_of(optimizers.Adam(0.05), shapes, loss_of, ints(3, 24, 3), floats(24, 2))


def glove():
    """Two biases in a row: the gradient of the second is a sum over nothing of that of the first, in the shape of this worker's rows."""
    def loss_of(v, x, y):
        i, j = x[:, 0], x[:, 1]
        at = tf.reduce_sum(tf.gather(v[0], i) * tf.gather(v[1], j), 1, keepdims=True) + tf.gather(v[2], i) + tf.gather(v[3], j)
        return tf.reduce_mean(tf.minimum(1.0, tf.abs(y)) * tf.square(at - y))
    shapes = {"u": (9, 4), "v": (9, 4), "b": (9, 1), "c": (9, 1)}
    return job_of(optimizers.RMSprop(0.05), shapes, loss_of, ints(9, 24, 2), floats(24, 1))


def layers_of_keras_2(loss_of):
    """An embedding and a dense layer over [batch, time] words, by the optimizer of Keras 2, which adds up the rows of one word."""
    embedding, dense, optimizer = layers.Embedding(9, 4), layers.Dense(7), optimizers.Adam(0.05)
    dense.build((None, 3, 4))
    embedding.build((None, 3))
    variables = embedding.trainable_variables + dense.trainable_variables
    optimizer.build(variables)

    def step(*rest):
        x, y = rest[-2:]
        with tf.GradientTape() as tape:
            loss = loss_of(y, dense(embedding(x)))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss
    job = Plain(variables + list(optimizer.variables), step, [((None, 3), I), ((None, 3), I)])
    job.parts = [embedding, dense, optimizer]
    return job, ints(9, 24, 3), ints(7, 24, 3)


def language():
    """The loss checks its labels before anything is sent; the ids do not depend on that."""
    return layers_of_keras_2(cross_entropy)


def word_squares():
    """The gradient of the looked-up rows is a product that is reshaped twice: to the words of this worker's rows, and back."""
    return layers_of_keras_2(lambda y, out: tf.reduce_mean(tf.square(out - tf.cast(y, F)[..., None])))


def memory_bank():
    """What the model makes of each row is stored for the next step: rows of all workers, and no mean of them."""
    w, bank = tf.Variable(floats(5, 3), name="w"), tf.Variable(floats(24, 3), name="bank")

    def step(*rest):
        x, y = rest[-2:]
        with tf.GradientTape() as tape:
            h = tf.tanh(x @ w)
            loss = tf.reduce_mean(tf.square(h - tf.gather(bank, y))) + 0.1 * tf.reduce_mean(tf.square(h @ tf.transpose(bank)))
        w.assign_sub(0.5 * tape.gradient(loss, w))
        bank.scatter_update(tf.IndexedSlices(h, y))
        return loss
    return Plain([w, bank], step, [((None, 5), F), ((None,), I)]), floats(24, 5), rng.permutation(24).astype(np.int32)


def normed_table():
    """A weight is normalized before it is used: what its gradient is made of has its shape, too, and goes on to scale and offset."""
    table, scale, offset = (tf.Variable(floats(*s), name=n) for n, s in (("table", (6, 4)), ("scale", (4,)), ("offset", (4,))))

    def step(*rest):
        x, y = rest[-2:]
        with tf.GradientTape() as tape:
            mean, variance = tf.nn.moments(table, [1], keepdims=True)
            normed = tf.nn.batch_normalization(table, mean, variance, offset, scale, 1e-3)
            loss = tf.reduce_mean(tf.square(tf.tanh(x @ normed) - y)) + tf.reduce_mean(tf.square(x @ tf.sin(normed)))
        for v, g in zip((table, scale, offset), tape.gradient(loss, (table, scale, offset))):
            v.assign_sub(0.5 * g)
        return loss
    return Plain([table, scale, offset], step, [((None, 6), F), ((None, 4), F)]), floats(24, 6), floats(24, 4)


def two_lookups():
    table, kernel = tf.Variable(floats(9, 3), name="table"), tf.Variable(floats(6, 1), name="kernel")

    def step(table, kernel, x, y):
        with tf.GradientTape() as tape:
            rows = [tf.nn.embedding_lookup(table, x[:, i]) for i in range(2)]
            loss = mean_squares(y, tf.matmul(tf.concat(rows, 1), kernel))
        g = tape.gradient(loss, [table, kernel])
        table.scatter_sub(tf.IndexedSlices(0.1 * g[0].values, g[0].indices))
        kernel.assign_sub(0.1 * g[1])
        return loss
    return Plain([table, kernel], step, [((None, 2), I), ((None, 1), F)]), ints(9, 24, 2), floats(24, 1)


TABLES = (two_lookups, two_words, language, word_squares, recommender, decoder, bags, bags_apart, bags_joined, summed_tables, glove, memory_bank, normed_table)
