"""What the checks ask of a framework, one file each; a file is imported only where its framework is."""

from .base import FRAMEWORKS, Framework, absent, load

__all__ = ["FRAMEWORKS", "Framework", "absent", "load"]
