# ruff: noqa: F821 - kernels, whose words are no names here
"""A kernel that cannot be compiled as planned runs in the author's order, and a warning says why."""

import re
from dataclasses import replace

import islpy
import numpy as np
import pytest

import polyop
from polyop.build import make as building
from polyop.build.run import Finished
from polyop.core.errors import BuildError, FallbackWarning
from polyop.core.spec import Spec
from polyop.kernels.loop.kernel import LoopKernel
from polyop.loops.derive import forms
from polyop.loops.derive.pipelines import ADJOINT
from polyop.loops.emit.c.loops import Loops
from polyop.loops.emit.c.tile import TilePrinter
from polyop.loops.emit.common.entry import Entry
from polyop.loops.ir.schedule import NOTHING
from polyop.loops.library import make
from polyop.loops.pipeline import COPYING, PIPELINE
from polyop.report.stages import form_of

X = np.arange(12, dtype=np.float32).reshape(3, 4)
ORDER = "loops stay in the author's order, on one thread and with every index checked"


def rows(x, w):
    y = output_tensor((x.shape[0], w.shape[1]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(w.shape[1]):
            for k in range(w.shape[0]):
                y[i, j] += x[i, k] * w[k, j]
    return y


def doubled(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] + x[i, j]
    return y


def raising(*_, **__):
    raise IndexError("a bug\nof two lines")


def fails(program):
    return program.with_(1 // 0)


def prints(text):
    """Return a printer of vector loops that prints another text."""
    return lambda self, *_: self.out.line(text)


# what breaks, what it becomes, and what the warning says of it
BROKEN = {
    "a pass": (make, "schedule", raising, "IndexError: a bug of two lines"),
    "a printer": (Loops, "vector", raising, "IndexError: a bug of two lines"),
    "a name": (Loops, "vector", prints("gone_ = 1;"), r"AssertionError: the text of doubled .* gone_"),
    "a refused text": (
        Loops,
        "vector",
        prints("max_f32(1 2);"),
        "the compiler refuses their text: expected",
    ),
    "a type": (
        Loops,
        "vector",
        prints("const f32 gone_ = k;"),
        "the compiler refuses their text: incompatible",
    ),
}


@pytest.fixture
def broken(request, monkeypatch, tmp_path):
    """Break the compiler, as in a process without POLYOP_STRICT and with an empty cache; return what is said."""
    owner, name, function, said = BROKEN[request.param]
    monkeypatch.setattr(owner, name, function)
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("POLYOP_STRICT")
    return said


@pytest.mark.parametrize("broken", BROKEN, indirect=True)
def test_a_kernel_runs_in_the_authors_order(broken, recwarn):
    kernel, specs = LoopKernel(doubled), [Spec(X.shape, "float32")]
    run = polyop.Custom(doubled, func_type="hybrid")
    for x in (X, X[:2]):
        np.testing.assert_array_equal(run(x), x + x)
    (warning,) = recwarn
    text = str(warning.message)
    assert warning.category is FallbackWarning
    assert re.fullmatch(f"doubled: {ORDER}: {broken}.*; POLYOP_STRICT=1 raises it", text)
    assert text in "\n".join(kernel.explain(specs, {}))
    assert (kernel.scheduled(specs).checked, kernel.scheduled(specs).fallback) == (True, text)


@pytest.mark.parametrize("broken", BROKEN, indirect=True)
def test_strict_raises(broken, monkeypatch):
    monkeypatch.setenv("POLYOP_STRICT", "1")
    said = broken.rpartition(": ")[2].replace("a bug of", "a bug\nof")
    with pytest.raises((IndexError, AssertionError, BuildError), match=said):
        polyop.Custom(doubled, func_type="hybrid")(X)


@pytest.mark.parametrize("broken", ["a refused text"], indirect=True)
def test_another_process_reads_why_from_the_library(broken, tmp_path, monkeypatch):
    with pytest.warns(FallbackWarning, match=broken):
        polyop.Custom(doubled, func_type="hybrid")(X)
    monkeypatch.setenv("POLYOP_STRICT", "1")  # the library in the cache is none for it
    with pytest.raises(BuildError, match="expected"):
        polyop.Custom(doubled, func_type="hybrid")(X)
    monkeypatch.undo()
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("POLYOP_STRICT")
    with pytest.warns(FallbackWarning, match=broken):
        np.testing.assert_array_equal(polyop.Custom(doubled, func_type="hybrid")(X), X + X)
    kernel = LoopKernel(doubled)
    assert broken in "\n".join(kernel.explain([Spec(X.shape, "float32")], {}))
    assert kernel.scheduled([Spec(X.shape, "float32")]).checked
    typed = kernel.typed([Spec(X.shape, "float32")], {})
    assert broken in form_of("the kernel", typed, kernel.options, {}).fallback


@pytest.mark.parametrize("broken", ["a refused text"], indirect=True)
def test_what_fails_in_the_authors_order_too_is_an_error(broken, monkeypatch):
    printed = Entry.print
    monkeypatch.setattr(Entry, "print", lambda self: f"int 3;\n{printed(self)}")
    run = polyop.Custom(doubled, func_type="hybrid")
    with pytest.raises(
        BuildError, match="doubled: is a loop kernel whose C cannot be compiled(.|\n)*error: expected"
    ):
        run(X)


@pytest.mark.parametrize("found", ["cc1: fatal error: no_such.h: No such file", "Killed"])
def test_what_no_other_text_avoids_is_an_error(found, monkeypatch, tmp_path):
    tries = []
    monkeypatch.setattr(
        building, "run", lambda command, *_, **__: tries.append(command) or Finished((), 1, found)
    )
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("POLYOP_STRICT")
    with pytest.raises(BuildError, match=found):
        polyop.Custom(doubled, func_type="hybrid")(X)
    assert len(tries) == 1


def test_a_gradient_runs_in_the_authors_order(monkeypatch, tmp_path, recwarn):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.setattr(TilePrinter, "print", raising)
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("POLYOP_STRICT")
    x, w = (torch.randn(shape, requires_grad=True) for shape in ((3, 4), (4, 5)))
    y = polyop.kernel(rows)(x, w)
    y.sum().backward()
    said = [str(one.message) for one in recwarn if one.category is FallbackWarning]
    assert [text.partition(":")[0] for text in said] == ["rows", "the gradient of rows"]
    torch.testing.assert_close(y, x @ w)
    torch.testing.assert_close(w.grad, (x.T @ torch.ones(3, 5)).detach())


def test_a_derivation_leaves_out_a_pass_with_a_bug(monkeypatch, tmp_path, recwarn):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    table = tuple(replace(one, run=fails) if one.name == "inline_adjoints" else one for one in ADJOINT)
    monkeypatch.setattr(forms, "ADJOINT", table)
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path))
    x = torch.randn((3, 4), requires_grad=True)
    op = polyop.kernel(doubled)
    with pytest.raises(ZeroDivisionError):
        op(x).sum().backward()
    monkeypatch.delenv("POLYOP_STRICT")
    op(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.full((3, 4), 2.0))
    (said,) = [str(one.message) for one in recwarn if one.category is FallbackWarning]
    assert said.startswith("the gradient of doubled: its derivation leaves out fails: ZeroDivisionError")


def test_beyond_isls_quota_the_passes_that_copy_loops_are_left_out(monkeypatch, tmp_path, recwarn):
    tables, schedule = [], make.schedule
    monkeypatch.setenv("POLYOP_CACHE_DIR", str(tmp_path))  # an earlier run of the tests has built it

    def limited(kernel, watch, passes=PIPELINE, steps=NOTHING):
        tables.append(passes)
        if passes is PIPELINE:
            raise islpy.Error("maximal number of operations exceeded")
        return schedule(kernel, watch, passes, steps)

    monkeypatch.setattr(make, "schedule", limited)
    result = polyop.kernel(name="fallback::beyond_the_quota")(rows)(X, X.T.copy())
    np.testing.assert_array_equal(result, X @ X.T)
    assert [len(PIPELINE) - len(table) for table in tables] == [0, len(COPYING)]
    assert not [w for w in recwarn if issubclass(w.category, FallbackWarning)]
