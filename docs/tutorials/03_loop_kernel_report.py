# %% [markdown]
# # 3. A loop kernel and its report
#
# You write loops in Python. polyop compiles them, and its report says what became of each loop. At the end you
# can answer: which loops run on several threads, which use vector lanes, and why one does not. This takes about
# fifteen minutes.
#
# ## The loops
#
# `output_tensor` makes the result. Everything else is what it looks like. A name that is not assigned anywhere,
# such as `rsqrt`, is a word of the loop language.

# %%
import re
from pathlib import Path

import numpy as np

import polyop


@polyop.kernel
def rms_norm(x, scale):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        squares = 0.0
        for j in range(x.shape[1]):
            squares += x[i, j] * x[i, j]
        factor = rsqrt(squares / x.shape[1] + 1e-6)
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * factor * scale[j]
    return y


random = np.random.default_rng(0)
x, scale = random.normal(size=(64, 256)).astype(np.float32), np.ones(256, np.float32)

# %% [markdown]
# The first call with float32 arrays compiles the kernel. `rms_norm.python` runs the same function as plain
# Python. It is slow, and it *defines* what the kernel means, so it is what one compares with.

# %%
compiled, plain = rms_norm(x, scale), rms_norm.python(x[:4], scale)
assert np.allclose(compiled[:4], plain, atol=1e-5)

# %% [markdown]
# ## The report
#
# `report` makes one page: the Python lines, the compiler's loops, the C code, the machine code, and what became
# of each loop. `report.save("rms.html")` writes the page, and a notebook shows it if the last line of a cell is
# `report`. On a command line `polyop report` does the same. Times on this machine are left out here, with
# `measure=False`.

# %%
report = rms_norm.report(x, scale, measure=False)
report.save("rms.html")
assert "factor = rsqrt" in Path("rms.html").read_text()

# %% [markdown]
# `report.facts` has the same facts as Python values. Its `answers` are the questions that one asks first:

# %%
for answer in report.facts.answers:
    print(answer.question, *answer.sentences, sep="\n  ")
first = report.facts.answers[0]
assert any(re.fullmatch(r"Loop i \(.*\) is shared by threads\.", sentence) for sentence in first.sentences)

# %% [markdown]
# How to read this:
#
# * *Loop i is shared by threads*: the rows do not depend on each other, so each thread takes some of them. polyop
#   proves that; you do not promise it.
# * *Loops j and j#2 run in vector lanes*: one instruction works on several iterations, each in its own lane. `j#2` is
#   the second loop over `j`. The first one is a sum. Each lane adds up a part of it, and the parts are added at the end.
# * *The forward saves ...*: what a gradient needs and is kept. [The next tutorial](04_gradients.py) is about that.
#
# ## A loop that must be serial
#
# In a running sum each step needs the one before. Such a loop cannot be shared.


# %%
@polyop.kernel
def running_sum(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i, 0] = x[i, 0]
        for j in range(1, x.shape[1]):
            y[i, j] = y[i, j - 1] + x[i, j]
    return y


second = running_sum.report(x, measure=False)
for answer in second.facts.answers[:1]:
    print(answer.question, *answer.sentences, sep="\n  ")
text = " ".join(second.facts.answers[0].sentences)
assert "is serial" in text
assert re.search(r"Loop i \([^)]*\) is shared by threads\.", text)

# %% [markdown]
# The report names the statement that forbids it: it reads `y[i, j - 1]`, which the step before has written. The rows are
# still independent, so threads share the outer loop, and each vector lane has a row of its own.
#
# ## What next
#
# * [Loop kernels](../guides/loop-kernels.md): everything that the language has.
# * [Schedules](../reference/schedule.md): to choose yourself what a loop becomes.
# * Exercise: replace `factor` by `1.0 / sqrt(...)` and compare `report.facts.explanation` before and after.
