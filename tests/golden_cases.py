#!/usr/bin/env python3
"""Prints the folders of the conformance cases that tfc is held to.

    golden_cases.py FOLDER [--all]

Every case under FOLDER but those that FOLDER/unsupported.txt names: cases of what tfc does not have and says so. A line
there is a case, or the folder of several, relative to FOLDER; `#` begins a comment.
"""
import os
import sys


def unsupported(top):
    path = os.path.join(top, "unsupported.txt")
    if not os.path.exists(path):
        return set()
    with open(path, encoding="utf-8") as lines:
        return {line.split("#")[0].strip() for line in lines} - {""}


def main():
    top = sys.argv[1]
    skipped = set() if "--all" in sys.argv[2:] else unsupported(top)
    for folder, inner, files in os.walk(top):
        inner.sort()
        parts = os.path.relpath(folder, top).split(os.sep)
        if any("/".join(parts[:i + 1]) in skipped for i in range(len(parts))):
            inner[:] = []
        elif "case.json" in files:
            inner[:] = []
            print(folder)


main()
