#!/usr/bin/env python3
"""Writes ir/tf_ops.txt: the signatures of TensorFlow's ops, from TensorFlow's own registry.

    python3 scripts/extract_ops.py > ir/tf_ops.txt        (needs the tensorflow package)

One line an op, fields separated by tabs:
    NAME[!]            ! : stateful
    >NAME:SPEC         an input;  <NAME:SPEC  an output
    .NAME:TYPE[=DEFAULT][|ALLOWED][^MINIMUM]   an attribute
SPEC is [&][NUMBER_ATTR*]TYPE[/RANKS] where & says reference and TYPE is a dtype's number, the name of a type attribute, or
@ATTR for a list(type) attribute. RANKS of an input are those with which TensorFlow's shape function takes it, whatever the other
inputs and the attributes are: 0,2+ is a scalar, or two dimensions and more; of an output it is =N: it has the rank of input N. Strings
are percent-encoded; a shape is its sizes joined by commas, ? when the rank is unknown, - for a scalar; a list is [A;B;C]; ALLOWED is
dtypes' numbers or strings joined by commas.
"""
import ast
import os
import re
import urllib.parse

import tensorflow as tf
from tensorflow.core.framework import graph_pb2, node_def_pb2, op_def_pb2
from tensorflow.python.client import pywrap_tf_session as session

OTHER_DEVICES = {"_CopyFromGpuToHost", "_CopyFromHostToGpu"}  # of some builds of TensorFlow
MOST = 7  # ranks from there on are taken for alike

# What kernels refuse and shape functions let pass.
KERNELS = [
    (r"LSTMBlockCell(Grad)?", dict(h_prev=2, w=2, wci=1, wcf=1, wco=1, b=1, i=2, cs=2, f=2, o=2, ci=2, co=2, cs_grad=2, h_grad=2)),
    (r"BlockLSTM(V2)?", dict(seq_len_max=0, cs_prev=2, h_prev=2, w=2, wci=1, wcf=1, wco=1)),
    (r"BlockLSTMGrad(V2)?", dict(seq_len_max=0, i=3, cs=3, f=3, o=3, ci=3, co=3, h=3, cs_grad=3, h_grad=3)),
    (r"GRUBlockCell(Grad)?", dict(w_ru=2, w_c=2, b_ru=1, b_c=1, r=2, u=2, c=2, d_h=2)),
    (r"Sparse(Slice|Split|Reduce.*)", dict(indices=2, values=1, shape=1, input_indices=2, input_values=1, input_shape=1, start=1, size=1)),
    (r"Sparse(TensorDense)?Add", dict(a_indices=2, a_values=1, a_shape=1, b_indices=2, b_values=1, b_shape=1, thresh=0)),
    (r"SparseDenseCwise.*", dict(sp_values=1, sp_shape=1)),
    (r"CropAndResizeGradBoxes", dict(grads=4, image=4, boxes=2, box_ind=1)),
    (r"Fractional(Avg|Max)PoolGrad", dict(row_pooling_sequence=1, col_pooling_sequence=1, out_backprop=4)),
    (r"ScaleAndTranslateGrad", dict(grads=4, original_image=4, scale=1, translation=1)),
    (r"Write.*Summary", dict(step=0, tag=0, sample_rate=0)),
]


def quote(b):
    return urllib.parse.quote(b if isinstance(b, (bytes, str)) else bytes(b), safe="")


def shape(s):
    if s.unknown_rank:
        return "?"
    return ",".join(str(d.size) for d in s.dim) or "-"


def value(v):
    kind = v.WhichOneof("value")
    if kind == "list":
        items = ([quote(x) for x in v.list.s] + [str(x) for x in v.list.i] + [repr(x) for x in v.list.f] +
                 [str(int(x)) for x in v.list.b] + [str(x) for x in v.list.type] + [shape(x) for x in v.list.shape])
        return "[" + ";".join(items) + "]"
    if kind == "s":
        return quote(v.s)
    if kind == "b":
        return str(int(v.b))
    if kind == "shape":
        return shape(v.shape)
    if kind == "f":
        return repr(v.f)
    if kind in ("i", "type"):
        return str(getattr(v, kind))
    return None


def spec(a, ranks=""):
    text = "&" if a.is_ref else ""
    if a.number_attr:
        text += a.number_attr + "*"
    if a.type_list_attr:
        return text + "@" + a.type_list_attr
    return text + (a.type_attr if a.type_attr else str(a.type)) + ranks


def attr(a):
    text = ".%s:%s" % (a.name, a.type)
    if a.HasField("default_value"):
        v = value(a.default_value)
        if v is not None:
            text += "=" + v
    if a.HasField("allowed_values"):
        text += "|" + value(a.allowed_values)[1:-1].replace(";", ",")
    if a.has_minimum:
        text += "^%d" % a.minimum
    return text


# ---- ranks: a graph of the op alone is imported with one input's rank said ----

def allowed_type(a):
    allowed = list(a.allowed_values.list.type)
    return next((t for t in (1, 3, 9, 10, 7) if t in allowed), allowed[0] if allowed else 1)


def choices(a):
    """Values of an attribute to try, the likeliest first; None: the default."""
    first = [None] if a.HasField("default_value") else []
    more = {
        "int": [x for x in (2, 1, 0, 3, -1) if not a.has_minimum or x >= a.minimum],
        "bool": [False, True],
        "string": list(a.allowed_values.list.s) or ([] if first else [b"a"]),
        "shape": [[]],
        "list(int)": [[1] * n for n in (4, 5, 3, 2, 1) if n >= a.minimum],
    }
    once = {"type": allowed_type(a), "float": 1.0, "list(type)": [1] * max(1, a.minimum), "list(float)": [1.0] * 4,
            "list(bool)": [True], "list(string)": [b"a"], "list(shape)": [[]]}
    return first + more.get(a.type, [] if first or a.type not in once else [once[a.type]])


def variants(op):
    """Attributes to try: the likeliest ones, and each other value of one of them."""
    given = {x for i in op.input_arg for x in (i.type_attr, i.number_attr)}
    free = [a for a in op.attr if a.name not in given]
    if not all(choices(a) for a in free):
        return
    base = {a.name: choices(a)[0] for a in free}
    yield base
    for a in free:
        for x in choices(a)[1:]:
            yield {**base, a.name: x}


def set_attr(to, kind, x):
    open_shape = tf.TensorShape(None).as_proto()
    one = {"int": "i", "bool": "b", "float": "f", "string": "s", "type": "type"}
    if kind in one:
        setattr(to, one[kind], x)
    elif kind == "shape":
        to.shape.CopyFrom(open_shape)
    elif kind == "list(shape)":
        to.list.shape.append(open_shape)
    else:
        getattr(to.list, one[kind[5:-1]]).extend(x)


def output_ranks(op, attrs, at, rank):
    """Where input `at` has this rank and the others any; ValueError where TensorFlow refuses it."""
    g = graph_pb2.GraphDef()
    g.versions.producer = tf.version.GRAPH_DEF_VERSION
    tried = node_def_pb2.NodeDef(name="tried", op=op.name)
    named = {a.name: a for a in op.attr}
    for name, x in attrs.items():
        if x is not None:
            set_attr(tried.attr[name], named[name].type, x)
    for i, a in enumerate(op.input_arg):
        dtype = a.type
        if a.type_attr:
            t = named[a.type_attr]
            dtype = tried.attr[a.type_attr].type = t.default_value.type if t.HasField("default_value") else allowed_type(t)
        if a.number_attr:
            tried.attr[a.number_attr].i = 2
        for k in range(2 if a.number_attr else 1):
            p = g.node.add(name="p%d_%d" % (i, k), op="Placeholder")
            p.attr["dtype"].type = dtype
            p.attr["shape"].shape.CopyFrom(tf.TensorShape([None] * rank if i == at else None).as_proto())
            tried.input.append(p.name)
    g.node.append(tried)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(g, name="")
        return [x.shape.rank for x in graph.get_operation_by_name("tried").outputs]


def attempt(op, attrs, at, rank):
    try:
        return output_ranks(op, attrs, at, rank)
    except (ValueError, tf.errors.OpError):
        return None


def ranks_of(op):
    """(the ranks that each input is taken with, {output: the input whose rank it has})"""
    count = len(op.input_arg)
    takes, follows = [set() for _ in range(count)], {}
    single = not any(a.number_attr or a.type_list_attr for a in list(op.input_arg) + list(op.output_arg))
    for attrs in variants(op):
        if attempt(op, attrs, None, None) is None:
            continue
        for i in range(count):
            for rank in range(MOST + 1):
                outs = attempt(op, attrs, i, rank)
                takes[i].update([rank] if outs is not None else [])
                for k, x in enumerate(outs or []):
                    follows[k, i] = follows.get((k, i), single) and x == rank
    kept = sorted((k, i) for (k, i), same in follows.items() if same and len(takes[i]) > 2)
    return takes, {k: i for k, i in reversed(kept)}


def apart(work):
    """What `work` returns, in a process of its own: some shape functions crash. None where it did."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, repr(work()).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as f:
        text = f.read()
    os.wait()
    return ast.literal_eval(text.decode()) if text else None


def kernel_ranks(op, a):
    for names, ranks in KERNELS:
        if re.fullmatch(names, op.name) and a.name in ranks:
            return {ranks[a.name]}
    return None


def said(ranks):
    """0,2+"""
    tail = min(r for r in range(MOST + 1) if set(range(r, MOST + 1)) <= ranks) if MOST in ranks else None
    parts = [str(r) for r in sorted(ranks) if tail is None or r < tail]
    return ",".join(parts + (["%d+" % tail] if tail is not None else []))


def with_ranks(op):
    """The specs of the inputs and of the outputs."""
    fits = op.input_arg and not any(a.is_ref or a.type_list_attr for a in op.input_arg)
    takes, follows = (apart(lambda: ranks_of(op)) if fits else None) or ([set()] * len(op.input_arg), {})
    inputs = []
    for a, taken in zip(op.input_arg, takes):
        ranks = kernel_ranks(op, a) or taken
        inputs.append(spec(a, "/" + said(ranks) if 0 < len(ranks) <= MOST else ""))
    return inputs, [spec(a, "/=%d" % follows[k] if k in follows else "") for k, a in enumerate(op.output_arg)]


def main():
    ops = op_def_pb2.OpList()
    ops.ParseFromString(session.TF_GetBuffer(session.TF_GetAllOpList()))
    for op in sorted((o for o in ops.op if o.name not in OTHER_DEVICES), key=lambda o: o.name):
        inputs, outputs = with_ranks(op)
        fields = [op.name + ("!" if op.is_stateful else "")]
        fields += [">%s:%s" % (a.name, s) for a, s in zip(op.input_arg, inputs)]
        fields += ["<%s:%s" % (a.name, s) for a, s in zip(op.output_arg, outputs)]
        fields += [attr(a) for a in op.attr]
        print("\t".join(fields), flush=True)


if __name__ == "__main__":
    main()
