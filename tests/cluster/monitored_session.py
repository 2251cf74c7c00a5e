#!/usr/bin/env python3
"""TensorFlow's own clients against built tasks: MonitoredTrainingSession with hooks, queue runners and checkpoints.

    monitored_session.py --tfc PATH [--kind KIND] [--keep]

alone: one client whose ps is killed and started again empty: its session is told, and it begins again from its checkpoint.
synchronous: the clients of two workers with SyncReplicasOptimizer; the chief's has the queue runner.
The last line is `N passed, N failed`. Without TensorFlow it says `skipped`. As `monitored_session.py client ...` it is such a client.
"""
import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
STEPS, DEADLINE = 60, 120


# ---- a client ----


class Exported(Exception):
    pass


def client_graph(tf, kind, worker):
    """What the loop runs, and its hooks."""
    step = tf.train.get_or_create_global_step()
    lines = ["%.1f,%.1f" % (v, 2 * v) for v in range(-4, 5)]
    line = tf.train.string_input_producer(lines, shuffle=False).dequeue()
    x, y = tf.unstack(tf.decode_csv(tf.train.batch([line], 4, capacity=16), [[0.0], [0.0]]))
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(w * x - y), name="loss")
    optimizer, hooks = tf.train.GradientDescentOptimizer(0.02), [tf.train.NanTensorHook(loss)]
    if kind == "synchronous":
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=2, total_num_replicas=2)
    train = optimizer.minimize(loss, global_step=step)
    if kind == "synchronous":
        hooks.append(optimizer.make_session_run_hook(worker == 0))
    tf.summary.scalar("loss", loss)
    return train, loss, step, hooks + [tf.train.StopAtStepHook(last_step=STEPS), tf.train.LoggingTensorHook({"l": loss}, every_n_iter=20)]


def client(kind, worker, where, checkpoints, pause):
    import tensorflow.compat.v1 as tf
    from tensorflow.python.training import session_manager

    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    target = "" if where.startswith("file:") else where

    def prepare_session(self, *_, **__):
        tf.train.export_meta_graph(where[5:])  # the graph is whole: hooks and savers have added theirs
        raise Exported

    if not target:
        session_manager.SessionManager.prepare_session = prepare_session
    with tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:%d" % worker)):
        train, loss, step, hooks = client_graph(tf, kind, worker)
    try:
        with tf.train.MonitoredTrainingSession(master=target, is_chief=worker == 0, checkpoint_dir=checkpoints or None, hooks=hooks,
                                               save_checkpoint_steps=10, save_summaries_steps=5, stop_grace_period_secs=5,
                                               max_wait_secs=60) as session:
            while not session.should_stop():
                _, value, number = session.run([train, loss, step])
                print("step", number, "%.6g" % value, flush=True)
                time.sleep(pause)
    except Exported:
        pass
    print("client is done", flush=True)
    os._exit(0)  # TensorFlow's threads may still wait for a server that is gone


# ---- the tests ----


def free_ports(count):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


class Cluster:
    """A ps and workers that serve, and clients of them."""

    def __init__(self, tfc, folder, kind, workers):
        self.folder, self.kind, self.processes = folder, kind, {}
        os.makedirs(folder)
        ports = free_ports(1 + workers)
        self.targets = ["grpc://127.0.0.1:%d" % p for p in ports[1:]]
        names = {"ps": ["127.0.0.1:%d" % ports[0]], "worker": ["127.0.0.1:%d" % p for p in ports[1:]]}
        with open(os.path.join(folder, "cluster.json"), "w", encoding="utf-8") as out:
            json.dump(names, out)
        self.client_start("export", 0, "file:graph.meta", 0)
        self.wait("export")
        subprocess.run([tfc, "build", "graph.meta", "--cluster", "cluster.json", "-o", "out", "--quiet"] +
                       (["--replicate", "worker"] if workers > 1 else []), cwd=folder, check=True)
        for task in ["ps_0"] + ["worker_%d" % i for i in range(workers)]:
            self.task_start(task)

    def start(self, name, command):
        with open(os.path.join(self.folder, name + ".log"), "a", encoding="utf-8") as log:
            self.processes[name] = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=subprocess.STDOUT)

    def task_start(self, name):
        self.start(name, [os.path.join(self.folder, "out", name)])

    def client_start(self, name, worker, where, pause):
        checkpoints = os.path.join(self.folder, "saved") if worker == 0 else ""
        self.start(name, [sys.executable, os.path.abspath(__file__), "client", self.kind, str(worker), where, checkpoints, str(pause)])

    def text(self, name):
        with open(os.path.join(self.folder, name + ".log"), encoding="utf-8", errors="replace") as log:
            return log.read()

    def steps(self, name):
        return [int(line.split()[1]) for line in self.text(name).splitlines() if line.startswith("step ")]

    def wait(self, name):
        code = self.processes[name].wait(DEADLINE)
        assert code == 0 and "client is done" in self.text(name), "%s: exit code %d\n%s" % (name, code, self.text(name)[-3000:])

    def await_step(self, name, number):
        end = time.monotonic() + DEADLINE
        while max(self.steps(name) + [-1]) < number:
            assert time.monotonic() < end and self.processes[name].poll() is None, self.text(name)[-3000:]
            time.sleep(0.02)

    def close(self):
        for process in self.processes.values():
            process.kill()
            process.wait()


def alone(tfc, folder):
    cluster = Cluster(tfc, folder, "alone", 1)
    try:
        cluster.client_start("client", 0, cluster.targets[0], 0.02)
        cluster.await_step("client", 25)
        cluster.processes["ps_0"].kill()
        cluster.processes["ps_0"].wait()
        cluster.task_start("ps_0")
        cluster.wait("client")
        steps = cluster.steps("client")
        backs = [i for i in range(1, len(steps)) if steps[i] <= steps[i - 1]]
        assert len(backs) == 1 and steps[backs[0]] >= 19, "it went back %s times: %s" % (len(backs), steps)
        assert steps[-1] >= STEPS - 1, steps
        assert os.path.exists(os.path.join(folder, "saved", "model.ckpt-%d.index" % STEPS)), os.listdir(os.path.join(folder, "saved"))
    finally:
        cluster.close()


def synchronous(tfc, folder):
    cluster = Cluster(tfc, folder, "synchronous", 2)
    try:
        for worker in (0, 1):
            cluster.client_start("client_%d" % worker, worker, cluster.targets[worker], 0)
        for worker in (0, 1):
            cluster.wait("client_%d" % worker)
            steps = cluster.steps("client_%d" % worker)
            assert steps == sorted(steps) and len(steps) > STEPS // 4, steps
    finally:
        cluster.close()


def main():
    if sys.argv[1:2] == ["client"]:
        kind, worker, where, checkpoints, pause = sys.argv[2:7]
        client(kind, int(worker), where, checkpoints, float(pause))
    parser = argparse.ArgumentParser()
    parser.add_argument("--tfc", required=True)
    parser.add_argument("--kind", choices=["alone", "synchronous"])
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    if subprocess.run([sys.executable, "-c", "import tensorflow"], capture_output=True, check=False).returncode:
        print("skipped: this Python has no TensorFlow\n0 passed, 0 failed")
        return
    folder, failed, kinds = tempfile.mkdtemp(), 0, [k for k in (alone, synchronous) if options.kind in (None, k.__name__)]
    for kind in kinds:
        try:
            kind(os.path.abspath(options.tfc), os.path.join(folder, kind.__name__))
            print("ok", kind.__name__, flush=True)
        except (AssertionError, subprocess.SubprocessError) as e:
            failed += 1
            print("FAIL %s: %s" % (kind.__name__, e), flush=True)
    if options.keep:
        print(folder)
    else:
        shutil.rmtree(folder)
    print("%d passed, %d failed" % (len(kinds) - failed, failed))


main()
