"""A job of real processes: how its tasks are started, what is done to them, and how it ended."""
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import numpy as np

import fault_graph
import fault_net

DEADLINE = 45  # seconds for a job after the last fault; generous, as other jobs may have the machine


class Fault(Exception):
    """What was promised and did not hold."""


def need(condition, *words):
    if not condition:
        raise Fault(" ".join(str(w) for w in words))


class Build:
    """A graph built for a cluster, once for all jobs with it."""

    def __init__(self, tfc, folder, name, ps, workers, strategy=None):
        self.folder, self.ps, self.workers, self.strategy = os.path.join(folder, name), ps, workers, strategy
        os.makedirs(self.folder)
        graph = os.path.join(self.folder, "graph.pbtxt")
        entries, self.looks = fault_graph.descent(graph) if strategy else fault_graph.counters(graph, ps, workers)
        self.tasks = ["ps_%d" % i for i in range(ps)] + ["worker_%d" % i for i in range(workers)]
        cluster = {job: ['"%s"' % name for name in self.tasks if name.startswith(job)] for job in ("ps", "worker")}
        text = "{%s}" % ", ".join('"%s": [%s]' % (job, ", ".join(names)) for job, names in cluster.items() if names)
        with open(os.path.join(self.folder, "cluster.json"), "w", encoding="utf-8") as f:
            f.write(re.sub(r'"(\w+_\d+)"', r'"unix:\1"', text))
        for w in range(workers):
            one = np.zeros((workers, 1), np.float32)
            one[w] = 1
            np.save(os.path.join(self.folder, "row_%d.npy" % w), fault_graph.rows(workers)[w] if strategy else one)
        words = [tfc, "build", graph, "--cluster", "cluster.json", "-o", "out", "--quiet"] + entries
        subprocess.run(words + (["--strategy", strategy] if strategy else []), cwd=self.folder, check=True)


class Task:
    def __init__(self, name):
        self.name, self.process, self.starts, self.is_stopped = name, None, 0, False
        self.codes = []  # of those that ended by themselves


class Job:
    """`wires`: direct (Unix sockets), tcp, relays, or namespaces."""

    def __init__(self, build, folder, wires="direct", timeout=30, checkpoints=False, options=()):
        self.build, self.folder, self.kind, self.timeout, self.options = build, folder, wires, timeout, list(options)
        self.checkpoints = os.path.join(folder, "saved") if checkpoints else None
        self.tasks = {name: Task(name) for name in build.tasks}
        self.wires = self.spaces = None
        self.relays, self.ports = {}, {}
        os.makedirs(folder)
        self.lay_wires()

    # ---- addresses ----

    def lay_wires(self):
        if self.kind == "relays":
            self.wires = fault_net.Wires()
            for i, dialler in enumerate(self.build.tasks):
                for target in self.build.tasks[:i]:
                    path = os.path.join(self.folder, "%s-%s" % (dialler, target))
                    self.relays[dialler, target] = fault_net.Relay(self.wires, path, self.unix(target))
        elif self.kind == "namespaces":
            self.spaces, why = fault_net.namespaces_or_reason(len(self.build.tasks))
            need(self.spaces, "no namespaces:", why)
        elif self.kind == "tcp":
            held = [socket.create_server(("127.0.0.1", 0)) for _ in self.build.tasks]
            self.ports = {name: s.getsockname()[1] for name, s in zip(self.build.tasks, held)}
            for s in held:
                s.close()

    def unix(self, name):
        return os.path.join(self.folder, name)

    def address(self, name, seen_by):
        if (seen_by, name) in self.relays:
            return "unix:" + self.relays[seen_by, name].path
        if self.spaces:
            return "%s:2222" % self.spaces.address(self.build.tasks.index(name))
        return "127.0.0.1:%d" % self.ports[name] if self.ports else "unix:" + self.unix(name)

    # ---- processes ----

    def phases(self, name, steps):
        if name.startswith("ps"):
            return []
        w = int(name.rsplit("_", 1)[1])
        feed = "x" if self.build.strategy else "mine"
        words = ["--entry", "train", "--feed", "%s=%s/row_%d.npy" % (feed, self.build.folder, w), "--steps", str(steps)] if steps else []
        words += ["--entry", "look"]
        for i, look in enumerate(self.build.looks):
            words += ["--fetch", "%s=%s/look_%s_%d.npy" % (look, self.folder, name, i)]
        return words

    def start(self, name, steps, options=()):
        task = self.tasks[name]
        words = [os.path.join(self.build.folder, "out", name), "--timeout", str(self.timeout), "--address", self.address(name, name)]
        for other in self.build.tasks:
            if other != name:
                words += ["--peer", "%s:%s=%s" % (*other.rsplit("_", 1), self.address(other, name))]
        words += ["--checkpoint-dir", self.checkpoints] if self.checkpoints else []
        words += self.options + list(options) + self.phases(name, steps)
        if self.spaces:
            words = self.spaces.command(self.build.tasks.index(name)) + words
        with open(self.log(name), "a", encoding="utf-8") as log:
            log.write("---- start %d\n" % task.starts)
            log.flush()
            task.process = subprocess.Popen(words, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        task.starts += 1
        task.is_stopped = False
        return task

    def start_all(self, steps, options=()):
        self.steps = steps
        for name in self.tasks:
            self.start(name, steps, options)

    def log(self, name):
        return os.path.join(self.folder, name + ".log")

    def said(self, name):
        with open(self.log(name), encoding="utf-8", errors="replace") as f:
            return f.read()

    def is_running(self, name):
        process = self.tasks[name].process
        return process is not None and process.poll() is None

    def kill(self, name):
        """kill -9; False when it had ended by itself."""
        process = self.tasks[name].process
        if not self.is_running(name):
            return False
        process.kill()
        return process.wait() == -signal.SIGKILL

    def pause(self, name, is_stopped):
        if self.is_running(name):
            self.tasks[name].process.send_signal(signal.SIGSTOP if is_stopped else signal.SIGCONT)
            self.tasks[name].is_stopped = is_stopped

    def memory(self, name):
        """What is resident, in MiB."""
        try:
            with open("/proc/%d/status" % self.tasks[name].process.pid, encoding="ascii") as f:
                return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) / 1024
        except (OSError, AttributeError):
            return 0.0

    def wait(self, names, seconds):
        """The exit codes; a Fault names who has not ended in time."""
        until = time.monotonic() + seconds
        names = list(names)
        while time.monotonic() < until and any(self.is_running(n) for n in names):
            time.sleep(0.01)
        late = [n for n in names if self.is_running(n)]
        for name in late:  # what it waits for goes to its log
            self.tasks[name].process.send_signal(signal.SIGUSR1)
        if late:
            time.sleep(0.5)
        need(not late, "still running %.0f s after the last fault:" % seconds, *late)
        return {n: self.tasks[n].process.returncode for n in names}

    def close(self, keep):
        for task in self.tasks.values():
            if task.process and task.process.poll() is None:
                task.process.send_signal(signal.SIGCONT)
                task.process.kill()
                task.process.wait()
        if self.wires:
            self.wires.close()
        if self.spaces:
            self.spaces.close()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    # ---- what it has computed ----

    def looks(self, name):
        return [np.load("%s/look_%s_%d.npy" % (self.folder, name, i)) for i in range(len(self.build.looks))]

    def check_counts(self):
        """Each worker's steps are on every ps as often as it was told to make them."""
        for w in range(self.build.workers):
            for what, value in zip(self.build.looks, self.looks("worker_%d" % w)):
                row = value[w]
                need((row == self.steps).all(), "worker_%d applied %s of %d steps to %s" % (
                    w, "%g" % row.flat[0] if (row == row.flat[0]).all() else "%g to %g" % (row.min(), row.max()), self.steps, what))

    def check_descent(self):
        want = -self.steps * np.mean(fault_graph.rows(self.build.workers), axis=0)
        for w in range(self.build.workers):
            for what, value in zip(self.build.looks, self.looks("worker_%d" % w)):
                need((value == want).all(), "worker_%d has %g in %s, not %g" % (w, value.flat[0], what, want[0]))

    def check(self):
        self.check_descent() if self.build.strategy else self.check_counts()
