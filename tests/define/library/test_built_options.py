"""Build options are for sources: a library that is built takes none."""

import pytest

from polyop import load_library
from polyop.core.errors import ArgumentValueError

OPTIONS = {"cflags": "-O3", "ldflags": "-lm", "include_paths": ["."], "debug": True}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_built_library_takes_no_build_options(tmp_path, name):
    path = tmp_path / "built.so"
    path.touch()
    with pytest.raises(ArgumentValueError, match=f"built.so: is built already, .* takes no {name}= for it"):
        load_library(path, **{name: OPTIONS[name]})
