#!/usr/bin/env python3
"""Models with SyncReplicasOptimizer, with a worker killed and started again in each run.

    sync_replicas_loop.py --tfc PATH [--runs N] [--seed S] [--case NAME,...] [--victims worker_1,...] [--lost] [--keep]

Each run draws a case of tests/golden whose name begins with `sync_`, a worker, and when it is killed and how long it is gone. All must
end with 0
after all of their steps. Where the case expects the values of every step, those of the worker that lived must be them: a gradient that
was lost,
or counted twice, would show in each later loss. A line for each run that fails; the last line is `N passed, N failed`.
"""
import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

FOLDERS = ["tests/golden/runners", "tests/golden/models"]
DEADLINE = 60


def cases(names):
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    for folder in FOLDERS:
        for name in sorted(os.listdir(os.path.join(top, folder))):
            path = os.path.join(top, folder, name)
            if name.startswith("sync_") and os.path.exists(os.path.join(path, "case.json")) and (not names or name in names):
                yield path


class Model:
    """A case that is built once."""

    def __init__(self, tfc, path, folder):
        self.path, self.name, self.folder = path, os.path.basename(path), os.path.join(folder, os.path.basename(path))
        with open(os.path.join(path, "case.json"), encoding="utf-8") as f:
            self.case = json.load(f)
        self.data = np.load(os.path.join(path, "data.npz"))
        os.makedirs(self.folder)
        for name in self.data.files:
            np.save(os.path.join(self.folder, name + ".npy"), self.data[name])
        names = {job: ["unix:%s_%d" % (job, i) for i in range(len(tasks))] for job, tasks in self.case["cluster"].items()}
        with open(os.path.join(self.folder, "cluster.json"), "w", encoding="utf-8") as out:
            json.dump(names, out)
        graph = os.path.join(path, self.case.get("graph", "graph.pb"))
        words = [tfc, "build", graph, "--cluster", "cluster.json", "-o", "out", "--quiet"] + self.case["build"]
        subprocess.run(words, cwd=self.folder, check=True)
        self.tasks = ["%s_%d" % (job, i) for job, tasks in self.case["cluster"].items() for i in range(len(tasks))]

    def arguments(self, task, factor):
        """Of the case, with more steps where the losses are not expected: the kill is to fall into them."""
        words = next((run["args"] for run in self.case["runs"] if run["task"] == task), [])
        if self.is_exact() and not factor:
            return words
        return [str(int(w) * (factor or 100)) if i and words[i - 1] == "--steps" else w for i, w in enumerate(words)]

    def is_exact(self):
        return all("value" in e for e in self.case["expect"])


class Run:
    def __init__(self, model, rng, victims):
        self.model, self.rng = model, rng
        self.victim = rng.choice(victims)
        self.folder = tempfile.mkdtemp(dir=model.folder)
        for name in os.listdir(model.folder):
            if name.endswith(".npy"):
                os.symlink(os.path.join(model.folder, name), os.path.join(self.folder, name))
        self.processes, self.said = {}, []

    def start(self, task, factor=0, options=()):
        words = [os.path.join(self.model.folder, "out", task)] + self.model.arguments(task, factor) + ["--log-every", "0"] + list(options)
        with open(os.path.join(self.folder, task + ".log"), "a", encoding="utf-8") as log:
            self.processes[task] = subprocess.Popen(words, cwd=self.folder, stdout=log, stderr=subprocess.STDOUT)

    def text(self, task):
        with open(os.path.join(self.folder, task + ".log"), encoding="utf-8", errors="replace") as log:
            return log.read()

    def go(self):
        for task in self.model.tasks:
            self.start(task)
        time.sleep(self.rng.choice([0.02, 0.05, 0.1, 0.3]) * self.rng.uniform(0.5, 1.5))
        process = self.processes[self.victim]
        was_running = process.poll() is None
        if was_running:
            process.kill()
            process.wait()
            time.sleep(self.rng.choice([0, 0.05, 0.5]) * self.rng.uniform(0.2, 1))
            was_running = self.processes["ps_0"].poll() is None  # else all was done: nobody is there to go on with
        if was_running:
            self.start(self.victim)
        self.said.append("%s %s" % ("killed" if was_running else "too late to kill", self.victim))
        end = time.monotonic() + DEADLINE
        for task, process in self.processes.items():
            try:
                process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.explain()
                raise AssertionError("%s hangs" % task) from None
        ended = {task: process.returncode for task, process in self.processes.items()}
        if ended[self.victim] == 69 and not any(code for task, code in ended.items() if task != self.victim):
            self.said.append("all was done")  # the kill came between its last step and its end: nobody is left to go on with
            return
        for task, code in ended.items():
            assert code == 0 or (task == self.victim and not was_running), "%s ended with %d" % (task, code)
        self.compare(was_running)

    def explain(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGUSR1)
        time.sleep(0.5)

    def compare(self, was_killed):
        for e in self.model.case["expect"]:
            values = np.load(os.path.join(self.folder, e["file"]))
            if "value" not in e:
                assert np.all(values >= e["min"]) and np.all(values <= 100 * e["max"]), "%s: %s" % (e["file"], values)
            elif e["task"] != self.victim or not was_killed:
                expected = self.model.data[e["value"]]
                assert values.shape == expected.shape and np.allclose(values, expected, rtol=e["rtol"], atol=e["atol"]), \
                    "%s: %s, expected %s" % (e["file"], values.ravel()[-12:], expected.ravel()[-12:])

    def close(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()


TIMEOUT = 2
LOST = [("sync_exported", "worker_1", [], {"worker_0": 69, "ps_0": 69}, "/job:worker/task:1"),
        ("sync_exported", "worker_0", [], {"worker_1": 69, "ps_0": 69}, "/job:worker/task:0"),
        ("sync_exported", "worker_1", ["--elastic"], {"worker_0": 0}, ""),
        ("sync_backup", "worker_0", [], {"worker_1": 69}, "/job:worker/task:0")]


def lose(model, victim, options, codes, named):
    """A worker that never comes back: who ends how, and whom it names; within 10 s after the time-out."""
    run = Run(model, random.Random(1), [victim])
    try:
        for task in model.tasks:
            run.start(task, 20 if model.is_exact() else 500, ["--timeout", str(TIMEOUT)] + options)
        time.sleep(0.3)
        run.processes[victim].kill()
        for task, code in codes.items():
            is_code = run.processes[task].wait(TIMEOUT + DEADLINE)
            assert is_code == code, "%s ended with %d" % (task, is_code)
            assert not named or named in run.text(task).split("error:")[-1], "%s does not name %s" % (task, named)
    except subprocess.TimeoutExpired:
        run.explain()
        raise AssertionError("somebody hangs without %s" % victim) from None
    except AssertionError:
        for task in run.processes:
            print("  %s: %s" % (task, run.text(task)[-1200:].replace("\n", "\n    ")))
        raise
    finally:
        run.close()


def lose_all(models):
    failed = 0
    for name, victim, options, codes, named in LOST:
        try:
            lose(next(m for m in models if m.name == name), victim, options, codes, named)
        except AssertionError as e:
            failed += 1
            print("FAIL %s without %s %s: %s" % (name, victim, " ".join(options), e), flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tfc", required=True)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", default="")
    parser.add_argument("--victims", default="worker_0,worker_1")
    parser.add_argument("--lost", action="store_true", help="also workers that never come back")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    folder, failed = tempfile.mkdtemp(), 0
    models = [Model(os.path.abspath(options.tfc), path, folder) for path in cases(re.split(",", options.case) if options.case else [])]
    for number in range(options.runs):
        rng = random.Random(options.seed + number)
        run = Run(models[number % len(models)], rng, options.victims.split(","))
        try:
            run.go()
        except AssertionError as e:
            failed += 1
            print("FAIL %s, seed %d, %s: %s" % (run.model.name, options.seed + number, "; ".join(run.said), e))
            for task in run.processes:
                print("  %s: %s" % (task, run.text(task)[-1200:].replace("\n", "\n    ")))
            sys.stdout.flush()
        finally:
            run.close()
    total = options.runs
    if options.lost:
        failed += lose_all(models)
        total += len(LOST)
    if options.keep:
        print(folder)
    else:
        shutil.rmtree(folder)
    print("%d passed, %d failed" % (total - failed, failed))


main()
