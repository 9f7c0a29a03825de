"""The lines that Ascend's document of wheels does not print: each is named in the sources that lack it."""

import pathlib
import shutil

import pytest

from polyop.build import build
from polyop.build.left_out import left_out
from polyop.core.errors import BuildError

TREE = pathlib.Path(__file__).parents[1] / "sources" / "npu_wheel" / "csrc"
LINES = {
    "using at::empty_like;": "extension_add.cpp uses empty_like: the document leaves out using at::empty_like;",
    "using torch::autograd::AutogradContext;": "extension_add.cpp uses AutogradContext: the document leaves out using "
    "torch::autograd::AutogradContext;",
    "using torch::autograd::tensor_list;": "extension_add.cpp uses tensor_list: the document leaves out using "
    "torch::autograd::tensor_list;",
}
EQUAL = {  # what serves as well as the line
    "using at::empty_like;": "using namespace at;",
    "using torch::autograd::AutogradContext;": "using namespace torch::autograd;",
    "using torch::autograd::tensor_list;": "using tensor_list = torch::autograd::tensor_list;",
}


@pytest.fixture
def source(tmp_path):
    return pathlib.Path(shutil.copytree(TREE, tmp_path / "csrc"), "extension_add.cpp")


@pytest.mark.parametrize("line", LINES)
def test_each_line_is_named(source, line):
    assert left_out(source) == []
    header = source.with_name("function.h")
    text = header.read_text()
    header.write_text(text.replace(line, f"// {line}"))
    assert left_out(source) == [LINES[line]]
    header.write_text(text.replace(line, EQUAL[line]))
    assert left_out(source) == []


def test_the_header_is_named(source):
    source.with_name("function.h").rename(source.parents[1] / "function.h")
    [first, *others] = left_out(source)
    assert first.startswith(
        "extension_add.cpp includes function.h, which is not there: the document does not print it"
    )
    assert sorted(others) == sorted(LINES.values())
    assert left_out(source, [source.parents[1]]) == []


def test_qualified_names_and_missing_files_lack_nothing(tmp_path):
    path = tmp_path / "a.cpp"
    path.write_text(
        "at::Tensor f(x) { return at::empty_like(x); } void g(torch::autograd::AutogradContext* c);"
    )
    assert left_out(path) == left_out(tmp_path / "none.cpp") == []


def test_a_failed_build_names_the_line(tmp_path):
    path = tmp_path / "printed.cpp"
    path.write_text('extern "C" int f() { tensor_list gradients; return 0; }')
    with pytest.raises(
        BuildError, match="printed.cpp uses tensor_list: the document leaves out using torch::autograd"
    ):
        build([str(path)])
