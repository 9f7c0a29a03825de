"""A detector of PyTorch is moved to JAX and to MindSpore: outputs, gradients and losses are compared."""

import importlib.util
import pathlib
import tempfile
import time

import in_torch
import numpy as np
import scenes

# Of the largest value. Sums of floats are added in another order, and ten steps carry that on.
BOUNDS = {"outputs": 2e-5, "gradients": 1e-4, "losses": 1e-4}


# [compare]
def differences(ours, theirs):
    """Return by name the largest difference of two arrays, over the largest value."""
    found = {}
    for name, value in theirs.items():
        assert ours[name].shape == value.shape, name
        apart, size = (float(np.abs(one).max(initial=0)) for one in (ours[name] - value, value))
        found[name] = apart / (size or 1.0)
    return found


def first_that_differs(ours, theirs, bound):
    """Return the name of the first stage that is not the same, or None."""
    return next((name for name, apart in differences(ours, theirs).items() if not apart < bound), None)


# [/compare]


def run(way):
    """Return a way's name, its stages, the gradients of the first step, all losses, and seconds per step."""
    name, stages, step = way
    loss, gradients = step()
    losses, start = [loss], time.perf_counter()
    losses += [step()[0] for _ in range(scenes.STEPS - 1)]
    return name, stages, gradients, losses, (time.perf_counter() - start) / (scenes.STEPS - 1)


def compare(found, expected):
    """Print the largest differences of a way from the first one; an error if they are above the bounds."""
    name, outputs, gradients, losses, seconds = found
    first = first_that_differs(outputs, expected[1], BOUNDS["outputs"])
    assert first is None, f"{name}: the first stage that differs is {first}"
    assert len(gradients) == len(expected[2])
    largest = {
        "outputs": max(differences(outputs, expected[1]).values()),
        "gradients": max(differences(gradients, expected[2]).values()),
        "losses": max(abs(np.divide(losses, expected[3]) - 1)),
    }
    figures = ", ".join(f"{what} {apart:.0e}" for what, apart in largest.items())
    print(f"{name}: {seconds:.4f} s per step, largest differences: {figures}")
    assert all(largest[what] < bound for what, bound in BOUNDS.items())


def main():
    if importlib.util.find_spec("jax"):
        importlib.import_module("operators").main()
    path = pathlib.Path(tempfile.mkdtemp()) / "weights.npz"
    in_torch.save_weights(path)
    weights = dict(np.load(path))
    original, with_kernels = map(run, in_torch.ways(weights))
    _, stages, _, losses, seconds = original
    print(f"PyTorch: {seconds:.4f} s per step, loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    assert losses[-1] < losses[0]
    compare(with_kernels, original)
    for framework in ("jax", "mindspore"):
        if importlib.util.find_spec(framework) is None:
            print(f"{framework} is not installed: not run")
            continue
        ways = importlib.import_module(f"in_{framework}").ways
        for found in map(run, ways(weights)):
            compare(found, original)
        wrong = {**weights, "down.1.weight": 2 * weights["down.1.weight"]}
        _, outputs, _ = next(ways(wrong))
        assert first_that_differs(outputs, stages, BOUNDS["outputs"]) == "coarse"


if __name__ == "__main__":
    main()
