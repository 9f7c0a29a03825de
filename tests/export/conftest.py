"""One exported library for the tests of this folder: its thirty sources are compiled once."""

import pytest

from polyop.export import export

from . import exported_operators


@pytest.fixture(scope="session")
def path(tmp_path_factory):
    """Return the path of a library with five operators."""
    library = tmp_path_factory.mktemp("export") / "libexported.so"
    every = [getattr(exported_operators, name) for name in ("scale", "add", "shift", "both", "fill_")]
    export(every, library, signatures=exported_operators.SIGNATURES)
    return library
