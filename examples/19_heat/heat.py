"""The heat equation on a plate as a loop kernel, and the initial temperatures that lead to a picture."""

# ruff: noqa: F821 - the words of the loop language

import numpy as np

import polyop

ROWS, COLUMNS, STEPS, ROUNDS, RATE = 24, 20, 8, 15, 0.5


# [kernel]
@polyop.kernel(name="heat::step")
def step(u, alpha: float = 0.2):
    """Return the temperatures one step of time later; those at the border stay."""
    v = output_tensor(u.shape, u.dtype)
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            if i == 0 or j == 0 or i == u.shape[0] - 1 or j == u.shape[1] - 1:
                v[i, j] = u[i, j]
            else:
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                v[i, j] = u[i, j] + alpha * (around - 4.0 * u[i, j])
    return v


# [/kernel]


def target():
    """Return the temperatures that the plate shall have at the end: a warm disc."""
    i, j = np.mgrid[:ROWS, :COLUMNS]
    distance = np.hypot(i - ROWS / 2, j - COLUMNS / 2)
    return (1 / (1 + np.exp(distance - 5))).astype(np.float32)


# [one]
def fit(goal):
    """Return the initial temperatures after ROUNDS rounds of gradient descent, and the loss of each round."""
    start, losses = np.zeros_like(goal), []
    for _ in range(ROUNDS):
        u, pulls = start, []
        for _ in range(STEPS):
            u, pull = step.vjp(u)
            pulls.append(pull)
        losses.append(float(((u - goal) ** 2).sum()))
        gradient = 2 * (u - goal)
        for pull in reversed(pulls):
            gradient, _ = pull(gradient)  # alpha has none
        start = start - RATE * gradient
    return start, losses


# [/one]
