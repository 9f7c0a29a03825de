"""Puts this folder on the path: the tests import the table of parsers and the mutations."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
