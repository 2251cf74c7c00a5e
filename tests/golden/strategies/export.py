#!/usr/bin/env python3
"""Writes the cases of this folder with TensorFlow: train steps of TensorFlow 2 and Keras as people write them, exported for one machine, run on
clusters by --strategy, and the weights that one machine has after the same rows.

    export.py FOLDER [MODEL...]

A model's folder holds the SavedModel, the data, and a case for each cluster. Each step of the cluster takes one batch for each worker; the one machine takes them together, so that its gradient is the mean of theirs. A model
with batch normalization ("apart") normalizes each worker's batch by itself: there the one machine makes the gradients of each batch by itself and
applies their mean.
"""
import json
import os
import shutil
import sys

import numpy as np

from jobs import F, I, Job, Plain, cross_entropy, floats, ints, mean_squares, rng
import keras
import tensorflow as tf
from keras import layers
from tables import TABLES

WORKERS, STEPS = 2, 3


def dense_net():
    return keras.Sequential([keras.Input((5,)), layers.Dense(4, activation="tanh"), layers.Dense(3)])


def dense_job(optimizer, tweak=None, batch=None):
    return Job(dense_net(), optimizer, mean_squares, [((batch, 5), F), ((batch, 3), F)], tweak), floats(24, 5), floats(24, 3)


def adam():
    return dense_job(keras.optimizers.Adam(0.05))


def adam_fixed_batch():
    return dense_job(keras.optimizers.Adam(0.05), batch=4)


def momentum():
    return dense_job(keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True))


def clip_global_norm():
    return dense_job(keras.optimizers.Adam(0.05), lambda g: tf.clip_by_global_norm(g, 0.3)[0])


def adamw_ema_schedule():
    schedule = keras.optimizers.schedules.ExponentialDecay(0.05, 2, 0.7)
    return dense_job(keras.optimizers.AdamW(schedule, weight_decay=0.02, global_clipnorm=0.5, use_ema=True, ema_overwrite_frequency=2))


def accumulation():
    return dense_job(keras.optimizers.Adam(0.05, gradient_accumulation_steps=2))


def rmsprop_clipnorm():
    return dense_job(keras.optimizers.RMSprop(0.02, momentum=0.5, centered=True, clipnorm=0.2))


def lion():
    return dense_job(keras.optimizers.Lion(0.02))


def adafactor():
    return dense_job(keras.optimizers.Adafactor(0.02))


def loss_scale():
    return dense_job(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=8.0, dynamic_growth_steps=2))


def residual():
    x = keras.Input((6, 6, 2))
    h = layers.Conv2D(4, 3, padding="same", use_bias=False)(x)
    h = layers.ReLU()(layers.BatchNormalization()(h))
    r = layers.Conv2D(4, 3, padding="same", use_bias=False)(h)
    h = layers.ReLU()(layers.Add()([h, layers.BatchNormalization()(r)]))
    h = layers.Dense(3)(layers.GlobalAveragePooling2D()(h))
    return Job(keras.Model(x, h), keras.optimizers.SGD(0.1, momentum=0.9), cross_entropy, [((None, 6, 6, 2), F), ((None,), I)]), floats(24, 6, 6, 2), ints(3, 24)


def gru():
    model = keras.Sequential([keras.Input((5, 3)), layers.GRU(4, return_sequences=True), layers.GRU(3), layers.Dense(2)])
    return Job(model, keras.optimizers.Adam(0.05), mean_squares, [((None, 5, 3), F), ((None, 2), F)]), floats(24, 5, 3), floats(24, 2)


def lstm_rolled():
    model = keras.Sequential([keras.Input((6, 3)), layers.LSTM(4), layers.Dense(2)])
    return Job(model, keras.optimizers.RMSprop(0.02), mean_squares, [((None, 6, 3), F), ((None, 2), F)]), floats(24, 6, 3), floats(24, 2)


def unet():
    x = keras.Input((8, 8, 1))
    a = layers.Conv2D(3, 3, padding="same", activation="relu")(x)
    b = layers.Conv2D(4, 3, padding="same", activation="relu")(layers.MaxPooling2D()(a))
    u = layers.Conv2DTranspose(3, 2, strides=2, padding="same")(b)
    y = layers.Conv2D(1, 1)(layers.Concatenate()([a, u]))
    return Job(keras.Model(x, y), keras.optimizers.Adam(0.02), mean_squares, [((None, 8, 8, 1), F), ((None, 8, 8, 1), F)]), floats(24, 8, 8, 1), floats(24, 8, 8, 1)


class Positions(layers.Layer):
    def build(self, shape):
        self.at = self.add_weight(shape=(1,) + tuple(shape[1:]), initializer="normal")

    def call(self, x):
        return x + self.at


def block(h, heads, width):
    n = layers.LayerNormalization()(h)
    h = h + layers.MultiHeadAttention(heads, width // heads)(n, n)
    n = layers.LayerNormalization()(h)
    return h + layers.Dense(width)(layers.Dense(2 * width, activation="gelu")(n))


def vit():
    x = keras.Input((8, 8, 1))
    h = layers.Reshape((4, 8))(layers.Conv2D(8, 4, strides=4)(x))
    h = block(Positions()(h), 2, 8)
    y = layers.Dense(3)(layers.GlobalAveragePooling1D()(layers.LayerNormalization()(h)))
    return Job(keras.Model(x, y), keras.optimizers.AdamW(0.01, weight_decay=0.01, clipnorm=1.0), cross_entropy, [((None, 8, 8, 1), F), ((None,), I)]), floats(24, 8, 8, 1), ints(3, 24)


def dlrm_model():
    ids, dense = keras.Input((3,), dtype="int32"), keras.Input((4,))
    e = layers.Embedding(20, 4)(ids)
    d = layers.Dense(4, activation="relu")(dense)
    cross = layers.Dot(axes=(2, 2))([e, e])
    y = layers.Dense(1)(layers.Concatenate()([layers.Flatten()(cross), d]))
    return keras.Model([ids, dense], y)


class Dlrm(Job):
    def gradients(self, x, y):
        with tf.GradientTape() as tape:
            p = self.model([tf.cast(x[:, :3], tf.int32), x[:, 3:]], training=True)
            loss = self.loss(y, p)
        return loss, tape.gradient(loss, self.model.trainable_variables)


def dlrm(optimizer=None):
    x = np.concatenate([ints(20, 24, 3).astype(np.float32), floats(24, 4)], 1)
    return Dlrm(dlrm_model(), optimizer or keras.optimizers.Adagrad(0.1), mean_squares, [((None, 7), F), ((None, 1), F)]), x, floats(24, 1)


def dlrm_adam():
    return dlrm(keras.optimizers.Adam(0.05))


def dlrm_sgd():
    return dlrm(keras.optimizers.SGD(0.1))


class Gpt(keras.Model):
    def __init__(self):
        super().__init__()
        self.words = layers.Embedding(11, 8)
        self.positions = layers.Embedding(6, 8)
        self.attention = layers.MultiHeadAttention(2, 4)
        self.norms = [layers.LayerNormalization() for _ in range(3)]
        self.up, self.down = layers.Dense(16, activation="gelu"), layers.Dense(8)

    def call(self, x, training=False):
        h = self.words(x) + self.positions(tf.range(6))
        n = self.norms[0](h)
        h = h + self.attention(n, n, use_causal_mask=True)
        h = h + self.down(self.up(self.norms[1](h)))
        return tf.matmul(self.norms[2](h), tf.convert_to_tensor(self.words.embeddings), transpose_b=True)


def gpt2():
    model = Gpt()
    model(np.zeros((1, 6), np.int32))
    return Job(model, keras.optimizers.Adam(0.01, global_clipnorm=1.0), cross_entropy, [((None, 6), I), ((None, 6), I)]), ints(11, 24, 6), ints(11, 24, 6)


class Fit(Job):
    """The step that `fit` compiles, with metrics."""

    def __init__(self, model, specs):
        tf.Module.__init__(self)
        self.model, self.optimizer, self.specs, self.metrics = model, model.optimizer, specs, [v.value for v in model.metrics_variables]
        self.step = tf.function(self.body, input_signature=[tf.TensorSpec(*s) for s in specs])

    def body(self, x, y):
        return {k: tf.convert_to_tensor(v) for k, v in self.model.train_step((x, y)).items()}

    def state(self):
        return list(self.model.trainable_variables) + list(self.optimizer.variables) + list(self.model.metrics_variables)


def fit():
    model = dense_net()
    x, y = floats(24, 5), floats(24, 3)
    model.compile(keras.optimizers.Adam(0.05), "mse", metrics=["mae"])
    model.train_on_batch(x[:4], y[:4])
    model.reset_metrics()
    return Fit(model, [((None, 5), F), ((None, 3), F)]), x, y


def penalty():
    """Second derivatives: the gradient of the loss by its input is kept small."""
    w, b, v = tf.Variable(floats(3, 4), name="w"), tf.Variable(floats(4), name="b"), tf.Variable(floats(4, 1), name="v")

    def step(w, b, v, x, y):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                inner.watch(x)
                p = tf.matmul(tf.tanh(tf.matmul(x, w) + b), v)
            slope = inner.gradient(p, x)
            loss = tf.reduce_mean(tf.square(p - y)) + 0.1 * tf.reduce_mean(tf.reduce_sum(tf.square(slope), 1))
        for variable, g in zip((w, b, v), outer.gradient(loss, (w, b, v))):
            variable.assign_sub(0.1 * g)
        return loss
    return Plain([w, b, v], step, [((None, 3), F), ((None, 1), F)]), floats(24, 3), floats(24, 1)


def assign_sub():
    w = tf.Variable(floats(3, 1), name="w")

    def step(w, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss
    return Plain([w], step, [((None, 3), F), ((None, 1), F)]), floats(24, 3), floats(24, 1)


def hand_adam():
    w, m, v = tf.Variable(floats(3, 1), name="w"), tf.Variable(np.zeros((3, 1), np.float32), name="m"), tf.Variable(np.zeros((3, 1), np.float32), name="v")
    count = tf.Variable(0, dtype=tf.int64, name="count")

    def step(w, m, v, count, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y)) + 0.01 * tf.nn.l2_loss(w)
        g = tape.gradient(loss, w)
        count.assign_add(1)
        t = tf.cast(count, tf.float32)
        m.assign(0.9 * m + 0.1 * g)
        v.assign(0.99 * v + 0.01 * g * g)
        w.assign_sub(0.1 * (m / (1 - 0.9 ** t)) / (tf.sqrt(v / (1 - 0.99 ** t)) + 1e-6))
        return loss
    return Plain([w, m, v, count], step, [((None, 3), F), ((None, 1), F)]), floats(24, 3), floats(24, 1)


def loop_around():
    """Two turns of a loop, each a step."""
    w = tf.Variable(floats(3, 1), name="w")

    def step(w, x, y):
        for _ in tf.range(2):
            with tf.GradientTape() as tape:
                loss = mean_squares(y, tf.matmul(x, w))
            w.assign_sub(0.1 * tape.gradient(loss, w))
        return mean_squares(y, tf.matmul(x, w))
    return Plain([w], step, [((None, 3), F), ((None, 1), F)]), floats(24, 3), floats(24, 1)


def epochs():
    """A loop around steps of Adam, with what each turn has lost, and slow weights that follow in every second turn."""
    first = {"w": floats(5, 4), "u": floats(4, 3), "slow": floats(4, 3), "count": 0}
    w, u, slow, count = (tf.Variable(v, name=n) for n, v in first.items())
    optimizer = keras.optimizers.Adam(0.05)
    optimizer.build([w, u])

    def step(*rest):
        x, y = rest[-2:]
        losses = tf.TensorArray(F, 3)
        for turn in tf.range(3):
            with tf.GradientTape() as tape:
                loss = mean_squares(y, tf.tanh(x @ w) @ u)
            optimizer.apply_gradients(zip(tape.gradient(loss, [w, u]), [w, u]))
            if count.assign_add(1) % 2 == 0:
                slow.assign_add(0.5 * (u - slow))
                u.assign(slow)
            losses = losses.write(turn, loss)
        return losses.stack()
    job = Plain([w, u, slow, count] + list(optimizer.variables), step, [((None, 5), F), ((None, 3), F)])
    job.optimizer = optimizer
    return job, floats(24, 5), floats(24, 3)


def epochs_in_place():
    """The same by ops that change several variables in place, with bounds for one of them."""
    w, u, power = tf.Variable(floats(5, 4), name="w"), tf.Variable(floats(4, 3), name="u"), tf.Variable(0.9, name="power")
    slots = [tf.Variable(tf.zeros(v.shape), name=n) for v, n in ((w, "w_m"), (w, "w_v"), (u, "u_a"))]

    def step(*rest):
        (m, v, a), (x, y), loss = slots, rest[-2:], 0.0
        for _ in tf.range(3):
            with tf.GradientTape() as tape:
                loss = mean_squares(y, tf.tanh(x @ w) @ u)
            of_w, of_u = tape.gradient(loss, [w, u])
            tf.raw_ops.ResourceApplyAdam(var=w.handle, m=m.handle, v=v.handle, beta1_power=power, beta2_power=0.99, lr=0.05, beta1=0.9,
                                         beta2=0.99, epsilon=1e-7, grad=of_w)
            tf.raw_ops.ResourceApplyMomentum(var=u.handle, accum=a.handle, lr=0.1, grad=of_u, momentum=0.9, use_nesterov=True)
            u.assign(tf.clip_by_value(u, -0.8, 0.8))
            power.assign(power * 0.9)
        return loss
    return Plain([w, u, power] + slots, step, [((None, 5), F), ((None, 3), F)]), floats(24, 5), floats(24, 3)


def own_iterator():
    """What is fed goes through a pipeline of the step's own, twice: the counter of Adam's steps must wait for the means, though they need a
    call that others see."""
    w, u = tf.Variable(floats(5, 4), name="w"), tf.Variable(floats(4, 3), name="u")
    optimizer = keras.optimizers.Adam(0.05)
    optimizer.build([w, u])

    def step(*rest):
        elements, loss = iter(tf.data.Dataset.from_tensors(rest[-2:]).repeat(2)), 0.0
        for _ in range(2):
            x, y = next(elements)
            with tf.GradientTape() as tape:
                loss = mean_squares(y, tf.tanh(x @ w) @ u)
            optimizer.apply_gradients(zip(tape.gradient(loss, [w, u]), [w, u]))
        return loss
    job = Plain([w, u] + list(optimizer.variables), step, [((None, 5), F), ((None, 3), F)])
    job.optimizer = optimizer
    return job, floats(24, 5), floats(24, 3)


def two_ways():
    """Each side of a cond changes the same variables, in its own way; what they are then is averaged, and trains once more."""
    w, u, slow = tf.Variable(floats(5, 4), name="w"), tf.Variable(floats(4, 3), name="u"), tf.Variable(tf.zeros([5, 4]), name="slow")
    count = tf.Variable(0, name="count")

    def step(*rest):
        x, y = rest[-2:]
        for _ in range(2):
            with tf.GradientTape() as tape:
                loss = mean_squares(y, tf.tanh(x @ w) @ u)
            of_w, of_u = tape.gradient(loss, [w, u])
            if count.assign_add(1) % 3 == 0:
                w.assign_sub(0.3 * of_w)
                u.assign_sub(0.3 * of_u)
            else:
                w.assign(w * 0.95 - 0.1 * of_w)
                u.assign(u * 0.95 - 0.1 * of_u)
            slow.assign(0.5 * (slow + w))
        return loss
    return Plain([w, u, slow, count], step, [((None, 5), F), ((None, 3), F)]), floats(24, 5), floats(24, 3)


def read_behind():
    """What an op has made of a variable in place, on one side of a cond or the other, is what the step gives, and is averaged."""
    w, slow, count = tf.Variable(floats(5, 3), name="w"), tf.Variable(tf.zeros([5, 3]), name="slow"), tf.Variable(0, name="count")
    fast, late = (tf.Variable(tf.zeros([5, 3]), name=n) for n in ("fast", "late"))

    def step(*rest):
        x, y = rest[-2:]
        with tf.GradientTape() as tape:
            loss = mean_squares(y, x @ w)
        gradient = tape.gradient(loss, w)
        if count.assign_add(1) % 2 == 0:
            tf.raw_ops.ResourceApplyMomentum(var=w.handle, accum=fast.handle, lr=0.1, grad=gradient, momentum=0.9)
        else:
            tf.raw_ops.ResourceApplyMomentum(var=w.handle, accum=late.handle, lr=0.05, grad=gradient, momentum=0.5)
        slow.assign(0.5 * (slow + w))
        return mean_squares(y, x @ w)
    return Plain([w, slow, count, fast, late], step, [((None, 5), F), ((None, 3), F)]), floats(24, 5), floats(24, 3)


def until_close():
    """As many turns as the data take: refused (its case is written by hand)."""
    w = tf.Variable(floats(3, 1), name="w")

    def step(w, x, y):
        loss = mean_squares(y, tf.matmul(x, w))
        while loss > 0.9:
            with tf.GradientTape() as tape:
                loss = mean_squares(y, tf.matmul(x, w))
            w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss
    return Plain([w], step, [((None, 3), F), ((None, 1), F)]), floats(24, 3), floats(24, 1)


def scalars():
    """Two parameters without dimensions, clipped by their norm."""
    a, b = tf.Variable(0.5, name="a"), tf.Variable(1.5, name="b")

    def step(a, b, x, y):
        with tf.GradientTape() as tape:
            loss = mean_squares(y, a * tf.tanh(b * x))
        ga, gb = tape.gradient(loss, [a, b])
        scale = tf.minimum(1.0, 0.1 / tf.sqrt(ga * ga + gb * gb))
        a.assign_sub(0.5 * scale * ga)
        b.assign_sub(0.5 * scale * gb)
        return loss
    return Plain([a, b], step, [((None, 3), F), ((None, 3), F)]), floats(24, 3), floats(24, 3)


def scalar_ftrl():
    """The square of a scalar's gradient is that of the mean, of which other updates are made, too."""
    w, b = tf.Variable(floats(9, 1), name="w"), tf.Variable(0.3, name="b")
    optimizer = keras.optimizers.Ftrl(0.1)
    optimizer.build([w, b])

    def step(*rest):
        x, y = rest[-2:]
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.softplus(-y * (b + tf.reduce_sum(tf.gather(w, x), [1, 2]))))
        optimizer.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b]))
        return loss
    job = Plain([w, b] + list(optimizer.variables), step, [((None, 4), I), ((None,), F)])
    job.optimizer = optimizer
    return job, ints(9, 24, 4), floats(24)


def dlrm_clip():
    return dlrm(keras.optimizers.SGD(0.5, momentum=0.5, global_clipnorm=0.1))


def dlrm_fixed_batch():
    job, x, y = dlrm()
    return Dlrm(job.model, job.optimizer, mean_squares, [((4, 7), F), ((4, 1), F)]), x, y


def words():
    model = keras.Sequential([keras.Input((6,), dtype="int32"), layers.Embedding(15, 5), layers.LSTM(4), layers.Dense(2)])
    return Job(model, keras.optimizers.RMSprop(0.05), mean_squares, [((4, 6), I), ((4, 2), F)]), ints(15, 24, 6), floats(24, 2)


def words_accumulated():
    """Either branch of the optimizer's cond adds up the rows of the table for itself."""
    model = keras.Sequential([keras.Input((6,), dtype="int32"), layers.Embedding(15, 5), layers.GlobalAveragePooling1D(), layers.Dense(2)])
    return Job(model, keras.optimizers.Adam(0.05, gradient_accumulation_steps=2), mean_squares, [((None, 6), I), ((None, 2), F)]), ints(15, 24, 6), floats(24, 2)


def words_loss_scale():
    """All rows are asked whether they are finite before the optimizer's cond, and applied in it."""
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.05), initial_scale=8.0, dynamic_growth_steps=2)
    model = keras.Sequential([keras.Input((6,), dtype="int32"), layers.Embedding(15, 5), layers.GlobalAveragePooling1D(), layers.Dense(2)])
    return Job(model, optimizer, mean_squares, [((None, 6), I), ((None, 2), F)]), ints(15, 24, 6), floats(24, 2)


def words_guarded():
    """A step that is left out where a gradient is not finite; the branch sums up the rows that were asked."""
    table, kernel = tf.Variable(floats(15, 5), name="table"), tf.Variable(floats(5, 2), name="kernel")
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.build([table, kernel])

    def step(*rest):
        x, y = rest[-2:]
        with tf.GradientTape() as tape:
            loss = mean_squares(y, tf.reduce_mean(tf.gather(table, x), 1) @ kernel)
        rows, dense = tape.gradient(loss, [table, kernel])
        if tf.reduce_all(tf.math.is_finite(rows.values)) and tf.reduce_all(tf.math.is_finite(dense)):
            optimizer.apply_gradients([(rows, table), (dense, kernel)])
        return loss
    job = Plain([table, kernel] + list(optimizer.variables), step, [((None, 6), I), ((None, 2), F)])
    job.optimizer = optimizer
    return job, ints(15, 24, 6), floats(24, 2)


def tied_square():
    """Batch, width and weights all of one size, one weight used twice, no labels but the input."""
    w = tf.Variable(floats(4, 4) * 0.5, name="w")

    def step(w, x, y):
        with tf.GradientTape() as tape:
            h = tf.tanh(tf.matmul(x, w))
            loss = tf.reduce_mean(tf.square(tf.matmul(h, w) - y))
        w.assign_sub(0.2 * tape.gradient(loss, w))
        return loss
    return Plain([w], step, [((4, 4), F), ((4, 4), F)]), floats(24, 4), floats(24, 4)


def centre():
    """Each worker's rows have the shape of the variable; what the loss makes of their difference is not linear."""
    w = tf.Variable(floats(1, 4, 3), name="w")

    def step(w, x, y):
        with tf.GradientTape() as tape:
            far = tf.math.erf(w - tf.reshape(x, (-1, 4, 3))) ** 4
            loss = tf.reduce_sum(far) / tf.cast(tf.shape(x)[0], tf.float32) + tf.reduce_mean(y)
        w.assign_sub(0.5 * tape.gradient(loss, w))
        return loss
    return Plain([w], step, [((4, 3), F), ((4, 3), F)]), floats(24, 3), floats(24, 3)


class Adversarial(tf.Module):
    """The generator's gradient is made through the critic that this step has already changed."""

    def __init__(self, optimizers):
        super().__init__()
        self.critic = keras.Sequential([keras.Input((4,)), layers.Dense(6), layers.LeakyReLU(), layers.Dense(1)])
        self.generator = keras.Sequential([keras.Input((3,)), layers.Dense(6, activation="relu"), layers.Dense(4)])
        self.optimizers = list(optimizers)
        for optimizer, model in zip(self.optimizers, (self.critic, self.generator)):
            optimizer.build(model.trainable_variables)
        self.step = tf.function(self.body, input_signature=[tf.TensorSpec((None, 3), F), tf.TensorSpec((None, 4), F)])

    def train(self, which, loss, tape):
        variables = (self.critic, self.generator)[which].trainable_variables
        self.optimizers[which].apply_gradients(zip(tape.gradient(loss, variables), variables))

    def body(self, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.softplus(-self.critic(y)) + tf.nn.softplus(self.critic(self.generator(x))))
        self.train(0, loss, tape)
        with tf.GradientTape() as tape:
            fooled = tf.reduce_mean(tf.nn.softplus(-self.critic(self.generator(x))))
        self.train(1, fooled, tape)
        return {"loss": loss}

    def state(self):
        return [v for o in (self.critic, self.generator, *self.optimizers) for v in o.variables]


def adversarial(*optimizers):
    return Adversarial(optimizers or (keras.optimizers.Adam(0.05), keras.optimizers.SGD(0.2, momentum=0.9))), floats(24, 3), floats(24, 4)


def adversarial_factored():
    """The critic's averages are means of squares over rows and columns, of a gradient that its norm has clipped."""
    return adversarial(keras.optimizers.Adafactor(0.05, global_clipnorm=0.1), keras.optimizers.Adam(0.05, global_clipnorm=0.1))


def adversarial_ftrl():
    """What the averages become is made before it is assigned, and what changes with them is made of both."""
    return adversarial(keras.optimizers.Ftrl(0.1), keras.optimizers.Ftrl(0.1))


def dlrm_ftrl():
    return dlrm(keras.optimizers.Ftrl(0.1))


class Dreamed(Adversarial):
    """A critic with embeddings, whose optimizer squares what it is told of single rows: refused (its case is written by hand)."""

    def __init__(self):
        super().__init__((keras.optimizers.Adam(0.05), keras.optimizers.SGD(0.2)))
        self.words, self.ftrl = layers.Embedding(9, 4), keras.optimizers.Ftrl(0.1)
        self.words.build(None)
        self.ftrl.build(self.critic.trainable_variables + self.words.trainable_variables)
        self.step = tf.function(self.body, input_signature=[tf.TensorSpec((None, 3), F), tf.TensorSpec((None,), I)])

    def body(self, x, y):
        variables = self.critic.trainable_variables + self.words.trainable_variables
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.softplus(-self.critic(self.words(y))) + tf.nn.softplus(self.critic(self.generator(x))))
        self.ftrl.apply_gradients(zip(tape.gradient(loss, variables), variables))
        with tf.GradientTape() as tape:
            fooled = tf.reduce_mean(tf.nn.softplus(-self.critic(self.generator(x))))
        self.train(1, fooled, tape)
        return {"loss": loss}

    def state(self):
        return super().state() + list(self.words.variables)


def adversarial_words():
    return Dreamed(), floats(24, 3), ints(9, 24)


class Siamese(Job):
    """One net is asked twice: its batch normalization moves its averages twice in a step."""

    def gradients(self, x, y):
        with tf.GradientTape() as tape:
            apart = self.model(x[:, :5], training=True) - self.model(x[:, 5:], training=True)
            loss = self.loss(y, apart)
        return loss, tape.gradient(loss, self.model.trainable_variables)


def siamese():
    net = keras.Sequential([keras.Input((5,)), layers.Dense(6, use_bias=False), layers.BatchNormalization(momentum=0.7), layers.Dense(3, use_bias=False)])
    return Siamese(net, keras.optimizers.Adam(0.05), mean_squares, [((None, 10), F), ((None, 3), F)]), floats(24, 10), floats(24, 3)


def adversarial_in_place():
    """The same with averages that are added to in place: what a server's variable becomes is made of what another has just become."""
    w, m, g = tf.Variable(floats(4, 1), name="w"), tf.Variable(np.zeros((4, 1), np.float32), name="m"), tf.Variable(floats(3, 4), name="g")

    def step(w, m, g, x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.softplus(-tf.matmul(y, w)) + tf.nn.softplus(tf.matmul(tf.matmul(x, g), w)))
        m.assign_add(0.3 * (tape.gradient(loss, w) - m))
        w.assign_sub(0.5 * m)
        with tf.GradientTape() as tape:
            fooled = tf.reduce_mean(tf.nn.softplus(-tf.matmul(tf.matmul(x, g), w)))
        g.assign_sub(0.5 * tape.gradient(fooled, g))
        return loss
    return Plain([w, m, g], step, [((None, 3), F), ((None, 4), F)]), floats(24, 3), floats(24, 4)


MODELS = {f.__name__: f for f in (
    adam, adam_fixed_batch, momentum, clip_global_norm, adamw_ema_schedule, accumulation, rmsprop_clipnorm, lion, adafactor, loss_scale, residual,
    gru, lstm_rolled, unet, vit, dlrm, dlrm_adam, dlrm_sgd, gpt2, fit, penalty, assign_sub, hand_adam, tied_square, loop_around, epochs,
    epochs_in_place, own_iterator, two_ways, read_behind, until_close, scalars, scalar_ftrl, dlrm_clip, dlrm_fixed_batch,
    words, words_accumulated, words_loss_scale, words_guarded, centre, adversarial, adversarial_factored, adversarial_ftrl, adversarial_in_place, siamese, adversarial_words, dlrm_ftrl) + TABLES}
APART = {"residual", "siamese"}


def one_machine(job, x, y, batch):
    """After STEPS steps over WORKERS * batch rows each."""
    losses = []
    both = tf.function(job.body) if isinstance(job, Job) else tf.function(job.step.python_function)
    for k in range(STEPS):
        at = slice(k * batch * WORKERS, (k + 1) * batch * WORKERS)
        losses.append(both(tf.constant(x[at]), tf.constant(y[at])))
    return losses


def batches_apart(job, x, y, batch):
    rest = [v for v in job.model.variables if "seed" not in v.path and not any(v is t for t in job.model.trainable_variables)]
    for k in range(STEPS):
        before = [v.numpy() for v in rest]
        gradients, after = [], []
        for i in range(WORKERS):
            at = slice((k * WORKERS + i) * batch, (k * WORKERS + i + 1) * batch)
            for v, b in zip(rest, before):
                v.assign(b)
            gradients.append(job.gradients(tf.constant(x[at]), tf.constant(y[at]))[1])
            after.append([v.numpy() for v in rest])
        for i, v in enumerate(rest):
            v.assign(np.mean([a[i] for a in after], 0))
        job.optimizer.apply_gradients([(sum(g) / WORKERS, t) for g, t in zip(zip(*gradients), job.model.trainable_variables)])


def key(i, v):
    name = getattr(v, "path", v.name).replace(":0", "").replace("/", "_")
    return "v%d_%s" % (i, name)


STRATEGIES = {"ps1_sync": ("ps-sync", "1 ps and 2 workers", {"ps": ["ps0"], "worker": ["w0", "w1"]}),
              "ps2_sync": ("ps-sync", "2 ps and 2 workers", {"ps": ["ps0", "ps1"], "worker": ["w0", "w1"]}),
              "allreduce": ("allreduce", "2 workers", {"worker": ["w0", "w1"]}),
              "ps2_async": ("ps-async", "2 ps and 1 worker, which takes both batches", {"ps": ["ps0", "ps1"], "worker": ["w0"]})}
FEW = ("ps2_sync", "allreduce")
ALL = {"adam", "fit", "hand_adam", "accumulation", "dlrm"}
NOISE = ("key_bias",)  # its gradient is what is left of sums that cancel


def write_case(folder, name, strategy, keys, feeds, batch):
    option, tasks, cluster = STRATEGIES[strategy]
    runs, expect = [], []
    rows = batch * WORKERS if strategy == "ps2_async" else batch
    for i in range(len(cluster["worker"])):
        worker = "worker_%d" % i
        args = ["--entry", "train"] + [a for f in feeds for a in ("--feed", "%s=%s.npy" % (f, f))] + ["--batch", str(rows), "--steps", str(STEPS), "--entry", "values"]
        for k in keys:
            args += ["--fetch", "%s=%s_%s.npy" % (k, k, worker)]
            if not any(n in k for n in NOISE):
                expect.append({"task": worker, "file": "%s_%s.npy" % (k, worker), "value": "want_" + k, "rtol": 1e-3, "atol": 2e-5})
        runs.append({"task": worker, "args": args})
    about = "%s by --strategy %s on %s: after %d steps every variable is what one machine with the rows of both has." % (name, option, tasks, STEPS)
    case = os.path.join(folder, strategy)
    os.makedirs(case)
    for shared in ("data.npz", "model"):
        os.symlink("../" + shared, os.path.join(case, shared))
    with open(os.path.join(case, "case.json"), "w") as out:
        json.dump({"about": about, "graph": "model", "build": ["--strategy", option], "cluster": cluster, "runs": runs, "expect": expect}, out, indent=1)
        out.write("\n")


def write(top, name):
    keras.utils.set_random_seed(3)
    rng.seed(7)
    job, x, y = MODELS[name]()
    batch = len(x) // WORKERS // STEPS
    state = job.state()
    keys = [key(i, v) for i, v in enumerate(state)]
    job.values = tf.function(lambda: {k: tf.identity(tf.convert_to_tensor(v)) for k, v in zip(keys, state)}, input_signature=[])
    folder = os.path.join(top, name)
    model = os.path.join(folder, "model")
    shutil.rmtree(folder, ignore_errors=True)
    tf.saved_model.save(job, model, signatures={"train": job.step, "values": job.values})
    shutil.rmtree(os.path.join(model, "assets"), ignore_errors=True)
    os.remove(os.path.join(model, "fingerprint.pb"))
    (batches_apart if name in APART else one_machine)(job, x, y, batch)
    want = {"want_" + k: np.asarray(tf.convert_to_tensor(v)) for k, v in zip(keys, state)}
    np.savez_compressed(os.path.join(folder, "data.npz"), x=x, y=y, **want)
    for strategy in STRATEGIES if name in ALL else FEW:
        if name not in APART or strategy != "ps2_async":
            write_case(folder, name, strategy, keys, ["x", "y"], batch)
    print(name, sum(w.size for w in want.values()), flush=True)


if __name__ == "__main__":
    for chosen in sys.argv[2:] or MODELS:
        try:
            write(sys.argv[1], chosen)
        except Exception as e:  # pylint: disable=broad-except
            print(chosen, "FAILED", type(e).__name__, str(e)[:600], flush=True)
