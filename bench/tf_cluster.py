"""TensorFlow's own parameter server, for bench_cluster.py: one process of it.

    tf_cluster.py ROLE INDEX CLUSTER_JSON WORK STEPS

ROLE ps serves until it is killed. A worker makes WORK (digits, float, big, read) STEPS times, after a tenth of that to warm up, and prints
seconds, and the median and p99 of a step in us.
"""
import json
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf

DIGITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "digits")
BIG = 25 * 1024 * 1024


def digits(index):
    definition = tf.GraphDef()
    with open(os.path.join(DIGITS, "graph.pb"), "rb") as f:
        definition.ParseFromString(f.read())
    for node in definition.node:
        node.device = node.device.replace("/job:worker", "/job:worker/task:%d" % index)
    tf.import_graph_def(definition, name="")
    x, y = np.load(os.path.join(DIGITS, "train_pixels.npy")), np.load(os.path.join(DIGITS, "train_labels.npy"))
    batches = [{"pixels:0": x[i:i + 32], "labels:0": y[i:i + 32]} for i in range(0, len(x) - 32, 32)]
    graph = tf.get_default_graph()
    return graph.get_operation_by_name("init"), graph.get_operation_by_name("train_op"), batches


def shared(size, is_read):
    with tf.device("/job:ps/task:0"):
        v = tf.get_variable("v", [size], initializer=tf.zeros_initializer(), use_resource=False)
    with tf.device("/job:worker/task:0"):
        fed = tf.placeholder(tf.float32, [size], name="fed")
        value = tf.reduce_max(v) if is_read else tf.identity(fed)
    if is_read:
        return tf.global_variables_initializer(), value, [{}]
    with tf.device("/job:ps/task:0"):
        update = tf.assign_add(v, value, use_locking=True).op
    return tf.global_variables_initializer(), update, [{fed: np.ones(size, np.float32)}]


def main():
    role, index, cluster, work, steps = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4], int(sys.argv[5])
    tf.disable_v2_behavior()
    server = tf.train.Server(cluster, job_name=role, task_index=index)
    if role == "ps":
        server.join()
    makers = {"digits": lambda: digits(index), "float": lambda: shared(1, False), "big": lambda: shared(BIG, False), "read": lambda: shared(BIG, True)}
    init, step, feeds = makers[work]()
    with tf.Session(server.target) as session:
        if index == 0:
            session.run(init)
        else:
            time.sleep(1)
        run = session.make_callable(step, list(feeds[0])) if feeds[0] else session.make_callable(step)
        times = []
        for i in range(steps // 10 + steps):
            if i == steps // 10:
                begin = time.perf_counter()
            at = time.perf_counter()
            run(*feeds[i % len(feeds)].values())
            times.append(time.perf_counter() - at)
        seconds = time.perf_counter() - begin
    times = sorted(times[steps // 10:])
    print("%.6f %.2f %.2f" % (seconds, 1e6 * times[len(times) // 2], 1e6 * times[len(times) * 99 // 100]), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
