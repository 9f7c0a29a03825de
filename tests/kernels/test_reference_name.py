"""``file:func`` texts."""

import pytest

from polyop.core.errors import ArgumentTypeError, ArgumentValueError, FallbackWarning
from polyop.kernels.reference_name import resolve_path, split_reference


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("add.so:Add", ("add.so", "Add")),
        ("./a b/add.cc:_add2", ("./a b/add.cc", "_add2")),
        ("MY_LIBRARY:f", ("MY_LIBRARY", "f")),
    ],
)
def test_one_colon_splits(text, parts):
    assert split_reference(text, "Custom") == parts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("leaky_relu", "a name without ':' is an operator of a provider"),
        ("add.so", "but got 'add.so'\n  name its function, as in 'add.so:function'"),
        ("a b/add.c", "name its function, as in 'a b/add.c:function'"),
        ("", "but got ''"),
        (":Add", "the path is empty, but got ':Add'"),
        (" :Add", "the path is empty"),
        ("add.so:", "the function name is empty"),
        (":", "the path is empty"),
        ("C:/add.so:Add", "a path may have no ':', and 'C:/add.so' has one"),
        ("add.so:my::Add", "Add is in a C.. namespace: .*'add.so:Add'"),
        ("add.so:Add(int)", "must be a name in C, but got 'Add.int.'"),
        ("add.so:2d", "must be a name in C"),
        ("add.so:Add\n", "must be a name in C"),
    ],
)
def test_anything_else_is_an_error(text, message):
    with pytest.raises(
        ArgumentTypeError, match=rf"(?s)^Custom: 'func' should be like 'file_name:func_name'.*{message}"
    ):
        split_reference(text, "Custom")


@pytest.mark.parametrize("value", [None, 3, b"a.so:f"])
def test_no_text_is_a_type_error(value):
    with pytest.raises(TypeError, match=r"'func' must be of type str, but got .*(NoneType|int|bytes)"):
        split_reference(value, "Custom")


def test_paths_are_resolved_from_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "real.so").touch()
    (tmp_path / "link.so").symlink_to("real.so")
    assert resolve_path("x/../link.so") == tmp_path / "real.so"
    assert resolve_path("absent.so") == tmp_path / "absent.so"


def test_path_from_env(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_LIBRARY", "sub/lib.so")
    assert resolve_path("MY_LIBRARY", from_env=True) == tmp_path / "sub/lib.so"
    assert resolve_path("MY_LIBRARY") == tmp_path / "MY_LIBRARY"
    monkeypatch.setenv("MY_LIBRARY", "")
    with pytest.raises(ArgumentValueError, match="the environment variable MY_LIBRARY must hold a path"):
        resolve_path("MY_LIBRARY", from_env=True)
    monkeypatch.delenv("MY_LIBRARY")
    with pytest.warns(FallbackWarning, match="the environment variable MY_LIBRARY is not set"):
        assert resolve_path("MY_LIBRARY", from_env=True) == tmp_path / "MY_LIBRARY"
