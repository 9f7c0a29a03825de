"""Train one network on scikit-learn's handwritten digits in every installed framework; plot the losses.

python main.py [--plot losses.png]
"""

import argparse
import importlib
import importlib.util
import tempfile

import matplotlib as mpl
import network
import numpy as np

FRAMEWORKS = {"numpy": "NumPy", "torch": "PyTorch", "jax": "JAX", "mindspore": "MindSpore"}


def accuracy(parameters):
    """Return the share of digits that are classified correctly."""
    images, labels = network.data()
    return float((network.logits(parameters, images).argmax(1) == labels.argmax(1)).mean())


def main():
    """Train, compare the curves, write the plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--plot", default=f"{tempfile.gettempdir()}/polyop-digits.png", help="the file to write"
    )
    options = parser.parse_args()
    curves = {}
    for name, label in FRAMEWORKS.items():
        if importlib.util.find_spec(name) is None:
            print(f"{label:<10} is not installed: not run")
            continue
        losses, parameters = importlib.import_module(f"in_{name}").train()
        curves[label] = losses
        share = accuracy([np.asarray(p) for p in parameters])
        print(f"{label:<10} loss {losses[0]:.4f} -> {losses[-1]:.4f}, {share:.1%} of the digits right")
        assert share > 0.95
    for label, losses in curves.items():  # rounding errors grow from step to step, but stay small
        np.testing.assert_allclose(losses, curves["NumPy"], rtol=2e-3, err_msg=label)
    print("the same curve in each")
    plot(curves, options.plot)


def plot(curves, path):
    """Write the curves, one above the other, as a picture."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    for width, (label, losses) in enumerate(curves.items()):
        plt.plot(losses, label=label, linewidth=6 - width, alpha=0.6)
    plt.xlabel("step")
    plt.ylabel("cross entropy")
    plt.legend()
    plt.savefig(path)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
