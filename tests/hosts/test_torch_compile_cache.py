"""What torch.compile keeps on disk is found again by the same definitions, and not after an edit."""

import json
import math
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

SCRIPT = """
import json
import torch
import polyop
from torch._dynamo.utils import counters

torch.compiler.config.cache_key_tag = "mine"

def gradient(x, out, dout):
    return (dout * 2.0,)

op = polyop.operator(
    "kept::op(Tensor x) -> Tensor", lambda x: x.astype("float32") * 2, gradient=gradient, infer="x"
)

@polyop.kernel(name="kept::loop")
def loop(x):
    y = output_tensor((x.shape[0],), x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i]
    return y

def run(x):
    return op(x).sin().sum() + loop(x).cos().sum()

x = torch.full((3,), 0.5, requires_grad=True)
value = torch.compile(run, fullgraph=True)(x)
value.backward()
kept = counters["aot_autograd"]["autograd_cache_hit"]
print(json.dumps([value.item(), x.grad[0].item(), kept, torch.compiler.config.cache_key_tag.split()]))
"""
# without what is registered after the tag was set
LATER = SCRIPT.replace('torch.compiler.config.cache_key_tag = "mine"\n', "")
LATER = LATER.replace(" + loop(x).cos().sum()", "").replace(
    "def run(x)", 'torch.compiler.config.cache_key_tag = "mine"\n\ndef run(x)'
)
EDITS = [("dout * 2.0", "dout * 3.0"), ("x[i] * x[i]", "x[i] * x[i] * x[i]")]


@pytest.fixture
def run(tmp_path):
    """Run a script: return its value, its gradient, and how many programs were found in the cache."""

    def run(text):
        path = tmp_path / "script.py"
        path.write_text(text)
        place = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}
        done = subprocess.run(
            [sys.executable, path], capture_output=True, text=True, check=False, env=place, timeout=600
        )
        assert done.returncode == 0, done.stderr
        value, gradient, kept, tag = json.loads(done.stdout)
        assert tag[:1] == ["mine"]  # the author's own tag is still there
        assert tag[1::2] == ["polyop"]  # and ours once
        return value, gradient, kept

    return run


@pytest.mark.slow(more=2)
def test_an_edit_is_seen_whenever_the_author_sets_a_tag(run):
    assert "loop(x)." not in LATER
    first, edited = run(LATER), run(LATER.replace(*EDITS[0]))
    assert (first[2], edited[2]) == (0, 0)
    assert edited[1] - first[1] == pytest.approx(math.cos(1.0), abs=1e-6)


@pytest.mark.slow(more=2)
def test_an_edit_of_a_definition_compiles_again(run):
    texts = [SCRIPT, SCRIPT, *(SCRIPT.replace(*edit) for edit in EDITS), SCRIPT]
    first, again, by_rule, by_loop, back = map(run, texts)
    assert (first[2], again[2], by_rule[2], by_loop[2], back[2]) == (0, 1, 0, 0, 1)
    assert first[:2] == again[:2] == back[:2]
    assert by_rule[0] == first[0]
    # d sin(2x): cos(2x) times the author's 2 or 3
    assert by_rule[1] - first[1] == pytest.approx(math.cos(1.0), abs=1e-6)
    # x -> x^2, then x^3, under a cosine
    assert by_loop[0] - first[0] == pytest.approx(3 * (math.cos(0.125) - math.cos(0.25)), abs=1e-6)
    assert by_loop[1] - first[1] == pytest.approx(-math.sin(0.125) * 0.75 + math.sin(0.25), abs=1e-6)
