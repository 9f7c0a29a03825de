"""Two networks of PyTorch, moved to JAX and to MindSpore, whichever is installed.

python main.py [--network state_space]
"""

import argparse
import importlib.util

import compare
import moved

NETWORKS = ("state_space", "graph")


def main():
    """Print the largest differences of each network in each framework."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", choices=NETWORKS)
    chosen = parser.parse_args().network
    for name in (chosen,) if chosen else NETWORKS:
        reference = compare.reference(name)
        data = importlib.import_module(f"{name}_torch").data()
        for framework, run in (("jax", moved.in_jax), ("mindspore", moved.in_mindspore)):
            if importlib.util.find_spec(framework) is None:
                print(f"{name} in {framework}: it is not installed")
                continue
            expected, start = reference.through(moved.carry(name, framework))
            expected = expected._replace(gradients=moved.leaves(expected.gradients))
            for compiled in (False, True):
                found = run(name, start, data, compiled=compiled)
                how = "compiled" if compiled else "eager"
                print(f"{name} in {framework}, {how}: {compare.differences(found, expected)}")


if __name__ == "__main__":
    main()
