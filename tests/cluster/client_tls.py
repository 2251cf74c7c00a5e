#!/usr/bin/env python3
"""A gRPC client with certificates against a task that speaks TLS, as gRPC's own library makes it; and who may be a client at all.

    client_tls.py --tfc PATH

The last line is `N passed, N failed`. Without grpcio it says `skipped`.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

try:
    import grpc
except ImportError:
    grpc = None

HERE = os.path.dirname(os.path.abspath(__file__))
GRAPH = os.path.join(HERE, "..", "golden", "models", "async_2workers", "graph.pb")
SERVICE = "/tensorflow.MasterService/"
failures = []


def check(what, holds):
    print("%s %s" % ("ok  " if holds else "FAIL", what))
    failures.append(not holds)


def read(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def channel(folder, address, cert):
    """A channel to ps_0 with the certificate of that name; None: without."""
    pair = (read(folder, "certs/%s.key" % cert), read(folder, "certs/%s.crt" % cert)) if cert else (None, None)
    credentials = grpc.ssl_channel_credentials(read(folder, "certs/ca.crt"), *pair)
    return grpc.secure_channel(address, credentials, options=[("grpc.ssl_target_name_override", "ps_0")])


def create_session(on):
    """The answer of CreateSession with an empty graph, or the error."""
    try:
        with on:
            return on.unary_unary(SERVICE + "CreateSession")(b"", timeout=20, wait_for_ready=False)
    except grpc.RpcError as error:
        return error


def is_refused(answer, code):
    return isinstance(answer, grpc.RpcError) and answer.code() == code


class Cluster:
    def __init__(self, tfc):
        self.folder = tempfile.mkdtemp(prefix="tfc-client-")
        self.tasks = []
        cluster = {"ps": ["unix:%s/p" % self.folder], "worker": ["unix:%s/a" % self.folder, "unix:%s/b" % self.folder]}
        with open(os.path.join(self.folder, "cluster.json"), "w") as file:
            json.dump(cluster, file)
        self.run(tfc, "certs", "--cluster", "cluster.json", "-o", "certs")
        self.run(tfc, "build", GRAPH, "--cluster", "cluster.json", "--tls", "--quiet", "--replicate", "worker", "-o", "out",
                 "--entry", "init: -> | init", "--entry", "train: x, label -> loss | train_op")

    def run(self, *words):
        subprocess.run(words, cwd=self.folder, check=True, stdout=subprocess.DEVNULL)

    def start(self, name, *words):
        tls = "--tls-cert certs/{task}.crt --tls-key certs/{task}.key --tls-ca certs/ca.crt".split()
        task = subprocess.Popen([os.path.join(self.folder, "out", name), *tls, *words], cwd=self.folder, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        self.tasks.append(task)
        return task

    def stop(self):
        for task in self.tasks:
            task.kill()
            task.wait()
        self.tasks = []

    def close(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def certificates(cluster):
    """Whom a task serves, where nobody runs phases."""
    address = "unix:%s/p" % cluster.folder
    cluster.start("ps_0")
    ready = channel(cluster.folder, address, "client")
    grpc.channel_ready_future(ready).result(timeout=20)
    answer = create_session(ready)
    check("a client with a certificate has a session", isinstance(answer, bytes) and len(answer) > 4)
    of_a_task = create_session(channel(cluster.folder, address, "worker_1"))
    check("another task's certificate is a client's as well", isinstance(of_a_task, bytes))
    of_nobody = create_session(channel(cluster.folder, address, None))
    check("without a certificate nothing is served", is_refused(of_nobody, grpc.StatusCode.UNAVAILABLE))
    check("nor without TLS", is_refused(create_session(grpc.insecure_channel(address)), grpc.StatusCode.UNAVAILABLE))
    cluster.stop()


def phases(cluster):
    """Whom a task serves while a worker trains."""
    address = "unix:%s/p" % cluster.folder
    feeds = "--feed x=zeros(16,64) --feed label=zeros(16)".split()
    for words in [], ["--allow-clients"]:
        cluster.start("ps_0", *words)
        ready = channel(cluster.folder, address, "client")
        grpc.channel_ready_future(ready).result(timeout=20)
        ready.close()
        worker = cluster.start("worker_0", "--entry", "train", *feeds, "--steps", "100000000")
        answer, tries = None, 0
        while tries < 200 and worker.poll() is None and (answer is None or (not words and isinstance(answer, bytes))):
            answer, tries = create_session(channel(cluster.folder, address, "client")), tries + 1
        if words:
            check("with --allow-clients a client has a session while a worker trains", isinstance(answer, bytes))
        else:
            check("while a worker trains a client is refused, and told why",
                  is_refused(answer, grpc.StatusCode.PERMISSION_DENIED) and "--allow-clients" in answer.details())
        check("the worker goes on", worker.poll() is None)
        cluster.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tfc", required=True)
    arguments = parser.parse_args()
    if grpc is None:
        print("skipped: this Python has no grpcio\n0 passed, 0 failed")
        return 0
    cluster = Cluster(os.path.abspath(arguments.tfc))
    try:
        certificates(cluster)
        phases(cluster)
    finally:
        cluster.close()
    print("%d passed, %d failed" % (len(failures) - sum(failures), sum(failures)))
    return int(any(failures))


if __name__ == "__main__":
    sys.exit(main())
