#!/usr/bin/env python3
"""Clusters of real processes: tasks that tfc builds, TensorFlow's own parameter server, and plain sockets, in turn in one run.

    bench_cluster.py --tfc build/tfc [--before OTHER/tfc] [--tensorflow PYTHON] [--rounds 3] [--quick] [--only ROW,...]

--before: another build of tfc, beside the first in each row; --tensorflow: a Python that has TensorFlow (without one its column stays
empty). A figure is the median over the rounds; columns behind it are ratios, greater than 1 where tfc is better.
"""
import argparse
import json
import os
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "cluster"))
import fault_graph  # noqa: E402

DIGITS = os.path.join(HERE, "..", "examples", "digits")
DIGITS_BYTES = 4 * (64 * 64 + 64 + 64 * 10 + 10)
BIG = 25 * 1024 * 1024  # floats: 100 MB
ONCE = ("ledger_", "commit_", "record_", "frame_change", "frame_commit", "frame_pause", "step_commit", "course_", "request_of",
        "driver_state")


class Cluster:
    """One ps and some workers over Unix sockets, of one build."""

    def __init__(self, tfc, folder, graph, entries, workers):
        self.folder, self.workers, self.running = folder, workers, []
        os.makedirs(folder, exist_ok=True)
        names = ['"unix:%s"' % os.path.join(folder, n) for n in ["p"] + ["w%d" % i for i in range(workers)]]
        with open(os.path.join(folder, "c.json"), "w", encoding="utf-8") as f:
            f.write('{"ps": [%s], "worker": [%s]}' % (names[0], ", ".join(names[1:])))
        words = [tfc, "build", graph, "--cluster", "c.json", "-o", "out", "--quiet", "--replicate", "worker"]
        for entry in entries:
            words += ["--entry", entry]
        subprocess.run(words, cwd=folder, check=True)

    def start(self, name, words=(), out=subprocess.DEVNULL):
        process = subprocess.Popen([os.path.join(self.folder, "out", name)] + list(words), cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=subprocess.DEVNULL)
        self.running.append(process)
        return process

    def stop(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()
        self.running = []

    def seconds(self, words, steps):
        """From the first start to the end of the last worker."""
        begin = time.perf_counter()
        self.start("ps_0")
        workers = [self.start("worker_%d" % i, words + ["--steps", str(steps)]) for i in range(self.workers)]
        for worker in workers:
            if worker.wait(timeout=600) != 0:
                raise RuntimeError("a worker ended with %d" % worker.returncode)
        seconds = time.perf_counter() - begin
        self.stop()
        return seconds

    def step_seconds(self, words, steps):
        """Of one step: the difference of a long and a short run, so that starting costs nothing."""
        few = max(1, steps // 10)
        return (self.seconds(words, steps + few) - self.seconds(words, few)) / steps


def first_line(process):
    process.stdout.readline()
    return time.perf_counter()


class Ours:
    def __init__(self, tfc, folder):
        self.tfc, self.folder, self.clusters = tfc, folder, {}

    def cluster(self, key, graph, entries, workers):
        if key not in self.clusters:
            self.clusters[key] = Cluster(self.tfc, os.path.join(self.folder, key), graph, entries, workers)
        return self.clusters[key]

    def digits(self, workers):
        return self.cluster("digits%d" % workers, os.path.join(DIGITS, "graph.pb"),
                            ["init: -> | init", "train: pixels, labels -> | train_op", "look: -> global_step"], workers)

    def shared(self, key, size, is_read):
        folder = os.path.join(self.folder, key)
        if key not in self.clusters:
            os.makedirs(folder)
            g = fault_graph.Graph()
            ps, worker = "/job:ps/task:0", "/job:worker"
            read = g.variable("v", [size], ps)
            if is_read:
                g.node("axis", "Const", device=worker, dtype="type: DT_INT32", value="tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 0 }")
                g.node("step", "Max", [read, "axis"], worker, T=fault_graph.FLOAT, Tidx="type: DT_INT32")
            else:
                g.placeholder("fed", [size])
                g.node("value", "Identity", ["fed"], worker, T=fault_graph.FLOAT)
                g.node("step", "AssignAdd", ["v", "value"], ps, T=fault_graph.FLOAT)
            g.save(os.path.join(folder, "g.pbtxt"))
            np.save(os.path.join(folder, "fed.npy"), np.ones(size, np.float32))
        entry = "step: -> step" if is_read else "step: fed -> | step"
        return self.cluster(key, os.path.join(folder, "g.pbtxt"), ["init: -> | init", entry], 1)

    def train(self, steps):
        words = ["--entry", "train", "--batch", "32"]
        for name, file in (("pixels", "train_pixels"), ("labels", "train_labels")):
            words += ["--feed", "%s=%s" % (name, os.path.join(DIGITS, file + ".npy"))]
        return words + (["--steps", str(steps)] if steps else [])

    # ---- rows: each gives numbers ----

    def mlp(self, workers, steps):
        return [workers / self.digits(workers).step_seconds(self.train(0), steps)]

    def float_step(self, steps):
        cluster = self.shared("float", 1, False)
        cluster.start("ps_0")
        worker = cluster.start("worker_0", ["--trace", "t.json", "--entry", "step", "--feed", "fed=fed.npy", "--steps", str(steps)])
        worker.wait(timeout=600)
        cluster.stop()
        with open(os.path.join(cluster.folder, "t.json"), encoding="utf-8") as f:
            begins = [e["ts"] for e in json.load(f)["traceEvents"] if e.get("name") == "fed"][::2]
        times = sorted(b - a for a, b in zip(begins[steps // 10:], begins[steps // 10 + 1:]))
        return [times[len(times) // 2], times[len(times) * 99 // 100]]

    def big(self, steps):
        return [4 * BIG / 1e9 / self.shared("big", BIG, False).step_seconds(["--entry", "step", "--feed", "fed=fed.npy"], steps)]

    def read(self, steps):
        return [4 * BIG / 1e9 / self.shared("read", BIG, True).step_seconds(["--log-every", "0", "--entry", "step"], steps)]

    def first_step(self):
        cluster = self.digits(2)
        cluster.start("ps_0")
        words = self.train(1) + ["--entry", "look", "--steps", "1000000"]
        workers = [cluster.start("worker_%d" % i, words, subprocess.PIPE) for i in (1, 0)]
        begin = time.perf_counter()
        seconds = max(first_line(w) for w in workers) - begin
        cluster.stop()
        return [1000 * seconds]

    def back(self, name, is_saved):
        """From starting a killed task again until a worker has made a step."""
        cluster = self.digits(2)
        saved = ["--checkpoint-dir", os.path.join(cluster.folder, "saved%d" % time.monotonic_ns())] if is_saved else []
        words = saved + (["--save-steps", "200"] if is_saved else []) + self.train(100) + ["--entry", "train"] + self.train(10 ** 7)[2:]
        looks = saved + self.train(1) + ["--entry", "look", "--steps", "100000000"]
        tasks = {"ps_0": saved, "worker_0": words, "worker_1": looks}
        started = {n: cluster.start(n, w, subprocess.PIPE if n == "worker_1" else subprocess.DEVNULL) for n, w in tasks.items()}
        first_line(started["worker_1"])
        time.sleep(1.5)
        started[name].send_signal(signal.SIGKILL)
        started[name].wait()
        begin = time.perf_counter()
        again = cluster.start(name, tasks[name], subprocess.PIPE if name == "worker_1" else subprocess.DEVNULL)
        watched = again if name == "worker_1" else started["worker_1"]
        os.set_blocking(watched.stdout.fileno(), False)
        while watched.stdout.read():
            pass
        seconds = None
        while seconds is None and time.perf_counter() - begin < 20 and watched.poll() is None:
            if watched.stdout.read():
                seconds = time.perf_counter() - begin
            time.sleep(0.001)
        cluster.stop()
        return [1000 * seconds if seconds is not None else float("nan")]

    def grow(self, seconds):
        """MiB more than after the first tenth that ps and one worker have resident, while the other worker is killed every 5 s."""
        cluster = self.digits(2)
        saved = ["--checkpoint-dir", os.path.join(cluster.folder, "saved%d" % time.monotonic_ns()), "--save-seconds", "2"]
        words = saved + self.train(10 ** 8)
        ps, chief, other = cluster.start("ps_0", saved), cluster.start("worker_0", words), cluster.start("worker_1", words)
        begin, most, first = time.perf_counter(), [0, 0], None
        while time.perf_counter() - begin < seconds:
            time.sleep(5)
            other.kill()
            other.wait()
            other = cluster.start("worker_1", words)
            most = [max(a, resident(p)) for a, p in zip(most, (ps, chief))]
            if first is None and time.perf_counter() - begin >= seconds / 10:
                first = list(most)
        cluster.stop()
        return [b - a for a, b in zip(first, most)]

    def rows_graph(self, floats):
        """A table of `floats`, of which each step adds to one row."""
        folder = os.path.join(self.folder, "rows")
        if "rows" not in self.clusters:
            os.makedirs(folder)
            g = fault_graph.Graph()
            ps, worker, index = "/job:ps/task:0", "/job:worker", "type: DT_INT32"
            g.variable("v", [floats // 1024, 1024], ps)
            g.placeholder("fed", [1, 1024])
            g.node("value", "Identity", ["fed"], worker, T=fault_graph.FLOAT)
            g.node("at", "Const", device=ps, dtype=index, value="tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 7 }")
            g.node("step", "ScatterAdd", ["v", "at", "value"], ps, T=fault_graph.FLOAT, Tindices=index)
            g.save(os.path.join(folder, "g.pbtxt"))
            np.save(os.path.join(folder, "fed.npy"), np.ones((1, 1024), np.float32))
        return self.cluster("rows", os.path.join(folder, "g.pbtxt"), ["init: -> | init", "step: fed -> | step"], 1)

    def once(self, seconds):
        """How much of a one-float step's processor time is spent in what makes steps count once, by the names of functions; needs perf."""
        cluster, data = self.shared("float", 1, False), os.path.join(self.folder, "perf.data")
        ps = cluster.start("ps_0")
        worker = cluster.start("worker_0", ["--entry", "step", "--feed", "fed=fed.npy", "--steps", "100000000"])
        time.sleep(1)
        words = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "5000", "-o", data, "-p", "%d,%d" % (ps.pid, worker.pid)]
        subprocess.run(words + ["--", "sleep", str(seconds)], check=True, stderr=subprocess.DEVNULL)
        cluster.stop()
        report = subprocess.run(["perf", "report", "-i", data, "--stdio", "-F", "overhead,sym"], check=True, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True).stdout
        rows = [line.split() for line in report.splitlines() if "%" in line and line.strip()[0].isdigit()]
        return [sum(float(row[0].rstrip("%")) for row in rows if row[-1].startswith(ONCE))]

    def begins(self, cluster, steps, saved):
        """When each step began, in us, after the first tenth; and the processor time of all tasks, in s."""
        used = processor_seconds()
        cluster.start("ps_0", saved)
        worker = cluster.start("worker_0", saved + ["--trace", "t.json", "--entry", "step", "--feed", "fed=fed.npy", "--steps", str(steps)])
        worker.wait(timeout=600)
        cluster.stop()
        with open(os.path.join(cluster.folder, "t.json"), encoding="utf-8") as f:
            begins = [e["ts"] for e in json.load(f)["traceEvents"] if e.get("name") == "fed"][::2]
        return np.array(begins[len(begins) // 10:]), processor_seconds() - used

    def save(self, steps):
        """What saving 128 MiB every 2 s takes of a core, in turn without and with, and the longest time between two steps: at all, which is
        the first copy's, and later, with saving and without."""
        cluster = self.rows_graph(32 << 20)
        folder = os.path.join(cluster.folder, "saved%d" % time.monotonic_ns())
        without, used_without = self.begins(cluster, steps, [])
        begins, used = self.begins(cluster, steps, ["--checkpoint-dir", folder, "--save-seconds", "2", "--keep", "1"])
        shutil.rmtree(folder, ignore_errors=True)
        gaps = np.sort(np.diff(begins)) / 1000
        return [100 * (used - used_without) / ((begins[-1] - begins[0]) / 1e6), gaps[-1], gaps[-2], max(np.diff(without)) / 1000]

    def attack(self):
        """What a ps has resident after connections that say too much, and went."""
        cluster = self.digits(1)
        ps = cluster.start("ps_0")
        while not os.path.exists(os.path.join(cluster.folder, "p")):
            time.sleep(0.01)
        before, sockets = resident(ps), []
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
        for _ in range(600):
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(1)
            try:
                s.connect(os.path.join(cluster.folder, "p"))
                s.sendall(preface + b"\0\x40\0\1\0\0\0\0\1" + b"x" * 16384)
                sockets.append(s)
            except OSError:
                s.close()
        for s in sockets:
            s.close()
        time.sleep(1)
        after = resident(ps)
        cluster.stop()
        return [after - before]


def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def resident(process):
    with open("/proc/%d/status" % process.pid, encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024


class Theirs:
    """TensorFlow 2's tf.compat.v1.train.Server."""

    def __init__(self, python):
        self.python = python

    def run(self, work, steps, workers=1):
        held = [socket.create_server(("127.0.0.1", 0)) for _ in range(workers + 1)]
        names = ["127.0.0.1:%d" % s.getsockname()[1] for s in held]
        for s in held:
            s.close()
        cluster = json.dumps({"ps": names[:1], "worker": names[1:]})
        roles = [("ps", 0)] + [("worker", i) for i in range(workers)]
        tasks = [subprocess.Popen([self.python, os.path.join(HERE, "tf_cluster.py"), role, str(i), cluster, work, str(steps)],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for role, i in roles]
        said = [[float(x) for x in t.communicate(timeout=600)[0].split()] for t in tasks[1:]]
        tasks[0].kill()
        tasks[0].communicate()
        return said

    def mlp(self, workers, steps):
        few = max(10, steps // 10)  # a step takes ten times as long
        return [sum(few / s[0] for s in self.run("digits", few, workers))]

    def float_step(self, steps):
        return self.run("float", max(10, steps // 10))[0][1:]

    def big(self, steps):
        few = max(2, steps // 4)
        return [4 * BIG / 1e9 * few / self.run("big", few)[0][0]]

    def read(self, steps):
        few = max(2, steps // 4)
        return [4 * BIG / 1e9 * few / self.run("read", few)[0][0]]


class Raw:
    def __init__(self, folder):
        self.program, self.path = os.path.join(folder, "raw_loop"), os.path.join(folder, "r")
        subprocess.run(["cc", "-O2", "-o", self.program, os.path.join(HERE, "raw_loop.c"), "-lpthread"], check=True)

    def run(self, clients, out, back, rounds):
        words = [self.program, self.path, clients, out, back, rounds]
        return [float(x) for x in subprocess.run([str(w) for w in words], check=True, stdout=subprocess.PIPE).stdout.split()]

    def mlp(self, workers, steps):
        return [workers * steps / self.run(workers, DIGITS_BYTES, DIGITS_BYTES, steps)[0]]

    def float_step(self, steps):
        return self.run(1, 4, 4, steps)[1:]

    def big(self, steps):
        return [4 * BIG / 1e9 * steps / self.run(1, 4 * BIG, 1, steps)[0]]

    def read(self, steps):
        return [4 * BIG / 1e9 * steps / self.run(1, 1, 4 * BIG, steps)[0]]


# row: (names of its numbers, whether more is better, method, arguments; quick: a tenth of the steps)
ROWS = {
    "mlp1": (["asynchronous MLP, 1 worker: steps/s"], True, "mlp", [1, 20000]),
    "mlp2": (["asynchronous MLP, 2 workers: steps/s"], True, "mlp", [2, 20000]),
    "float": (["one-float step: median us", "one-float step: p99 us"], False, "float_step", [20000]),
    "big": (["100 MB assign_add: GB/s"], True, "big", [20]),
    "read": (["100 MB tensor between tasks: GB/s"], True, "read", [20]),
    "first": (["first step of 1 ps, 2 workers: ms"], False, "first_step", []),
    "worker": (["a killed worker is back: ms"], False, "back", ["worker_1", False]),
    "ps": (["a killed ps is back: ms"], False, "back", ["ps_0", True]),
    "save": (["128 MiB saved every 2 s: % of a core", "longest pause: ms", "second longest: ms", "without saving: ms"], False, "save",
             [200000]),
    "once": (["counting steps once: % of a step"], False, "once", [8]),
    "grow": (["a ps after kills of a worker: MiB more", "the other worker: MiB more"], False, "grow", [600]),
    "attack": (["a ps after an attack: MiB more"], False, "attack", []),
}


def text_of(value):
    return "-" if value is None or value != value else "%.0f" % value if value >= 1000 else "%.4g" % value


def measure(row, contestants, rounds, quick):
    """Per number: the median of each contestant, None where it has none."""
    names, _, method, arguments = ROWS[row]
    arguments = [a // 10 if quick and isinstance(a, int) and a > 10 else a for a in arguments]
    values = {c: [] for c in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            if hasattr(contestant, method):
                try:
                    values[name].append(getattr(contestant, method)(*arguments))
                except (RuntimeError, subprocess.SubprocessError, ValueError, IndexError, OSError) as e:
                    print("%s: %s: %s" % (row, name, e), file=sys.stderr)
    medians = {c: [statistics.median(v[i] for v in found) for i in range(len(names))] if found else [None] * len(names)
               for c, found in values.items()}
    return [(names[i], {c: m[i] for c, m in medians.items()}) for i in range(len(names))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tfc", required=True)
    parser.add_argument("--before")
    parser.add_argument("--tensorflow", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default=",".join(r for r in ROWS if r != "grow"))
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="tfc-bench-")
    contestants = {"tfc": Ours(os.path.abspath(args.tfc), os.path.join(folder, "tfc"))}
    if args.before:
        contestants["before"] = Ours(os.path.abspath(args.before), os.path.join(folder, "before"))
    if subprocess.run([args.tensorflow, "-c", "import importlib.util as u, sys; sys.exit(not u.find_spec('tensorflow'))"], check=False).returncode == 0:
        contestants["TensorFlow"] = Theirs(args.tensorflow)
    else:
        print("%s has no TensorFlow: its column stays empty (--tensorflow PYTHON)" % args.tensorflow)
    contestants["sockets"] = Raw(folder)
    others = [c for c in contestants if c != "tfc"]
    print("%-40s %10s" % ("", "tfc") + "".join(" %10s %8s" % (c, "ratio") for c in others))
    try:
        for row in args.only.split(","):
            for name, medians in measure(row, contestants, 1 if args.quick else args.rounds, args.quick):
                line, ours = "%-40s %10s" % (name, text_of(medians["tfc"])), medians["tfc"]
                for c in others:
                    both = ours and medians[c]
                    ratio = (ours / medians[c] if ROWS[row][1] else medians[c] / ours) if both else None
                    line += " %10s %8s" % (text_of(medians[c]), text_of(ratio))
                print(line, flush=True)
    finally:
        for contestant in contestants.values():
            for cluster in getattr(contestant, "clusters", {}).values():
                cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
