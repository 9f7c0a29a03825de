"""Two networks of PyTorch, moved to JAX and to MindSpore, whichever is installed; one of them to ONNX, too.

python main.py [--network state_space]
"""

import argparse
import importlib.util
import os

import compare
import moved

NETWORKS = ("state_space", "graph")


def main():
    """Print the largest differences of each network in each framework."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", choices=NETWORKS)
    chosen = parser.parse_args().network
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"  # read when JAX starts
    for name in (chosen,) if chosen else NETWORKS:
        reference = compare.reference(name)
        data = importlib.import_module(f"{name}_torch").data()
        for place, framework, run in moved.ways(name):
            if importlib.util.find_spec(framework) is None:
                print(f"{name} {place}: not installed")
                continue
            carry = moved.carry(name, framework)
            found = run(name, carry(reference.start), data)
            print(f"{name} {place}: {compare.differences(found, reference, carry)}")
    if chosen != "graph" and importlib.util.find_spec("onnxruntime"):
        exported = importlib.import_module("exported")
        outputs = exported.difference(compare.reference("state_space").start)
        assert outputs < compare.BOUNDS["outputs"]
        print(f"state_space in ONNX Runtime, without polyop: outputs {outputs:.1e}")


if __name__ == "__main__":
    main()
