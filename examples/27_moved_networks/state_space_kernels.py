"""What the new frameworks lack, as loops over one sentence. polyop derives the gradients and the batches."""

# ruff: noqa: F821 - the words of the loop language

import polyop


@polyop.kernel(name="state_space::causal_convolution")
def causal_convolution(x, weight, bias):
    """Filter each feature by its past; x is (time, features), the weight (features, taps)."""
    y = output_tensor(x.shape, x.dtype)
    for t in range(x.shape[0]):
        for d in range(x.shape[1]):
            total = bias[d]
            for k in range(weight.shape[1]):
                past = t + k - weight.shape[1] + 1
                if past >= 0:
                    total += weight[d, k] * x[past, d]
            y[t, d] = total
    return y


# [scan]
@polyop.kernel(name="state_space::selective_scan")
def selective_scan(x, step, a, b, c, skip):
    """Return c h + skip x, where h = exp(step a) h + step b x; x is (time, features)."""
    y = output_tensor(x.shape, x.dtype)
    for d in range(x.shape[1]):
        h = allocate((a.shape[1],), x.dtype)
        for t in range(x.shape[0]):
            total = skip[d] * x[t, d]
            for n in range(a.shape[1]):
                h[n] = exp(step[t, d] * a[d, n]) * h[n] + step[t, d] * b[t, n] * x[t, d]
                total += c[t, n] * h[n]
            y[t, d] = total
    return y


# [/scan]
