#!/usr/bin/env python3
"""Writes the cases of this folder with TensorFlow: MetaGraphDefs as its training loops export them, whose queues are filled by "
              "threads that are in no
graph: SyncReplicasOptimizer (plainly exported, of a Supervisor, of a MonitoredTrainingSession with its hook, with backup workers), and
input
queues.

    export.py FOLDER [CASE...]

Where each round is the mean of one gradient of each worker, the losses are those of plain gradient descent, computed here; with first
tokens or backup
workers they depend on who is faster, and only bounds are expected.
"""
import glob
import json
import os
import shutil
import socket
import sys
import tempfile

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.FATAL)

STEPS, BATCH, RATE = 600, 8, 0.01
CLUSTER = {"ps": ["ps0"], "worker": ["w0", "w1"]}


def device():
    return tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:0")


def sync(aggregate=2, total=2, optimizer=None, averages=False):
    """A linear model whose gradients meet."""
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    y = tf.placeholder(tf.float32, [None, 1], name="y")
    w = tf.get_variable("w", [4, 1], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y), name="loss")
    more = {"variable_averages": tf.train.ExponentialMovingAverage(0.5), "variables_to_average": [w]} if averages else {}
    optimizer = tf.train.SyncReplicasOptimizer(optimizer or tf.train.GradientDescentOptimizer(RATE), replicas_to_aggregate=aggregate,
                                               total_num_replicas=total, **more)
    tf.add_to_collection("train_op", optimizer.minimize(loss, global_step=step))
    return optimizer


def data():
    rng = np.random.RandomState(3)
    x = rng.randn(96, 4).astype(np.float32)
    return x, (x @ np.array([[1.0], [2.0], [-1.0], [0.5]]) + 0.3).astype(np.float32)


def descend(x, y):
    """The losses of two workers that take every second batch, and step together."""
    w, b, losses = np.zeros((4, 1)), np.zeros(1), [[], []]
    for k in range(STEPS):
        dw, db = 0, 0
        for i in range(2):
            at = (2 * k + i) * BATCH % len(x)
            error = x[at:at + BATCH] @ w + b - y[at:at + BATCH]
            losses[i].append(np.mean(error**2))
            dw, db = dw + x[at:at + BATCH].T @ error * 2 / BATCH / 2, db + np.mean(error) * 2 / 2
        w, b = w - RATE * dw, b - RATE * db
    return [np.array(l, np.float32) for l in losses]


def case_write(folder, about, build, runs, arrays, expect=None, error=None, cluster=CLUSTER):
    case = {"about": about, "graph": "graph.meta", "build": build, "runs": runs}
    if cluster:
        case["cluster"] = cluster
    case.update({"error": error} if error else {"expect": expect})
    with open(os.path.join(folder, "case.json"), "w") as out:
        json.dump(case, out, indent=1)
    np.savez_compressed(os.path.join(folder, "data.npz"), **arrays)


def worker_run(i, steps=STEPS):
    return {"task": "worker_%d" % i, "args": ["--entry", "train_op", "--feed", "x=x.npy", "--feed", "y=y.npy", "--batch", str(BATCH),
              "--steps",
                                            str(steps), "--fetch", "loss=loss%d.npy" % i, "--fetch", "Assign_1:0=step%d.npy" % i]}


def sync_case(folder, about, exact, steps=STEPS):
    x, y = data()
    arrays = {"x": x, "y": y}
    if exact:
        arrays.update({"loss%d_expected" % i: l for i, l in enumerate(descend(x, y))})
        arrays["steps_expected"] = np.arange(1, STEPS + 1)
        expect = [{"task": "worker_%d" % i, "file": "loss%d.npy" % i, "value": "loss%d_expected" % i, "rtol": 1e-4,
              "atol": 1e-5} for i in (0, 1)]
        expect += [{"task": "worker_%d" % i, "file": "step%d.npy" % i, "value": "steps_expected", "rtol": 0, "atol": 0} for i in (0, 1)]
    else:
        expect = [{"task": "worker_%d" % i, "file": "step%d.npy" % i, "min": 0, "max": 2 * steps} for i in (0, 1)]
        expect += [{"task": "worker_%d" % i, "file": "loss%d.npy" % i, "min": 0, "max": 40} for i in (0, 1)]
    case_write(folder, about, [], [worker_run(0, steps), worker_run(1, steps)], arrays, expect)


def sync_exported(folder):
    with tf.Graph().as_default(), tf.device(device()):
        sync()
        tf.train.export_meta_graph(os.path.join(folder, "graph.meta"))
    sync_case(folder, "SyncReplicasOptimizer as export_meta_graph writes it: no queue runner is in a collection, as a hook would "
              "start it, and the "
              "inner optimizer has put its update into `train_op`; no option says that the graph is one of two workers.", True)


def sync_averages(folder):
    with tf.Graph().as_default(), tf.device(device()):
        tf.train.add_queue_runner(sync(averages=True).get_chief_queue_runner())
        tf.train.export_meta_graph(os.path.join(folder, "graph.meta"))
    sync_case(folder, "SyncReplicasOptimizer with averages of variables: its queue runner is in the collection, and runs what comes "
              "after the tokens.", True)


def sync_supervisor(folder):
    with tf.Graph().as_default(), tf.device(device()):
        optimizer = sync()
        optimizer.get_init_tokens_op()
        tf.train.Supervisor(is_chief=True, logdir=tempfile.mkdtemp(), local_init_op=optimizer.chief_init_op,
                            ready_for_local_init_op=optimizer.ready_for_local_init_op, global_step=optimizer._global_step)
        tf.train.export_meta_graph(os.path.join(folder, "graph.meta"))
    sync_case(folder, "SyncReplicasOptimizer of a Supervisor, with first tokens: workers are a step ahead, so who is faster decides "
              "the losses.", False, 12)


def sync_repeated(folder):
    with tf.Graph().as_default(), tf.device(device()):
        sync(aggregate=4)
        tf.train.export_meta_graph(os.path.join(folder, "graph.meta"))
    sync_case(folder, "SyncReplicasOptimizer that waits for four gradients of two workers, without the first tokens with which each "
              "could give two: a round "
              "takes one of each.", True)


def servers():
    sockets = [socket.socket() for _ in range(3)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = ["127.0.0.1:%d" % s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    spec = tf.train.ClusterSpec({"ps": ports[:1], "worker": ports[1:]})
    return [tf.train.Server(spec, job_name=job, task_index=i) for job, i in (("ps", 0), ("worker", 0), ("worker", 1))]


def monitored(folder, aggregate, total):
    checkpoints, cluster = tempfile.mkdtemp(), servers()
    with tf.Graph().as_default(), tf.device(device()):
        hook = sync(aggregate, total).make_session_run_hook(True)
        session = tf.train.MonitoredTrainingSession(master=cluster[1].target, is_chief=True, checkpoint_dir=checkpoints, hooks=[hook])
    shutil.copy(sorted(glob.glob(checkpoints + "/*.meta"))[0], os.path.join(folder, "graph.meta"))
    return session  # its threads wait for ever: the process ends without them


def sync_monitored(folder):
    monitored(folder, 2, 2)
    sync_case(folder, "The .meta file of a MonitoredTrainingSession with the hook of SyncReplicasOptimizer: its first tokens are in "
              "the graph alone.", False, 12)


def sync_backup(folder):
    monitored(folder, 1, 2)
    sync_case(folder, "SyncReplicasOptimizer with a backup worker: one of two gradients is enough, the other is stale, dropped, and "
              "its step is done.", False, 40)


def inputs_model(step, values):
    a, b = tf.unstack(tf.decode_csv(values, [[0.0], [0.0]]))
    w = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(w * a - b), name="loss")
    tf.add_to_collection("train_op", tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step))


def lines():
    rng = np.random.RandomState(5)
    return ["%.4f,%.4f" % (v, 2 * v + 0.1) for v in rng.randn(12)]


def input_losses(steps):
    init = [tf.get_collection("init_op"), tf.get_collection("local_init_op")]
    with tf.Session() as session:
        session.run(init)
        tf.train.start_queue_runners(session)
        return np.array([session.run(["loss:0"] + tf.get_collection("train_op"))[0] for _ in range(steps)], np.float32)


def input_graph(folder, setter=None, epochs=None, shuffle=False, keep=None):
    with tf.Graph().as_default(), tf.device(setter):
        step = tf.train.get_or_create_global_step()
        line = tf.train.string_input_producer(lines(), shuffle=False, num_epochs=epochs).dequeue()
        if shuffle:
            values = tf.train.shuffle_batch([line], 4, capacity=16, min_after_dequeue=4, num_threads=3, seed=1)
        elif keep:
            values = tf.train.maybe_batch([line], keep(line), 4, capacity=16)
        else:
            values = tf.train.batch([line], 4, capacity=16)
        inputs_model(step, values)
        tf.train.Scaffold().finalize()
        tf.train.export_meta_graph(os.path.join(folder, "graph.meta"))
        return None if setter or shuffle else input_losses(6)


def input_run(task, steps):
    return {"task": task, "args": ["--entry", "train_op", "--steps", str(steps), "--fetch", "loss=loss.npy"]}


def input_batch(folder):
    losses = input_graph(folder)
    case_write(folder, "string_input_producer and train.batch: two queue runners fill what the step takes.", [],
              [input_run("localhost_0", 6)],
               {"losses": losses}, [{"task": "localhost_0", "file": "loss.npy", "value": "losses", "rtol": 1e-5, "atol": 1e-6}],
              cluster=None)


def maybe(folder, about):
    losses = input_graph(folder, keep=lambda line: tf.not_equal(tf.strings.length(line) % 2, 0))
    case_write(folder, about, [], [input_run("localhost_0", 6)], {"losses": losses},
               [{"task": "localhost_0", "file": "loss.npy", "value": "losses", "rtol": 1e-5, "atol": 1e-6}], cluster=None)


def input_maybe(folder):
    tf.enable_control_flow_v2()
    maybe(folder, "maybe_batch: the thread runs a cond, by the name of its tensor, whose function enqueues.")
    tf.disable_control_flow_v2()


def input_maybe_v1(folder):
    maybe(folder, "maybe_batch: the thread runs a cond, whose queue comes through a Switch.")


def input_shuffled(folder):
    input_graph(folder, shuffle=True)
    case_write(folder, "shuffle_batch with three threads that run the same operation.", [], [input_run("localhost_0", 40)],
              {"none": np.zeros(1)},
               [{"task": "localhost_0", "file": "loss.npy", "min": 0, "max": 40}], cluster=None)


def input_epochs(folder):
    input_graph(folder, epochs=2)
    case_write(folder, "Two epochs: the producer ends, its queue is closed, then the batches' queue; the step after the last one "
              "gets the end.", [],
               [input_run("localhost_0", 7)], {"none": np.zeros(1)}, error={"stage": "run", "code": "OUT_OF_RANGE",
              "contains": ["is closed"]}, cluster=None)


def input_replicated(folder):
    input_graph(folder, setter=device())
    case_write(folder, "Input queues of two workers: each runs the queue runners of its own queues.", ["--replicate", "worker"],
               [input_run("worker_0", 9), input_run("worker_1", 9)], {"none": np.zeros(1)},
               [{"task": "worker_%d" % i, "file": "loss.npy", "min": 0, "max": 40} for i in (0, 1)])


CASES = [sync_exported, sync_averages, sync_repeated, sync_supervisor, sync_monitored, sync_backup, input_batch, input_maybe,
         input_maybe_v1, input_shuffled, input_epochs, input_replicated]


def main():
    for case in CASES:
        if len(sys.argv) > 2 and case.__name__ not in sys.argv[2:]:
            continue
        folder = os.path.join(sys.argv[1], case.__name__)
        os.makedirs(folder, exist_ok=True)
        case(folder)
        print(case.__name__, flush=True)
    os._exit(0)


main()
