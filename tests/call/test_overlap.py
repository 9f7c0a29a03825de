# ruff: noqa: F821 - kernels, whose words are no names here
"""A written tensor whose elements share memory is refused by name: a copy of it would lose what was written."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import polyop
from polyop.call.overlap import Layout, is_overlapping, share_memory
from polyop.core.errors import ArgumentValueError


def add_before(x):
    for i in range(1, x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = x[i, j] + x[i - 1, j]
    return x


def add_one(x):
    x += 1


OPERATORS = {
    "loops": polyop.Custom(add_before, func_type="hybrid"),
    "python": polyop.operator("overlap_tests::add_one(Tensor(a!) x) -> ()", add_one),
}


@pytest.fixture(params=OPERATORS)
def op(request):
    return OPERATORS[request.param]


def windows():
    """Rows of three of which each shares two elements with the next."""
    return as_strided(np.arange(6.0), (4, 3), (8, 8))


OVERLAPPING = {
    "windows": windows,
    "repeated rows": lambda: as_strided(np.arange(3.0), (4, 3), (0, 8)),
    "half an element": lambda: as_strided(np.arange(6.0), (2, 3), (4, 8)),
    "backwards": lambda: as_strided(np.arange(9.0)[4:], (2, 2), (-8, 8)),
}
APART = {
    "columns": lambda: np.arange(12.0).reshape(3, 4).T,
    "every second": lambda: np.arange(24.0).reshape(4, 6)[:, ::2],
    "backwards": lambda: np.arange(12.0).reshape(4, 3)[::-1, ::-1],
    "interleaved": lambda: as_strided(np.arange(8.0), (2, 3), (24, 16)),
    "no elements": lambda: as_strided(np.arange(6.0), (4, 0), (0, 0)),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_a_written_array_that_overlaps_itself_is_refused_by_name(op, name):
    x = OVERLAPPING[name]()
    before = x.copy()
    with pytest.raises(
        ArgumentValueError, match="argument x: .*no two of its elements may share memory"
    ) as excinfo:
        op(x)
    assert "strides" in str(excinfo.value) and "pass a copy" in str(excinfo.value)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("name", APART)
def test_a_written_array_of_any_other_layout_is_written(op, name):
    x = APART[name]()
    copy = x.copy()
    op(x)
    op(copy)
    np.testing.assert_array_equal(x, copy)


def test_only_what_is_written_must_be_apart():
    def total(x):
        y = output_tensor((1,), x.dtype)
        y[0] = 0
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[0] += x[i, j]
        return y

    assert polyop.Custom(total, func_type="hybrid")(windows())[0] == windows().sum()


def test_torch_tensors_that_are_expanded_or_overlap_are_refused_by_name(op):
    torch = pytest.importorskip("torch")
    for x in (torch.zeros(1, 3, dtype=torch.float64).expand(4, 3), torch.zeros(6).as_strided((4, 3), (1, 1))):
        with pytest.raises(ArgumentValueError, match="argument x: .*no two of its elements may share memory"):
            op(x)
    x = torch.arange(12.0).reshape(3, 4).T
    copy = x.clone()
    op(x)
    op(copy)
    assert torch.equal(x, copy)


def test_every_small_layout_is_told_right():
    generator = np.random.default_rng(0)
    for _ in range(2000):
        shape = tuple(int(n) for n in generator.integers(1, 4, generator.integers(1, 4)))
        steps = tuple(int(n) for n in generator.integers(-7, 8, len(shape)))
        places = [sum(i * s for i, s in zip(at, steps, strict=True)) for at in np.ndindex(shape)]
        assert is_overlapping(shape, steps) == (len(set(places)) < len(places)), (shape, steps)


def test_every_pair_of_small_layouts_is_told_right():
    generator = np.random.default_rng(0)
    for _ in range(2000):
        shapes = generator.integers(1, 4, (2, 2))
        steps = generator.integers(-7, 8, (2, 2))
        starts = generator.integers(50, 65, 2)
        one, other = (
            Layout(4 * int(start), tuple(map(int, shape)), [4 * int(step) for step in step_pair], 4)
            for start, shape, step_pair in zip(starts, shapes, steps, strict=True)
        )
        if is_overlapping(one.shape, one.strides, 4) or is_overlapping(other.shape, other.strides, 4):
            continue
        common = set(one.offsets(0).tolist()) & set(other.offsets(0).tolist())
        assert share_memory(one, other) == bool(common), (one, other)
