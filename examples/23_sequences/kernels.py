"""Parts of language models as loops: rotary embedding, attention by an online softmax, a selective scan."""

# ruff: noqa: F821 - the words of the loop language

import math

import polyop


# [rotary]
@polyop.kernel(name="sequences::rotary")
def rotary(x, base: float = 10000.0):
    """Turn pairs of features by the position (Su et al., 2021); ``x`` is (positions, heads, features)."""
    y = output_tensor(x.shape, x.dtype)
    half = x.shape[2] // 2
    for t, h, k in grid((x.shape[0], x.shape[1], half)):
        angle = t * pow(base, -k / half)
        y[t, h, k] = x[t, h, k] * cos(angle) - x[t, h, k + half] * sin(angle)
        y[t, h, k + half] = x[t, h, k + half] * cos(angle) + x[t, h, k] * sin(angle)
    return y


# [/rotary]


# [attention]
@polyop.kernel(name="sequences::attention")
def attention(q, k, v):
    """Return softmax(q k^T / sqrt(d)) v in one walk over the keys (Dao et al., 2022); all are (rows, d)."""
    out = output_tensor((q.shape[0], v.shape[1]), q.dtype)
    for i in range(q.shape[0]):
        top = -math.inf
        total = 0.0
        for j in range(k.shape[0]):
            score = dot(q[i], k[j]) / sqrt(q.shape[1])
            new = max(top, score)
            weight = exp(score - new)
            shrink = exp(top - new)
            total = total * shrink + weight
            out[i] = out[i] * shrink + weight * v[j]
            top = new
        out[i] = out[i] / total
    return out


# [/attention]


# [scan]
@polyop.kernel(name="sequences::selective_scan")
def selective_scan(x, step, a, b, c):
    """Run the state space layer of Mamba (Gu and Dao, 2023).

    x and step are (time, d), a is (d, n), b and c are (time, n).
    """
    y = output_tensor(x.shape, x.dtype)
    for d in range(x.shape[1]):
        h = allocate((a.shape[1],), x.dtype)
        for t in range(x.shape[0]):
            for n in range(a.shape[1]):
                h[n] = exp(step[t, d] * a[d, n]) * h[n] + step[t, d] * b[t, n] * x[t, d]
                y[t, d] += c[t, n] * h[n]
    return y


# [/scan]
