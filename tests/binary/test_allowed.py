"""The allowlist: which folders it names, and which paths lie in them."""

import os

import pytest

from polyop.binary.allowed import allowed_folders, check_allowed
from polyop.core.errors import ArgumentTypeError, ArgumentValueError

OURS, UPSTREAM = "POLYOP_LIBRARY_PATHS", "MS_CUSTOM_AOT_WHITE_LIST"
BOTH = pytest.mark.parametrize("variable", [OURS, UPSTREAM])


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    for variable in (OURS, UPSTREAM):
        monkeypatch.delenv(variable, raising=False)
    for name in ("good", "good2", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lib.so").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_unset_or_empty_allows_everything(folders, monkeypatch):
    assert allowed_folders() is None
    monkeypatch.setenv(OURS, "")
    assert check_allowed("other/lib.so") == str(folders / "other/lib.so")


@BOTH
def test_a_folder_allows_all_files_in_it(folders, monkeypatch, variable):
    monkeypatch.setenv(variable, str(folders / "good"))
    assert check_allowed(folders / "good/lib.so") == str(folders / "good/lib.so")
    assert check_allowed("good/../good/lib.so") == str(folders / "good/lib.so")
    assert check_allowed("good/deep/new.so")


@BOTH
@pytest.mark.parametrize(
    "path", ["good2/lib.so", "other/lib.so", "good/../other/lib.so", "other/good/lib.so"]
)
def test_similar_paths_are_not_allowed(folders, monkeypatch, variable, path):
    monkeypatch.setenv(variable, "good")
    message = rf"the legal path for the file is {folders}/good, but the file is {folders}/.*\n.*{variable}"
    with pytest.raises(ArgumentTypeError, match=message):
        check_allowed(path)
    with pytest.raises(TypeError, match="the legal path"):
        check_allowed(folders / path)


def test_links_are_followed_on_both_sides(folders, monkeypatch):
    (folders / "good/out.so").symlink_to(folders / "other/lib.so")
    (folders / "alias").symlink_to(folders / "good")
    monkeypatch.setenv(OURS, str(folders / "alias"))
    assert check_allowed("good/lib.so") == str(folders / "good/lib.so")
    with pytest.raises(TypeError, match=r"but the file is .*/other/lib.so"):
        check_allowed("good/out.so")


def test_both_variables_are_read_at_each_call(folders, monkeypatch):
    monkeypatch.setenv(OURS, os.pathsep.join(["good", "", "good2"]))
    assert allowed_folders() == (folders / "good", folders / "good2")
    check_allowed("good2/lib.so")
    with pytest.raises(TypeError, match=r"good, .*good2, but the file is"):
        check_allowed("other/lib.so")
    monkeypatch.setenv(UPSTREAM, "other")
    check_allowed("other/lib.so")
    monkeypatch.delenv(OURS)
    with pytest.raises(TypeError, match=r"the legal path for the file is .*/other, but"):
        check_allowed("good/lib.so")


@BOTH
@pytest.mark.parametrize("value", ["absent", os.pathsep, " "])
def test_a_missing_folder_is_an_error(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(
        ArgumentValueError, match=f"^{variable}: a folder of the allowlist must exist, but got "
    ):
        check_allowed("good/lib.so")
