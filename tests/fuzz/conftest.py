"""The table of parsers and the mutations stand beside the test."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
