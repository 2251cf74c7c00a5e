#!/usr/bin/env python3
"""Writes ir/tf_ops.txt: the signatures of TensorFlow's ops, from TensorFlow's own registry.

    python3 scripts/extract_ops.py > ir/tf_ops.txt        (needs the tensorflow package)

One line an op, fields separated by tabs:
    NAME[!]            ! : stateful
    >NAME:SPEC         an input;  <NAME:SPEC  an output
    .NAME:TYPE[=DEFAULT][|ALLOWED][^MINIMUM]   an attribute
SPEC is [&][NUMBER_ATTR*]TYPE where & says reference and TYPE is a dtype's number, the name of a type attribute, or
@ATTR for a list(type) attribute. Strings are percent-encoded; a shape is its sizes joined by commas, ? when the rank is
unknown, - for a scalar; a list is [A;B;C]; ALLOWED is dtypes' numbers or strings joined by commas.
"""
import urllib.parse

from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session as session


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


def spec(a):
    text = "&" if a.is_ref else ""
    if a.number_attr:
        text += a.number_attr + "*"
    if a.type_list_attr:
        return text + "@" + a.type_list_attr
    return text + (a.type_attr if a.type_attr else str(a.type))


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


def main():
    ops = op_def_pb2.OpList()
    ops.ParseFromString(session.TF_GetBuffer(session.TF_GetAllOpList()))
    for op in sorted(ops.op, key=lambda o: o.name):
        fields = [op.name + ("!" if op.is_stateful else "")]
        fields += [">%s:%s" % (a.name, spec(a)) for a in op.input_arg]
        fields += ["<%s:%s" % (a.name, spec(a)) for a in op.output_arg]
        fields += [attr(a) for a in op.attr]
        print("\t".join(fields))


main()
