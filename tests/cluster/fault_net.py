"""Wires between tasks that can be cut, silenced and slowed: relays in this process, or network namespaces where the machine allows them."""
import os
import selectors
import socket
import subprocess
import threading
import time

CHUNK = 1 << 16


class Pair:
    """A connection through a relay: two sockets, and what one has sent and the other not yet taken."""

    def __init__(self, relay, a, b):
        self.relay, self.sockets, self.waiting = relay, (a, b), [b"", b""]


class Relay:
    """Listens at `path` and passes bytes on to `target` (Unix sockets)."""

    def __init__(self, wires, path, target):
        self.path, self.target, self.pairs = path, target, []
        self.is_dark, self.rate, self.tokens = False, 0, 0.0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(64)
        self.listener.setblocking(False)
        wires.watch(self.listener, self)


class Wires:
    """The relays of a job, on one thread."""

    def __init__(self):
        self.selector, self.lock, self.relays = selectors.DefaultSelector(), threading.Lock(), []
        self.is_closing = False
        self.thread = threading.Thread(target=self.main, daemon=True)
        self.thread.start()

    def watch(self, listener, relay):
        with self.lock:
            self.relays.append(relay)
            self.selector.register(listener, selectors.EVENT_READ, (relay, None))

    def main(self):
        last = time.monotonic()
        while not self.is_closing:
            events = self.selector.select(0.01)
            now = time.monotonic()
            with self.lock:
                for relay in self.relays:
                    relay.tokens = min(relay.tokens + (now - last) * relay.rate, CHUNK) if relay.rate else CHUNK
                for key, _ in events:
                    relay, pair = key.data
                    self.accept(relay) if pair is None else self.move(relay, pair)
                is_held = any(r.is_dark or (r.rate and r.tokens < 1) for r in self.relays)
            last = now
            if is_held:
                time.sleep(0.002)

    def accept(self, relay):
        try:
            a, _ = relay.listener.accept()
        except OSError:
            return
        b = socket.socket(socket.AF_UNIX)
        try:
            if relay.is_dark:
                raise OSError
            b.connect(relay.target)
        except OSError:
            a.close()
            b.close()
            return
        pair = Pair(relay, a, b)
        relay.pairs.append(pair)
        for s in pair.sockets:
            s.setblocking(False)
            self.selector.register(s, selectors.EVENT_READ, (relay, pair))

    def move(self, relay, pair):
        if relay.is_dark:
            return
        for side in (0, 1):
            try:
                self.move_one_way(relay, pair, side)
            except (BlockingIOError, InterruptedError):
                pass
            except OSError:
                self.drop(relay, pair)
                return

    def move_one_way(self, relay, pair, side):
        source, sink = pair.sockets[side], pair.sockets[1 - side]
        if not pair.waiting[side] and relay.tokens >= 1:
            pair.waiting[side] = source.recv(int(min(CHUNK, relay.tokens)))
            if not pair.waiting[side]:
                raise OSError
        if pair.waiting[side]:
            sent = sink.send(pair.waiting[side])
            pair.waiting[side] = pair.waiting[side][sent:]
            relay.tokens -= sent
        mask = selectors.EVENT_READ | (selectors.EVENT_WRITE if pair.waiting[side] else 0)
        self.selector.modify(sink, mask, (relay, pair))

    def drop(self, relay, pair):
        if pair in relay.pairs:
            relay.pairs.remove(pair)
            for s in pair.sockets:
                self.selector.unregister(s)
                s.close()

    def cut(self, relay):
        """Closes every connection, with what is under way in it."""
        with self.lock:
            for pair in list(relay.pairs):
                self.drop(relay, pair)

    def close(self):
        self.is_closing = True
        self.thread.join()
        for relay in self.relays:
            self.cut(relay)
            relay.listener.close()
        self.selector.close()


class Namespaces:
    """A network namespace for each task, all on one bridge: 10.77.N.1 and so on. Needs root and `ip`."""

    def __init__(self, tasks):
        self.tag = "f%x" % (os.getpid() & 0xffff)
        self.net = 1 + os.getpid() % 250
        self.count = tasks
        try:
            self.make()
            self.set_rate(0, 1000000)
            self.set_rate(0, 0)
        except (OSError, subprocess.CalledProcessError):
            self.close()
            raise

    def make(self):
        ip("netns", "add", self.tag + "b")
        ip("-n", self.tag + "b", "link", "add", "bridge", "type", "bridge")
        ip("-n", self.tag + "b", "link", "set", "bridge", "up")
        for i in range(self.count):
            space = self.space(i)
            ip("netns", "add", space)
            ip("-n", space, "link", "add", "eth", "type", "veth", "peer", "name", "t%d" % i, "netns", self.tag + "b")
            ip("-n", self.tag + "b", "link", "set", "t%d" % i, "master", "bridge", "up")
            ip("-n", space, "addr", "add", self.address(i) + "/24", "dev", "eth")
            ip("-n", space, "link", "set", "eth", "up")
            ip("-n", space, "link", "set", "lo", "up")

    def space(self, task):
        return "%s%d" % (self.tag, task)

    def address(self, task):
        return "10.77.%d.%d" % (self.net, task + 1)

    def command(self, task):
        return ["ip", "netns", "exec", self.space(task)]

    def set_dark(self, task, is_dark):
        ip("-n", self.tag + "b", "link", "set", "t%d" % task, "down" if is_dark else "up")

    def set_rate(self, task, bytes_per_s):
        words = ["tc", "-n", self.tag + "b", "qdisc"]
        subprocess.run(words + ["del", "dev", "t%d" % task, "root"], stderr=subprocess.DEVNULL, check=False)  # there may be none
        if bytes_per_s:
            subprocess.run(words + ["add", "dev", "t%d" % task, "root", "tbf", "rate", "%dbit" % (8 * bytes_per_s), "burst", "64kb",
                                    "latency", "200ms"], stderr=subprocess.PIPE, check=True)

    def close(self):
        for name in [self.space(i) for i in range(self.count)] + [self.tag + "b"]:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL, check=False)


def ip(*words):
    subprocess.run(("ip",) + words, check=True, stderr=subprocess.PIPE)


def namespaces_or_reason(tasks):
    """The namespaces, or in words why there can be none."""
    try:
        return Namespaces(tasks), ""
    except (OSError, subprocess.CalledProcessError) as e:
        said = getattr(e, "stderr", b"") or b""
        return None, said.decode(errors="replace").strip() or str(e)
