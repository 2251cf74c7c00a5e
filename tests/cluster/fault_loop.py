#!/usr/bin/env python3
"""Jobs of real processes that are killed, paused, cut off and started again at random, in a loop.

    fault_loop.py --tfc PATH [--seconds S] [--seed N] [--kind KIND,...] [--wires WIRES,...] [--runs N] [--keep]

Each run draws, by its seed, a kind of job (below: KINDS), the wires between its tasks, and what happens to them when. Then
counters that the tasks keep must say that every step was applied once on every ps, tasks must have ended as the manual says
(README.md, docs/when-things-break.md), and nobody may still be there. A line for each run; `N passed, N failed` at the
end. A run that fails prints its faults and the end of each task's log; --seed with its number and --runs 1 makes it again (processes
being what they are: the same faults at the same times, not the same interleaving).
"""
import argparse
import os
import random
import shutil
import sys
import tempfile
import time

import fault_net
from fault_job import DEADLINE, Build, Fault, Job, need

GROWTH_MIB = 32  # of a ps over a run, after its first kills


class Chaos:
    """What happens to a job: drawn by the seed, carried out in time."""

    def __init__(self, rng, job, victims, seconds, is_wired, at_once=2):
        self.rng, self.job, self.victims, self.is_wired, self.at_once = rng, job, victims, is_wired, at_once
        self.until, self.due, self.events, self.begin = time.monotonic() + seconds, [], [], time.monotonic()
        self.down = set()

    def say(self, what):
        self.events.append("%7.3f %s" % (time.monotonic() - self.begin, what))

    def later(self, seconds, function, *arguments):
        self.due.append((time.monotonic() + seconds, function, arguments))

    def run(self):
        """Until the time is over, or all have ended; then everything is whole again."""
        following = time.monotonic() + self.rng.uniform(0.1, 0.6)
        while time.monotonic() < self.until and (self.due or self.somebody_runs()):
            if time.monotonic() >= following:
                self.strike()
                following = time.monotonic() + self.rng.choice([0.02, 0.2, 0.5, 1.0]) * self.rng.uniform(0.2, 1.5)
            self.carry_out()
            time.sleep(0.002)
        while self.due:
            self.carry_out()
            time.sleep(0.002)

    def somebody_runs(self):
        return any(self.job.is_running(n) for n in self.job.tasks if n.startswith("worker"))

    def carry_out(self):
        for item in [i for i in self.due if i[0] <= time.monotonic()]:
            self.due.remove(item)
            item[1](*item[2])

    def strike(self):
        often = {"kill": 5, "pause": 3, "cut": 4 * self.is_wired, "dark": 2 * self.is_wired, "slow": 1 * self.is_wired}
        kinds = [kind for kind, times in often.items() for _ in range(times) if kind in self.job.faults]
        if kinds:
            getattr(self, self.rng.choice(kinds))()

    def kill(self):
        name, wait = self.rng.choice(self.victims), self.rng.choice([0, 0, 0.05, 0.5, 1.5]) * self.rng.uniform(0.5, 1)
        if name in self.down or len(self.down) >= self.at_once or not self.job.kill(name):
            return
        self.say("kill -9 %s, back after %.2f s" % (name, wait))
        self.down.add(name)
        self.later(wait, self.start_again, name)

    def start_again(self, name):
        self.down.discard(name)
        self.say("start %s" % name)
        self.job.start(name, self.job.steps)

    def pause(self):
        name, wait = self.rng.choice(list(self.job.tasks)), self.rng.choice([0.01, 0.3, 1, 2, 6.5]) * self.rng.uniform(0.5, 1)
        if name in self.down or self.job.tasks[name].is_stopped or not self.job.is_running(name):
            return
        self.say("SIGSTOP %s for %.2f s" % (name, wait))
        self.job.pause(name, True)
        self.later(wait, self.go_on, name)

    def go_on(self, name):
        self.say("SIGCONT %s" % name)
        self.job.pause(name, False)

    def wire(self):
        if self.job.spaces:
            return self.rng.randrange(len(self.job.build.tasks))
        return self.rng.choice(sorted(self.job.relays))

    def set_dark(self, wire, is_dark):
        self.say("%s %s" % ("dark" if is_dark else "light", wire))
        if self.job.spaces:
            self.job.spaces.set_dark(wire, is_dark)
        else:
            self.job.relays[wire].is_dark = is_dark

    def set_rate(self, wire, rate):
        self.say("rate of %s: %s" % (wire, rate or "full"))
        if self.job.spaces:
            self.job.spaces.set_rate(wire, rate)
        else:
            self.job.relays[wire].rate = rate

    def cut(self):
        wire = self.wire()
        if self.job.spaces:
            self.set_dark(wire, True)
            self.later(0.1, self.set_dark, wire, False)
        else:
            self.say("cut %s" % (wire,))
            self.job.wires.cut(self.job.relays[wire])

    def dark(self):
        wire, wait = self.wire(), self.rng.choice([0.2, 2, 7]) * self.rng.uniform(0.5, 1)
        self.set_dark(wire, True)
        self.later(wait, self.set_dark, wire, False)

    def slow(self):
        wire = self.wire()
        self.set_rate(wire, self.rng.choice([20000, 200000, 2000000]))
        self.later(self.rng.uniform(0.5, 3), self.set_rate, wire, 0)


def goes_on(rng, job, seconds, is_wired, victims, at_once=2):
    """Faults that a job is promised to outlive: everybody ends with 0, and each step counts once."""
    job.start_all(job.want_steps)
    chaos = Chaos(rng, job, victims, seconds, is_wired, at_once)
    job.chaos = chaos
    time.sleep(0.5)
    before = {n: job.memory(n) for n in job.tasks if n not in victims}
    chaos.run()
    for name, mib in before.items():
        now = job.memory(name)
        need(now < mib + GROWTH_MIB, "%s grew from %.0f to %.0f MiB" % (name, mib, now))
    codes = job.wait(job.tasks, DEADLINE)
    need(not any(code for n, code in codes.items() if not came_too_late(job, n, codes)), "exit codes", codes)
    job.check()
    if job.checkpoints:
        look_again(job)


def came_too_late(job, name, codes):
    """Who was started again when others had finished and left waits for them, and says so; nothing is lost. A ps; or a replica, if all
    others have left well: each round was one of all, so it had finished, too, and what was started is another command."""
    if job.tasks[name].starts < 2 or codes[name] != 69:
        return False
    last = job.said(name).splitlines()[-1]
    others_left = not any(code for other, code in codes.items() if other != name)
    is_replica = bool(job.build.strategy) and not any(n.startswith("ps") for n in job.tasks)
    if name.startswith("ps"):
        return "never came" in last
    return is_replica and others_left and ("cannot be reached" in last or "has finished and left" in last)


def look_again(job):
    """What the folder holds when all is over: started anew with nothing to do but to look."""
    for name in job.tasks:
        job.start(name, 0)
    codes = job.wait(job.tasks, DEADLINE)
    need(not any(codes.values()), "exit codes of a job that only looks", codes)
    job.check()


def workers_of(job):
    return [n for n in job.tasks if n.startswith("worker")]


def asynchronous(rng, job, seconds, is_wired):
    goes_on(rng, job, seconds, is_wired, workers_of(job))


def saved(rng, job, seconds, is_wired):
    goes_on(rng, job, seconds, is_wired, list(job.tasks))


def synchronous(rng, job, seconds, is_wired):
    goes_on(rng, job, seconds, is_wired, workers_of(job))


def replicas(rng, job, seconds, is_wired):
    goes_on(rng, job, seconds, is_wired, workers_of(job), at_once=1)


def expect_ends(job, codes, wants, begin, names_whom):
    """Everybody who waits for `names_whom` has ended in time, with a code of `wants`, and says for whom."""
    took = time.monotonic() - begin
    for name, code in codes.items():
        need(code in wants, "%s ended with %d, not %s" % (name, code, wants))
    need(took < job.timeout + 5 + 10, "it took %.1f s with a time-out of %g s" % (took, job.timeout))  # 10: the machine is not ours alone
    for name, code in codes.items():
        last = [line for line in job.said(name).splitlines() if line][-1]
        path = "/job:%s/task:%s" % tuple(names_whom.rsplit("_", 1))
        said = job.said(name) if name.startswith("ps") else last  # a ps may be left by those who waited
        need(code != 69 or names_whom in said or path in said, "%s ended with 69 and names nobody: %s" % (name, last))


def lost(rng, job, seconds, is_wired):
    """A worker never comes back: asynchronously the others finish, synchronously all end with 69."""
    gone, job.steps = rng.choice(workers_of(job)), job.want_steps
    for name in job.tasks:
        job.start(name, 10 ** 8 if job.build.strategy or name == gone else job.steps)
    time.sleep(rng.uniform(0.2, 1.0))
    need(job.kill(gone), gone, "had ended already")
    begin = time.monotonic()
    others = [n for n in job.tasks if n != gone]
    if job.build.strategy:
        expect_ends(job, job.wait(others, DEADLINE), [69], begin, gone)
        return
    alive = [n for n in others if n.startswith("worker")]
    codes = job.wait(alive, DEADLINE)
    need(not any(codes.values()), "exit codes", codes)
    begin = time.monotonic()
    expect_ends(job, job.wait([n for n in others if n not in alive], DEADLINE), [69], begin, gone)


def ps_lost(rng, job, seconds, is_wired):
    """A ps without a folder is killed and comes back: its state is gone, 69 for all that needed it."""
    job.start_all(10 ** 8)
    time.sleep(rng.uniform(0.2, 1.0))
    gone = rng.choice([n for n in job.tasks if n.startswith("ps")])
    job.kill(gone)
    begin = time.monotonic()
    if rng.random() < 0.7:
        time.sleep(rng.uniform(0, 1))
        job.start(gone, job.steps)
    expect_ends(job, job.wait(job.tasks if job.is_running(gone) else [n for n in job.tasks if n != gone], DEADLINE), [69], begin, gone)


def twin(rng, job, seconds, is_wired):
    """A worker started twice: one goes on and counts right, the other is told and ends with 65."""
    job.start_all(job.want_steps)
    time.sleep(rng.uniform(0.1, 1.0))
    name = rng.choice(workers_of(job))
    first = job.tasks[name].process
    if first.poll() is not None:
        return
    job.unix = lambda which, real=job.unix: real(which) + ".twin" if which == name else real(which)  # its address is taken
    job.start(name, job.steps)
    second = job.tasks[name].process
    codes = job.wait(job.tasks, DEADLINE)
    job.tasks[name].process = first
    first_code = job.wait([name], DEADLINE)[name]
    ends = sorted([first_code, second.returncode])
    need(ends in ([0, 65], [0, 0]) and (ends == [0, 65] or first_code == 0), "the twins ended with", first_code, second.returncode)
    need(not any(code for n, code in codes.items() if n != name), "exit codes", codes)
    job.check()


def told(rng, job, seconds, is_wired):
    """SIGTERM at a worker: 143; it comes back, and nothing is missing."""
    job.start_all(job.want_steps)
    name = rng.choice(workers_of(job))
    time.sleep(rng.uniform(0.2, 0.8))
    if job.is_running(name):
        job.tasks[name].process.terminate()
        code = job.wait([name], DEADLINE)[name]
        need(code in (143, 0), "%s ended with %d after SIGTERM" % (name, code))
        if code == 143:
            job.start(name, job.steps)
    codes = job.wait(job.tasks, DEADLINE)
    need(not any(codes.values()), "exit codes", codes)
    job.check()


# kind: (function, ps, workers, strategy, steps, options of the job)
KINDS = {
    "async": (asynchronous, 1, 2, None, 15000, {}),
    "async2": (asynchronous, 2, 2, None, 10000, {}),
    "saved": (saved, 1, 2, None, 15000, {"checkpoints": True, "options": ["--save-steps", "500"]}),
    "saved2": (saved, 2, 2, None, 10000, {"checkpoints": True, "options": ["--save-steps", "500"]}),
    "sync": (synchronous, 1, 2, "ps-sync", 5000, {}),
    "sync2": (synchronous, 2, 2, "ps-sync", 4000, {}),
    "replicas": (replicas, 0, 3, "allreduce", 5000, {}),
    "lost": (lost, 1, 2, None, 10000, {"timeout": 2}),
    "lost-sync": (lost, 1, 2, "ps-sync", 0, {"timeout": 2}),
    "lost-replicas": (lost, 0, 3, "allreduce", 0, {"timeout": 2}),
    "ps-lost": (ps_lost, 2, 2, None, 0, {"timeout": 3}),
    "twin": (twin, 1, 2, None, 15000, {}),
    "sigterm": (told, 1, 2, None, 10000, {}),
}
DEFAULT = list(KINDS)
WIRED = ("asynchronous", "saved", "synchronous", "replicas")


class Loop:
    def __init__(self, args, folder):
        self.args, self.folder, self.builds, self.wires = args, folder, {}, args.wires.split(",")
        if "namespaces" in self.wires:
            spaces, why = fault_net.namespaces_or_reason(1)
            if spaces:
                spaces.close()
            else:
                self.wires.remove("namespaces")
                print("skipped: network namespaces: %s" % why)

    def build(self, ps, workers, strategy):
        key = "%dps%dw%s" % (ps, workers, strategy or "")
        if key not in self.builds:
            self.builds[key] = Build(self.args.tfc, self.folder, key, ps, workers, strategy)
        return self.builds[key]

    def run(self, seed):
        """What went wrong, "" when nothing."""
        rng = random.Random(seed)
        kind = rng.choice(self.args.kind.split(","))
        function, ps, workers, strategy, steps, options = KINDS[kind]
        wires = rng.choice(self.wires) if function.__name__ in WIRED else "direct"
        job = Job(self.build(ps, workers, strategy), os.path.join(self.folder, "run%d" % seed), wires, **options)
        job.faults = self.args.faults.split(",")
        job.want_steps, job.chaos = int(steps * self.args.scale), None
        begin, wrong = time.monotonic(), ""
        try:
            function(rng, job, rng.uniform(1, 6), wires in ("relays", "namespaces"))
        except Fault as fault:
            wrong = str(fault)
        except OSError as e:
            wrong = "a result is missing: %s" % e
        print("%s seed %d: %s over %s, %.1f s%s" % ("FAIL" if wrong else "ok", seed, kind, wires, time.monotonic() - begin,
                                                    ": " + wrong if wrong else ""), flush=True)
        if wrong:
            self.tell(job)
        job.close(self.args.keep)
        return wrong

    @staticmethod
    def tell(job):
        for event in job.chaos.events if job.chaos else []:
            print("    " + event)
        for name in job.tasks:
            print("  %s:" % name)
            for line in job.said(name).splitlines()[-12:]:
                print("    " + line)
        sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tfc", required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=10 ** 9)
    parser.add_argument("--kind", default=",".join(DEFAULT), help=" ".join(KINDS))
    parser.add_argument("--wires", default="direct,tcp,relays,namespaces")
    parser.add_argument("--faults", default="kill,pause,cut,dark,slow")
    parser.add_argument("--scale", type=float, default=1, help="of the numbers of steps")
    parser.add_argument("--keep", action="store_true", help="keeps the folders of the runs")
    args = parser.parse_args()
    args.tfc = os.path.abspath(args.tfc)
    folder = tempfile.mkdtemp(prefix="tfc-fault-")
    until, passed, failed = time.monotonic() + args.seconds, 0, 0
    try:
        loop = Loop(args, folder)
        for seed in range(args.seed, args.seed + args.runs):
            if loop.run(seed):
                failed += 1
            else:
                passed += 1
            if time.monotonic() >= until:
                break
    finally:
        if args.keep:
            print("kept: " + folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
