"""Compile an ATen kernel: python setup.py leaky_relu.cpp leaky_relu_cpu.so."""

import sys

from polyop import PolyopError
from polyop.build import build


def main() -> int:
    if len(sys.argv) != 3:
        print("usage: python setup.py SOURCE LIBRARY", file=sys.stderr)
        return 2
    source, library = sys.argv[1:]
    try:
        print(build([source], output=library))
    except PolyopError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
