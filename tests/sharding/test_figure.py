"""docs/guides/communication.svg: what tools/communication_figure.py writes now."""

import importlib.util
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
FIGURE = ROOT / "docs" / "guides" / "communication.svg"


@pytest.fixture(scope="session")
def tool():
    path = ROOT / "tools" / "communication_figure.py"
    spec = importlib.util.spec_from_file_location("communication_figure", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_figure_is_of_these_bytes(tool, request):
    text = tool.svg(tool.curves())
    if request.config.getoption("--update-golden"):
        FIGURE.write_text(text)
    assert text == FIGURE.read_text(), "docs/guides/communication.svg is of other bytes: run 'make golden'"


def test_a_curve_follows_its_bytes(tool):
    flat, falling = [10**5] * len(tool.COUNTS), [10**5 // count for count in tool.COUNTS]
    lines = re.findall(r'points="([^"]*)"', tool.svg({"flat": flat, "falling": falling}))
    heights = [[float(point.split(",")[1]) for point in line.split()] for line in lines]
    assert len(set(heights[0])) == 1
    assert heights[1] == sorted(heights[1])  # y grows downwards
    assert heights[0][0] < heights[1][0]
