"""What the cases of this folder are made of: a step that is exported, what it changes, and data."""
import os

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf


class Job(tf.Module):
    """A Keras model, its loss and optimizer; the step as people write it."""

    def __init__(self, model, optimizer, loss, specs, tweak=None):
        super().__init__()
        self.model, self.optimizer, self.loss, self.specs, self.tweak = model, optimizer, loss, specs, tweak
        optimizer.build(model.trainable_variables)
        self.step = tf.function(self.body, input_signature=[tf.TensorSpec(*s) for s in specs])

    def gradients(self, x, y):
        with tf.GradientTape() as tape:
            loss = self.loss(y, self.model(x, training=True))
        return loss, tape.gradient(loss, self.model.trainable_variables)

    def body(self, x, y):
        loss, gradients = self.gradients(x, y)
        if self.tweak:
            gradients = self.tweak(gradients)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        return {"loss": loss}

    def state(self):
        return [v for v in self.model.variables if "seed" not in v.path] + list(self.optimizer.variables)


class Plain(tf.Module):
    """Variables and a step without Keras."""

    def __init__(self, variables, step, specs):
        super().__init__()
        self.vars = variables
        self.specs = specs
        self.step = tf.function(lambda x, y: {"loss": step(*variables, x, y)}, input_signature=[tf.TensorSpec(*s) for s in specs])

    def state(self):
        return self.vars


F, I = tf.float32, tf.int32


rng = np.random.RandomState(7)


def floats(*shape):
    return rng.normal(size=shape).astype(np.float32)


def ints(high, *shape):
    return rng.randint(0, high, shape).astype(np.int32)


def mean_squares(y, p):
    return tf.reduce_mean(tf.square(y - p))


def cross_entropy(y, p):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=p))
