"""The file by which CMake's ``find_package`` finds an exported library."""

from __future__ import annotations

from pathlib import Path

from .header import prefix_of

_CONFIG = """\
# polyop export has written this file. find_package({name} CONFIG) gives the target {name}::{name}.
if(NOT TARGET {name}::{name})
  add_library({name}::{name} SHARED IMPORTED)
  set_target_properties({name}::{name} PROPERTIES
    IMPORTED_LOCATION "${{CMAKE_CURRENT_LIST_DIR}}/{file}"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}")
endif()
"""


def file_name(library: str) -> str:
    """Return the name of the file, which lies beside the library.

    >>> file_name("libmyops.so")
    'myops-config.cmake'
    """
    return f"{prefix_of(library).lower()}-config.cmake"


def config(library: str) -> str:
    """Return the text of the file. The folder may be moved: paths are relative to it."""
    return _CONFIG.format(name=prefix_of(library), file=Path(library).name)
